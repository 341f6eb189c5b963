//! The sections: their labels, their limits, and which purpose gets which.

use crate::model::purpose::Purpose;

/// A part of a brief. The order here is the order in which they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    Vision,
    Prd,
    Context,
    Answers,
    Passes,
    Issues,
    Critique,
    Epics,
    Plan,
    Limits,
    Review,
    Task,
    LastAttempt,
    NotFound,
    Services,
    Verifications,
    Disputed,
    Causes,
    Failures,
    Research,
    Tried,
    ValueHistory,
    Progress,
    Monitor,
    Strategy,
    Checkpoints,
}

const KIB: usize = 1024;

impl Section {
    pub const fn label(self) -> &'static str {
        match self {
            Self::Vision => "VISION",
            Self::Prd => "PRD",
            Self::Context => "CONTEXT",
            Self::Answers => "ANSWERS",
            Self::Passes => "PASSES",
            Self::Issues => "ISSUES",
            Self::Critique => "CRITIQUE",
            Self::Epics => "EPICS",
            Self::Plan => "PLAN",
            Self::Limits => "LIMITS",
            Self::Review => "REVIEW",
            Self::Task => "TASK",
            Self::LastAttempt => "LAST_ATTEMPT",
            Self::NotFound => "NOT_FOUND",
            Self::Services => "SERVICES",
            Self::Verifications => "VERIFICATIONS",
            Self::Disputed => "DISPUTED",
            Self::Causes => "CAUSES",
            Self::Failures => "FAILURES",
            Self::Research => "RESEARCH",
            Self::Tried => "TRIED",
            Self::ValueHistory => "VALUE_HISTORY",
            Self::Progress => "PROGRESS",
            Self::Monitor => "MONITOR",
            Self::Strategy => "STRATEGY",
            Self::Checkpoints => "CHECKPOINTS",
        }
    }

    pub const fn is_document(self) -> bool {
        matches!(self, Self::Vision | Self::Prd)
    }

    /// The most bytes of facts; documents share what is left.
    pub const fn limit(self) -> usize {
        match self {
            Self::Vision | Self::Prd => 0,
            Self::Passes | Self::Plan => 28 * KIB,
            Self::Task => 12 * KIB,
            Self::Context | Self::Answers | Self::Issues | Self::Critique | Self::Research | Self::Causes => 8 * KIB,
            Self::Disputed | Self::Failures | Self::LastAttempt => 8 * KIB,
            Self::Epics | Self::Verifications | Self::ValueHistory => 6 * KIB,
            Self::NotFound | Self::Progress | Self::Tried => 4 * KIB,
            Self::Services => 3 * KIB,
            Self::Monitor | Self::Strategy | Self::Checkpoints | Self::Review => 2 * KIB,
            Self::Limits => KIB,
        }
    }
}

/// What a call for this purpose is told: only what it needs. Sections with nothing in them are left out.
pub const fn of(purpose: Purpose) -> &'static [Section] {
    use Section::*;
    match purpose {
        // The other playbooks have their capsule.
        Purpose::Scout | Purpose::Solver | Purpose::Skeptic | Purpose::Author | Purpose::Critic | Purpose::Detour => {
            &[]
        }
        Purpose::VisionExtract => &[Vision],
        Purpose::VisionForces | Purpose::VisionCauses | Purpose::VisionPremortem => &[Vision, Passes],
        Purpose::VisionValidate => &[Vision, Answers, Passes],
        Purpose::VisionResearch => &[Vision, Issues],
        Purpose::EpicDecompose => &[Vision, Prd, Answers],
        Purpose::DiscoverContext => &[Vision, Prd, Answers, Epics],
        Purpose::PrdCritique => &[Vision, Prd, Context, Answers, Epics],
        Purpose::PrdResearch => &[Vision, Prd, Context, Critique],
        Purpose::PrdAmend => &[Vision, Prd, Context, Answers, Critique],
        Purpose::Plan
        | Purpose::Craap
        | Purpose::Clarity
        | Purpose::Validate
        | Purpose::Connect
        | Purpose::Break
        | Purpose::Prune => &[Vision, Prd, Context, Answers, Epics, Plan, Limits],
        Purpose::Tidy | Purpose::VerifyBlockers => &[Prd, Context, Answers, Plan, Limits],
        Purpose::Preflight => &[Context, Answers, Plan, NotFound],
        Purpose::Execute => &[Vision, Prd, Context, Answers, Plan, Task, LastAttempt, Services, Strategy],
        // What the builder said about its own work is not there: checks come from what was promised.
        Purpose::GenerateVerifications => {
            &[Vision, Prd, Context, Answers, Epics, Plan, Services, Verifications, Disputed, Strategy]
        }
        Purpose::Triage => &[Services, Verifications, Failures],
        Purpose::Fix => &[Context, Services, Verifications, Causes, Failures, Research, Tried, Strategy],
        Purpose::ServiceFix => &[Context, Services],
        Purpose::Research => &[Vision, Context, Failures, Research, Tried],
        Purpose::CriticalEval => &[Vision, Prd, Context, Answers, Epics, Plan, Services],
        Purpose::CourseCorrect => &[
            Vision,
            Context,
            Answers,
            Epics,
            Plan,
            Limits,
            Services,
            Verifications,
            Failures,
            Research,
            ValueHistory,
            Progress,
            Monitor,
            Strategy,
            Checkpoints,
        ],
        Purpose::InteractivePause => &[Context, Answers, Task, LastAttempt],
        Purpose::PlanHealth => &[Vision, Prd, Context, Epics, Plan, Limits, Review],
        Purpose::Strategy => &[Limits, Verifications, Failures, ValueHistory, Progress, Monitor, Strategy],
        Purpose::Coherence => &[Vision, Context, Epics, Plan],
        Purpose::VrcQuick => &[Vision, Context, Answers, Epics, Plan, Services, Verifications, ValueHistory],
        Purpose::VrcFull => &[Vision, Prd, Context, Answers, Epics, Plan, Services, Verifications, ValueHistory],
        // A fresh look: no plan, no notes, no earlier scores.
        Purpose::ExitGate => &[Vision, Prd, Context, Answers, Epics, Services, Verifications],
        Purpose::EpicSummary => &[Vision, Context, Epics, Plan, Verifications, ValueHistory],
    }
}
