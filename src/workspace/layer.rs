//! Layers of an overlay over a workspace: one is built from edits, and what a command wrote into one is read and removed.
//!
//! Role: the files of a layer. Not its role: mounting (`tool::sandbox`). What a command wrote is hostile: any name, any
//! depth, links, pipes, folders that nobody may read.
//!
//! Invariants: no link is followed; depth and count are bounded, and beyond them is an error for whoever lists, while
//! whoever removes removes it all; a folder of ours is made readable to us by the handle that is then used.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::plain::{self, Bits, Durability, Fault, FileKind, What};

/// Deeper folders are not listed, and are lifted to be removed; each level holds a descriptor.
const MAX_DEPTH: usize = 200;
/// The mark of a folder that hides what lies below it.
const OPAQUE: &str = "user.overlay.opaque";

/// What a name in a layer means for who looks through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WrittenKind {
    File,
    Link,
    /// What lies below is not seen.
    Removed,
    /// A folder, seen together with what lies below it.
    Folder,
    /// A folder that was made anew: nothing of one below it is seen.
    NewFolder,
    /// A pipe, a socket, a device.
    Other,
}

/// One name in a layer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Written {
    /// From the root of the layer.
    pub path: PathBuf,
    pub kind: WrittenKind,
}

/// Shows this file.
pub fn put(layer: &Path, path: impl AsRef<Path>, content: &[u8], executable: bool) -> Result<(), Fault> {
    clear_way(layer, path.as_ref())?;
    plain::put(layer, path, content, Bits::Executable(executable), Durability::Replaceable)
}

/// Shows a link. What had the name in this layer is gone, unless it is a folder.
pub fn put_link(layer: &Path, path: impl AsRef<Path>, target: &Path) -> Result<(), Fault> {
    clear_way(layer, path.as_ref())?;
    plain::remove(layer, path.as_ref())?;
    plain::put_link(layer, path, target)
}

/// A folder was replaced by something else, which a hole hides: below it there is a folder again.
fn clear_way(layer: &Path, path: &Path) -> Result<(), Fault> {
    match way(layer, path)? {
        Some((prefix, FileKind::Other)) => plain::remove(layer, prefix).map(|_| ()),
        Some(_) | None => Ok(()),
    }
}

/// What stands in this layer where a path needs a folder.
fn way<'a>(layer: &Path, path: &'a Path) -> Result<Option<(&'a Path, FileKind)>, Fault> {
    let mut above: Vec<&Path> = path.ancestors().skip(1).filter(|prefix| !prefix.as_os_str().is_empty()).collect();
    above.reverse();
    for prefix in above {
        match plain::kind(layer, prefix)? {
            Some(FileKind::Folder) => {}
            Some(kind) => return Ok(Some((prefix, kind))),
            None => return Ok(None),
        }
    }
    Ok(None)
}

/// Shows nothing at this name, whatever lies below: a device 0:0, which everybody may make.
pub fn hide(layer: &Path, path: impl AsRef<Path>) -> Result<(), Fault> {
    let path = path.as_ref();
    // Where no folder is seen, nothing below it is.
    if way(layer, path)?.is_some() {
        return Ok(());
    }
    plain::remove(layer, path)?;
    let (folder, name) = plain::open_parent(layer, path)?;
    make_hole(&folder, &name).map_err(|error| Fault::new(path, What::Failed(error)))
}

#[cfg(target_os = "linux")]
fn make_hole(folder: &OwnedFd, name: &OsStr) -> rustix::io::Result<()> {
    rustix::fs::mknodat(folder, name, FileType::CharacterDevice, Mode::empty(), 0)
}

#[cfg(not(target_os = "linux"))]
fn make_hole(_folder: &OwnedFd, _name: &OsStr) -> rustix::io::Result<()> {
    Err(Errno::NOTSUP)
}

