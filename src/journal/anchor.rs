//! `anchors.log`: journal heads noted outside the run.
//!
//! Role: make a cut or rewritten journal visible. A chain proves that nothing inside it was
//! changed; it cannot prove that its end is still there. A head noted elsewhere can.
//! Not its role: judging a run (see `verify`).
//! Invariants: lines are only ever added; one line is one write, so runs that share the file
//! do not mix their lines; a line names the anchor of the same run before it and has a digest
//! of its own, so a changed or missing one shows; only what was written to the end counts.
//!
//! A line: `RUN SEQ HEAD SEAL PREV SUM`. SEQ is `-` for the first anchor, which is written before
//! the run exists and names its genesis; SEAL is `-` where there is none; PREV is the SUM of the
//! run's anchor before, or `-`; SUM is the SHA-256 of a domain and the line before it. Lines of
//! older versions have the first four words only.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use super::atomic;
use super::error::{JournalError, at};
use crate::model::digest::Digest;

const DOMAIN: &[u8] = b"nightloop.anchor.v2\n";
/// Damaged lines that are named one by one.
const MAX_NAMED: usize = 5;

/// The head of a journal at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Number of the last event.
    pub seq: u64,
    /// Hash of the last event.
    pub head: Digest,
    /// Digest of `seal.json`, once there is one.
    pub seal: Option<Digest>,
}

/// What the file says of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anchored {
    /// Digest of `genesis.json`, noted before the run existed.
    pub genesis: Option<Digest>,
    /// Oldest first.
    pub anchors: Vec<Anchor>,
    /// Anchors of this run that must have been there: the line that names one, and why it is missed.
    pub gaps: Vec<(u64, String)>,
    /// Lines that are no anchors, of this run or another; counted from 1.
    pub damaged: Vec<u64>,
    /// The digest of the newest line of the run.
    last: Option<Digest>,
}

impl Anchored {
    pub fn is_empty(&self) -> bool {
        self.genesis.is_none() && self.anchors.is_empty()
    }

    pub fn latest(&self) -> Option<&Anchor> {
        self.anchors.last()
    }

    /// The damaged lines in words.
    pub fn damage(&self) -> Option<String> {
        let named: Vec<String> = self.damaged.iter().take(MAX_NAMED).map(u64::to_string).collect();
        match self.damaged.len() {
            0 => None,
            1 => Some(format!("line {} is damaged", named.concat())),
            count if count <= MAX_NAMED => Some(format!("lines {} are damaged", named.join(", "))),
            count => Some(format!("lines {} and {} more are damaged", named.join(", "), count - MAX_NAMED)),
        }
    }

    /// Is this a journal that the anchors know? Fed with its events in order, then asked at the end.
    pub fn connect(&self, genesis: Digest) -> Connection {
        let mut due = self.anchors.clone();
        due.sort_by_key(|anchor| std::cmp::Reverse(anchor.seq));
        let broken = if self.is_empty() {
            Some("anchors.log has no anchor of this run".to_owned())
        } else if self.genesis.is_some_and(|noted| noted != genesis) {
            Some("genesis.json is not the one that its first anchor names".to_owned())
        } else {
            None
        };
        Connection { due, broken }
    }

    fn take(&mut self, number: u64, line: &Line<'_>) {
        if line.sum.is_some() && line.prev != self.last {
            self.gaps.push((number, "the anchor of this run before it is missing".to_owned()));
        }
        self.last = Some(line.sum.unwrap_or_else(|| Digest::of(line.text.as_bytes())));
        match line.seq {
            Some(seq) => {
                // A run of an older version began without one.
                if line.sum.is_some() && line.prev.is_none() {
                    self.gaps.push((number, format!("the run was not anchored before event {seq}")));
                }
                self.anchors.push(Anchor { seq, head: line.head, seal: line.seal });
            }
            None => self.genesis = Some(line.head),
        }
    }
}

/// Follows a journal along its anchors.
#[derive(Debug)]
pub struct Connection {
    /// Newest first.
    due: Vec<Anchor>,
    broken: Option<String>,
}

impl Connection {
    pub fn see(&mut self, seq: u64, hash: Digest) {
        while let Some(anchor) = self.due.pop_if(|anchor| anchor.seq == seq) {
            if anchor.head != hash && self.broken.is_none() {
                self.broken = Some(format!("event {seq} is {hash}, its anchor names {}", anchor.head));
            }
        }
    }

    /// Why the journal, which ends here, is not the one that was anchored.
    pub fn broken(&self) -> Option<String> {
        let beyond = self.due.first().map(|anchor| format!("its end is missing: an anchor names event {}", anchor.seq));
        self.broken.clone().or(beyond)
    }
}

/// The anchors file of a state root.
#[derive(Clone, Debug)]
pub struct Anchors {
    path: PathBuf,
}

impl Anchors {
    /// `anchors.log` in `state_root`.
    pub fn in_root(state_root: &Path) -> Self {
        Self { path: state_root.join("anchors.log") }
    }

