//! What a command may write, read and reach, worked out from the declaration and the places of the run.
//!
//! Landlock can only allow. So "everything but the secrets" is said by walking from the root down to each
//! secret and allowing its neighbours one by one; a folder without secrets below is allowed as a whole.
//! Enforces nothing itself.
//!
//! Invariants: every path in a policy exists and is free of symlinks; what is closed is not readable by any
//! other name; the workspace is readable wherever it lies; all walks are bounded.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::names;
use super::overlay::Placed;
use super::scratch::{PREFIX, TMP, VOID};
use crate::model::loop_file::{NetworkDecl, SandboxDecl};
use crate::tool::access::Access;

/// Entries looked at in one folder; the rest of a larger one is not readable.
const MAX_ENTRIES: usize = 20_000;
/// Folders walked in all.
const MAX_WALKED: usize = 400;

/// The places of a run.
#[derive(Debug, Clone)]
pub struct Grounds {
    pub workspace: PathBuf,
    pub home: Option<PathBuf>,
    /// nightloop's own state: journals, sockets.
    pub state: PathBuf,
    /// The private temporary folder.
    pub scratch: PathBuf,
    /// Files and folders that hold keys, wherever they are.
    pub secrets: Vec<PathBuf>,
}

/// What one kind of command may do.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Folders and files that may be changed.
    pub write: Vec<PathBuf>,
    /// Folders and files that may be read and run, each with all below.
    pub read: Vec<PathBuf>,
    /// What is put out of sight, where the machine can do that.
    pub hidden: Vec<PathBuf>,
    /// What stays as it is although it lies where may be written, where the machine can do that.
    pub sealed: Vec<PathBuf>,
    /// What is seen in place of the workspace; there is no policy without it where it cannot be had.
    pub overlay: Option<Placed>,
    pub network: NetworkDecl,
    /// May it talk to servers on this machine through sockets with a path?
    pub local_sockets: bool,
    /// May it make terminals of its own? They are of an instance that holds nobody else's; only a launcher puts one up.
    pub terminals: bool,
    pub read_only: bool,
    /// Exported as TMPDIR.
    pub tmp: PathBuf,
    /// An empty folder, to put over hidden ones.
    pub void: PathBuf,
    /// The folders that were walked, with their times: when one changed, the policy is old.
    pub(super) walked: Vec<(PathBuf, Option<SystemTime>)>,
}

impl Policy {
    /// For tools and checks.
    pub fn for_tool(declared: &SandboxDecl, network: NetworkDecl, grounds: &Grounds, access: Access) -> Self {
        let mut policy = Self::build(declared, grounds, access, &[], &[]);
        policy.network = network;
        policy
    }

    /// For an agent program.
    pub fn for_program(
        declared: &SandboxDecl,
        grounds: &Grounds,
        access: Access,
        write: &[PathBuf],
        read: &[PathBuf],
    ) -> Self {
        let mut policy = Self::build(declared, grounds, access, write, read);
        policy.network = NetworkDecl::On;
        policy.local_sockets = true;
        policy.terminals = true;
        policy
    }

    /// For the engine's own git.
    pub fn for_git(grounds: &Grounds, write: &[PathBuf]) -> Self {
        let plain = SandboxDecl { caches: Some(false), ..SandboxDecl::default() };
        Self::build(&plain, grounds, Access::ReadWrite, write, &[])
    }

