//! One agent call: a conversation between a model and our tools, as folded from events.
//!
//! Not here: sending, waiting, running tools. [`CallState::next`] says what comes next from the state
//! alone, so that a conversation interrupted anywhere goes on from the same message.

mod refused;
mod talk;

use std::collections::{BTreeMap, BTreeSet};

use crate::model::act::Act;
use crate::model::decimal::Exact;
use crate::model::digest::Digest;
use crate::model::failure::FailureClass;
use crate::model::ids::Role;
use crate::model::loop_file::BackendName;
use crate::model::purpose::{Purpose, Tool};

use super::event::AfterFailure;
use super::event::{
    AgentEnd, AgentStarted, CallEvent, ExtendedBecause, HandoverReason, LlmFailed, LlmResponded, Moved, ReplyMove,
    Text, ToolFinished, ToolOutcomeKind, ToolUse, Usage,
};

pub use refused::Refused;
pub use talk::{LeftOver, Recent, Talk};

/// Asked this often for a missing report, or for anything at all, then the agent's part is over.
const MAX_REPORT_REMINDERS: u32 = 2;
/// Sent back this often after a pause of the server.
const MAX_CONTINUATIONS: u32 = 10;
/// Malformed tool calls in a row before the agent's part is over.
const MAX_MALFORMED: u32 = 3;
/// The same failing call with the same result this often in a row is no progress.
const MAX_SAME: u32 = 4;

/// Calls denied in a row, then somebody has to look.
pub const MAX_DENIED_IN_A_ROW: u32 = 3;
/// Calls denied in one run, then every further one needs somebody to look.
pub const MAX_DENIED: u64 = 20;
/// Bytes of a text that are a token, about.
const BYTES_PER_TOKEN: u64 = 4;
/// The effect class of what changes nothing.
const READ: &str = "read";

/// A tool call of the latest reply.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingTool {
    pub tool_use: ToolUse,
    pub phase: ToolPhase,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ToolPhase {
    Asked,
    /// Announced, maybe running, maybe interrupted.
    Intended {
        effect: String,
        input: Digest,
        rule: String,
    },
    /// Finished; this is what the model is told.
    Finished {
        text: Text,
        is_error: bool,
        /// It had an effect to make and did not make it, or nobody knows whether it did.
        failed: bool,
    },
}

/// A conversation in progress.
#[derive(Debug, Clone, PartialEq)]
pub struct CallState {
    pub started: AgentStarted,
    /// The present conversation.
    pub talk: Talk,
    /// Conversations before the present one.
    pub handovers: u32,
    /// The latest tool calls of this conversation, the newest last.
    pub recent: Vec<Recent>,
    /// What was kept of its results, in order: number 1 is the first that has more than its text.
    pub outputs: Vec<Digest>,
    /// All messages so far, as blobs, in order.
    pub messages: Vec<Digest>,
    /// Index of the next reply.
    pub turn: u32,
    /// Failed attempts at this turn.
    pub attempts: u32,
    /// Those of them where something broke down.
    pub faults: u32,
    /// A wait before the next attempt: when it began, and how long it is. A run that was killed in it waits on;
    /// one that was stopped goes on when it is resumed.
    pub wait: Option<(String, u64)>,
    /// A request is out, or was when the engine died.
    pub request_open: bool,
    pub reply: Option<LlmResponded>,
    pub tools: Vec<PendingTool>,
    pub report_accepted: bool,
    /// Reports of the latest reply that were accepted, by the id of their tool call.
    accepted: Vec<String>,
    pub reminders: u32,
    /// Asked to say anything at all after an empty reply.
    pub nudges: u32,
    /// Sent back unchanged because the server paused. Its doing, so it uses up no reminder.
    pub continuations: u32,
    pub malformed: u32,
    /// Reports that could not be taken.
    pub refused: Refused,
    /// max_tokens was doubled this often.
    pub raised: u32,
    /// The server refused a thinking block once: from then on it may leave such blocks out.
    pub drop_blocks: bool,
    /// A program's own name for this conversation.
    pub session: Option<String>,
    /// What the turns of that conversation used, and what is known of their cost. A program may count all of it again
    /// and again.
    pub session_used: Usage,
    pub session_cost: Option<Exact>,
    /// A failure that no retry can mend.
    pub failed: Option<(String, String)>,
    /// What was decided after the latest failed attempt; unknown in older journals.
    pub after_failure: Option<AfterFailure>,
    /// Calls in a row that the rules or a person denied.
    pub denied: u32,
    /// The ids of all tool calls so far: a conversation with one of them twice would be refused.
    ids: BTreeSet<String>,
    repeats_id: bool,
    same: u32,
    last_outcome: Option<(String, Digest, Digest)>,
}

