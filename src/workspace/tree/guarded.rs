//! Files of a workspace that run by themselves, whether or not they are part of its tree: git's hooks, its
//! configuration and what else tells git where to look, start-up files of shells; and that the repository is there.
//!
//! It reads; it never writes. What git makes of all its configuration files together is asked of git (`engine::git`).
//! Invariant: bounded in files and bytes, and what could not be read counts as it is: as something that cannot be read.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::io::Errno;

use super::{FileState, Look, Pace, look};
use crate::model::digest::Digest;
use crate::model::self_running::START_UP;
use crate::workspace::plain::{self, FileKind};

/// A repository has a dozen hooks and a few modules; a bound against a folder full of files.
const MAX_NAMES: usize = 500;
/// A larger configuration is taken as it is.
const MAX_CONFIG: usize = 1 << 20;
/// What git reads from its folder before it does anything.
const GIT_FILES: &[&str] = &[
    ".git/config.worktree",
    ".git/commondir",
    ".git/info/attributes",
    ".git/info/grafts",
    ".git/info/sparse-checkout",
    ".git/objects/info/alternates",
    ".git/objects/info/http-alternates",
];
/// Folders with a configuration of their own in each folder below.
const GIT_FAMILIES: &[(&str, &[&str])] =
    &[(".git/modules", &["config", "HEAD"]), (".git/worktrees", &["config.worktree", "commondir", "gitdir"])];
/// Without these it is no repository any more. What they hold changes with honest work.
pub const REPOSITORY: &[(&str, FileKind)] =
    &[(".git/HEAD", FileKind::File), (".git/objects", FileKind::Folder), (".git/refs", FileKind::Folder)];

/// Their states by path.
pub(super) fn collect(root: &Path) -> BTreeMap<String, FileState> {
    let mut found = BTreeMap::new();
    let Ok(folder) = plain::open_root(root) else { return found };
    let mut names: Vec<String> = START_UP.iter().chain(GIT_FILES).map(|name| (*name).to_owned()).collect();
    // Git ships examples under this name and never runs them.
    names.extend(below(root, ".git/hooks").into_iter().filter(|name| !name.ends_with(".sample")));
    for (family, files) in GIT_FAMILIES {
        for member in below(root, family) {
            names.extend(files.iter().map(|file| format!("{member}/{file}")));
            names.extend(below(root, &format!("{member}/hooks")).into_iter().filter(|name| !name.ends_with(".sample")));
        }
    }
    names.sort();
    names.dedup();
    for name in names {
        if let Some(state) = state_of(&folder, &name) {
            found.insert(name, state);
        }
    }
    if let Some(state) = config(root, &folder) {
        found.insert(".git/config".to_owned(), state);
    }
    // In a linked worktree `.git` is a file that says where the repository is.
    if plain::kind(root, ".git").is_ok_and(|kind| kind.is_some_and(|kind| kind != FileKind::Folder))
        && let Some(state) = state_of(&folder, ".git")
    {
        found.insert(".git".to_owned(), state);
    }
    for (path, kind) in REPOSITORY {
        if plain::kind(root, path) == Ok(Some(*kind)) {
            found.insert((*path).to_owned(), there());
        }
    }
    found
}

/// Something is there, whatever it holds.
fn there() -> FileState {
    FileState { sha256: Digest::of(b"there"), size: 0, executable: false }
}

/// The names in a folder, as paths. One that cannot be listed counts as one odd name.
fn below(root: &Path, path: &str) -> Vec<String> {
    match plain::list(root, path, MAX_NAMES) {
        Ok(names) => names.into_iter().map(|(name, _)| format!("{path}/{name}")).collect(),
        Err(_) => vec![path.to_owned()],
    }
}

