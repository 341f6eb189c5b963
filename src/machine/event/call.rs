//! Events of an agent call: requests, replies, tools, reports.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::machine::words::{Place, Told, Topic::Agent, counted};
use crate::model::act::Act;
use crate::model::amount;
use crate::model::call_limits::CallBounds;
use crate::model::decimal::Exact;
use crate::model::digest::Digest;
use crate::model::failure::{FailureClass, FailureFacts};
use crate::model::ids::Role;
use crate::model::purpose::{self, Purpose};
pub use crate::model::reply::ReplyMove;
pub use crate::model::report::Report;

use super::family::family;
use super::run::Signal;

/// What an agent was told, as far as people are told it, too.
const MAX_TOLD: usize = 200;

family! {
    /// What happened in an agent call.
    CallEvent {
        AgentStarted = "agent.started", Fact, |started| vec![started.system, started.tools, started.message];
        LlmRequested = "llm.requested", Fact;
        LlmResponded = "llm.responded", Fact, |reply| vec![reply.message];
        LlmFailed = "llm.failed", Fact;
        ConversationExtended = "conversation.extended", Fact, |extended| vec![extended.message];
        ConversationHandedOver = "conversation.handed_over", Fact, |handed| vec![handed.message];
        ToolIntended = "tool.intended", Fact;
        ToolFinished = "tool.finished", Fact, |finished| finished.output.into_iter().chain(finished.text.blob()).collect();
        AgentActed = "agent.acted", Fact;
        AgentCalled = "agent.called", Fact, |called| std::iter::once(called.input).chain(called.text.blob()).collect();
        ReportAccepted = "report.accepted", Derived;
        AgentFinished = "agent.finished", Fact, |finished| finished.handover.into_iter().collect();
    }
}

impl CallEvent {
    pub fn told(&self, at: &Place) -> Told {
        let it = &at.when;
        match self {
            Self::AgentStarted(started) => {
                Told::new(Agent, format!("{it} {} starts ({})", started.who(), started.model))
            }
            Self::LlmRequested(requested) if requested.attempt > 0 => {
                Told::new(Agent, format!("{it} asks the model again (attempt {})", requested.attempt + 1))
            }
            Self::LlmRequested(_) => Told::quiet(Agent, format!("{it} asks the model")),
            Self::LlmResponded(reply) => {
                let tools = match reply.tool_uses.len() {
                    0 => "no tool call".to_owned(),
                    n => counted(n, "tool call", "tool calls"),
                };
                let tokens = amount::count(reply.usage.output);
                Told::quiet(Agent, format!("{it} the model answers: {tokens} tokens, {tools}"))
            }
            Self::LlmFailed(failed) => Told::judged(
                Agent,
                false,
                format!("{it} {}, {}: {}", failed.class.name(), failed.waits(), failed.message),
            ),
            Self::ConversationExtended(ConversationExtended { handover: Some(reason), .. }) => {
                Told::quiet(Agent, format!("{it} asked to hand over: {}", reason.describe()))
            }
            Self::ConversationHandedOver(handed) => {
                Told::new(Agent, format!("{it} goes on in a fresh conversation: {}", handed.reason.describe()))
            }
            Self::ConversationExtended(_) => Told::quiet(Agent, format!("{it} results go to the model")),
            Self::ToolIntended(intended) if intended.summary == intended.name => {
                Told::new(Agent, format!("{it} {}", intended.name))
            }
            Self::ToolIntended(intended) => Told::new(Agent, format!("{it} {}: {}", intended.name, intended.summary)),
            Self::ToolFinished(finished) => {
                let text = format!("{it}   ended: {}{}", finished.end(), why_refused(finished));
                Told::judged(Agent, !finished.is_error, text).quiet_if_good()
            }
            Self::AgentActed(acted) => {
                Told::quiet(Agent, format!("{it} the program tells what it does ({} acts)", acted.acts.len()))
            }
            Self::AgentCalled(called) => {
                let why = if called.is_error { first_line(&called.text) } else { String::new() };
                Told::judged(Agent, !called.is_error, format!("{it} {}{why}", called.name)).quiet_if_good()
            }
            Self::ReportAccepted(accepted) => Told::judged(Agent, true, format!("report accepted: {}", accepted.call)),
            Self::AgentFinished(finished) => {
                let moved =
                    finished.moved.as_ref().map(|moved| format!(", and {}", moved.describe())).unwrap_or_default();
                let text = format!("{it} {} {}{moved}", at.who, finished.end.describe());
                let is_good = finished.end == AgentEnd::Reported && finished.moved.is_none();
                Told::judged(Agent, is_good, text).quiet_if_good()
            }
        }
    }
}

