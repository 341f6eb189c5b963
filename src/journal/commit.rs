//! Putting a group of events on disk, all or none.
//!
//! Role: encode, write once, sync once, and answer honestly; roll segments.
//! Not its role: threads and waiting (see `writer`).
//!
//! Invariants:
//! * `tail` only ever describes synced bytes; a failed write is cut back to it.
//! * Nothing is written after a partial line: when it cannot be cut off, the journal is poisoned.
//! * A failed sync is never repeated. Linux may have dropped the pages it could not write, and
//!   a second sync would report success over the hole. The journal is poisoned instead.
//! * A full disk poisons nothing: the reserve is freed so that the next event fits.

use std::io;
use std::ops::Range;
use std::path::PathBuf;

use super::clock::Clock;
use super::error::{JournalError, is_full};
use super::failpoint::{CrashPlan, Moment};
use super::line::{self, Stamp};
use super::names;
use super::record::{Draft, MAX_DATA, MAX_KIND, Record};
use super::storage::Storage;
use crate::model::digest::Digest;

/// Closes every segment but the last. Written by the journal itself, refused from others.
pub const SEGMENT_END: &str = "segment.end";

/// Where a journal ends, which is where the next event goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    pub next_seq: u64,
    /// Hash of the last event; the digest of `genesis.json` before the first.
    pub head: Digest,
    pub segment: u32,
    /// Events in that segment so far.
    pub segment_events: u64,
    /// Bytes in that segment so far.
    pub offset: u64,
}

impl Tail {
    /// The tail of a run without events.
    pub fn fresh(genesis: Digest) -> Self {
        Self { next_seq: 0, head: genesis, segment: 1, segment_events: 0, offset: 0 }
    }
}

/// When a segment is full. The next event then goes to a new one.
#[derive(Clone, Copy, Debug)]
pub struct WriterOptions {
    pub segment_bytes: u64,
    pub segment_events: u64,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self { segment_bytes: 64 * 1024 * 1024, segment_events: 100_000 }
    }
}

/// Refuses what must not reach the disk, before it gets near it.
pub(super) fn check(draft: &Draft) -> Result<(), JournalError> {
    let kind = &draft.kind;
    let too_large = |what: String, bytes: usize, limit: usize| {
        Err(JournalError::TooLarge { what, bytes: bytes as u64, limit: limit as u64 })
    };
    if kind == SEGMENT_END {
        return Err(JournalError::invalid(format!("only the journal itself writes {SEGMENT_END} events")));
    }
    if kind.len() > MAX_KIND {
        return too_large("the kind of an event".to_owned(), kind.len(), MAX_KIND);
    }
    if draft.data.get().len() > MAX_DATA {
        return too_large(format!("the data of a {kind} event"), draft.data.get().len(), MAX_DATA);
    }
    Ok(())
}

/// Owns the end of the journal.
pub(super) struct Committer {
    storage: Box<dyn Storage>,
    clock: Box<dyn Clock>,
    options: WriterOptions,
    dir: PathBuf,
    tail: Tail,
    /// Whether `tail.segment` is the open one. False between closing one and opening the next.
    open: bool,
    poison: Option<String>,
    crash: CrashPlan,
}

impl Committer {
    /// `dir` is named in errors only; the files belong to `storage`.
    pub(super) fn start(
        storage: Box<dyn Storage>,
        dir: PathBuf,
        tail: Tail,
        clock: Box<dyn Clock>,
        options: WriterOptions,
        crash: CrashPlan,
    ) -> Result<Self, JournalError> {
        let mut committer = Self { storage, clock, options, dir, tail, open: false, poison: None, crash };
        committer.open_segment()?;
        Ok(committer)
    }

    pub(super) fn tail(&self) -> Tail {
        self.tail
    }

    /// The reason this journal takes no more events, if there is one.
    pub(super) fn poisoned(&self) -> Result<(), JournalError> {
        self.poison.as_ref().map_or(Ok(()), |detail| Err(JournalError::Poisoned { detail: detail.clone() }))
    }

    /// How many events the segment of the next commit takes.
    pub(super) fn room(&self) -> u64 {
        let left = self.options.segment_events.saturating_sub(self.tail.segment_events);
        if left == 0 { self.options.segment_events.max(1) } else { left }
    }

    /// Puts every group on disk with one write and one sync, or none of them.
    pub(super) fn commit(&mut self, groups: Vec<Vec<Draft>>) -> Result<Vec<Vec<Record>>, JournalError> {
        self.poisoned()?;
        if self.open && self.is_full() {
            self.close_segment()?;
        }
        if !self.open {
            self.open_segment()?;
        }
        let mut batch = Batch::at(&self.tail);
        let mut records = Vec::with_capacity(groups.len());
        for group in groups {
            let add = |draft| batch.add(draft, self.clock.as_ref());
            records.push(group.into_iter().map(add).collect());
        }
        self.put(batch)?;
        Ok(records)
    }