    /// The anchors in the file `path`.
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Notes that `run` begins with this genesis. Durable when it returns: before the run is there, so that a run
    /// without an anchor has lost it.
    pub fn begin(&self, run: &str, genesis: Digest) -> Result<(), JournalError> {
        self.note(run, "-", genesis, None)
    }

    /// Notes an anchor of `run`. Durable when it returns.
    pub fn append(&self, run: &str, anchor: &Anchor) -> Result<(), JournalError> {
        self.note(run, &anchor.seq.to_string(), anchor.head, anchor.seal)
    }

    fn note(&self, run: &str, seq: &str, head: Digest, seal: Option<Digest>) -> Result<(), JournalError> {
        if run.is_empty() || run.contains(char::is_whitespace) {
            return Err(JournalError::invalid(format!("`{run}` cannot name a run in {}", self.path.display())));
        }
        // Only the owner of a run notes its anchors, so nobody writes between this look and the line.
        let body = format!("{run} {seq} {head} {} {}", or_dash(seal), or_dash(self.of_run(run)?.last));
        self.append_line(&format!("{body} {}\n", sum(&body))).map_err(at(&self.path))
    }

    fn append_line(&self, line: &str) -> io::Result<()> {
        let is_new = !self.path.exists();
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(&self.path)?;
        // A crash may have left half a line; ours must not become the rest of it.
        if ends_inside_a_line(&mut file)? {
            file.write_all(format!("\n{line}").as_bytes())?;
        } else {
            file.write_all(line.as_bytes())?;
        }
        file.sync_data()?;
        match self.path.parent().filter(|dir| is_new && !dir.as_os_str().is_empty()) {
            Some(dir) => atomic::sync_dir(dir),
            None => Ok(()),
        }
    }

    /// What the file says of `run`. Nothing when there is no such file.
    pub fn of_run(&self, run: &str) -> Result<Anchored, JournalError> {
        let mut found = Anchored::default();
        for (number, text) in (1..).zip(self.read()?.split(|byte| *byte == b'\n')) {
            match std::str::from_utf8(text).ok().and_then(parse) {
                Some(line) if line.run == run => found.take(number, &line),
                None if !text.is_empty() => found.damaged.push(number),
                Some(_) | None => {}
            }
        }
        Ok(found)
    }

    /// The lines of `run` as they stand in the file, and nobody else's.
    pub fn lines_of(&self, run: &str) -> Result<Vec<u8>, JournalError> {
        let bytes = self.read()?;
        let lines = bytes.split(|byte| *byte == b'\n');
        let ours =
            lines.filter(|text| std::str::from_utf8(text).ok().and_then(parse).is_some_and(|line| line.run == run));
        Ok(ours.flat_map(|line| line.iter().copied().chain([b'\n'])).collect())
    }

    fn read(&self) -> Result<Vec<u8>, JournalError> {
        match fs::read(&self.path) {
            Ok(bytes) => Ok(bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(JournalError::io(&self.path, error)),
        }
    }
}

fn or_dash(digest: Option<Digest>) -> String {
    digest.map_or_else(|| "-".to_owned(), |digest| digest.to_string())
}

fn sum(body: &str) -> Digest {
    Digest::of_parts(&[DOMAIN, body.as_bytes()])
}

fn ends_inside_a_line(file: &mut fs::File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0u8];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// A line that holds together by itself.
struct Line<'a> {
    text: &'a str,
    run: &'a str,
    /// `None`: the genesis.
    seq: Option<u64>,
    head: Digest,
    seal: Option<Digest>,
    prev: Option<Digest>,
    /// `None`: a line of an older version.
    sum: Option<Digest>,
}

