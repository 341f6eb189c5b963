//! What the run found, kept outside of the workspace so that it can be put back for a replay.
//!
//! By digest, so that a tree that is trusted later (an item was accepted) adds only what is new. Disposable: what is not
//! kept cannot be put back, which is told to whoever is asked, and counts against the change, never for it.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::model::decision::Unaccepted;
use crate::model::digest::Digest;
use crate::workspace::layer;
use crate::workspace::plain::{self, FileKind};
use crate::workspace::tree::{FileState, Ignored, TreeSnapshot};

use super::programs_at_start;

const MAX_FILES: usize = 30_000;
const MAX_FILE: u64 = 4 << 20;
const MAX_BYTES: u64 = 256 << 20;
/// What git ignores, by digest.
const IGNORED: &str = "ignored.json";

/// A file as it was.
pub(super) enum Kept {
    File { bytes: Vec<u8>, executable: bool },
    Link(PathBuf),
}

fn folder(run_dir: &Path) -> PathBuf {
    run_dir.join("start")
}

/// Keeps what the tree holds, as far as it is not kept yet. Best effort.
pub(super) fn keep(run_dir: &Path, workspace: &Path, tree: &TreeSnapshot) {
    let folder = folder(run_dir);
    if fs::create_dir_all(&folder).is_err() {
        return;
    }
    let mut left = MAX_BYTES;
    for (path, file) in tree.files.iter().filter(|(_, file)| file.size <= MAX_FILE).take(MAX_FILES) {
        let target = folder.join(file.sha256.to_string());
        if target.exists() {
            continue;
        }
        let Some(rest) = left.checked_sub(file.size) else { return };
        left = rest;
        let bytes = match plain::kind(workspace, path) {
            Ok(Some(FileKind::Link)) => {
                let link = plain::link(workspace, path).ok().flatten();
                link.map(|link| link.as_os_str().as_bytes().to_vec())
            }
            Ok(Some(FileKind::File)) => {
                plain::read(workspace, path, MAX_FILE as usize).ok().flatten().map(|file| file.bytes)
            }
            Ok(Some(FileKind::Folder | FileKind::Other)) | Ok(None) | Err(_) => None,
        };
        // A half-written copy is recognised by its digest when it is read.
        let _ = bytes.map(|bytes| fs::write(target, bytes));
    }
}

/// A file of a tree that was kept. `None`: it was not, or is damaged.
pub(super) fn file(run_dir: &Path, tree: &TreeSnapshot, path: &str) -> Option<Kept> {
    let state = tree.files.get(path)?;
    let bytes = fs::read(folder(run_dir).join(state.sha256.to_string())).ok()?;
    if Digest::of(&bytes) == state.sha256 {
        return Some(Kept::File { bytes, executable: state.executable });
    }
    let is_link = Digest::of_parts(&[b"symlink\0", &bytes]) == state.sha256;
    is_link.then(|| Kept::Link(PathBuf::from(std::ffi::OsStr::from_bytes(&bytes))))
}

/// The text of a file of a tree that was kept.
pub(super) fn text(run_dir: &Path, tree: &TreeSnapshot, path: &str) -> Option<String> {
    match file(run_dir, tree, path)? {
        Kept::File { bytes, .. } => String::from_utf8(bytes).ok(),
        Kept::Link(_) => None,
    }
}

/// How a file was that an earlier run changed. `None`: it was not there, or no copy of it is left.
pub(super) fn found_earlier(run_dir: &Path, file: &Unaccepted) -> Option<FileState> {
    let sha256 = file.found?;
    let size = fs::metadata(folder(run_dir).join(sha256.to_string())).ok()?.len();
    Some(FileState { sha256, size, executable: file.executable })
}

/// Takes a copy over from another folder of copies.
pub(super) fn copy(from: &Path, digest: &Digest, run_dir: &Path) {
    let name = digest.to_string();
    let _ = fs::create_dir_all(folder(run_dir)).and_then(|()| fs::copy(from.join(&name), folder(run_dir).join(&name)));
}

/// Puts a copy into another folder of copies.
pub(super) fn copy_out(run_dir: &Path, digest: &Digest, to: &Path) {
    let name = digest.to_string();
    let _ = fs::create_dir_all(to).and_then(|()| fs::copy(folder(run_dir).join(&name), to.join(&name)));
}

/// Keeps what the tree does not hold, since git ignores it.
pub(super) fn keep_ignored(run_dir: &Path, workspace: &Path, ignored: &Ignored) {
    let tree = TreeSnapshot { files: ignored.files.clone(), ..TreeSnapshot::default() };
    keep(run_dir, workspace, &tree);
    let _ = serde_json::to_vec(ignored).map(|text| fs::write(run_dir.join(IGNORED), text));
}

/// What git ignored when it was kept. `None`: that was not kept.
pub(super) fn ignored(run_dir: &Path) -> Option<Ignored> {
    serde_json::from_slice(&fs::read(run_dir.join(IGNORED)).ok()?).ok()
}

/// Where the layers of checks lie.
pub(super) fn layers(run_dir: &Path) -> PathBuf {
    run_dir.join("checks")
}

/// Removes what only a check or a replay needs, once none can come any more.
pub(super) fn clear(run_dir: &Path) {
    let _ = layer::remove(&layers(run_dir));
    let _ = fs::remove_dir_all(folder(run_dir));
    let _ = fs::remove_file(run_dir.join(IGNORED));
    programs_at_start::clear(run_dir);
}
