//! Files at exactly their names: below the workspace no symlink is followed, neither on the way nor at the end.
//!
//! For what the engine itself reads, writes, compares and puts back, where a link that leads elsewhere, even inside the
//! workspace, would already be wrong. What agents read and write goes through `contain`.
//!
//! Invariants: a name that is a symlink, a pipe, a device or a folder is never read; a write replaces the name, never
//! what a link at that name points to; reads and listings are bounded; nothing waits.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use super::contain::Target;

/// Names that are tried for what is set aside.
const MAX_ASIDE: u32 = 1_000;

/// A regular file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainFile {
    pub bytes: Vec<u8>,
    pub executable: bool,
}

/// What a name in a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    File,
    Folder,
    Link,
    /// A pipe, a socket, a device.
    Other,
}

impl FileKind {
    pub const fn of(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::File => "a file",
            Self::Folder => "a folder",
            Self::Link => "a link",
            Self::Other => "a pipe, socket or device",
        }
    }
}

/// How durable a file must be when the call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// It can be made again.
    Replaceable,
    Synced,
}

/// The permissions of a file that is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bits {
    /// Those of the file that is replaced; else as of a text.
    Kept,
    Executable(bool),
}

/// A place that cannot be used, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place} {what}")]
pub struct Fault {
    /// From the workspace.
    pub place: String,
    pub what: What,
}

/// What is wrong with a place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum What {
    #[error("is {}, not a file", .0.name())]
    NotAFile(FileKind),
    #[error("is {}, not a folder", .0.name())]
    NotAFolder(FileKind),
    #[error("has more than {0} bytes")]
    TooLarge(usize),
    #[error("has more than {0} entries")]
    TooMany(usize),
    #[error("leaves the workspace")]
    Leaves,
    #[error("cannot be used: {}", io::Error::from(*.0))]
    Failed(Errno),
}

impl Fault {
    pub(super) fn new(place: impl AsRef<Path>, what: What) -> Self {
        Self { place: super::tree::name_of(place.as_ref()), what }
    }

    /// Does something stand there that is not what belongs there?
    pub const fn is_odd(&self) -> bool {
        matches!(self.what, What::NotAFile(_) | What::NotAFolder(_))
    }

    /// As an error of the system, whose code tells a full disk from others.
    pub fn into_io(self) -> io::Error {
        match self.what {
            What::Failed(error) => io::Error::from(error),
            _ => io::Error::other(self.to_string()),
        }
    }
}

