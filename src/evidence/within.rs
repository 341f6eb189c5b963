//! Files of a workspace that may be hostile: the one way `verify` looks at them.
//!
//! Role: a relative name in, its bytes out, or what stands there instead. Not its role: judging, writing.
//! Invariants: every part of a name is opened beneath the one before and never through a link, so nothing outside
//! the folder is read; regular files only, without blocking, up to a limit.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::tool::tree;

/// Folders in folders that are looked into.
const MAX_DEPTH: usize = 16;

/// What stands at a name.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    Bytes(Vec<u8>),
    Missing,
    /// This part of the name is a link.
    Linked(String),
    /// A folder, pipe, socket or device.
    NotAFile,
    TooLarge,
    Unreadable(String),
}

/// Everything below a folder that is no folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Relative to the folder, sorted.
    pub names: Vec<String>,
    /// There is more than was looked at.
    pub cut: bool,
}

/// A folder that is looked into.
pub struct Within(OwnedFd);

impl Within {
    pub fn open(root: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(root, flags, Mode::empty())?))
    }

    /// The file of that name, if it is one and not larger than the limit.
    pub fn read(&self, name: &str, limit: u64) -> Found {
        let (dir, last) = match name.rsplit_once('/') {
            Some((dir, last)) => match self.enter(dir) {
                Ok(fd) => (Some(fd), last),
                Err(found) => return found,
            },
            None => (None, name),
        };
        let dir = dir.as_ref().unwrap_or(&self.0);
        match kind_of(dir, last) {
            Ok(FileType::RegularFile) => {}
            Ok(FileType::Symlink) => return Found::Linked(name.to_owned()),
            Ok(_) => return Found::NotAFile,
            Err(Errno::NOENT) => return Found::Missing,
            Err(error) => return Found::Unreadable(error.to_string()),
        }
        // It may have been exchanged since: no links, no waiting, and a second look.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(dir, last, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::NOENT) => return Found::Missing,
            Err(Errno::LOOP) => return Found::Linked(name.to_owned()),
            Err(error) => return Found::Unreadable(error.to_string()),
        };
        if !file.metadata().is_ok_and(|meta| meta.is_file()) {
            return Found::NotAFile;
        }
        let mut bytes = Vec::new();
        match file.take(limit.saturating_add(1)).read_to_end(&mut bytes) {
            Ok(_) if bytes.len() as u64 > limit => Found::TooLarge,
            Ok(_) => Found::Bytes(bytes),
            Err(error) => Found::Unreadable(error.to_string()),
        }
    }

    /// Takes a file away, if it is one and not reached through a link.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        let Some((dir, last)) = name.rsplit_once('/') else { return Ok(()) };
        let Ok(dir) = self.enter(dir) else { return Ok(()) };
        match kind_of(&dir, last) {
            Ok(FileType::RegularFile) => Ok(rustix::fs::unlinkat(&dir, last, AtFlags::empty())?),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// What lies below a folder, at most `limit` names. Links are listed, not followed.
    pub fn list(&self, dir: &str, limit: usize) -> Result<Listing, Found> {
        let mut listing = Listing::default();
        self.list_into(dir, "", limit, MAX_DEPTH, &mut listing)?;
        listing.names.sort();
        Ok(listing)
    }

    fn list_into(
        &self,
        dir: &str,
        below: &str,
        limit: usize,
        depth: usize,
        listing: &mut Listing,
    ) -> Result<(), Found> {
        let fd = self.enter(dir)?;
        let unreadable = |error: Errno| Found::Unreadable(error.to_string());
        for entry in Dir::read_from(&fd).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let Ok(name) = entry.file_name().to_str() else {
                listing
                    .names
                    .push(format!("{below}{}", tree::name_of(Path::new(&*entry.file_name().to_string_lossy()))));
                continue;
            };
            if name == "." || name == ".." {
                continue;
            }
            if listing.names.len() >= limit || depth == 0 {
                listing.cut = true;
                return Ok(());
            }
            match kind_of(&fd, name) {
                Ok(FileType::Directory) => {
                    let inner = format!("{below}{name}/");
                    // Gone or exchanged in the meantime: then it is listed as what it was.
                    if self.list_into(&format!("{dir}/{name}"), &inner, limit, depth - 1, listing).is_err() {
                        listing.names.push(inner);
                    }
                }
                _ => listing.names.push(format!("{below}{name}")),
            }
        }
        Ok(())
    }

    fn enter(&self, dir: &str) -> Result<OwnedFd, Found> {
        let unreadable = |error: Errno| Found::Unreadable(error.to_string());
        let mut at = self.0.try_clone().map_err(|error| Found::Unreadable(error.to_string()))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut entered = 0;
        for part in dir.split('/') {
            if matches!(part, "" | "." | "..") {
                return Err(Found::Unreadable(format!("`{dir}` is no plain name")));
            }
            entered += part.len() + 1;
            match kind_of(&at, part) {
                Ok(FileType::Directory) => {}
                Ok(FileType::Symlink) => return Err(Found::Linked(dir[..entered - 1].to_owned())),
                Ok(_) => return Err(Found::NotAFile),
                Err(Errno::NOENT) => return Err(Found::Missing),
                Err(error) => return Err(unreadable(error)),
            }
            at = rustix::fs::openat(&at, part, flags, Mode::empty()).map_err(unreadable)?;
        }
        Ok(at)
    }
}

fn kind_of(dir: &OwnedFd, name: &str) -> Result<FileType, Errno> {
    let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_stands_at_a_name_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("in"), dir.path().join("out"));
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), "s").unwrap();
        fs::write(root.join("a/b/file"), "12345").unwrap();
        symlink(&outside, root.join("away")).unwrap();
        symlink(outside.join("secret"), root.join("a/link")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, root.join("a/pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let within = Within::open(&root).unwrap();
        let read = |name| within.read(name, 5);
        assert_eq!(read("a/b/file"), Found::Bytes(b"12345".to_vec()));
        assert_eq!(within.read("a/b/file", 4), Found::TooLarge);
        assert_eq!(read("a/b/none"), Found::Missing);
        assert_eq!(read("a/none/file"), Found::Missing);
        assert_eq!(read("away/secret"), Found::Linked("away".to_owned()));
        assert_eq!(read("a/link"), Found::Linked("a/link".to_owned()));
        assert_eq!(read("a/pipe"), Found::NotAFile);
        assert_eq!(read("a/b"), Found::NotAFile);
        for name in ["../out/secret", "a/../../out/secret", "/etc/passwd", "a//b/file"] {
            assert!(matches!(read(name), Found::Unreadable(_)), "{name}");
        }
        for name in ["away/secret", "a/link", "a/b", "a/none/x"] {
            within.remove(name).unwrap();
        }
        assert!(outside.join("secret").exists() && root.join("a/link").is_symlink());
        fs::write(root.join("a/old"), "").unwrap();
        within.remove("a/old").unwrap();
        let names = within.list("a", 10).unwrap();
        assert_eq!((names.names, names.cut), (vec!["b/file".into(), "link".into(), "pipe".to_owned()], false));
        assert!(within.list("a", 1).unwrap().cut);
        assert_eq!(within.list("away", 10), Err(Found::Linked("away".to_owned())));
    }
}
