//! A copy of a workspace to rehearse in: what `.gitignore` does not exclude, without `.git` and old evidence.
//!
//! Invariants: the original is only read; a link that leads out of the workspace is not copied, so that nothing
//! outside can be written through it; sizes are bounded.

use std::io;
use std::path::{Component, Path, PathBuf};

use super::plain::{self, Bits, Durability, FileKind};
use super::tree::{self, Pace};

const MAX_FILES: usize = 50_000;
const MAX_BYTES: u64 = 1 << 30;
/// What an earlier run wrote is nothing to start from.
const LEFT_OUT: &[&str] = &["evidence/"];

/// What was copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    pub files: usize,
    pub bytes: u64,
    /// Links that lead elsewhere, and what could not be read.
    pub left_out: Vec<String>,
}

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    #[error("the workspace has {files} files and {bytes} bytes; at most {MAX_FILES} and {MAX_BYTES} are copied")]
    TooMuch { files: usize, bytes: u64 },
    #[error(transparent)]
    Io(#[from] io::Error),
}

pub fn copy(from: &Path, to: &Path) -> Result<Copied, CopyError> {
    let taken = tree::snapshot(from, LEFT_OUT, None, &|| Pace::Walk)?;
    let (tree, _) = taken.ok_or_else(|| io::Error::other("the look at the workspace was stopped"))?;
    let bytes = tree.files.values().map(|file| file.size).sum();
    if tree.files.len() > MAX_FILES || bytes > MAX_BYTES {
        return Err(CopyError::TooMuch { files: tree.files.len(), bytes });
    }
    std::fs::create_dir_all(to)?;
    let mut copied = Copied { files: 0, bytes, left_out: tree.skipped };
    for name in tree.files.keys() {
        match copy_one(from, to, name)? {
            None => copied.files += 1,
            Some(why) => copied.left_out.push(format!("{name} ({why})")),
        }
    }
    Ok(copied)
}

/// Copies one name; says why not, where it is left out.
fn copy_one(from: &Path, to: &Path, name: &str) -> io::Result<Option<String>> {
    match plain::kind(from, name) {
        Ok(Some(FileKind::Link)) => {
            let link = plain::link(from, name).ok().flatten().filter(|link| stays_inside(name, link));
            let Some(link) = link else { return Ok(Some("a link that leads out of the workspace".to_owned())) };
            plain::put_link(to, name, &link).map_err(plain::Fault::into_io)?;
        }
        Ok(Some(_)) => match plain::read(from, name, MAX_BYTES as usize) {
            Ok(Some(file)) => {
                let bits = Bits::Executable(file.executable);
                plain::put(to, name, &file.bytes, bits, Durability::Replaceable).map_err(plain::Fault::into_io)?;
            }
            Ok(None) => return Ok(Some("it is gone".to_owned())),
            Err(fault) => return Ok(Some(fault.to_string())),
        },
        Ok(None) => return Ok(Some("it is gone".to_owned())),
        Err(fault) => return Ok(Some(fault.to_string())),
    }
    Ok(None)
}

/// Does a link at this place of the workspace stay in it, going by its text?
fn stays_inside(name: &str, link: &Path) -> bool {
    let mut depth = PathBuf::from(name).components().count().saturating_sub(1);
    for part in link.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir => match depth.checked_sub(1) {
                Some(up) => depth = up,
                None => return false,
            },
            Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn copies_what_counts_and_leaves_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        for folder in ["src", "target", "evidence/loop", ".git"] {
            fs::create_dir_all(from.join(folder)).unwrap();
        }
        for (name, text) in [
            ("src/a.sh", "#!/bin/sh\n"),
            (".hidden", "h"),
            (".gitignore", "target/\n"),
            ("target/big", "x"),
            ("evidence/loop/old.json", "{}"),
            (".git/config", "c"),
        ] {
            fs::write(from.join(name), text).unwrap();
        }
        fs::set_permissions(from.join("src/a.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("a.sh", from.join("src/inside")).unwrap();
        symlink("../../outside", from.join("src/outside")).unwrap();
        symlink("/etc/hostname", from.join("absolute")).unwrap();
        let copied = copy(&from, &to).unwrap();
        assert_eq!(copied.files, 4, "{copied:?}");
        assert_eq!(copied.left_out.len(), 2, "{copied:?}");
        assert_eq!(fs::metadata(to.join("src/a.sh")).unwrap().permissions().mode() & 0o111, 0o111);
        assert_eq!(fs::read_link(to.join("src/inside")).unwrap(), Path::new("a.sh"));
        for gone in ["target", "evidence", ".git", "absolute", "src/outside"] {
            assert!(fs::symlink_metadata(to.join(gone)).is_err(), "{gone}");
        }
    }
}
