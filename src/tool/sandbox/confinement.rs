//! What a child wears: built in the parent once, put on between fork and exec as often as needed.
//!
//! Invariants: [`Confinement::enter`] and [`Confinement::wear`] make system calls on values that are ready; they
//! allocate nothing, take no lock and do not panic. The order matters: namespaces before anything that forbids
//! them, the filter on system calls last.

use std::path::Path;

use super::policy::Policy;

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

/// What a child wears.
pub struct Confinement {
    policy: Policy,
    without: Option<Layer>,
    #[cfg(target_os = "linux")]
    way: linux::Way,
}

impl std::fmt::Debug for Confinement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Confinement").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl Confinement {
    /// Makes ready what a policy needs, as far as this machine can enforce it.
    pub fn build(policy: Policy) -> Result<Self, String> {
        Self::make(policy, None)
    }

    /// The same with one layer missing. For tests of the tests; nothing else may call it.
    #[doc(hidden)]
    pub fn without(policy: Policy, layer: Layer) -> Result<Self, String> {
        Self::make(policy, Some(layer))
    }

    fn make(policy: Policy, without: Option<Layer>) -> Result<Self, String> {
        #[cfg(target_os = "linux")]
        let way = linux::Way::of(&policy, without)?;
        Ok(Self {
            policy,
            without,
            #[cfg(target_os = "linux")]
            way,
        })
    }

    /// Does it hold the workspace against changes?
    pub fn is_read_only(&self) -> bool {
        self.policy.read_only && super::level().holds_files()
    }

    pub(in crate::tool) fn tmp(&self) -> &Path {
        &self.policy.tmp
    }

    pub(in crate::tool) fn lacks(&self, layer: Layer) -> bool {
        self.without == Some(layer)
    }

    /// Is what it was built from still so?
    pub(super) fn is_fresh(&self) -> bool {
        self.policy.is_fresh()
    }
}

#[cfg(not(target_os = "linux"))]
impl Confinement {
    pub(in crate::tool) fn enter(&self, _: Option<&std::ffi::CStr>) -> std::io::Result<()> {
        Ok(())
    }