impl From<Fault> for String {
    fn from(fault: Fault) -> Self {
        fault.to_string()
    }
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
// NONBLOCK: opening a pipe must not wait for its other end.
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// The workspace itself. Its own name may go through links: it is the operator's.
pub fn open_root(workspace: &Path) -> io::Result<OwnedFd> {
    let real = workspace.canonicalize()?;
    Ok(rustix::fs::open(&real, FOLDER, Mode::empty())?)
}

/// A folder in a folder.
pub fn open_folder(folder: &OwnedFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(folder, name, FOLDER, Mode::empty())
}

/// A regular file in a folder; `None` where nothing has that name.
pub fn open_file(folder: &OwnedFd, name: &OsStr) -> Result<Option<File>, What> {
    // Asked before it is opened: opening a device can be an act of its own.
    let stat = match stat_at(folder, name) {
        Ok(Some(stat)) => stat,
        Ok(None) => return Ok(None),
        Err(error) => return Err(What::Failed(error)),
    };
    let found = FileKind::of(FileType::from_raw_mode(stat.st_mode));
    if found != FileKind::File {
        return Err(What::NotAFile(found));
    }
    let file = match rustix::fs::openat(folder, name, FILE, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(What::NotAFile(FileKind::Link)),
        // A socket, or a pipe that came meanwhile.
        Err(Errno::NXIO) => return Err(What::NotAFile(FileKind::Other)),
        Err(error) => return Err(What::Failed(error)),
    };
    let stat = rustix::fs::fstat(&file).map_err(What::Failed)?;
    match FileKind::of(FileType::from_raw_mode(stat.st_mode)) {
        FileKind::File => Ok(Some(file)),
        other => Err(What::NotAFile(other)),
    }
}

/// What a name is, without following it; `None` where nothing has it.
pub fn stat_at(folder: &OwnedFd, name: &OsStr) -> rustix::io::Result<Option<Stat>> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// When something was last written. The widths of these fields differ between systems.
#[allow(clippy::unnecessary_cast)]
pub fn modified(stat: &Stat) -> SystemTime {
    let seconds = Duration::from_secs(u64::try_from(stat.st_mtime).unwrap_or(0));
    SystemTime::UNIX_EPOCH + seconds + Duration::from_nanos(stat.st_mtime_nsec as u64)
}

/// The kind of a name; what cannot be told is odd.
pub fn kind_at(folder: &OwnedFd, name: &OsStr) -> FileKind {
    let found = stat_at(folder, name).ok().flatten();
    found.map_or(FileKind::Other, |stat| FileKind::of(FileType::from_raw_mode(stat.st_mode)))
}

/// The content of a regular file in a folder; `None` where nothing has that name.
pub fn read_at(folder: &OwnedFd, name: &OsStr, limit: usize) -> Result<Option<PlainFile>, What> {
    let Some(file) = open_file(folder, name)? else { return Ok(None) };
    let failed = |error: io::Error| What::Failed(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    let meta = file.metadata().map_err(failed)?;
    // Its size is asked first, so that a huge file costs nothing; the read is bounded all the same, for it may grow.
    if meta.size() > limit as u64 {
        return Err(What::TooLarge(limit));
    }
    let mut bytes = Vec::new();
    file.take((limit as u64).saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > limit {
        return Err(What::TooLarge(limit));
    }
    Ok(Some(PlainFile { bytes, executable: meta.permissions().mode() & 0o111 != 0 }))
}

/// The names in a folder, sorted; none where there is no such folder. More than `most` is an error.
pub fn list(workspace: &Path, path: impl AsRef<Path>, most: usize) -> Result<Vec<(String, FileKind)>, Fault> {
    let path = path.as_ref();
    let Some(folder) = folder(workspace, &parts(path)?, false)? else { return Ok(Vec::new()) };
    let failed = |error: Errno| Fault::new(path, What::Failed(error));
    let mut names = Vec::new();
    for entry in Dir::read_from(&folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = String::from_utf8_lossy(entry.file_name().to_bytes()).into_owned();
        if name == "." || name == ".." {
            continue;
        }
        if names.len() >= most {
            return Err(Fault::new(path, What::TooMany(most)));
        }
        // Some file systems do not tell the kind while they list.
        let kind = match entry.file_type() {
            FileType::Unknown => kind_at(&folder, OsStr::new(&name)),
            known => FileKind::of(known),
        };
        names.push((name, kind));
    }
    names.sort();
    Ok(names)
}

/// The content of a regular file; `None` where nothing has that name.
pub fn read(workspace: &Path, path: impl AsRef<Path>, limit: usize) -> Result<Option<PlainFile>, Fault> {
    let path = path.as_ref();
    let (parent, name) = split(path)?;
    let Some(folder) = folder(workspace, &parent, false)? else { return Ok(None) };
    read_at(&folder, &name, limit).map_err(|what| Fault::new(path, what))
}

/// What stands at a name; `None`: nothing.
pub fn kind(workspace: &Path, path: impl AsRef<Path>) -> Result<Option<FileKind>, Fault> {
    Ok(stat(workspace, path)?.map(|stat| FileKind::of(FileType::from_raw_mode(stat.st_mode))))
}

/// The same with its size, times and so on.
pub fn stat(workspace: &Path, path: impl AsRef<Path>) -> Result<Option<Stat>, Fault> {
    let path = path.as_ref();
    let (parent, name) = split(path)?;
    let Some(folder) = folder(workspace, &parent, false)? else { return Ok(None) };
    stat_at(&folder, &name).map_err(|error| Fault::new(path, What::Failed(error)))
}

/// Is it a regular file?
pub fn is_file(stat: &Stat) -> bool {
    FileKind::of(FileType::from_raw_mode(stat.st_mode)) == FileKind::File
}

/// Puts exactly this file at exactly this name, at once. What had the name is gone, unless it is a folder.
pub fn put(
    workspace: &Path,
    path: impl AsRef<Path>,
    content: &[u8],
    bits: Bits,
    durability: Durability,
) -> Result<(), Fault> {
    let path = path.as_ref();
    let (parent, name) = split(path)?;
    let failed = |error: io::Error| Fault::new(path, What::Failed(Errno::from_io_error(&error).unwrap_or(Errno::IO)));
    let folder = folder(workspace, &parent, true)?.ok_or_else(|| Fault::new(path, What::Failed(Errno::NOENT)))?;
    let there = stat_at(&folder, &name).map_err(|error| Fault::new(path, What::Failed(error)))?;
    let found = there.as_ref().map(|stat| FileKind::of(FileType::from_raw_mode(stat.st_mode)));
    if found == Some(FileKind::Folder) {
        return Err(Fault::new(path, What::NotAFile(FileKind::Folder)));
    }
    let mode = match (bits, there) {
        (Bits::Executable(true), _) => 0o755,
        (Bits::Kept, Some(stat)) if found == Some(FileKind::File) => stat.st_mode & 0o777,
        (Bits::Executable(false) | Bits::Kept, _) => 0o644,
    };
    Target::at(folder, name, mode).put(content, durability).map_err(failed)
}

/// What a link says; `None` where there is no link of that name.
pub fn link(workspace: &Path, path: impl AsRef<Path>) -> Result<Option<PathBuf>, Fault> {
    let path = path.as_ref();
    let (parent, name) = split(path)?;
    let Some(folder) = folder(workspace, &parent, false)? else { return Ok(None) };
    match rustix::fs::readlinkat(&folder, name.as_os_str(), Vec::new()) {
        Ok(target) => Ok(Some(PathBuf::from(OsStr::from_bytes(target.to_bytes())))),
        Err(Errno::NOENT | Errno::INVAL) => Ok(None),
        Err(error) => Err(Fault::new(path, What::Failed(error))),
    }
}

/// Makes a link where nothing has the name.
pub fn put_link(workspace: &Path, path: impl AsRef<Path>, target: &Path) -> Result<(), Fault> {
    let path = path.as_ref();
    let (parent, name) = split(path)?;
    let failed = |error: Errno| Fault::new(path, What::Failed(error));
    let folder = folder(workspace, &parent, true)?.ok_or_else(|| failed(Errno::NOENT))?;
    rustix::fs::symlinkat(target, &folder, name.as_os_str()).map_err(failed)
}

/// Takes a name away, unless it is a folder. `false`: there was none.
pub fn remove(workspace: &Path, path: impl AsRef<Path>) -> Result<bool, Fault> {
    let path = path.as_ref();
    let (parent, name) = split(path)?;
    let Some(folder) = folder(workspace, &parent, false)? else { return Ok(false) };
    match rustix::fs::unlinkat(&folder, name.as_os_str(), AtFlags::empty()) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(Errno::ISDIR) => Err(Fault::new(path, What::NotAFile(FileKind::Folder))),
        Err(error) => Err(Fault::new(path, What::Failed(error))),
    }
}

/// Takes an empty folder away. `false`: it is not empty, or there is none.
pub fn remove_folder(workspace: &Path, path: impl AsRef<Path>) -> Result<bool, Fault> {
    let path = path.as_ref();
    let (parent, name) = split(path)?;
    let Some(folder) = folder(workspace, &parent, false)? else { return Ok(false) };
    match rustix::fs::unlinkat(&folder, name.as_os_str(), AtFlags::REMOVEDIR) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Ok(false),
        Err(error) => Err(Fault::new(path, What::Failed(error))),
    }
}

/// Gives something another name, one that is free, as it is: a link stays a link. `false`: the new name is taken.
pub fn rename(workspace: &Path, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<bool, Fault> {
    let (from, to) = (from.as_ref(), to.as_ref());
    let ((from_parent, from_name), (to_parent, to_name)) = (split(from)?, split(to)?);
    let failed = |error: Errno| Fault::new(from, What::Failed(error));
    let source = folder(workspace, &from_parent, false)?.ok_or_else(|| failed(Errno::NOENT))?;
    let target = folder(workspace, &to_parent, true)?.ok_or_else(|| failed(Errno::NOENT))?;
    match rename_free(&source, &from_name, &target, &to_name) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(error) => Err(failed(error)),
    }
}

#[cfg(target_os = "linux")]
fn rename_free(source: &OwnedFd, from: &OsStr, target: &OwnedFd, to: &OsStr) -> rustix::io::Result<()> {
    match rustix::fs::renameat_with(source, from, target, to, RenameFlags::NOREPLACE) {
        // Not every file system knows how.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => rename_by_looking(source, from, target, to),
        other => other,
    }
}

#[cfg(not(target_os = "linux"))]
fn rename_free(source: &OwnedFd, from: &OsStr, target: &OwnedFd, to: &OsStr) -> rustix::io::Result<()> {
    rename_by_looking(source, from, target, to)
}

fn rename_by_looking(source: &OwnedFd, from: &OsStr, target: &OwnedFd, to: &OsStr) -> rustix::io::Result<()> {
    match stat_at(target, to)? {
        Some(_) => Err(Errno::EXIST),
        None => rustix::fs::renameat(source, from, target, to),
    }
}

/// Gives what stands at a name of ours another one beside it; returns that one.
pub fn set_aside(workspace: &Path, path: &str) -> Result<String, Fault> {
    for number in 1..=MAX_ASIDE {
        let aside = format!("{path}.before-nightloop-{number}");
        if rename(workspace, path, &aside)? {
            return Ok(aside);
        }
    }
    Err(Fault::new(path, What::TooMany(MAX_ASIDE as usize)))
}

/// Flushes everything that was written in the workspace's file system.
pub fn sync_all(workspace: &Path) -> io::Result<()> {
    let root = open_root(workspace)?;
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(&root)?;
    #[cfg(not(target_os = "linux"))]
    rustix::fs::fsync(&root)?;
    Ok(())
}

/// The parts of a relative path; `..` and the like are refused.
fn parts(path: &Path) -> Result<Vec<OsString>, Fault> {
    let parts = path.components().filter(|part| *part != Component::CurDir).map(|part| match part {
        Component::Normal(name) => Ok(name.to_owned()),
        _ => Err(Fault::new(path, What::Leaves)),
    });
    parts.collect()
}

fn split(path: &Path) -> Result<(Vec<OsString>, OsString), Fault> {
    let mut parent = parts(path)?;
    let name = parent.pop().ok_or_else(|| Fault::new(path, What::NotAFile(FileKind::Folder)))?;
    Ok((parent, name))
}

/// The folder that a path lies in, made where it is missing, and the name in it.
pub(super) fn open_parent(workspace: &Path, path: &Path) -> Result<(OwnedFd, OsString), Fault> {
    let (parent, name) = split(path)?;
    let folder = folder(workspace, &parent, true)?.ok_or_else(|| Fault::new(path, What::Failed(Errno::NOENT)))?;
    Ok((folder, name))
}

/// Opens a folder below the workspace, step by step; `None` where it is missing and not to be made.
fn folder(workspace: &Path, parts: &[OsString], make: bool) -> Result<Option<OwnedFd>, Fault> {
    let unopened = |error: io::Error| Fault::new(".", What::Failed(Errno::from_io_error(&error).unwrap_or(Errno::IO)));
    let mut folder = open_root(workspace).map_err(unopened)?;
    let mut so_far = PathBuf::new();
    for part in parts {
        so_far.push(part);
        let wrong = |what: What| Fault::new(&so_far, what);
        if make {
            match rustix::fs::mkdirat(&folder, part.as_os_str(), Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(wrong(What::Failed(error))),
            }
        }
        folder = match open_folder(&folder, part) {
            Ok(next) => next,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => {
                return Err(wrong(What::NotAFolder(kind_at(&folder, part))));
            }
            Err(error) => return Err(wrong(What::Failed(error))),
        };
    }
    Ok(Some(folder))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const EXECUTABLE: Bits = Bits::Executable(true);
    const TEXT: Bits = Bits::Executable(false);
    const SYNCED: Durability = Durability::Synced;

    #[test]
    fn a_file_is_put_and_read_back_with_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "a/b/run.sh", b"echo", EXECUTABLE, SYNCED).unwrap();
        let there = read(dir.path(), "a/b/run.sh", 10).unwrap().unwrap();
        assert_eq!(there, PlainFile { bytes: b"echo".to_vec(), executable: true });
        put(dir.path(), "a/b/run.sh", b"true", TEXT, SYNCED).unwrap();
        assert!(!read(dir.path(), "a/b/run.sh", 10).unwrap().unwrap().executable);
        assert_eq!(read(dir.path(), "a/none", 10), Ok(None));
        assert_eq!(read(dir.path(), "none/x", 10), Ok(None));
        assert!(read(dir.path(), "a/b/run.sh", 3).unwrap_err().to_string().contains("more than 3 bytes"));
    }

    #[test]
    fn a_link_is_neither_read_nor_written_through() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("product"), "mine").unwrap();
        std::fs::create_dir(dir.path().join("scripts")).unwrap();
        symlink("../product", dir.path().join("scripts/x.sh")).unwrap();
        assert!(read(dir.path(), "scripts/x.sh", 100).unwrap_err().to_string().contains("is a link"));
        put(dir.path(), "scripts/x.sh", b"new", EXECUTABLE, SYNCED).unwrap();
        assert_eq!(std::fs::read(dir.path().join("product")).unwrap(), b"mine");
        assert_eq!(read(dir.path(), "scripts/x.sh", 100).unwrap().unwrap().bytes, b"new");
        symlink("scripts", dir.path().join("alias")).unwrap();
        assert!(
            read(dir.path(), "alias/x.sh", 100).is_err()
                && put(dir.path(), "alias/x.sh", b"", EXECUTABLE, SYNCED).is_err()
        );
        assert!(read(dir.path(), "../x", 100).is_err() && read(dir.path(), "/etc/passwd", 100).is_err());
    }

    #[test]
    fn a_listing_is_sorted_bounded_and_tells_kinds() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "s/b", b"", TEXT, SYNCED).unwrap();
        put(dir.path(), "s/a/x", b"", TEXT, SYNCED).unwrap();
        symlink("b", dir.path().join("s/c")).unwrap();
        let expected =
            [("a", FileKind::Folder), ("b", FileKind::File), ("c", FileKind::Link)].map(|(n, k)| (n.to_owned(), k));
        assert_eq!(list(dir.path(), "s", 3).unwrap(), expected);
        assert!(list(dir.path(), "s", 2).is_err());
        assert_eq!(list(dir.path(), "none", 2), Ok(Vec::new()));
    }
}
