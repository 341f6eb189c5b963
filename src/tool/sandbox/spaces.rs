//! Namespaces around a child: a network with nothing but itself, and a file system that is read-only except
//! where the policy says otherwise.
//!
//! The second is more than Landlock gives: Landlock does not know owners, modes, times and attributes of files,
//! nor sockets with a path before Linux 7.1. It is used where it can be had, and the level says so.
//!
//! Invariants: all strings are ready before the fork; a mount that should protect and cannot be made is an error.

use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use rustix::mount::MountFlags;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::process::DumpableBehavior;
use rustix::thread::UnshareFlags;

use super::names;
use super::overlay;
use super::policy::Policy;
use crate::model::loop_file::NetworkDecl;
use crate::tool::kernel::{self, MountChange};
use crate::tool::network::Handles;
use crate::tool::step::LaunchStep;

/// The network that a child stands in.
pub(in crate::tool) enum Network {
    /// The one it was born in: what it may do there is for others to hold.
    Outer,
    /// One of its own, with nothing in it but itself.
    Own,
    /// One that the commands of a run share.
    Shared(Arc<Handles>),
}

/// The namespaces of a child.
pub(in crate::tool) struct Spaces {
    flags: UnshareFlags,
    /// Entered before all else.
    shared: Option<Arc<Handles>>,
    /// In a user namespace: we are who we were.
    ids: Option<Ids>,
    mounts: Option<Mounts>,
}

struct Ids {
    user: Vec<u8>,
    group: Vec<u8>,
}

struct Mounts {
    /// A `/proc` of their own, that shows their own processes only.
    own_proc: bool,
    /// Terminals of their own.
    terminals: bool,
    /// What is seen in place of the workspace. Only a launcher puts one up.
    overlay: Option<overlay::mount::Ready>,
    writable: Vec<CString>,
    /// What stays as it is in a writable place.
    sealed: Vec<CString>,
    hidden: Vec<CString>,
    /// An empty folder, put over hidden folders.
    void: CString,
    /// The hidden ones that lie in a writable place.
    hidden_within: Vec<CString>,
}

impl Spaces {
    /// What a policy needs; nothing, if it needs none.
    pub(super) fn ready(policy: &Policy, user: bool, mounts: bool, network: Network) -> Result<Option<Self>, String> {
        if !mounts && matches!(network, Network::Outer) {
            return Ok(None);
        }
        let mut flags = UnshareFlags::empty();
        flags.set(UnshareFlags::NEWUSER, user);
        flags.set(UnshareFlags::NEWNS, mounts);
        flags.set(UnshareFlags::NEWNET, matches!(network, Network::Own));
        let shared = if let Network::Shared(handles) = network { Some(handles) } else { None };
        let ids = user.then(|| Ids {
            user: format!("{0} {0} 1\n", rustix::process::geteuid().as_raw()).into_bytes(),
            group: format!("{0} {0} 1\n", rustix::process::getegid().as_raw()).into_bytes(),
        });
        let mounts = if mounts { Some(Mounts::ready(policy)?) } else { None };
        Ok(Some(Self { flags, shared, ids, mounts }))
    }

    /// The same for a launcher, with processes and shared memory of its own. Needs mounts, for a `/proc` that shows
    /// its own processes: with the old one every number in there would mean somebody else.
    pub(in crate::tool) fn for_launcher(policy: &Policy, user: bool, network: Network) -> Result<Self, String> {
        let spaces = Self::ready(policy, user, true, network)?;
        let mut spaces = spaces.ok_or_else(|| "a launcher has no namespaces".to_owned())?;
        spaces.flags |= UnshareFlags::NEWPID | UnshareFlags::NEWIPC;
        if let Some(mounts) = &mut spaces.mounts {
            mounts.own_proc = true;
            mounts.terminals = policy.terminals;
        }
        Ok(spaces)
    }

    /// The least of a kind, to find out whether it can be had.
    pub(in crate::tool) fn trial(user: bool, mounts: bool, network: bool) -> Option<Self> {
        let policy = Policy::trial(if network { NetworkDecl::Loopback } else { NetworkDecl::Off });
        let network = if network { Network::Own } else { Network::Outer };
        Self::ready(&policy, user, mounts, network).ok().flatten()
    }

    /// In the child.
    pub(super) fn enter(&self, folder: Option<&CStr>) -> io::Result<()> {
        self.separate()?;
        self.furnish(folder)
    }