    pub(in crate::tool) fn wear(&self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::CStr;
    use std::io;

    use landlock::RulesetCreated;
    use rustix::io::Errno;
    use rustix::thread::CapabilitySet;
    use seccompiler::BpfProgram;

    use super::super::limits::Limits;
    use super::super::setup::Setup;
    use super::super::spaces::Spaces;
    use super::super::{Level, calls, files, level};
    use super::{Confinement, Layer, Policy};
    use crate::model::loop_file::NetworkDecl;
    use crate::tool::launcher::Pool;
    use crate::tool::spawn::Step;

    /// What the superuser keeps: rights over files and its own processes. Without effect for anybody else.
    const KEPT: CapabilitySet = CapabilitySet::CHOWN
        .union(CapabilitySet::DAC_OVERRIDE)
        .union(CapabilitySet::FOWNER)
        .union(CapabilitySet::KILL)
        .union(CapabilitySet::SETGID)
        .union(CapabilitySet::SETUID)
        .union(CapabilitySet::NET_BIND_SERVICE);
    /// No kernel has more capabilities than fit here.
    const CAPABILITIES: u32 = 64;

    /// How a command comes to wear it.
    pub(super) enum Way {
        /// It puts everything on between fork and exec.
        Worn(Box<Worn>),
        /// It is started by a process that stands in the cage already.
        Launched(Pool),
    }

    impl Way {
        pub(super) fn of(policy: &Policy, without: Option<Layer>) -> Result<Self, String> {
            let level = level();
            // Without these a test would meet the launcher in their place, which holds the same by other means.
            let spares = [Layer::Launcher, Layer::Sweep, Layer::Scopes, Layer::Mounts, Layer::Environment];
            if level.pids && !without.is_some_and(|layer| spares.contains(&layer)) {
                let setup = Setup { policy: policy.clone(), level, without };
                return Ok(Self::Launched(Pool::new(setup.encode())));
            }
            let mut worn = Worn::ready(policy, level, without, false)?;
            let mounts = level.mounts && without != Some(Layer::Mounts);
            let own_network = policy.network == NetworkDecl::Loopback && without != Some(Layer::Network);
            worn.spaces = Spaces::ready(policy, level.user, mounts, own_network)?;
            Ok(Self::Worn(Box::new(worn)))
        }
    }

    /// Everything that is put on, ready.
    #[derive(Default)]
    pub(super) struct Worn {
        spaces: Option<Spaces>,
        ruleset: Option<RulesetCreated>,
        filters: Vec<BpfProgram>,
        limits: Option<Limits>,
        fewer_rights: bool,
    }

    impl Worn {
        /// All but the namespaces.
        fn ready(policy: &Policy, level: Level, without: Option<Layer>, launched: bool) -> Result<Self, String> {
            let has = |layer| without != Some(layer);
            let mut filters = Vec::new();
            if level.seccomp && has(Layer::Calls) {
                filters.push(calls::unknown_calls()?);
                filters.push(calls::refused_calls(launched)?);
            }
            if level.seccomp && has(Layer::Network) {
                // Where sockets with a path cannot be held, a command without network gets none of them either:
                // behind one there may be a server that does what the command may not.
                let local = policy.local_sockets || level.holds_named_sockets();
                filters.push(calls::sockets(policy.network, local)?);
            }
            Ok(Self {
                spaces: None,
                ruleset: if level.landlock > 0 { files::ruleset(policy, without)? } else { None },
                filters,
                limits: has(Layer::Limits).then(Limits::new),
                fewer_rights: has(Layer::Privileges),
            })
        }
    }

    impl Confinement {
        /// Only namespaces, to find out whether they can be had.
        pub(in crate::tool::sandbox) fn only(policy: Policy, spaces: Spaces) -> Self {
            let worn = Worn { spaces: Some(spaces), ..Worn::default() };
            Self { policy, without: None, way: Way::Worn(Box::new(worn)) }
        }

        /// For the children of a launcher, which stands in the namespaces already.
        pub(in crate::tool) fn inside(setup: Setup) -> Result<Self, String> {
            let worn = Worn::ready(&setup.policy, setup.level, setup.without, true)?;
            Ok(Self { policy: setup.policy, without: setup.without, way: Way::Worn(Box::new(worn)) })
        }

        /// Who starts its commands; `None` where we do it ourselves.
        pub(in crate::tool) fn pool(&self) -> Option<&Pool> {
            match &self.way {
                Way::Launched(pool) => Some(pool),
                Way::Worn(_) => None,
            }
        }

        /// Nobody runs with less than all of it: what a launcher should start is not started here.
        fn worn(&self) -> io::Result<&Worn> {
            match &self.way {
                Way::Worn(worn) => Ok(worn),
                Way::Launched(_) => Err(io::Error::from(Errno::PERM)),
            }
        }

        /// In the child, first: the namespaces.
        pub(in crate::tool) fn enter(&self, folder: Option<&CStr>) -> io::Result<()> {
            match &self.worn()?.spaces {
                Some(spaces) => spaces.enter(folder),
                None => Ok(()),
            }
        }

        /// In the child, last: all that takes rights away.
        pub(in crate::tool) fn wear(&self) -> io::Result<()> {
            let worn = self.worn()?;
            Step::Limits.begin();
            if let Some(limits) = &worn.limits {
                limits.wear()?;
            }
            if worn.fewer_rights {
                keep_few_rights();
            }
            rustix::thread::set_no_new_privs(true)?;
            Step::Landlock.begin();
            if let Some(ruleset) = &worn.ruleset {
                // The clone is a second handle on the same rules; the call wants one to consume.
                let ruleset = ruleset.try_clone()?;
                ruleset.restrict_self().map_err(|_| Errno::PERM)?;
            }
            Step::Filter.begin();
            for filter in &worn.filters {
                seccompiler::apply_filter(filter).map_err(|_| Errno::PERM)?;
            }
            Ok(())
        }
    }

    /// Whoever has no such rights cannot give them away: each error means that there is nothing to do.
    fn keep_few_rights() {
        for bit in 0..CAPABILITIES {
            let one = CapabilitySet::from_bits_retain(1 << bit);
            if !KEPT.contains(one) && rustix::thread::remove_capability_from_bounding_set(one).is_err() {
                break;
            }
        }
        let _ = rustix::thread::clear_ambient_capability_set();
        if let Ok(mut sets) = rustix::thread::capabilities(None) {
            sets.inheritable = CapabilitySet::empty();
            let _ = rustix::thread::set_capabilities(None, sets);
        }
    }
}
