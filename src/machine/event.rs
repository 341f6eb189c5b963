//! What happened, in the past tense. These are the payloads of the journal.
//!
//! An event is durable before the effect it announces starts. Large texts live in blobs; events carry
//! their digests. Adding a kind is a new reducer version: an older engine must refuse, not guess.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::model::budget::{Effective, Exhausted};
use crate::model::certificate::{Certificate, Residual};
use crate::model::decimal::Exact;
use crate::model::digest::Digest;
use crate::model::glow::Glow;
use crate::model::ids::{Role, RunId};
use crate::model::learnings::{CompactionLog, Entry};
use crate::model::loop_file::LoopFile;
use crate::model::northstar::Metric;
use crate::model::report::Report;
use crate::model::stop::{ExitStatus, ForbiddenState, StopReason};

use super::gate::GateReport;
use super::state::State;

/// Journals written by a newer reducer are not resumed.
pub const REDUCER_VERSION: u32 = 1;

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
    RunHalted = "run.halted",
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
    pub sandbox: String,
    pub warnings: Vec<String>,
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

/// A command the engine runs to learn a fact.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Probe {
    Criterion(String),
    Residual,
    Metric(String),
    SubGoal,
    Security,
    SecurityVersion,
    ApiSurface,
}

impl Probe {
    /// A name for lines, files and messages.
    pub fn name(&self) -> String {
        match self {
            Self::Criterion(id) => format!("check {id}"),
            Self::Residual => "residual".to_owned(),
            Self::Metric(id) => format!("metric {id}"),
            Self::SubGoal => "sub-goal".to_owned(),
            Self::Security => "security".to_owned(),
            Self::SecurityVersion => "security version".to_owned(),
            Self::ApiSurface => "api surface".to_owned(),
        }
    }
}

/// When a probe runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before the first iteration.
    Baseline,
    /// After the scout, before the solver.
    Scouted,
    /// In CHECK_HALTING.
    Iteration,
    /// A replay of the certificate on the frozen artifacts.
    Replay(u8),
    /// For the pass-gate.
    Gate,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeStarted {
    pub phase: Phase,
    pub probe: Probe,
    pub argv: Vec<String>,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeEnd {
    Exited(i32),
    Signaled(i32),
    TimedOut,
    Cancelled,
    NotStarted(String),
}

impl ProbeEnd {
    pub fn passed(&self) -> bool {
        *self == Self::Exited(0)
    }

    pub fn describe(&self) -> String {
        match self {
            Self::Exited(code) => format!("exit {code}"),
            Self::Signaled(signal) => format!("ended by signal {signal}"),
            Self::TimedOut => "timed out".to_owned(),
            Self::Cancelled => "cancelled".to_owned(),
            Self::NotStarted(why) => format!("did not start: {why}"),
        }
    }
}

/// What a command showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeResult {
    pub end: ProbeEnd,
    /// The kept output, as a blob.
    pub output: Digest,
    /// The digest of the whole stdout, kept or not.
    pub stdout_sha256: Digest,
    pub output_bytes: u64,
    /// The last non-empty line of stdout, bounded.
    pub last_line: Option<String>,
    /// Interface items that were there at the start and are not now; only for the interface probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_lines: Option<Vec<String>>,
    pub millis: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeFinished {
    pub phase: Phase,
    pub probe: Probe,
    pub result: ProbeResult,
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentStarted {
    pub call: String,
    pub role: Role,
    pub agent: String,
    pub backend: String,
    pub model: String,
    /// Blobs: the system prompt, the tools, the first message.
    pub system: Digest,
    pub tools: Digest,
    pub message: Digest,
    /// The number of the goal's paraphrase, for the sweep of rung 65537.
    pub paraphrase: Option<u8>,
}

/// Intent: a request goes out after this is durable. The reserve is what it may cost at most.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LlmRequested {
    pub call: String,
    pub turn: u32,
    pub attempt: u32,
    pub request_sha256: Digest,
    pub reserved_tokens: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    pub input: u64,
    pub cache_write: u64,
    pub cache_read: u64,
    pub output: u64,
}

/// One tool call as the model asked for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    pub id: String,
    pub name: String,
    /// Not well-formed JSON, or not what the protocol allows; never run.
    pub malformed: bool,
}

/// What to do with a reply; decided once, from the stop reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyMove {
    Finish,
    RunTools,
    SendBack,
    RaiseMaxTokens,
    Nudge,
    StartFresh,
    Refused,
    Stop,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LlmResponded {
    pub call: String,
    pub turn: u32,
    /// The assistant message as it is sent back, byte for byte.
    pub message: Digest,
    pub stop: String,
    pub next: ReplyMove,
    /// An empty reply is not put into the conversation: the API would refuse it there.
    pub empty: bool,
    pub tool_uses: Vec<ToolUse>,
    pub usage: Usage,
    /// `None`: the price of this model is unknown.
    pub cost_usd: Option<Exact>,
    pub request_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LlmFailed {
    pub call: String,
    pub turn: u32,
    pub attempt: u32,
    pub class: String,
    pub message: String,
    /// How long is waited before the next attempt; `None`: there is none.
    pub wait_millis: Option<u64>,
}

/// A message of ours was added to the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationExtended {
    pub call: String,
    pub message: Digest,
    pub why: ExtendedBecause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExtendedBecause {
    ToolResults,
    ReportMissing,
    EmptyReply,
}

/// Intent: the tool starts after this is durable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolIntended {
    pub call: String,
    pub id: String,
    pub name: String,
    /// The input, as a blob.
    pub input: Digest,
    /// One line for people: the command, the path.
    pub summary: String,
    pub effect: String,
    /// The rule that allowed it, or why it may not run.
    pub rule: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutcomeKind {
    Done,
    /// Refused by a rule, or malformed.
    Refused,
    /// Cut by a stop or a budget.
    Cancelled,
    /// The engine died while it ran: nobody knows.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolFinished {
    pub call: String,
    pub id: String,
    pub outcome: ToolOutcomeKind,
    pub is_error: bool,
    pub exit_code: Option<i32>,
    pub millis: u64,
    /// What the model is told, as a blob.
    pub text: Digest,
    /// The kept output, as a blob, where it is more than `text`.
    pub output: Option<Digest>,
    pub output_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportAccepted {
    pub call: String,
    pub id: String,
    pub report: Report,
    /// The cited paths that exist, with their digests.
    pub links: BTreeMap<String, Digest>,
    /// The report file's digest.
    pub sha256: Digest,
}

/// How an agent's part ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentEnd {
    Reported,
    /// It stopped without a report, also after being asked.
    NoReport,
    /// A limit or a stop cut it.
    Cut(String),
    Refused(String),
    Failed {
        class: String,
        message: String,
    },
    Malformed,
    /// The same call with the same result, again and again.
    Stuck,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentFinished {
    pub call: String,
    pub role: Role,
    pub end: AgentEnd,
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
