//! Writes AGENTS.md: our block, and nothing else in the file.

use crate::evidence::render;
use crate::journal;
use crate::machine::event::{Event, GlowScored, LearningsRecorded};
use crate::machine::step;
use crate::model::digest::Digest;
use crate::model::learnings;
use crate::workspace::document;
use crate::workspace::plain::Durability;

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
    fn put_block(&self, text: &str) -> Result<(), EngineError> {
        let file = self.agents_md()?;
        let spliced = learnings::splice(&file, self.session.state.run(), text).map_err(|e| EngineError::Resumable {
            message: format!("AGENTS.md cannot take this iteration's entry: {e}"),
            hint: "restore the markers of the generated block, then run `nightloop resume`".to_owned(),
        })?;
        if spliced == file {
            return Ok(());
        }
        document::replace(&self.session.workspace, learnings::FILE, &spliced, &[]).map_err(unusable)
    }

    /// AGENTS.md as it is; nothing where there is none. A link to another file of the workspace is followed, as many
    /// projects have one; anything that leads out of it or is no file is refused.
    pub(super) fn agents_md(&self) -> Result<Vec<u8>, EngineError> {
        let file = document::read(&self.session.workspace, learnings::FILE, learnings::MAX_FILE).map_err(unusable)?;
        Ok(file.unwrap_or_default())
    }
}

fn unusable(why: String) -> EngineError {
    EngineError::Resumable {
        message: format!("AGENTS.md cannot be used: {why}"),
        hint: "put a regular file there, then run `nightloop resume`".to_owned(),
    }
}
