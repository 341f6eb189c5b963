//! What one agent changed, for the next one: the difference between two looks at the workspace within a step.
//!
//! Role: look, name the files, keep a diff to read. Not its role: the artifacts of an iteration (`trees`), what the change
//! means. Invariants: the record is bounded; scripts of checks are no work of a builder or fixer.

use crate::machine::event::Change;
use crate::model::value::verification::DIRECTORY;
use crate::playbook::value::event::WorkSeen;
use crate::workspace::tree::{self, TreeSnapshot};

use super::super::checks;
use super::super::context::Context;
use super::super::diff;
use super::super::error::EngineError;
use super::super::excerpt;
use super::super::judges::load;
use super::super::trees::{self, Trees};

/// Files that are named; the others are counted.
const MAX_NAMED: usize = 50;
/// The longest diff that is kept.
const MAX_DIFF: usize = 16 * 1024;

pub(in crate::engine) async fn look(cx: &mut Context<'_>, trees: &mut Trees) -> Result<(), EngineError> {
    let before = match cx.state().value().seen.or(cx.state().tree) {
        Some(digest) => load(cx.blobs(), &digest)?,
        None => TreeSnapshot::default(),
    };
    // A stop came first; it is looked again on resume.
    let Some((after, seen)) = trees.snapshot(cx).await? else { return Ok(()) };
    let outputs = checks::outputs(cx);
    let is_work = |path: &str| !path.starts_with(DIRECTORY) && !outputs.is_match(path);
    let changes = tree::diff(&before, &after).into_iter().filter(|change| is_work(&change.path));
    let mut changes: Vec<Change> = changes.map(trees::change).collect();
    let more = u64::try_from(changes.len().saturating_sub(MAX_NAMED)).unwrap_or(u64::MAX);
    changes.truncate(MAX_NAMED);
    let patch = diff::patch(cx.run_dir().path(), cx.workspace(), &before, &changes);
    let patch = excerpt::cut_in_the_middle(&cx.secrets().redact_known(&patch), MAX_DIFF);
    let diff = if changes.is_empty() { None } else { Some(cx.blobs().put(patch.as_bytes())?) };
    diff::keep_contents(cx.run_dir().path(), cx.workspace(), &after, cx.secrets());
    cx.record(WorkSeen { tree: seen, changes, more, diff }).await
}
