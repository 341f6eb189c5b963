//! What a run changed among its judges, was not certified for, and nobody accepted: the next run in the workspace judges
//! by what was there before.
//!
//! Without this, a second run would take a gutted judge for the one it found. Lies outside of the workspace, where no
//! agent reaches. Not here: what counts as changed (`judges`). Invariants: replaced whole; gone once a person accepted it,
//! or a run was certified; what a person changed in between is theirs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::evidence::ours;
use crate::journal::{self, RunDir, RunLock};
use crate::machine::guards;
use crate::model::decision::Unaccepted;
use crate::model::guard::Class;
use crate::model::stop::ExitStatus;
use crate::workspace::tree::{self, Pace, TreeSnapshot};

use super::error::EngineError;
use super::judges::{Judges, load as load_tree};
use super::places::StateRoot;
use super::programs_at_start;
use super::recorded;
use super::seal;
use super::start_files;

const NAME: &str = "unaccepted.json";
/// Copies of what was there before.
const COPIES: &str = "found";
/// Files that are remembered.
const MAX_FILES: usize = 500;
const MAX_BYTES: u64 = 1 << 20;

fn path(root: &StateRoot, workspace: &Path) -> PathBuf {
    root.workspace(workspace).join(NAME)
}

/// What an earlier run left. A file that cannot be read is an error: forgetting would be an acceptance.
pub(super) fn load(root: &StateRoot, workspace: &Path) -> Result<Vec<Unaccepted>, EngineError> {
    let path = path(root, workspace);
    let hint = "look at it, and remove it if what it names is as it should be";
    let unusable = |why: String| EngineError::usage(format!("{}: {why}", path.display()), hint);
    match fs::metadata(&path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(EngineError::io("cannot read what was not accepted", &path, e)),
        Ok(meta) if meta.len() > MAX_BYTES => return Err(unusable(format!("{} bytes are too many", meta.len()))),
        Ok(_) => {}
    }
    let text = fs::read(&path).map_err(|e| EngineError::io("cannot read what was not accepted", &path, e))?;
    serde_json::from_slice(&text).map_err(|e| unusable(e.to_string()))
}

/// Gives a new run the copies of what an earlier one found.
pub(super) fn hand_over(root: &StateRoot, workspace: &Path, run_dir: &Path, files: &[Unaccepted]) {
    let copies = root.workspace(workspace).join(COPIES);
    files.iter().filter_map(|file| file.found).for_each(|digest| start_files::copy(&copies, &digest, run_dir));
}

/// A run whose engine was killed could not remember anything: what it left is looked at now. What a person changed since
/// cannot be told from it, and is asked about, too.
pub(super) fn settle_killed(root: &StateRoot, workspace: &Path) -> Result<(), EngineError> {
    let Some(run) = root.run_of(workspace) else { return Ok(()) };
    let path = root.run(&run);
    // Sealed: it ended, and remembered. Locked: it goes on.
    if seal::is_sealed(root, &run) {
        return Ok(());
    }
    let Ok(_lock) = RunLock::acquire(&path) else { return Ok(()) };
    let (Ok(run_dir), Ok(state)) = (RunDir::open(&path), recorded::read_state(root, &run)) else { return Ok(()) };
    let excluded = ours::excluded(&state);
    let excluded: Vec<&str> = excluded.iter().map(String::as_str).collect();
    let taken = tree::snapshot(workspace, &excluded, None, &|| Pace::Walk);
    let now = taken.map_err(|e| EngineError::io("cannot read the workspace", workspace, e))?.map(|(tree, _)| tree);
    let blobs = run_dir.blobs();
    remember(root, workspace, Judges { state: &state, run_dir: &path, blobs: &blobs }, now)
}

/// Remembers what an ended run leaves, or forgets what is settled.
pub(super) fn settle(root: &StateRoot, workspace: &Path, judges: Judges<'_>) -> Result<(), EngineError> {
    let now = judges.state.tree.map(|now| Ok::<_, EngineError>(with_partial(judges, load_tree(judges.blobs, &now)?)));
    remember(root, workspace, judges, now.transpose()?)
}