    fn is_full(&self) -> bool {
        // An empty segment is never full, or a limit of zero would roll forever.
        self.tail.segment_events > 0
            && (self.tail.segment_events >= self.options.segment_events
                || self.tail.offset >= self.options.segment_bytes)
    }

    /// Rolls lazily, with the first event that no longer fits: so the last event a caller saw
    /// acknowledged is the head, and no bookkeeping follows a run's last word.
    fn close_segment(&mut self) -> Result<(), JournalError> {
        #[derive(serde::Serialize)]
        struct End {
            count: u64,
            head: Digest,
        }
        let end = End { count: self.tail.segment_events, head: self.tail.head };
        let draft = Draft::new(None, SEGMENT_END, &end)?;
        let mut batch = Batch::at(&self.tail);
        batch.add(draft, self.clock.as_ref());
        self.put(batch)?;
        self.tail.segment += 1;
        self.tail.segment_events = 0;
        self.tail.offset = 0;
        self.open = false;
        Ok(())
    }

    fn open_segment(&mut self) -> Result<(), JournalError> {
        let length = match self.storage.open_segment(self.tail.segment) {
            Ok(length) => length,
            Err(error) => return Err(self.failed(error)),
        };
        if length != self.tail.offset {
            return Err(JournalError::Corrupt {
                path: self.path(),
                segment: Some(self.tail.segment),
                line: None,
                seq: Some(self.tail.next_seq),
                detail: format!("it has {length} bytes where {} were expected", self.tail.offset),
            });
        }
        if let Err(error) = self.storage.sync_dir() {
            return Err(self.poison(format!("fsync of {} failed: {error}", self.dir.display())));
        }
        self.open = true;
        Ok(())
    }

    fn put(&mut self, batch: Batch) -> Result<(), JournalError> {
        let seqs = self.tail.next_seq..batch.next_seq;
        self.crash.pass(Moment::BeforeWrite, seqs.clone());
        self.crash_mid_write(&batch, &seqs);
        if let Err(error) = self.write(&batch.bytes) {
            return Err(self.undo_write(error));
        }
        self.crash.pass(Moment::AfterWrite, seqs.clone());
        if let Err(error) = self.storage.sync() {
            let path = self.path();
            return Err(self.poison(format!("fdatasync of {} failed: {error}", path.display())));
        }
        self.crash.pass(Moment::AfterSync, seqs.clone());
        self.tail.offset += batch.bytes.len() as u64;
        self.tail.segment_events += seqs.end - seqs.start;
        self.tail.next_seq = batch.next_seq;
        self.tail.head = batch.head;
        Ok(())
    }

    /// One write. When the disk takes only a part, asking for the rest tells why: mostly that
    /// it is full, which the short count alone does not say.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match self.storage.write_at(&bytes[done..], self.tail.offset + done as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Removes what a failed write left, so that the next line does not follow half a line.
    fn undo_write(&mut self, error: io::Error) -> JournalError {
        if let Err(second) = self.storage.truncate(self.tail.offset) {
            let path = self.path();
            return self
                .poison(format!("a write to {} failed ({error}) and could not be undone ({second})", path.display()));
        }
        self.failed(error)
    }

    fn poison(&mut self, detail: String) -> JournalError {
        self.poison = Some(detail.clone());
        JournalError::Poisoned { detail }
    }

    /// Names an error, and makes room for the last words when it is a full disk.
    fn failed(&mut self, error: io::Error) -> JournalError {
        if is_full(&error) {
            // Best effort: without a reserve the next event may still find space.
            let _ = self.storage.release_reserve();
        }
        JournalError::io(&self.path(), error)
    }

    fn path(&self) -> PathBuf {
        self.dir.join(names::segment(self.tail.segment))
    }

    /// Writes everything up to the middle of one line, then dies.
    fn crash_mid_write(&mut self, batch: &Batch, seqs: &Range<u64>) {
        let Some(seq) = self.crash.seq_at(Moment::MidWrite).filter(|seq| seqs.contains(seq)) else { return };
        let lines = batch.bytes.split_inclusive(|byte| *byte == b'\n');
        let mut length = 0;
        for (number, line) in seqs.clone().zip(lines) {
            if number == seq {
                length += line.len() / 2;
                break;
            }
            length += line.len();
        }
        let _ = self.write(&batch.bytes[..length]);
        self.crash.crash();
    }
}

/// Lines that are about to be written.
struct Batch {
    bytes: Vec<u8>,
    next_seq: u64,
    head: Digest,
}

impl Batch {
    fn at(tail: &Tail) -> Self {
        Self { bytes: Vec::new(), next_seq: tail.next_seq, head: tail.head }
    }

    fn add(&mut self, draft: Draft, clock: &dyn Clock) -> Record {
        let stamp = Stamp { ts: clock.wall(), mono_ms: clock.mono_ms(), boot: clock.boot_id() };
        let record = line::encode(&mut self.bytes, self.next_seq, stamp, draft, self.head);
        self.next_seq += 1;
        self.head = record.hash;
        record
    }
}
