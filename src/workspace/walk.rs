//! The one way to walk a workspace, for search and for snapshots.
//!
//! Everything that `.gitignore` files of the workspace do not exclude, hidden files included,
//! `.git` excluded. Rules from outside (parent folders, the user's global excludes) do not count:
//! two people see the same tree. Symlinks are listed, never followed. Works without a git
//! repository. Does not open files.

use std::path::Path;

use ignore::{DirEntry, Walk, WalkBuilder};

/// Walks `root` in the order of names; `enter` says which entries, by relative path, to visit.
pub fn walk<F>(root: &Path, depth: Option<usize>, enter: F) -> Walk
where
    F: Fn(&Path) -> bool + Send + Sync + 'static,
{
    let base = root.to_owned();
    WalkBuilder::new(root)
        .hidden(false)
        .ignore(false)
        .parents(false)
        .git_ignore(true)
        .git_exclude(false)
        .git_global(false)
        .require_git(false)
        .follow_links(false)
        .max_depth(depth)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(move |entry| {
            if entry.depth() == 0 {
                return true;
            }
            entry.file_name() != ".git" && entry.path().strip_prefix(&base).is_ok_and(&enter)
        })
        .build()
}

/// Whether an entry is a regular file, without following it.
pub fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_file())
}
