//! The thread behind one command: starts it, feeds and reads its pipes, ends it, cleans up.
//!
//! The public face is `process`. A command is started by a launcher where there is one, which also ends what it
//! leaves; else by ourselves, and the killing beyond the process group is `sweep`.
//!
//! Invariants: a leader that we started is waited for only after its group and escapees are dead, so that its
//! pid cannot pass to a stranger while we still send signals to it; every wait has a deadline.

use std::collections::BTreeSet;
use std::io::{self, PipeReader};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::command::{self, CommandSpec, End, ProcessOutcome};
use super::environment;
#[cfg(target_os = "linux")]
use super::launcher::{Call, Pool, Request, Status};
use super::owned;
use super::pipes::{Crowd, Ending, Ends, Pipes, Wake};
use super::sandbox::Layer;
use super::spawn::{self, OnParentDeath};
use super::step;
use super::sweep;
use crate::model::value::tools::StopSignal;

/// Between TERM and KILL.
const GRACE: Duration = Duration::from_secs(2);
/// For pipes that somebody still holds open when the command is over.
const DRAIN: Duration = Duration::from_secs(2);
/// What the record says when there were too many.
const CROWDED: &str = "[nightloop ended it: more than 1000 processes at once]\n";

/// Runs the command until it is over and nothing of it is left. `stop` closing means: cancel.
pub(super) fn supervise(mut spec: CommandSpec, stop: PipeReader) -> ProcessOutcome {
    let call = environment::new_call_id();
    let confinement = spec.confinement.clone();
    #[cfg(target_os = "linux")]
    if let Some(pool) = confinement.as_ref().and_then(|worn| worn.pool()) {
        return supervise_launched(spec, pool, &call, &stop);
    }
    let _here = sweep::Presence::new();
    let mut child = match start(&mut spec, &call) {
        Ok(child) => child,
        Err(end) => return ProcessOutcome::without_output(end),
    };
    let leader = child.id();
    let since = sweep::start_time(leader);
    let ends = Ends {
        stdin: child.stdin.take().map(OwnedFd::from),
        stdout: child.stdout.take().map(OwnedFd::from),
        stderr: child.stderr.take().map(OwnedFd::from),
    };
    let mut pipes = Pipes::new(ends, spec.stdin.as_deref().unwrap_or_default(), spec.keep_bytes);
    let exit = Exit::of(leader);

    let crowd = confinement.as_ref().filter(|worn| !worn.lacks(Layer::Limits)).map(|_| Crowd::of(leader, since));
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
        signal_group(leader, farewell(spec.stop_signal));
        // What it writes while it shuts down is still read: a full pipe must not hold it up.
        pipes.pump(Some(&exit), None, after(GRACE));
        seen.extend(sweep::descendants(leader));
    }
    if confinement.is_some_and(|worn| worn.lacks(Layer::Sweep)) {
        // Only for tests of the tests: as if nobody cleaned up.
        let status = child.wait().ok();
        owned::disown(leader);
        let end = stopped.unwrap_or_else(|| End::Exited(status.and_then(|status| status.code()).unwrap_or(-1)));
        return ProcessOutcome::without_output(end);
    }
    signal_group(leader, Signal::KILL);
    // The signal is on its way; a leader in an uninterruptible wait is given up, not waited for.
    pipes.pump(Some(&exit), None, after(GRACE));
    sweep::end_call(&call, leader, since, &seen);
    drop(rush);
    let status = if exit.happened() { child.wait().ok() } else { child.try_wait().ok().flatten() };
    owned::disown(leader);
    pipes.close_input();
    pipes.pump(None, None, after(DRAIN));

    let end = stopped.unwrap_or_else(|| match status {
        Some(status) => status.code().map_or(End::Signaled(status.signal().unwrap_or(0)), End::Exited),
        None => End::Signaled(Signal::KILL.as_raw()),
    });
    ProcessOutcome { end, stdout: pipes.stdout.kept.finish(), stderr: pipes.stderr.kept.finish(), millis: 0 }
}

/// The same for a command that a launcher starts, and ends with all that it left.
#[cfg(target_os = "linux")]
fn supervise_launched(mut spec: CommandSpec, pool: &Pool, call: &str, stop: &PipeReader) -> ProcessOutcome {
    let (running, ends) = match start_launched(&mut spec, pool, call) {
        Ok(started) => started,
        Err(end) => return ProcessOutcome::without_output(end),
    };
    let mut pipes = Pipes::new(ends, spec.stdin.as_deref().unwrap_or_default(), spec.keep_bytes);
    let limited = spec.confinement.as_ref().is_some_and(|worn| !worn.lacks(Layer::Limits));
    let crowd = limited.then(|| running.root()).map(|(pid, since)| Crowd::of(pid, since));
    let mut rush = None;
    let stopped = match pipes.pump_watching(Some(&running), Some(stop), after(spec.timeout), crowd) {
        Wake::Ended => None,
        Wake::Deadline => Some(End::TimedOut),
        Wake::Stopped => Some(End::Cancelled),
        Wake::Crowded => {
            running.kill();
            rush = Some(sweep::Rush::begin());
            pipes.stderr.kept.push(CROWDED.as_bytes());
            Some(End::Signaled(Signal::KILL.as_raw()))
        }
    };
    if stopped.is_some() {
        running.signal(farewell(spec.stop_signal));
        // What it writes while it shuts down is still read: a full pipe must not hold it up.
        pipes.pump(Some(&running), None, after(GRACE));
        running.signal(Signal::KILL);
        pipes.pump(Some(&running), None, after(GRACE));
    }
    let status = running.finish();
    drop(rush);
    pipes.close_input();
    pipes.pump(None, None, after(DRAIN));
    let end = stopped.unwrap_or(match status {
        Some(Status::Exited(code)) => End::Exited(code),
        Some(Status::Signaled(signal)) => End::Signaled(signal),
        None => End::Signaled(Signal::KILL.as_raw()),
    });
    ProcessOutcome { end, stdout: pipes.stdout.kept.finish(), stderr: pipes.stderr.kept.finish(), millis: 0 }
}

