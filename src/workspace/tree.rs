//! The workspace as path -> digest, so that what an iteration changed can be named.
//!
//! It reads; it never writes. What `.gitignore` excludes is not part of the tree (see `walk`).
//!
//! Invariants:
//! * a cached digest is used only for a file whose size, times and inode are those it had when
//!   it was hashed, and whose last change is clearly older than that look: a change within the
//!   clock's grain is never missed;
//! * a file is hashed by streaming, so its size does not matter for memory;
//! * what could not be read is named in `skipped`, never silently left out.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::Digest as _;

mod guarded;

use super::walk;
use crate::model::digest::Digest;

/// More than any workspace worth a loop; a bound against an endless one.
const MAX_FILES: usize = 200_000;
/// Changes this close before a look are hashed again at the next one.
const GRAIN_NANOS: i128 = 2_000_000_000;

/// One file's state. A symlink's digest and size are those of its target's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    pub sha256: Digest,
    pub size: u64,
    pub executable: bool,
}

/// The tree at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeSnapshot {
    /// By path relative to the root, `/` between parts, bytes that are no UTF-8 as `\xNN`.
    pub files: BTreeMap<String, FileState>,
    /// What is not in `files`, and why.
    pub skipped: Vec<String>,
    /// Files that run by themselves, in the tree or not. Trees from before they were looked at have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guarded: Option<BTreeMap<String, FileState>>,
}

/// Digests worth remembering for the next snapshot.
#[derive(Debug, Clone, Default)]
pub struct TreeCache {
    taken: i128,
    files: BTreeMap<String, (Stamp, Digest)>,
}

/// What tells an unchanged file from a changed one. The change time (ctime) is in it because a
/// program can set the modification time back, but not this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: i128,
    changed: i128,
}

impl Stamp {
    fn of(meta: &Metadata) -> Self {
        let nanos = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: nanos(meta.mtime(), meta.mtime_nsec()),
            changed: nanos(meta.ctime(), meta.ctime_nsec()),
        }
    }
}

/// Files are written under a name with this prefix first, so that one left by a crash is known for what it is.
pub const TEMPORARY: &str = ".nightloop-tmp-";

/// Removes what a killed engine left half-written in a workspace, before it counts as an artifact. Only the
/// owner of the workspace may call this.
pub fn remove_leftovers(root: &Path) -> io::Result<()> {
    for entry in walk::walk(root, None, |_| true).flatten() {
        if walk::is_file(&entry) && entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Takes a snapshot. `exclude` holds prefixes of relative paths, such as `evidence/`.
pub fn snapshot(root: &Path, exclude: &[&str], previous: Option<&TreeCache>) -> io::Result<(TreeSnapshot, TreeCache)> {
    if !fs::metadata(root)?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, format!("{} is no folder", root.display())));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let mut cache = TreeCache { taken: i128::try_from(now).unwrap_or(0), files: BTreeMap::new() };
    let mut snapshot = TreeSnapshot::default();
    let excluded: Vec<String> = exclude.iter().map(|prefix| prefix.trim_end_matches('/').to_owned()).collect();
    let enter = move |path: &Path| !excluded.iter().any(|prefix| path.starts_with(prefix));
    for entry in walk::walk(root, None, enter) {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                snapshot.skipped.push(error.to_string());
                continue;
            }
        };
        if entry.depth() == 0 || entry.file_type().is_some_and(|kind| kind.is_dir()) {
            continue;
        }
        let name = name_of(entry.path().strip_prefix(root).unwrap_or(entry.path()));
        if snapshot.files.len() >= MAX_FILES {
            snapshot.skipped.push(format!("{name} and what follows: more than {MAX_FILES} files"));
            break;
        }
        if snapshot.files.contains_key(&name) {
            snapshot.skipped.push(format!("{name}: two names that are written the same"));
            continue;
        }
        match look(entry.path(), &name, previous) {
            Ok(Some((state, stamp))) => {
                if let Some(stamp) = stamp {
                    cache.files.insert(name.clone(), (stamp, state.sha256));
                }
                snapshot.files.insert(name, state);
            }
            Ok(None) => snapshot.skipped.push(format!("{name}: not a file, folder or symlink")),
            // Gone between the listing and the look: then it is simply not there.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => snapshot.skipped.push(format!("{name}: {error}")),
        }
    }
    snapshot.guarded = Some(guarded::collect(root));
    Ok((snapshot, cache))
}

