//! What keeps commands away from everything that is not theirs, and how much of it this machine can enforce.
//!
//! One [`Sandbox`] per run: it owns the run's private temporary folder and hands out a [`Confinement`] for each
//! purpose, built once in the parent and worn by every child (`spawn` puts it on between fork and exec). It does
//! not decide what may be *asked for* (`permission`) nor end what runs on (`sweep`).
//!
//! Invariants:
//! * no name claims more than what every child really wears;
//! * under `required` nothing runs unconfined: what cannot be built is an error, not a warning;
//! * nothing in loop.yaml can take a single layer away: it is the whole of it, or `mode: off`.

mod confinement;
mod layer;
mod level;
mod names;
mod overlay;
mod policy;
mod scratch;
mod trial;

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(target_os = "linux")]
pub(super) mod setup;
#[cfg(target_os = "linux")]
pub(super) mod spaces;
#[cfg(target_os = "linux")]
pub(super) mod worn;

/// Elsewhere nothing is enforced, so there is nothing to put on.
#[cfg(not(target_os = "linux"))]
pub(super) mod worn {
    pub struct Worn;

    impl Worn {
        pub fn enter(&self, _: Option<&std::ffi::CStr>) -> std::io::Result<()> {
            Ok(())
        }

        pub fn wear(&self) -> std::io::Result<()> {
            Ok(())
        }
    }
}

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::access::Access;
use super::network::RunNetwork;
use crate::model::loop_file::{NetworkDecl, ReachDecl, SandboxDecl, SandboxMode};

pub use confinement::Confinement;
pub use layer::Layer;
pub use level::{Level, SandboxLevel};
pub use overlay::{Overlay, Placed};
pub use policy::{Grounds, Policy};
#[cfg(target_os = "linux")]
pub(super) use trial::assume;
pub use trial::{detect, level};

/// Where nothing is enforced because the declaration says so.
const OFF: &str = "off";
/// Confinements that are kept; a run has a handful of purposes.
const KEPT: usize = 16;

/// What applies to the commands of a run, decided before anything is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InForce {
    /// For the journal and the operator.
    pub level: SandboxLevel,
    pub network: NetworkDecl,
    /// What the operator should know, for instance that a wish could not be granted.
    pub warnings: Vec<String>,
    confined: bool,
}

impl InForce {
    /// Is anything enforced around commands?
    pub const fn is_confined(&self) -> bool {
        self.confined
    }
}

/// Why a run may not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub message: String,
    pub hint: String,
}

/// The mode that applies: as declared, else `required` where nobody watches.
pub fn mode(declared: &SandboxDecl, unattended: bool) -> SandboxMode {
    declared.mode.unwrap_or(if unattended { SandboxMode::Required } else { SandboxMode::Preferred })
}

/// What would be in force here. Writes nothing.
pub fn decide(declared: &SandboxDecl, unattended: bool) -> Result<InForce, Refusal> {
    decide_at(declared, unattended, level())
}

fn decide_at(declared: &SandboxDecl, unattended: bool, level: Level) -> Result<InForce, Refusal> {
    let mode = mode(declared, unattended);
    let mut network = declared.network.as_ref().map(ReachDecl::kind).unwrap_or_default();
    let listed = declared.network.as_ref().is_some_and(ReachDecl::is_listed);
    if mode == SandboxMode::Off {
        let detail = "as loop.yaml says: commands run with your own rights".to_owned();
        let level = SandboxLevel { name: OFF.to_owned(), detail };
        return Ok(InForce { level, network: NetworkDecl::On, warnings: Vec::new(), confined: false });
    }
    let accept = "set `sandbox: { mode: off }` in loop.yaml if you accept that commands run with your own rights";
    let mut warnings = Vec::new();
    if let Some(missing) = level.missing() {
        if mode == SandboxMode::Required {
            let message = format!("the sandbox is required, and cannot be enforced here: {missing}");
            return Err(Refusal { message, hint: accept.to_owned() });
        }
        warnings.push(format!("the sandbox is weaker than it should be: {missing}"));
    }
    if network == NetworkDecl::Loopback && !level.loopback {
        let missing =
            "`network: loopback`, or a list of hosts, needs a network namespace, which this machine does not provide";
        // Who wants a list gets less than that here; nothing is held worse.
        if mode == SandboxMode::Required && !listed {
            let hint = "allow unprivileged user namespaces, or set `network: off` or `network: on`";
            return Err(Refusal { message: missing.to_owned(), hint: hint.to_owned() });
        }
        warnings.push(format!("{missing}: commands get no network at all"));
        network = NetworkDecl::Off;
    }
    let confined = level.is_any();
    let mut named = level.describe();
    if confined {
        let network = if listed && network == NetworkDecl::Loopback { "listed" } else { network_name(network) };
        named.name = format!("{}, network {network}", named.name);
    }
    Ok(InForce { level: named, network, warnings, confined })
}

