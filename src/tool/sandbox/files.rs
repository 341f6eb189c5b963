//! The Landlock ruleset: files, TCP, signals and abstract sockets.
//!
//! Built in the parent; a child only puts it on. Invariant: what the running kernel knows is handled, and only
//! what the policy names is allowed.

use std::os::fd::OwnedFd;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, Scope,
};
use rustix::fs::{FileType, Mode, OFlags};

use super::layer::Layer;
use super::names;
use super::policy::Policy;
use crate::model::loop_file::NetworkDecl;

/// All rights we know by name; older kernels get the part that they know.
const KNOWN: ABI = ABI::V9;

/// Puts a ruleset on this thread, which must end soon. The version in use; 0 where there is none.
pub(super) fn try_on() -> u8 {
    let ruleset = Ruleset::default().handle_access(AccessFs::from_all(KNOWN)).and_then(Ruleset::create);
    match ruleset.and_then(RulesetCreated::restrict_self).map(|status| status.landlock) {
        Ok(LandlockStatus::Available { effective_abi, .. }) => effective_abi as i32 as u8,
        _ => 0,
    }
}

/// Builds the ruleset of a policy; `None` if every layer of it is left out.
pub(super) fn ruleset(policy: &Policy, without: Option<Layer>) -> Result<Option<RulesetCreated>, String> {
    let files = without != Some(Layer::Files);
    let scopes = without != Some(Layer::Scopes);
    let tcp = without != Some(Layer::Network) && policy.network == NetworkDecl::Off;
    if !files && !scopes && !tcp {
        return Ok(None);
    }
    let failed = |error: landlock::RulesetError| format!("the Landlock ruleset cannot be made: {error}");
    let mut handled = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    let mut rights = AccessFs::from_all(KNOWN);
    if policy.local_sockets {
        rights.remove(AccessFs::ResolveUnix);
    }
    if files {
        handled = handled.handle_access(rights).map_err(failed)?;
    }
    if tcp {
        handled = handled.handle_access(AccessNet::from_all(KNOWN)).map_err(failed)?;
    }
    if scopes {
        // A program that may use local sockets may use abstract ones, too (a desktop's message bus, for instance).
        let scope = if policy.local_sockets { Scope::Signal.into() } else { Scope::from_all(KNOWN) };
        handled = handled.scope(scope).map_err(failed)?;
    }
    let mut ruleset = handled.create().map_err(failed)?;
    if !files {
        return Ok(Some(ruleset));
    }
    let read = AccessFs::Execute | AccessFs::ReadFile | AccessFs::ReadDir;
    // Devices are not made, and those that exist are not steered.
    let change =
        rights & AccessFs::from_write(KNOWN) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    let rules = policy.read.iter().map(|path| (path.as_path(), read));
    let rules = rules.chain(policy.write.iter().map(|path| (path.as_path(), change)));
    let terminals = [names::TERMINALS, names::TERMINAL_MAKER].into_iter().filter(|_| policy.terminals);
    let terminals = terminals.filter_map(|path| Some((Path::new(path.to_str().ok()?), device | AccessFs::ReadDir)));
    let devices = names::DEVICES.iter().map(|path| (Path::new(path), device));
    for (path, rights) in rules.chain(devices).chain(terminals) {
        if let Some((handle, rights)) = place(path, rights) {
            ruleset = ruleset.add_rule(PathBeneath::new(handle, rights)).map_err(failed)?;
        }
    }
    Ok(Some(ruleset))
}

/// A handle on a place, and the rights that make sense there. Nothing, if it is gone: that allows nothing.
fn place(path: &Path, rights: BitFlags<AccessFs>) -> Option<(OwnedFd, BitFlags<AccessFs>)> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let handle = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&handle).ok()?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    let rights = if kind == FileType::Directory { rights } else { rights & AccessFs::from_file(KNOWN) };
    (!rights.is_empty()).then_some((handle, rights))
}
