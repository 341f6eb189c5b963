//! The private temporary folder of a run.
//!
//! A folder of its own rather than all of `/tmp`: what lies there belongs to other programs of the same user
//! (sockets of terminals and key agents among it), and what a run leaves is gone with the run.
//!
//! Invariants: only we can enter it (0700, owned by us, no symlink); it is removed when the run is closed, and
//! one that a killed engine left behind is taken over and emptied when the same run is opened again.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The part that commands may write; exported as TMPDIR.
pub(super) const TMP: &str = "tmp";
/// An empty folder that is put over places nobody may see.
pub(super) const VOID: &str = "void";
/// Begins the name of every such folder.
pub(super) const PREFIX: &str = "nightloop-";

#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn open(run: &str) -> io::Result<Self> {
        let base = std::env::temp_dir().canonicalize()?;
        let path = base.join(format!("{PREFIX}{run}"));
        if !Self::make(&path)? {
            let left_by_us = fs::symlink_metadata(&path).is_ok_and(|meta| {
                meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o077 == 0
            });
            if !left_by_us {
                let why = format!("{} exists and is not ours; remove it", path.display());
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
            }
            remove(&path)?;
            if !Self::make(&path)? {
                let why = format!("{} came back while it was removed", path.display());
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
            }
        }
        let scratch = Self(path);
        scratch.restore()?;
        Ok(scratch)
    }

    /// Makes again what somebody who cleans up took away during a long run.
    pub(super) fn restore(&self) -> io::Result<()> {
        Self::make(&self.0)?;
        Self::make(&self.0.join(TMP))?;
        Self::make(&self.0.join(VOID))?;
        Ok(())
    }

    /// False if something is there already.
    fn make(path: &Path) -> io::Result<bool> {
        match fs::DirBuilder::new().mode(0o700).create(path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(io::Error::new(error.kind(), format!("cannot make {}: {error}", path.display()))),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now is removed when the run is opened again, or by whoever cleans /tmp.
        let _ = remove(&self.0);
    }
}

/// Removes the folder although a command took away its own right to change a part of it.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    if fs::remove_dir_all(path).is_ok() {
        return Ok(());
    }
    open_up(path, 0);
    fs::remove_dir_all(path)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot remove {}: {error}", path.display())))
}

/// Makes every folder below changeable by us. Links are not followed.
fn open_up(path: &Path, depth: usize) {
    const MAX_DEPTH: usize = 256;
    let is_folder = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
    if !is_folder || depth > MAX_DEPTH {
        return;
    }
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        open_up(&entry.path(), depth + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> String {
        format!("test-{}", crate::tool::environment::new_call_id())
    }

    #[test]
    fn is_private_and_goes_with_the_run() {
        let scratch = Scratch::open(&name()).unwrap();
        let path = scratch.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        fs::write(path.join(TMP).join("left"), "x").unwrap();
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_killed_engine_left_is_emptied() {
        let name = name();
        let first = Scratch::open(&name).unwrap();
        fs::write(first.path().join(TMP).join("left"), "x").unwrap();
        std::mem::forget(first);
        let second = Scratch::open(&name).unwrap();
        assert!(second.path().join(TMP).is_dir() && !second.path().join(TMP).join("left").exists());
    }

    #[test]
    fn a_trap_is_refused() {
        let name = name();
        let path = std::env::temp_dir().join(format!("{PREFIX}{name}"));
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), &path).unwrap();
        assert!(Scratch::open(&name).unwrap_err().to_string().contains("is not ours"));
        fs::remove_file(path).unwrap();
    }
}