/// Why a call was refused, for people.
fn why_refused(finished: &ToolFinished) -> String {
    if finished.outcome == ToolOutcomeKind::Refused { first_line(&finished.text) } else { String::new() }
}

fn first_line(text: &Text) -> String {
    let Text::Inline(text) = text else { return String::new() };
    let line = text.lines().next().unwrap_or_default();
    let cut: String = line.chars().take(MAX_TOLD).collect();
    if cut.is_empty() { cut } else { format!(": {cut}") }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentStarted {
    pub call: String,
    pub role: Role,
    /// Why it is called; `None`: its role's only purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<Purpose>,
    /// What it is about, where a purpose has several: a task, a group of failures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    pub agent: String,
    pub backend: String,
    pub model: String,
    /// Blobs: the system prompt, the tools, the first message.
    pub system: Digest,
    pub tools: Digest,
    pub message: Digest,
    /// The number of the goal's paraphrase, for the sweep of rung 65537.
    pub paraphrase: Option<u8>,
    /// How much it may use; older journals have none, and no conversation of theirs is handed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<CallBounds>,
}

/// Intent: a request goes out after this is durable. The reserve is what it may cost at most.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LlmRequested {
    pub call: String,
    pub turn: u32,
    pub attempt: u32,
    pub request_sha256: Digest,
    pub reserved_tokens: u64,
    /// The same in money, where the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_usd: Option<Exact>,
    /// Is the server told to leave out thinking blocks that no longer fit? Only after it refused one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drop_blocks: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    pub input: u64,
    pub cache_write: u64,
    pub cache_read: u64,
    pub output: u64,
    /// Part of the output.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub thinking: u64,
    /// Searches that the server ran.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub web_searches: u64,
}

impl Usage {
    /// All that was read and written.
    pub fn total(&self) -> u64 {
        let read = self.input.saturating_add(self.cache_write).saturating_add(self.cache_read);
        read.saturating_add(self.output)
    }

    /// The servers' numbers are foreign: they may be anything, and must not wrap.
    pub fn add(&mut self, other: &Self) {
        let parts = [
            (&mut self.input, other.input),
            (&mut self.cache_write, other.cache_write),
            (&mut self.cache_read, other.cache_read),
            (&mut self.output, other.output),
            (&mut self.thinking, other.thinking),
            (&mut self.web_searches, other.web_searches),
        ];
        for (sum, more) in parts {
            *sum = sum.saturating_add(more);
        }
    }
}

const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// How much the server says is left before it asks to wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLeft {
    pub requests: Option<u64>,
    pub tokens: Option<u64>,
    /// When the scarcer of the two is full again, RFC 3339.
    pub reset: Option<String>,
}

/// One tool call as the model asked for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    pub id: String,
    pub name: String,
    /// Not well-formed JSON, or not what the protocol allows; never run.
    pub malformed: bool,
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
    /// What the server says is left of its rate limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateLeft>,
    /// A program's own name for the conversation, so that its next turn can go on in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// What an agent program was seen doing since the last such event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentActed {
    pub call: String,
    pub turn: u32,
    pub acts: Vec<Act>,
}