/// What a conversation needs next.
#[derive(Debug, Clone, PartialEq)]
pub enum CallTodo {
    /// Send the messages and wait for the reply.
    Ask,
    /// Announce and run this tool call.
    RunTool(ToolUse),
    /// It was announced; nobody knows whether it ran. Close or repeat it by its effect class.
    RecoverTool {
        tool_use: ToolUse,
        effect: String,
    },
    /// Hand all results to the model.
    ReturnResults,
    /// Ask for the report that is missing, or for anything at all.
    Remind(ExtendedBecause),
    /// Denied too often: a person has to say how to go on.
    Escalate(String),
    /// The conversation ends for this reason: ask for a summary of it.
    AskHandover(HandoverReason),
    /// Go on in a fresh conversation.
    HandOver(HandoverReason),
    End(AgentEnd),
}

impl CallState {
    pub fn new(started: AgentStarted) -> Self {
        Self {
            messages: vec![started.message],
            started,
            talk: Talk::default(),
            handovers: 0,
            recent: Vec::new(),
            outputs: Vec::new(),
            turn: 0,
            attempts: 0,
            faults: 0,
            wait: None,
            request_open: false,
            reply: None,
            tools: Vec::new(),
            report_accepted: false,
            accepted: Vec::new(),
            reminders: 0,
            nudges: 0,
            continuations: 0,
            malformed: 0,
            refused: Refused::default(),
            raised: 0,
            drop_blocks: false,
            session: None,
            session_used: Usage::default(),
            session_cost: None,
            failed: None,
            after_failure: None,
            denied: 0,
            ids: BTreeSet::new(),
            repeats_id: false,
            same: 0,
            last_outcome: None,
        }
    }

    pub fn role(&self) -> Role {
        self.started.role
    }

    /// Does a program with tools of its own answer, not a model server?
    pub fn is_program(&self) -> bool {
        [BackendName::Command, BackendName::Acp].iter().any(|name| name.name() == self.started.backend)
    }

    /// Folds the events of this call.
    pub fn apply(&mut self, event: &CallEvent) {
        match event {
            CallEvent::LlmRequested(_) => {
                self.request_open = true;
                self.after_failure = None;
            }
            CallEvent::LlmFailed(failed) => self.take_failure(failed),
            CallEvent::LlmResponded(reply) => self.take_reply(reply),
            CallEvent::ToolIntended(intended) => {
                self.note_tool(&intended.id, &intended.name, &intended.summary);
                self.set_phase(
                    &intended.id,
                    ToolPhase::Intended {
                        effect: intended.effect.clone(),
                        input: intended.input,
                        rule: intended.rule.clone(),
                    },
                );
            }
            CallEvent::ToolFinished(finished) => {
                self.talk.context = self.talk.context.saturating_add(finished.text.bytes() / BYTES_PER_TOKEN);
                if let Some(recent) = self.recent.iter_mut().rev().find(|recent| recent.id == finished.id) {
                    recent.ended = Some(finished.outcome());
                }
                self.outputs.extend(finished.output);
                self.note_outcome(&finished.id, finished.text.digest(), finished.is_error);
                if finished.is_error && self.is_closing(&finished.id) {
                    self.refused.note(Some(self.turn), &finished.text);
                }
                self.denied = if self.is_denial(finished) { self.denied + 1 } else { 0 };
                let failed = self.is_failure(finished);
                self.set_phase(
                    &finished.id,
                    ToolPhase::Finished { text: finished.text.clone(), is_error: finished.is_error, failed },
                );
            }
            CallEvent::ReportAccepted(accepted) => {
                self.report_accepted |= accepted.report.ends_call();
                self.accepted.push(accepted.id.clone());
            }
            CallEvent::ConversationExtended(extended) => {
                self.messages.push(extended.message);
                self.reply = None;
                self.tools.clear();
                self.accepted.clear();
                self.talk.asked = self.talk.asked.or(extended.handover);
                match extended.why {
                    ExtendedBecause::ToolResults | ExtendedBecause::Handover => {}
                    ExtendedBecause::ReportMissing => self.reminders += 1,
                    ExtendedBecause::EmptyReply => self.nudges += 1,
                }
            }
            CallEvent::ConversationHandedOver(handed) => self.begin_anew(handed.message),
            CallEvent::AgentActed(acted) => {
                for act in &acted.acts {
                    if let Act::Called { id, tool, input } = act {
                        self.note_tool(id, tool, input);
                    }
                }
            }
            CallEvent::AgentCalled(called) => {
                self.note_tool(&called.id, &called.name, "");
                let is_report = self.closing_tool().is_some_and(|tool| tool.name() == called.name);
                if called.is_error && is_report && !self.report_accepted {
                    self.refused.note(None, &called.text);
                }
            }
            CallEvent::AgentStarted(_) | CallEvent::AgentFinished(_) => {}
        }
    }