/// What a command wrote into a layer, sorted by path. More than `most` names, or too deep a folder, is an error. Folders
/// that we cannot read become readable to us.
pub fn written(upper: &Path, most: usize) -> Result<Vec<Written>, Fault> {
    let root = open_layer(upper)?;
    let mut listing = Listing { found: Vec::new(), most };
    listing.folder(&root, Path::new(""), 1)?;
    listing.found.sort();
    Ok(listing.found)
}

struct Listing {
    found: Vec<Written>,
    most: usize,
}

impl Listing {
    fn folder(&mut self, folder: &OwnedFd, path: &Path, depth: usize) -> Result<(), Fault> {
        if depth > MAX_DEPTH {
            return Err(Fault::new(path, What::TooMany(MAX_DEPTH)));
        }
        let failed = |error: Errno| Fault::new(path, What::Failed(error));
        for name in Dir::read_from(folder).map_err(failed)? {
            let Some(name) = name_in(name.map_err(failed)?.file_name().to_bytes()) else { continue };
            if self.found.len() >= self.most {
                return Err(Fault::new(path, What::TooMany(self.most)));
            }
            let below = path.join(&name);
            let failed = |error: Errno| Fault::new(&below, What::Failed(error));
            let Some(stat) = plain::stat_at(folder, &name).map_err(failed)? else { continue };
            let mut kind = kind_of(&stat);
            if kind == WrittenKind::Folder {
                let next = enter(folder, &name).map_err(failed)?;
                if is_opaque(&next) {
                    kind = WrittenKind::NewFolder;
                }
                self.folder(&next, &below, depth + 1)?;
            }
            self.found.push(Written { path: below, kind });
        }
        Ok(())
    }
}

/// Removes from a layer everything for which `keep` is false: files, links, holes, and folders that hold nothing any
/// more. A folder itself is not asked about. What lies too deep is never kept.
pub fn prune(upper: &Path, keep: &dyn Fn(&str) -> bool) -> Result<(), Fault> {
    let root = open_layer(upper)?;
    let mut pruning = Pruning { root: &root, keep, lifted: Vec::new(), count: 0 };
    pruning.folder(&root, Path::new(""), 1)?;
    // What was too deep stands at the root now, and may be deep itself.
    while let Some(name) = pruning.lifted.pop() {
        let mut rest = Pruning { root: &root, keep: &|_| false, lifted: Vec::new(), count: pruning.count };
        rest.entry(&root, &name, Path::new(&name), 1)?;
        pruning.count = rest.count;
        pruning.lifted.append(&mut rest.lifted);
    }
    Ok(())
}

/// Removes a layer, or the kernel's work folder, as a whole. One that is not there is removed already.
pub fn remove(folder: &Path) -> Result<(), Fault> {
    let failed = |error: io::Error| Fault::new(folder, What::Failed(Errno::from_io_error(&error).unwrap_or(Errno::IO)));
    match std::fs::symlink_metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(_) => prune(folder, &|_| false)?,
    }
    std::fs::remove_dir(folder).map_err(failed)
}

struct Pruning<'a> {
    root: &'a OwnedFd,
    keep: &'a dyn Fn(&str) -> bool,
    /// Names at the root of folders that lay too deep.
    lifted: Vec<OsString>,
    /// Makes their names differ.
    count: u64,
}

