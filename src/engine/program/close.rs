//! How a turn is closed: as a reply, as a failure, or void; in each case with what it spent.
//!
//! Not here: running it. Invariant: whatever ends a turn, what it told about its spending is recorded once.

use serde_json::json;

use crate::agent::program::Finished;
use crate::agent::{self, CallError, cli};
use crate::engine::driver::Driver;
use crate::engine::error::EngineError;
use crate::engine::spend;
use crate::machine::event::{Event, LlmFailed, LlmResponded, ReplyMove, ToolUse};
use crate::model::decimal::Exact;

use super::turn::Program;

/// What a turn told about its spending.
pub(super) struct Spending {
    pub usage: agent::Usage,
    pub cost_usd: Option<Exact>,
}

impl Spending {
    /// Its own figure where it gave one, else the declared price. A turn that used nothing owes nothing.
    fn settled(&self, program: &Program) -> (Option<agent::Usage>, Option<Exact>) {
        let usage = (self.usage.total() > 0).then_some(self.usage);
        (usage, self.cost_usd.or_else(|| program.setup.cost(&usage?)))
    }
}

impl Driver<'_> {
    /// A turn that failed, with what it had spent.
    pub(super) async fn fail_turn(
        &mut self,
        key: &str,
        turn: u32,
        attempt: u32,
        error: &CallError,
        spent: Spending,
        program: &Program,
    ) -> Result<(), EngineError> {
        let (usage, cost) = spent.settled(program);
        self.take_failure(key, turn, attempt, error, usage, cost).await
    }

    /// A turn that we ended: nothing of it counts but what it spent.
    pub(super) async fn void_turn(
        &mut self,
        key: &str,
        turn: u32,
        attempt: u32,
        why: &str,
        spent: Spending,
        program: &Program,
    ) -> Result<(), EngineError> {
        let (Some(usage), cost_usd) = spent.settled(program) else { return Ok(()) };
        self.record(LlmFailed {
            call: key.to_owned(),
            turn,
            attempt,
            class: LlmFailed::CANCELLED.to_owned(),
            message: format!("its turn was ended: {why}"),
            wait_millis: Some(0),
            usage: Some(spend::recorded(&usage)),
            cost_usd,
        })
        .await
    }

    /// A finished turn as a reply: its last words, and its report if that is how it came.
    pub(super) async fn take_turn(&mut self, key: &str, turn: u32, mut finished: Finished) -> Result<(), EngineError> {
        finished.text = self.secrets().redact(&finished.text).into_owned();
        let call = self.call()?;
        let closing = call.closing_tool().filter(|_| !call.report_accepted);
        let fenced = closing.and_then(|tool| Some((tool.name(), cli::fenced_report(&finished.text)?)));
        let mut content = Vec::new();
        if !finished.text.trim().is_empty() {
            content.push(json!({"type": "text", "text": finished.text}));
        }
        let mut tool_uses = Vec::new();
        if let Some((name, input)) = fenced {
            let id = format!("report-{turn}");
            let malformed = !input.is_object();
            content.push(json!({"type": "tool_use", "id": id, "name": name, "input": input}));
            tool_uses.push(ToolUse { id, name: name.to_owned(), malformed });
        }
        let next = match (tool_uses.is_empty(), content.is_empty()) {
            (false, _) => ReplyMove::RunTools,
            (true, true) => ReplyMove::Nudge,
            (true, false) => ReplyMove::Finish,
        };
        let message = json!({"role": "assistant", "content": content});
        // The program's own figure where it gives one, else the declared price.
        let program = self.agents.program(&call.started.agent);
        let cost = finished.cost_usd.or_else(|| program?.setup.cost(&finished.usage));
        let responded = LlmResponded {
            call: key.to_owned(),
            turn,
            message: self.session.blobs.put(message.to_string().as_bytes())?,
            stop: "end_turn".to_owned(),
            next,
            empty: content.is_empty(),
            tool_uses,
            usage: spend::recorded(&finished.usage),
            cost_usd: cost,
            request_id: None,
            rate: None,
            session: finished.session,
        };
        self.record(Event::from(responded)).await
    }
}