const fn network_name(network: NetworkDecl) -> &'static str {
    match network {
        NetworkDecl::Off => "off",
        NetworkDecl::Loopback => "loopback",
        NetworkDecl::On => "on",
    }
}

/// Who a confinement is for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Purpose {
    Tool,
    Program { write: Vec<PathBuf>, read: Vec<PathBuf> },
    Git { write: Vec<PathBuf> },
}

/// A confinement that is kept, and what it was built for.
#[derive(Debug)]
struct Built {
    access: Access,
    purpose: Purpose,
    sealed: Vec<PathBuf>,
    confinement: Arc<Confinement>,
}

/// The sandbox of one run.
#[derive(Debug)]
pub struct Sandbox {
    in_force: InForce,
    declared: SandboxDecl,
    grounds: Grounds,
    scratch: Option<scratch::Scratch>,
    built: Mutex<Vec<Built>>,
    /// Where its commands meet; the error: why they do not.
    network: Result<RunNetwork, String>,
    /// What tells its commands of a proxy, once there is one.
    proxy: OnceLock<Vec<(String, String)>>,
    /// Why no overlay can be had over this workspace, once that was asked.
    no_overlay: OnceLock<Option<String>>,
}

impl Sandbox {
    /// Opens the sandbox of a run: makes its private temporary folder. `run` names that folder.
    pub fn open(
        declared: &SandboxDecl,
        mut in_force: InForce,
        workspace: &Path,
        state: &Path,
        secrets: Vec<PathBuf>,
        run: &str,
    ) -> std::io::Result<Self> {
        let scratch = if in_force.confined { Some(scratch::Scratch::open(run)?) } else { None };
        let grounds = Grounds {
            workspace: workspace.to_owned(),
            home: std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute()),
            state: state.to_owned(),
            secrets,
            scratch: scratch.as_ref().map(|scratch| scratch.path().to_owned()).unwrap_or_default(),
        };
        let network = network_of(&mut in_force);
        let (declared, built, no_overlay) = (declared.clone(), Mutex::default(), OnceLock::new());
        Ok(Self { in_force, declared, grounds, scratch, built, network, proxy: OnceLock::new(), no_overlay })
    }

    pub fn in_force(&self) -> &InForce {
        &self.in_force
    }

    /// Where servers that commands start can be met by other commands, and by us. The error: why nowhere.
    pub fn network(&self) -> Result<&RunNetwork, &str> {
        self.network.as_ref().map_err(String::as_str)
    }

    /// From here on its commands have these variables: where the proxy of the run listens. To be said once, before any
    /// command of a tool or check.
    pub fn tell_of_proxy(&self, variables: Vec<(String, String)>) {
        let _ = self.proxy.set(variables);
    }

    fn variables(&self) -> Vec<(String, String)> {
        self.proxy.get().cloned().unwrap_or_default()
    }

    /// The folder that commands and we can both see, where there is a sandbox.
    pub fn shared_folder(&self) -> Option<PathBuf> {
        self.in_force.confined.then(|| self.grounds.scratch.join(scratch::TMP))
    }

    /// A temporary folder for one command alone; gone when it is dropped.
    pub fn apart(&self) -> Result<tempfile::TempDir, String> {
        self.restore_scratch()?;
        let scratch = self.scratch.as_ref().ok_or_else(|| "there is no sandbox".to_owned())?;
        tempfile::Builder::new().prefix("apart-").tempdir_in(scratch.path()).map_err(|error| error.to_string())
    }

    /// What a tool or a check wears; `None` where nothing is enforced.
    pub fn for_tool(&self, access: Access) -> Result<Option<Arc<Confinement>>, String> {
        self.confinement(access, Purpose::Tool, &[])
    }

    /// The same, with paths of the workspace that stay as they are. Held where mounts can be had; Landlock cannot
    /// take back a part of what it allows.
    pub fn for_tool_sealing(&self, access: Access, sealed: &[PathBuf]) -> Result<Option<Arc<Confinement>>, String> {
        self.confinement(access, Purpose::Tool, sealed)
    }

    /// What an agent program wears: it has the network and local sockets, may write `write` besides the
    /// workspace, and may read `read` although others may not (its own key and settings).
    pub fn for_program(
        &self,
        access: Access,
        write: &[PathBuf],
        read: &[PathBuf],
        sealed: &[PathBuf],
    ) -> Result<Option<Arc<Confinement>>, String> {
        self.confinement(access, Purpose::Program { write: write.to_vec(), read: read.to_vec() }, sealed)
    }

    /// What the engine's own git wears: it writes the workspace, `more` (a repository that lies elsewhere) and the
    /// temporary folder, whatever the declaration says of agents, and has no network.
    pub fn for_git(&self, more: &[PathBuf]) -> Result<Option<Arc<Confinement>>, String> {
        self.confinement(Access::ReadWrite, Purpose::Git { write: more.to_vec() }, &[])
    }

    /// Can a command be kept from changing the workspace? Only then do read-only roles get a shell.
    pub fn holds_read_only(&self) -> bool {
        self.in_force.confined && level().holds_files()
    }

    /// Do paths that are sealed really stay as they are?
    pub fn seals(&self) -> bool {
        self.in_force.confined && level().mounts
    }

    /// Can a check be shown an overlay here? Tried once, over this workspace.
    pub fn overlays(&self) -> bool {
        self.no_overlay().is_none()
    }

    /// Why it cannot; `None` if it can.
    pub fn no_overlay(&self) -> Option<String> {
        // This may change while a run lasts.
        let mounted = overlay::mounted_below(&self.workspace());
        mounted.or_else(|| self.no_overlay.get_or_init(|| self.try_overlay().err()).clone())
    }

    #[cfg(target_os = "linux")]
    fn try_overlay(&self) -> Result<(), String> {
        if !self.in_force.confined {
            return Err("there is no sandbox".to_owned());
        }
        if !level().overlay {
            return Err("this machine does not let us mount an overlay".to_owned());
        }
        // It writes the workspace, whatever is declared.
        overlay::rehearse(&self.workspace(), &self.grounds.state, &Policy::for_git(&self.grounds, &[]), level())
    }

    #[cfg(not(target_os = "linux"))]
    fn try_overlay(&self) -> Result<(), String> {
        Err("this system has no overlays".to_owned())
    }

    /// What a check wears that sees the workspace through an overlay, whose folders lie in the state directory. The
    /// paths in `sealed` stay as they are in what it sees. Built for this use, and for one command at a time. With a folder
    /// of its own (`apart`) it has no other place to leave anything: what it was shown is for nobody else.
    pub fn for_check(
        &self,
        sealed: &[PathBuf],
        overlay: &Overlay,
        apart: Option<&Path>,
    ) -> Result<Option<Arc<Confinement>>, String> {
        if !self.in_force.confined {
            return Ok(None);
        }
        if let Some(why) = self.no_overlay() {
            return Err(why);
        }
        self.restore_scratch()?;
        let mut policy = Policy::for_tool(&self.declared, self.in_force.network, &self.grounds, Access::ReadWrite);
        if let Some(apart) = apart {
            let workspace = self.workspace();
            policy.write.retain(|path| path.starts_with(&workspace));
            policy.write.push(apart.to_owned());
            policy.tmp = apart.to_owned();
            if policy.network == NetworkDecl::On {
                policy.network = if level().loopback { NetworkDecl::Loopback } else { NetworkDecl::Off };
            }
        }
        let placed = Placed::over(&self.workspace(), overlay, &policy)?;
        policy.sealed = self.sealed(sealed);
        policy.sealed.extend(sealed.iter().filter_map(|path| placed.brought(path)));
        policy.sealed.sort();
        policy.sealed.dedup();
        policy.overlay = Some(placed);
        // What it was shown is for nobody else: not for a server of the run either.
        let confinement = match &self.network {
            Ok(network) if apart.is_none() => Confinement::build_in(policy, network, self.variables())?,
            _ => Confinement::build(policy)?,
        };
        Ok(Some(Arc::new(confinement)))
    }

    fn workspace(&self) -> PathBuf {
        self.grounds.workspace.canonicalize().unwrap_or_else(|_| self.grounds.workspace.clone())
    }

    /// Where in the workspace these paths lead. What is not there yet is sealed once it is.
    fn sealed(&self, paths: &[PathBuf]) -> Vec<PathBuf> {
        let there = paths.iter().filter_map(|path| self.grounds.workspace.join(path).canonicalize().ok());
        let inside = self.workspace();
        let mut sealed: Vec<PathBuf> = there.filter(|path| path.starts_with(&inside) && *path != inside).collect();
        sealed.sort();
        sealed
    }

    fn restore_scratch(&self) -> Result<(), String> {
        self.scratch.as_ref().map_or(Ok(()), |scratch| scratch.restore().map_err(|error| error.to_string()))
    }

    fn confinement(
        &self,
        access: Access,
        purpose: Purpose,
        sealed: &[PathBuf],
    ) -> Result<Option<Arc<Confinement>>, String> {
        if !self.in_force.confined {
            return Ok(None);
        }
        let sealed = if access == Access::ReadWrite { self.sealed(sealed) } else { Vec::new() };
        let mut built = self.built.lock().unwrap_or_else(PoisonError::into_inner);
        built.retain(|one| one.confinement.is_fresh());
        let same = |one: &&Built| one.access == access && one.purpose == purpose && one.sealed == sealed;
        if let Some(known) = built.iter().find(same) {
            return Ok(Some(known.confinement.clone()));
        }
        self.restore_scratch()?;
        let mut policy = match &purpose {
            Purpose::Tool => Policy::for_tool(&self.declared, self.in_force.network, &self.grounds, access),
            Purpose::Program { write, read } => Policy::for_program(&self.declared, &self.grounds, access, write, read),
            Purpose::Git { write } => Policy::for_git(&self.grounds, write),
        };
        policy.sealed.clone_from(&sealed);
        let confinement = Arc::new(match (&self.network, &purpose) {
            (Ok(network), Purpose::Tool) => Confinement::build_in(policy, network, self.variables())?,
            _ => Confinement::build(policy)?,
        });
        if built.len() >= KEPT {
            built.remove(0);
        }
        built.push(Built { access, purpose, sealed, confinement: confinement.clone() });
        Ok(Some(confinement))
    }
}

/// The network of a run. Where commands cannot share one, each has its own, and the operator is told.
fn network_of(in_force: &mut InForce) -> Result<RunNetwork, String> {
    match in_force.network {
        NetworkDecl::Off => Err("commands have no network (`sandbox.network: off`)".to_owned()),
        NetworkDecl::On => Ok(RunNetwork::host()),
        NetworkDecl::Loopback => RunNetwork::open().map_err(|error| {
            let why = format!("commands cannot share a network here, each has its own ({error})");
            in_force.warnings.push(why.clone());
            why
        }),
    }
}

/// Closes the engine itself to the processes of the same user: nobody reads its memory or environment, and no
/// core file ever holds a key. Children are not affected: exec makes them readable again.
pub fn harden_ourselves() {
    let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
    // Both only ever take rights away from us; where the system refuses, there is nothing left to try.
    let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

#[cfg(test)]
mod tests;