    fn take_failure(&mut self, failed: &LlmFailed) {
        // A wait before any request was sent is no attempt.
        self.attempts += u32::from(self.request_open);
        self.faults += u32::from(failed.class.is_breakdown());
        if let Some(usage) = &failed.usage {
            self.note_session(usage, failed.cost_usd);
        }
        self.request_open = false;
        self.drop_blocks |= failed.class == FailureClass::PrefixMismatch;
        if failed.wait_millis.is_none() {
            self.failed = Some((failed.class.name().to_owned(), failed.message.clone()));
        }
    }

    /// A fresh conversation with this first message; what was counted of the one before does not hold for it.
    fn begin_anew(&mut self, message: Digest) {
        let (started, turn, denied) = (self.started.clone(), self.turn, self.denied);
        // The handover may name one of them.
        let outputs = std::mem::take(&mut self.outputs);
        let (handovers, refused) = (self.handovers.saturating_add(1), self.refused.clone());
        *self = Self { turn, denied, handovers, refused, outputs, messages: vec![message], ..Self::new(started) };
    }

    fn note_tool(&mut self, id: &str, name: &str, summary: &str) {
        self.talk.tool_calls = self.talk.tool_calls.saturating_add(1);
        talk::remember(&mut self.recent, id, name, summary);
    }

    fn take_reply(&mut self, reply: &LlmResponded) {
        self.talk.replies = self.talk.replies.saturating_add(1);
        self.talk.answered = self.talk.asked.is_some();
        self.talk.paused = reply.next == ReplyMove::SendBack;
        self.talk.context = reply.usage.total();
        self.note_session(&reply.usage, reply.cost_usd);
        if reply.session.is_some() {
            self.session.clone_from(&reply.session);
        }
        self.request_open = false;
        self.attempts = 0;
        self.faults = 0;
        self.turn += 1;
        match reply.next {
            // A cut tool call is void: the same turn is asked again with more room.
            ReplyMove::RaiseMaxTokens => self.raised += 1,
            ReplyMove::SendBack => {
                self.messages.push(reply.message);
                self.continuations += 1;
            }
            ReplyMove::RunTools => {
                for tool_use in &reply.tool_uses {
                    self.repeats_id |= !self.ids.insert(tool_use.id.clone());
                }
                self.messages.push(reply.message);
                self.tools = reply
                    .tool_uses
                    .iter()
                    .map(|tool_use| PendingTool { tool_use: tool_use.clone(), phase: ToolPhase::Asked })
                    .collect();
                let all_malformed = self.tools.iter().all(|tool| tool.tool_use.malformed);
                self.malformed = if all_malformed { self.malformed + 1 } else { 0 };
                self.reply = Some(reply.clone());
            }
            ReplyMove::Finish | ReplyMove::Nudge | ReplyMove::StartFresh | ReplyMove::Refused | ReplyMove::Stop => {
                if !reply.empty {
                    self.messages.push(reply.message);
                }
                self.reply = Some(reply.clone());
            }
        }
    }

