//! Following a journal while it grows, at the reader's own pace.
//!
//! Role: hand over what is new since the last look. Not its role: knowing when to look.
//! Invariants: read-only, without a lock; every line is checked against the chain; a line that the
//! writer has not finished is simply not there yet.

use super::commit::Tail;
use super::error::JournalError;
use super::record::Record;
use super::run_dir::RunDir;
use super::scan::{Scanner, Stop};

/// A place in a journal.
#[derive(Debug)]
pub struct Follower {
    run: RunDir,
    tail: Tail,
}

impl Follower {
    /// From the first event on.
    pub fn new(run: &RunDir) -> Self {
        Self { run: run.clone(), tail: Tail::fresh(run.genesis_digest()) }
    }

    /// The number of the next event.
    pub fn next_seq(&self) -> u64 {
        self.tail.next_seq
    }

    /// Up to `most` events that are there now. None: nothing is new.
    pub fn take(&mut self, most: usize) -> Result<Vec<Record>, JournalError> {
        let mut records = Vec::new();
        if most == 0 || !self.run.segment_path(self.tail.segment).exists() {
            return Ok(records);
        }
        let mut scanner = Scanner::open_at(&self.run, self.tail)?;
        while records.len() < most {
            let record = match scanner.next() {
                Ok(Some(line)) => line.to_record(),
                Ok(None) => break,
                Err(Stop::Error(error)) => return Err(error),
                Err(Stop::Broken(broken)) => match broken.to_error() {
                    // The writer is in the middle of it, or died there.
                    JournalError::Torn { .. } => break,
                    error => return Err(error),
                },
            };
            records.push(record);
            self.tail = scanner.tail();
        }
        Ok(records)
    }
}
