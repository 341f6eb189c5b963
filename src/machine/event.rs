//! What happened, in the past tense. These are the payloads of the journal.
//!
//! An event is durable before the effect it announces starts. Large texts live in blobs; events carry
//! their digests. Adding a kind is a new reducer version: an older engine must refuse, not guess.

mod call;
mod operator;
mod pass;
mod probe;
mod value;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::model::budget::{Effective, Exhausted};
use crate::model::certificate::{Certificate, Residual};
use crate::model::decision::Patience;
use crate::model::digest::Digest;
use crate::model::glow::Glow;
use crate::model::ids::RunId;
use crate::model::learnings::{CompactionLog, Entry};
use crate::model::loop_file::LoopFile;
use crate::model::northstar::Metric;
use crate::model::stop::{ExitStatus, ForbiddenState, StopReason};

use super::gate::GateReport;
use super::state::State;

pub use call::*;
pub use operator::*;
pub use pass::*;
pub use probe::*;
pub use value::*;

/// Journals written by a newer reducer are not resumed.
pub const REDUCER_VERSION: u32 = 5;

macro_rules! events {
    ($($variant:ident = $kind:literal),+ $(,)?) => {
        /// One event.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Event {
            $($variant($variant),)+
        }

        impl Event {
            pub const KINDS: &[&str] = &[$($kind,)+];

            pub const fn kind(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $kind,)+
                }
            }

            /// The payload as one line of JSON.
            pub fn data(&self) -> Result<Box<RawValue>, serde_json::Error> {
                match self {
                    $(Self::$variant(data) => serde_json::value::to_raw_value(data),)+
                }
            }

            /// Reads a payload. `None`: the kind is unknown to this version.
            pub fn parse(kind: &str, data: &str) -> Option<Result<Self, serde_json::Error>> {
                match kind {
                    $($kind => Some(serde_json::from_str(data).map(Self::$variant)),)+
                    _ => None,
                }
            }
        }

        $(impl From<$variant> for Event {
            fn from(data: $variant) -> Self {
                Self::$variant(data)
            }
        })+
    };
}

events! {
    RunStarted = "run.started",
    RunResumed = "run.resumed",
    StateEntered = "state.entered",
    InputRejected = "input.rejected",
    NorthstarRead = "northstar.read",
    NullChecked = "null.checked",
    TreeTaken = "tree.taken",
    ProbeStarted = "probe.started",
    ProbeFinished = "probe.finished",
    PlanWritten = "plan.written",
    IterationBegan = "iteration.began",
    AgentStarted = "agent.started",
    LlmRequested = "llm.requested",
    LlmResponded = "llm.responded",
    LlmFailed = "llm.failed",
    ConversationExtended = "conversation.extended",
    ToolIntended = "tool.intended",
    ToolFinished = "tool.finished",
    AgentActed = "agent.acted",
    AgentCalled = "agent.called",
    ReportAccepted = "report.accepted",
    AgentFinished = "agent.finished",
    ArtifactsCollected = "artifacts.collected",
    ResidualMeasured = "residual.measured",
    CertificateIssued = "certificate.issued",
    GlowScored = "glow.scored",
    LearningsRecorded = "learnings.recorded",
    GateJudged = "gate.judged",
    BackpressureSeen = "backpressure.seen",
    BudgetCut = "budget.cut",
    DecisionAsked = "decision.asked",
    DecisionAnswered = "decision.answered",
    DecisionSettled = "decision.settled",
    PauseRequested = "pause.requested",
    PauseBegan = "pause.began",
    PauseLifted = "pause.lifted",
    StopScheduled = "stop.scheduled",
    SteerQueued = "steer.queued",
    SteerDelivered = "steer.delivered",
    BudgetRaised = "budget.raised",
    RetryRequested = "retry.requested",
    ViewerAttached = "viewer.attached",
    ViewerDetached = "viewer.detached",
    StepBegan = "step.began",
    StepFinished = "step.finished",
    TaskPut = "task.put",
    DocumentsRead = "documents.read",
    VerificationsFound = "verifications.found",
    VerificationPut = "verification.put",
    VrcTaken = "vrc.taken",
    ServicesChecked = "services.checked",
    PreflightChecked = "preflight.checked",
    RoundKept = "round.kept",
    RoundClosed = "round.closed",
    ResearchKept = "research.kept",
    GitIntended = "git.intended",
    GitFinished = "git.finished",
    UndoRequested = "undo.requested",
    IterationUndone = "iteration.undone",
    EpicPut = "epic.put",
    PrdRead = "prd.read",
    ItemChosen = "item.chosen",
    PassJudged = "pass.judged",
    RouteDecided = "route.decided",
    ItemSettled = "item.settled",
    RunHalted = "run.halted",
}

