//! What a child puts on between fork and exec: namespaces, limits, Landlock, the filter on system calls.
//!
//! Invariants: [`Worn::enter`] and [`Worn::wear`] make system calls on values that are ready; they allocate nothing,
//! take no lock and do not panic. The order matters: namespaces before anything that forbids them, the filter on system
//! calls last.

use std::ffi::CStr;
use std::io;
use std::sync::Arc;

use landlock::RulesetCreated;
use rustix::io::Errno;
use rustix::thread::CapabilitySet;
use seccompiler::BpfProgram;

use super::layer::Layer;
use super::level::Level;
use super::limits::Limits;
use super::policy::Policy;
use super::setup::Setup;
use super::spaces::{Network, Spaces};
use super::{calls, files};
use crate::model::loop_file::NetworkDecl;
use crate::tool::network::Handles;
use crate::tool::step::LaunchStep;

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

/// Everything that is put on, ready.
#[derive(Default)]
pub(in crate::tool) struct Worn {
    spaces: Option<Spaces>,
    ruleset: Option<RulesetCreated>,
    filters: Vec<BpfProgram>,
    limits: Option<Limits>,
    fewer_rights: bool,
}

impl Worn {
    /// What a policy needs, as far as a machine of this level can enforce it.
    pub(super) fn ready(
        policy: &Policy,
        level: Level,
        without: Option<Layer>,
        shared: Option<Arc<Handles>>,
    ) -> Result<Self, String> {
        let mounts = level.mounts && without != Some(Layer::Mounts);
        // The rules of Landlock are made by now, for the folder below it; and to make it takes more than system calls.
        if policy.overlay.is_some() && without != Some(Layer::Mounts) {
            return Err("an overlay over the workspace needs a launcher".to_owned());
        }
        let own_network = policy.network == NetworkDecl::Loopback && without != Some(Layer::Network);
        let network = match shared {
            _ if !own_network => Network::Outer,
            None => Network::Own,
            Some(handles) => Network::Shared(handles),
        };
        let spaces = Spaces::ready(policy, level.user, mounts, network)?;
        Ok(Self { spaces, ..Self::in_place(policy, level, without, false)? })
    }

    /// For the children of a launcher, which stands in the namespaces already.
    pub(in crate::tool) fn inside(setup: &Setup) -> Result<Self, String> {
        Self::in_place(&setup.policy, setup.level, setup.without, true)
    }

    /// Only namespaces, to find out whether they can be had.
    pub(super) fn only(spaces: Spaces) -> Self {
        Self { spaces: Some(spaces), ..Self::default() }
    }

    /// All but the namespaces.
    fn in_place(policy: &Policy, level: Level, without: Option<Layer>, launched: bool) -> Result<Self, String> {
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

    /// In the child, first: the namespaces.
    pub(in crate::tool) fn enter(&self, folder: Option<&CStr>) -> io::Result<()> {
        match &self.spaces {
            Some(spaces) => spaces.enter(folder),
            None => Ok(()),
        }
    }

    /// In the child, last: all that takes rights away.
    pub(in crate::tool) fn wear(&self) -> io::Result<()> {
        LaunchStep::Limits.begin();
        if let Some(limits) = &self.limits {
            limits.wear()?;
        }
        if self.fewer_rights {
            keep_few_rights();
        }
        rustix::thread::set_no_new_privs(true)?;
        LaunchStep::Landlock.begin();
        if let Some(ruleset) = &self.ruleset {
            // The clone is a second handle on the same rules; the call wants one to consume.
            let ruleset = ruleset.try_clone()?;
            ruleset.restrict_self().map_err(|_| Errno::PERM)?;
        }
        LaunchStep::Filter.begin();
        for filter in &self.filters {
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
