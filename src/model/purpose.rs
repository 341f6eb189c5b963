//! What an agent call is for: its role, its prompt, the structured tools it is given, and what ends it.
//!
//! A role says who works and what may be touched; a purpose says why it is called this time. The swarm calls each
//! of its roles for one purpose; the value playbook has one for every prompt.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ids::Role;

/// A tool that hands something structured to the engine. It changes no file: the engine decides what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
    SubmitScoutReport,
    SubmitSolverReport,
    SubmitSkepticReport,
    SubmitAuthorReport,
    SubmitCritique,
    ManageTask,
    ReportTaskComplete,
    ReportDiscovery,
    ReportCritique,
    ProposePrd,
    ReportTriage,
    RequestHumanAction,
    ReportVrc,
    ReportCourseCorrection,
    ReportEvalFinding,
    ReportResearch,
    ReportVisionPass,
    ReportVisionValidation,
    ReportStrategyChange,
    ReportPreflight,
    ReportEpicDecomposition,
    ReportEpicSummary,
    ReportCoherence,
}

impl Tool {
    pub const ALL: [Self; 23] = [
        Self::SubmitScoutReport,
        Self::SubmitSolverReport,
        Self::SubmitSkepticReport,
        Self::SubmitAuthorReport,
        Self::SubmitCritique,
        Self::ManageTask,
        Self::ReportTaskComplete,
        Self::ReportDiscovery,
        Self::ReportCritique,
        Self::ProposePrd,
        Self::ReportTriage,
        Self::RequestHumanAction,
        Self::ReportVrc,
        Self::ReportCourseCorrection,
        Self::ReportEvalFinding,
        Self::ReportResearch,
        Self::ReportVisionPass,
        Self::ReportVisionValidation,
        Self::ReportStrategyChange,
        Self::ReportPreflight,
        Self::ReportEpicDecomposition,
        Self::ReportEpicSummary,
        Self::ReportCoherence,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::SubmitScoutReport => "submit_scout_report",
            Self::SubmitSolverReport => "submit_solver_report",
            Self::SubmitSkepticReport => "submit_skeptic_report",
            Self::SubmitAuthorReport => "submit_author_report",
            Self::SubmitCritique => "submit_critique",
            Self::ManageTask => "manage_task",
            Self::ReportTaskComplete => "report_task_complete",
            Self::ReportDiscovery => "report_discovery",
            Self::ReportCritique => "report_critique",
            Self::ProposePrd => "propose_prd",
            Self::ReportTriage => "report_triage",
            Self::RequestHumanAction => "request_human_action",
            Self::ReportVrc => "report_vrc",
            Self::ReportCourseCorrection => "report_course_correction",
            Self::ReportEvalFinding => "report_eval_finding",
            Self::ReportResearch => "report_research",
            Self::ReportVisionPass => "report_vision_pass",
            Self::ReportVisionValidation => "report_vision_validation",
            Self::ReportStrategyChange => "report_strategy_change",
            Self::ReportPreflight => "report_preflight",
            Self::ReportEpicDecomposition => "report_epic_decomposition",
            Self::ReportEpicSummary => "report_epic_summary",
            Self::ReportCoherence => "report_coherence",
        }
    }

    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// What an agent is told about it.
    pub const fn description(self) -> &'static str {
        match self {
            Self::SubmitScoutReport
            | Self::SubmitSolverReport
            | Self::SubmitSkepticReport
            | Self::SubmitAuthorReport
            | Self::SubmitCritique => "Hand in your report. This ends your part of the iteration.",
            Self::ManageTask => "Add, modify or remove one task of the plan. A rejection says what to change.",
            Self::ReportTaskComplete => "Report that the task you were given is done. This ends your part.",
            Self::ReportDiscovery => "Report what this workspace is and needs. This ends your part.",
            Self::ReportCritique => "Report your verdict on the PRD. This ends your part.",
            Self::ProposePrd => "Propose the whole new text of the PRD. This ends your part.",
            Self::ReportTriage => "Report the root causes of the failures. This ends your part.",
            Self::RequestHumanAction => "Ask for something only a person can do. This ends your part.",
            Self::ReportVrc => "Report how much of the promised value is there. This ends your part.",
            Self::ReportCourseCorrection => "Report how the course is corrected. This ends your part.",
            Self::ReportEvalFinding => "Report one finding; use it once for each.",
            Self::ReportResearch => "Report what you found out. This ends your part.",
            Self::ReportVisionPass => "Hand your notes to the next pass. This ends your part.",
            Self::ReportVisionValidation => "Report your verdict on the vision. This ends your part.",
            Self::ReportStrategyChange => "Report what is to change in how the work is done. This ends your part.",
            Self::ReportPreflight => "Report whether the work can begin. This ends your part.",
            Self::ReportEpicDecomposition => "Report the slices of the vision. This ends your part.",
            Self::ReportEpicSummary => "Report what this slice delivered. This ends your part.",
            Self::ReportCoherence => "Report how well it all fits together. This ends your part.",
        }
    }

    /// Does a call end once this is accepted? The others may be used again and again.
    pub const fn ends_call(self) -> bool {
        !matches!(self, Self::ManageTask | Self::ReportEvalFinding)
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why an agent is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    // The swarm.
    Scout,
    Solver,
    Skeptic,
    // Items of a PRD, and microloops.
    Author,
    Critic,
    Detour,
    // The value playbook before its first iteration.
    VisionExtract,
    VisionForces,
    VisionCauses,
    VisionPremortem,
    VisionValidate,
    VisionResearch,
    EpicDecompose,
    DiscoverContext,
    PrdCritique,
    PrdResearch,
    PrdAmend,
    Plan,
    Craap,
    Clarity,
    Validate,
    Connect,
    Break,
    Prune,
    Tidy,
    VerifyBlockers,
    Preflight,
    // The value playbook's steps.
    Execute,
    GenerateVerifications,
    Triage,
    Fix,
    ServiceFix,
    Research,
    CriticalEval,
    CourseCorrect,
    InteractivePause,
    PlanHealth,
    Strategy,
    Coherence,
    VrcQuick,
    VrcFull,
    ExitGate,
    EpicSummary,
}

