//! Runs one command to its end, whatever the command does.
//!
//! Used for the bash tool, for acceptance checks and for residual commands. It does not decide
//! whether a command may run (`permission`) nor what it may touch (`sandbox`).
//!
//! Each command has a thread of ours for as long as it lives, which starts it, feeds it, reads
//! it and ends it. A thread, not a task, because the kernel's "kill the child when its parent
//! dies" is tied to the *thread* that forked, and because a future may be dropped half-way:
//! dropping the one from [`run`] cancels the command just as the token does.
//!
//! Invariants:
//! * [`run`] returns: after the command's end, its timeout (plus 2 s of grace), or a cancel; an
//!   inherited pipe delays it by 2 s at most;
//! * when it has returned, no process of the call's session, and none that carries its marker,
//!   is alive;
//! * memory is bounded by `keep_bytes` per stream; the count and digest cover everything read;
//! * the child's environment is the allow-list, the additions, the two markers, and a private
//!   TMPDIR where the command is confined.

use std::time::Instant;

use tokio_util::sync::CancellationToken;

pub use super::access::Access;
pub use super::capture::Captured;
pub use super::command::{CommandSpec, End, KEEP_BYTES, ProcessOutcome, Wires, exhausted};
pub use super::environment::{RUN_VAR, is_passed_on};
use super::supervise;
pub use super::sweep::{Marker, become_subreaper, survivors, sweep};

/// Runs a command to its end. Never fails: what went wrong is in [`ProcessOutcome::end`].
pub async fn run(spec: CommandSpec, cancel: &CancellationToken) -> ProcessOutcome {
    if cancel.is_cancelled() {
        return ProcessOutcome::without_output(End::Cancelled);
    }
    let started = Instant::now();
    // Closing this end, by cancel or by dropping the future, tells the supervisor to stop.
    let (stopped, stop) = match std::io::pipe() {
        Ok(ends) => ends,
        Err(error) => {
            return ProcessOutcome::without_output(End::failed("cannot make a pipe", &error));
        }
    };
    let (report, mut outcome) = tokio::sync::oneshot::channel();
    let supervise = move || {
        // A receiver that is gone means the future was dropped; there is nobody to tell.
        let _ = report.send(supervise::supervise(spec, stopped));
    };
    let thread = std::thread::Builder::new().name("command".to_owned()).spawn(supervise);
    if let Err(error) = thread {
        return ProcessOutcome::without_output(End::failed("cannot start a thread", &error));
    }
    let received = tokio::select! {
        biased;
        received = &mut outcome => received,
        () = cancel.cancelled() => {
            drop(stop);
            outcome.await
        }
    };
    let mut outcome = received.unwrap_or_else(|_| {
        ProcessOutcome::without_output(End::NotStarted("the supervising thread ended without a report".to_owned()))
    });
    outcome.millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    outcome
}

#[cfg(test)]
mod tests;
