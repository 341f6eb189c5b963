//! The structured tools of the value playbook: what agents hand in, as types with schemas.
//!
//! Role: the types, their schemas, and whether a report is complete and bounded by itself. Not its role: whether it
//! fits the run (`machine::value::admit`, `guard`).
//!
//! Invariants: what is accepted is strict and bounded; a rejection says in words what to change; what was written to
//! a journal reads back as it was.

mod aliases;
mod bounds;
mod course;
mod documents;
mod plan;

use serde::{Deserialize, Serialize};

use crate::model::purpose::Tool;

use bounds::Check;
pub use bounds::{MAX_DOCUMENT, MAX_LIST, MAX_NOTES, MAX_TEXT, is_inside};
pub use course::{
    Coherence, CoherenceFinding, CoherenceReport, CorrectionAction, CourseCorrection, EvalFinding, RootCause,
    StrategyAction, StrategyChange, Triage, VrcReport,
};
pub use documents::{
    CodebaseState, Critique, CritiqueVerdict, DeliverableType, Dimensions, Discovery, HealthType, IssueCategory,
    PrdProposal, PreflightReport, PreflightStatus, ResearchReport, Service, Strength, VisionIssueReport, VisionPass,
    VisionValidation, VisionVerdict,
};
pub use plan::{
    Confidence, EpicDecomposition, EpicPlan, EpicSummary, HumanActionRequest, ManageTask, TaskAction, TaskComplete,
};

/// What one structured tool brought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "tool", content = "input", rename_all = "snake_case")]
pub enum Structured {
    ManageTask(ManageTask),
    ReportTaskComplete(TaskComplete),
    ReportDiscovery(Discovery),
    ReportCritique(Critique),
    ProposePrd(PrdProposal),
    ReportTriage(Triage),
    RequestHumanAction(HumanActionRequest),
    ReportVrc(VrcReport),
    ReportCourseCorrection(CourseCorrection),
    ReportEvalFinding(EvalFinding),
    ReportResearch(ResearchReport),
    ReportVisionPass(VisionPass),
    ReportVisionValidation(VisionValidation),
    ReportStrategyChange(StrategyChange),
    ReportPreflight(PreflightReport),
    ReportEpicDecomposition(EpicDecomposition),
    ReportEpicSummary(EpicSummary),
    ReportCoherence(CoherenceReport),
}

impl Structured {
    pub const fn tool(&self) -> Tool {
        match self {
            Self::ManageTask(_) => Tool::ManageTask,
            Self::ReportTaskComplete(_) => Tool::ReportTaskComplete,
            Self::ReportDiscovery(_) => Tool::ReportDiscovery,
            Self::ReportCritique(_) => Tool::ReportCritique,
            Self::ProposePrd(_) => Tool::ProposePrd,
            Self::ReportTriage(_) => Tool::ReportTriage,
            Self::RequestHumanAction(_) => Tool::RequestHumanAction,
            Self::ReportVrc(_) => Tool::ReportVrc,
            Self::ReportCourseCorrection(_) => Tool::ReportCourseCorrection,
            Self::ReportEvalFinding(_) => Tool::ReportEvalFinding,
            Self::ReportResearch(_) => Tool::ReportResearch,
            Self::ReportVisionPass(_) => Tool::ReportVisionPass,
            Self::ReportVisionValidation(_) => Tool::ReportVisionValidation,
            Self::ReportStrategyChange(_) => Tool::ReportStrategyChange,
            Self::ReportPreflight(_) => Tool::ReportPreflight,
            Self::ReportEpicDecomposition(_) => Tool::ReportEpicDecomposition,
            Self::ReportEpicSummary(_) => Tool::ReportEpicSummary,
            Self::ReportCoherence(_) => Tool::ReportCoherence,
        }
    }

