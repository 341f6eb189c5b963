//! Events of the value playbook: steps, the plan, verifications, value checks, services, the repository.
//!
//! What follows from the facts alone (`*Put`, `VrcTaken`, `RoundKept`, steps) is decided by the playbook and recorded
//! as it is from then on; what the engine saw (`DocumentsRead`, `ServicesChecked`, …) is a fact.

use serde::{Deserialize, Serialize};

use crate::machine::event::{Change, family, work_event};
use crate::machine::words::{Place, Told, Topic::Run, counted};

use crate::model::decision::{DecisionId, VisionIssue};
use crate::model::digest::Digest;
use crate::model::value::tools::{Critique, ResearchReport, Service, VisionValidation};
use crate::model::value::{Action, Outcome, Task, Verification, Vrc};

family! {
    /// What happened in the value playbook.
    ValueEvent {
        StepBegan = "step.began", Decided;
        StepFinished = "step.finished", Decided;
        TaskPut = "task.put", Decided;
        DocumentsRead = "documents.read", Fact, |read| read.vision.text.into_iter().chain(read.prd.text).collect();
        VerificationsFound = "verifications.found", Fact, |found| found.verifications.iter().map(|one| one.script).collect();
        VerificationPut = "verification.put", Decided;
        VrcTaken = "vrc.taken", Decided;
        ServiceStarted = "service.started", Fact;
        ServiceEnded = "service.ended", Fact, |ended| ended.log.into_iter().collect();
        ServicesChecked = "services.checked", Fact;
        PreflightChecked = "preflight.checked", Fact;
        RoundKept = "round.kept", Decided, |kept| std::iter::once(kept.document).chain(kept.proposal).collect();
        RoundClosed = "round.closed", Decided;
        ResearchKept = "research.kept", Decided;
        EpicPut = "epic.put", Decided;
        ClaimTakenBack = "claim.taken_back", Decided;
        WorkSeen = "work.seen", Fact, |seen| std::iter::once(seen.tree).chain(seen.diff).collect();
    }
}
work_event!(ValueEvent);

impl ValueEvent {
    pub fn told(&self, _at: &Place) -> Told {
        let (text, good) = match self {
            Self::StepBegan(began) => (format!("step {} begins: {} ({})", began.step, began.action, began.why), None),
            Self::StepFinished(finished) => {
                let good = match finished.outcome {
                    Outcome::Progress | Outcome::Passed => Some(true),
                    Outcome::NoProgress | Outcome::Failed => Some(false),
                    Outcome::Neutral => None,
                };
                (format!("step {}: {}, {}", finished.step, finished.outcome.name(), finished.detail), good)
            }
            Self::TaskPut(put) => (format!("task {} is {}: {}", put.task.id, put.task.status.name(), put.why), None),
            Self::DocumentsRead(read) => match read.vision.problem.as_ref().or(read.prd.problem.as_ref()) {
                Some(problem) => (problem.clone(), Some(false)),
                None => (format!("{} and {} are read", read.vision.path, read.prd.path), None),
            },
            Self::VerificationsFound(found) => {
                (format!("{} verification script(s) found", found.verifications.len()), None)
            }
            Self::VerificationPut(put) => {
                let one = &put.verification;
                (format!("verification {} is {}: {}", one.id, one.status.name(), put.why), None)
            }
            Self::VrcTaken(taken) => {
                let vrc = &taken.vrc;
                let carried = if vrc.carried { ", carried forward" } else { "" };
                (format!("value score {} ({}{carried})", vrc.value_score, vrc.recommendation.name()), None)
            }
            Self::ServiceStarted(started) => {
                (format!("service {} is started ({})", started.service.name, started.why), None)
            }
            Self::ServiceEnded(ended) => {
                let good = (!ended.asked).then_some(false);
                (format!("service {} ended: {}", ended.name, ended.how), good)
            }
            Self::ServicesChecked(checked) => {
                let sick = checked.services.iter().filter(|one| !one.healthy).map(|one| one.name.as_str());
                match sick.collect::<Vec<_>>().as_slice() {
                    [] => (format!("{} service(s) are healthy", checked.services.len()), Some(true)),
                    sick => (format!("not healthy: {}", sick.join(", ")), Some(false)),
                }
            }
            Self::PreflightChecked(checked) if checked.is_clear() => {
                ("tools and variables are there".to_owned(), Some(true))
            }
            Self::PreflightChecked(checked) => {
                let missing = [
                    &checked.missing_tools[..],
                    &checked.missing_variables,
                    &checked.placeholder_variables,
                    &checked.services,
                ]
                .concat();
                (format!("missing: {}", missing.join(", ")), Some(false))
            }
            Self::RoundKept(kept) => {
                let issues = match kept.issues.len() {
                    0 => " is kept".to_owned(),
                    count => format!(": {}", counted(count, "issue", "issues")),
                };
                (format!("{} refinement, round {}{issues}", kept.target.name(), kept.round), None)
            }
            Self::RoundClosed(closed) => {
                let what = format!("{} refinement, round {}", closed.target.name(), closed.round);
                // No consensus yet is not a failure: another round follows.
                (format!("{what}: {}", closed.how), closed.consensus.then_some(true))
            }
            Self::ResearchKept(kept) => (format!("research: {}", kept.brief.topic), None),
            Self::EpicPut(put) => (format!("epic {}: {}", put.epic + 1, put.title), None),
            Self::WorkSeen(seen) => {
                let files = seen.changes.len() + usize::try_from(seen.more).unwrap_or(usize::MAX);
                (format!("{} changed by the agent", counted(files, "file", "files")), None)
            }
            Self::ClaimTakenBack(taken) => {
                let names: Vec<&str> = taken.verifications.iter().map(|one| one.id.as_str()).collect();
                (format!("the exit gate is shut again: {} failed in a replay", names.join(", ")), Some(false))
            }
        };
        Told { good, ..Told::new(Run, text) }
    }
}

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

/// What an agent changed since the latest look within this iteration, or since its beginning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkSeen {
    pub tree: Digest,
    /// The first of them.
    pub changes: Vec<Change>,
    /// How many there are beside those.
    pub more: u64,
    /// To read, as a blob; bounded. `None`: nothing was changed.
    pub diff: Option<Digest>,
}

/// Scripts that the exit gate saw pass fail when the certificate is replayed: the claim is taken back, and they are as
/// they are from now on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimTakenBack {
    pub verifications: Vec<Verification>,
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
    /// The end of its log, where it is not healthy.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub log: String,
}

/// The engine is about to start a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceStarted {
    pub service: Box<Service>,
    /// Which start of this service it is, from 0.
    pub start: u32,
    pub why: String,
}

/// A service is not there any more, with all its processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceEnded {
    pub name: String,
    pub how: String,
    /// Did the engine end it?
    pub asked: bool,
    /// The end of what it wrote, as a blob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<Digest>,
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
    /// What keeps services from being started, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<String>,
}

impl PreflightChecked {
    pub fn is_clear(&self) -> bool {
        self.missing_tools.is_empty()
            && self.missing_variables.is_empty()
            && self.placeholder_variables.is_empty()
            && self.services.is_empty()
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
