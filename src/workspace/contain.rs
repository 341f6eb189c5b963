//! Paths that stay in the workspace.
//!
//! Every file a tool opens is opened here: the kernel resolves the path beneath the workspace and
//! refuses to leave it, and the handle it returns is what is used, so nothing can be swapped
//! between check and use. Shell commands are not confined by this.
//!
//! Invariants:
//! * no handle to anything outside the workspace is returned: not by `..`, not by an absolute
//!   path, not through a symlink (one that leaves, or an absolute one, is refused);
//! * the protected list is compared with the *resolved* path, so no alias gets around it;
//! * a write replaces a name in a pinned folder, so a hard link made earlier keeps its content.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use super::plain::Durability;
use super::tree::TEMPORARY;

/// The workspace folder, open.
pub struct Root {
    folder: OwnedFd,
    /// Without symlinks.
    real: PathBuf,
    /// As the caller names it.
    given: PathBuf,
}

/// Where a write goes: a name in an open folder.
pub struct Target {
    folder: OwnedFd,
    name: OsString,
    /// The permission bits to keep, if the file exists.
    mode: Option<u32>,
}

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Root {
    pub fn open(workspace: &Path) -> Result<Self, String> {
        let real = workspace.canonicalize().map_err(|error| format!("the workspace cannot be opened: {error}"))?;
        let folder = rustix::fs::open(&real, FOLDER, Mode::empty())
            .map_err(|error| format!("the workspace cannot be opened: {error}"))?;
        Ok(Self { folder, real, given: workspace.to_owned() })
    }

    pub fn path(&self) -> &Path {
        &self.real
    }

    /// A path as asked for, relative to the workspace, without `.`; refuses what points out of it
    /// by its text alone. An empty result is the workspace itself.
    pub fn relative(&self, asked: &str) -> Result<PathBuf, String> {
        if asked.contains('\0') {
            return Err("a path cannot hold a NUL byte".to_owned());
        }
        let path = Path::new(asked);
        let inside = if path.is_absolute() {
            let inside = path.strip_prefix(&self.given).or_else(|_| path.strip_prefix(&self.real));
            inside.map_err(|_| format!("{} is outside the workspace {}", shown(path), self.given.display()))?
        } else {
            path
        };
        let mut relative = PathBuf::new();
        for part in inside.components() {
            match part {
                Component::Normal(name) => relative.push(name),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(format!(
                        "{} uses '..'; give the path from the workspace folder, without '..'",
                        shown(path)
                    ));
                }
            }
        }
        Ok(relative)
    }

    /// Opens a regular file for reading.
    pub fn read(&self, relative: &Path) -> Result<File, String> {
        self.read_if_there(relative)?.ok_or_else(|| refusal(relative, rustix::io::Errno::NOENT))
    }

    /// The same; `None` where nothing has that name.
    pub fn read_if_there(&self, relative: &Path) -> Result<Option<File>, String> {
        // NONBLOCK: opening a named pipe must not wait for a writer.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = match self.beneath(relative, flags) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(error) => return Err(refusal(relative, error)),
        };
        let kind = file.metadata().map_err(|error| format!("{}: {error}", shown(relative)))?;
        if kind.is_dir() {
            return Err(format!("{} is a folder, not a file", shown(relative)));
        }
        if !kind.is_file() {
            return Err(format!("{} is not a regular file", shown(relative)));
        }
        Ok(Some(file))
    }

    /// What a path is: true for a folder, false for a file.
    pub fn is_folder(&self, relative: &Path) -> Result<bool, String> {
        let handle = self.beneath(relative, OFlags::PATH | OFlags::CLOEXEC).map_err(|e| refusal(relative, e))?;
        let stat = rustix::fs::fstat(handle).map_err(|e| refusal(relative, e))?;
        Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
    }

    /// Finds where a write goes, and creates missing folders on the way.
    pub fn target(&self, relative: &Path, protected: &[PathBuf]) -> Result<Target, String> {
        self.target_within(relative, protected, None)
    }

    /// The same, where only what lies in one folder may be written.
    pub fn target_within(
        &self,
        relative: &Path,
        protected: &[PathBuf],
        within: Option<&Path>,
    ) -> Result<Target, String> {
        if relative.as_os_str().is_empty() {
            return Err("the path names the workspace itself, not a file in it".to_owned());
        }
        // Symlinks, the last one too, are resolved first; what is checked is the real place.
        let place = match self.beneath(relative, OFlags::PATH | OFlags::CLOEXEC) {
            Ok(existing) => self.place_of(&existing, relative)?,
            Err(rustix::io::Errno::NOENT) => self.place_of_missing(relative)?,
            Err(error) => return Err(refusal(relative, error)),
        };
        refuse_protected(&place, protected)?;
        if let Some(folder) = within.filter(|folder| !place.starts_with(folder)) {
            return Err(format!("{} is not yours to write: only {} is", shown(&place), shown(folder)));
        }
        let (Some(name), Some(parent)) = (place.file_name(), place.parent()) else {
            return Err("the path names the workspace itself, not a file in it".to_owned());
        };
        let folder = self.make_folders(parent)?;
        let mode = match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => Some(stat.st_mode & 0o777),
                FileType::Directory => return Err(format!("{} is a folder", shown(relative))),
                FileType::Symlink => {
                    return Err(format!("{} is a symlink to nothing in the workspace", shown(relative)));
                }
                _ => return Err(format!("{} is not a regular file", shown(relative))),
            },
            Err(rustix::io::Errno::NOENT) => None,
            Err(error) => return Err(refusal(relative, error)),
        };
        Ok(Target { folder, name: name.to_owned(), mode })
    }

    /// The deepest existing folder of a path that does not exist, resolved, plus the rest.
    fn place_of_missing(&self, relative: &Path) -> Result<PathBuf, String> {
        for parent in relative.ancestors().skip(1) {
            let rest = relative.strip_prefix(parent).unwrap_or(relative);
            match self.beneath(parent, FOLDER) {
                Ok(folder) => return Ok(self.place_of(&folder, parent)?.join(rest)),
                Err(rustix::io::Errno::NOENT) => {}
                Err(error) => return Err(refusal(parent, error)),
            }
        }
        Err("the workspace is gone".to_owned())
    }

    fn make_folders(&self, parent: &Path) -> Result<OwnedFd, String> {
        let mut so_far = PathBuf::new();
        let mut folder = self.beneath(&so_far, FOLDER).map_err(|e| refusal(parent, e))?;
        for part in parent.components() {
            so_far.push(part);
            folder = match self.beneath(&so_far, FOLDER) {
                Err(rustix::io::Errno::NOENT) => {
                    match rustix::fs::mkdirat(&folder, part.as_os_str(), Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                        Err(error) => return Err(refusal(&so_far, error)),
                    }
                    self.beneath(&so_far, FOLDER).map_err(|e| refusal(&so_far, e))?
                }
                other => other.map_err(|e| refusal(&so_far, e))?,
            };
        }
        Ok(folder)
    }

    /// Where an open thing really is, relative to the workspace.
    #[cfg(target_os = "linux")]
    fn place_of(&self, handle: &OwnedFd, asked: &Path) -> Result<PathBuf, String> {
        use std::os::fd::AsRawFd;
        let link = format!("/proc/self/fd/{}", handle.as_raw_fd());
        let real = std::fs::read_link(link).map_err(|error| format!("{}: {error}", shown(asked)))?;
        self.inside(&real, asked)
    }

    #[cfg(not(target_os = "linux"))]
    fn place_of(&self, _handle: &OwnedFd, asked: &Path) -> Result<PathBuf, String> {
        let real = self.real.join(asked).canonicalize().map_err(|error| format!("{}: {error}", shown(asked)))?;
        self.inside(&real, asked)
    }

    fn inside(&self, real: &Path, asked: &Path) -> Result<PathBuf, String> {
        let inside = real.strip_prefix(&self.real);
        inside.map(Path::to_owned).map_err(|_| refusal(asked, rustix::io::Errno::XDEV))
    }

    /// Opens a path that the kernel keeps beneath the workspace.
    fn beneath(&self, relative: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let path = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::ResolveFlags;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
            // AGAIN: a rename elsewhere made the kernel unsure; it asks to be asked again.
            for _ in 0..16 {
                match rustix::fs::openat2(&self.folder, path, flags, Mode::empty(), resolve) {
                    Err(rustix::io::Errno::AGAIN) => {}
                    Err(rustix::io::Errno::NOSYS) => return self.beneath_by_name(path, flags),
                    other => return other,
                }
            }
            Err(rustix::io::Errno::AGAIN)
        }
        #[cfg(not(target_os = "linux"))]
        self.beneath_by_name(path, flags)
    }

    /// Where the kernel cannot do it: resolve, check, open. A swap in between is not noticed.
    fn beneath_by_name(&self, path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let code = |error: io::Error| rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
        let real = self.real.join(path).canonicalize().map_err(code)?;
        if !real.starts_with(&self.real) {
            return Err(rustix::io::Errno::XDEV);
        }
        rustix::fs::open(&real, flags | OFlags::NOFOLLOW, Mode::empty())
    }
}

