//! The branch that is checked out in a workspace, as one of git's files says it.
//!
//! Role: a word for people before anything is done with the repository. Not its role: what git itself would say
//! (`engine::git` asks it). Invariant: no program is run, and no link is followed.

use std::path::Path;

use super::plain;

const FILE: &str = ".git/HEAD";
const LIMIT: usize = 4_096;

/// None where there is no repository, none of its own, or no branch.
pub fn branch(workspace: &Path) -> Option<String> {
    let head = plain::read(workspace, FILE, LIMIT).ok()??;
    let head = String::from_utf8(head.bytes).ok()?;
    head.trim_end().strip_prefix("ref: refs/heads/").map(str::to_owned)
}
