//! What a program tells during its turn, made into acts.
//!
//! Role: gathers chunks into messages, follows tool calls ([`super::calls`]), keeps the last words and the cost.
//! Not its role: deciding anything from it. Invariants: before [`Hearing::go_live`] nothing is an act (a loaded
//! session replays its past); every act is bounded, and so is their number and what is kept meanwhile.

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, EmbeddedResourceResource, Plan, PlanEntryStatus, RequestPermissionRequest,
    SessionNotification, SessionUpdate, UsageUpdate,
};
use serde_json::Value;

use crate::model::act::{Act, PlanStep};
use crate::model::decimal::Exact;

use super::super::program::Task;
use super::calls::Calls;
use super::permission::Described;

/// The longest message that is kept whole; a report at its end must fit.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024;
/// Acts of one turn.
const MAX_ACTS: u64 = 20_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Voice {
    Said,
    Thought,
}

/// A message that is still arriving.
struct Message {
    voice: Voice,
    id: Option<String>,
    text: String,
    left_out: usize,
}

pub(super) struct Hearing<'a> {
    teller: Teller<'a>,
    /// Ours, once its turn has begun.
    session: Option<String>,
    message: Option<Message>,
    last_said: String,
    calls: Calls,
    not_understood: u64,
    cost: Cost,
}

impl<'a> Hearing<'a> {
    pub(super) fn new(task: &'a Task, on_act: &'a mut (dyn FnMut(Act) + Send)) -> Self {
        Self {
            teller: Teller { on_act, told: 0 },
            session: None,
            message: None,
            last_said: String::new(),
            calls: Calls::new(&task.workspace, task.offer.as_ref().map(|offer| offer.name.as_str())),
            not_understood: 0,
            cost: Cost::default(),
        }
    }

    /// From here on, what it tells is new.
    pub(super) fn go_live(&mut self, session: &str, goes_on: bool) {
        self.session = Some(session.to_owned());
        // A new session has cost nothing; what an earlier one had cost is known only if it told.
        if !goes_on {
            self.cost.before = Some(Exact::ZERO);
        }
    }

    pub(super) fn note(&mut self, text: &str) {
        self.teller.tell(Act::Noted { text: text.to_owned() });
    }

    /// One `session/update`.
    pub(super) fn take(&mut self, params: Value) {
        let Ok(told) = serde_json::from_value::<SessionNotification>(params) else {
            self.not_understood += 1;
            return;
        };
        let live = self.session.as_deref() == Some(&*told.session_id.0);
        match told.update {
            SessionUpdate::UsageUpdate(usage) => self.cost.take(&usage, live),
            update if live => self.live(update),
            // The past of a loaded session, or a session that is not ours.
            _ => {}
        }
    }

