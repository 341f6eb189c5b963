//! Starts a child in its own session.
//!
//! Beside `kernel` the only place in the crate with `unsafe`: `pre_exec` has no safe form. It does not watch or end the
//! child; `process` and `reaper` do, nor decide what the child wears; `sandbox` does.
//!
//! Invariants:
//! * a child started here leads its own session and group, dumps no core, and dies with the
//!   thread that started it unless asked not to;
//! * its pid is in the owned set from before anyone can see it exit.

#![allow(unsafe_code)]

use std::ffi::CString;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::Arc;

#[cfg(target_os = "linux")]
use super::kernel;
use super::owned;
use super::sandbox::worn::Worn;
use super::step::{LaunchStep, NotReady};

/// What happens to the child when the thread that started it ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OnParentDeath {
    Kill,
    /// For the reaper, whose work begins when the engine dies.
    Live,
}

/// Starts `command` in a new session, wearing `worn`, and records it as owned.
pub(super) fn spawn(mut command: Command, on_death: OnParentDeath, worn: Option<Arc<Worn>>) -> io::Result<Child> {
    let parent = rustix::process::getpid();
    let folder = match command.get_current_dir() {
        Some(path) => Some(CString::new(path.as_os_str().as_bytes())?),
        None => None,
    };
    // A child that fails says with one byte what it was about; exec closes the pipe without a word.
    let (mut tell, told) = io::pipe()?;
    let get_ready = move || {
        LaunchStep::Session.begin();
        rustix::process::setsid()?;
        let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        rustix::process::setrlimit(rustix::process::Resource::Core, none)?;
        #[cfg(target_os = "linux")]
        kernel::keep_files();
        if let Some(worn) = &worn {
            worn.enter(folder.as_deref())?;
        }
        LaunchStep::Parent.begin();
        #[cfg(target_os = "linux")]
        if on_death == OnParentDeath::Kill {
            let kill = rustix::process::Signal::KILL;
            rustix::process::set_parent_process_death_signal(Some(kill))?;
            // The parent may have died before the line above: then nobody will ever signal us.
            if rustix::process::getppid() != Some(parent) {
                return Err(io::Error::from(rustix::io::Errno::SRCH));
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (parent, on_death);
        if let Some(worn) = &worn {
            worn.wear()?;
        }
        LaunchStep::Program.begin();
        Ok(())
    };
    let prepare = move || {
        let ready: io::Result<()> = get_ready();
        if ready.is_err() {
            let _ = rustix::io::write(&told, &[LaunchStep::latest()]);
        }
        ready
    };
    // SAFETY: `prepare` runs in the forked child of a process with several threads, where only
    // async-signal-safe work is sound. It makes direct system calls on values it captured, all made
    // ready before the fork; it allocates nothing, takes no lock and does not panic. `enter` and
    // `wear` hold to the same (their header says so). The errors it may return are plain OS codes.
    unsafe { command.pre_exec(prepare) };
    let mut owned = owned::pids();
    let spawned = command.spawn();
    // Our end of the pipe goes with the command, so that reading ends.
    drop(command);
    let child = spawned.map_err(|error| explain(error, &mut tell))?;
    owned.insert(child.id());
    Ok(child)
}

/// Adds what the child was about, unless it was the program itself.
fn explain(error: io::Error, tell: &mut io::PipeReader) -> io::Error {
    let mut byte = [0];
    let said = tell.read(&mut byte).unwrap_or(0) == 1;
    NotReady::at(if said { byte[0] } else { 0 }, error)
}
