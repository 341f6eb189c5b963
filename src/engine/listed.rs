//! Which of very many changes a record lists.
//!
//! An installation into a workspace that does not ignore it brings tens of thousands of files. The record lists those
//! that matter most, says where the others are, and names a blob that holds all. Not here: finding the changes
//! (`trees`). Invariant: the same changes are listed in the same way, so that a look may be repeated after a crash.

use std::collections::BTreeMap;

use crate::journal::Blobs;
use crate::machine::event::{Change, ChangeKind, Unlisted};

use super::error::EngineError;

/// Changes that a record lists.
const MAX_LISTED: usize = 1_000;
/// Bytes of their paths: with digests and names of fields it is well below what a record holds.
const MAX_PATH_BYTES: usize = 256 * 1024;
/// All changes as a blob, at most.
const MAX_ALL: usize = 48 << 20;
/// A folder that holds this share of the new files is where they come from.
const MOST: (u64, u64) = (4, 5);

/// Folders that tools make: what is in them is not looked at any closer.
const MADE: [&str; 7] = [".venv", "build", "dist", "node_modules", "target", "vendor", "venv"];

/// What the record lists, of very many those that matter most first; `None`: that is all.
#[derive(Default)]
pub(super) struct Listed {
    pub changes: Vec<Change>,
    pub more: Option<Unlisted>,
}

/// Chooses what is listed. `watched`: a path that a verdict may depend on.
pub(super) fn of(blobs: &Blobs, all: Vec<Change>, watched: &dyn Fn(&str) -> bool) -> Result<Listed, EngineError> {
    let bytes: usize = all.iter().map(|change| change.path.len()).sum();
    if all.len() <= MAX_LISTED && bytes <= MAX_PATH_BYTES {
        return Ok(Listed { changes: all, more: None });
    }
    let text = as_text(&all);
    let kept = blobs.put(text.as_bytes())?;
    let total = all.len();
    let (folder, below) = source(&all);
    let mut changes = all;
    changes.sort_by_cached_key(|change| rank(change, &folder, watched));
    let mut bytes = 0;
    let fits = |change: &&Change| {
        bytes += change.path.len();
        bytes <= MAX_PATH_BYTES
    };
    let many = changes.iter().take(MAX_LISTED).take_while(fits).count();
    changes.truncate(many);
    let files = u64::try_from(total - changes.len()).unwrap_or(u64::MAX);
    Ok(Listed { changes, more: Some(Unlisted { files, folder, below, all: kept }) })
}

/// All changes that a record stands for.
pub(super) fn all(blobs: &Blobs, listed: &[Change], more: Option<&Unlisted>) -> Result<Vec<Change>, EngineError> {
    let Some(more) = more else { return Ok(listed.to_vec()) };
    let bytes = blobs.get(&more.all)?;
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let read = |line: &[u8]| serde_json::from_slice(line);
    let all: Result<Vec<Change>, _> = lines.map(read).collect();
    all.map_err(|e| EngineError::Internal(format!("the list of changes {}: {e}", more.all.short())))
}

/// One line each. A workspace whose names are longer than that has had no tree, either.
fn as_text(all: &[Change]) -> String {
    let mut text = String::new();
    for line in all.iter().filter_map(|change| serde_json::to_string(change).ok()) {
        if text.len() + line.len() >= MAX_ALL {
            break;
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// What a verdict may depend on, what was there before, what lies elsewhere than the mass; then by name.
fn rank(change: &Change, folder: &str, watched: &dyn Fn(&str) -> bool) -> (bool, bool, bool, String) {
    let of_the_mass = !folder.is_empty() && is_below(&change.path, folder);
    (!watched(&change.path), of_the_mass, change.kind == ChangeKind::Added, change.path.clone())
}

fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// The innermost folder that holds most of the new files, and how many; empty: the workspace itself.
fn source(all: &[Change]) -> (String, u64) {
    let added = all.iter().filter(|change| change.kind == ChangeKind::Added).map(|change| change.path.as_str());
    let mut added: Vec<&str> = added.collect();
    let total = added.len() as u64;
    let mut folder = String::new();
    loop {
        let mut children: BTreeMap<&str, u64> = BTreeMap::new();
        for path in &added {
            let rest = if folder.is_empty() { Some(*path) } else { path.get(folder.len() + 1..) };
            if let Some((child, _)) = rest.and_then(|rest| rest.split_once('/')) {
                *children.entry(child).or_default() += 1;
            }
        }
        let largest = children.into_iter().max_by_key(|(_, count)| *count);
        let Some((child, _)) = largest.filter(|(_, count)| count * MOST.1 >= total * MOST.0) else { break };
        folder = if folder.is_empty() { child.to_owned() } else { format!("{folder}/{child}") };
        let is_whole = MADE.contains(&child);
        added.retain(|path| is_below(path, &folder));
        if is_whole {
            break;
        }
    }
    (folder, added.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::RunDir;
    use crate::model::digest::Digest;

    fn change(path: &str, kind: ChangeKind) -> Change {
        Change { path: path.to_owned(), kind, sha256: Some(Digest::of(path.as_bytes())) }
    }

    fn installed(count: usize) -> Vec<Change> {
        let mut all: Vec<Change> =
            (0..count).map(|n| change(&format!("web/node_modules/p{}/f{n}.js", n % 90), ChangeKind::Added)).collect();
        all.push(change("web/src/app.js", ChangeKind::Added));
        all.push(change("web/zz.js", ChangeKind::Modified));
        all.sort();
        all
    }

    fn blobs() -> (tempfile::TempDir, Blobs) {
        let place = tempfile::tempdir().unwrap();
        let run = RunDir::create(&place.path().join("RUN"), b"{}").unwrap();
        (place, run.blobs())
    }

    #[test]
    fn few_changes_are_all_listed() {
        let (_place, blobs) = blobs();
        let listed = of(&blobs, installed(100), &|_| false).unwrap();
        assert_eq!((listed.changes.len(), listed.more), (102, None));
    }

    #[test]
    fn of_many_the_work_comes_first_and_the_mass_is_counted_where_it_lies() {
        let (_place, blobs) = blobs();
        let everything = installed(12_431);
        let listed = of(&blobs, everything.clone(), &|path| path.ends_with("f12430.js")).unwrap();
        let first: Vec<&str> = listed.changes.iter().take(3).map(|change| change.path.as_str()).collect();
        assert_eq!(first, ["web/node_modules/p10/f12430.js", "web/zz.js", "web/src/app.js"]);
        let more = listed.more.clone().unwrap();
        assert_eq!((listed.changes.len(), more.files), (1_000, 11_433));
        assert_eq!((more.folder.as_str(), more.below), ("web/node_modules", 12_431));
        let mut again = all(&blobs, &listed.changes, Some(&more)).unwrap();
        again.sort();
        assert_eq!(again, everything);
    }

    #[test]
    fn long_names_are_bounded_by_their_bytes() {
        let (_place, blobs) = blobs();
        let long = "x".repeat(4_000);
        let everything: Vec<Change> = (0..500).map(|n| change(&format!("{long}{n}"), ChangeKind::Added)).collect();
        let listed = of(&blobs, everything, &|_| false).unwrap();
        assert!(listed.changes.len() < 70, "{}", listed.changes.len());
        assert_eq!(listed.more.unwrap().folder, "");
    }
}
