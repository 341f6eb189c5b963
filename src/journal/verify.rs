//! Checking that a run on disk is what was written.
//!
//! Role: chain, numbers, segment ends, blobs, seal, signature and anchors, with the place of each
//! problem. Not its role: whether the events make sense (see `evidence`).
//! Invariants: changes nothing; finds every changed byte of the journal, of `genesis.json` (once
//! there is an event) and of the blobs by itself. A changed word in the seal's predicate needs a
//! signature, or an anchor that names the seal: whoever can write the run could otherwise seal it
//! anew. What contradicts is a problem; what is merely not there is incomplete.

use std::path::Path;

use super::anchor::{Anchor, Anchored, Anchors};
use super::error::JournalError;
use super::names;
use super::run_dir::RunDir;
use super::scan::{Break, Damage, Scanner, Stop};
use super::seal::{self, HEAD_SUBJECT, Seal};
use super::signature;
use super::ssh::PublicKey;
use crate::model::digest::Digest;

/// One thing that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// File, and line and number of the event where there is one.
    pub place: String,
    pub what: String,
}

/// What [`verify_chain`] found.
#[derive(Clone, Debug)]
pub struct ChainReport {
    /// Events up to the first problem in the journal.
    pub events: u64,
    /// Hash of the last of them.
    pub head: Digest,
    /// Whether there is a seal that can be read.
    pub sealed: bool,
    pub problems: Vec<Problem>,
    /// Whether the journal ends in a torn write. By itself that is an interrupted run and no
    /// problem; in a sealed or anchored part of the journal it is one too.
    pub torn: bool,
    /// Where it is torn.
    pub torn_at: Option<Problem>,
    /// What should be there and is not, or cannot be read any more, without contradicting anything.
    pub incomplete: Vec<Problem>,
    /// Damage in `anchors.log` that is none of this run's.
    pub notes: Vec<String>,
    /// Whether the newest anchor names this head and this seal, and none before it is missing.
    pub anchored: bool,
    /// Whose signature of the seal holds.
    pub signer: Option<PublicKey>,
}

const ANCHORS: &str = "anchors.log";

/// Checks a run, against the anchors in the file `anchors` if given.
pub fn verify_chain(run: &RunDir, anchors: Option<&Path>) -> ChainReport {
    let mut problems = Vec::new();
    let anchored = anchors.map(|path| {
        Anchors::at(path).of_run(&run.name()).unwrap_or_else(|error| {
            problems.push(Problem { place: ANCHORS.to_owned(), what: error.to_string() });
            Anchored::default()
        })
    });
    let known = anchored.clone().unwrap_or_default();
    if known.genesis.is_some_and(|genesis| genesis != run.genesis_digest()) {
        let what = "it is not the one that the run's first anchor names".to_owned();
        problems.push(Problem { place: "genesis.json".to_owned(), what });
    }
    let mut report = walk(run, &known.anchors, problems);
    check_blobs(run, &mut report.problems);
    let seal = check_seal(run, known.latest(), &mut report);
    check_signature(run, seal.as_ref(), &mut report);
    if let Some(anchored) = anchored {
        check_anchors(&anchored, seal.as_ref(), &mut report);
    }
    report
}

/// Are all anchors there that there must have been?
fn check_anchors(anchored: &Anchored, seal: Option<&Seal>, report: &mut ChainReport) {
    let damage = anchored.damage();
    let also = damage.as_ref().map_or_else(String::new, |damage| format!(" ({damage})"));
    let mut missing = |place: String, what: String| {
        report.incomplete.push(Problem { place, what: format!("{what}{also}") });
    };
    let sealed_by_it = |anchor: &&Anchor| anchor.seal.is_some() && anchor.seal == seal.map(|seal| seal.digest);
    if anchored.is_empty() {
        missing(ANCHORS.to_owned(), "it has no anchor of this run: the run is unanchored".to_owned());
    } else if !anchored.gaps.is_empty() {
        for (line, why) in &anchored.gaps {
            missing(format!("{ANCHORS} line {line}"), why.clone());
        }
    } else if seal.is_some() && anchored.latest().filter(sealed_by_it).is_none() {
        missing(ANCHORS.to_owned(), "no anchor of this run names its seal".to_owned());
    } else if let Some(damage) = damage {
        // The anchors of this run hang together from the first to the seal: it is somebody else's.
        report.notes.push(format!("{ANCHORS}: {damage}; the anchors of this run are consistent"));
        report.anchored = seal.is_some();
    } else {
        report.anchored = seal.is_some();
    }
}

/// Whose signature it is, where there is one.
fn check_signature(run: &RunDir, seal: Option<&Seal>, report: &mut ChainReport) {
    let problem = |what: String| Problem { place: names::SIGNATURE.to_owned(), what };
    let envelope = match signature::read_envelope(run) {
        Ok(envelope) => envelope,
        Err(error) => return report.problems.push(problem(detail(&error))),
    };
    let named = seal.and_then(Seal::signer);
    match (seal, envelope) {
        (Some(_), None) => {
            let missing = named.map(|key| format!("it is missing: the seal should be signed by {key}"));
            report.incomplete.extend(missing.map(problem));
        }
        (Some(seal), Some(envelope)) => match envelope.check(&seal.bytes) {
            Ok(()) if named.is_none_or(|named| named == envelope.key.fingerprint()) => {
                report.signer = Some(envelope.key);
            }
            Ok(()) => {
                let (by, named) = (envelope.key.fingerprint(), named.unwrap_or_default());
                report.problems.push(problem(format!("it is signed by {by}, the seal names {named}")));
            }
            Err(what) => report.problems.push(problem(what)),
        },
        (None, Some(_)) => report.problems.push(problem("there is no seal that it could sign".to_owned())),
        (None, None) => {}
    }
}

