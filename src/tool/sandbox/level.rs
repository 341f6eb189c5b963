//! How much a machine can enforce, and what that is called. Finding it out is `trial`'s.

/// The least Landlock that keeps files from being emptied (Linux 6.2).
const LEAST_LANDLOCK: u8 = 3;
/// From here on signals and abstract sockets are scoped (Linux 6.12).
const SCOPES: u8 = 6;
/// From here on sockets with a path are, too.
const NAMED_SOCKETS: u8 = 9;

/// A level in words, for the journal and the operator.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct SandboxLevel {
    pub name: String,
    pub detail: String,
}

impl std::fmt::Display for SandboxLevel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.name, self.detail)
    }
}

/// What this machine can enforce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Level {
    /// The version of Landlock in use; 0 where there is none.
    pub landlock: u8,
    pub seccomp: bool,
    /// A mount namespace in which all but the writable places is read-only.
    pub mounts: bool,
    /// A network namespace of its own.
    pub loopback: bool,
    /// Namespaces need a user namespace around them.
    pub user: bool,
    /// A launcher with processes of its own, all of which the kernel ends with it.
    pub pids: bool,
    /// An overlay over the workspace, put up by a launcher.
    pub overlay: bool,
}

impl Level {
    /// Is anything there at all?
    pub const fn is_any(self) -> bool {
        self.landlock > 0 || self.seccomp
    }

    /// Can files be kept from being changed?
    pub const fn holds_files(self) -> bool {
        self.landlock >= LEAST_LANDLOCK
    }

    /// Are sockets with a path kept away from, where they lead out of the sandbox?
    pub(super) const fn holds_named_sockets(self) -> bool {
        self.mounts || self.landlock >= NAMED_SOCKETS
    }

    /// Are signals to processes outside refused?
    pub const fn holds_signals(self) -> bool {
        self.landlock >= SCOPES
    }

    /// What `required` lacks.
    pub(super) fn missing(self) -> Option<String> {
        if cfg!(not(target_os = "linux")) {
            return Some("unsupported: nothing but `mode: off` works on this system".to_owned());
        }
        let mut missing = Vec::new();
        if self.landlock == 0 {
            missing.push(
                "Landlock is not available (it needs Linux 6.2 or later, with `landlock` among the security modules)",
            );
        } else if !self.holds_files() {
            missing.push("Landlock is too old to prevent truncating files (it needs Linux 6.2 or later)");
        }
        if !self.seccomp {
            missing.push("seccomp filters are not available (they need x86_64 or aarch64)");
        }
        if missing.is_empty() { None } else { Some(missing.join("; ")) }
    }

    /// In words.
    pub fn describe(self) -> SandboxLevel {
        if cfg!(not(target_os = "linux")) {
            let detail = "unsupported on this system: commands run with your own rights; `sandbox.mode` must be off";
            return SandboxLevel { name: "none".to_owned(), detail: detail.to_owned() };
        }
        if !self.is_any() {
            let detail = "commands run with your own rights; process groups, environment allow-list and limits only";
            return SandboxLevel { name: "none".to_owned(), detail: detail.to_owned() };
        }
        let mut names = Vec::new();
        let mut holds = Vec::new();
        let mut open = Vec::new();
        if self.landlock > 0 {
            names.push(format!("landlock {}", self.landlock));
            holds.push("files");
        } else {
            open.push("files");
        }
        if self.seccomp {
            names.push("seccomp".to_owned());
            holds.push("network");
            holds.push("system calls");
        } else {
            open.push("network other than TCP");
        }
        if self.mounts {
            names.push("mounts".to_owned());
            holds.push("owners and modes of files outside");
        } else {
            open.push("modes and times of your own files outside");
        }
        if self.holds_signals() {
            holds.push("signals")
        } else {
            open.push("signals to your other processes")
        }
        if self.pids {
            names.push("pids".to_owned());
            holds.push("processes, even if the engine is killed");
        } else {
            open.push("processes that hide from a killed engine");
        }
        let mut detail = format!("holds {}", holds.join(", "));
        if !open.is_empty() {
            detail.push_str(&format!("; does not hold {}", open.join(", ")));
        }
        detail.push_str(if self.loopback { "; loopback is available" } else { "; loopback is not available" });
        if self.overlay {
            detail.push_str("; overlays are available");
        }
        SandboxLevel { name: names.join(" + "), detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let none = Level::default();
        assert!(none.missing().unwrap().contains("Landlock is not available"));
        assert!(none.describe().to_string().starts_with("none: commands run with your own rights;"));
        let old = Level { landlock: 2, seccomp: true, ..none };
        assert!(old.missing().unwrap().contains("too old"));
        let level = Level { landlock: 4, seccomp: true, ..none };
        assert_eq!(level.missing(), None);
        let shown = level.describe();
        assert_eq!(shown.name, "landlock 4 + seccomp");
        assert!(shown.detail.contains("does not hold modes and times of your own files outside, signals to"));
    }
}