/// An agent program called a tool of ours in the middle of its turn; this is what it was told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentCalled {
    pub call: String,
    pub turn: u32,
    /// Unique within the run's calls by programs.
    pub id: String,
    pub name: String,
    /// The input, as a blob.
    pub input: Digest,
    pub is_error: bool,
    pub text: Text,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LlmFailed {
    pub call: String,
    pub turn: u32,
    pub attempt: u32,
    pub class: FailureClass,
    pub message: String,
    /// How long is waited before the next attempt; `None`: there is none.
    pub wait_millis: Option<u64>,
    /// What the server had counted before the attempt broke off: it is owed all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Exact>,
    /// What [`machine::failure`](crate::machine::failure) decided from; older journals, and attempts that we ended
    /// ourselves, have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<FailureFacts>,
}

impl LlmFailed {
    /// For people: how long until the next attempt.
    pub fn waits(&self) -> String {
        self.wait_millis.map_or_else(|| "no retry".to_owned(), |millis| format!("waits {}", amount::duration(millis)))
    }

    /// Could it be that no request was sent, because another run was told to wait?
    pub fn is_only_a_wait(&self) -> bool {
        self.class == FailureClass::RateLimited && self.usage.is_none() && self.cost_usd.is_none()
    }
}

/// What is done about a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    Retry {
        after_ms: u64,
    },
    /// A person is asked; then it is tried again.
    Ask,
    Stop(Signal),
    /// The conversation no longer fits: the call goes on in a fresh one.
    HandOver,
    /// The call has failed; the playbook goes on without it.
    GiveUp,
}

impl AfterFailure {
    /// For people.
    pub fn describe(self) -> String {
        match self {
            Self::Retry { after_ms } => format!("a retry after {after_ms} ms"),
            Self::Ask => "a question to the operator".to_owned(),
            Self::Stop(signal) => format!("a stop ({})", signal.describe()),
            Self::HandOver => "a fresh conversation".to_owned(),
            Self::GiveUp => "the end of the call".to_owned(),
        }
    }

    /// As the event records it: how long is waited before the next attempt.
    pub const fn wait_millis(self) -> Option<u64> {
        match self {
            Self::Retry { after_ms } => Some(after_ms),
            Self::Ask | Self::HandOver => Some(0),
            Self::Stop(_) | Self::GiveUp => None,
        }
    }
}

/// A message of ours was added to the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationExtended {
    pub call: String,
    pub message: Digest,
    pub why: ExtendedBecause,
    /// The message asks for a summary, because the conversation ends for this reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<HandoverReason>,
}

/// The call goes on in a fresh conversation, which begins with this message: what it was told first, and a handover.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationHandedOver {
    pub call: String,
    pub message: Digest,
    pub reason: HandoverReason,
}

/// Why a conversation does not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandoverReason {
    /// It fills most of what the model can hold.
    Context,
    /// The server says that it no longer fits.
    ContextFull,
    Turns,
    ToolCalls,
    Seconds,
    /// What is left of the iteration is for closing it: no other conversation follows in this one.
    Iteration,
}

impl HandoverReason {
    /// For people, and for the agent.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Context => "the conversation fills most of what the model can hold",
            Self::ContextFull => "the conversation no longer fits the model",
            Self::Turns => "the limit of turns in one conversation is reached",
            Self::ToolCalls => "the limit of tool calls in one conversation is reached",
            Self::Seconds => "the time limit of one conversation is reached",
            Self::Iteration => "most of what this iteration may use is used, and the rest is for closing it",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExtendedBecause {
    ToolResults,
    ReportMissing,
    EmptyReply,
    /// Nothing else: it asks for a summary. Where results go along, it is `ToolResults`.
    Handover,
}

/// Intent: the tool starts after this is durable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolIntended {
    pub call: String,
    pub id: String,
    pub name: String,
    /// The digest of the input; the reply it stands in is a blob.
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

/// A text of a tool. A short one stands in the event itself: a blob costs two more trips to the disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Text {
    Inline(String),
    Blob(Digest),
}

impl Text {
    /// Longer texts become blobs; however JSON escapes them, these fit an event.
    pub const MAX_INLINE: usize = 64 * 1024;

    pub fn digest(&self) -> Digest {
        match self {
            Self::Inline(text) => Digest::of(text.as_bytes()),
            Self::Blob(digest) => *digest,
        }
    }

