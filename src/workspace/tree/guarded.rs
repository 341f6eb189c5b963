//! Files of a workspace that run by themselves, whether or not they are part of its tree: git's hooks, its
//! configuration, start-up files of shells.
//!
//! It reads; it never writes. Invariant: bounded in files and bytes, and what could not be read counts as it is: as
//! something that cannot be read.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use super::{FileState, look};
use crate::model::digest::Digest;
use crate::model::self_running::START_UP;

/// A repository has a dozen hooks; a bound against a folder full of files.
const MAX_HOOKS: usize = 500;
/// A larger configuration is taken as it is.
const MAX_CONFIG: u64 = 1 << 20;

/// Their states by path.
pub(super) fn collect(root: &Path) -> BTreeMap<String, FileState> {
    let mut names: Vec<String> = START_UP.iter().map(|name| (*name).to_owned()).collect();
    names.push(".git/info/attributes".to_owned());
    let hooks = fs::read_dir(root.join(".git/hooks")).into_iter().flatten().flatten().take(MAX_HOOKS);
    let hooks = hooks.map(|entry| format!(".git/hooks/{}", super::name_of(Path::new(&entry.file_name()))));
    // Git ships examples under this name and never runs them.
    names.extend(hooks.filter(|name| !name.ends_with(".sample")));
    let mut found = BTreeMap::new();
    for name in names {
        if let Some(state) = state_of(&root.join(&name), &name) {
            found.insert(name, state);
        }
    }
    if let Some(state) = config(&root.join(".git/config")) {
        found.insert(".git/config".to_owned(), state);
    }
    // In a linked worktree `.git` is a file that says where the repository is.
    if fs::symlink_metadata(root.join(".git")).is_ok_and(|meta| !meta.is_dir())
        && let Some(state) = state_of(&root.join(".git"), ".git")
    {
        found.insert(".git".to_owned(), state);
    }
    found
}

fn state_of(path: &Path, name: &str) -> Option<FileState> {
    match look(path, name, None) {
        Ok(Some((state, _))) => Some(state),
        Ok(None) => None,
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        // A folder above it may be a file; then it is not there either.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => None,
        Err(error) => {
            let sha256 = Digest::of_parts(&[b"unreadable\0", error.to_string().as_bytes()]);
            Some(FileState { sha256, size: 0, executable: false })
        }
    }
}

/// Git's configuration without its `[branch "…"]` sections: git itself writes which branch follows which, and those
/// run nothing.
fn config(path: &Path) -> Option<FileState> {
    let state = state_of(path, ".git/config")?;
    if state.size > MAX_CONFIG || fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink()) {
        return Some(state);
    }
    let mut text = String::new();
    let read = fs::File::open(path).and_then(|file| file.take(MAX_CONFIG).read_to_string(&mut text));
    if read.is_err() {
        return Some(state);
    }
    let kept = without_branches(&text);
    Some(FileState { sha256: Digest::of(kept.as_bytes()), size: kept.len() as u64, executable: false })
}

fn without_branches(text: &str) -> String {
    let mut in_branch = false;
    let kept = text.lines().filter(|line| {
        let line = line.trim_start();
        if line.starts_with('[') {
            // Only a header alone on its line: what shares the line is kept.
            in_branch = line.starts_with("[branch \"") && line.trim_end().ends_with("\"]");
        }
        !in_branch
    });
    kept.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_follow_each_other_and_nothing_else_does() {
        let before = "[core]\n\tbare = false\n";
        let after = "[core]\n\tbare = false\n[branch \"x\"]\n\tremote = origin\n\tmerge = refs/heads/x\n";
        assert_eq!(without_branches(before), without_branches(after));
        let evil = format!("{after}[core]\n\tfsmonitor = ./evil\n");
        assert_ne!(without_branches(before), without_branches(&evil));
        let same_line = format!("{before}[branch \"x\"] [core] fsmonitor = ./evil\n");
        assert_ne!(without_branches(before), without_branches(&same_line));
    }

    #[test]
    fn hooks_and_start_up_files_are_seen() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join(".git/hooks")).unwrap();
        for name in [".git/config", ".git/hooks/pre-commit", ".git/hooks/pre-push.sample", ".envrc", "other"] {
            fs::write(dir.path().join(name), "x").unwrap();
        }
        let found: Vec<String> = collect(dir.path()).into_keys().collect();
        assert_eq!(found, [".envrc", ".git/config", ".git/hooks/pre-commit"]);
    }
}