fn remember(
    root: &StateRoot,
    workspace: &Path,
    judges: Judges<'_>,
    now: Option<TreeSnapshot>,
) -> Result<(), EngineError> {
    let (path, copies) = (path(root, workspace), root.workspace(workspace).join(COPIES));
    let left = if is_settled(judges) { Vec::new() } else { left(workspace, judges, now)? };
    if left.is_empty() {
        let _ = fs::remove_dir_all(&copies);
        return match fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(EngineError::io("cannot forget", &path, e)),
            Ok(()) | Err(_) => Ok(()),
        };
    }
    for digest in left.iter().filter_map(|file| file.found) {
        start_files::copy_out(judges.run_dir, &digest, &copies);
    }
    let text = serde_json::to_vec_pretty(&left).map_err(|e| EngineError::Internal(e.to_string()))?;
    Ok(journal::write_whole(&root.workspace(workspace), NAME, &text)?)
}

/// Was the run certified, or did a person accept what its last iteration changed?
fn is_settled(judges: Judges<'_>) -> bool {
    let state = judges.state;
    let certified = state.halt.as_ref().is_some_and(|halt| halt.status == ExitStatus::ExitConverged);
    certified || state.current.as_ref().is_some_and(|iteration| guards::accepted(state, iteration))
}

/// Judges that are not as the run found them, in the tree, among what git ignores, and among installed programs.
fn left(workspace: &Path, judges: Judges<'_>, now: Option<TreeSnapshot>) -> Result<Vec<Unaccepted>, EngineError> {
    let state = judges.state;
    let (Some(_), Some(mut now)) = (state.baseline.tree, now) else { return Ok(state.started.unaccepted.clone()) };
    let mut base = judges.tree(&judges.base())?;
    let set = judges.set(&base);
    let mut ignored = BTreeSet::new();
    if let (Some(mut then), Ok(found)) = (start_files::ignored(judges.run_dir), judges.look_at_ignored(workspace, &now))
    {
        judges.as_found(&mut then.files);
        ignored = then.files.keys().chain(found.files.keys()).cloned().collect();
        base.files.extend(then.files);
        now.files.extend(found.files);
    }
    // What an open question names is left, whatever its class.
    let asked: Vec<&String> =
        state.current.iter().flat_map(|it| &it.guards).flat_map(|g| &g.changed).map(|c| &c.path).collect();
    let judges_it = |path: &String| {
        let class = if ignored.contains(path) { set.class_of_ignored(path) } else { set.class(path) };
        matches!(class, Class::Guard | Class::Test | Class::Manifest) || asked.contains(&path)
    };
    let changed = tree::diff(&base, &now).into_iter().filter(|change| judges_it(&change.path)).take(MAX_FILES);
    let files = changed.map(|change| Unaccepted {
        found: base.files.get(&change.path).map(|file| file.sha256),
        executable: base.files.get(&change.path).is_some_and(|file| file.executable),
        left: change.sha256,
        path: change.path,
    });
    let programs = programs_at_start::differ(judges.run_dir, workspace, 1).changed_in_all > 0
        || state.started.unaccepted.iter().any(|file| file.path == Unaccepted::PROGRAMS);
    Ok(files.chain(programs.then(Unaccepted::programs)).collect())
}

/// What a stop found in the middle of an iteration.
fn with_partial(judges: Judges<'_>, mut now: TreeSnapshot) -> TreeSnapshot {
    let partial = judges.state.current.as_ref().and_then(|iteration| iteration.partial.as_ref());
    for change in partial.into_iter().flat_map(|partial| &partial.changes) {
        match change.sha256 {
            Some(sha256) => {
                let executable = now.files.get(&change.path).is_some_and(|file| file.executable);
                now.files.insert(change.path.clone(), tree::FileState { sha256, size: 0, executable });
            }
            None => drop(now.files.remove(&change.path)),
        }
    }
    now
}