/// Starts the command, and gives our ends of its pipes.
#[cfg(target_os = "linux")]
fn start_launched<'a>(spec: &mut CommandSpec, pool: &'a Pool, call: &str) -> Result<(Call<'a>, Ends), End> {
    let wires = spec.wires.take();
    patiently(spec, |spec| {
        let command = command::build(spec, call).map_err(|why| Refused::Before(End::NotStarted(why)))?;
        let launch = || -> io::Result<(Call<'a>, Ends)> {
            let request = Request::of(&command);
            let (stderr, to_stderr) = io::pipe()?;
            let mut ends = Ends { stderr: Some(stderr.into()), ..Ends::default() };
            let (stdin, stdout): (OwnedFd, OwnedFd);
            let files = if let Some(wires) = &wires {
                [wires.stdin.as_fd(), wires.stdout.as_fd(), to_stderr.as_fd()]
            } else {
                stdin = if spec.stdin.is_some() {
                    let (from, to) = io::pipe()?;
                    ends.stdin = Some(to.into());
                    from.into()
                } else {
                    std::fs::File::open("/dev/null")?.into()
                };
                let (from, to) = io::pipe()?;
                ends.stdout = Some(from.into());
                stdout = to.into();
                [stdin.as_fd(), stdout.as_fd(), to_stderr.as_fd()]
            };
            Ok((pool.run(&request, files)?, ends))
        };
        launch().map_err(Refused::Then)
    })
}

/// Starts the command ourselves.
fn start(spec: &mut CommandSpec, call: &str) -> Result<Child, End> {
    patiently(spec, |spec| {
        let mut command = command::build(spec, call).map_err(|why| Refused::Before(End::NotStarted(why)))?;
        let stdin = if spec.stdin.is_some() { Stdio::piped() } else { Stdio::null() };
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Taken, not copied: our copy would keep the pipes open after the command's end. So there is one try only.
        let wires = spec.wires.take();
        let has_wires = wires.is_some();
        if let Some(wires) = wires {
            command.stdin(wires.stdin).stdout(wires.stdout);
        }
        let worn = spec.confinement.as_ref().map(|confinement| confinement.worn()).transpose();
        worn.and_then(|worn| spawn::spawn(command, OnParentDeath::Kill, worn))
            .map_err(|error| if has_wires { Refused::Before(why_not(spec, &error)) } else { Refused::Then(error) })
    })
}

/// Why a command did not start.
enum Refused {
    /// Trying again is of no use.
    Before(End),
    Then(io::Error),
}

/// Some failures pass by themselves, and must not count against the work: a machine that has no process or memory to
/// spare for a moment, and a folder that a mount protects and that goes between two steps of putting it up (the kernel
/// then calls the second step invalid). Such a start is tried again, a few times.
fn patiently<T>(
    spec: &mut CommandSpec,
    mut start: impl FnMut(&mut CommandSpec) -> Result<T, Refused>,
) -> Result<T, End> {
    const TRIES: u32 = 5;
    const FIRST_PAUSE: Duration = Duration::from_millis(5);
    let mut tries = 0;
    loop {
        tries += 1;
        match start(spec) {
            Ok(started) => return Ok(started),
            Err(Refused::Before(end)) => return Err(end),
            Err(Refused::Then(error)) => {
                if tries >= TRIES || !may_pass(&error, spec.confinement.is_some()) {
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
        io::ErrorKind::InvalidInput => is_confined && step::was_not_ready(error),
        _ => false,
    }
}

/// A start error, in words that tell what to do.
fn why_not(spec: &CommandSpec, error: &io::Error) -> End {
    let program = spec.argv.first().map_or("", String::as_str);
    if command::exhausted(error).is_some() {
        return End::failed(&format!("cannot start {program:?}"), error);
    }
    let hint = match error.kind() {
        _ if step::was_not_ready(error) => "the sandbox could not be put up around it",
        io::ErrorKind::NotFound => "is it installed, and in PATH?",
        io::ErrorKind::PermissionDenied => "is it executable?",
        io::ErrorKind::ArgumentListTooLong => "the command is too long; put it in a file and run that",
        _ => "the system refused to start it",
    };
    End::NotStarted(format!("cannot start {program:?}: {error}; {hint}"))
}

/// A timeout too long to add to the clock is as good as a year.
fn after(wait: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(wait).unwrap_or(now + Duration::from_secs(31_536_000))
}

const fn farewell(signal: StopSignal) -> Signal {
    match signal {
        StopSignal::Term => Signal::TERM,
        StopSignal::Int => Signal::INT,
        StopSignal::Quit => Signal::QUIT,
        StopSignal::Hup => Signal::HUP,
    }
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
}

impl Ending for Exit {
    fn handle(&self) -> Option<BorrowedFd<'_>> {
        self.handle.as_ref().map(AsFd::as_fd)
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
