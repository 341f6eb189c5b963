//! What must be undone on this process's terminal, known to whoever has to undo it: the guard, a panic, the
//! thread that waits for signals.
//!
//! Invariant: it is undone once, by whoever comes first; a frame is never written behind that, nor into it.

use std::io::{self, Write};
use std::panic::PanicHookInfo;
use std::sync::{Mutex, MutexGuard, Once, PoisonError, TryLockError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{self, OptionalActions, Termios};

use crate::model::safe::Safe;

struct Taken {
    found: Termios,
    leave: String,
}

static TAKEN: Mutex<Option<Taken>> = Mutex::new(None);

/// A terminal that takes no byte for this long is not waited for when everything ends.
const PATIENCE: Duration = Duration::from_millis(250);

fn taken() -> MutexGuard<'static, Option<Taken>> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn remember(found: Termios, leave: &str) {
    install_hook();
    *taken() = Some(Taken { found, leave: leave.to_owned() });
}

pub fn amend(leave: &str) {
    if let Some(taken) = taken().as_mut() {
        leave.clone_into(&mut taken.leave);
    }
}

pub fn forget() {
    *taken() = None;
}

/// The mode of before; from here on there is nothing to undo.
pub fn take_back() -> Option<Termios> {
    taken().take().map(|taken| taken.found)
}

pub fn is_taken() -> bool {
    taken().is_some()
}

/// Writes a frame. Whoever restores waits for its end.
pub fn write_while_taken(bytes: &[u8]) -> io::Result<()> {
    let guard = taken();
    if guard.is_none() {
        return Err(io::Error::other("the terminal was given back"));
    }
    write_all(bytes, None)
}

/// Gives the terminal back at once: leaves the screen and resets its mode. For a thread that waits for signals,
/// and for a panic. Says whether there was anything to give back.
pub fn restore_now() -> bool {
    // The lock is held while a frame is written. A terminal that is stuck in the middle of one would hold it
    // for ever; then it is restored all the same.
    let step = Duration::from_millis(5);
    for _ in 0..PATIENCE.as_millis() / step.as_millis() {
        match TAKEN.try_lock() {
            Ok(mut guard) => return guard.take().map(|taken| undo(&taken)).is_some(),
            Err(TryLockError::Poisoned(poisoned)) => {
                return poisoned.into_inner().take().map(|taken| undo(&taken)).is_some();
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(step),
        }
    }
    let _ = write_all(super::words::LEAVE.as_bytes(), Some(PATIENCE));
    let _ = crossterm::terminal::disable_raw_mode();
    true
}

fn undo(taken: &Taken) {
    let _ = write_all(taken.leave.as_bytes(), Some(PATIENCE));
    // The library keeps its own account of the mode.
    let _ = crossterm::terminal::disable_raw_mode();
    let _ = termios::tcsetattr(io::stdout(), OptionalActions::Now, &taken.found);
}

/// Straight to the terminal, past every other buffer. `patience`: give up when no byte goes for so long.
fn write_all(mut bytes: &[u8], patience: Option<Duration>) -> io::Result<()> {
    let out = io::stdout();
    while !bytes.is_empty() {
        if let Some(patience) = patience {
            wait_writable(&out, Some(patience))?;
        }
        match rustix::io::write(&out, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait_writable(&out, patience)?,
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

fn wait_writable(out: &io::Stdout, patience: Option<Duration>) -> io::Result<()> {
    let timeout = patience.and_then(|patience| Timespec::try_from(patience).ok());
    let mut fds = [PollFd::new(out, PollFlags::OUT)];
    match poll(&mut fds, timeout.as_ref()) {
        Ok(0) => Err(io::ErrorKind::TimedOut.into()),
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// A panic first gives the terminal back, then says what happened.
fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if restore_now() {
                let _ = io::stderr().write_all(report(info).as_bytes());
            } else {
                before(info);
            }
        }));
    });
}

/// What a panic says, harmless: its message may quote foreign text.
pub fn report(info: &PanicHookInfo<'_>) -> String {
    let place = info.location().map(|at| format!("{}:{}", at.file(), at.line())).unwrap_or_default();
    let backtrace = std::backtrace::Backtrace::capture();
    let backtrace = match backtrace.status() {
        std::backtrace::BacktraceStatus::Captured => backtrace.to_string(),
        _ => String::new(),
    };
    describe(info.payload_as_str().unwrap_or("no message"), &place, &backtrace)
}

fn describe(message: &str, place: &str, backtrace: &str) -> String {
    let mut out = format!("nightloop: internal error at {}\n", Safe::line(place));
    for line in Safe::lines_capped(message, 20).iter().chain(&Safe::lines_capped(backtrace, 200)) {
        out.push_str("  ");
        out.push_str(line.as_str());
        out.push('\n');
    }
    out.push_str("  What the run did so far is in its journal: see `nightloop status`.\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_quotes_nothing_that_acts() {
        let text = describe("bad reply: \u{1b}]52;c;AAAA\u{7}\u{1b}[2J\nsecond \u{202e}line", "src/x.rs:3", "");
        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            [
                "nightloop: internal error at src/x.rs:3",
                "  bad reply: ",
                "  second ⟨U+202E⟩line",
                "  What the run did so far is in its journal: see `nightloop status`.",
            ]
        );
    }

    #[test]
    fn without_a_taken_terminal_there_is_nothing_to_give_back_and_nowhere_to_write() {
        assert!(!restore_now());
        assert!(write_while_taken(b"frame").is_err());
        assert!(take_back().is_none());
    }
}
