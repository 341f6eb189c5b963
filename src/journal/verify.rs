//! Checking that a run on disk is what was written.
//!
//! Role: chain, numbers, segment ends, blobs, seal and anchors, with the place of each problem.
//! Not its role: whether the events make sense (see `evidence`).
//! Invariants: changes nothing; finds every changed byte of the journal, of `genesis.json` (once
//! there is an event) and of the blobs by itself. A changed word in the seal's predicate needs an
//! anchor that names the seal: whoever can write the run could otherwise seal it anew.

use std::path::Path;

use super::anchor::{Anchor, Anchors};
use super::error::JournalError;
use super::run_dir::RunDir;
use super::scan::{Break, Scanner, Stop, Verdict};
use super::seal::{self, HEAD_SUBJECT};
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
}

/// Checks a run, against the anchors in the file `anchors` if given.
pub fn verify_chain(run: &RunDir, anchors: Option<&Path>) -> ChainReport {
    let mut problems = Vec::new();
    let anchors = anchors.map_or(Ok(Vec::new()), |path| Anchors::at(path).of(&run.name()));
    let anchors = anchors.unwrap_or_else(|error| {
        problems.push(Problem { place: "anchors.log".to_owned(), what: error.to_string() });
        Vec::new()
    });
    let mut report = walk(run, &anchors, problems);
    check_blobs(run, &mut report.problems);
    check_seal(run, anchors.last(), &mut report);
    report
}

/// The chain, and the anchors as their events pass.
fn walk(run: &RunDir, anchors: &[Anchor], problems: Vec<Problem>) -> ChainReport {
    let head = run.genesis_digest();
    let mut report = ChainReport { events: 0, head, sealed: false, problems, torn: false, torn_at: None };
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
        Ok(Verdict::Torn { bytes }) => {
            let what = format!("{bytes} bytes that are no event: {}", broken.detail);
            report.torn = true;
            report.torn_at =
                Some(Problem { place: place(run, &broken.path, Some(broken.line), Some(broken.seq)), what });
        }
        Ok(Verdict::Refused(error)) | Err(error) => report.problems.push(problem(run, &error)),
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

fn check_seal(run: &RunDir, anchor: Option<&Anchor>, report: &mut ChainReport) {
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
            return;
        }
        Err(error) => return complain(detail(&error)),
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
