//! The structured tools: one row for each, everything else is derived.
//!
//! Not here: what is handed in with them (`model::report`, `model::value::tools`).

use std::fmt;

use serde::{Deserialize, Serialize};

/// What an accepted use means for the call.
#[derive(Clone, Copy)]
enum After {
    /// It is over.
    Ends,
    /// The tool may be used again and again.
    GoesOn,
}

/// A row is: the tool, its name for agents and journals, what its use means for the call, what agents are told of it.
macro_rules! tools {
    ($($tool:ident = $name:literal, $after:ident, $description:expr;)+) => {
        /// A tool that hands something structured to the engine. It changes no file: the engine decides what it means.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Tool {
            $(#[serde(rename = $name)] $tool,)+
        }

        impl Tool {
            pub const ALL: [Self; [$(Self::$tool,)+].len()] = [$(Self::$tool,)+];

            pub const fn name(self) -> &'static str {
                match self { $(Self::$tool => $name,)+ }
            }

            /// What an agent is told about it.
            pub const fn description(self) -> &'static str {
                match self { $(Self::$tool => $description,)+ }
            }

            const fn after(self) -> After {
                match self { $(Self::$tool => After::$after,)+ }
            }
        }
    };
}

const HAND_IN: &str = "Hand in your report. This ends your part of the iteration.";

tools! {
    SubmitScoutReport = "submit_scout_report", Ends, HAND_IN;
    SubmitSolverReport = "submit_solver_report", Ends, HAND_IN;
    SubmitSkepticReport = "submit_skeptic_report", Ends, HAND_IN;
    SubmitAuthorReport = "submit_author_report", Ends, HAND_IN;
    SubmitCritique = "submit_critique", Ends, HAND_IN;
    ManageTask = "manage_task", GoesOn, "Add, modify or remove one task of the plan. A rejection says what to change.";
    ManageService = "manage_service", GoesOn, "Declare a service that has to run (a server, a database): the engine starts it, supervises it and ends it with the run. A rejection says what to change.";
    ReportTaskComplete = "report_task_complete", Ends, "Report that the task you were given is done. This ends your part.";
    ReportDiscovery = "report_discovery", Ends, "Report what this workspace is and needs. This ends your part.";
    ReportCritique = "report_critique", Ends, "Report your verdict on the PRD. This ends your part.";
    ProposePrd = "propose_prd", Ends, "Propose the whole new text of the PRD. This ends your part.";
    ReportTriage = "report_triage", Ends, "Report the root causes of the failures. This ends your part.";
    RequestHumanAction = "request_human_action", Ends, "Ask for something only a person can do. This ends your part.";
    ReportVrc = "report_vrc", Ends, "Report how much of the promised value is there. This ends your part.";
    ReportCourseCorrection = "report_course_correction", Ends, "Report how the course is corrected. This ends your part.";
    ReportEvalFinding = "report_eval_finding", GoesOn, "Report one finding; use it once for each.";
    ReportResearch = "report_research", Ends, "Report what you found out. This ends your part.";
    ReportVisionPass = "report_vision_pass", Ends, "Hand your notes to the next pass. This ends your part.";
    ReportVisionValidation = "report_vision_validation", Ends, "Report your verdict on the vision. This ends your part.";
    ReportStrategyChange = "report_strategy_change", Ends, "Report what is to change in how the work is done. This ends your part.";
    ReportPreflight = "report_preflight", Ends, "Report whether the work can begin. This ends your part.";
    ReportEpicDecomposition = "report_epic_decomposition", Ends, "Report the slices of the vision. This ends your part.";
    ReportEpicSummary = "report_epic_summary", Ends, "Report what this slice delivered. This ends your part.";
    ReportCoherence = "report_coherence", Ends, "Report how well it all fits together. This ends your part.";
    ReportWrongCheck = "report_wrong_check", GoesOn, "Say that a check asks for the wrong thing; use it once for each. Its author looks at it next; change no check yourself.";
}

impl Tool {
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// Does a call end once this is accepted?
    pub const fn ends_call(self) -> bool {
        matches!(self.after(), After::Ends)
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
