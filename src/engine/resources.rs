//! What the system gives: threads, memory, descriptors, room in files.
//!
//! Role: begin with enough of it, and name it when there is none.
//! Not its role: full disks (`journal`), and what commands of agents may use (`tool::sandbox`).
//!
//! Invariants: what is exhausted is told by its name and can be tried again (exit code 75); it is no panic, and no
//! reason to call a check or a sensor missing. An allocation that fails ends the process; the journal is whole then.

use std::io;
use std::time::Duration;

use rustix::process::{Resource, Signal, getrlimit};
use tokio::signal::unix::SignalKind;

use super::error::EngineError;

/// A run with its journal, its socket, its watchers, launchers and one command with its pipes needs some sixty.
const MIN_DESCRIPTORS: u64 = 128;
/// Stacks of threads, buffers of commands, the tree of a workspace.
const MIN_MEMORY: u64 = 64 << 20;

/// Is there enough to begin with? Less would turn up later as something else.
pub fn enough() -> Result<(), EngineError> {
    if let Some(most) = getrlimit(Resource::Nofile).current.filter(|most| *most < MIN_DESCRIPTORS) {
        return Err(scarce(
            format!("a process may have only {most} open files here, and a run needs {MIN_DESCRIPTORS}"),
            "n",
        ));
    }
    let left = getrlimit(Resource::As).current.map(|most| most.saturating_sub(in_use()));
    if let Some(left) = left.filter(|left| *left < MIN_MEMORY) {
        let (left, needed) = (left >> 20, MIN_MEMORY >> 20);
        return Err(scarce(format!("this process has {left} MiB of memory left, and a run needs {needed}"), "v"));
    }
    Ok(())
}

/// Bytes of address space; 0 where the system does not tell.
fn in_use() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let size = text.lines().find_map(|line| line.strip_prefix("VmSize:"));
    size.and_then(|size| size.trim().strip_suffix(" kB")).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10
}

fn scarce(message: String, limit: &str) -> EngineError {
    EngineError::Resumable { message, hint: format!("raise it with `ulimit -{limit}`, then try again") }
}

/// A runtime for the engine: one thread, so that children are started by a thread that lives.
///
/// A second one stands by for what blocks, from the start and to the end. As long as there is one, work waits for
/// it where the system gives no more; without any, asking for one would be a panic.
pub fn runtime() -> Result<tokio::runtime::Runtime, EngineError> {
    const FOREVER: Duration = Duration::from_secs(u32::MAX as u64);
    let spare = std::thread::Builder::new().name("spare".to_owned()).spawn(|| ()).map_err(exhausted)?;
    let _ = spare.join();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_keep_alive(FOREVER)
        .build()
        .map_err(exhausted)?;
    drop(runtime.spawn_blocking(|| ()));
    let inside = runtime.enter();
    // Caught, a file that may not grow is an error like a full disk; by default it is a sudden death. A caught signal
    // is as it was in every process that we start.
    let _ = tokio::signal::unix::signal(SignalKind::from_raw(Signal::XFSZ.as_raw()));
    drop(inside);
    Ok(runtime)
}

/// No file may grow beyond a limit of the shell? Then that is an error from here on, for commands without a runtime.
pub fn heed_size_limit() {
    if getrlimit(Resource::Fsize).current.is_some() {
        // What keeps it from starting is told by whoever needs it.
        let _ = runtime();
    }
}

/// A thread, a process or a descriptor was refused.
pub(super) fn exhausted(error: io::Error) -> EngineError {
    EngineError::Resumable {
        message: format!("the system is out of threads, memory or file descriptors: {error}"),
        hint: "end other processes or raise the limits of this shell (`ulimit -a` shows them), then try again; \
               `nightloop resume` continues a run"
            .to_owned(),
    }
}