    /// A turn was paid for. One without a conversation to go on in began a new one.
    fn note_session(&mut self, usage: &Usage, cost: Option<Exact>) {
        if self.session.is_none() {
            (self.session_used, self.session_cost) = (Usage::default(), None);
        }
        self.session_used.add(usage);
        if let Some(cost) = cost {
            self.session_cost = self.session_cost.unwrap_or(Exact::ZERO).checked_add(cost);
        }
    }

    /// Was the report of this tool call accepted?
    pub fn has_accepted(&self, id: &str) -> bool {
        self.accepted.iter().any(|accepted| accepted == id)
    }

    fn set_phase(&mut self, id: &str, phase: ToolPhase) {
        if let Some(tool) = self.tools.iter_mut().find(|tool| tool.tool_use.id == id) {
            tool.phase = phase;
        }
    }

    fn intent(&self, id: &str) -> Option<(&str, &str)> {
        self.tools.iter().find(|tool| tool.tool_use.id == id).and_then(|tool| match &tool.phase {
            ToolPhase::Intended { effect, rule, .. } => Some((effect.as_str(), rule.as_str())),
            ToolPhase::Asked | ToolPhase::Finished { .. } => None,
        })
    }

    /// Was this call denied by a rule or a person, rather than malformed?
    pub fn is_denial(&self, finished: &ToolFinished) -> bool {
        let denying = |rule: &str| rule.starts_with("deny ") || rule.starts_with("ask ");
        finished.outcome == ToolOutcomeKind::Refused && self.intent(&finished.id).is_some_and(|(_, rule)| denying(rule))
    }

    /// Did a call that acts not act, or nobody knows? A command that ran and exited with an error did what it was
    /// told: agents run failing tests all the time, so an exit code is no failure.
    fn is_failure(&self, finished: &ToolFinished) -> bool {
        let acts = self.intent(&finished.id).is_some_and(|(effect, _)| effect != READ);
        let erred = finished.is_error && finished.exit_code.is_none();
        acts && (finished.outcome != ToolOutcomeKind::Done || erred)
    }

    /// Did an earlier call of this reply, meant to act, fail? What was to follow it leans on what is not there.
    pub fn failed_before(&self, id: &str) -> bool {
        let earlier = self.tools.iter().take_while(|tool| tool.tool_use.id != id);
        earlier.into_iter().any(|tool| matches!(tool.phase, ToolPhase::Finished { failed: true, .. }))
    }

    /// The calls of this reply after one, up to the first that is announced or closed already.
    pub fn asked_after(&self, id: &str) -> impl Iterator<Item = &ToolUse> {
        let after = self.tools.iter().skip_while(move |tool| tool.tool_use.id != id).skip(1);
        after.take_while(|tool| tool.phase == ToolPhase::Asked).map(|tool| &tool.tool_use)
    }

    fn note_outcome(&mut self, id: &str, text: Digest, is_error: bool) {
        let Some(tool) = self.tools.iter().find(|tool| tool.tool_use.id == id) else { return };
        let ToolPhase::Intended { input, .. } = tool.phase else { return };
        let outcome = (tool.tool_use.name.clone(), input, text);
        if !is_error {
            self.same = 0;
            self.last_outcome = None;
        } else if self.last_outcome.as_ref() == Some(&outcome) {
            self.same += 1;
        } else {
            self.same = 1;
            self.last_outcome = Some(outcome);
        }
    }