    fn build(
        declared: &SandboxDecl,
        grounds: &Grounds,
        access: Access,
        more_write: &[PathBuf],
        more_read: &[PathBuf],
    ) -> Self {
        let home = grounds.home.as_deref().and_then(real);
        let mut write: Vec<PathBuf> = [grounds.scratch.join(TMP)].iter().filter_map(|path| real(path)).collect();
        // Landlock cannot take back a part of what it allows: a workspace in there must stay as it is.
        let shared = real(Path::new(names::SHARED_MEMORY));
        let holds_workspace =
            real(&grounds.workspace).zip(shared.clone()).is_some_and(|(ws, shared)| ws.starts_with(shared));
        write.extend(shared.filter(|_| access == Access::ReadWrite || !holds_workspace));
        let caches = declared.caches.unwrap_or(true);
        if access == Access::ReadWrite {
            write.extend(declared_writable(declared, grounds, home.as_deref()));
            if let Some(home) = home.as_deref().filter(|_| caches) {
                write.extend(names::CACHES.iter().filter_map(|name| real(&home.join(name))));
            }
        }
        write.extend(more_write.iter().filter_map(|path| real(path)));
        write.sort();
        write.dedup();

        let mut open: Vec<PathBuf> = write.clone();
        open.extend(real(&grounds.workspace));
        open.extend(more_read.iter().filter_map(|path| real(path)));
        open.extend(names::DEVICES.iter().filter_map(|path| real(Path::new(path))));
        let closed = closed(grounds, home.as_deref());
        let mut walk = Walk { closed: &closed, allowed: BTreeSet::new(), walked: BTreeSet::new() };
        walk.visit(Path::new("/"));
        // A home or a workspace inside a closed place (a home below /root, a checkout below ~/.config) is entered
        // on its own.
        for root in home.iter().chain(&open) {
            walk.enter(root);
        }
        let hidden = hidden(&closed, &open, home.as_deref());
        Self {
            write,
            read: walk.allowed.into_iter().collect(),
            hidden,
            sealed: Vec::new(),
            overlay: None,
            network: NetworkDecl::Off,
            local_sockets: false,
            terminals: false,
            read_only: access == Access::ReadOnly,
            tmp: grounds.scratch.join(TMP),
            void: grounds.scratch.join(VOID),
            walked: walk.walked.into_iter().map(|path| (path.clone(), changed(&path))).collect(),
        }
    }

    /// The least there is, to find out what can be had here.
    pub(super) fn trial(network: NetworkDecl) -> Self {
        let temporary = std::env::temp_dir();
        Self {
            write: temporary.canonicalize().into_iter().collect(),
            read: Vec::new(),
            hidden: Vec::new(),
            sealed: Vec::new(),
            overlay: None,
            network,
            local_sockets: false,
            terminals: false,
            read_only: false,
            tmp: temporary,
            void: PathBuf::new(),
            walked: Vec::new(),
        }
    }

    /// Do the folders that were walked still hold what they held?
    pub(super) fn is_fresh(&self) -> bool {
        self.walked.iter().all(|(path, time)| changed(path) == *time)
    }
}

/// The folders that loop.yaml lets commands write: the workspace, or what `write` lists.
fn declared_writable(declared: &SandboxDecl, grounds: &Grounds, home: Option<&Path>) -> Vec<PathBuf> {
    let Some(listed) = &declared.write else { return real(&grounds.workspace).into_iter().collect() };
    let absolute = listed.iter().map(|path| match (path.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => home.join(below),
        _ => grounds.workspace.join(path),
    });
    absolute.filter_map(|path| real(&path)).collect()
}

/// What nobody may read.
fn closed(grounds: &Grounds, home: Option<&Path>) -> BTreeSet<PathBuf> {
    let mut closed: BTreeSet<PathBuf> = BTreeSet::new();
    // Devices are listed one by one; the disks and the memory are among the rest.
    closed.insert(PathBuf::from("/dev"));
    closed.extend(real(&grounds.state));
    closed.extend(grounds.secrets.iter().filter_map(|path| real(path)));
    closed.extend(names::SYSTEM_SECRETS.iter().filter_map(|path| real(Path::new(path))));
    closed.extend(children(Path::new("/etc/ssh")).filter(|path| named(path, &["ssh_host_"], &["_key"])));
    if let Some(home) = home {
        closed.extend(names::SECRETS.iter().filter_map(|name| real(&home.join(name))));
        let secret = children(home).filter(|path| named(path, names::SECRET_STARTS, names::SECRET_ENDS));
        closed.extend(secret.filter_map(|path| real(&path)));
    }
    let homes = names::HOMES.iter().flat_map(|homes| children(Path::new(homes))).chain([PathBuf::from("/root")]);
    closed.extend(homes.filter_map(|path| real(&path)).filter(|path| Some(path.as_path()) != home));
    let scratch = real(&grounds.scratch);
    let temporary = real(&std::env::temp_dir());
    for place in [Some(PathBuf::from("/tmp")), temporary].into_iter().flatten().collect::<BTreeSet<_>>() {
        let foreign = children(&place).filter(|path| {
            let starts = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
            (starts && path.is_dir() && real(path) != scratch) || named(path, names::TEMPORARY_WAYS_OUT, &[])
        });
        closed.extend(foreign.filter_map(|path| real(&path)));
    }
    closed
}

