//! Looks at the workspace: its tree, and what an iteration changed in it.
//!
//! Not here: what the tree consists of (`workspace::tree`), what guards a check (`protect`). Holds only what saves work:
//! the hashes of the last look, and git's configuration in force.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::evidence::ours;
use crate::journal;
use crate::machine::event::{ArtifactsCollected, ArtifactsPartial, Change, ChangeKind, TreePurpose, TreeTaken};
use crate::model::canonical;
use crate::model::digest::Digest;
use crate::playbook::passes::measure::own_checks;
use crate::workspace;
use crate::workspace::tree::{self, FileState, Pace, TreeCache, TreeSnapshot};

use super::checks;
use super::context::{Context, Cutoff, Guarded};
use super::diff;
use super::error::EngineError;
use super::git::{self, effective};
use super::guards;
use super::judges::load;
use super::learn;
use super::listed::{self, Listed};
use super::northstar;
use super::protect;

/// A look at the workspace may take this long, and longer where the run has time left; then it hurries.
const LEAST_TIME: Duration = Duration::from_secs(20);

/// Files that changed after they were collected, as far as they are named.
const MAX_DRIFTED: usize = 500;

/// What a stop leaves for a last look: whoever asked for it waits.
const LAST_LOOK: Duration = Duration::from_millis(800);

/// The looks at one workspace.
#[derive(Default)]
pub(super) struct Trees {
    cache: Option<TreeCache>,
    /// Git's configuration in force, as of these files of its own.
    git: Option<(BTreeMap<String, FileState>, effective::Effective)>,
}