impl Pruning<'_> {
    /// Is the folder empty now?
    fn folder(&mut self, folder: &OwnedFd, path: &Path, depth: usize) -> Result<bool, Fault> {
        let failed = |error: Errno| Fault::new(path, What::Failed(error));
        let mut empty = true;
        for name in Dir::read_from(folder).map_err(failed)? {
            let Some(name) = name_in(name.map_err(failed)?.file_name().to_bytes()) else { continue };
            if !(depth == 1 && self.lifted.contains(&name)) {
                empty &= self.entry(folder, &name, &path.join(&name), depth)?;
            }
        }
        Ok(empty)
    }

    /// Is it gone now?
    fn entry(&mut self, folder: &OwnedFd, name: &OsStr, path: &Path, depth: usize) -> Result<bool, Fault> {
        let failed = |error: Errno| Fault::new(path, What::Failed(error));
        let Some(stat) = plain::stat_at(folder, name).map_err(failed)? else { return Ok(true) };
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            if (self.keep)(&super::tree::name_of(path)) {
                return Ok(false);
            }
            rustix::fs::unlinkat(folder, name, AtFlags::empty()).map_err(failed)?;
            return Ok(true);
        }
        let inner = enter(folder, name).map_err(failed)?;
        if depth >= MAX_DEPTH {
            return self.lift(folder, name).map_err(failed);
        }
        if !self.folder(&inner, path, depth + 1)? {
            return Ok(false);
        }
        rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR).map_err(failed)?;
        Ok(true)
    }

    /// Moves a folder to the root, to be removed from there.
    fn lift(&mut self, folder: &OwnedFd, name: &OsStr) -> rustix::io::Result<bool> {
        loop {
            self.count += 1;
            let to = OsString::from(format!("{}lifted-{}", super::tree::TEMPORARY, self.count));
            if plain::stat_at(self.root, &to)?.is_none() {
                rustix::fs::renameat(folder, name, self.root, &to)?;
                self.lifted.push(to);
                return Ok(true);
            }
        }
    }
}

fn open_layer(layer: &Path) -> Result<OwnedFd, Fault> {
    let failed = |error: io::Error| Fault::new(".", What::Failed(Errno::from_io_error(&error).unwrap_or(Errno::IO)));
    // A command may have changed the mode of what it saw as the workspace.
    let parent = layer.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = layer.file_name().ok_or_else(|| Fault::new(layer, What::Leaves))?;
    let parent = plain::open_root(parent).map_err(failed)?;
    enter(&parent, name).map_err(|error| failed(error.into()))
}

/// A folder in a folder, which we may then read and change.
fn enter(folder: &OwnedFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    const OURS: u32 = 0o700;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    #[cfg(target_os = "linux")]
    {
        let handle = rustix::fs::openat(folder, name, flags, Mode::empty())?;
        let mode = rustix::fs::fstat(&handle)?.st_mode & 0o7777;
        // The mode of what a handle without rights is on can only be changed by the system's name for it.
        let itself = format!("/proc/self/fd/{}", handle.as_raw_fd());
        if mode & OURS != OURS {
            rustix::fs::chmod(itself.as_str(), Mode::from_raw_mode(mode | OURS))?;
        }
        let readable = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat(&handle, ".", readable, Mode::empty())
    }
    #[cfg(not(target_os = "linux"))]
    plain::open_folder(folder, name)
}

fn name_in(bytes: &[u8]) -> Option<OsString> {
    (bytes != b"." && bytes != b"..").then(|| OsString::from_vec(bytes.to_vec()))
}

fn kind_of(stat: &Stat) -> WrittenKind {
    let kind = FileType::from_raw_mode(stat.st_mode);
    match FileKind::of(kind) {
        FileKind::File => WrittenKind::File,
        FileKind::Link => WrittenKind::Link,
        FileKind::Folder => WrittenKind::Folder,
        FileKind::Other if kind == FileType::CharacterDevice && stat.st_rdev == 0 => WrittenKind::Removed,
        FileKind::Other => WrittenKind::Other,
    }
}

#[cfg(target_os = "linux")]
fn is_opaque(folder: &OwnedFd) -> bool {
    let mut value = [0_u8; 1];
    matches!(rustix::fs::fgetxattr(folder, OPAQUE, &mut value[..]), Ok(1) if value == *b"y")
}

