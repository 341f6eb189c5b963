//! What an agent call is for: its role, its prompt, the structured tools it is given, and what ends it.
//!
//! A role says who works and what may be touched; a purpose says why it is called this time. The swarm calls each
//! of its roles for one purpose; the value playbook has one for every prompt. Each is a row of one table.

mod tool;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ids::Role;
pub use tool::Tool;

/// Groups of rows, each with the folder of its prompts. A row is: the purpose, the name of its prompt, who is called,
/// what it does in words, the tools it may use, and the one that ends it. Where none does, a reply without a tool
/// ends the call.
macro_rules! purposes {
    ($($folder:literal {
        $($purpose:ident = $name:literal, $role:ident, $words:literal, [$($tool:ident)*] $(=> $closing:ident)?;)+
    })+) => {
        /// Why an agent is called. A journal names it by its own name, not by that of its prompt.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Purpose {
            $($($purpose,)+)+
        }

        impl Purpose {
            pub const ALL: [Self; [$($(Self::$purpose,)+)+].len()] = [$($(Self::$purpose,)+)+];

            /// The name of its prompt, and its word in a call's key.
            pub const fn name(self) -> &'static str {
                match self { $($(Self::$purpose => $name,)+)+ }
            }

            /// The shipped text of its prompt.
            pub const fn prompt(self) -> &'static str {
                match self {
                    $($(Self::$purpose => include_str!(concat!("../../prompts/", $folder, $name, ".md")),)+)+
                }
            }

            pub const fn role(self) -> Role {
                match self { $($(Self::$purpose => Role::$role,)+)+ }
            }

            /// What the call does, for people; what it is about may follow.
            pub const fn words(self) -> &'static str {
                match self { $($(Self::$purpose => $words,)+)+ }
            }

            /// The structured tools of this call, the one that ends it last.
            pub const fn tools(self) -> &'static [Tool] {
                match self { $($(Self::$purpose => &[$(Tool::$tool,)* $(Tool::$closing)?],)+)+ }
            }

            /// The tool without which the call is not finished; `None`: a reply that uses no tool ends it.
            pub const fn closing(self) -> Option<Tool> {
                let closing: &[Tool] = match self { $($(Self::$purpose => &[$(Tool::$closing)?],)+)+ };
                closing.first().copied()
            }
        }
    };
}

purposes! {
    "" {
        // The swarm.
        Scout = "scout", Scout, "scout", [] => SubmitScoutReport;
        Solver = "solver", Solver, "solve", [] => SubmitSolverReport;
        Skeptic = "skeptic", Skeptic, "doubt", [] => SubmitSkepticReport;
        // Items of a PRD, and microloops.
        Author = "author", Author, "work on", [] => SubmitAuthorReport;
        Critic = "critic", Critic, "judge", [] => SubmitCritique;
        Detour = "detour", Fixer, "detour", [];
    }
    "value/" {
        // Before the first iteration of the value playbook.
        VisionExtract = "vision_extract", Reasoner, "extract the vision", [] => ReportVisionPass;
        VisionForces = "vision_forces", Reasoner, "forces of the vision", [] => ReportVisionPass;
        VisionCauses = "vision_causes", Reasoner, "causes of the vision", [] => ReportVisionPass;
        VisionPremortem = "vision_premortem", Reasoner, "premortem of the vision", [] => ReportVisionPass;
        VisionValidate = "vision_validate", Reasoner, "validate the vision", [] => ReportVisionValidation;
        VisionResearch = "vision_research", Researcher, "research for the vision", [] => ReportResearch;
        EpicDecompose = "epic_decompose", Reasoner, "cut the vision into epics", [] => ReportEpicDecomposition;
        DiscoverContext = "discover_context", Reasoner, "discover the context", [] => ReportDiscovery;
        PrdCritique = "prd_critique", Reasoner, "critique the PRD", [] => ReportCritique;
        PrdResearch = "prd_research", Researcher, "research for the PRD", [] => ReportResearch;
        PrdAmend = "prd_amend", Reasoner, "amend the PRD", [] => ProposePrd;
        Plan = "plan", Reasoner, "make the plan", [ManageTask ManageService];
        Craap = "craap", Reasoner, "CRAAP review of the plan", [ManageTask];
        Clarity = "clarity", Reasoner, "CLARITY review of the plan", [ManageTask];
        Validate = "validate", Reasoner, "VALIDATE review of the plan", [ManageTask];
        Connect = "connect", Reasoner, "CONNECT review of the plan", [ManageTask];
        Break = "break", Reasoner, "BREAK review of the plan", [ManageTask];
        Prune = "prune", Reasoner, "PRUNE review of the plan", [ManageTask];
        Tidy = "tidy", Reasoner, "TIDY review of the plan", [ManageTask];
        VerifyBlockers = "verify_blockers", Reasoner, "verify blockers", [ManageTask];
        Preflight = "preflight", Reasoner, "preflight", [ManageService] => ReportPreflight;
        // Its steps.
        Execute = "execute", Builder, "execute", [RequestHumanAction ReportWrongCheck ManageService] => ReportTaskComplete;
        // Fixers and the author of checks do not grade themselves: they just stop.
        GenerateVerifications = "generate_verifications", Qc, "write checks", [ManageTask];
        Triage = "triage", Classifier, "triage failures", [] => ReportTriage;
        Fix = "fix", Fixer, "fix", [RequestHumanAction ReportWrongCheck];
        ServiceFix = "service_fix", Fixer, "mend services", [RequestHumanAction ManageService];
        Research = "research", Researcher, "research", [] => ReportResearch;
        CriticalEval = "critical_eval", Evaluator, "evaluate as a user", [ReportEvalFinding];
        CourseCorrect = "course_correct", Reasoner, "correct the course", [ManageTask ManageService] => ReportCourseCorrection;
        InteractivePause = "interactive_pause", Reasoner, "prepare a pause", [] => RequestHumanAction;
        PlanHealth = "plan_health_check", Reasoner, "health of the plan", [ManageTask];
        Strategy = "process_monitor", Reasoner, "rethink the strategy", [] => ReportStrategyChange;
        Coherence = "coherence_eval", Evaluator, "coherence", [] => ReportCoherence;
        VrcQuick = "vrc_quick", Evaluator, "quick value check", [] => ReportVrc;
        VrcFull = "vrc", Evaluator, "value check", [] => ReportVrc;
        ExitGate = "exit_gate", Evaluator, "exit gate", [] => ReportVrc;
        EpicSummary = "epic_feedback", Reasoner, "sum up", [] => ReportEpicSummary;
    }
}

