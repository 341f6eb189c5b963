//! The workspace as path -> digest, so that what an iteration changed can be named.
//!
//! It reads; it never writes. What `.gitignore` excludes is not part of the tree (see `walk`).
//!
//! Invariants:
//! * a cached digest is used only for a file whose size, times and inode are those it had when
//!   it was hashed, and whose last change is clearly older than that look: a change within the
//!   clock's grain is never missed;
//! * a file is hashed by streaming, so its size does not matter for memory, and a stop is heard between two reads;
//! * what could not be read is named in `skipped`, never silently left out.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};
use sha2::Digest as _;

mod guarded;
mod ignored;

pub use guarded::REPOSITORY;
pub use ignored::{Ignored, ignored};

use super::plain::{self, FileKind};
use super::walk;
use crate::model::digest::Digest;

/// More than any workspace worth a loop; a bound against an endless one.
const MAX_FILES: usize = 200_000;
/// A larger file is known by its size and times: nobody waits for a digest of it.
const MAX_HASHED: u64 = 4 << 30;
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

/// How much time there is for a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    Walk,
    /// Nothing more is read: what is not known yet is known by its size and times.
    Hurry,
    Stop,
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
    /// The widths of these fields differ between systems.
    #[allow(clippy::unnecessary_cast, clippy::cast_lossless)]
    fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: stat.st_mtime as i128 * 1_000_000_000 + stat.st_mtime_nsec as i128,
            changed: stat.st_ctime as i128 * 1_000_000_000 + stat.st_ctime_nsec as i128,
        }
    }

    /// Stands for the content of a file that is too large to be read each time.
    fn digest(&self) -> Digest {
        let text = format!("{} {} {} {}", self.inode, self.size, self.modified, self.changed);
        Digest::of_parts(&[b"stamp\0", text.as_bytes()])
    }
}

/// Files are written under a name with this prefix first, so that one left by a crash is known for what it is.
pub const TEMPORARY: &str = ".nightloop-tmp-";

/// Removes what a killed engine left half-written in a workspace, before it counts as an artifact. Only the
/// owner of the workspace may call this.
pub fn remove_leftovers(root: &Path) -> io::Result<()> {
    let everything = walk::Range { enter: &|_| true, depth: None, stop: &|| false, ignored: false };
    walk::walk(root, &everything, &mut |seen| {
        if let walk::Seen::Entry(entry) = seen
            && entry.kind == FileKind::File
            && entry.name.as_encoded_bytes().starts_with(TEMPORARY.as_bytes())
        {
            // What cannot be removed is seen as what it is.
            let _ = rustix::fs::unlinkat(entry.folder, entry.name, rustix::fs::AtFlags::empty());
        }
        ControlFlow::Continue(())
    })
    .map(|_| ())
}

/// Takes a snapshot. `exclude` holds prefixes of relative paths, such as `evidence/`. `None`: it was stopped.
pub fn snapshot(
    root: &Path,
    exclude: &[&str],
    previous: Option<&TreeCache>,
    pace: &dyn Fn() -> Pace,
) -> io::Result<Option<(TreeSnapshot, TreeCache)>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let mut cache = TreeCache { taken: i128::try_from(now).unwrap_or(0), files: BTreeMap::new() };
    let mut snapshot = TreeSnapshot::default();
    let excluded: Vec<&str> = exclude.iter().map(|prefix| prefix.trim_end_matches('/')).collect();
    let enter = |path: &Path| !excluded.iter().any(|prefix| path.starts_with(prefix));
    let range = walk::Range { enter: &enter, depth: None, stop: &|| pace() == Pace::Stop, ignored: false };
    let finished = walk::walk(root, &range, &mut |seen| match seen {
        walk::Seen::LeftOut(why) => {
            snapshot.skipped.push(why);
            ControlFlow::Continue(())
        }
        walk::Seen::Entry(entry) => take(&entry, previous, pace, &mut snapshot, &mut cache),
    })?;
    if !finished || pace() == Pace::Stop {
        return Ok(None);
    }
    snapshot.guarded = Some(guarded::collect(root));
    Ok(Some((snapshot, cache)))
}

