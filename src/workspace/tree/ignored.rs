//! Files that no tree holds, since rules of git exclude them: a check reads them all the same (`.env`, a local helper).
//!
//! Role: their states at one moment, bounded. Not its role: program folders, which are large (`stamps`), and what decides
//! about a check (`model::guard`).
//! Invariant: a cut is told, and then only what `first` names was looked at, so that two looks see the same.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{FileState, Look, Pace, Stamp, TreeSnapshot, look, name_of, walk};
use crate::workspace::plain;

const MAX_FILES: usize = 5_000;
/// A larger file is known by its size and times.
const MAX_HASHED: u64 = 8 << 20;
const MAX_DEPTH: usize = 12;

/// What rules exclude.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ignored {
    pub files: BTreeMap<String, FileState>,
    /// There are more than were looked at.
    pub cut: bool,
}

/// Looks at what `tree` does not hold. `enter`: which paths count; `first`: which of them, where there are too many.
pub fn ignored(
    root: &Path,
    tree: &TreeSnapshot,
    enter: &dyn Fn(&Path) -> bool,
    first: &dyn Fn(&str) -> bool,
) -> io::Result<Ignored> {
    let mut found = Ignored { files: collect(root, tree, enter, &|_| true)?, cut: false };
    if found.files.len() > MAX_FILES {
        found = Ignored { files: collect(root, tree, enter, first)?, cut: true };
    }
    Ok(found)
}

fn collect(
    root: &Path,
    tree: &TreeSnapshot,
    enter: &dyn Fn(&Path) -> bool,
    wanted: &dyn Fn(&str) -> bool,
) -> io::Result<BTreeMap<String, FileState>> {
    let range = walk::Range { enter, depth: Some(MAX_DEPTH), stop: &|| false, ignored: true };
    let mut files = BTreeMap::new();
    walk::walk(root, &range, &mut |seen| {
        let walk::Seen::Entry(entry) = seen else { return ControlFlow::Continue(()) };
        let name = name_of(entry.path);
        if tree.files.contains_key(&name) || !wanted(&name) {
            return ControlFlow::Continue(());
        }
        if let Some(state) = state_of(&entry) {
            files.insert(name, state);
        }
        if files.len() > MAX_FILES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(files)
}

/// `None`: gone, or nothing that a check reads.
fn state_of(entry: &walk::Entry<'_>) -> Option<FileState> {
    let stat = plain::stat_at(entry.folder, entry.name).ok()??;
    let stamp = Stamp::of(&stat);
    let pace = || if stamp.size > MAX_HASHED { Pace::Hurry } else { Pace::Walk };
    match look(entry.folder, entry.name, None, &pace).ok()? {
        Look::State(state, _) | Look::Unread(state, _) => Some(state),
        Look::Odd | Look::Gone | Look::Stopped => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::workspace::tree::snapshot;

    #[test]
    fn what_rules_exclude_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(".gitignore"), ".env\nout/\n").unwrap();
        fs::create_dir_all(dir.path().join("out/skipped")).unwrap();
        for path in [".env", "code", "out/a", "out/skipped/b"] {
            fs::write(dir.path().join(path), path).unwrap();
        }
        let (tree, _) = snapshot(dir.path(), &[], None, &|| Pace::Walk).unwrap().unwrap();
        let enter = |path: &Path| !path.ends_with("skipped");
        let found = ignored(dir.path(), &tree, &enter, &|_| true).unwrap();
        assert_eq!(found.files.keys().collect::<Vec<_>>(), [".env", "out/a"]);
        assert!(!found.cut);
        fs::write(dir.path().join(".env"), "other").unwrap();
        let later = ignored(dir.path(), &tree, &enter, &|_| true).unwrap();
        assert_ne!(later.files[".env"], found.files[".env"]);
        assert_eq!(later.files["out/a"], found.files["out/a"]);
    }

    #[test]
    fn where_there_are_too_many_the_first_ones_count() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(".gitignore"), "data/\n.env\n").unwrap();
        fs::create_dir(dir.path().join("data")).unwrap();
        for number in 0..=MAX_FILES {
            fs::write(dir.path().join(format!("data/{number}")), "").unwrap();
        }
        fs::write(dir.path().join(".env"), "").unwrap();
        let (tree, _) = snapshot(dir.path(), &[], None, &|| Pace::Walk).unwrap().unwrap();
        let found = ignored(dir.path(), &tree, &|_| true, &|path| path == ".env").unwrap();
        assert_eq!(found.files.keys().collect::<Vec<_>>(), [".env"]);
        assert!(found.cut);
    }
}
