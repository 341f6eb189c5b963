//! `anchors.log`: journal heads noted outside the run.
//!
//! Role: make a cut or rewritten journal visible. A chain proves that nothing inside it was
//! changed; it cannot prove that its end is still there. A head noted elsewhere can.
//! Not its role: judging (see `verify`).
//! Invariants: lines are only ever added; one line is one write, so runs that share the file
//! do not mix their lines; a line that does not parse is skipped, for a crash can leave half of one.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use super::atomic;
use super::error::{JournalError, at};
use crate::model::digest::Digest;

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

    /// Notes an anchor of `run`. Durable when it returns.
    pub fn append(&self, run: &str, anchor: &Anchor) -> Result<(), JournalError> {
        if run.is_empty() || run.contains(char::is_whitespace) {
            return Err(JournalError::invalid(format!("`{run}` cannot name a run in {}", self.path.display())));
        }
        let seal = anchor.seal.map_or_else(|| "-".to_owned(), |seal| seal.to_string());
        let line = format!("{run} {} {} {seal}\n", anchor.seq, anchor.head);
        self.append_line(&line).map_err(at(&self.path))
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

    /// The newest anchor of `run`.
    pub fn latest(&self, run: &str) -> Result<Option<Anchor>, JournalError> {
        Ok(self.of(run)?.pop())
    }

    /// Every anchor of `run`, oldest first. None when there is no such file.
    pub fn of(&self, run: &str) -> Result<Vec<Anchor>, JournalError> {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(JournalError::io(&self.path, error)),
        };
        let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
        Ok(lines.filter_map(parse).filter(|(name, _)| *name == run).map(|(_, anchor)| anchor).collect())
    }
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

fn parse(line: &str) -> Option<(&str, Anchor)> {
    let mut words = line.split(' ');
    let run = words.next()?;
    let seq = words.next()?.parse().ok()?;
    let head = words.next()?.parse().ok()?;
    let seal = match words.next()? {
        "-" => None,
        digest => Some(digest.parse().ok()?),
    };
    words.next().is_none().then_some((run, Anchor { seq, head, seal }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_of_each_run_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let anchors = Anchors::in_root(dir.path());
        assert_eq!(anchors.latest("A").unwrap(), None);
        let one = Anchor { seq: 3, head: Digest::of(b"1"), seal: None };
        let two = Anchor { seq: 9, head: Digest::of(b"2"), seal: Some(Digest::of(b"s")) };
        anchors.append("A", &one).unwrap();
        anchors.append("B", &one).unwrap();
        anchors.append("A", &two).unwrap();
        assert_eq!(anchors.latest("A").unwrap(), Some(two));
        assert_eq!(anchors.latest("B").unwrap(), Some(one));
        assert_eq!(anchors.of("A").unwrap(), [one, two]);
        assert!(anchors.append("a b", &one).is_err());
    }

    #[test]
    fn half_a_line_does_not_spoil_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let anchors = Anchors::in_root(dir.path());
        fs::write(anchors.path(), "A 3 0123").unwrap();
        let anchor = Anchor { seq: 4, head: Digest::of(b"1"), seal: None };
        anchors.append("A", &anchor).unwrap();
        assert_eq!(anchors.of("A").unwrap(), [anchor]);
    }
}