    fn live(&mut self, update: SessionUpdate) {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => self.chunk(Voice::Said, chunk),
            SessionUpdate::AgentThoughtChunk(chunk) => self.chunk(Voice::Thought, chunk),
            SessionUpdate::ToolCall(call) => {
                self.flush();
                self.calls.started(call, &mut |act| self.teller.tell(act));
            }
            SessionUpdate::ToolCallUpdate(update) => {
                self.flush();
                self.calls.updated(update, &mut |act| self.teller.tell(act));
            }
            SessionUpdate::Plan(plan) => {
                self.flush();
                self.teller.tell(planned(plan));
            }
            SessionUpdate::CurrentModeUpdate(mode) => self.note(&format!("its mode is {}", mode.current_mode_id)),
            SessionUpdate::Notice(notice) => {
                let more = notice.description.map(|more| format!(": {more}")).unwrap_or_default();
                self.note(&format!("{}{more}", notice.title));
            }
            SessionUpdate::CompactionUpdate(_) => self.note("it makes its conversation shorter"),
            // Menus, titles and our own words are no acts; what a later version adds is none we know.
            _ => {}
        }
    }

    fn chunk(&mut self, voice: Voice, chunk: ContentChunk) {
        let id = chunk.message_id.map(|id| id.to_string());
        let goes_on = |message: &Message| message.voice == voice && (message.id == id || id.is_none());
        if !self.message.as_ref().is_some_and(goes_on) {
            self.flush();
        }
        let message = self.message.get_or_insert_with(|| Message { voice, id, text: String::new(), left_out: 0 });
        let text = words(&chunk.content);
        let room = MAX_MESSAGE_BYTES - message.text.len();
        let fits = text.floor_char_boundary(room.min(text.len()));
        message.text.push_str(&text[..fits]);
        message.left_out += text.len() - fits;
    }

    /// The message that was arriving is whole.
    fn flush(&mut self) {
        let Some(mut message) = self.message.take() else { return };
        if message.text.trim().is_empty() {
            return;
        }
        if message.left_out > 0 {
            message.text.push_str(&format!("\n[… {} bytes left out]", message.left_out));
        }
        match message.voice {
            Voice::Thought => self.teller.tell(Act::Thought { text: message.text }),
            Voice::Said => {
                self.last_said.clone_from(&message.text);
                self.teller.tell(Act::Said { text: message.text });
            }
        }
    }

    /// Its last message, and what the turn cost if that is known.
    pub(super) fn last_words(&mut self) -> (String, Option<Exact>) {
        self.flush();
        (std::mem::take(&mut self.last_said), self.cost.of_turn())
    }

    /// Nothing more comes: what was still open is told.
    pub(super) fn end(&mut self, lines_ignored: u64) {
        self.flush();
        self.calls.end(&mut |act| self.teller.tell(act));
        if lines_ignored > 0 {
            self.note(&format!("{lines_ignored} lines that it wrote were no ACP messages, and were left out"));
        }
        if self.not_understood > 0 {
            let count = self.not_understood;
            self.note(&format!("{count} of its updates were not understood, and were left out"));
        }
    }

    /// What a permission request is about; `None` if it is not about our session.
    pub(super) fn describe(&mut self, wanted: &RequestPermissionRequest) -> Option<Described> {
        if self.session.as_deref() != Some(&*wanted.session_id.0) {
            return None;
        }
        self.flush();
        Some(self.calls.describe(&wanted.tool_call))
    }
}

/// Tells acts: bounded, and not without end.
struct Teller<'a> {
    on_act: &'a mut (dyn FnMut(Act) + Send),
    told: u64,
}

impl Teller<'_> {
    fn tell(&mut self, act: Act) {
        self.told += 1;
        if self.told < MAX_ACTS {
            (self.on_act)(act.bounded());
        } else if self.told == MAX_ACTS {
            let text = format!("it did more than {MAX_ACTS} things in this turn; the rest is not shown");
            (self.on_act)(Act::Noted { text });
        }
    }
}

/// The cost of the session, as the program sums it up.
#[derive(Debug, Default)]
struct Cost {
    before: Option<Exact>,
    now: Option<Exact>,
}

impl Cost {
    fn take(&mut self, usage: &UsageUpdate, live: bool) {
        let Some(cost) = usage.cost.as_ref().filter(|cost| cost.currency.eq_ignore_ascii_case("USD")) else { return };
        // ACP writes money as a JSON number. Its shortest decimal is what the program wrote, up to 15 digits.
        let Ok(amount) = Exact::parse(&cost.amount.to_string()) else { return };
        if live { self.now = Some(amount) } else { self.before = Some(amount) }
    }

    fn of_turn(&self) -> Option<Exact> {
        self.now?.checked_sub(self.before?)
    }
}

fn planned(plan: Plan) -> Act {
    let status = |status: &PlanEntryStatus| match status {
        PlanEntryStatus::Pending => "pending",
        PlanEntryStatus::InProgress => "in_progress",
        PlanEntryStatus::Completed => "completed",
        // The enum may grow.
        _ => "unknown",
    };
    let steps = plan.entries.into_iter();
    Act::Planned {
        steps: steps.map(|step| PlanStep { status: status(&step.status).into(), text: step.content }).collect(),
    }
}

/// A block as text; what is none is named.
pub(super) fn words(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(_) => "[an image]".to_owned(),
        ContentBlock::Audio(_) => "[a sound]".to_owned(),
        ContentBlock::ResourceLink(link) => format!("[{}]", link.uri),
        ContentBlock::Resource(resource) => match &resource.resource {
            EmbeddedResourceResource::TextResourceContents(text) => text.text.clone(),
            _ => "[a resource]".to_owned(),
        },
        // The enum may grow.
        _ => "[something else]".to_owned(),
    }
}