/// The chain, and the anchors as their events pass.
fn walk(run: &RunDir, anchors: &[Anchor], problems: Vec<Problem>) -> ChainReport {
    let head = run.genesis_digest();
    let mut report = ChainReport {
        events: 0,
        head,
        sealed: false,
        problems,
        torn: false,
        torn_at: None,
        incomplete: Vec::new(),
        notes: Vec::new(),
        anchored: false,
        signer: None,
    };
    let mut due: Vec<&Anchor> = anchors.iter().collect();
    due.sort_by_key(|anchor| anchor.seq);
    let mut due = due.into_iter().peekable();
    let mut scanner = match Scanner::open(run) {
        Ok(scanner) => scanner,
        Err(error) => {
            report.problems.push(problem(run, &error));
            return report;
        }
    };
    loop {
        match scanner.next() {
            Ok(Some(line)) => {
                report.events = line.seq + 1;
                report.head = line.hash;
                while let Some(anchor) = due.next_if(|anchor| anchor.seq == line.seq) {
                    if anchor.head != line.hash {
                        report.problems.push(Problem {
                            place: format!("journal (seq {})", line.seq),
                            what: format!("the event is {}, the anchor names {}", line.hash, anchor.head),
                        });
                    }
                }
            }
            Ok(None) => break,
            Err(Stop::Error(error)) => {
                report.problems.push(problem(run, &error));
                break;
            }
            Err(Stop::Broken(broken)) => {
                note_break(run, &broken, &mut report);
                break;
            }
        }
    }
    if let Some(anchor) = due.last() {
        report.problems.push(Problem {
            place: report.torn_at.as_ref().map_or_else(|| "journal".to_owned(), |torn| torn.place.clone()),
            what: format!("it holds {} events, an anchor names seq {}: its end is missing", report.events, anchor.seq),
        });
    }
    report
}

fn note_break(run: &RunDir, broken: &Break, report: &mut ChainReport) {
    if broken.blames_genesis {
        report.problems.push(Problem { place: "genesis.json".to_owned(), what: broken.detail.clone() });
        return;
    }
    match broken.judge() {
        Ok(Damage::Torn { bytes }) => {
            let what = format!("{bytes} bytes that are not an event: {}", broken.detail);
            report.torn = true;
            report.torn_at =
                Some(Problem { place: place(run, &broken.path, Some(broken.line), Some(broken.seq)), what });
        }
        Ok(Damage::Refused(error)) | Err(error) => report.problems.push(problem(run, &error)),
    }
}

fn check_blobs(run: &RunDir, problems: &mut Vec<Problem>) {
    let blobs = run.blobs();
    let entries = match blobs.entries() {
        Ok(entries) => entries,
        Err(error) => return problems.push(problem(run, &error)),
    };
    for (path, digest) in entries {
        match digest.map(|digest| blobs.get(&digest)) {
            Some(Ok(_)) => {}
            Some(Err(error)) => problems.push(problem(run, &error)),
            None => {
                let what = "its name is not that of a blob".to_owned();
                problems.push(Problem { place: place(run, &path, None, None), what });
            }
        }
    }
}

fn check_seal(run: &RunDir, anchor: Option<&Anchor>, report: &mut ChainReport) -> Option<Seal> {
    // An anchor of an older head names an older seal, which a resume has set aside.
    let anchored = anchor.filter(|anchor| anchor.seq + 1 >= report.events).and_then(|anchor| anchor.seal);
    let mut complain = |what: String| report.problems.push(Problem { place: "seal.json".to_owned(), what });
    let seal = match seal::read_seal(run) {
        Ok(Some(seal)) => seal,
        Ok(None) => {
            // A resume that died before its first event has set the seal aside already.
            let aside = run.path().join(format!("seal-{}.json", report.events));
            let kept = std::fs::read(aside).ok().map(|bytes| Digest::of(&bytes));
            if let Some(digest) = anchored.filter(|digest| kept != Some(*digest)) {
                complain(format!("it is missing, an anchor names the seal {digest}"));
            }
            return None;
        }
        Err(error) => {
            complain(detail(&error));
            return None;
        }
    };
    if let Some(digest) = anchored.filter(|digest| *digest != seal.digest) {
        complain(format!("its digest is {}, an anchor names {digest}", seal.digest));
    }
    match seal.head() {
        None => complain(format!("it has no subject {HEAD_SUBJECT}")),
        Some(head) if head != report.head => {
            complain(format!("it vouches for the head {head}, the journal ends in {}", report.head));
        }
        Some(_) => {}
    }
    report.sealed = true;
    // A run is sealed after its last event was acknowledged, so nothing can be torn behind it.
    report.problems.extend(report.torn_at.clone());
    Some(seal)
}

fn problem(run: &RunDir, error: &JournalError) -> Problem {
    let place = match error {
        JournalError::Corrupt { path, line, seq, .. } => place(run, path, *line, *seq),
        JournalError::NewerVersion { path, line, seq, .. } => place(run, path, Some(*line), Some(*seq)),
        JournalError::Io { path, .. } | JournalError::NotFound { path } => place(run, path, None, None),
        _ => "run".to_owned(),
    };
    Problem { place, what: detail(error) }
}

fn detail(error: &JournalError) -> String {
    match error {
        JournalError::Corrupt { detail, .. } => detail.clone(),
        error => error.to_string(),
    }
}

fn place(run: &RunDir, path: &Path, line: Option<u64>, seq: Option<u64>) -> String {
    let mut place = path.strip_prefix(run.path()).unwrap_or(path).display().to_string();
    if let Some(line) = line {
        place.push_str(&format!(" line {line}"));
    }
    if let Some(seq) = seq {
        place.push_str(&format!(" (seq {seq})"));
    }
    place
}