/// What is put out of sight: closed folders, since sockets may be in them, and the known ways out.
fn hidden(closed: &BTreeSet<PathBuf>, open: &[PathBuf], home: Option<&Path>) -> Vec<PathBuf> {
    let ways = names::WAYS_OUT.iter().filter_map(|path| real(Path::new(path)));
    let folders = closed.iter().filter(|path| path.is_dir() && path.as_path() != Path::new("/dev")).cloned();
    let mut hidden: Vec<PathBuf> = ways.chain(folders).collect();
    // Not over what must stay in sight.
    hidden.retain(|path| !open.iter().map(PathBuf::as_path).chain(home).any(|open| open.starts_with(path)));
    hidden.sort();
    hidden.dedup();
    // What lies in a hidden folder is hidden with it.
    let all = hidden.clone();
    hidden.retain(|path| !all.iter().any(|other| other != path && path.starts_with(other)));
    hidden
}

fn named(path: &Path, starts: &[&str], ends: &[&str]) -> bool {
    let Some(name) = path.file_name().map(|name| name.to_string_lossy()) else { return false };
    starts.iter().any(|start| name.starts_with(start)) || ends.iter().any(|end| name.ends_with(end))
}

fn real(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|meta| meta.modified()).ok()
}

fn children(path: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(path).into_iter().flatten().flatten().take(MAX_ENTRIES).map(|entry| entry.path())
}

struct Walk<'a> {
    closed: &'a BTreeSet<PathBuf>,
    allowed: BTreeSet<PathBuf>,
    walked: BTreeSet<PathBuf>,
}

