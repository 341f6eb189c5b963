//! The environment of our children: what of ours they see, and the markers by which they are found again.
//!
//! Invariant: what is not on the allow-list, API keys above all, stays with us.

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names the run a process belongs to.
pub const RUN_VAR: &str = "NIGHTLOOP_RUN";
/// Names the engine that started a process: a run that goes on has another one.
pub(super) const ENGINE_VAR: &str = "NIGHTLOOP_ENGINE";
/// Names the one call a process belongs to.
pub(super) const CALL_VAR: &str = "NIGHTLOOP_CALL";

/// The variables a child may inherit, besides `LC_*`.
pub(super) const INHERITED: [&str; 8] = ["PATH", "HOME", "LANG", "TERM", "TZ", "USER", "SHELL", "TMPDIR"];

/// Does a child see this variable of ours?
pub fn is_passed_on(name: &str) -> bool {
    INHERITED.contains(&name) || name.starts_with("LC_")
}

/// Clears a command's environment down to the allow-list.
pub(super) fn only_allowed(command: &mut Command) {
    command.env_clear();
    for (name, value) in std::env::vars_os() {
        if name.to_str().is_some_and(is_passed_on) {
            command.env(name, value);
        }
    }
    // Without a terminal, a password prompt would only wait for the timeout.
    command.env("GIT_TERMINAL_PROMPT", "0");
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