/// The events of the value playbook, as a pattern: who passes them on as one need not name each, and a new one is
/// added here.
macro_rules! of_value_playbook {
    () => {
        $crate::machine::event::Event::StepBegan(_)
            | $crate::machine::event::Event::StepFinished(_)
            | $crate::machine::event::Event::TaskPut(_)
            | $crate::machine::event::Event::DocumentsRead(_)
            | $crate::machine::event::Event::VerificationsFound(_)
            | $crate::machine::event::Event::VerificationPut(_)
            | $crate::machine::event::Event::VrcTaken(_)
            | $crate::machine::event::Event::ServicesChecked(_)
            | $crate::machine::event::Event::PreflightChecked(_)
            | $crate::machine::event::Event::RoundKept(_)
            | $crate::machine::event::Event::RoundClosed(_)
            | $crate::machine::event::Event::ResearchKept(_)
            | $crate::machine::event::Event::GitIntended(_)
            | $crate::machine::event::Event::GitFinished(_)
            | $crate::machine::event::Event::UndoRequested(_)
            | $crate::machine::event::Event::IterationUndone(_)
            | $crate::machine::event::Event::EpicPut(_)
    };
}
pub(crate) use of_value_playbook;

/// The events of the playbooks with an author and a critic, as a pattern.
macro_rules! of_passes {
    () => {
        $crate::machine::event::Event::PrdRead(_)
            | $crate::machine::event::Event::ItemChosen(_)
            | $crate::machine::event::Event::PassJudged(_)
            | $crate::machine::event::Event::RouteDecided(_)
            | $crate::machine::event::Event::ItemSettled(_)
    };
}
pub(crate) use of_passes;

impl Event {
    /// Did a person cause it, or someone who watches? Such events come at any moment of a run.
    pub const fn is_from_people(&self) -> bool {
        matches!(
            self,
            Self::DecisionAnswered(_)
                | Self::PauseRequested(_)
                | Self::PauseLifted(_)
                | Self::StopScheduled(_)
                | Self::SteerQueued(_)
                | Self::BudgetRaised(_)
                | Self::RetryRequested(_)
                | Self::UndoRequested(_)
                | Self::ViewerAttached(_)
                | Self::ViewerDetached(_)
        )
    }
}

/// The first event: everything the run was declared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    pub run: RunId,
    pub engine_version: String,
    pub reducer_version: u32,
    pub started: String,
    pub loop_sha256: Digest,
    pub declaration: Box<LoopFile>,
    pub budget: Effective,
    /// The level that is enforced around tools and checks, as the sandbox names it.
    pub sandbox: String,
    /// Rules that the operator had remembered for this workspace; they stand beside the declared ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remembered: Vec<String>,
    pub warnings: Vec<String>,
    /// What happens to a decision nobody answers.
    #[serde(default)]
    pub patience: Patience,
}

/// The run goes on after a crash, a kill or an interruption.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResumed {
    pub engine_version: String,
    pub reducer_version: u32,
    /// Recoveries in a row that started from the same place.
    pub attempt: u32,
    pub torn_bytes: u64,
    pub torn_sha256: Option<Digest>,
    #[serde(default)]
    pub patience: Patience,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StateEntered {
    pub from: State,
    pub to: State,
    pub why: String,
}

/// An input that is illegal in the state it arrived in. Recorded, never ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputRejected {
    pub state: State,
    pub input: String,
    pub why: String,
}

/// NORTHSTAR.md as found; `problem` says why it cannot serve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NorthstarRead {
    pub file: String,
    pub sha256: Option<Digest>,
    pub metrics: Vec<Metric>,
    pub problem: Option<String>,
}

/// What was missing at NULL_CHECK, by field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NullChecked {
    pub missing: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreePurpose {
    Baseline,
    /// After the replays of the certificate.
    Frozen,
    /// Around a critic, who must leave everything as it is.
    BeforeReview,
    AfterReview,
}

/// The workspace as path -> digest, kept as a blob.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TreeTaken {
    pub purpose: TreePurpose,
    pub tree: Digest,
    pub files: u64,
    /// Artifacts of the iteration that are no longer what they were.
    pub drifted: Vec<String>,
}