/// The state of a path, no folder of which may be a link.
fn state_of(root: &OwnedFd, path: &str) -> Option<FileState> {
    let unreadable = |error: Errno| {
        let sha256 = Digest::of_parts(&[b"unreadable\0", std::io::Error::from(error).to_string().as_bytes()]);
        Some(FileState { sha256, size: 0, executable: false })
    };
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut opened: Option<OwnedFd> = None;
    for part in folders.split('/').filter(|part| !part.is_empty()) {
        let folder = opened.as_ref().unwrap_or(root);
        match plain::open_folder(folder, OsStr::new(part)) {
            Ok(next) => opened = Some(next),
            // A folder above it may be a file; then it is not there either.
            Err(Errno::NOENT) => return None,
            Err(Errno::NOTDIR | Errno::LOOP) => {
                return (plain::kind_at(folder, OsStr::new(part)) == FileKind::Link).then(there);
            }
            Err(error) => return unreadable(error),
        }
    }
    match look(opened.as_ref().unwrap_or(root), OsStr::new(name), None, &|| Pace::Walk) {
        Ok(Look::State(state, _) | Look::Unread(state, _)) => Some(state),
        Ok(Look::Gone | Look::Stopped) => None,
        Ok(Look::Odd) => {
            (plain::kind_at(opened.as_ref().unwrap_or(root), OsStr::new(name)) == FileKind::Other).then(there)
        }
        Err(error) => unreadable(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
    }
}

/// Git's configuration without its `[branch "…"]` sections: git itself writes which branch follows which, and those
/// run nothing.
fn config(root: &Path, folder: &OwnedFd) -> Option<FileState> {
    let state = state_of(folder, ".git/config")?;
    let Ok(Some(file)) = plain::read(root, ".git/config", MAX_CONFIG) else { return Some(state) };
    let Ok(text) = String::from_utf8(file.bytes) else { return Some(state) };
    let kept = without_branches(&text);
    Some(FileState { sha256: Digest::of(kept.as_bytes()), size: kept.len() as u64, executable: false })
}

fn without_branches(text: &str) -> String {
    let mut in_branch = false;
    let kept = text.lines().filter(|line| {
        let line = line.trim();
        if line.starts_with('[') {
            in_branch = is_branch_header(line);
        }
        // A value that goes on in the next line could hide a header from this reader.
        !in_branch || line.ends_with('\\')
    });
    kept.map(|line| format!("{line}\n")).collect()
}

/// `[branch "name"]` and nothing else on the line.
fn is_branch_header(line: &str) -> bool {
    let name = line.strip_prefix("[branch \"").and_then(|rest| rest.strip_suffix("\"]"));
    name.is_some_and(|name| !name.contains(['"', '\\']))
}

#[cfg(test)]
mod tests {
    use std::fs;

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

    /// One line that looks like the header of a branch at both ends, and is two headers to git.
    #[test]
    fn a_header_that_hides_another_is_seen() {
        let before = "[core]\n\tbare = false\n";
        for trick in [
            "[branch \"a\"] [core] fsmonitor = ./x # \"]\n",
            "[branch \"a\\\"] [core] fsmonitor = ./x # \"]\n",
            "[branch \"a\"]\n\tx = y\\\n[core]\n\tfsmonitor = ./x\n",
        ] {
            assert_ne!(without_branches(before), without_branches(&format!("{before}{trick}")), "{trick}");
        }
    }

    #[test]
    fn what_git_reads_beside_its_configuration_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join(".git/modules/a/hooks")).unwrap();
        let planted = [".git/commondir", ".git/config.worktree", ".git/modules/a/config", ".git/modules/a/hooks/post"];
        for name in planted {
            fs::write(dir.path().join(name), "x").unwrap();
        }
        let found = collect(dir.path());
        assert!(planted.iter().all(|name| found.contains_key(*name)), "{found:?}");
        // A folder that became a link counts as changed.
        fs::rename(dir.path().join(".git/modules"), dir.path().join("m")).unwrap();
        std::os::unix::fs::symlink("../m", dir.path().join(".git/modules")).unwrap();
        assert!(collect(dir.path()).contains_key(".git/modules/config"));
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