fn parse(text: &str) -> Option<Line<'_>> {
    let words: Vec<&str> = text.split(' ').collect();
    let maybe = |word: &str| if word == "-" { Some(None) } else { word.parse().ok().map(Some) };
    let (first, prev, sum_of_line) = match words.as_slice() {
        [first @ .., prev, sum] if first.len() == 4 => (first, maybe(prev)?, Some(sum.parse().ok()?)),
        first if first.len() == 4 => (first, None, None),
        _ => return None,
    };
    let [run, seq, head, seal] = first else { return None };
    let seq = if *seq == "-" { None } else { Some(seq.parse::<u64>().ok().filter(|n| n.to_string() == *seq)?) };
    let body = text.rsplit_once(' ').map_or("", |(body, _)| body);
    let holds = match sum_of_line {
        Some(noted) => noted == sum(body),
        None => seq.is_some(),
    };
    let line = Line { text, run, seq, head: head.parse().ok()?, seal: maybe(seal)?, prev, sum: sum_of_line };
    (holds && !run.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor(seq: u64) -> Anchor {
        Anchor { seq, head: Digest::of(&seq.to_le_bytes()), seal: (seq % 2 == 1).then(|| Digest::of(b"s")) }
    }

    #[test]
    fn the_anchors_of_each_run_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let anchors = Anchors::in_root(dir.path());
        assert!(anchors.of_run("A").unwrap().is_empty());
        anchors.begin("A", Digest::of(b"genesis")).unwrap();
        anchors.append("A", &anchor(3)).unwrap();
        anchors.begin("B", Digest::of(b"other")).unwrap();
        anchors.append("A", &anchor(9)).unwrap();
        let found = anchors.of_run("A").unwrap();
        assert_eq!((found.genesis, &found.anchors[..]), (Some(Digest::of(b"genesis")), &[anchor(3), anchor(9)][..]));
        assert!(found.gaps.is_empty() && found.damaged.is_empty(), "{found:?}");
        assert!(anchors.append("a b", &anchor(1)).is_err());
        let copy = Anchors::at(&dir.path().join("copy"));
        fs::write(copy.path(), anchors.lines_of("A").unwrap()).unwrap();
        assert_eq!(copy.of_run("A").unwrap(), found);
        assert!(copy.of_run("B").unwrap().is_empty());
    }

    #[test]
    fn half_a_line_does_not_spoil_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let anchors = Anchors::in_root(dir.path());
        anchors.begin("A", Digest::of(b"genesis")).unwrap();
        let whole = fs::read(anchors.path()).unwrap();
        fs::write(anchors.path(), [&whole[..], b"A 3 0123"].concat()).unwrap();
        anchors.append("A", &anchor(4)).unwrap();
        let found = anchors.of_run("A").unwrap();
        assert_eq!((&found.anchors[..], &found.damaged[..]), (&[anchor(4)][..], &[2][..]));
        assert!(found.gaps.is_empty());
    }

    #[test]
    fn every_changed_bit_and_every_missing_line_shows() {
        let dir = tempfile::tempdir().unwrap();
        let anchors = Anchors::in_root(dir.path());
        anchors.begin("A", Digest::of(b"genesis")).unwrap();
        (1..4).for_each(|seq| anchors.append("A", &anchor(seq)).unwrap());
        let (whole, good) = (fs::read(anchors.path()).unwrap(), anchors.of_run("A").unwrap());
        for at in 0..whole.len() * 8 {
            let mut changed = whole.clone();
            changed[at / 8] ^= 1 << (at % 8);
            fs::write(anchors.path(), &changed).unwrap();
            let found = anchors.of_run("A").unwrap();
            assert!(!found.damaged.is_empty(), "bit {at}");
            assert!(!found.gaps.is_empty() || found.latest() != good.latest(), "bit {at}");
        }
        let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
        for gone in 0..lines.len() {
            let rest: Vec<&[u8]> = lines.iter().enumerate().filter(|(at, _)| *at != gone).map(|(_, l)| *l).collect();
            fs::write(anchors.path(), rest.concat()).unwrap();
            let found = anchors.of_run("A").unwrap();
            assert!(!found.gaps.is_empty() || found.latest() != good.latest(), "line {gone}");
        }
    }

    #[test]
    fn lines_of_older_versions_are_read_and_their_damage_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let anchors = Anchors::in_root(dir.path());
        let (head, seal) = (Digest::of(b"1"), Digest::of(b"s"));
        fs::write(anchors.path(), format!("A 3 {head} {seal}\nB 03 {head} -\nA 4 {head}\n")).unwrap();
        let found = anchors.of_run("A").unwrap();
        assert_eq!(found.anchors, [Anchor { seq: 3, head, seal: Some(seal) }]);
        assert_eq!((found.damage().unwrap().as_str(), found.gaps.len()), ("lines 2, 3 are damaged", 0));
        anchors.append("A", &anchor(7)).unwrap();
        assert!(anchors.of_run("A").unwrap().gaps.is_empty());
    }

    #[test]
    fn a_journal_is_connected_or_it_is_said_why_not() {
        let dir = tempfile::tempdir().unwrap();
        let anchors = Anchors::in_root(dir.path());
        let genesis = Digest::of(b"genesis");
        assert!(anchors.of_run("A").unwrap().connect(genesis).broken().is_some(), "never anchored");
        anchors.begin("A", genesis).unwrap();
        assert_eq!(anchors.of_run("A").unwrap().connect(genesis).broken(), None);
        assert!(anchors.of_run("A").unwrap().connect(Digest::of(b"x")).broken().is_some());
        anchors.append("A", &anchor(1)).unwrap();
        let follow = |heads: &[Digest]| {
            let mut connection = anchors.of_run("A").unwrap().connect(genesis);
            (0..).zip(heads).for_each(|(seq, head)| connection.see(seq, *head));
            connection.broken()
        };
        let (first, right) = (Digest::of(b"0"), anchor(1).head);
        assert_eq!(follow(&[first, right, first]), None);
        assert!(follow(&[first]).unwrap().contains("names event 1"));
        assert!(follow(&[first, first]).unwrap().contains("its anchor names"));
    }
}