impl Walk<'_> {
    fn visit(&mut self, path: &Path) {
        if !self.closed.contains(path) {
            self.enter(path);
        }
    }

    /// Allows a place, and what is below it, except what is closed.
    fn enter(&mut self, path: &Path) {
        if !self.closed.iter().any(|closed| closed != path && closed.starts_with(path)) {
            self.allowed.insert(path.to_owned());
            return;
        }
        if self.walked.len() >= MAX_WALKED || !self.walked.insert(path.to_owned()) {
            return;
        }
        for child in children(path) {
            // A symlink gives nothing by itself: what it points to is allowed or not at its own place.
            if !child.is_symlink() {
                self.visit(&child);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct House {
        _folder: tempfile::TempDir,
        grounds: Grounds,
    }

    fn house(files: &[&str]) -> House {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for file in ["home/plain/x", "home/ws/x", "state/journal/x", "scratch/tmp/x"].iter().chain(files) {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), "").unwrap();
        }
        let grounds = Grounds {
            workspace: root.join("home/ws"),
            home: Some(root.join("home")),
            state: root.join("state"),
            scratch: root.join("scratch"),
            secrets: vec![root.join("home/keys/k")],
        };
        House { _folder: folder, grounds }
    }

    impl House {
        fn policy(&self, declared: &SandboxDecl, access: Access) -> Policy {
            Policy::for_tool(declared, NetworkDecl::Off, &self.grounds, access)
        }

        fn home(&self, name: &str) -> PathBuf {
            self.grounds.home.as_ref().unwrap().join(name)
        }
    }

    fn reads(policy: &Policy, path: &Path) -> bool {
        policy.read.iter().any(|allowed| path.starts_with(allowed))
    }

    fn writes(policy: &Policy, path: &Path) -> bool {
        policy.write.iter().any(|allowed| path.starts_with(allowed))
    }

    #[test]
    fn everything_is_read_but_the_secrets() {
        let house = house(&["home/.ssh/id", "home/.config/gh/hosts", "home/.config/app/x", "home/.claude.json"]);
        let policy = house.policy(&SandboxDecl::default(), Access::ReadWrite);
        for closed in [".ssh/id", ".ssh", ".config/gh/hosts", ".claude.json", ".config"] {
            assert!(!reads(&policy, &house.home(closed)), "{closed} is readable");
        }
        assert!(!reads(&policy, &house.grounds.state.join("journal/x")));
        for open in ["plain/x", "ws/x", ".config/app/x"] {
            assert!(reads(&policy, &house.home(open)), "{open} is not readable");
        }
        assert!(reads(&policy, Path::new("/usr")) && !reads(&policy, Path::new("/etc/shadow")));
        assert!(!reads(&policy, Path::new("/dev/mem")) && reads(&policy, Path::new("/dev/null")));
    }

    #[test]
    fn a_workspace_in_a_closed_place_is_readable() {
        let mut house = house(&["home/.ssh/ws/x", "home/.ssh/id"]);
        house.grounds.workspace = house.home(".ssh/ws");
        let policy = house.policy(&SandboxDecl::default(), Access::ReadWrite);
        assert!(reads(&policy, &house.home(".ssh/ws/x")) && !reads(&policy, &house.home(".ssh/id")));
        assert!(!policy.hidden.contains(&house.home(".ssh")), "the workspace is hidden");
        assert!(policy.hidden.contains(&house.grounds.state));
    }

    #[test]
    fn a_secret_behind_a_symlink_is_closed_where_it_lies() {
        let house = house(&["home/plain/keys/id"]);
        std::os::unix::fs::symlink(house.home("plain/keys"), house.home(".ssh")).unwrap();
        let policy = house.policy(&SandboxDecl::default(), Access::ReadWrite);
        assert!(!reads(&policy, &house.home("plain/keys/id")) && reads(&policy, &house.home("plain/x")));
    }

    #[test]
    fn what_is_written_follows_the_declaration() {
        let house = house(&["home/.npm/x", "home/ws/out/x", "home/plain/y"]);
        let plain = house.policy(&SandboxDecl::default(), Access::ReadWrite);
        assert!(writes(&plain, &house.home("ws/x")) && writes(&plain, &house.home(".npm")));
        assert!(!writes(&plain, &house.home("plain")) && writes(&plain, &house.grounds.scratch.join("tmp")));

        let declared = SandboxDecl {
            write: Some(vec!["out".into(), "~/plain".into()]),
            caches: Some(false),
            ..SandboxDecl::default()
        };
        let listed = house.policy(&declared, Access::ReadWrite);
        assert!(writes(&listed, &house.home("ws/out/x")) && writes(&listed, &house.home("plain")));
        assert!(!writes(&listed, &house.home("ws/x")) && !writes(&listed, &house.home(".npm")));

        let only_read = house.policy(&SandboxDecl::default(), Access::ReadOnly);
        assert!(!writes(&only_read, &house.home("ws")) && !writes(&only_read, &house.home(".npm")));
        assert!(writes(&only_read, &house.grounds.scratch.join("tmp")));
    }

    #[test]
    fn a_program_reads_its_own_secrets_only() {
        let house = house(&["home/.claude/key", "home/.codex/key"]);
        let own = [house.home(".claude")];
        let declared = SandboxDecl::default();
        let policy = Policy::for_program(&declared, &house.grounds, Access::ReadOnly, &[], &own);
        assert!(reads(&policy, &house.home(".claude/key")) && !reads(&policy, &house.home(".codex/key")));
        assert!(!writes(&policy, &house.home(".claude")) && policy.network == NetworkDecl::On);
        let policy = Policy::for_program(&declared, &house.grounds, Access::ReadOnly, &own, &[]);
        assert!(writes(&policy, &house.home(".claude/key")) && reads(&policy, &house.home(".claude/key")));
    }

    #[test]
    fn a_declared_key_file_is_closed_wherever_it_is() {
        let house = house(&["home/keys/k", "home/keys/other"]);
        let policy = house.policy(&SandboxDecl::default(), Access::ReadWrite);
        assert!(!reads(&policy, &house.home("keys/k")));
        assert!(reads(&policy, &house.home("keys/other")));
    }

    #[test]
    fn a_changed_home_makes_it_old() {
        let house = house(&["home/.ssh/id"]);
        let policy = house.policy(&SandboxDecl::default(), Access::ReadWrite);
        assert!(policy.is_fresh());
        fs::write(house.home("new"), "").unwrap();
        assert!(!policy.is_fresh());
    }
}