impl Purpose {
    pub const ALL: [Self; 43] = [
        Self::Scout,
        Self::Solver,
        Self::Skeptic,
        Self::Author,
        Self::Critic,
        Self::Detour,
        Self::VisionExtract,
        Self::VisionForces,
        Self::VisionCauses,
        Self::VisionPremortem,
        Self::VisionValidate,
        Self::VisionResearch,
        Self::EpicDecompose,
        Self::DiscoverContext,
        Self::PrdCritique,
        Self::PrdResearch,
        Self::PrdAmend,
        Self::Plan,
        Self::Craap,
        Self::Clarity,
        Self::Validate,
        Self::Connect,
        Self::Break,
        Self::Prune,
        Self::Tidy,
        Self::VerifyBlockers,
        Self::Preflight,
        Self::Execute,
        Self::GenerateVerifications,
        Self::Triage,
        Self::Fix,
        Self::ServiceFix,
        Self::Research,
        Self::CriticalEval,
        Self::CourseCorrect,
        Self::InteractivePause,
        Self::PlanHealth,
        Self::Strategy,
        Self::Coherence,
        Self::VrcQuick,
        Self::VrcFull,
        Self::ExitGate,
        Self::EpicSummary,
    ];

    /// The name of its prompt, and its word in a call's key.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scout => "scout",
            Self::Solver => "solver",
            Self::Skeptic => "skeptic",
            Self::Author => "author",
            Self::Critic => "critic",
            Self::Detour => "detour",
            Self::VisionExtract => "vision_extract",
            Self::VisionForces => "vision_forces",
            Self::VisionCauses => "vision_causes",
            Self::VisionPremortem => "vision_premortem",
            Self::VisionValidate => "vision_validate",
            Self::VisionResearch => "vision_research",
            Self::EpicDecompose => "epic_decompose",
            Self::DiscoverContext => "discover_context",
            Self::PrdCritique => "prd_critique",
            Self::PrdResearch => "prd_research",
            Self::PrdAmend => "prd_amend",
            Self::Plan => "plan",
            Self::Craap => "craap",
            Self::Clarity => "clarity",
            Self::Validate => "validate",
            Self::Connect => "connect",
            Self::Break => "break",
            Self::Prune => "prune",
            Self::Tidy => "tidy",
            Self::VerifyBlockers => "verify_blockers",
            Self::Preflight => "preflight",
            Self::Execute => "execute",
            Self::GenerateVerifications => "generate_verifications",
            Self::Triage => "triage",
            Self::Fix => "fix",
            Self::ServiceFix => "service_fix",
            Self::Research => "research",
            Self::CriticalEval => "critical_eval",
            Self::CourseCorrect => "course_correct",
            Self::InteractivePause => "interactive_pause",
            Self::PlanHealth => "plan_health_check",
            Self::Strategy => "process_monitor",
            Self::Coherence => "coherence_eval",
            Self::VrcQuick => "vrc_quick",
            Self::VrcFull => "vrc",
            Self::ExitGate => "exit_gate",
            Self::EpicSummary => "epic_feedback",
        }
    }

    /// What the call does, for people; what it is about may follow.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Scout => "scout",
            Self::Solver => "solve",
            Self::Skeptic => "doubt",
            Self::Author => "work on",
            Self::Critic => "judge",
            Self::Detour => "detour",
            Self::VisionExtract => "extract the vision",
            Self::VisionForces => "forces of the vision",
            Self::VisionCauses => "causes of the vision",
            Self::VisionPremortem => "premortem of the vision",
            Self::VisionValidate => "validate the vision",
            Self::VisionResearch => "research for the vision",
            Self::EpicDecompose => "cut the vision into epics",
            Self::DiscoverContext => "discover the context",
            Self::PrdCritique => "critique the PRD",
            Self::PrdResearch => "research for the PRD",
            Self::PrdAmend => "amend the PRD",
            Self::Plan => "make the plan",
            Self::Craap => "CRAAP review of the plan",
            Self::Clarity => "CLARITY review of the plan",
            Self::Validate => "VALIDATE review of the plan",
            Self::Connect => "CONNECT review of the plan",
            Self::Break => "BREAK review of the plan",
            Self::Prune => "PRUNE review of the plan",
            Self::Tidy => "TIDY review of the plan",
            Self::VerifyBlockers => "verify blockers",
            Self::Preflight => "preflight",
            Self::Execute => "execute",
            Self::GenerateVerifications => "write checks",
            Self::Triage => "triage failures",
            Self::Fix => "fix",
            Self::ServiceFix => "mend services",
            Self::Research => "research",
            Self::CriticalEval => "evaluate as a user",
            Self::CourseCorrect => "correct the course",
            Self::InteractivePause => "prepare a pause",
            Self::PlanHealth => "health of the plan",
            Self::Strategy => "rethink the strategy",
            Self::Coherence => "coherence",
            Self::VrcQuick => "quick value check",
            Self::VrcFull => "value check",
            Self::ExitGate => "exit gate",
            Self::EpicSummary => "sum up",
        }
    }

    /// By the name of its prompt, or by its word in a journal.
    pub fn of_name(name: &str) -> Option<Self> {
        let by_prompt = Self::ALL.into_iter().find(|purpose| purpose.name() == name);
        by_prompt.or_else(|| serde_json::from_value(name.into()).ok())
    }

    pub const fn role(self) -> Role {
        match self {
            Self::Scout => Role::Scout,
            Self::Solver => Role::Solver,
            Self::Skeptic => Role::Skeptic,
            Self::Author => Role::Author,
            Self::Critic => Role::Critic,
            Self::Execute => Role::Builder,
            Self::GenerateVerifications => Role::Qc,
            Self::Fix | Self::ServiceFix | Self::Detour => Role::Fixer,
            Self::VrcFull | Self::VrcQuick | Self::CriticalEval | Self::ExitGate | Self::Coherence => Role::Evaluator,
            Self::VisionResearch | Self::PrdResearch | Self::Research => Role::Researcher,
            Self::Triage => Role::Classifier,
            Self::VisionExtract
            | Self::VisionForces
            | Self::VisionCauses
            | Self::VisionPremortem
            | Self::VisionValidate
            | Self::EpicDecompose
            | Self::DiscoverContext
            | Self::PrdCritique
            | Self::PrdAmend
            | Self::Plan
            | Self::Craap
            | Self::Clarity
            | Self::Validate
            | Self::Connect
            | Self::Break
            | Self::Prune
            | Self::Tidy
            | Self::VerifyBlockers
            | Self::Preflight
            | Self::CourseCorrect
            | Self::InteractivePause
            | Self::PlanHealth
            | Self::Strategy
            | Self::EpicSummary => Role::Reasoner,
        }
    }

    /// The structured tools of this call, the one that ends it last.
    pub const fn tools(self) -> &'static [Tool] {
        match self {
            Self::Scout => &[Tool::SubmitScoutReport],
            Self::Solver => &[Tool::SubmitSolverReport],
            Self::Skeptic => &[Tool::SubmitSkepticReport],
            Self::Author => &[Tool::SubmitAuthorReport],
            Self::Critic => &[Tool::SubmitCritique],
            Self::Detour => &[],
            Self::VisionExtract | Self::VisionForces | Self::VisionCauses | Self::VisionPremortem => {
                &[Tool::ReportVisionPass]
            }
            Self::VisionValidate => &[Tool::ReportVisionValidation],
            Self::VisionResearch | Self::PrdResearch | Self::Research => &[Tool::ReportResearch],
            Self::EpicDecompose => &[Tool::ReportEpicDecomposition],
            Self::DiscoverContext => &[Tool::ReportDiscovery],
            Self::PrdCritique => &[Tool::ReportCritique],
            Self::PrdAmend => &[Tool::ProposePrd],
            Self::Plan
            | Self::Craap
            | Self::Clarity
            | Self::Validate
            | Self::Connect
            | Self::Break
            | Self::Prune
            | Self::Tidy
            | Self::VerifyBlockers
            | Self::PlanHealth => &[Tool::ManageTask],
            Self::Preflight => &[Tool::ReportPreflight],
            Self::Execute => &[Tool::RequestHumanAction, Tool::ReportTaskComplete],
            Self::Fix | Self::ServiceFix => &[Tool::RequestHumanAction],
            Self::GenerateVerifications => &[],
            Self::Triage => &[Tool::ReportTriage],
            Self::CriticalEval => &[Tool::ReportEvalFinding],
            Self::CourseCorrect => &[Tool::ManageTask, Tool::ReportCourseCorrection],
            Self::InteractivePause => &[Tool::RequestHumanAction],
            Self::Strategy => &[Tool::ReportStrategyChange],
            Self::Coherence => &[Tool::ReportCoherence],
            Self::VrcQuick | Self::VrcFull | Self::ExitGate => &[Tool::ReportVrc],
            Self::EpicSummary => &[Tool::ReportEpicSummary],
        }
    }

    /// The tool without which the call is not finished; `None`: a reply that uses no tool ends it.
    pub const fn closing(self) -> Option<Tool> {
        match self {
            // Fixers and the author of checks do not grade themselves: they just stop.
            Self::Fix | Self::ServiceFix | Self::Detour | Self::GenerateVerifications => None,
            _ => match self.tools() {
                [.., last] if last.ends_call() => Some(*last),
                _ => None,
            },
        }
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
                assert!(closing.ends_call() && purpose.tools().contains(&closing), "{purpose}");
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
