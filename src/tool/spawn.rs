//! Starts a child in its own session, and remembers which children have a waiter.
//!
//! This is the only place in the crate with `unsafe`: `pre_exec` has no safe form. It does not
//! watch or end the child; `process` and `reaper` do.
//!
//! Invariants:
//! * a child started here leads its own session and group, dumps no core, and dies with the
//!   thread that started it unless asked not to;
//! * its pid is in the owned set from before anyone can see it exit until [`disown`], so that
//!   the sweeper never takes an exit status away from the thread that waits for it.

#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Pids of our own children that some thread waits for.
static OWNED: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// What happens to the child when the thread that started it ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OnParentDeath {
    Kill,
    /// For the reaper, whose work begins when the engine dies.
    Live,
}

/// Starts `command` in a new session and records it as owned.
pub(super) fn spawn(mut command: Command, on_death: OnParentDeath) -> io::Result<Child> {
    let parent = rustix::process::getpid();
    let prepare = move || {
        rustix::process::setsid()?;
        let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        rustix::process::setrlimit(rustix::process::Resource::Core, none)?;
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
        Ok(())
    };
    // SAFETY: `prepare` runs in the forked child of a process with several threads, where only
    // async-signal-safe work is sound. It makes four direct system calls on values it captured
    // by copy; it allocates nothing, takes no lock and does not panic. The errors it may return
    // are plain OS codes.
    unsafe { command.pre_exec(prepare) };
    let mut owned = owned();
    let child = command.spawn()?;
    owned.insert(child.id());
    Ok(child)
}

/// Forgets a child after its waiter has its exit status.
pub(super) fn disown(pid: u32) {
    owned().remove(&pid);
}

/// The owned set, locked: while held, no child can be started or change hands.
pub(super) fn owned() -> MutexGuard<'static, BTreeSet<u32>> {
    OWNED.lock().unwrap_or_else(PoisonError::into_inner)
}