/// plan.json is written: the loop's contract stands before iteration 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanWritten {
    pub sha256: Digest,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IterationBegan {
    pub iteration: u32,
    /// The capsule's blob.
    pub capsule: Digest,
    pub capsule_replay_sha256: Digest,
    /// Did the capsule have to be rebuilt because it leaned on an earlier conversation?
    pub rebuilt: bool,
    /// Is there still such a reference? Then the run must not go on.
    pub bleeds: bool,
    /// Does it carry the last entry's open questions word for word?
    pub carries_questions: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

/// A file that the iteration changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Change {
    pub path: String,
    pub kind: ChangeKind,
    /// `None` for a deleted file.
    pub sha256: Option<Digest>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArtifactsCollected {
    pub iteration: u32,
    pub tree: Digest,
    pub changes: Vec<Change>,
    /// A unified diff, as a blob.
    pub diff: Digest,
    /// The digest of NORTHSTAR.md now; `None`: unreadable or not used.
    pub northstar_sha256: Option<Digest>,
    /// Is our block in AGENTS.md still what we wrote?
    pub learnings_intact: bool,
    /// Guards that differ from how the run found them, by criterion.
    pub guards_touched: BTreeMap<String, GuardsTouched>,
    /// Scripts of the residual and metric commands that differ from how the run found them.
    pub instruments_touched: Vec<String>,
    /// What the touched guards and instruments are now; `None`: gone.
    #[serde(default)]
    pub touched_now: BTreeMap<String, Option<Digest>>,
    /// Places of ours that held something else and were put right since the last look.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mended: Vec<String>,
}

/// What guards a criterion and was changed since the start of the run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GuardsTouched {
    /// The check's own script: never acceptable.
    pub script: Vec<String>,
    /// Tests, CI, declarations: not while the criterion turns green.
    pub others: Vec<String>,
}

/// The distance to the goal, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResidualMeasured {
    pub iteration: Option<u32>,
    pub residual: Option<Residual>,
    pub why_null: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CertificateIssued {
    pub iteration: u32,
    pub certificate: Certificate,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GlowScored {
    pub iteration: u32,
    pub glow: Glow,
}

/// One answered question of the Socratic review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub question: String,
    pub answer: String,
    pub ok: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearningsRecorded {
    pub iteration: u32,
    pub entry: Entry,
    pub review: Vec<Answer>,
    /// Digests of AGENTS.md before and after; equal means it was not written.
    pub before: Option<Digest>,
    pub after: Digest,
    pub compacted_before: Option<u32>,
    pub compaction: Option<CompactionLog>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateJudged {
    pub iteration: u32,
    pub report: GateReport,
}

/// Why everything has to stop now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    StopFile,
    UserInterrupt,
    Terminated,
    DiskUsage,
    RateLimit,
    SpendLimit,
    DownstreamUnavailable,
    /// An operator asked for a stop at the end of the iteration.
    AfterIteration,
    /// A person has to decide, and nobody is waited for.
    DecisionNeeded,
}

impl Signal {
    pub const fn describe(self) -> &'static str {
        match self {
            Self::StopFile => "scratch/STOP exists",
            Self::UserInterrupt => "interrupted by the operator",
            Self::Terminated => "asked to terminate",
            Self::DiskUsage => "the workspace's file system is more than 90 % full",
            Self::RateLimit => "the rate limit does not reset within the time budget",
            Self::SpendLimit => "the account's spend limit is reached",
            Self::DownstreamUnavailable => "the model API cannot be reached",
            Self::AfterIteration => "the operator asked for a stop after this iteration",
            Self::DecisionNeeded => "a person has to decide",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BackpressureSeen {
    pub signal: Signal,
    pub detail: String,
}

/// A limit was reached inside an iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BudgetCut {
    pub exhausted: Exhausted,
}

/// The end, unless a stop signal caused it: then `resume` goes on at `last_state` once the cause is gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunHalted {
    pub status: ExitStatus,
    pub stop_reason: StopReason,
    pub forbidden_state: Option<ForbiddenState>,
    pub last_state: State,
    pub detail: String,
    pub exhausted: Option<Exhausted>,
    pub signal: Option<Signal>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_unique_and_parse_back() {
        let mut kinds = Event::KINDS.to_vec();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), Event::KINDS.len());

        let event = Event::from(PlanWritten { sha256: Digest::of(b"plan") });
        let data = event.data().unwrap();
        assert_eq!(Event::parse(event.kind(), data.get()).unwrap().unwrap(), event);
        assert!(Event::parse("no.such", "{}").is_none());
    }
}
