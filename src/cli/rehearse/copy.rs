//! A copy of a workspace to rehearse in: what `.gitignore` does not exclude, without `.git` and old evidence.
//!
//! Invariants: the original is only read; a link that leads out of the workspace is not copied, so that nothing
//! outside can be written through it; sizes are bounded.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::engine::error::EngineError;
use crate::workspace::tree;

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

pub fn copy(from: &Path, to: &Path) -> Result<Copied, EngineError> {
    let unreadable = |e| EngineError::io("cannot read the workspace", from, e);
    let (tree, _) = tree::snapshot(from, LEFT_OUT, None).map_err(unreadable)?;
    let bytes = tree.files.values().map(|file| file.size).sum();
    if tree.files.len() > MAX_FILES || bytes > MAX_BYTES {
        return Err(EngineError::usage(
            format!(
                "the workspace has {} files and {bytes} bytes; at most {MAX_FILES} and {MAX_BYTES} are copied",
                tree.files.len()
            ),
            "name build output and data in .gitignore: what it excludes is not copied",
        ));
    }
    let unwritable = |path: &Path, e| EngineError::io("cannot copy the workspace", path, e);
    fs::create_dir_all(to).map_err(|e| unwritable(to, e))?;
    let mut copied = Copied { files: 0, bytes, left_out: tree.skipped };
    for name in tree.files.keys() {
        let (source, target) = (from.join(name), to.join(name));
        let Ok(meta) = fs::symlink_metadata(&source) else {
            copied.left_out.push(name.clone());
            continue;
        };
        let parent = target.parent().unwrap_or(to);
        fs::create_dir_all(parent).map_err(|e| unwritable(parent, e))?;
        if meta.is_symlink() {
            match fs::read_link(&source).ok().filter(|link| stays_inside(name, link)) {
                Some(link) => std::os::unix::fs::symlink(link, &target).map_err(|e| unwritable(&target, e))?,
                None => {
                    copied.left_out.push(format!("{name} (a link that leads out of the workspace)"));
                    continue;
                }
            }
        } else {
            fs::copy(&source, &target).map_err(|e| unwritable(&target, e))?;
        }
        copied.files += 1;
    }
    Ok(copied)
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
