//! Writes AGENTS.md: our block, and nothing else in the file.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use crate::evidence::render;
use crate::evidence::store::{self, Durability};
use crate::journal;
use crate::machine::event::{Event, GlowScored, LearningsRecorded};
use crate::machine::step;
use crate::model::digest::Digest;
use crate::model::learnings;

use super::driver::Driver;
use super::error::EngineError;

impl Driver<'_> {
    pub(super) async fn write_learnings(&mut self) -> Result<(), EngineError> {
        let state = &self.session.state;
        let accumulated = step::accumulate(state)
            .ok_or_else(|| EngineError::Internal("there is no certificate to learn from".to_owned()))?;
        let header = state.learnings_header();
        let mut entries = state.entries();
        entries.push(accumulated.entry.clone());
        let compacted_before = learnings::compaction_point(&header, &entries, state.spec());
        let newly_compacted = compacted_before.filter(|point| state.compacted_before != Some(*point));
        let compaction =
            newly_compacted.and_then(|point| learnings::compaction_log(&header, &entries, state.spec(), point));
        let document = learnings::render_document(&header, &entries, state.spec(), compacted_before);
        let iteration = state.iteration_number();
        let before = state.learnings_sha256;

        self.put_block(&document)?;
        journal::failpoint("learnings");
        let scored = self.session.state.current.as_ref().is_some_and(|iteration| iteration.glow.is_some());
        let mut events = Vec::new();
        if !scored {
            events.push(Event::from(GlowScored { iteration, glow: accumulated.glow }));
        }
        events.push(
            LearningsRecorded {
                iteration,
                entry: accumulated.entry,
                review: accumulated.review,
                before,
                after: Digest::of(document.as_bytes()),
                compacted_before,
                compaction,
            }
            .into(),
        );
        self.append(events).await?;
        self.render_iteration()
    }

    fn render_iteration(&mut self) -> Result<(), EngineError> {
        let state = &self.session.state;
        let Some(iteration) = &state.current else { return Ok(()) };
        let files = render::of_iteration(state, iteration, &self.session.blobs)?;
        self.manifest.retain(|listed| listed.iteration != Some(iteration.number()));
        self.manifest.extend(files.iter().map(render::Listed::of));
        let run_files = render::of_run(state);
        let mut listed = self.manifest.clone();
        listed.extend(run_files.iter().map(render::Listed::of));
        let manifest = render::manifest(state, listed);
        for batch in [files, run_files, vec![manifest]] {
            self.write_evidence(&batch, Durability::Replaceable)?;
        }
        Ok(())
    }

    /// Replaces our block in the file as it is now; foreign bytes stay as they are.
    fn put_block(&self, document: &str) -> Result<(), EngineError> {
        let path = self.agents_md_path();
        let file = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == ErrorKind::NotFound => Vec::new(),
            Err(e) => return Err(EngineError::io("cannot read AGENTS.md", &path, e)),
        };
        let spliced =
            learnings::splice(&file, self.session.state.run(), document).map_err(|e| EngineError::Resumable {
                message: format!("AGENTS.md cannot take this iteration's entry: {e}"),
                hint: "restore the markers of the generated block, then `nightloop resume`".to_owned(),
            })?;
        if spliced == file {
            return Ok(());
        }
        store::replace(&path, &spliced, Durability::Synced)
            .map_err(|e| EngineError::io("cannot write AGENTS.md", &path, e))
    }

    /// A symlinked AGENTS.md stays a symlink: its target is written.
    pub(super) fn agents_md_path(&self) -> PathBuf {
        let path = self.session.workspace.join("AGENTS.md");
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_symlink() => path.canonicalize().unwrap_or(path),
            Ok(_) | Err(_) => path,
        }
    }
}
