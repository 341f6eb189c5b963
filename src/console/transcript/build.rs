//! From news to items: which events an operator reads about, and in which words.
//!
//! Not here: keeping, measuring, drawing. Invariants: every text is made harmless here; text that a model is
//! writing stands exactly once, live or finished.

use std::collections::HashMap;

use serde_json::Value;

use crate::console::prose;
use crate::console::scene::{News, millis_of};
use crate::console::widget;
use crate::engine::hub::{LiveKind, LiveText};
use crate::machine::event::{
    AgentEnd, CallEvent, ConversationExtended, Event, ExtendedBecause, LlmFailed, LlmResponded, OperatorEvent,
    ReplyMove, RunEvent, Text, ToolFinished, ToolIntended, ToolOutcomeKind,
};
use crate::machine::fold::Stamped;
use crate::machine::run::RunState;
use crate::machine::words::Topic;
use crate::model::ids::Role;
use crate::model::safe::Safe;

use super::Transcript;
use super::item::{BRIEF_LINES, BodyLine, Ended, Fold, Item, ItemKind, Part, Tone, ToolCall};

/// A live line longer than this is finished early; the reply brings it whole.
const LONGEST_LIVE: usize = 4_096;

/// A piece of text that is being written.
#[derive(Debug, Clone)]
struct Live {
    item: u64,
    call: String,
    turn: u32,
    kind: LiveKind,
    /// The last line as it came, because harmless text cannot be put together from harmless pieces.
    tail: String,
}

/// What has to be remembered between events.
#[derive(Debug, Clone, Default)]
pub struct Context {
    role: Option<Role>,
    iteration: Option<u32>,
    next_seq: u64,
    last_ms: i64,
    live: Vec<Live>,
    /// The latest reply: live text of it that comes late says nothing new.
    answered: Option<(String, u32)>,
    /// What the tools of the latest reply are given, by id.
    inputs: HashMap<String, Vec<String>>,
    /// Tool calls without a result.
    pub(super) open: HashMap<String, u64>,
    /// Live items that gave way, with what stands for them: a reader may be there.
    moved: Vec<(u64, u64)>,
    /// The turn of a program whose words stand here already.
    pub(super) said: Option<(String, u32)>,
}

impl Transcript {
    pub fn learn(&mut self, news: News<'_>) {
        match news {
            News::Reset => self.forget_everything(),
            News::Live(live) => self.live(live),
            News::Event { stamped, state, body } => {
                self.context.next_seq = stamped.seq + 1;
                self.context.last_ms = millis_of(&stamped.ts).unwrap_or(self.context.last_ms);
                self.context.iteration = state.current.as_ref().map(|iteration| iteration.number());
                self.event(stamped, state, body);
            }
        }
    }

    /// Where a reader of an item that gave way finds the same text now.
    pub fn moved(&self, id: u64) -> Option<u64> {
        self.context.moved.iter().find(|(from, _)| *from == id).map(|(_, to)| *to)
    }

    pub(super) fn new_item(&self, kind: ItemKind, seq: u64) -> Item {
        let mut item = Item::new(kind, seq, self.context.last_ms);
        item.role = self.context.role;
        item.iteration = self.context.iteration;
        item
    }

    /// What nightloop said in the conversation beyond the results of tools.
    fn extended(&mut self, seq: u64, extended: &ConversationExtended) {
        let text = match extended.why {
            _ if extended.handover.is_some() => "nightloop asked for a summary: the conversation ends here",
            ExtendedBecause::ToolResults | ExtendedBecause::Handover => return,
            ExtendedBecause::ReportMissing => "nightloop asked for the missing report",
            ExtendedBecause::EmptyReply => "nightloop asked it to continue after an empty reply",
        };
        self.note(seq, Tone::Plain, text);
    }

    pub(super) fn note(&mut self, seq: u64, tone: Tone, text: &str) -> u64 {
        let mut item = self.new_item(ItemKind::Note(tone), seq);
        item.extend(Part::Text, prose::lines(text));
        self.push(item)
    }

