//! Walking a journal from its first byte, checking every link.
//!
//! Role: the one place that decides whether a line belongs to the chain, and whether damage is
//! a torn tail or corruption. Reader, recovery and verifier all ask here, so they cannot disagree.
//! Not its role: changing anything.
//!
//! # Torn or corrupt
//!
//! A write that was cut short leaves, after the last whole line, a part of the new lines, or
//! zeros or garbage in place of blocks that never arrived. It can leave no complete line with
//! a wrong hash: to change a line and keep its spelling takes someone who knows the format, or
//! a bit that flipped after the write. So, from the first bad byte to the end of the file:
//!
//! * in the last segment, and not one newline-ended line in it parses: **torn**. No
//!   acknowledged event is lost, because an acknowledged line had reached the disk whole.
//! * a line that parses (right hash or not, in this place or another), or an older segment:
//!   **corrupt**. Cutting there could throw away acknowledged events, so nobody cuts.
//!
//! The rule errs on the side of refusing. One honest case is refused too: a power cut during a
//! group commit that kept a later block and lost an earlier one.
//!
//! Invariant: constant memory, whatever the length of the journal.

use std::path::PathBuf;

use super::commit::{SEGMENT_END, Tail};
use super::error::{JournalError, at};
use super::line::{self, Line, Malformed, VERSION};
use super::lines::Lines;
use super::run_dir::RunDir;
use crate::model::digest::Digest;

/// Walks the lines of a run.
pub(super) struct Scanner {
    run: RunDir,
    segments: Vec<u32>,
    /// Which of `segments` is being read.
    index: usize,
    lines: Lines,
    line: u64,
    /// Whether the current segment's end mark was read.
    ended: bool,
    tail: Tail,
}

/// The first place where the chain does not hold.
#[derive(Debug)]
pub(super) struct Break {
    pub path: PathBuf,
    pub segment: u32,
    pub line: u64,
    pub seq: u64,
    pub offset: u64,
    pub detail: String,
    /// Whether older segments hold it: then it cannot be a torn tail.
    old: bool,
    /// The length of a last line without an end. Nothing followed it when it was read; what follows by the
    /// time of a second look was written meanwhile, by a writer that is alive.
    unfinished: Option<u64>,
    newer: Option<u64>,
    /// Whether the line is whole in itself and only `genesis.json` contradicts it.
    pub blames_genesis: bool,
}

/// Why a walk stopped early.
pub(super) enum Stop {
    Broken(Box<Break>),
    Error(JournalError),
}

impl From<JournalError> for Stop {
    fn from(error: JournalError) -> Self {
        Self::Error(error)
    }
}

/// What the damage means.
pub(super) enum Damage {
    /// `bytes` at the end of the last segment can be cut off.
    Torn {
        bytes: u64,
    },
    Refused(JournalError),
}

impl Scanner {
    pub(super) fn open(run: &RunDir) -> Result<Self, JournalError> {
        Self::open_at(run, Tail::fresh(run.genesis_digest()))
    }

    /// Goes on where an earlier walk ended.
    pub(super) fn open_at(run: &RunDir, tail: Tail) -> Result<Self, JournalError> {
        let segments = run.segments()?;
        let gap = segments.iter().zip(1u32..).find(|(found, expected)| **found != *expected);
        let missing = match (segments.is_empty(), gap) {
            (true, _) => Some(1),
            (false, gap) => gap.map(|(_, expected)| expected),
        };
        if let Some(number) = missing {
            return Err(JournalError::Corrupt {
                path: run.segment_path(number),
                segment: Some(number),
                line: None,
                seq: None,
                detail: "this segment is missing".to_owned(),
            });
        }
        let path = run.segment_path(tail.segment);
        let lines = Lines::open(&path, tail.offset).map_err(at(&path))?;
        // Segments count from one.
        let index = usize::try_from(tail.segment.saturating_sub(1)).unwrap_or(usize::MAX);
        Ok(Self { run: run.clone(), segments, index, lines, line: tail.segment_events, ended: false, tail })
    }

    /// Where the checked part ends. After the last line: where the next event goes.
    pub(super) fn tail(&self) -> Tail {
        if self.ended {
            // Closed, and the writer did not get to open the next one.
            return Tail { segment: self.tail.segment + 1, segment_events: 0, offset: 0, ..self.tail };
        }
        self.tail
    }

    /// Checks the next line and hands it over; `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<Line<'_>>, Stop> {
        // Split in two because a borrowed line must not keep the loop from moving on.
        while self.at_segment_end()? {
            if self.index + 1 == self.segments.len() {
                return Ok(None);
            }
            self.enter_next_segment()?;
        }
        self.check_line().map(Some)
    }

    fn at_segment_end(&mut self) -> Result<bool, Stop> {
        // Runs once per line, so the path is made only for an error.
        let result = self.lines.at_end();
        result.map_err(|error| JournalError::io(&self.run.segment_path(self.tail.segment), error).into())
    }

    fn enter_next_segment(&mut self) -> Result<(), Stop> {
        if !self.ended {
            self.line += 1;
            return Err(self.broken(format!("the segment does not end in a {SEGMENT_END} event")));
        }
        self.index += 1;
        self.tail = self.tail();
        self.ended = false;
        self.line = 0;
        let path = self.run.segment_path(self.tail.segment);
        self.lines = Lines::open(&path, 0).map_err(at(&path))?;
        Ok(())
    }

    fn check_line(&mut self) -> Result<Line<'_>, Stop> {
        self.line += 1;
        let place =
            Place { run: &self.run, tail: self.tail, line: self.line, old: self.index + 1 < self.segments.len() };
        let raw = match self.lines.next() {
            Ok(Some(raw)) => raw,
            Ok(None) => return Err(place.broken("the line vanished while it was read")),
            Err(error) => return Err(JournalError::io(&place.path(), error).into()),
        };
        if raw.too_long {
            return Err(place.broken("the line is longer than any nightloop writes"));
        }
        if !raw.ended {
            return Err(place.unfinished(raw.length));
        }
        let line = match line::parse(raw.bytes) {
            Ok(line) => line,
            Err(Malformed::Not(detail)) => return Err(place.broken(detail)),
            Err(Malformed::Newer(found)) => return Err(place.newer(found)),
        };
        if self.ended {
            return Err(place.broken(format!("an event follows the {SEGMENT_END} event")));
        }
        check_link(&place, &line)?;
        if line.kind == SEGMENT_END {
            check_end(&place, &line)?;
            self.ended = true;
        }
        self.tail.next_seq += 1;
        self.tail.head = line.hash;
        self.tail.segment_events += 1;
        self.tail.offset += raw.bytes.len() as u64 + 1;
        Ok(line)
    }

    fn broken(&self, detail: String) -> Stop {
        let old = self.index + 1 < self.segments.len();
        Place { run: &self.run, tail: self.tail, line: self.line, old }.broken(detail)
    }
}

