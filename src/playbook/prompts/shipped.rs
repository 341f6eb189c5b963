//! The shipped prompts: one text for each purpose, built in.

use crate::model::purpose::Purpose;

/// The shipped text of a prompt.
pub const fn text(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Scout => include_str!("../../../prompts/scout.md"),
        Purpose::Solver => include_str!("../../../prompts/solver.md"),
        Purpose::Skeptic => include_str!("../../../prompts/skeptic.md"),
        Purpose::VisionExtract => include_str!("../../../prompts/value/vision_extract.md"),
        Purpose::VisionForces => include_str!("../../../prompts/value/vision_forces.md"),
        Purpose::VisionCauses => include_str!("../../../prompts/value/vision_causes.md"),
        Purpose::VisionPremortem => include_str!("../../../prompts/value/vision_premortem.md"),
        Purpose::VisionValidate => include_str!("../../../prompts/value/vision_validate.md"),
        Purpose::VisionResearch => include_str!("../../../prompts/value/vision_research.md"),
        Purpose::EpicDecompose => include_str!("../../../prompts/value/epic_decompose.md"),
        Purpose::DiscoverContext => include_str!("../../../prompts/value/discover_context.md"),
        Purpose::PrdCritique => include_str!("../../../prompts/value/prd_critique.md"),
        Purpose::PrdResearch => include_str!("../../../prompts/value/prd_research.md"),
        Purpose::PrdAmend => include_str!("../../../prompts/value/prd_amend.md"),
        Purpose::Plan => include_str!("../../../prompts/value/plan.md"),
        Purpose::Craap => include_str!("../../../prompts/value/craap.md"),
        Purpose::Clarity => include_str!("../../../prompts/value/clarity.md"),
        Purpose::Validate => include_str!("../../../prompts/value/validate.md"),
        Purpose::Connect => include_str!("../../../prompts/value/connect.md"),
        Purpose::Break => include_str!("../../../prompts/value/break.md"),
        Purpose::Prune => include_str!("../../../prompts/value/prune.md"),
        Purpose::Tidy => include_str!("../../../prompts/value/tidy.md"),
        Purpose::VerifyBlockers => include_str!("../../../prompts/value/verify_blockers.md"),
        Purpose::Preflight => include_str!("../../../prompts/value/preflight.md"),
        Purpose::Execute => include_str!("../../../prompts/value/execute.md"),
        Purpose::GenerateVerifications => include_str!("../../../prompts/value/generate_verifications.md"),
        Purpose::Triage => include_str!("../../../prompts/value/triage.md"),
        Purpose::Fix => include_str!("../../../prompts/value/fix.md"),
        Purpose::ServiceFix => include_str!("../../../prompts/value/service_fix.md"),
        Purpose::Research => include_str!("../../../prompts/value/research.md"),
        Purpose::CriticalEval => include_str!("../../../prompts/value/critical_eval.md"),
        Purpose::CourseCorrect => include_str!("../../../prompts/value/course_correct.md"),
        Purpose::InteractivePause => include_str!("../../../prompts/value/interactive_pause.md"),
        Purpose::PlanHealth => include_str!("../../../prompts/value/plan_health_check.md"),
        Purpose::Strategy => include_str!("../../../prompts/value/process_monitor.md"),
        Purpose::Coherence => include_str!("../../../prompts/value/coherence_eval.md"),
        Purpose::VrcQuick => include_str!("../../../prompts/value/vrc_quick.md"),
        Purpose::VrcFull => include_str!("../../../prompts/value/vrc.md"),
        Purpose::ExitGate => include_str!("../../../prompts/value/exit_gate.md"),
        Purpose::EpicSummary => include_str!("../../../prompts/value/epic_feedback.md"),
    }
}
