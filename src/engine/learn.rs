//! Writes AGENTS.md: our block, and nothing else in the file.

use crate::journal;
use crate::machine::event::{Event, GlowScored, LearningsRecorded};
use crate::machine::step;
use crate::model::digest::Digest;
use crate::model::learnings;
use crate::workspace::document;

use super::context::Context;
use super::error::EngineError;
use super::evidence_files::EvidenceFiles;

pub(super) async fn write(cx: &mut Context<'_>, evidence: &mut EvidenceFiles) -> Result<(), EngineError> {
    let state = cx.state();
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

    put_block(cx, &document)?;
    journal::failpoint("learnings");
    let scored = cx.state().current.as_ref().is_some_and(|iteration| iteration.glow.is_some());
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
    cx.recorder.append(events).await?;
    evidence.write_iteration(cx.workspace(), cx.state(), cx.blobs())
}

/// Replaces our block in the file as it is now; foreign bytes stay as they are.
fn put_block(cx: &Context<'_>, text: &str) -> Result<(), EngineError> {
    let file = agents_md(cx)?;
    let spliced = learnings::splice(&file, cx.state().run(), text).map_err(|e| EngineError::Resumable {
        message: format!("AGENTS.md cannot take this iteration's entry: {e}"),
        hint: "restore the markers of the generated block, then run `nightloop resume`".to_owned(),
    })?;
    if spliced == file {
        return Ok(());
    }
    document::replace(cx.workspace(), learnings::FILE, &spliced, &[]).map_err(unusable)
}

/// AGENTS.md as it is; nothing where there is none. A link to another file of the workspace is followed, as many
/// projects have one; anything that leads out of it or is no file is refused.
pub(super) fn agents_md(cx: &Context<'_>) -> Result<Vec<u8>, EngineError> {
    let file = document::read(cx.workspace(), learnings::FILE, learnings::MAX_FILE).map_err(unusable)?;
    Ok(file.unwrap_or_default())
}

/// Our block in AGENTS.md must be what we wrote last, or not there before we wrote any.
pub(super) fn is_intact(cx: &Context<'_>) -> bool {
    let state = cx.state();
    let Ok(file) = agents_md(cx) else { return false };
    let expected = (!state.entries().is_empty()).then(|| state.learnings_document());
    match (learnings::extract(&file, state.run()), expected) {
        (Ok(None), None) => true,
        (Ok(Some(block)), Some(expected)) => block == expected.as_bytes(),
        _ => false,
    }
}

/// AGENTS.md as text; bytes that are no UTF-8 are shown as such.
pub(super) fn agents_md_text(cx: &Context<'_>) -> Result<String, EngineError> {
    let bytes = agents_md(cx)?;
    Ok(cx.secrets().redact_known(&String::from_utf8_lossy(&bytes)).into_owned())
}

fn unusable(why: String) -> EngineError {
    EngineError::Resumable {
        message: format!("AGENTS.md cannot be used: {why}"),
        hint: "put a regular file there, then run `nightloop resume`".to_owned(),
    }
}
