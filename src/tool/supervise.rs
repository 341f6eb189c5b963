//! The thread behind one command: starts it, feeds and reads its pipes, ends it, cleans up.
//!
//! One loop over `poll`, no tokio. The public face is `process`; the killing beyond the process
//! group is `sweep`.
//!
//! Invariants: the leader is waited for only after its group and escapees are dead, so that its
//! pid cannot pass to a stranger while we still send signals to it; every wait has a deadline.

use std::collections::BTreeSet;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::capture::Capture;
use super::process::{self, CommandSpec, End, ProcessOutcome};
use super::sandbox::Layer;
use super::spawn::{self, OnParentDeath};
use super::sweep;

/// Between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);
/// For pipes that somebody still holds open when the command is over.
const DRAIN: Duration = Duration::from_secs(2);
/// How often the leader is looked at where no pidfd can announce its end.
const GLANCE: Duration = Duration::from_millis(20);
/// How often the processes of a command are counted.
const LOOK: Duration = Duration::from_millis(50);
/// How many processes a command may have at once; threads do not count here.
const MAX_AT_ONCE: u64 = 1_000;
/// What the record says when there were too many.
const CROWDED: &str = "[nightloop ended it: more than 1000 processes at once]\n";

/// Runs the command until it is over and nothing of it is left. `stop` closing means: cancel.
pub(super) fn supervise(mut spec: CommandSpec, stop: PipeReader) -> ProcessOutcome {
    let call = process::new_call_id();
    let _here = sweep::Presence::new();
    let mut child = match start(&mut spec, &call) {
        Ok(child) => child,
        Err(why) => return ProcessOutcome::without_output(End::NotStarted(why)),
    };
    let leader = child.id();
    let since = sweep::start_time(leader);
    let mut pipes = Pipes::new(&mut child, &spec);
    let exit = Exit::of(leader);

    let crowd = spec.confinement.as_ref().filter(|worn| !worn.lacks(Layer::Limits)).map(|_| Crowd::of(leader, since));
    let mut rush = None;
    let stopped = match pipes.pump_watching(Some(&exit), Some(&stop), after(spec.timeout), crowd) {
        Wake::Ended => None,
        Wake::Deadline => Some(End::TimedOut),
        Wake::Stopped => Some(End::Cancelled),
        Wake::Crowded => {
            signal_group(leader, Signal::KILL);
            rush = Some(sweep::Rush::begin());
            pipes.stderr.kept.push(CROWDED.as_bytes());
            Some(End::Signaled(Signal::KILL.as_raw()))
        }
    };
    let mut seen = BTreeSet::new();
    if stopped.is_some() {
        // Some may have left the session and dropped the marker; their parents still name them.
        seen.extend(sweep::descendants(leader));
        signal_group(leader, Signal::TERM);
        // What it writes while it shuts down is still read: a full pipe must not hold it up.
        pipes.pump(Some(&exit), None, after(GRACE));
        seen.extend(sweep::descendants(leader));
    }
    if spec.confinement.as_ref().is_some_and(|worn| worn.lacks(Layer::Sweep)) {
        // Only for tests of the tests: as if nobody cleaned up.
        let status = child.wait().ok();
        spawn::disown(leader);
        let end = stopped.unwrap_or_else(|| End::Exited(status.and_then(|status| status.code()).unwrap_or(-1)));
        return ProcessOutcome::without_output(end);
    }
    signal_group(leader, Signal::KILL);
    // The signal is on its way; a leader in an uninterruptible wait is given up, not waited for.
    pipes.pump(Some(&exit), None, after(GRACE));
    sweep::end_call(&call, leader, since, &seen);
    drop(rush);
    let status = if exit.happened() { child.wait().ok() } else { child.try_wait().ok().flatten() };
    spawn::disown(leader);
    pipes.stdin = None;
    pipes.pump(None, None, after(DRAIN));

    let end = stopped.unwrap_or_else(|| match status {
        Some(status) => status.code().map_or(End::Signaled(status.signal().unwrap_or(0)), End::Exited),
        None => End::Signaled(Signal::KILL.as_raw()),
    });
    ProcessOutcome { end, stdout: pipes.stdout.kept.finish(), stderr: pipes.stderr.kept.finish(), millis: 0 }
}

/// Starts the command. Some failures pass by themselves, and must not count against the work: a machine that has no
/// process or memory to spare for a moment, and a folder that a mount protects and that goes between two steps of
/// putting it up (the kernel then calls the second step invalid). Such a start is tried again, a few times.
fn start(spec: &mut CommandSpec, call: &str) -> Result<Child, String> {
    const TRIES: u32 = 5;
    const FIRST_PAUSE: Duration = Duration::from_millis(5);
    let mut tries = 0;
    loop {
        tries += 1;
        let has_wires = spec.wires.is_some();
        let command = process::build(spec, call)?;
        match spawn::spawn(command, OnParentDeath::Kill, spec.confinement.clone()) {
            Ok(child) => return Ok(child),
            Err(error) => {
                // Wires are handed over with the first try.
                if has_wires || tries >= TRIES || !may_pass(&error, spec.confinement.is_some()) {
                    return Err(why_not(spec, &error));
                }
                // 5, 20, 80 and 320 ms.
                std::thread::sleep(FIRST_PAUSE * 4_u32.pow(tries - 1));
            }
        }
    }
}