    /// What comes next. Every path ends: replies are bounded by the budgets, the rest by the limits above.
    pub fn next(&self) -> CallTodo {
        if let Some((class, message)) = &self.failed {
            return CallTodo::End(AgentEnd::Failed { class: class.clone(), message: message.clone() });
        }
        if self.report_accepted {
            // Every intent gets its result, also when the engine died between the two.
            return self.open_tool().unwrap_or(CallTodo::End(AgentEnd::Reported));
        }
        if self.refused.is_over() {
            return self.open_tool().unwrap_or_else(|| CallTodo::End(self.bad_report()));
        }
        if self.same >= MAX_SAME {
            return CallTodo::End(AgentEnd::Stuck);
        }
        // Nobody can tell which result belongs to which call, and no server takes such a conversation: nothing of
        // the reply runs. What an earlier engine had announced is still closed.
        if self.repeats_id {
            return self.open_tool().unwrap_or(CallTodo::End(AgentEnd::Malformed));
        }
        let Some(reply) = &self.reply else {
            return self.ask();
        };
        match reply.next {
            ReplyMove::RunTools => self.next_tool(),
            ReplyMove::Refused => CallTodo::End(AgentEnd::Refused(reply.stop.clone())),
            // A fresh conversation would have to be told everything again, and the next iteration does that.
            ReplyMove::StartFresh => CallTodo::End(AgentEnd::Failed {
                class: "context_full".into(),
                message: format!("the conversation no longer fits the model (`{}`)", reply.stop),
            }),
            ReplyMove::Stop => CallTodo::End(AgentEnd::Failed {
                class: "stopped".into(),
                message: format!("the model stopped with `{}`", reply.stop),
            }),
            ReplyMove::Nudge => self.remind(ExtendedBecause::EmptyReply),
            ReplyMove::Finish if self.closing_tool().is_none() => CallTodo::End(AgentEnd::Reported),
            ReplyMove::Finish => self.remind(ExtendedBecause::ReportMissing),
            ReplyMove::SendBack | ReplyMove::RaiseMaxTokens => self.ask(),
        }
    }

    fn ask(&self) -> CallTodo {
        if self.continuations > MAX_CONTINUATIONS || self.raised > 1 {
            return CallTodo::End(AgentEnd::NoReport);
        }
        CallTodo::Ask
    }

    fn remind(&self, why: ExtendedBecause) -> CallTodo {
        // What was refused was asked for again, too.
        let re_asked = if self.refused.re_asks.is_some() { self.refused.times } else { 0 };
        if self.reminders + self.nudges + re_asked >= MAX_REPORT_REMINDERS {
            return CallTodo::End(if re_asked > 0 { self.bad_report() } else { AgentEnd::NoReport });
        }
        CallTodo::Remind(why)
    }

    fn bad_report(&self) -> AgentEnd {
        AgentEnd::BadReport { times: self.refused.times, why: self.refused.why.clone() }
    }

    /// Is this the tool call that hands in the report without which the call is not finished?
    fn is_closing(&self, id: &str) -> bool {
        let name = self.tools.iter().find(|tool| tool.tool_use.id == id).map(|tool| tool.tool_use.name.as_str());
        self.closing_tool().is_some_and(|tool| name == Some(tool.name()))
    }

    /// A tool that was announced and has no result.
    fn open_tool(&self) -> Option<CallTodo> {
        self.tools.iter().find_map(|tool| match &tool.phase {
            ToolPhase::Intended { effect, .. } => {
                Some(CallTodo::RecoverTool { tool_use: tool.tool_use.clone(), effect: effect.clone() })
            }
            ToolPhase::Asked | ToolPhase::Finished { .. } => None,
        })
    }

    fn next_tool(&self) -> CallTodo {
        if let Some(open) = self.open_tool() {
            return open;
        }
        if let Some(tool) = self.tools.iter().find(|tool| tool.phase == ToolPhase::Asked) {
            return CallTodo::RunTool(tool.tool_use.clone());
        }
        if self.malformed >= MAX_MALFORMED {
            return CallTodo::End(AgentEnd::Malformed);
        }
        CallTodo::ReturnResults
    }

    /// The results in the order of the calls.
    pub fn results(&self) -> Vec<(&ToolUse, &Text, bool)> {
        let finished = self.tools.iter().filter_map(|tool| match &tool.phase {
            ToolPhase::Finished { text, is_error, .. } => Some((&tool.tool_use, text, *is_error)),
            ToolPhase::Asked | ToolPhase::Intended { .. } => None,
        });
        finished.collect()
    }

    pub fn purpose(&self) -> Purpose {
        self.started.purpose()
    }

    /// The tool without which this call is not finished.
    pub fn closing_tool(&self) -> Option<Tool> {
        self.purpose().closing()
    }
}

/// A finished call, kept for the record.
#[derive(Debug, Clone, PartialEq)]
pub struct CallSummary {
    pub role: Role,
    pub purpose: Purpose,
    pub subject: Option<String>,
    pub end: AgentEnd,
    pub turns: u32,
    pub paraphrase: Option<u8>,
    /// It left the repository on another branch.
    pub moved: Option<Moved>,
}

/// The finished calls of an iteration by their key.
pub type Calls = BTreeMap<String, CallSummary>;
