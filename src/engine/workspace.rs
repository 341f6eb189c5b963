//! Reads the workspace: Northstar, tree, artifacts; writes the plan and begins iterations.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::evidence::ours;
use crate::evidence::render;
use crate::journal;
use crate::machine::compose;
use crate::machine::document;
use crate::machine::event::{
    ArtifactsCollected, Change, ChangeKind, IterationBegan, NorthstarRead, PlanWritten, TreePurpose, TreeTaken,
};
use crate::model::canonical;
use crate::model::digest::Digest;
use crate::model::ids::Role;
use crate::model::learnings::{self, SpecVersion};
use crate::model::northstar;
use crate::workspace::document as people_document;
use crate::workspace::plain::Durability;
use crate::workspace::tree::{self, Pace, TreeSnapshot};

use super::diff;
use super::driver::{Cutoff, Driver, Guarded};
use super::error::EngineError;
use super::git::effective;
use super::protect;

/// A larger NORTHSTAR.md is refused by its parser; this only bounds the read.
const MAX_NORTHSTAR_BYTES: usize = 2 << 20;
/// A look at the workspace may take this long, and longer where the run has time left; then it hurries.
const LEAST_TIME: Duration = Duration::from_secs(20);

impl Driver<'_> {
    pub(super) async fn read_northstar(&mut self) -> Result<(), EngineError> {
        let file = self.session.state.loop_file().northstar_file().to_owned();
        let read = match read_northstar(&self.session.workspace, &file) {
            Err(problem) => NorthstarRead { file, sha256: None, metrics: Vec::new(), problem: Some(problem) },
            Ok(bytes) => {
                let sha256 = Some(Digest::of(&bytes));
                match northstar::parse(&String::from_utf8_lossy(&bytes)) {
                    Ok(parsed) => NorthstarRead { file, sha256, metrics: parsed.metrics, problem: None },
                    Err(e) => NorthstarRead { file, sha256, metrics: Vec::new(), problem: Some(e.to_string()) },
                }
            }
        };
        self.record(read).await
    }

    fn northstar_now(&self) -> Option<Digest> {
        if self.session.state.spec() == SpecVersion::V1 {
            return None;
        }
        let file = self.session.state.loop_file().northstar_file();
        read_northstar(&self.session.workspace, file).ok().map(|bytes| Digest::of(&bytes))
    }

    /// The tree as it is, kept as a blob. `None`: a stop came first.
    async fn snapshot(&mut self) -> Result<Option<(TreeSnapshot, Digest)>, EngineError> {
        let workspace = self.session.workspace.clone();
        let cache = self.tree_cache.take();
        let excluded = ours::excluded(self.session.state.loop_file());
        let token = CancellationToken::new();
        let (stop, hurry) = (token.clone(), Instant::now() + self.total_time_left().max(LEAST_TIME));
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
        let taken = self.guarded(&token, Cutoff::Never, taken).await?;
        let (Guarded::Done(taken) | Guarded::Stopped(taken) | Guarded::Cut(taken)) = taken;
        let (mut snapshot, cache) = match taken.map_err(|e| EngineError::Internal(e.to_string()))?? {
            Ok(taken) => taken,
            Err(cache) => {
                self.tree_cache = cache;
                return Ok(None);
            }
        };
        self.tree_cache = Some(cache);
        if !self.add_git_configuration(&mut snapshot).await? {
            return Ok(None);
        }
        let text = canonical::compact(&snapshot).map_err(|e| EngineError::Internal(e.to_string()))?;
        let digest = self.session.blobs.put(text.as_bytes())?;
        Ok(Some((snapshot, digest)))
    }

    /// Git decides by more than one file what it runs. `false`: a stop came first.
    async fn add_git_configuration(&mut self, snapshot: &mut TreeSnapshot) -> Result<bool, EngineError> {
        let guarded = snapshot.guarded.get_or_insert_default();
        let known = self.git_cache.as_ref().filter(|(files, known)| *files == *guarded && !known.includes);
        let known = known.map(|(_, known)| known.clone());
        let token = CancellationToken::new();
        let asked = self.git_configuration(&token, known);
        let asked = self.guarded(&token, Cutoff::Never, asked).await?;
        let (Guarded::Done(asked) | Guarded::Stopped(asked) | Guarded::Cut(asked)) = asked;
        let Ok(effective) = asked else { return Ok(false) };
        let Some(effective) = effective else { return Ok(true) };
        if let Some(odd) = &effective.odd {
            // By its own words, so that whoever is told of the change is told what it is.
            guarded.insert(odd.clone(), effective.state.clone());
        } else {
            self.git_cache = Some((guarded.clone(), effective.clone()));
        }
        guarded.insert(effective::NAME.to_owned(), effective.state);
        Ok(true)
    }

    fn load_tree(&self, digest: &Digest) -> Result<TreeSnapshot, EngineError> {
        let bytes = self.session.blobs.get(digest)?;
        serde_json::from_slice(&bytes).map_err(|e| EngineError::Internal(format!("tree {}: {e}", digest.short())))
    }

    pub(super) async fn take_tree(&mut self, purpose: TreePurpose) -> Result<(), EngineError> {
        // The stop is recorded next; after a resume it is looked again.
        let Some((snapshot, digest)) = self.snapshot().await? else { return Ok(()) };
        let drifted = match (&purpose, self.session.state.current.as_ref().and_then(|it| it.artifacts.as_ref())) {
            (TreePurpose::Frozen, Some(artifacts)) => {
                let changes = artifacts.changes.iter().map(|change| (&change.path, change.sha256));
                let guards = artifacts.touched_now.iter().map(|(path, sha256)| (path, *sha256));
                let expected: BTreeMap<&String, Option<Digest>> = guards.chain(changes).collect();
                let guards = |path: &String| artifacts.touched_now.contains_key(path);
                let now = |path: &String| {
                    let file = if guards(path) { snapshot.state_of(path) } else { snapshot.files.get(path) };
                    file.map(|file| file.sha256)
                };
                let drifted = expected.into_iter().filter(|(path, expected)| now(path) != *expected);
                drifted.map(|(path, _)| path.clone()).collect()
            }
            (TreePurpose::Frozen | TreePurpose::Baseline | TreePurpose::BeforeReview | TreePurpose::AfterReview, _) => {
                Vec::new()
            }
        };
        diff::keep_contents(self.session.run_dir.path(), &self.session.workspace, &snapshot, self.secrets());
        self.record(TreeTaken { purpose, tree: digest, files: snapshot.files.len() as u64, drifted }).await
    }

    pub(super) async fn write_plan(&mut self) -> Result<(), EngineError> {
        let sha256 = document::digest(&document::plan(&self.session.state));
        self.record(PlanWritten { sha256 }).await?;
        self.write_evidence(&render::of_run(&self.session.state), Durability::Replaceable)
    }

    pub(super) async fn begin_iteration(&mut self) -> Result<(), EngineError> {
        if !self.mark_iteration().await? {
            return Ok(());
        }
        let text = self.agents_md_text()?;
        let elapsed = self.spent_now().millis;
        let composed = compose::compose(&self.session.state, &text, Role::Scout, elapsed);
        let unwritable = |e: canonical::CanonicalError| EngineError::Internal(e.to_string());
        let capsule = self.session.blobs.put(composed.capsule.text().map_err(unwritable)?.as_bytes())?;
        self.record(IterationBegan {
            iteration: self.session.state.iteration_number(),
            capsule,
            capsule_replay_sha256: composed.capsule.replay_digest().map_err(unwritable)?,
            rebuilt: composed.rebuilt,
            bleeds: composed.bleeds,
            carries_questions: composed.carries_questions,
        })
        .await?;
        if let Some(iteration) = &self.session.state.current {
            let files = render::of_iteration(&self.session.state, iteration, &self.session.blobs)?;
            self.write_evidence(&files, Durability::Replaceable)?;
        }
        Ok(())
    }

    /// AGENTS.md as text; bytes that are no UTF-8 are shown as such.
    pub(super) fn agents_md_text(&self) -> Result<String, EngineError> {
        let bytes = self.agents_md()?;
        Ok(self.secrets().redact_known(&String::from_utf8_lossy(&bytes)).into_owned())
    }

    pub(super) async fn collect_artifacts(&mut self) -> Result<(), EngineError> {
        let before = match &self.session.state.tree {
            Some(digest) => self.load_tree(digest)?,
            None => TreeSnapshot::default(),
        };
        let start = match &self.session.state.baseline.tree {
            Some(digest) => self.load_tree(digest)?,
            None => TreeSnapshot::default(),
        };
        let Some((after, tree)) = self.snapshot().await? else { return Ok(()) };
        let changes: Vec<Change> = tree::diff(&before, &after)
            .into_iter()
            .map(|change| Change {
                path: change.path,
                kind: match change.kind {
                    tree::ChangeKind::Added => ChangeKind::Added,
                    tree::ChangeKind::Modified => ChangeKind::Modified,
                    tree::ChangeKind::Deleted => ChangeKind::Deleted,
                },
                sha256: change.sha256,
            })
            .collect();
        let patch = diff::patch(self.session.run_dir.path(), &self.session.workspace, &before, &changes);
        let diff = self.session.blobs.put(self.secrets().redact_known(&patch).as_bytes())?;
        diff::keep_contents(self.session.run_dir.path(), &self.session.workspace, &after, self.secrets());
        let guards_touched = protect::touched(&self.session.state.criteria, &start, &after);
        let mut instruments_touched = protect::instruments_touched(self.session.state.loop_file(), &start, &after);
        instruments_touched.extend(protect::planted(&start, &after));
        let guards = guards_touched.values().flat_map(|touched| touched.script.iter().chain(&touched.others));
        let touched_now = guards
            .chain(&instruments_touched)
            .map(|path| (path.clone(), after.state_of(path).map(|file| file.sha256)))
            .collect();
        let collected = ArtifactsCollected {
            iteration: self.session.state.iteration_number(),
            tree,
            guards_touched,
            instruments_touched,
            touched_now,
            changes,
            diff,
            northstar_sha256: self.northstar_now(),
            learnings_intact: self.learnings_intact(),
            mended: std::mem::take(&mut self.mended),
        };
        journal::failpoint("artifacts");
        self.record(collected).await
    }

    /// Our block in AGENTS.md must be what we wrote last, or not there before we wrote any.
    fn learnings_intact(&self) -> bool {
        let state = &self.session.state;
        let Ok(file) = self.agents_md() else { return false };
        let expected = (!state.entries().is_empty()).then(|| state.learnings_document());
        match (learnings::extract(&file, state.run()), expected) {
            (Ok(None), None) => true,
            (Ok(Some(block)), Some(expected)) => block == expected.as_bytes(),
            _ => false,
        }
    }
}

/// Reads the Northstar. The error is for the operator.
fn read_northstar(workspace: &Path, file: &str) -> Result<Vec<u8>, String> {
    people_document::read(workspace, file, MAX_NORTHSTAR_BYTES)?.ok_or_else(|| format!("{file} is not there"))
}