/// Could the same start work a moment later?
fn may_pass(error: &io::Error, is_confined: bool) -> bool {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory | io::ErrorKind::Interrupted => true,
        io::ErrorKind::InvalidInput => is_confined && spawn::was_not_ready(error),
        _ => false,
    }
}

/// A start error, in words that tell what to do.
fn why_not(spec: &CommandSpec, error: &io::Error) -> String {
    let program = spec.argv.first().map_or("", String::as_str);
    let hint = match error.kind() {
        _ if spawn::was_not_ready(error) => "the sandbox could not be put up around it",
        io::ErrorKind::NotFound => "is it installed, and in PATH?",
        io::ErrorKind::PermissionDenied => "is it executable?",
        io::ErrorKind::ArgumentListTooLong => "the command is too long; put it in a file and run that",
        io::ErrorKind::InvalidInput => "a NUL byte cannot be passed to a program",
        _ => "the system refused to start it",
    };
    format!("cannot start {program:?}: {error}; {hint}")
}

/// A timeout too long to add to the clock is as good as a year.
fn after(wait: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(wait).unwrap_or(now + Duration::from_secs(31_536_000))
}

fn signal_group(leader: u32, signal: Signal) {
    if let Some(pid) = to_pid(leader) {
        // An error means that nobody is left in the group, which is what we want.
        let _ = rustix::process::kill_process_group(pid, signal);
    }
}

fn to_pid(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// Knows whether the leader has ended, without taking its exit status.
struct Exit {
    pid: Option<Pid>,
    handle: Option<OwnedFd>,
}

impl Exit {
    fn of(leader: u32) -> Self {
        let pid = to_pid(leader);
        #[cfg(target_os = "linux")]
        let handle = pid.and_then(|pid| rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok());
        #[cfg(not(target_os = "linux"))]
        let handle = None;
        Self { pid, handle }
    }

    fn happened(&self) -> bool {
        let Some(pid) = self.pid else { return true };
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match rustix::process::waitid(WaitId::Pid(pid), look) {
            Ok(status) => status.is_some(),
            Err(rustix::io::Errno::INTR) => false,
            // No such child: nothing to wait for.
            Err(_) => true,
        }
    }
}

/// Why [`Pipes::pump`] returned.
enum Wake {
    /// The leader ended; or, with no leader to watch, both streams did.
    Ended,
    Deadline,
    Stopped,
    /// There are more processes than a command may start.
    Crowded,
}

/// Counts the processes of a command now and then. The kernel's own limit does not hold the superuser, and
/// counts what other programs of the same user start.
struct Crowd {
    leader: u32,
    since: u64,
    /// How many there were on the whole machine: as long as there are not many more, nobody need count.
    before: u64,
    next: Instant,
}

impl Crowd {
    fn of(leader: u32, since: u64) -> Self {
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
struct Stream<R> {
    pipe: Option<R>,
    kept: Capture,
}

impl<R: Read> Stream<R> {
    fn new(pipe: Option<R>, keep: usize) -> Self {
        Self { pipe, kept: Capture::new(keep) }
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

struct Pipes<'a> {
    stdin: Option<ChildStdin>,
    unwritten: &'a [u8],
    stdout: Stream<std::process::ChildStdout>,
    stderr: Stream<std::process::ChildStderr>,
    buffer: Vec<u8>,
}

impl<'a> Pipes<'a> {
    fn new(child: &mut Child, spec: &'a CommandSpec) -> Self {
        let stdin = child.stdin.take();
        if let Some(pipe) = &stdin {
            // A command that does not read its input must not block us in a write.
            let _ = rustix::io::ioctl_fionbio(pipe, true);
        }
        Self {
            stdin,
            unwritten: spec.stdin.as_deref().unwrap_or_default(),
            stdout: Stream::new(child.stdout.take(), spec.keep_bytes),
            stderr: Stream::new(child.stderr.take(), spec.keep_bytes),
            buffer: vec![0; 64 * 1024],
        }
    }

    /// Moves bytes until something happens.
    fn pump(&mut self, exit: Option<&Exit>, stop: Option<&PipeReader>, deadline: Instant) -> Wake {
        self.pump_watching(exit, stop, deadline, None)
    }

    /// The same, with an eye on the number of processes.
    fn pump_watching(
        &mut self,
        exit: Option<&Exit>,
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
            let handle = exit.and_then(|exit| exit.handle.as_ref());
            let wait = if exit.is_some() && handle.is_none() { left.min(GLANCE) } else { left };
            let wait = if crowd.is_some() { wait.min(LOOK) } else { wait };
            let ready = self.poll(handle.map(AsFd::as_fd), stop.map(AsFd::as_fd), wait);
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
        let timeout = Timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(wait.subsec_nanos()),
        };
        let mut ready = [false; 5];
        match rustix::event::poll(&mut polled, Some(&timeout)) {
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