    fn event(&mut self, stamped: &Stamped, state: &RunState, body: Option<&[u8]>) {
        let seq = stamped.seq;
        match &stamped.event {
            Event::Call(CallEvent::AgentStarted(started)) => {
                self.context.role = Some(started.role);
                self.context.inputs.clear();
                self.context.open.clear();
                // Before the first iteration only the steps of a playbook call agents.
                let when = if state.current.is_none() && state.done.is_empty() {
                    "preparing".to_owned()
                } else {
                    format!("iteration {}", state.iteration_number())
                };
                let again = started.paraphrase.map(|n| format!(", paraphrase {n}")).unwrap_or_default();
                let kind = ItemKind::Heading {
                    title: format!("{when}, {}{again}", Safe::line(&started.who())),
                    detail: format!("{} ({})", Safe::line(&started.model), Safe::line(&started.agent)),
                };
                let item = self.new_item(kind, seq);
                self.push(item);
            }
            Event::Call(CallEvent::LlmResponded(reply)) => self.reply(seq, reply, body),
            Event::Call(CallEvent::LlmFailed(failed)) => self.failure(seq, failed),
            Event::Call(CallEvent::ConversationExtended(extended)) => self.extended(seq, extended),
            Event::Call(CallEvent::ConversationHandedOver(handed)) => {
                let text = format!("a fresh conversation goes on: {}", handed.reason.describe());
                self.note(seq, Tone::Plain, &text);
            }
            Event::Call(CallEvent::AgentActed(acted)) => self.acted(seq, acted),
            Event::Call(CallEvent::AgentCalled(called)) => self.called(seq, called),
            Event::Call(CallEvent::ToolIntended(intended)) => self.tool(seq, intended),
            Event::Call(CallEvent::ToolFinished(finished)) => self.result(seq, finished, body),
            Event::Call(CallEvent::ReportAccepted(accepted)) => {
                if let Some(id) = self.context.open.get(&accepted.id).copied() {
                    self.change(id, |item| {
                        if let ItemKind::Tool(tool) = &mut item.kind {
                            tool.accepted = true;
                        }
                    });
                } else {
                    self.note(seq, Tone::Good, "report accepted");
                }
            }
            Event::Call(CallEvent::AgentFinished(finished)) => {
                self.drop_live();
                if finished.end != AgentEnd::Reported {
                    self.note(seq, Tone::Bad, &format!("{} {}", state.place().who, finished.end.describe()));
                }
                self.context.role = None;
            }
            Event::Operator(OperatorEvent::SteerDelivered(delivered)) => {
                for steer in state.operator.steers.iter().filter(|steer| delivered.numbers.contains(&steer.number)) {
                    self.note(
                        seq,
                        Tone::Person,
                        &format!("message {} from {}: {}", steer.number, steer.by, steer.text),
                    );
                }
            }
            Event::Run(RunEvent::RunStarted(started)) => {
                let goal = started.declaration.goal.clone().unwrap_or_default();
                self.note(seq, Tone::Plain, &format!("run {} begins: {goal}", started.run));
            }
            event => {
                if let Some((tone, text)) = between(state, event) {
                    self.note(seq, tone, &text);
                }
            }
        }
    }

    fn reply(&mut self, seq: u64, reply: &LlmResponded, body: Option<&[u8]>) {
        // Text of the next reply may be here before this one: it is not touched.
        let (live, later): (Vec<Live>, Vec<Live>) = std::mem::take(&mut self.context.live)
            .into_iter()
            .partition(|piece| piece.call != reply.call || piece.turn <= reply.turn);
        self.context.live = later;
        self.context.answered = Some((reply.call.clone(), reply.turn));
        self.context.moved.clear();
        self.context.inputs.clear();
        let message: Option<Value> = body.and_then(|bytes| serde_json::from_slice(bytes).ok());
        let content = message.as_ref().and_then(|message| message.get("content"));
        match content {
            Some(Value::String(text)) => {
                let id = self.say(seq, ItemKind::Speech, text);
                self.take_place(&live, LiveKind::Text, id);
            }
            Some(Value::Array(blocks)) => {
                let said = self.context.said.take().is_some_and(|said| said == (reply.call.clone(), reply.turn));
                let is_text = |block: &Value| block.get("type").and_then(Value::as_str) == Some("text");
                for block in blocks.iter().filter(|block| !(said && is_text(block))) {
                    self.block(seq, block, &live);
                }
            }
            _ if body.is_none() && !reply.empty => {
                let text = format!("[a reply of {} tokens, far back: its text is not loaded]", reply.usage.output);
                let id = self.note(seq, Tone::Plain, &text);
                self.take_place(&live, LiveKind::Text, id);
            }
            _ => {}
        }
        for piece in live {
            self.remove(piece.item);
        }
        let stop = Safe::line(&reply.stop);
        match reply.next {
            ReplyMove::Finish | ReplyMove::RunTools | ReplyMove::SendBack => {}
            ReplyMove::RaiseMaxTokens => {
                self.note(seq, Tone::Wait, "the reply was cut at its token limit; asked again with more room");
            }
            ReplyMove::Nudge => {
                self.note(seq, Tone::Wait, "the reply was empty");
            }
            ReplyMove::Refused => {
                self.note(seq, Tone::Bad, &format!("the model refused ({stop})"));
            }
            ReplyMove::StartFresh | ReplyMove::Stop => {
                self.note(seq, Tone::Bad, &format!("the model stopped ({stop})"));
            }
        }
    }

