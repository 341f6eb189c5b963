//! Events of the value playbook: steps, the plan, verifications, value checks, services, the repository.
//!
//! What follows from the facts alone (`*Put`, `VrcTaken`, `RoundKept`, steps) is decided by the playbook and recorded
//! as it is from then on; what the engine saw (`DocumentsRead`, `ServicesChecked`, …) is a fact.

use serde::{Deserialize, Serialize};

use crate::model::decision::{DecisionId, VisionIssue};
use crate::model::digest::Digest;
use crate::model::value::tools::{Critique, ResearchReport, VisionValidation};
use crate::model::value::{Action, Outcome, Task, Verification, Vrc};

/// A step begins; what it does follows from the state before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepBegan {
    pub step: u32,
    #[serde(flatten)]
    pub action: Action,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepFinished {
    pub step: u32,
    pub outcome: Outcome,
    pub detail: String,
}

/// A task as it is from now on: new, or in place of the one with its id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskPut {
    pub task: Box<Task>,
    pub why: String,
}

/// An input document as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    pub path: String,
    /// Its text, as a blob; `None`: it cannot be used.
    pub text: Option<Digest>,
    pub bytes: u64,
    pub problem: Option<String>,
}

/// The vision and the PRD as they are now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DocumentsRead {
    pub vision: Document,
    pub prd: Document,
}

/// Scripts found where the QC role puts them: the whole set. Those that are known and unchanged keep their record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerificationsFound {
    pub verifications: Vec<Verification>,
    /// Files there that are no verification, and why.
    pub passed_over: Vec<String>,
}

/// A verification as it is from now on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerificationPut {
    pub verification: Box<Verification>,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VrcTaken {
    pub vrc: Vrc,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceHealth {
    pub name: String,
    pub healthy: bool,
    pub detail: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServicesChecked {
    pub services: Vec<ServiceHealth>,
}

/// What the work needs and the machine lacks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PreflightChecked {
    pub missing_tools: Vec<String>,
    pub missing_variables: Vec<String>,
    /// Set, but to what looks like a placeholder.
    pub placeholder_variables: Vec<String>,
}

impl PreflightChecked {
    pub fn is_clear(&self) -> bool {
        self.missing_tools.is_empty() && self.missing_variables.is_empty() && self.placeholder_variables.is_empty()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    Vision,
    Prd,
}

impl Target {
    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vision => "vision",
            Self::Prd => "PRD",
        }
    }
}

/// One round of refinement, kept before a person is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundKept {
    pub target: Target,
    pub round: u32,
    /// The document this round is about.
    pub document: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<VisionValidation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critique: Option<Critique>,
    /// What was analysed ended without a report: nothing is known, so it needs a person.
    #[serde(default)]
    pub unknown: bool,
    /// The issues as a person is shown them.
    pub issues: Vec<VisionIssue>,
    pub research: Vec<ResearchReport>,
    /// A proposed text of the PRD, as a blob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<Digest>,
}

/// How a round ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundClosed {
    pub target: Target,
    pub round: u32,
    /// pass, revised, acknowledged, auto_acknowledged, approve, amended, rejected, auto_amend, auto_descope.
    pub how: String,
    /// The person's decision, where there was one.
    pub decision: Option<DecisionId>,
    pub consensus: bool,
}

/// Something that was looked up, or that a person knew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResearchKept {
    pub brief: ResearchReport,
}

/// What is done to the repository. Announced before, recorded after: a rollback that was interrupted is repeated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "operation")]
pub enum GitOperation {
    /// Look at the repository, go to a branch of the run's own.
    Prepare,
    /// Commit what the run changed.
    Commit { what: String },
    /// Commit, and remember the place with what passed there.
    Checkpoint { label: String },
    /// Put the files of the run back as they were at a commit.
    Restore { commit: String, why: String },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GitIntended {
    #[serde(flatten)]
    pub operation: GitOperation,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GitFacts {
    /// `None`: there is no repository, or it is not to be used.
    pub branch: Option<String>,
    pub original: Option<String>,
    /// The commit the run's branch is at.
    pub head: Option<String>,
    /// Paths that were changed or untracked before the run; they are never touched.
    pub foreign: Vec<String>,
    /// Files that were committed or put back.
    pub files: Vec<String>,
    /// Files that were left out because of their names.
    pub sensitive: Vec<String>,
    /// What else was left out, or is worth knowing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GitFinished {
    #[serde(flatten)]
    pub operation: GitOperation,
    pub facts: GitFacts,
    /// Why it was not done; the run goes on without it, or stops where that is not safe.
    pub problem: Option<String>,
}

/// A person took an iteration back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UndoRequested {
    pub iteration: u32,
    pub by: String,
}

/// Its changes are taken back; its evidence no longer stands for the workspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IterationUndone {
    pub iteration: u32,
    pub files: Vec<String>,
    /// The commit the run's branch is at now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    pub problem: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EpicStatus {
    Pending,
    InProgress,
    Completed,
    Skipped,
}

impl EpicStatus {
    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "not begun",
            Self::InProgress => "in progress",
            Self::Completed => "completed",
            Self::Skipped => "left out",
        }
    }
}

/// The state of an epic from now on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EpicPut {
    pub epic: u32,
    pub title: String,
    pub value_statement: String,
    pub deliverables: Vec<String>,
    pub completion_criteria: Vec<String>,
    pub status: EpicStatus,
    /// proceed, adjust or stop, with the words. Only a person gives it: a time-out stops the run.
    pub feedback: Option<(String, String)>,
}
