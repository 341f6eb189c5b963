//! Tasks: what the plan is made of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::verification::Dispute;

/// A reason with this prefix says that only a person can unblock the task.
pub const HUMAN_ACTION: &str = "HUMAN_ACTION:";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    Pending,
    InProgress,
    Done,
    Blocked,
    Descoped,
}

impl TaskStatus {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in progress",
            Self::Done => "done",
            Self::Blocked => "blocked",
            Self::Descoped => "descoped",
        }
    }

    /// Nothing more is to be done for it.
    pub const fn is_settled(self) -> bool {
        matches!(self, Self::Done | Self::Descoped)
    }
}

/// Where a task came from. Set by the engine from the step that made it, never by the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskSource {
    ExitGate,
    CriticalEval,
    Vrc,
    CourseCorrection,
    Plan,
    Gate,
    PlanHealth,
    Coherence,
    /// The author of checks, who makes none and may change nothing but a check that is said to be wrong.
    Qc,
}

impl TaskSource {
    pub const fn name(self) -> &'static str {
        match self {
            Self::ExitGate => "exit gate",
            Self::CriticalEval => "evaluation",
            Self::Vrc => "value check",
            Self::CourseCorrection => "course correction",
            Self::Plan => "plan",
            Self::Gate => "quality gate",
            Self::PlanHealth => "plan health",
            Self::Coherence => "coherence",
            Self::Qc => "author of checks",
        }
    }

    /// Part of the plan before the first iteration.
    pub const fn is_planned(self) -> bool {
        matches!(self, Self::Plan | Self::Gate)
    }
}

/// One piece of work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub id: String,
    pub status: TaskStatus,
    pub source: TaskSource,
    pub description: String,
    /// What the user has of it.
    pub value: String,
    pub acceptance: String,
    pub prd_section: Option<String>,
    pub dependencies: Vec<String>,
    pub phase: Option<String>,
    pub epic: Option<u32>,
    pub files_expected: Vec<String>,
    /// A command that exits 0 once it is done; the engine runs it.
    pub check: Option<Vec<String>>,
    pub blocked_reason: Option<String>,
    /// Failed attempts.
    pub retries: u32,
    pub files_created: Vec<String>,
    pub files_modified: Vec<String>,
    pub notes: String,
    pub health_checked: bool,
    /// The steps that made and that finished it.
    pub created_in: u32,
    pub done_in: Option<u32>,
    /// It was done; its check fails since this task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken_by: Option<String>,
    /// Its builder says that its check is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispute: Option<Dispute>,
}

impl Task {
    pub fn is_open(&self) -> bool {
        !self.status.is_settled()
    }

    /// Is its check said to be wrong, and has its author not looked yet?
    pub fn is_disputed(&self) -> bool {
        self.is_open() && self.check.is_some() && self.dispute.as_ref().is_some_and(Dispute::is_open)
    }

    pub fn needs_person(&self) -> bool {
        self.status == TaskStatus::Blocked
            && self.blocked_reason.as_deref().is_some_and(|reason| reason.starts_with(HUMAN_ACTION))
    }
}
