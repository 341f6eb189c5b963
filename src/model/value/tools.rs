//! The structured tools of the value playbook: what agents hand in, as types with schemas.
//!
//! Role: the types, their schemas, and whether a report is complete and bounded by itself. Not its role: whether it
//! fits the run (`playbook::value`, `guard`).
//!
//! Invariants: what is accepted is strict and bounded; a rejection says in words what to change; what was written to
//! a journal reads back as it was.

mod aliases;
mod bounds;
mod course;
mod documents;
mod plan;
pub mod service;

use serde::{Deserialize, Serialize};

use crate::model::purpose::Tool;

use bounds::Check;
pub use bounds::{MAX_DOCUMENT, MAX_LIST, MAX_NOTES, MAX_TEXT, is_inside};
pub use course::{
    Coherence, CoherenceFinding, CoherenceReport, CorrectionAction, CourseCorrection, EvalFinding, RootCause,
    StrategyAction, StrategyChange, Triage, VrcReport,
};
pub use documents::{
    CodebaseState, Critique, CritiqueVerdict, DeliverableType, Dimensions, Discovery, IssueCategory, PrdProposal,
    PreflightReport, PreflightStatus, ResearchReport, Strength, VisionIssueReport, VisionPass, VisionValidation,
    VisionVerdict,
};
pub use plan::{
    Confidence, EpicDecomposition, EpicPlan, EpicSummary, HumanActionRequest, ManageTask, TaskAction, TaskComplete,
    WrongCheck,
};
pub use service::{HealthType, MAX_SERVICES, ManageService, Service, ServiceAction, StopSignal};

/// The table of the tools: what each of them brings.
macro_rules! structured {
    ($($tool:ident($input:ident),)+) => {
        /// What one structured tool brought.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "tool", content = "input", rename_all = "snake_case")]
        pub enum Structured {
            $($tool($input),)+
        }

        impl Structured {
            pub const fn tool(&self) -> Tool {
                match self { $(Self::$tool(_) => Tool::$tool,)+ }
            }

            /// `None`: no tool of this playbook.
            fn read(tool: Tool, input: serde_json::Value) -> Option<Result<Self, String>> {
                Some(match tool {
                    $(Tool::$tool => read(input).map(Self::$tool),)+
                    Tool::SubmitScoutReport
                    | Tool::SubmitSolverReport
                    | Tool::SubmitSkepticReport
                    | Tool::SubmitAuthorReport
                    | Tool::SubmitCritique => return None,
                })
            }
        }

        /// The JSON schema of a tool of this playbook.
        pub fn schema(tool: Tool) -> Option<schemars::Schema> {
            Some(match tool {
                $(Tool::$tool => schemars::schema_for!($input),)+
                Tool::SubmitScoutReport
                | Tool::SubmitSolverReport
                | Tool::SubmitSkepticReport
                | Tool::SubmitAuthorReport
                | Tool::SubmitCritique => return None,
            })
        }
    };
}

structured! {
    ManageTask(ManageTask),
    ManageService(ManageService),
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
    ReportWrongCheck(WrongCheck),
}

impl Structured {
    /// Reads what an agent handed in. The error text goes back to the agent. `None`: no tool of this playbook.
    pub fn parse(tool: Tool, input: &serde_json::Value) -> Option<Result<Self, String>> {
        match aliases::resolved(tool, input) {
            Ok(input) => Self::read(tool, input),
            Err(why) => Some(Err(why)),
        }
    }
}

fn read<T: serde::de::DeserializeOwned + Check>(input: serde_json::Value) -> Result<T, String> {
    let report: T = serde_json::from_value(input).map_err(|e| format!("the report does not fit its schema: {e}"))?;
    report.check()?;
    Ok(report)
}

#[cfg(test)]
mod tests;
