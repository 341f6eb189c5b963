//! One command to run, how it ended, and what it wrote.
//!
//! Not its role: running it (`process`, `supervise`).

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use super::capture::Captured;
use super::environment::{self, CALL_VAR, ENGINE_VAR, RUN_VAR};
use super::sandbox::{Confinement, Layer};
use super::step::NotReady;
use crate::model::value::tools::StopSignal;

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
    /// Exported as `NIGHTLOOP_RUN`, inherited by every descendant, found again by `sweep`.
    pub run_marker: String,
    /// Fed to the command; without it stdin is `/dev/null`.
    pub stdin: Option<Vec<u8>>,
    /// In place of our own stdin and stdout: for a program that is talked to while it runs. Nothing of its
    /// stdout is kept.
    pub wires: Option<Wires>,
    /// What it is asked to end with, before it is killed.
    pub stop_signal: StopSignal,
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
            stop_signal: StopSignal::Term,
            confinement: None,
        }
    }
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
    let number = NotReady::parts(error).1.map(Errno::from_raw_os_error)?;
    match number {
        // The same number for a thread whose stack found no room.
        Errno::AGAIN => {
            Some("no more processes or threads for this user (`ulimit -u`), or no memory for one (`ulimit -v`)")
        }
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
        environment::only_allowed(&mut command);
    }
    if let Some(confinement) = &spec.confinement {
        command.env("TMPDIR", confinement.tmp());
        command.envs(confinement.variables().iter().map(|(name, value)| (name, value)));
    }
    for (name, value) in &spec.env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(format!("the environment addition {name:?} has an impossible name or value"));
        }
        command.env(name, value);
    }
    command.env(RUN_VAR, &spec.run_marker).env(ENGINE_VAR, environment::engine_id()).env(CALL_VAR, call);
    Ok(command)
}
