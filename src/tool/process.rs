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

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

pub use super::capture::Captured;
use super::sandbox::{Confinement, Layer};
use super::supervise;
use super::sweep::{CALL_VAR, ENGINE_VAR};
pub use super::sweep::{Marker, RUN_VAR, become_subreaper, survivors, sweep};

/// What is kept of each stream unless said otherwise.
pub const KEEP_BYTES: usize = 1024 * 1024;

/// A command's own ends of two pipes whose other ends somebody else reads and writes.
#[derive(Debug)]
pub struct Wires {
    pub stdin: OwnedFd,
    pub stdout: OwnedFd,
}

/// One command to run.
#[derive(Debug)]
pub struct CommandSpec {
    pub argv: Vec<String>,
    pub cwd: PathBuf,
    /// Additions to the allow-list.
    pub env: Vec<(String, String)>,
    pub timeout: Duration,
    /// What is kept of each stream: head and tail together.
    pub keep_bytes: usize,
    /// Exported as `NIGHTLOOP_RUN`, inherited by every descendant, found again by [`sweep`].
    pub run_marker: String,
    /// Fed to the command; without it stdin is `/dev/null`.
    pub stdin: Option<Vec<u8>>,
    /// In place of our own stdin and stdout: for a program that is talked to while it runs. Nothing of its
    /// stdout is kept.
    pub wires: Option<Wires>,
    /// What the command wears; `None`: nothing, it runs with our own rights.
    pub confinement: Option<Arc<Confinement>>,
}

impl CommandSpec {
    /// A command with the usual limits: ten minutes, 1 MiB per stream, no stdin.
    pub fn new(argv: Vec<String>, cwd: impl Into<PathBuf>, run_marker: impl Into<String>) -> Self {
        Self {
            argv,
            cwd: cwd.into(),
            env: Vec::new(),
            timeout: Duration::from_secs(600),
            keep_bytes: KEEP_BYTES,
            run_marker: run_marker.into(),
            stdin: None,
            wires: None,
            confinement: None,
        }
    }
}

/// Whether something may change the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    ReadOnly,
    ReadWrite,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    Exited(i32),
    Signaled(i32),
    TimedOut,
    Cancelled,
    /// Why, with a hint.
    NotStarted(String),
    /// Not started either, but for want of processes, memory or open files: which says nothing about the command.
    Exhausted(String),
}

impl End {
    /// Something that a command needs could not be had.
    pub(super) fn failed(what: &str, error: &std::io::Error) -> Self {
        match exhausted(error) {
            Some(resource) => Self::Exhausted(format!("{what}: {error}; {resource}")),
            None => Self::NotStarted(format!("{what}: {error}")),
        }
    }
}

/// Which resource ran out, if that is what an error says.
pub fn exhausted(error: &std::io::Error) -> Option<&'static str> {
    use rustix::io::Errno;
    let number = super::spawn::NotReady::parts(error).1.map(Errno::from_raw_os_error)?;
    match number {
        Errno::AGAIN => Some("there are no more processes or threads for this user (`ulimit -u`)"),
        Errno::NOMEM => Some("there is no more memory"),
        Errno::MFILE => Some("this process has too many open files (`ulimit -n`)"),
        Errno::NFILE => Some("the machine has too many open files"),
        _ => None,
    }
}

/// A command's end and what it wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessOutcome {
    pub end: End,
    pub stdout: Captured,
    pub stderr: Captured,
    pub millis: u64,
}

impl ProcessOutcome {
    /// Nothing was written, or nothing ran.
    pub fn without_output(end: End) -> Self {
        Self { end, stdout: Captured::empty(), stderr: Captured::empty(), millis: 0 }
    }
}

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
    let mut outcome =
        received.unwrap_or_else(|_| not_started("the supervising thread ended without a report".to_owned()));
    outcome.millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    outcome
}

fn not_started(why: String) -> ProcessOutcome {
    ProcessOutcome::without_output(End::NotStarted(why))
}

/// The environment variables a child may inherit, besides `LC_*`. Everything else, API keys
/// above all, stays with us.
const INHERITED: [&str; 8] = ["PATH", "HOME", "LANG", "TERM", "TZ", "USER", "SHELL", "TMPDIR"];

/// Does a child see this variable of ours?
pub fn is_passed_on(name: &str) -> bool {
    INHERITED.contains(&name) || name.starts_with("LC_")
}

/// Clears a command's environment down to the allow-list.
pub(super) fn only_allowed_env(command: &mut Command) {
    command.env_clear();
    for (name, value) in std::env::vars_os() {
        if name.to_str().is_some_and(is_passed_on) {
            command.env(name, value);
        }
    }
    // Without a terminal, a password prompt would only wait for the timeout.
    command.env("GIT_TERMINAL_PROMPT", "0");
}

/// Builds the command without its open files, or says why it cannot be started.
pub(super) fn build(spec: &CommandSpec, call: &str) -> Result<Command, String> {
    let Some((program, arguments)) = spec.argv.split_first() else {
        return Err("the command is empty; name a program".to_owned());
    };
    if spec.argv.iter().any(|word| word.contains('\0')) {
        return Err(format!("cannot start {program:?}: a NUL byte cannot be passed to a program"));
    }
    if !spec.cwd.is_dir() {
        return Err(format!("the working directory {} does not exist or is not a directory", spec.cwd.display()));
    }
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&spec.cwd);
    if !spec.confinement.as_ref().is_some_and(|confinement| confinement.lacks(Layer::Environment)) {
        only_allowed_env(&mut command);
    }
    if let Some(confinement) = &spec.confinement {
        command.env("TMPDIR", confinement.tmp());
    }
    for (name, value) in &spec.env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(format!("the environment addition {name:?} has an impossible name or value"));
        }
        command.env(name, value);
    }
    command.env(RUN_VAR, &spec.run_marker).env(ENGINE_VAR, engine_id()).env(CALL_VAR, call);
    Ok(command)
}

/// A name no other engine on this machine has, nor this run's engine before or after us.
pub(super) fn engine_id() -> &'static str {
    static OURS: std::sync::LazyLock<String> = std::sync::LazyLock::new(new_call_id);
    &OURS
}

/// A name no other call on this machine has: our pid alone may be reused, so the time is in it.
pub(super) fn new_call_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = now.map_or(0, |since| since.as_nanos());
    format!("{}-{nanos}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests;