    fn block(&mut self, seq: u64, block: &Value, live: &[Live]) {
        let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "text" if !text("text").trim().is_empty() => {
                let id = self.say(seq, ItemKind::Speech, text("text"));
                self.take_place(live, LiveKind::Text, id);
            }
            "thinking" if !text("thinking").trim().is_empty() => {
                let id = self.say(seq, ItemKind::Thinking, text("thinking"));
                self.take_place(live, LiveKind::Thinking, id);
            }
            "redacted_thinking" => {
                self.note(seq, Tone::Plain, "[thinking that the provider does not show]");
            }
            "tool_use" => {
                let input = block.get("input").map(input_lines).unwrap_or_default();
                self.context.inputs.insert(text("id").to_owned(), input);
            }
            _ => {}
        }
    }

    pub(super) fn say(&mut self, seq: u64, kind: ItemKind, text: &str) -> u64 {
        let mut item = self.new_item(kind, seq);
        item.extend(Part::Text, prose::lines(text.trim_matches('\n')));
        self.push(item)
    }

    fn take_place(&mut self, live: &[Live], kind: LiveKind, id: u64) {
        for piece in live.iter().filter(|piece| piece.kind == kind) {
            self.context.moved.push((piece.item, id));
        }
    }

    fn remove(&mut self, id: u64) {
        self.change(id, |item| {
            item.kind = ItemKind::Gone;
            item.body = Vec::new();
        });
    }

    fn drop_live(&mut self) {
        for piece in std::mem::take(&mut self.context.live) {
            self.remove(piece.item);
        }
    }

    fn failure(&mut self, seq: u64, failed: &LlmFailed) {
        self.drop_live();
        let tone = if failed.wait_millis.is_some() { Tone::Wait } else { Tone::Bad };
        let mut item = self.new_item(ItemKind::Note(tone), seq);
        item.extend(Part::Text, prose::lines(&format!("{}: {}", failed.class.name(), failed.message)));
        match failed.wait_millis {
            Some(wait) => {
                item.until_ms = i64::try_from(wait).ok().map(|wait| self.context.last_ms.saturating_add(wait));
                let words = format!("attempt {}, waiting {} until ", failed.attempt + 1, widget::duration(wait));
                item.body.push(BodyLine { part: Part::Until, text: words.into() });
            }
            None => item.extend(Part::Text, std::iter::once("a retry cannot fix it".to_owned())),
        }
        self.push(item);
    }

    fn tool(&mut self, seq: u64, intended: &ToolIntended) {
        let summary = if intended.summary == intended.name { "" } else { &intended.summary };
        let call = ToolCall {
            id: intended.id.clone(),
            name: Safe::line(&intended.name).to_string(),
            summary: Safe::line(summary).to_string(),
            rule: Safe::line(&intended.rule).to_string(),
            ended: None,
            accepted: false,
        };
        let mut item = self.new_item(ItemKind::Tool(call), seq);
        let input = self.context.inputs.remove(&intended.id).unwrap_or_default();
        item.extend(Part::Input, input.into_iter());
        item.fold = Fold::Folded;
        let id = self.push(item);
        self.context.open.insert(intended.id.clone(), id);
    }

    fn result(&mut self, seq: u64, finished: &ToolFinished, body: Option<&[u8]>) {
        let text = match (&finished.text, body) {
            (Text::Inline(text), _) => text.clone(),
            (Text::Blob(_), Some(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            (Text::Blob(_), None) => {
                format!("[{} bytes of output, far back: not loaded]", widget::count(finished.output_bytes))
            }
        };
        let ended = Ended { good: !finished.is_error, words: outcome(finished) };
        let Some(id) = self.context.open.remove(&finished.id) else {
            let tone = if finished.is_error { Tone::Bad } else { Tone::Plain };
            self.note(seq, tone, &format!("a tool call ended: {}", ended.words));
            return;
        };
        self.change(id, |item| {
            item.done_seq = Some(seq);
            let ItemKind::Tool(tool) = &mut item.kind else { return };
            let accepted = tool.accepted;
            tool.ended = Some(ended);
            item.extend(Part::Output, prose::lines(text.trim_end()));
            let short = item.output_lines() <= BRIEF_LINES && !accepted;
            if item.fold == Fold::Folded && short {
                item.fold = Fold::Brief;
            }
        });
    }

    /// Text as it is written.
    fn live(&mut self, live: &LiveText) {
        if self.context.answered.as_ref().is_some_and(|(call, turn)| *call == live.call && live.turn <= *turn) {
            return;
        }
        let same = |piece: &Live| piece.call == live.call && piece.turn == live.turn && piece.kind == live.kind;
        let known = self.context.live.iter().position(same);
        let index = match known {
            Some(index) => index,
            None => {
                let kind = match live.kind {
                    LiveKind::Text => ItemKind::Speech,
                    LiveKind::Thinking => ItemKind::Thinking,
                    LiveKind::ToolInput => ItemKind::Spelling,
                };
                let item = self.new_item(kind, self.context.next_seq);
                let item = self.push(item);
                let (call, turn, kind) = (live.call.clone(), live.turn, live.kind);
                self.context.live.push(Live { item, call, turn, kind, tail: String::new() });
                self.context.live.len() - 1
            }
        };
        let Some(piece) = self.context.live.get_mut(index) else { return };
        piece.tail.push_str(&live.text);
        let id = piece.item;
        let finished_to = piece.tail.rfind('\n').map_or(0, |at| at + 1);
        let mut lines: Vec<BodyLine> = Vec::new();
        let body_line = |text: String| BodyLine { part: Part::Text, text: text.into() };
        lines.extend(prose::lines(piece.tail.get(..finished_to).unwrap_or_default()).map(body_line));
        piece.tail.drain(..finished_to);
        lines.push(body_line(prose::line(&piece.tail)));
        if piece.tail.len() > LONGEST_LIVE {
            piece.tail.clear();
            lines.push(body_line(String::new()));
        }
        // The last line of what is there is the tail as it was before.
        let len = self.item(id).map_or(0, |item| item.body.len());
        self.grow(id, len.saturating_sub(1), lines);
    }
}

fn outcome(finished: &ToolFinished) -> String {
    let took = widget::took(finished.millis);
    match (finished.outcome, finished.exit_code) {
        (ToolOutcomeKind::Done, Some(code)) => format!("exit {code}, {took}"),
        (ToolOutcomeKind::Done, None) if finished.is_error => format!("failed, {took}"),
        (ToolOutcomeKind::Done, None) => took,
        (ToolOutcomeKind::Refused, _) => "refused".to_owned(),
        (ToolOutcomeKind::Cancelled, _) => format!("cancelled after {took}"),
        (ToolOutcomeKind::Unknown, _) => "unknown: the engine died while it ran".to_owned(),
    }
}

/// The input of a tool, one field after the other; longer texts below their name.
fn input_lines(input: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    match input {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if !text.contains('\n') => lines.push(prose::line(&format!("{name}: {text}"))),
                    Value::String(text) => {
                        lines.push(prose::line(&format!("{name}:")));
                        lines.extend(text.lines().map(|line| prose::line(&format!("  {line}"))));
                    }
                    Value::Array(values) if !values.is_empty() => {
                        lines.push(prose::line(&format!("{name}:")));
                        lines.extend(values.iter().map(|value| prose::line(&format!("  - {}", plain(value)))));
                    }
                    value => lines.push(prose::line(&format!("{name}: {}", plain(value)))),
                }
            }
        }
        value => lines.push(prose::line(&plain(value))),
    }
    lines
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What else an operator wants to find among the words of agents.
fn between(state: &RunState, event: &Event) -> Option<(Tone, String)> {
    let told = match event {
        Event::Run(
            RunEvent::RunResumed(_) | RunEvent::BackpressureSeen(_) | RunEvent::BudgetCut(_) | RunEvent::RunHalted(_),
        )
        | Event::Operator(
            OperatorEvent::DecisionAsked(_)
            | OperatorEvent::DecisionAnswered(_)
            | OperatorEvent::DecisionSettled(_)
            | OperatorEvent::PauseBegan(_)
            | OperatorEvent::PauseLifted(_)
            | OperatorEvent::RetryRequested(_),
        ) => state.told(event),
        _ => return None,
    };
    let tone = match (told.topic, told.good) {
        (_, Some(true)) => Tone::Good,
        (_, Some(false)) => Tone::Bad,
        (Topic::People, None) => Tone::Person,
        (_, None) => Tone::Plain,
    };
    Some((tone, told.text))
}
