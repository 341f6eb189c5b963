//! Which artifacts can back a claim: what the work touched and what the engine saw, not whatever lies around.
//!
//! Role: say whether a cited path is such an artifact. Not its role: resolving paths to digests; the engine did that.
//! Invariant: a file that nobody changed, loop.yaml and NORTHSTAR.md above all, proves nothing about the work.

use super::document::iteration_dir;
use super::event::{Change, ChangeKind};
use super::iteration::Iteration;
use super::run::RunState;

/// Was this artifact touched by the iteration: a file that it changed, its report, the output of one of its checks?
pub fn is_of_iteration(iteration: &Iteration, path: &str) -> bool {
    let path = plain(path);
    let left = |change: &&Change| change.kind != ChangeKind::Deleted && change.path == path;
    let changed = iteration.artifacts.iter().flat_map(|artifacts| &artifacts.changes).any(|change| left(&change));
    let dir = iteration_dir(iteration.number());
    let seen = ["checks/", "reports/", "steps/"].iter().any(|kind| path.starts_with(&format!("{dir}/{kind}")));
    changed || seen
}

/// The same, of any iteration of the run.
pub fn is_of_run(state: &RunState, path: &str) -> bool {
    state.iterations().rev().any(|iteration| is_of_iteration(iteration, path))
}

/// As a tree names it: agents write `./a` and `a#sha256`, too.
fn plain(path: &str) -> &str {
    let path = path.strip_prefix("./").unwrap_or(path);
    path.split_once('#').map_or(path, |(path, _)| path)
}