/// One file's state, and its stamp if the state may be remembered.
fn look(path: &Path, name: &str, previous: Option<&TreeCache>) -> io::Result<Option<(FileState, Option<Stamp>)>> {
    let meta = fs::symlink_metadata(path)?;
    if meta.is_symlink() {
        let target = fs::read_link(path)?;
        let target = target.as_os_str().as_bytes();
        // The prefix keeps a link apart from a file that holds the same text.
        let sha256 = Digest::of_parts(&[b"symlink\0", target]);
        return Ok(Some((FileState { sha256, size: target.len() as u64, executable: false }, None)));
    }
    if !meta.is_file() {
        return Ok(None);
    }
    let stamp = Stamp::of(&meta);
    let executable = meta.mode() & 0o111 != 0;
    if let Some(sha256) = previous.and_then(|cache| cache.remembered(name, &stamp)) {
        return Ok(Some((FileState { sha256, size: stamp.size, executable }, Some(stamp))));
    }
    // NOFOLLOW and NONBLOCK: the file may have been swapped for a link or a pipe since.
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits();
    let mut file = OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path)?;
    let before = Stamp::of(&file.metadata()?);
    let (sha256, size) = hash(&mut file)?;
    // Written to while we read: the digest is of what we read, but must not be remembered.
    let steady = Stamp::of(&file.metadata()?) == before && before == stamp && size == stamp.size;
    Ok(Some((FileState { sha256, size, executable }, steady.then_some(stamp))))
}

fn hash(file: &mut File) -> io::Result<(Digest, u64)> {
    let mut hasher = sha2::Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut size = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok((Digest::from_bytes(hasher.finalize().into()), size)),
            Ok(count) => {
                hasher.update(&buffer[..count]);
                size += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

impl TreeCache {
    fn remembered(&self, name: &str, stamp: &Stamp) -> Option<Digest> {
        let (known, sha256) = self.files.get(name)?;
        let settled = stamp.modified.max(stamp.changed) < self.taken - GRAIN_NANOS;
        (known == stamp && settled).then_some(*sha256)
    }
}

/// A relative path as text.
pub fn name_of(path: &Path) -> String {
    let mut name = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        name.push_str(chunk.valid());
        for byte in chunk.invalid() {
            name.push_str(&format!("\\x{byte:02x}"));
        }
    }
    name
}

/// What happened to one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

/// One path that differs; the digest is that of the new content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub path: String,
    pub kind: ChangeKind,
    pub sha256: Option<Digest>,
}

/// What changed, sorted by path.
pub fn diff(before: &TreeSnapshot, after: &TreeSnapshot) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for (path, state) in &after.files {
        let kind = match before.files.get(path) {
            None => ChangeKind::Added,
            Some(old) if old != state => ChangeKind::Modified,
            Some(_) => continue,
        };
        changes.push(Change { path: path.clone(), kind, sha256: Some(state.sha256) });
    }
    for path in before.files.keys().filter(|path| !after.files.contains_key(*path)) {
        changes.push(Change { path: path.clone(), kind: ChangeKind::Deleted, sha256: None });
    }
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    changes
}

impl TreeSnapshot {
    /// What a file is, in the tree or among what runs by itself.
    pub fn state_of(&self, path: &str) -> Option<&FileState> {
        let guarded = self.guarded.as_ref().and_then(|guarded| guarded.get(path));
        guarded.or_else(|| self.files.get(path))
    }

    /// One digest for the whole tree: equal trees, equal digests.
    pub fn digest(&self) -> Digest {
        let mut text = Vec::new();
        for (path, state) in &self.files {
            let line = format!("{}\0{}\0{}\0{}\0", path, state.sha256, state.size, state.executable);
            text.extend_from_slice(line.as_bytes());
        }
        Digest::of(&text)
    }
}

#[cfg(test)]
mod tests;