/// Takes one entry into a snapshot.
fn take(
    entry: &walk::Entry<'_>,
    previous: Option<&TreeCache>,
    pace: &dyn Fn() -> Pace,
    snapshot: &mut TreeSnapshot,
    cache: &mut TreeCache,
) -> ControlFlow<()> {
    let name = name_of(entry.path);
    if snapshot.files.len() >= MAX_FILES {
        snapshot.skipped.push(format!("{name} and what follows: more than {MAX_FILES} files"));
        return ControlFlow::Break(());
    }
    if snapshot.files.contains_key(&name) {
        snapshot.skipped.push(format!("{name}: two names that are written the same"));
        return ControlFlow::Continue(());
    }
    match look(entry.folder, entry.name, previous.map(|cache| (cache, name.as_str())), pace) {
        Ok(Look::State(state, stamp)) => {
            if let Some(stamp) = stamp {
                cache.files.insert(name.clone(), (stamp, state.sha256));
            }
            snapshot.files.insert(name, state);
        }
        Ok(Look::Unread(state, why)) => {
            snapshot.skipped.push(format!("{name}: {why}; known by its size and times only"));
            snapshot.files.insert(name, state);
        }
        Ok(Look::Odd) => snapshot.skipped.push(format!("{name}: not a file, folder or symlink")),
        // Gone between the listing and the look: then it is simply not there.
        Ok(Look::Gone) => {}
        Ok(Look::Stopped) => return ControlFlow::Break(()),
        Err(error) => snapshot.skipped.push(format!("{name}: {error}")),
    }
    ControlFlow::Continue(())
}

/// What a look at a name came to.
enum Look {
    /// Its state, and its stamp if the state may be remembered.
    State(FileState, Option<Stamp>),
    /// Its stamp in place of its content, and why.
    Unread(FileState, &'static str),
    Odd,
    Gone,
    Stopped,
}

fn look(
    folder: &OwnedFd,
    name: &OsStr,
    previous: Option<(&TreeCache, &str)>,
    pace: &dyn Fn() -> Pace,
) -> io::Result<Look> {
    let Some(stat) = plain::stat_at(folder, name)? else { return Ok(Look::Gone) };
    match FileKind::of(FileType::from_raw_mode(stat.st_mode)) {
        FileKind::Link => {
            let target = rustix::fs::readlinkat(folder, name, Vec::new())?;
            // The prefix keeps a link apart from a file that holds the same text.
            let sha256 = Digest::of_parts(&[b"symlink\0", target.to_bytes()]);
            let size = target.to_bytes().len() as u64;
            return Ok(Look::State(FileState { sha256, size, executable: false }, None));
        }
        FileKind::Folder | FileKind::Other => return Ok(Look::Odd),
        FileKind::File => {}
    }
    let stamp = Stamp::of(&stat);
    let executable = stat.st_mode & 0o111 != 0;
    if let Some(sha256) = previous.and_then(|(cache, name)| cache.remembered(name, &stamp)) {
        return Ok(Look::State(FileState { sha256, size: stamp.size, executable }, Some(stamp)));
    }
    if stamp.size > MAX_HASHED {
        return Ok(Look::Unread(FileState { sha256: stamp.digest(), size: stamp.size, executable }, "very large"));
    }
    let mut file = match plain::open_file(folder, name) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(Look::Gone),
        Err(plain::What::Failed(error)) => return Err(error.into()),
        Err(_) => return Ok(Look::Odd),
    };
    let before = Stamp::of(&rustix::fs::fstat(&file)?);
    let Some((sha256, size)) = hash(&mut file, pace)? else {
        let unread = FileState { sha256: stamp.digest(), size: stamp.size, executable };
        return Ok(if pace() == Pace::Stop { Look::Stopped } else { Look::Unread(unread, "the time was up") });
    };
    // Written to while we read: the digest is of what we read, but must not be remembered.
    let steady = Stamp::of(&rustix::fs::fstat(&file)?) == before && before == stamp && size == stamp.size;
    Ok(Look::State(FileState { sha256, size, executable }, steady.then_some(stamp)))
}

/// The digest of at most so much of a file; `None`: there was no time for it.
fn hash(file: &mut File, pace: &dyn Fn() -> Pace) -> io::Result<Option<(Digest, u64)>> {
    let mut hasher = sha2::Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    let mut size = 0;
    loop {
        if pace() != Pace::Walk {
            return Ok(None);
        }
        match file.read(&mut buffer) {
            Ok(0) => return Ok(Some((Digest::from_bytes(hasher.finalize().into()), size))),
            Ok(count) => {
                hasher.update(&buffer[..count]);
                size += count as u64;
                // It grows while it is read; whoever writes it is not waited for.
                if size > MAX_HASHED {
                    return Ok(Some((Digest::from_bytes(hasher.finalize().into()), size)));
                }
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
