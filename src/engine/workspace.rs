//! Reads the workspace: Northstar, tree, artifacts; writes the plan and begins iterations.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::evidence::ours;
use crate::evidence::render;
use crate::evidence::store::Durability;
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
use crate::tool::tree::{self, TreeSnapshot};

use super::diff;
use super::driver::Driver;
use super::error::EngineError;
use super::protect;

/// A larger NORTHSTAR.md is refused by its parser; this only bounds the read.
const MAX_NORTHSTAR_BYTES: u64 = 2 << 20;
/// Learnings beyond this are not read into a capsule.
const MAX_AGENTS_MD_BYTES: u64 = 16 << 20;

impl Driver<'_> {
    pub(super) async fn read_northstar(&mut self) -> Result<(), EngineError> {
        let file = self.session.state.loop_file().northstar_file().to_owned();
        let read = match read_bounded(&self.session.workspace.join(&file), MAX_NORTHSTAR_BYTES) {
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
        read_bounded(&self.session.workspace.join(file), MAX_NORTHSTAR_BYTES).ok().map(|bytes| Digest::of(&bytes))
    }

    /// The tree as it is, kept as a blob.
    async fn snapshot(&mut self) -> Result<(TreeSnapshot, Digest), EngineError> {
        let workspace = self.session.workspace.clone();
        let cache = self.tree_cache.take();
        let excluded = ours::excluded(self.session.state.loop_file());
        // Hashing a large tree must not hold up the watch for stop signals.
        let taken = tokio::task::spawn_blocking(move || {
            let excluded: Vec<&str> = excluded.iter().map(String::as_str).collect();
            let result = tree::snapshot(&workspace, &excluded, cache.as_ref());
            result.map_err(|e| EngineError::io("cannot read the workspace", &workspace, e))
        });
        let (snapshot, cache) = taken.await.map_err(|e| EngineError::Internal(e.to_string()))??;
        self.tree_cache = Some(cache);
        let text = canonical::compact(&snapshot).map_err(|e| EngineError::Internal(e.to_string()))?;
        let digest = self.session.blobs.put(text.as_bytes())?;
        Ok((snapshot, digest))
    }

    fn load_tree(&self, digest: &Digest) -> Result<TreeSnapshot, EngineError> {
        let bytes = self.session.blobs.get(digest)?;
        serde_json::from_slice(&bytes).map_err(|e| EngineError::Internal(format!("tree {}: {e}", digest.short())))
    }

    pub(super) async fn take_tree(&mut self, purpose: TreePurpose) -> Result<(), EngineError> {
        let (snapshot, digest) = self.snapshot().await?;
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
        let text = self.agents_md_text();
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
    pub(super) fn agents_md_text(&self) -> String {
        let path = self.session.workspace.join("AGENTS.md");
        let bytes = read_bounded(&path, MAX_AGENTS_MD_BYTES).unwrap_or_default();
        self.secrets().redact_known(&String::from_utf8_lossy(&bytes)).into_owned()
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
        let (after, tree) = self.snapshot().await?;
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
        };
        journal::failpoint("artifacts");
        self.record(collected).await
    }

    /// Our block in AGENTS.md must be what we wrote last, or not there before we wrote any.
    fn learnings_intact(&self) -> bool {
        let state = &self.session.state;
        let file = fs::read(self.session.workspace.join("AGENTS.md")).unwrap_or_default();
        let expected = (!state.entries().is_empty()).then(|| state.learnings_document());
        match (learnings::extract(&file, state.run()), expected) {
            (Ok(None), None) => true,
            (Ok(Some(block)), Some(expected)) => block == expected.as_bytes(),
            _ => false,
        }
    }
}

/// Reads a file that must not be huge. The error is for the operator.
fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, String> {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let meta = fs::metadata(path).map_err(|e| format!("{name} cannot be read: {e}"))?;
    if !meta.is_file() {
        return Err(format!("{name} is not a file"));
    }
    if meta.len() > limit {
        return Err(format!("{name} is {} bytes; at most {limit} are read", meta.len()));
    }
    fs::read(path).map_err(|e| format!("{name} cannot be read: {e}"))
}
