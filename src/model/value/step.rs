//! Steps: the gates before the first iteration, and the actions of the decision engine.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A named gate before the first iteration, in its order. Each is passed once; a resumed run skips it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    Inputs,
    VisionValidated,
    VisionClassified,
    ContextDiscovered,
    PrdCritique,
    PlanGenerated,
    Craap,
    Clarity,
    Validate,
    Connect,
    Break,
    Prune,
    Tidy,
    Blockers,
    VrcInit,
    Preflight,
}

impl Gate {
    pub const ALL: [Self; 16] = [
        Self::Inputs,
        Self::VisionValidated,
        Self::VisionClassified,
        Self::ContextDiscovered,
        Self::PrdCritique,
        Self::PlanGenerated,
        Self::Craap,
        Self::Clarity,
        Self::Validate,
        Self::Connect,
        Self::Break,
        Self::Prune,
        Self::Tidy,
        Self::Blockers,
        Self::VrcInit,
        Self::Preflight,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Inputs => "inputs",
            Self::VisionValidated => "vision_validated",
            Self::VisionClassified => "vision_classified",
            Self::ContextDiscovered => "context_discovered",
            Self::PrdCritique => "prd_critique",
            Self::PlanGenerated => "plan_generated",
            Self::Craap => "craap",
            Self::Clarity => "clarity",
            Self::Validate => "validate",
            Self::Connect => "connect",
            Self::Break => "break",
            Self::Prune => "prune",
            Self::Tidy => "tidy",
            Self::Blockers => "blockers",
            Self::VrcInit => "vrc_init",
            Self::Preflight => "preflight",
        }
    }

    /// What it is, for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Inputs => "inputs are there",
            Self::VisionValidated => "vision refined",
            Self::VisionClassified => "size of the vision",
            Self::ContextDiscovered => "context discovered",
            Self::PrdCritique => "PRD refined",
            Self::PlanGenerated => "plan made",
            Self::Craap => "plan: critique, risk, flow, alignment",
            Self::Clarity => "plan: no vague task",
            Self::Validate => "plan: every requirement covered",
            Self::Connect => "plan: everything is reachable",
            Self::Break => "plan: what breaks it",
            Self::Prune => "plan: nothing too much",
            Self::Tidy => "plan: preparations",
            Self::Blockers => "no blocked task",
            Self::VrcInit => "value at the start",
            Self::Preflight => "tools and variables",
        }
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VrcMode {
    Quick,
    Full,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "action")]
pub enum Action {
    Gate {
        gate: Gate,
    },
    // What the decision engine chooses.
    Execute {
        task: String,
    },
    GenerateQc,
    RunQc,
    Fix {
        verifications: Vec<String>,
    },
    CriticalEval,
    CourseCorrect,
    Research {
        verifications: Vec<String>,
    },
    InteractivePause,
    ServiceFix {
        services: Vec<String>,
    },
    CoherenceEval,
    ExitGate,
    /// The feedback checkpoint between two epics.
    EpicBoundary {
        epic: u32,
    },
    // What follows a step by itself.
    Vrc {
        mode: VrcMode,
    },
    PlanHealth,
    Strategy,
}

impl Action {
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Gate { gate } => gate.name(),
            Self::Execute { .. } => "EXECUTE",
            Self::GenerateQc => "GENERATE_QC",
            Self::RunQc => "RUN_QC",
            Self::Fix { .. } => "FIX",
            Self::CriticalEval => "CRITICAL_EVAL",
            Self::CourseCorrect => "COURSE_CORRECT",
            Self::Research { .. } => "RESEARCH",
            Self::InteractivePause => "INTERACTIVE_PAUSE",
            Self::ServiceFix { .. } => "SERVICE_FIX",
            Self::CoherenceEval => "COHERENCE_EVAL",
            Self::ExitGate => "EXIT_GATE",
            Self::EpicBoundary { .. } => "EPIC_BOUNDARY",
            Self::Vrc { mode: VrcMode::Quick } => "VRC_QUICK",
            Self::Vrc { mode: VrcMode::Full } => "VRC_FULL",
            Self::PlanHealth => "PLAN_HEALTH",
            Self::Strategy => "STRATEGY",
        }
    }

    /// Was it chosen by the decision engine? Only those count as steps of an iteration.
    pub const fn is_decision(&self) -> bool {
        !matches!(self, Self::Gate { .. } | Self::Vrc { .. } | Self::PlanHealth | Self::Strategy)
    }

    /// Does the iteration close after it?
    pub const fn closes_iteration(&self) -> bool {
        matches!(
            self,
            Self::CriticalEval
                | Self::CourseCorrect
                | Self::ExitGate
                | Self::InteractivePause
                | Self::EpicBoundary { .. }
        )
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Execute { task } => write!(f, "EXECUTE {task}"),
            _ => f.write_str(self.name()),
        }
    }
}

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Measured movement towards the goal.
    Progress,
    NoProgress,
    /// Neither: pauses, service fixes, housekeeping.
    Neutral,
    /// A gate that is passed, or an exit gate.
    Passed,
    /// A gate that is not passed.
    Failed,
}

impl Outcome {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Progress => "progress",
            Self::NoProgress => "no progress",
            Self::Neutral => "neutral",
            Self::Passed => "passed",
            Self::Failed => "failed",
        }
    }
}