    /// Moves into the namespaces. Into one of processes only children move, the first of them as its first process.
    pub(in crate::tool) fn separate(&self) -> io::Result<()> {
        if let Some(shared) = &self.shared {
            LaunchStep::Network.begin();
            shared.enter()?;
        }
        LaunchStep::Namespaces.begin();
        if self.ids.is_some() {
            // A child of an unreadable engine may not write its own maps.
            rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
        }
        kernel::unshare(self.flags)?;
        if let Some(ids) = &self.ids {
            LaunchStep::Ids.begin();
            write_to(c"/proc/self/setgroups", b"deny")?;
            write_to(c"/proc/self/uid_map", &ids.user)?;
            write_to(c"/proc/self/gid_map", &ids.group)?;
            rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        }
        Ok(())
    }

    /// Makes them what they should be.
    pub(in crate::tool) fn furnish(&self, folder: Option<&CStr>) -> io::Result<()> {
        if self.flags.contains(UnshareFlags::NEWNET) {
            LaunchStep::Loopback.begin();
            raise_loopback()?;
        }
        if let Some(mounts) = &self.mounts {
            mounts.make()?;
            // The folder we stand in is still that of the old, now read-only mount.
            if let Some(folder) = folder {
                LaunchStep::Folder.begin();
                rustix::process::chdir(folder)?;
            }
        }
        Ok(())
    }

    /// Puts mounts back that went with the file they were over: one that was replaced or made anew by somebody outside
    /// is a plain file in here, too. Not for places that may be written, with which everything begins.
    pub(in crate::tool) fn mend(&self) -> io::Result<()> {
        self.mounts.as_ref().map_or(Ok(()), Mounts::mend)
    }
}

impl Mounts {
    fn ready(policy: &Policy) -> Result<Self, String> {
        let within = |path: &&PathBuf| policy.write.iter().any(|writable| path.starts_with(writable));
        let hidden: Result<Vec<_>, String> = policy.hidden.iter().map(|path| text(path)).collect();
        let hidden_within: Result<Vec<_>, String> =
            policy.hidden.iter().filter(within).map(|path| text(path)).collect();
        let writable: Result<Vec<_>, String> = policy.write.iter().map(|path| text(path)).collect();
        let sealed: Result<Vec<_>, String> = policy.sealed.iter().map(|path| text(path)).collect();
        let void = text(&policy.void)?;
        let overlay = policy.overlay.as_ref().map(overlay::mount::Ready::of).transpose()?;
        Ok(Self {
            own_proc: false,
            terminals: false,
            overlay,
            writable: writable?,
            sealed: sealed?,
            hidden: hidden?,
            void,
            hidden_within: hidden_within?,
        })
    }

    fn make(&self) -> io::Result<()> {
        // Nothing that happens here may reach the world outside, nor the other way round.
        LaunchStep::PrivateMounts.begin();
        kernel::change_mounts(c"/", true, MountChange::Private)?;
        if self.own_proc {
            LaunchStep::OwnProc.begin();
            let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
            rustix::mount::mount(c"proc", c"/proc", c"proc", flags, None)?;
        }
        if self.terminals {
            LaunchStep::Terminals.begin();
            // A new instance: the terminals of the system are out of sight, the first of these is number 0.
            let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
            let options = c"newinstance,ptmxmode=0666,mode=0600";
            unless_gone(rustix::mount::mount(c"devpts", names::TERMINALS, c"devpts", flags, Some(options)))?;
            // Where it is a link to the one within, it leads there already.
            unless_gone(rustix::mount::mount_bind(names::TERMINAL_MAKER_WITHIN, names::TERMINAL_MAKER))?;
        }
        if let Some(overlay) = &self.overlay {
            // Before everything that is put over parts of the workspace, and before its layers are out of sight.
            LaunchStep::Overlay.begin();
            overlay.mount()?;
        }
        LaunchStep::WritableMounts.begin();
        // What is sealed lies in what is writable, so its mount comes later and is the one that counts.
        for path in &self.writable {
            unless_gone(rustix::mount::mount_bind_recursive(path.as_c_str(), path.as_c_str()))?;
        }
        for path in self.sealed.iter().filter(|path| is_plain(path)) {
            unless_gone(rustix::mount::mount_bind_recursive(path.as_c_str(), path.as_c_str()))?;
        }
        LaunchStep::HiddenMounts.begin();
        for path in &self.hidden {
            unless_gone(hide(path, &self.void))?;
        }
        LaunchStep::ReadOnlyMounts.begin();
        kernel::change_mounts(c"/", true, MountChange::ReadOnly)?;
        for path in &self.writable {
            // Where the system was read-only before us it stays so, which the command will find out.
            if kernel::change_mounts(path, true, MountChange::Writable).is_err() {
                let _ = kernel::change_mounts(path, false, MountChange::Writable);
            }
        }
        for path in self.sealed.iter().filter(|path| is_plain(path)) {
            unless_gone(kernel::change_mounts(path, true, MountChange::ReadOnly))?;
        }
        for path in &self.hidden_within {
            unless_gone(kernel::change_mounts(path, false, MountChange::ReadOnly))?;
        }
        Ok(())
    }

