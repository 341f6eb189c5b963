//! Puts an overlay over a workspace. For a launcher, a program of its own with one thread.
//!
//! Layers are handed to the kernel by open handles, not by name: no character of a path means anything then, and what
//! was opened is what is used. Marks of the kernel are attributes that a normal user may set (`userxattr`), for
//! everybody: a layer is then the same whoever made it.
//!
//! Invariant: two overlays never share a folder for what is written, which the kernel would leave undefined.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{FlockOperation, Mode, OFlags, StatVfsMountFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags};

use super::Placed;

/// An overlay that can be mounted.
pub(in crate::tool::sandbox) struct Ready {
    at: CString,
    over: Vec<CString>,
    upper: CString,
    work: CString,
    /// Says to others that `upper` is in use, as long as we live.
    claim: OnceLock<OwnedFd>,
}

impl Ready {
    pub(in crate::tool::sandbox) fn of(placed: &Placed) -> Result<Self, String> {
        let text = |path: &Path| {
            CString::new(path.as_os_str().as_bytes()).map_err(|_| format!("{} holds a NUL byte", path.display()))
        };
        let overlay = &placed.overlay;
        let over = overlay.over.iter().map(|path| text(path)).collect::<Result<_, _>>()?;
        let (upper, work) = (text(&overlay.upper)?, text(&overlay.work)?);
        Ok(Self { at: text(&placed.at)?, over, upper, work, claim: OnceLock::new() })
    }

    /// Needs a `/proc` that is ours.
    pub(in crate::tool::sandbox) fn mount(&self) -> io::Result<()> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = |path: &CString| rustix::fs::open(path, OFlags::PATH | flags, Mode::empty());
        let claim = rustix::fs::open(&self.upper, OFlags::RDONLY | flags, Mode::empty())?;
        // Where it is claimed already: what the kernel itself says of a mount that is in use.
        rustix::fs::flock(&claim, FlockOperation::NonBlockingLockExclusive).map_err(|_| Errno::BUSY)?;
        let (at, work) = (open(&self.at)?, open(&self.work)?);
        let over = self.over.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let lower: Vec<String> = over.iter().chain([&at]).map(|layer| by_handle(layer.as_fd())).collect();

        let system = rustix::mount::fsopen(c"overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
        let set = |key: &str, value: &str| rustix::mount::fsconfig_set_string(&system, key, value);
        set("lowerdir", &lower.join(":"))?;
        set("upperdir", &by_handle(claim.as_fd()))?;
        set("workdir", &by_handle(work.as_fd()))?;
        set("index", "off")?;
        rustix::mount::fsconfig_set_flag(&system, "userxattr")?;
        rustix::mount::fsconfig_create(&system)?;
        let mut attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        let runs_nothing = rustix::fs::fstatvfs(&at)?.f_flag.contains(StatVfsMountFlags::NOEXEC);
        attributes.set(MountAttrFlags::MOUNT_ATTR_NOEXEC, runs_nothing);
        let mount = rustix::mount::fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
        let handles = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        rustix::mount::move_mount(&mount, c"", &at, c"", handles)?;
        let _ = self.claim.set(claim);
        Ok(())
    }
}

fn by_handle(handle: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", handle.as_raw_fd())
}
