//! Reading a journal: every record in order, each one checked.
//!
//! Role: an iterator for folds, views and exports. Not its role: repair (see `recovery`).
//! Invariants: read-only and without a lock, so it works beside a running writer and on a
//! copy; after an error it yields nothing more.

use super::error::JournalError;
use super::record::Record;
use super::run_dir::RunDir;
use super::scan::{Scanner, Stop};

/// The records of `run`. Ends in an error where the chain does not hold: `Torn` for a tail that
/// a resume would cut off (or that a live writer is still writing), `Corrupt` for anything else.
pub fn read(run: &RunDir) -> impl Iterator<Item = Result<Record, JournalError>> + use<> {
    Reader(match Scanner::open(run) {
        Ok(scanner) => State::Walking(Box::new(scanner)),
        Err(error) => State::Failed(error),
    })
}

struct Reader(State);

enum State {
    Walking(Box<Scanner>),
    Failed(JournalError),
    Done,
}

impl Iterator for Reader {
    type Item = Result<Record, JournalError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let State::Walking(scanner) = &mut self.0 {
            let error = match scanner.next() {
                Ok(Some(line)) => return Some(Ok(line.to_record())),
                Ok(None) => None,
                Err(Stop::Error(error)) => Some(error),
                Err(Stop::Broken(broken)) => Some(broken.to_error()),
            };
            self.0 = State::Done;
            return error.map(Err);
        }
        match std::mem::replace(&mut self.0, State::Done) {
            State::Failed(error) => Some(Err(error)),
            State::Walking(_) | State::Done => None,
        }
    }
}