impl Trees {
    /// The tree as it is, kept as a blob. `None`: a stop came first.
    pub(super) async fn snapshot(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Result<Option<(TreeSnapshot, Digest)>, EngineError> {
        let workspace = cx.workspace().to_owned();
        let cache = self.cache.take();
        let excluded = not_ours_to_judge(cx);
        let token = CancellationToken::new();
        let (stop, hurry) = (token.clone(), Instant::now() + cx.recorder.total_time_left().max(LEAST_TIME));
        // Hashing a large tree must not hold up the watch for stop signals.
        let taken = tokio::task::spawn_blocking(move || {
            let pace = || match stop.is_cancelled() {
                true => Pace::Stop,
                false if Instant::now() > hurry => Pace::Hurry,
                false => Pace::Walk,
            };
            let excluded: Vec<&str> = excluded.iter().map(String::as_str).collect();
            let result = tree::snapshot(&workspace, &excluded, cache.as_ref(), &pace);
            let result = result.map_err(|e| EngineError::io("cannot read the workspace", &workspace, e));
            // What was remembered is as good as before for a look that came to nothing.
            result.map(|taken| taken.ok_or(cache))
        });
        let taken = cx.guarded(&token, Cutoff::Never, taken).await?;
        let (Guarded::Done(taken) | Guarded::Stopped(taken) | Guarded::Cut(taken)) = taken;
        let (mut snapshot, cache) = match taken.map_err(|e| EngineError::Internal(e.to_string()))?? {
            Ok(taken) => taken,
            Err(cache) => {
                self.cache = cache;
                return Ok(None);
            }
        };
        self.cache = Some(cache);
        if !self.add_git_configuration(cx, &mut snapshot).await? {
            return Ok(None);
        }
        let text = canonical::compact(&snapshot).map_err(|e| EngineError::Internal(e.to_string()))?;
        let digest = cx.blobs().put(text.as_bytes())?;
        Ok(Some((snapshot, digest)))
    }

    /// Git decides by more than one file what it runs. `false`: a stop came first.
    async fn add_git_configuration(
        &mut self,
        cx: &mut Context<'_>,
        snapshot: &mut TreeSnapshot,
    ) -> Result<bool, EngineError> {
        let guarded = snapshot.guarded.get_or_insert_default();
        let known = self.git.as_ref().filter(|(files, known)| *files == *guarded && !known.includes);
        let known = known.map(|(_, known)| known.clone());
        let token = CancellationToken::new();
        let asked = git::configuration(cx, &token, known);
        let asked = cx.guarded(&token, Cutoff::Never, asked).await?;
        let (Guarded::Done(asked) | Guarded::Stopped(asked) | Guarded::Cut(asked)) = asked;
        let Ok(effective) = asked else { return Ok(false) };
        let Some(effective) = effective else { return Ok(true) };
        if let Some(odd) = &effective.odd {
            // By its own words, so that whoever is told of the change is told what it is.
            guarded.insert(odd.clone(), effective.state.clone());
        } else {
            self.git = Some((guarded.clone(), effective.clone()));
        }
        guarded.insert(effective::NAME.to_owned(), effective.state);
        Ok(true)
    }

    pub async fn take(&mut self, cx: &mut Context<'_>, purpose: TreePurpose) -> Result<(), EngineError> {
        // The stop is recorded next; after a resume it is looked again.
        let Some((snapshot, digest)) = self.snapshot(cx).await? else { return Ok(()) };
        let drifted = match purpose {
            TreePurpose::Frozen => drifted(cx, &snapshot)?,
            TreePurpose::Baseline | TreePurpose::AfterChecks | TreePurpose::BeforeReview | TreePurpose::AfterReview => {
                Vec::new()
            }
        };
        diff::keep_contents(cx.run_dir().path(), cx.workspace(), &snapshot, cx.secrets());
        if purpose == TreePurpose::Baseline {
            guards::keep(cx, &snapshot);
        }
        let (changed, held) = match purpose {
            TreePurpose::AfterReview => (changed_in_review(cx, &snapshot)?, cx.sandbox().holds_read_only()),
            _ => (Vec::new(), false),
        };
        cx.record(TreeTaken { purpose, tree: digest, files: snapshot.files.len() as u64, drifted, changed, held }).await
    }

    pub async fn collect(&mut self, cx: &mut Context<'_>, mended: &mut Vec<String>) -> Result<(), EngineError> {
        let before = match &cx.state().tree {
            Some(digest) => load(cx.blobs(), digest)?,
            None => TreeSnapshot::default(),
        };
        let start = match &cx.state().baseline.tree {
            Some(digest) => load(cx.blobs(), digest)?,
            None => TreeSnapshot::default(),
        };
        let Some((after, tree)) = self.snapshot(cx).await? else { return Ok(()) };
        let Listed { changes, more } = listed_changes(cx, &before, &after)?;
        let patch = diff::patch(cx.run_dir().path(), cx.workspace(), &before, &changes);
        let diff = cx.blobs().put(cx.secrets().redact_known(&patch).as_bytes())?;
        diff::keep_contents(cx.run_dir().path(), cx.workspace(), &after, cx.secrets());
        // Judges are tried before a success counts (`guards`); runs from before that are judged by what they touched.
        let by_touch = cx.state().began_before_replays();
        let (guards_touched, mut instruments_touched) = match by_touch {
            true => (
                protect::touched(&cx.state().criteria, &start, &after),
                protect::instruments_touched(cx.state().loop_file(), &own_checks(cx.state()), &start, &after),
            ),
            false => Default::default(),
        };
        instruments_touched.extend(protect::planted(&start, &after));
        let guards = guards_touched.values().flat_map(|touched| touched.script.iter().chain(&touched.others));
        let touched_now = guards
            .chain(&instruments_touched)
            .map(|path| (path.clone(), after.state_of(path).map(|file| file.sha256)))
            .collect();
        let looked = learn::look(cx)?;
        let collected = ArtifactsCollected {
            iteration: cx.state().iteration_number(),
            tree,
            guards_touched,
            instruments_touched,
            touched_now,
            changes,
            more,
            diff,
            northstar_sha256: northstar::now(cx),
            learnings_intact: looked.intact,
            learnings_frame: looked.frame,
            learnings_aside: looked.aside,
            mended: std::mem::take(mended),
        };
        journal::failpoint("artifacts");
        cx.record(collected).await
    }

    /// What differs now from the latest tree of the run, and the same as a diff. `None`: a stop came first.
    pub async fn changed(&mut self, cx: &mut Context<'_>) -> Result<Option<(Vec<Change>, String)>, EngineError> {
        let before = match &cx.state().tree {
            Some(digest) => load(cx.blobs(), digest)?,
            None => TreeSnapshot::default(),
        };
        let Some((after, _)) = self.snapshot(cx).await? else { return Ok(None) };
        let Listed { changes, .. } = listed_changes(cx, &before, &after)?;
        let patch = diff::patch(cx.run_dir().path(), cx.workspace(), &before, &changes);
        Ok(Some((changes, cx.secrets().redact_known(&patch).into_owned())))
    }

    /// What agents changed until a stop came. The stop is there already, so that nothing else can end this look: it
    /// ends itself.
    pub async fn collect_partial(&mut self, cx: &mut Context<'_>) -> Result<(), EngineError> {
        let before = match &cx.state().tree {
            Some(digest) => load(cx.blobs(), digest)?,
            None => TreeSnapshot::default(),
        };
        let (workspace, cache, deadline) = (cx.workspace().to_owned(), self.cache.take(), Instant::now() + LAST_LOOK);
        let excluded = not_ours_to_judge(cx);
        let taken = tokio::task::spawn_blocking(move || {
            let pace = || if Instant::now() > deadline { Pace::Stop } else { Pace::Walk };
            let excluded: Vec<&str> = excluded.iter().map(String::as_str).collect();
            tree::snapshot(&workspace, &excluded, cache.as_ref(), &pace)
        });
        let (Listed { changes, more }, unread) = match taken.await.map_err(|e| EngineError::Internal(e.to_string()))? {
            Ok(Some((after, cache))) => {
                self.cache = Some(cache);
                (listed_changes(cx, &before, &after)?, None)
            }
            Ok(None) => (Listed::default(), Some("the workspace is too large for a look before the stop".to_owned())),
            Err(error) => (Listed::default(), Some(format!("the workspace cannot be read: {error}"))),
        };
        let diff = match &unread {
            None => {
                let patch = diff::patch(cx.run_dir().path(), cx.workspace(), &before, &changes);
                Some(cx.blobs().put(cx.secrets().redact_known(&patch).as_bytes())?)
            }
            Some(_) => None,
        };
        journal::failpoint("partial");
        let (iteration, resumes) = (cx.state().iteration_number(), cx.state().resumes);
        cx.record(ArtifactsPartial { iteration, resumes, changes, more, diff, unread }).await
    }
}

/// What no tree holds: what the engine writes by its own names, and where its own output goes (`> nightloop.log`).
fn not_ours_to_judge(cx: &Context<'_>) -> Vec<String> {
    let mut excluded = ours::excluded(cx.state());
    excluded.extend(workspace::own_output(cx.workspace()));
    excluded
}

/// As the journal has it. What a check may write is its own.
fn listed_changes(cx: &Context<'_>, before: &TreeSnapshot, after: &TreeSnapshot) -> Result<Listed, EngineError> {
    let outputs = checks::outputs(cx);
    let changes = tree::diff(before, after).into_iter().filter(|change| !outputs.is_match(&change.path));
    let state = cx.state();
    listed::of(cx.blobs(), changes.map(change).collect(), &|path| state.playbook().watches(state, path))
}

/// Files that are not as they were before the critic, the first few.
fn changed_in_review(cx: &Context<'_>, now: &TreeSnapshot) -> Result<Vec<String>, EngineError> {
    let before = cx.state().current.as_ref().and_then(|iteration| iteration.review_trees.0);
    let Some(before) = before else { return Ok(Vec::new()) };
    let before = load(cx.blobs(), &before)?;
    Ok(tree::diff(&before, now).into_iter().map(|change| change.path).take(MAX_DRIFTED).collect())
}

/// Files that are not as they were collected, the first few.
fn drifted(cx: &Context<'_>, snapshot: &TreeSnapshot) -> Result<Vec<String>, EngineError> {
    let Some(artifacts) = cx.state().current.as_ref().and_then(|it| it.artifacts.as_ref()) else {
        return Ok(Vec::new());
    };
    let changes = listed::all(cx.blobs(), &artifacts.changes, artifacts.more.as_ref())?;
    let changes = changes.into_iter().map(|change| (change.path, change.sha256));
    let guards = artifacts.touched_now.iter().map(|(path, sha256)| (path.clone(), *sha256));
    let expected: BTreeMap<String, Option<Digest>> = guards.chain(changes).collect();
    let now = |path: &String| {
        let is_guard = artifacts.touched_now.contains_key(path);
        let file = if is_guard { snapshot.state_of(path) } else { snapshot.files.get(path) };
        file.map(|file| file.sha256)
    };
    let drifted = expected.into_iter().filter(|(path, expected)| now(path) != *expected);
    Ok(drifted.map(|(path, _)| path).take(MAX_DRIFTED).collect())
}

/// A change as the journal names it.
pub(super) fn change(change: tree::Change) -> Change {
    Change {
        path: change.path,
        kind: match change.kind {
            tree::ChangeKind::Added => ChangeKind::Added,
            tree::ChangeKind::Modified => ChangeKind::Modified,
            tree::ChangeKind::Deleted => ChangeKind::Deleted,
        },
        sha256: change.sha256,
    }
}