    /// Reads what an agent handed in. The error text goes back to the agent. `None`: no tool of this playbook.
    pub fn parse(tool: Tool, input: &serde_json::Value) -> Option<Result<Self, String>> {
        fn read<T: serde::de::DeserializeOwned + Check>(
            input: &serde_json::Value,
            make: impl Fn(T) -> Structured,
        ) -> Option<Result<Structured, String>> {
            let read = serde_json::from_value::<T>(input.clone());
            let read = read.map_err(|e| format!("the report does not fit its schema: {e}"));
            Some(read.and_then(|report| report.check().map(|()| make(report))))
        }
        let input = &match aliases::resolved(tool, input) {
            Ok(input) => input,
            Err(why) => return Some(Err(why)),
        };
        match tool {
            Tool::SubmitScoutReport
            | Tool::SubmitSolverReport
            | Tool::SubmitSkepticReport
            | Tool::SubmitAuthorReport
            | Tool::SubmitCritique => None,
            Tool::ManageTask => read(input, Self::ManageTask),
            Tool::ReportTaskComplete => read(input, Self::ReportTaskComplete),
            Tool::ReportDiscovery => read(input, Self::ReportDiscovery),
            Tool::ReportCritique => read(input, Self::ReportCritique),
            Tool::ProposePrd => read(input, Self::ProposePrd),
            Tool::ReportTriage => read(input, Self::ReportTriage),
            Tool::RequestHumanAction => read(input, Self::RequestHumanAction),
            Tool::ReportVrc => read(input, Self::ReportVrc),
            Tool::ReportCourseCorrection => read(input, Self::ReportCourseCorrection),
            Tool::ReportEvalFinding => read(input, Self::ReportEvalFinding),
            Tool::ReportResearch => read(input, Self::ReportResearch),
            Tool::ReportVisionPass => read(input, Self::ReportVisionPass),
            Tool::ReportVisionValidation => read(input, Self::ReportVisionValidation),
            Tool::ReportStrategyChange => read(input, Self::ReportStrategyChange),
            Tool::ReportPreflight => read(input, Self::ReportPreflight),
            Tool::ReportEpicDecomposition => read(input, Self::ReportEpicDecomposition),
            Tool::ReportEpicSummary => read(input, Self::ReportEpicSummary),
            Tool::ReportCoherence => read(input, Self::ReportCoherence),
        }
    }
}

/// The JSON schema of a tool of this playbook.
pub fn schema(tool: Tool) -> Option<schemars::Schema> {
    Some(match tool {
        Tool::SubmitScoutReport
        | Tool::SubmitSolverReport
        | Tool::SubmitSkepticReport
        | Tool::SubmitAuthorReport
        | Tool::SubmitCritique => return None,
        Tool::ManageTask => schemars::schema_for!(ManageTask),
        Tool::ReportTaskComplete => schemars::schema_for!(TaskComplete),
        Tool::ReportDiscovery => schemars::schema_for!(Discovery),
        Tool::ReportCritique => schemars::schema_for!(Critique),
        Tool::ProposePrd => schemars::schema_for!(PrdProposal),
        Tool::ReportTriage => schemars::schema_for!(Triage),
        Tool::RequestHumanAction => schemars::schema_for!(HumanActionRequest),
        Tool::ReportVrc => schemars::schema_for!(VrcReport),
        Tool::ReportCourseCorrection => schemars::schema_for!(CourseCorrection),
        Tool::ReportEvalFinding => schemars::schema_for!(EvalFinding),
        Tool::ReportResearch => schemars::schema_for!(ResearchReport),
        Tool::ReportVisionPass => schemars::schema_for!(VisionPass),
        Tool::ReportVisionValidation => schemars::schema_for!(VisionValidation),
        Tool::ReportStrategyChange => schemars::schema_for!(StrategyChange),
        Tool::ReportPreflight => schemars::schema_for!(PreflightReport),
        Tool::ReportEpicDecomposition => schemars::schema_for!(EpicDecomposition),
        Tool::ReportEpicSummary => schemars::schema_for!(EpicSummary),
        Tool::ReportCoherence => schemars::schema_for!(CoherenceReport),
    })
}

#[cfg(test)]
mod tests;
