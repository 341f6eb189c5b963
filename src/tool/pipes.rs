//! Feeds and reads the pipes of one command, until something happens.
//!
//! One loop over `poll`, no tokio. Knows nothing of how a command was started or is ended: `supervise` does.
//!
//! Invariants: memory is bounded by what is kept of each stream; every wait has a deadline; a command that does not
//! read its input never blocks us.

use std::fs::File;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

use super::capture::Capture;
use super::sweep;

/// How often the leader is looked at where nothing announces its end.
const GLANCE: Duration = Duration::from_millis(20);
/// How often the processes of a command are counted.
const LOOK: Duration = Duration::from_millis(50);
/// How many processes a command may have at once; threads do not count here.
const MAX_AT_ONCE: u64 = 1_000;

/// Something whose end is waited for.
pub(super) trait Ending {
    /// Becomes readable at the end; without one we look now and then.
    fn handle(&self) -> Option<BorrowedFd<'_>>;
    fn happened(&self) -> bool;
}

/// Why [`Pipes::pump`] returned.
pub(super) enum Wake {
    /// The leader ended; or, with no leader to watch, both streams did.
    Ended,
    Deadline,
    Stopped,
    /// There are more processes than a command may start.
    Crowded,
}

/// Counts the processes of a command now and then. The kernel's own limit does not hold the superuser, and
/// counts what other programs of the same user start.
pub(super) struct Crowd {
    leader: u32,
    since: u64,
    /// How many there were on the whole machine: as long as there are not many more, nobody need count.
    before: u64,
    next: Instant,
}

impl Crowd {
    pub(super) fn of(leader: u32, since: u64) -> Self {
        Self { leader, since, before: sweep::running(), next: Instant::now() + LOOK }
    }

    fn is_too_large(&mut self) -> bool {
        if Instant::now() < self.next {
            return false;
        }
        self.next = Instant::now() + LOOK;
        sweep::running() > self.before + MAX_AT_ONCE && sweep::count(self.leader, self.since) as u64 > MAX_AT_ONCE
    }
}

/// One output stream: its pipe while open, and what is kept of it.
pub(super) struct Stream {
    pipe: Option<File>,
    pub(super) kept: Capture,
}

impl Stream {
    fn new(pipe: Option<OwnedFd>, keep: usize) -> Self {
        Self { pipe: pipe.map(File::from), kept: Capture::new(keep) }
    }

    /// Reads once; called only when there is something to read, so it does not block.
    fn read(&mut self, buffer: &mut [u8]) {
        let Some(pipe) = &mut self.pipe else { return };
        match pipe.read(buffer) {
            Ok(0) => self.pipe = None,
            Ok(count) => self.kept.push(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.pipe = None,
        }
    }
}

/// Our ends of a command's pipes, as far as there are any.
#[derive(Default)]
pub(super) struct Ends {
    pub stdin: Option<OwnedFd>,
    pub stdout: Option<OwnedFd>,
    pub stderr: Option<OwnedFd>,
}

pub(super) struct Pipes<'a> {
    stdin: Option<File>,
    unwritten: &'a [u8],
    pub(super) stdout: Stream,
    pub(super) stderr: Stream,
    buffer: Vec<u8>,
}

impl<'a> Pipes<'a> {
    /// `input` is fed; `keep` bytes are kept of each stream.
    pub(super) fn new(ends: Ends, input: &'a [u8], keep: usize) -> Self {
        if let Some(pipe) = &ends.stdin {
            // A command that does not read its input must not block us in a write.
            let _ = rustix::io::ioctl_fionbio(pipe, true);
        }
        Self {
            stdin: ends.stdin.map(File::from),
            unwritten: input,
            stdout: Stream::new(ends.stdout, keep),
            stderr: Stream::new(ends.stderr, keep),
            buffer: vec![0; 64 * 1024],
        }
    }

    /// Nothing more is fed.
    pub(super) fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Moves bytes until something happens.
    pub(super) fn pump(&mut self, exit: Option<&dyn Ending>, stop: Option<&PipeReader>, deadline: Instant) -> Wake {
        self.pump_watching(exit, stop, deadline, None)
    }

