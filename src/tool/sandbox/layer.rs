//! The lines of defence, one by one: only so that tests can leave one out.

/// One line of defence. The hostile corpus switches each off in turn, to prove that its cases can fail.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    Files,
    Scopes,
    Network,
    Calls,
    Mounts,
    Limits,
    Privileges,
    Environment,
    Sweep,
    /// The launcher, in whose process space everything of a call ends with it.
    Launcher,
}

impl Layer {
    #[cfg(target_os = "linux")]
    pub(super) const ALL: [Self; 10] = [
        Self::Files,
        Self::Scopes,
        Self::Network,
        Self::Calls,
        Self::Mounts,
        Self::Limits,
        Self::Privileges,
        Self::Environment,
        Self::Sweep,
        Self::Launcher,
    ];
}
