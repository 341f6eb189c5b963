//! The beginning of the work: the plan, and each iteration with its capsule.

use crate::evidence::render;
use crate::machine::compose;
use crate::machine::document;
use crate::machine::event::{IterationBegan, PlanWritten};
use crate::model::canonical::CanonicalError;
use crate::model::ids::Role;
use crate::workspace::plain::Durability;

use super::context::Context;
use super::error::EngineError;
use super::evidence_files::EvidenceFiles;
use super::{git, learn};

pub(super) async fn write_plan(cx: &mut Context<'_>, evidence: &mut EvidenceFiles) -> Result<(), EngineError> {
    let sha256 = document::digest(&document::plan(cx.state()));
    cx.record(PlanWritten { sha256 }).await?;
    evidence.write_run(cx.workspace(), cx.state(), cx.blobs())
}

pub(super) async fn begin(cx: &mut Context<'_>, evidence: &mut EvidenceFiles) -> Result<(), EngineError> {
    if !git::mark_iteration(cx).await? {
        return Ok(());
    }
    let text = learn::agents_md_text(cx)?;
    let elapsed = cx.recorder.spent_now().millis;
    let composed = compose::compose(cx.state(), &text, Role::Scout, elapsed);
    let unwritable = |e: CanonicalError| EngineError::Internal(e.to_string());
    let capsule = cx.blobs().put(composed.capsule.text().map_err(unwritable)?.as_bytes())?;
    cx.record(IterationBegan {
        iteration: cx.state().iteration_number(),
        capsule,
        capsule_replay_sha256: composed.capsule.replay_digest().map_err(unwritable)?,
        rebuilt: composed.rebuilt,
        bleeds: composed.bleeds,
        carries_questions: composed.carries_questions,
    })
    .await?;
    if let Some(iteration) = &cx.state().current {
        let files = render::of_iteration(cx.state(), iteration, cx.blobs())?;
        evidence.write(cx.workspace(), &files, Durability::Replaceable)?;
    }
    Ok(())
}