    fn mend(&self) -> io::Result<()> {
        LaunchStep::WritableMounts.begin();
        for path in &self.writable {
            if !has_mount(path)? {
                return Err(io::Error::from(Errno::STALE));
            }
        }
        for path in self.sealed.iter().filter(|path| is_plain(path)) {
            if !has_mount(path)? {
                unless_gone(rustix::mount::mount_bind_recursive(path.as_c_str(), path.as_c_str()))?;
                unless_gone(kernel::change_mounts(path, true, MountChange::ReadOnly))?;
            }
        }
        LaunchStep::HiddenMounts.begin();
        for path in &self.hidden {
            if !has_mount(path)? {
                unless_gone(hide(path, &self.void))?;
                unless_gone(kernel::change_mounts(path, false, MountChange::ReadOnly))?;
            }
        }
        Ok(())
    }
}

/// Is a mount at this place? Where nothing is, none is missing.
fn has_mount(path: &CStr) -> io::Result<bool> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    match rustix::fs::statx(CWD, path, flags, StatxFlags::empty()) {
        Ok(found) => Ok(found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Does a path lead somewhere, and through no link? One that came meanwhile is not what was to be sealed, and what it
/// points to may be anything.
fn is_plain(path: &CStr) -> bool {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    match rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(_) => true,
        // What cannot be told is left to the mount itself.
        Err(error) => !matches!(error, Errno::LOOP | Errno::NOENT | Errno::NOTDIR),
    }
}

/// Puts an empty folder over a folder, and nothing over what is none. Which of the two it is can change until the very
/// moment of the mount, so the mount itself is asked.
fn hide(path: &CStr, void: &CStr) -> rustix::io::Result<()> {
    match rustix::mount::mount_bind(void, path) {
        Err(Errno::NOTDIR) => rustix::mount::mount_bind(c"/dev/null", path),
        // It was changed while it was looked up: what stands there now is asked for again.
        Err(Errno::INVAL) => rustix::mount::mount_bind(void, path),
        other => other,
    }
}

/// What has gone since the policy was made needs no protection.
fn unless_gone(result: rustix::io::Result<()>) -> io::Result<()> {
    match result {
        Err(Errno::NOENT) => Ok(()),
        other => other.map_err(io::Error::from),
    }
}

fn text(path: &Path) -> Result<CString, String> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| format!("{} holds a NUL byte", path.display()))
}

fn write_to(path: &CStr, bytes: &[u8]) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    let written = rustix::io::write(file, bytes)?;
    if written == bytes.len() { Ok(()) } else { Err(io::Error::from(Errno::IO)) }
}

/// Brings `lo`, always the first device of a new network, up.
fn raise_loopback() -> io::Result<()> {
    const LENGTH: usize = 32;
    const NEW_LINK: u16 = 16;
    const ERROR: u16 = 2;
    const REQUEST_AND_ACKNOWLEDGE: u16 = 1 | 4;
    const UP: u32 = 1;
    let mut message = [0_u8; LENGTH];
    message[0..4].copy_from_slice(&(LENGTH as u32).to_ne_bytes());
    message[4..6].copy_from_slice(&NEW_LINK.to_ne_bytes());
    message[6..8].copy_from_slice(&REQUEST_AND_ACKNOWLEDGE.to_ne_bytes());
    // After the header: family and type, then the index of the device, its flags, and which of them to change.
    message[20..24].copy_from_slice(&1_i32.to_ne_bytes());
    message[24..28].copy_from_slice(&UP.to_ne_bytes());
    message[28..32].copy_from_slice(&UP.to_ne_bytes());
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    rustix::net::send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0_u8; 128];
    let (length, _) = rustix::net::recv(&socket, &mut answer, RecvFlags::empty())?;
    let is_answer = length >= 20 && answer[4..6] == ERROR.to_ne_bytes();
    if is_answer && answer[16..20] == [0; 4] { Ok(()) } else { Err(io::Error::from(Errno::PERM)) }
}