    /// How long it is, as far as that is known here: of a blob, what it is at least.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Inline(text) => text.len() as u64,
            Self::Blob(_) => Self::MAX_INLINE as u64,
        }
    }

    fn blob(&self) -> Option<Digest> {
        match self {
            Self::Inline(_) => None,
            Self::Blob(digest) => Some(*digest),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolFinished {
    pub call: String,
    pub id: String,
    pub outcome: ToolOutcomeKind,
    pub is_error: bool,
    pub exit_code: Option<i32>,
    pub millis: u64,
    /// What the model is told.
    pub text: Text,
    /// The kept output, as a blob, where it is more than `text`.
    pub output: Option<Digest>,
    pub output_bytes: u64,
}

impl ToolFinished {
    /// How it ended, for agents: without its time, which is another one whenever the same is done again.
    pub fn outcome(&self) -> String {
        match (self.outcome, self.exit_code) {
            (ToolOutcomeKind::Done, Some(code)) => format!("exit {code}"),
            (ToolOutcomeKind::Done, None) => "done".to_owned(),
            (ToolOutcomeKind::Refused, _) => "refused".to_owned(),
            (ToolOutcomeKind::Cancelled, _) => "cancelled".to_owned(),
            (ToolOutcomeKind::Unknown, _) => "unknown whether it ran".to_owned(),
        }
    }

    /// How it ended, for people.
    pub fn end(&self) -> String {
        let took = amount::took(self.millis);
        match (self.outcome, self.exit_code) {
            (ToolOutcomeKind::Done, Some(code)) => format!("exit {code}, {took}"),
            (ToolOutcomeKind::Done, None) => took,
            (ToolOutcomeKind::Refused, _) => "refused".to_owned(),
            (ToolOutcomeKind::Cancelled, _) => format!("cancelled after {took}"),
            (ToolOutcomeKind::Unknown, _) => "unknown whether it ran".to_owned(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportAccepted {
    pub call: String,
    pub id: String,
    pub report: Report,
    /// The cited paths that exist, with their digests.
    pub links: BTreeMap<String, Digest>,
    /// The digest of the report as it is rendered.
    pub sha256: Digest,
}

impl AgentStarted {
    pub fn purpose(&self) -> Purpose {
        self.purpose.unwrap_or_else(|| self.role.into())
    }

    /// Who is called and what for, for people; not cleaned.
    pub fn who(&self) -> String {
        purpose::who(self.purpose(), self.subject.as_deref())
    }
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
    /// It handed in a report that cannot be taken, also after it was told what was wrong with it.
    BadReport {
        times: u32,
        why: String,
    },
    /// The same call with the same result, again and again.
    Stuck,
    /// Denied so often that it is stuck, and nobody is there to say how to go on.
    Denied(String),
}

impl AgentEnd {
    /// One way to say how an agent's part ended.
    pub fn describe(&self) -> String {
        match self {
            Self::Reported => "reported".to_owned(),
            Self::NoReport => "ended without a report".to_owned(),
            Self::Cut(why) => format!("cut: {why}"),
            Self::Refused(why) => format!("the model refused ({why})"),
            Self::Failed { class, message } => format!("failed ({class}): {message}"),
            Self::Malformed => "sent malformed tool calls three times in a row".to_owned(),
            Self::BadReport { times: 1, why } => format!("handed in a report that could not be taken: {why}"),
            Self::BadReport { times, why } => {
                format!("handed in a report that could not be taken, {times} times, the last time: {why}")
            }
            Self::Stuck => "repeated the same failing call".to_owned(),
            Self::Denied(why) => format!("stuck: {why}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentFinished {
    pub call: String,
    pub role: Role,
    pub end: AgentEnd,
    /// What the next call for the same work is told of this one, as a blob: where it was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handover: Option<Digest>,
    /// It left the repository on another branch than it found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<Moved>,
}

/// Where a repository was, and where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    pub from: String,
    pub to: String,
}

impl Moved {
    /// For people.
    pub fn describe(&self) -> String {
        format!("switched the repository from {} to {}", self.from, self.to)
    }
}
