//! Finds out, once per process, what this machine can enforce. By trying it, not by reading version numbers.
//!
//! Invariant: a mechanism counts only if it was really put on (by a thread or a child that ended right after).

use std::sync::OnceLock;

use super::level::{Level, SandboxLevel};

#[cfg(target_os = "linux")]
use {
    super::policy::Policy,
    super::setup::Setup,
    super::spaces::Spaces,
    super::worn::Worn,
    super::{calls, files, overlay},
    crate::model::loop_file::NetworkDecl,
    crate::tool::spawn::{self, OnParentDeath},
    crate::tool::{launcher, owned},
    std::path::Path,
    std::process::{Command, Stdio},
    std::sync::Arc,
};

/// What this machine can enforce, for people.
pub fn detect() -> SandboxLevel {
    level().describe()
}

/// What this machine can enforce. Found out at the first call.
pub fn level() -> Level {
    *LEVEL.get_or_init(try_out)
}

static LEVEL: OnceLock<Level> = OnceLock::new();

/// In a launcher: what its engine found out holds.
#[cfg(target_os = "linux")]
pub(in crate::tool) fn assume(level: Level) {
    // Nobody has asked yet in a process that has just begun.
    let _ = LEVEL.set(level);
}

#[cfg(target_os = "linux")]
fn try_out() -> Level {
    let (landlock, seccomp) = std::thread::Builder::new()
        .name("trial".to_owned())
        // On a thread that ends: what it puts on, it never takes off.
        .spawn(|| (files::try_on(), calls::try_on()))
        .ok()
        .and_then(|thread| thread.join().ok())
        .unwrap_or_default();
    let mut level = Level { landlock, seccomp, ..Level::default() };
    // With rights over the system no user namespace is needed, and inside one files of others look foreign.
    for user in [false, true] {
        level.mounts = works(Spaces::trial(user, true, false));
        level.loopback = works(Spaces::trial(user, false, true));
        level.user = user;
        if level.mounts || level.loopback {
            break;
        }
    }
    // An overlay is put up by a launcher: with the one there is the other.
    level.overlay = level.mounts && overlay::rehearse_anywhere(level);
    let plain = || Setup {
        policy: Policy::trial(NetworkDecl::Off),
        level: Level { landlock: 0, seccomp: false, ..level },
        without: None,
    };
    level.pids = level.overlay || (level.mounts && launcher::works(&plain(), ":", Path::new("/")).unwrap_or(false));
    level
}

#[cfg(not(target_os = "linux"))]
fn try_out() -> Level {
    Level::default()
}

/// Can a child really enter these?
#[cfg(target_os = "linux")]
fn works(spaces: Option<Spaces>) -> bool {
    let Some(spaces) = spaces else { return false };
    let mut command = Command::new("/bin/sh");
    command.args(["-c", ":"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.current_dir("/").env_clear();
    let worn = Arc::new(Worn::only(spaces));
    let Ok(mut child) = spawn::spawn(command, OnParentDeath::Kill, Some(worn)) else { return false };
    let ended = child.wait().is_ok_and(|status| status.success());
    owned::disown(child.id());
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_enforces_something() {
        // The corpus in tests/sandbox means nothing where this fails: it must be seen.
        assert_eq!(level().missing(), None, "{}", detect());
    }

    #[test]
    fn with_and_without_a_user_namespace() {
        // Whoever may do it without one may do it with one.
        let root = rustix::process::geteuid().is_root();
        for user in [!root, true] {
            assert!(works(Spaces::trial(user, true, false)), "mounts, user namespace: {user}");
            assert!(works(Spaces::trial(user, false, true)), "network, user namespace: {user}");
        }
    }
}
