//! Files of a workspace as `verify` looks at them.
//!
//! Role: a relative name in, its bytes out, or what stands there instead. Not its role: judging, writing, opening
//! (`workspace::plain` does that, and follows no link).

use std::io;
use std::path::{Path, PathBuf};

use crate::workspace::plain::{self, Fault, FileKind, What};

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

impl From<Fault> for Found {
    fn from(fault: Fault) -> Self {
        match fault.what {
            What::NotAFile(FileKind::Link) | What::NotAFolder(FileKind::Link) => Self::Linked(fault.place),
            What::NotAFile(_) | What::NotAFolder(_) => Self::NotAFile,
            What::TooLarge(_) => Self::TooLarge,
            What::TooMany(_) | What::Leaves | What::Failed(_) => Self::Unreadable(fault.to_string()),
        }
    }
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
pub struct Within(PathBuf);

impl Within {
    pub fn open(root: &Path) -> io::Result<Self> {
        plain::open_root(root)?;
        Ok(Self(root.to_owned()))
    }

    /// The file of that name, if it is one and not larger than the limit.
    pub fn read(&self, name: &str, limit: u64) -> Found {
        match plain::read(&self.0, name, usize::try_from(limit).unwrap_or(usize::MAX)) {
            Ok(Some(file)) => Found::Bytes(file.bytes),
            Ok(None) => Found::Missing,
            Err(fault) => fault.into(),
        }
    }

    /// What lies below a folder, at most `limit` names. Links are listed, not followed.
    pub fn list(&self, dir: &str, limit: usize) -> Result<Listing, Found> {
        if plain::kind(&self.0, dir)?.is_none() {
            return Err(Found::Missing);
        }
        let mut listing = Listing::default();
        self.list_into(dir, "", limit, 0, &mut listing)?;
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
        // One more than may be listed, so that a fuller folder is known to be one.
        let entries = match plain::list(&self.0, dir, limit.saturating_add(1)) {
            Ok(entries) => entries,
            Err(Fault { what: What::TooMany(_), .. }) => {
                listing.cut = true;
                return Ok(());
            }
            Err(fault) => return Err(fault.into()),
        };
        for (name, kind) in entries {
            if listing.names.len() >= limit || depth > MAX_DEPTH {
                listing.cut = true;
                return Ok(());
            }
            match kind {
                FileKind::Folder => {
                    self.list_into(&format!("{dir}/{name}"), &format!("{below}{name}/"), limit, depth + 1, listing)?;
                }
                FileKind::File | FileKind::Link | FileKind::Other => listing.names.push(format!("{below}{name}")),
            }
        }
        Ok(())
    }
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
        rustix::fs::mknodat(
            rustix::fs::CWD,
            root.join("a/pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
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
        for name in ["../out/secret", "a/../../out/secret", "/etc/passwd"] {
            assert!(matches!(read(name), Found::Unreadable(_)), "{name}");
        }
        let names = within.list("a", 10).unwrap();
        assert_eq!((names.names, names.cut), (vec!["b/file".into(), "link".into(), "pipe".to_owned()], false));
        assert!(within.list("a", 1).unwrap().cut);
        assert_eq!(within.list("away", 10), Err(Found::Linked("away".to_owned())));
    }
}
