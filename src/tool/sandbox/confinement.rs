//! What a child is confined by: built in the parent once, used as often as needed.
//!
//! A child puts it on itself (`worn`), or is started by a launcher that stands in the cage already.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::layer::Layer;
use super::policy::Policy;
#[cfg(target_os = "linux")]
use super::setup::Setup;
use super::trial;
use super::worn::Worn;
use crate::model::loop_file::NetworkDecl;
#[cfg(target_os = "linux")]
use crate::tool::launcher::Pool;
use crate::tool::network::{Handles, RunNetwork};

/// How a command comes to wear it.
#[cfg(target_os = "linux")]
enum Way {
    /// It puts everything on between fork and exec.
    Worn(Arc<Worn>),
    /// It is started by a process that stands in the cage already.
    Launched(Pool),
}

#[cfg(target_os = "linux")]
impl Way {
    fn of(policy: &Policy, without: Option<Layer>, shared: Option<Arc<Handles>>) -> Result<Self, String> {
        let level = trial::level();
        // Without these a test would meet the launcher in their place, which holds the same by other means.
        let spares = [Layer::Launcher, Layer::Sweep, Layer::Scopes, Layer::Mounts, Layer::Environment];
        if level.pids && !without.is_some_and(|layer| spares.contains(&layer)) {
            let setup = Setup { policy: policy.clone(), level, without };
            return Ok(Self::Launched(Pool::new(setup.encode(), shared)));
        }
        // Without a launcher they would be the terminals of the system.
        let policy = Policy { terminals: false, ..policy.clone() };
        Ok(Self::Worn(Arc::new(Worn::ready(&policy, level, without, shared)?)))
    }
}

/// What a child wears.
pub struct Confinement {
    policy: Policy,
    without: Option<Layer>,
    /// What its commands find in their environment.
    variables: Vec<(String, String)>,
    #[cfg(target_os = "linux")]
    way: Way,
}

impl std::fmt::Debug for Confinement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Confinement").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl Confinement {
    /// Makes ready what a policy needs, as far as this machine can enforce it.
    pub fn build(policy: Policy) -> Result<Self, String> {
        Self::make(policy, None, None)
    }

    /// The same in the network of a run, if the policy lets it have servers at all, and with these variables.
    pub(super) fn build_in(
        policy: Policy,
        network: &RunNetwork,
        variables: Vec<(String, String)>,
    ) -> Result<Self, String> {
        let shared = network.handles().filter(|_| policy.network == NetworkDecl::Loopback);
        Ok(Self { variables, ..Self::make(policy, None, shared)? })
    }

    /// The same with one layer missing. For tests of the tests; nothing else may call it.
    #[doc(hidden)]
    pub fn without(policy: Policy, layer: Layer) -> Result<Self, String> {
        Self::make(policy, Some(layer), None)
    }

    fn make(policy: Policy, without: Option<Layer>, shared: Option<Arc<Handles>>) -> Result<Self, String> {
        #[cfg(target_os = "linux")]
        let way = Way::of(&policy, without, shared)?;
        #[cfg(not(target_os = "linux"))]
        let _ = shared;
        Ok(Self {
            policy,
            without,
            variables: Vec::new(),
            #[cfg(target_os = "linux")]
            way,
        })
    }

    /// Does it hold the workspace against changes?
    pub fn is_read_only(&self) -> bool {
        self.policy.read_only && trial::level().holds_files()
    }

    pub(in crate::tool) fn tmp(&self) -> &Path {
        &self.policy.tmp
    }

    pub(in crate::tool) fn variables(&self) -> &[(String, String)] {
        &self.variables
    }

    pub(in crate::tool) fn lacks(&self, layer: Layer) -> bool {
        self.without == Some(layer)
    }

    /// Is what it was built from still so?
    pub(super) fn is_fresh(&self) -> bool {
        self.policy.is_fresh()
    }
}

#[cfg(target_os = "linux")]
impl Confinement {
    /// Who starts its commands; `None` where we do it ourselves.
    pub(in crate::tool) fn pool(&self) -> Option<&Pool> {
        match &self.way {
            Way::Launched(pool) => Some(pool),
            Way::Worn(_) => None,
        }
    }

    /// Nobody runs with less than all of it: what a launcher should start is not started by us.
    pub(in crate::tool) fn worn(&self) -> io::Result<Arc<Worn>> {
        match &self.way {
            Way::Worn(worn) => Ok(worn.clone()),
            Way::Launched(_) => Err(io::Error::from(rustix::io::Errno::PERM)),
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Confinement {
    pub(in crate::tool) fn worn(&self) -> io::Result<Arc<Worn>> {
        Ok(Arc::new(Worn))
    }
}