#[cfg(not(target_os = "linux"))]
fn is_opaque(_folder: &OwnedFd) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    fn kinds(upper: &Path) -> Vec<(String, WrittenKind)> {
        let found = written(upper, 100).unwrap();
        found.into_iter().map(|one| (super::super::tree::name_of(&one.path), one.kind)).collect()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn edits_make_a_layer_and_the_last_one_counts() {
        let dir = tempfile::tempdir().unwrap();
        let layer = dir.path();
        put(layer, "a/run.sh", b"exit 0", true).unwrap();
        hide(layer, "b/c").unwrap();
        hide(layer, "b/c").unwrap();
        put_link(layer, "l", Path::new("/etc/passwd")).unwrap();
        put_link(layer, "l", Path::new("a")).unwrap();
        hide(layer, "x").unwrap();
        put(layer, "x", b"back", false).unwrap();
        let expected = [
            ("a", WrittenKind::Folder),
            ("a/run.sh", WrittenKind::File),
            ("b", WrittenKind::Folder),
            ("b/c", WrittenKind::Removed),
            ("l", WrittenKind::Link),
            ("x", WrittenKind::File),
        ];
        assert_eq!(kinds(layer), expected.map(|(path, kind)| (path.to_owned(), kind)));
        assert_eq!(fs::metadata(layer.join("a/run.sh")).unwrap().mode() & 0o777, 0o755);
        assert_eq!(fs::read_link(layer.join("l")).unwrap(), Path::new("a"));
        // Nothing leaves the layer, and no folder is lost to a hole.
        assert!(put(layer, "l/y", b"", false).is_err() && hide(layer, "../y").is_err() && hide(layer, "a").is_err());
        // A folder that became a file or a link is a folder again; below what is no folder there is nothing to hide.
        hide(layer, "was").unwrap();
        put(layer, "was/folder/f", b"f", false).unwrap();
        assert_eq!(fs::read(layer.join("was/folder/f")).unwrap(), b"f");
        hide(layer, "x/below").unwrap();
        assert_eq!(fs::read(layer.join("x")).unwrap(), b"back");
    }

    #[test]
    fn what_is_not_kept_is_removed_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (upper, outside) = (dir.path().join("upper"), dir.path().join("outside"));
        fs::create_dir_all(upper.join("out/deep")).unwrap();
        fs::create_dir_all(upper.join("closed/in")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("victim"), "v").unwrap();
        fs::write(upper.join("out/deep/report"), "r").unwrap();
        fs::write(upper.join("out/junk"), "j").unwrap();
        fs::write(upper.join(OsStr::from_bytes(b"odd\xff\n")), "o").unwrap();
        symlink(&outside, upper.join("link")).unwrap();
        fs::set_permissions(upper.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(&upper, fs::Permissions::from_mode(0o000)).unwrap();
        assert_eq!(kinds(&upper).len(), 8);
        assert!(written(&upper, 7).unwrap_err().to_string().contains("more than 7 entries"));
        prune(&upper, &|path| path == "out/deep/report").unwrap();
        let left: Vec<String> = kinds(&upper).into_iter().map(|(path, _)| path).collect();
        assert_eq!(left, ["out", "out/deep", "out/deep/report"]);
        assert_eq!(fs::read_to_string(outside.join("victim")).unwrap(), "v");
        symlink(&outside, dir.path().join("alias")).unwrap();
        assert!(remove(&dir.path().join("alias")).is_err() && outside.join("victim").exists());
        remove(&upper).unwrap();
        remove(&upper).unwrap();
        assert!(!upper.exists());
    }

    #[test]
    fn no_depth_is_too_deep_to_be_removed() {
        let dir = tempfile::tempdir().unwrap();
        let upper = dir.path().join("upper");
        fs::create_dir(&upper).unwrap();
        let mut folder = open_layer(&upper).unwrap();
        for _ in 0..1_500 {
            rustix::fs::mkdirat(&folder, "d", Mode::from_raw_mode(0o500)).unwrap();
            folder = enter(&folder, OsStr::new("d")).unwrap();
            rustix::fs::openat(&folder, "f", OFlags::CREATE | OFlags::WRONLY, Mode::from_raw_mode(0)).unwrap();
        }
        // The name that a lifted folder would get.
        fs::write(upper.join(format!("{}lifted-1", super::super::tree::TEMPORARY)), "").unwrap();
        assert!(written(&upper, 10_000).is_err());
        prune(&upper, &|path| path == "d/f").unwrap();
        assert_eq!(kinds(&upper).len(), 2);
        remove(&upper).unwrap();
        assert!(!upper.exists());
    }
}
