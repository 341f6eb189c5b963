//! The file through which all runs of this user share what a model server said about its limits.
//!
//! Role: one small file per key, model and server, changed under a lock that is held for microseconds.
//! Not its role: deciding ([`crate::agent::gate`]), waiting.
//! Invariants: the key is not in the file nor in its name; a file that is broken, foreign or too large is replaced;
//! where the file cannot be used at all, a run goes on without it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::agent::RateLimits;
use crate::agent::gate::{GateAnswer, Shared};
use crate::model::digest::Digest;

/// More than any file of ours.
const MAX_FILE_BYTES: u64 = 256 * 1024;
/// A holder needs microseconds; one that was stopped in the middle must not hold everybody.
const LOCK_ATTEMPTS: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(1);

/// One request on its way through the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket(u64);

/// The gate of one key, model and server.
#[derive(Debug, Clone)]
pub struct RateGate {
    path: PathBuf,
}

impl RateGate {
    /// The gate for this key, under the state root.
    pub fn of(state_root: &Path, key: &str, model: &str, base_url: &str) -> Self {
        let fingerprint = Digest::of(key.as_bytes()).short();
        let name = Digest::of(format!("{fingerprint}\n{model}\n{base_url}").as_bytes()).short();
        Self { path: state_root.join("gates").join(format!("{name}.json")) }
    }

    /// May a request go now? `insist`: it goes whatever is known.
    pub fn ask(&self, now: u64, random: u64, insist: bool) -> (GateAnswer, Ticket) {
        let ticket = Ticket(random);
        let verdict = self.change(|shared| {
            if insist {
                shared.go(ticket.0, now);
                GateAnswer::Go
            } else {
                shared.ask(ticket.0, now, random)
            }
        });
        (verdict.unwrap_or(GateAnswer::Go), ticket)
    }

    /// What the server said with its answer.
    pub fn heard(&self, ticket: Ticket, limits: &RateLimits, now: u64) {
        self.change(|shared| shared.heard(ticket.0, limits, now));
    }

    /// The server asked to wait.
    pub fn refused(&self, ticket: Ticket, retry_after: Option<Duration>, now: u64) {
        self.change(|shared| shared.refused(ticket.0, retry_after, now));
    }

    /// The request is over.
    pub fn close(&self, ticket: Ticket) {
        self.change(|shared| shared.close(ticket.0));
    }

    /// Reads, changes and replaces the file under its lock. `None`: it cannot be used.
    fn change<T>(&self, change: impl FnOnce(&mut Shared) -> T) -> Option<T> {
        let dir = self.path.parent()?;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).ok()?;
        // A lock file of its own: the other one is replaced, not written over.
        let lock = private(&self.path.with_extension("lock"))?;
        patiently(&lock)?;
        let before = self.read();
        let mut shared = before.clone().unwrap_or_default();
        let result = change(&mut shared);
        if before.as_ref() != Some(&shared) {
            let new = self.path.with_extension("new");
            let mut file = private(&new)?;
            let text = serde_json::to_vec(&shared).ok()?;
            // A crash may lose or damage it: then everything is heard anew, so nothing is synced.
            file.set_len(0).and_then(|()| file.write_all(&text)).ok()?;
            fs::rename(&new, &self.path).ok()?;
        }
        Some(result)
    }

    fn read(&self) -> Option<Shared> {
        let mut text = Vec::new();
        File::open(&self.path).ok()?.take(MAX_FILE_BYTES).read_to_end(&mut text).ok()?;
        serde_json::from_slice::<Shared>(&text).ok().filter(Shared::is_ours)
    }
}

fn private(path: &Path) -> Option<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).ok()
}

fn patiently(lock: &File) -> Option<()> {
    for _ in 0..LOCK_ATTEMPTS {
        match lock.try_lock() {
            Ok(()) => return Some(()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(_)) => return None,
        }
    }
    None
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