/// Does this line follow the one before?
fn check_link(place: &Place<'_>, line: &Line<'_>) -> Result<(), Stop> {
    let Tail { next_seq, head, .. } = place.tail;
    let expected = line::hash(&head, line.body);
    if line.seq == next_seq && line.prev == head && line.hash == expected {
        return Ok(());
    }
    if line.hash != line::hash(&line.prev, line.body) {
        return Err(place.broken(format!("the line was changed: its hash is not {}", line.hash)));
    }
    if line.seq != next_seq {
        return Err(place.broken(format!("the line has the number {}", line.seq)));
    }
    if next_seq == 0 {
        return Err(place.blame_genesis(line.prev));
    }
    Err(place.broken(format!("the line follows {}, the line before it is {head}", line.prev)))
}

fn check_end(place: &Place<'_>, line: &Line<'_>) -> Result<(), Stop> {
    #[derive(serde::Deserialize)]
    struct End {
        count: u64,
        head: Digest,
    }
    let right = serde_json::from_str::<End>(line.data.get())
        .is_ok_and(|end| end.count == place.tail.segment_events && end.head == place.tail.head);
    if right { Ok(()) } else { Err(place.broken("count or head of the segment's end is wrong")) }
}

/// The line being looked at, for messages.
struct Place<'a> {
    run: &'a RunDir,
    tail: Tail,
    line: u64,
    old: bool,
}

impl Place<'_> {
    fn path(&self) -> PathBuf {
        self.run.segment_path(self.tail.segment)
    }

    fn at(&self, detail: String) -> Break {
        Break {
            path: self.path(),
            segment: self.tail.segment,
            line: self.line,
            seq: self.tail.next_seq,
            offset: self.tail.offset,
            detail,
            old: self.old,
            newer: None,
            unfinished: None,
            blames_genesis: false,
        }
    }

    fn unfinished(&self, bytes: u64) -> Stop {
        let detail = "the line does not end in a newline".to_owned();
        Stop::Broken(Box::new(Break { unfinished: Some(bytes), ..self.at(detail) }))
    }

    fn broken(&self, detail: impl Into<String>) -> Stop {
        Stop::Broken(Box::new(self.at(detail.into())))
    }

    fn newer(&self, found: u64) -> Stop {
        let detail = format!("the line has format {found}");
        Stop::Broken(Box::new(Break { newer: Some(found), ..self.at(detail) }))
    }

    fn blame_genesis(&self, prev: Digest) -> Stop {
        let detail = format!("the first event follows a genesis.json with the digest {prev}, not this one");
        Stop::Broken(Box::new(Break { blames_genesis: true, ..self.at(detail) }))
    }
}

impl Break {
    /// Decides by the rule in this file's header.
    pub(super) fn judge(&self) -> Result<Damage, JournalError> {
        if let Some(found) = self.newer {
            return Ok(Damage::Refused(JournalError::NewerVersion {
                path: self.path.clone(),
                segment: self.segment,
                line: self.line,
                seq: self.seq,
                found,
                known: VERSION,
            }));
        }
        if self.old {
            return Ok(Damage::Refused(self.corrupt()));
        }
        if let Some(bytes) = self.unfinished {
            return Ok(Damage::Torn { bytes });
        }
        let mut lines = Lines::open(&self.path, self.offset).map_err(at(&self.path))?;
        let mut bytes = 0;
        while let Some(raw) = lines.next().map_err(at(&self.path))? {
            // A line of a newer format was whole when it was written, like one of ours.
            if raw.ended && !matches!(line::parse(raw.bytes), Err(Malformed::Not(_))) {
                return Ok(Damage::Refused(self.corrupt()));
            }
            bytes += raw.length;
        }
        Ok(Damage::Torn { bytes })
    }

    /// The error of a reader that may not repair.
    pub(super) fn to_error(&self) -> JournalError {
        match self.judge() {
            Ok(Damage::Refused(error)) | Err(error) => error,
            Ok(Damage::Torn { bytes }) => JournalError::Torn {
                path: self.path.clone(),
                segment: self.segment,
                line: self.line,
                seq: self.seq,
                offset: self.offset,
                bytes,
                detail: self.detail.clone(),
            },
        }
    }

    fn corrupt(&self) -> JournalError {
        JournalError::Corrupt {
            path: self.path.clone(),
            segment: Some(self.segment),
            line: Some(self.line),
            seq: Some(self.seq),
            detail: self.detail.clone(),
        }
    }
}