impl Target {
    /// A name in a folder that is already known to be the right one.
    pub fn at(folder: OwnedFd, name: OsString, mode: u32) -> Self {
        Self { folder, name, mode: Some(mode) }
    }

    /// Replaces the file at once: readers see the old content or the new, never a part. It is on disk, name and all,
    /// when the call returns.
    pub fn replace(&self, content: &[u8]) -> io::Result<()> {
        self.put(content, Durability::Synced)
    }

    pub(super) fn put(&self, content: &[u8], durability: Durability) -> io::Result<()> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let temporary = format!("{TEMPORARY}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let created = rustix::fs::openat(&self.folder, &temporary, flags, Mode::from_raw_mode(0o666))?;
        let written = self
            .fill(File::from(created), content, durability)
            .and_then(|()| Ok(rustix::fs::renameat(&self.folder, &temporary, &self.folder, &self.name)?));
        if written.is_err() {
            let _ = rustix::fs::unlinkat(&self.folder, &temporary, AtFlags::empty());
        }
        if written.is_ok() && durability == Durability::Synced {
            let folder = rustix::fs::openat(&self.folder, ".", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
            rustix::fs::fsync(folder)?;
        }
        written
    }

    fn fill(&self, mut file: File, content: &[u8], durability: Durability) -> io::Result<()> {
        file.write_all(content)?;
        if let Some(mode) = self.mode
            && file.metadata()?.mode() & 0o777 != mode
        {
            file.set_permissions(std::fs::Permissions::from_mode(mode))?;
        }
        match durability {
            Durability::Synced => file.sync_all(),
            Durability::Replaceable => Ok(()),
        }
    }

    pub fn exists(&self) -> bool {
        self.mode.is_some()
    }
}

/// Git runs what its own folder says (hooks, filters, aliases), so no file tool writes there.
fn refuse_protected(place: &Path, protected: &[PathBuf]) -> Result<(), String> {
    if place.components().any(|part| part.as_os_str().eq_ignore_ascii_case(OsStr::new(".git"))) {
        return Err(format!("{} belongs to git; use git commands to change it", shown(place)));
    }
    // `a/b` and `a/b/` both protect a/b and everything under it.
    let hit = protected.iter().find(|path| !path.as_os_str().is_empty() && place.starts_with(path));
    // A file in the place of a protected path's folder would take the path away.
    let above = protected.iter().find(|path| path.starts_with(place));
    match hit.or(above) {
        Some(path) => Err(format!(
            "{} is protected ({}): the loop owns it and no tool may write it",
            shown(place),
            path.display()
        )),
        None => Ok(()),
    }
}

/// An error of the kernel, in words that say what was refused.
fn refusal(path: &Path, error: rustix::io::Errno) -> String {
    let path = if path.as_os_str().is_empty() { ".".to_owned() } else { shown(path) };
    match error {
        rustix::io::Errno::XDEV => {
            format!("{path} leaves the workspace (through a symlink); only files inside it can be used")
        }
        rustix::io::Errno::LOOP => {
            format!("{path} goes through a symlink that cannot be followed here")
        }
        rustix::io::Errno::NOENT => format!("{path} does not exist"),
        rustix::io::Errno::NOTDIR => format!("{path} goes through something that is not a folder"),
        other => format!("{path}: {}", io::Error::from(other)),
    }
}

/// A path for a message: control characters escaped, length bounded.
fn shown(path: &Path) -> String {
    let text: String = path.to_string_lossy().chars().take(300).flat_map(plain).collect();
    text
}

fn plain(character: char) -> impl Iterator<Item = char> {
    let escaped = character.is_control().then(|| character.escape_default());
    let kept = escaped.is_none().then_some(character);
    escaped.into_iter().flatten().chain(kept)
}

#[cfg(test)]
mod tests;