    /// The same, with an eye on the number of processes.
    pub(super) fn pump_watching(
        &mut self,
        exit: Option<&dyn Ending>,
        stop: Option<&PipeReader>,
        deadline: Instant,
        mut crowd: Option<Crowd>,
    ) -> Wake {
        loop {
            if crowd.as_mut().is_some_and(Crowd::is_too_large) {
                return Wake::Crowded;
            }
            match exit {
                Some(exit) if exit.happened() => return Wake::Ended,
                None if self.stdout.pipe.is_none() && self.stderr.pipe.is_none() => {
                    return Wake::Ended;
                }
                _ => {}
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Wake::Deadline;
            }
            let handle = exit.and_then(Ending::handle);
            let wait = if exit.is_some() && handle.is_none() { left.min(GLANCE) } else { left };
            let wait = if crowd.is_some() { wait.min(LOOK) } else { wait };
            let ready = self.poll(handle, stop.map(AsFd::as_fd), wait);
            if ready.stop {
                return Wake::Stopped;
            }
            if ready.stdout {
                self.stdout.read(&mut self.buffer);
            }
            if ready.stderr {
                self.stderr.read(&mut self.buffer);
            }
            if ready.stdin {
                self.feed();
            }
        }
    }

    fn poll(&self, exit: Option<BorrowedFd<'_>>, stop: Option<BorrowedFd<'_>>, wait: Duration) -> Ready {
        if self.stdin.is_some() && self.unwritten.is_empty() {
            return Ready { stdin: true, ..Ready::default() };
        }
        let stdin = self.stdin.as_ref().map(AsFd::as_fd);
        let stdout = self.stdout.pipe.as_ref().map(AsFd::as_fd);
        let stderr = self.stderr.pipe.as_ref().map(AsFd::as_fd);
        let sources = [
            (stop, PollFlags::IN),
            (stdout, PollFlags::IN),
            (stderr, PollFlags::IN),
            (stdin, PollFlags::OUT),
            (exit, PollFlags::IN),
        ];
        let open = || sources.iter().enumerate().filter_map(|(at, (fd, want))| Some((at, (*fd)?, *want)));
        let mut polled: Vec<PollFd<'_>> = open().map(|(_, fd, want)| PollFd::from_borrowed_fd(fd, want)).collect();
        let mut ready = [false; 5];
        match rustix::event::poll(&mut polled, Some(&timespec(wait))) {
            Ok(_) => {
                for ((at, ..), fd) in open().zip(&polled) {
                    ready[at] = !fd.revents().is_empty();
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            // Cannot happen with valid handles; if it does, do not spin.
            Err(_) => std::thread::sleep(GLANCE.min(wait)),
        }
        let [stop, stdout, stderr, stdin, _] = ready;
        Ready { stop, stdout, stderr, stdin }
    }

    /// Writes what fits; closes stdin at the end, or when the command no longer wants it.
    fn feed(&mut self) {
        let Some(pipe) = &mut self.stdin else { return };
        if self.unwritten.is_empty() {
            self.stdin = None;
            return;
        }
        match pipe.write(self.unwritten) {
            Ok(count) => self.unwritten = &self.unwritten[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.stdin = None,
        }
    }
}

#[derive(Default)]
struct Ready {
    stop: bool,
    stdout: bool,
    stderr: bool,
    stdin: bool,
}

fn timespec(wait: Duration) -> Timespec {
    Timespec { tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX), tv_nsec: i64::from(wait.subsec_nanos()) }
}

/// Is there something to read, or the end of it, within this time?
pub(super) fn is_readable(handle: BorrowedFd<'_>, within: Duration) -> bool {
    let deadline = Instant::now() + within;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut polled = [PollFd::from_borrowed_fd(handle, PollFlags::IN)];
        match rustix::event::poll(&mut polled, Some(&timespec(left))) {
            Err(rustix::io::Errno::INTR) if !left.is_zero() => {}
            Ok(count) => return count > 0,
            Err(_) => return false,
        }
    }
}