impl Purpose {
    /// By the name of its prompt, or by its word in a journal.
    pub fn of_name(name: &str) -> Option<Self> {
        let by_prompt = Self::ALL.into_iter().find(|purpose| purpose.name() == name);
        by_prompt.or_else(|| serde_json::from_value(name.into()).ok())
    }

    /// Does it look at the result as somebody who has not seen it come about?
    pub const fn has_fresh_eyes(self) -> bool {
        matches!(self, Self::ExitGate | Self::CriticalEval)
    }

    /// May it ask a person with the asking tool? What the playbook itself asks comes through its own steps.
    pub const fn may_ask(self) -> bool {
        matches!(self, Self::Scout | Self::Solver | Self::Author)
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Longest subject of a call that is shown beside its purpose.
const SHOWN_SUBJECT: usize = 60;

/// Who is called and what for: `builder: execute T1`; a role with one purpose by its name alone. A subject is text of
/// agents, and not cleaned.
pub fn who(purpose: Purpose, subject: Option<&str>) -> String {
    let role = purpose.role();
    if matches!(purpose, Purpose::Scout | Purpose::Solver | Purpose::Skeptic) {
        return role.to_string();
    }
    let Some(subject) = subject.filter(|subject| !subject.is_empty()) else {
        if matches!(purpose, Purpose::Author | Purpose::Critic) {
            return role.to_string();
        }
        return format!("{role}: {}", purpose.words());
    };
    let short: String = subject.chars().take(SHOWN_SUBJECT).collect();
    let cut = if short.len() < subject.len() { "..." } else { "" };
    format!("{role}: {} {short}{cut}", purpose.words())
}

/// A role's own purpose where the playbook knows only one.
impl From<Role> for Purpose {
    fn from(role: Role) -> Self {
        match role {
            Role::Scout => Self::Scout,
            Role::Solver => Self::Solver,
            Role::Skeptic => Self::Skeptic,
            Role::Author => Self::Author,
            Role::Critic => Self::Critic,
            Role::Builder => Self::Execute,
            Role::Qc => Self::GenerateVerifications,
            Role::Fixer => Self::Fix,
            Role::Evaluator => Self::CriticalEval,
            Role::Researcher => Self::Research,
            Role::Reasoner => Self::Plan,
            Role::Classifier => Self::Triage,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_purpose_that_must_report_can() {
        let mut names: Vec<_> = Purpose::ALL.map(Purpose::name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Purpose::ALL.len());
        for purpose in Purpose::ALL {
            if let Some(closing) = purpose.closing() {
                assert!(closing.ends_call() && purpose.tools().last() == Some(&closing), "{purpose}");
            }
        }
    }

    #[test]
    fn calls_of_one_role_are_told_apart_and_a_subject_is_bounded() {
        let mut all: Vec<String> = Purpose::ALL.into_iter().map(|purpose| who(purpose, None)).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), Purpose::ALL.len());
        assert_eq!(who(Purpose::Execute, Some("T1")), "builder: execute T1");
        assert_eq!(who(Purpose::Scout, None), "scout");
        let long = who(Purpose::Fix, Some(&"ä,".repeat(100)));
        assert!(long.starts_with("fixer: fix ä,") && long.ends_with("...") && long.chars().count() < 80, "{long}");
    }

    #[test]
    fn only_builders_fixers_and_authors_of_checks_may_write() {
        let writers: Vec<_> = Purpose::ALL.into_iter().filter(|purpose| purpose.role().may_write()).collect();
        let expected = [
            Purpose::Solver,
            Purpose::Author,
            Purpose::Detour,
            Purpose::Execute,
            Purpose::GenerateVerifications,
            Purpose::Fix,
            Purpose::ServiceFix,
        ];
        assert_eq!(writers, expected);
    }
}
