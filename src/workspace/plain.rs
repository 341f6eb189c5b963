//! Files at exactly their names: below the workspace no symlink is followed, neither on the way nor at the end.
//!
//! For what the engine itself reads, compares and puts back (the scripts it judges by), where a link that leads
//! elsewhere in the workspace would already be wrong. What agents read and write goes through `contain`.
//!
//! Invariants: a name that is a symlink, a pipe or a folder is never read; a write replaces the name, never what a
//! link at that name points to; reads and listings are bounded.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::contain::Target;

/// A regular file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainFile {
    pub bytes: Vec<u8>,
    pub executable: bool,
}

/// What a name in a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    File,
    Folder,
    /// A symlink, a pipe, a device.
    Other,
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The names in a folder, sorted; none where there is no such folder. More than `most` is an error.
pub fn list(workspace: &Path, path: &str, most: usize) -> Result<Vec<(String, Kind)>, String> {
    let Some(folder) = folder(workspace, &parts(path)?, false)? else { return Ok(Vec::new()) };
    let failed = |error: Errno| format!("{path}: {}", std::io::Error::from(error));
    let mut names = Vec::new();
    for entry in Dir::read_from(&folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = String::from_utf8_lossy(entry.file_name().to_bytes()).into_owned();
        if name == "." || name == ".." {
            continue;
        }
        if names.len() >= most {
            return Err(format!("{path} has more than {most} entries"));
        }
        // Some file systems do not tell the kind while they list.
        let kind = match entry.file_type() {
            FileType::Unknown => kind_of(&folder, &name),
            known => kind(known),
        };
        names.push((name, kind));
    }
    names.sort();
    Ok(names)
}

/// The content of a regular file; `None` where nothing has that name.
pub fn read(workspace: &Path, path: &str, limit: usize) -> Result<Option<PlainFile>, String> {
    let (parent, name) = split(path)?;
    let Some(folder) = folder(workspace, &parent, false)? else { return Ok(None) };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(&folder, name.as_str(), flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(format!("{path} is a symlink, not a file")),
        Err(error) => return Err(format!("{path}: {}", std::io::Error::from(error))),
    };
    let meta = file.metadata().map_err(|error| format!("{path}: {error}"))?;
    if !meta.is_file() {
        return Err(format!("{path} is not a regular file"));
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    file.take(most).read_to_end(&mut bytes).map_err(|error| format!("{path}: {error}"))?;
    if bytes.len() > limit {
        return Err(format!("{path} has more than {limit} bytes"));
    }
    Ok(Some(PlainFile { bytes, executable: meta.permissions().mode() & 0o111 != 0 }))
}

/// Puts exactly this file at exactly this name, at once. What had the name is gone, unless it is a folder.
pub fn put(workspace: &Path, path: &str, content: &[u8], executable: bool) -> Result<(), String> {
    let (parent, name) = split(path)?;
    let folder = folder(workspace, &parent, true)?.ok_or_else(|| format!("the folder of {path} cannot be made"))?;
    let mode = if executable { 0o755 } else { 0o644 };
    Target::at(folder, name.into(), mode).replace(content).map_err(|error| format!("{path} was not written: {error}"))
}

fn kind_of(folder: &OwnedFd, name: &str) -> Kind {
    let found = rustix::fs::statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
    found.map_or(Kind::Other, |stat| kind(FileType::from_raw_mode(stat.st_mode)))
}

fn kind(kind: FileType) -> Kind {
    match kind {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Folder,
        _ => Kind::Other,
    }
}

/// The parts of a relative path; `..` and the like are refused.
fn parts(path: &str) -> Result<Vec<String>, String> {
    let parts = Path::new(path).components().filter(|part| *part != Component::CurDir).map(|part| match part {
        Component::Normal(name) => Ok(name.to_string_lossy().into_owned()),
        _ => Err(format!("{path} leaves the workspace")),
    });
    parts.collect()
}

fn split(path: &str) -> Result<(Vec<String>, String), String> {
    let mut parent = parts(path)?;
    let name = parent.pop().ok_or_else(|| "the path names no file".to_owned())?;
    Ok((parent, name))
}

/// Opens a folder below the workspace, step by step; `None` where it is missing and not to be made.
fn folder(workspace: &Path, parts: &[String], make: bool) -> Result<Option<OwnedFd>, String> {
    let real = workspace.canonicalize().map_err(|error| format!("the workspace cannot be opened: {error}"))?;
    let mut folder = rustix::fs::open(&real, FOLDER, Mode::empty())
        .map_err(|error| format!("the workspace cannot be opened: {}", std::io::Error::from(error)))?;
    let mut so_far = PathBuf::new();
    for part in parts {
        so_far.push(part);
        if make {
            match rustix::fs::mkdirat(&folder, part.as_str(), Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(format!("{}: {}", so_far.display(), std::io::Error::from(error))),
            }
        }
        folder = match rustix::fs::openat(&folder, part.as_str(), FOLDER, Mode::empty()) {
            Ok(next) => next,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => return Err(format!("{} is not a folder", so_far.display())),
            Err(error) => return Err(format!("{}: {}", so_far.display(), std::io::Error::from(error))),
        };
    }
    Ok(Some(folder))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_put_and_read_back_with_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "a/b/run.sh", b"echo", true).unwrap();
        let there = read(dir.path(), "a/b/run.sh", 10).unwrap().unwrap();
        assert_eq!(there, PlainFile { bytes: b"echo".to_vec(), executable: true });
        put(dir.path(), "a/b/run.sh", b"true", false).unwrap();
        assert!(!read(dir.path(), "a/b/run.sh", 10).unwrap().unwrap().executable);
        assert_eq!(read(dir.path(), "a/none", 10), Ok(None));
        assert_eq!(read(dir.path(), "none/x", 10), Ok(None));
        assert!(read(dir.path(), "a/b/run.sh", 3).unwrap_err().contains("more than 3 bytes"));
    }

    #[test]
    fn a_link_is_neither_read_nor_written_through() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("product"), "mine").unwrap();
        std::fs::create_dir(dir.path().join("scripts")).unwrap();
        symlink("../product", dir.path().join("scripts/x.sh")).unwrap();
        assert!(read(dir.path(), "scripts/x.sh", 100).unwrap_err().contains("symlink"));
        put(dir.path(), "scripts/x.sh", b"new", true).unwrap();
        assert_eq!(std::fs::read(dir.path().join("product")).unwrap(), b"mine");
        assert_eq!(read(dir.path(), "scripts/x.sh", 100).unwrap().unwrap().bytes, b"new");
        symlink("scripts", dir.path().join("alias")).unwrap();
        assert!(read(dir.path(), "alias/x.sh", 100).is_err() && put(dir.path(), "alias/x.sh", b"", true).is_err());
        assert!(read(dir.path(), "../x", 100).is_err() && read(dir.path(), "/etc/passwd", 100).is_err());
    }

    #[test]
    fn a_listing_is_sorted_bounded_and_tells_kinds() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "s/b", b"", false).unwrap();
        put(dir.path(), "s/a/x", b"", false).unwrap();
        symlink("b", dir.path().join("s/c")).unwrap();
        let expected = [("a", Kind::Folder), ("b", Kind::File), ("c", Kind::Other)].map(|(n, k)| (n.to_owned(), k));
        assert_eq!(list(dir.path(), "s", 3).unwrap(), expected);
        assert!(list(dir.path(), "s", 2).is_err());
        assert_eq!(list(dir.path(), "none", 2), Ok(Vec::new()));
    }
}
