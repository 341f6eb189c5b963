//! A finished turn of a program as a reply: its last words, and its report if that is how it came.

use serde_json::{Value, json};

use crate::agent::cli;
use crate::agent::program::Finished;
use crate::engine::attempt::Attempt;
use crate::engine::context::Context;
use crate::engine::error::EngineError;
use crate::engine::spend;
use crate::machine::event::{LlmResponded, ReplyMove, ToolUse};

use super::declared::Program;

/// A finished turn as a reply: its last words, and its report if that is how it came.
pub(super) async fn reply(
    cx: &mut Context<'_>,
    program: &Program,
    attempt: &Attempt,
    mut finished: Finished,
) -> Result<(), EngineError> {
    finished.text = cx.secrets().redact(&finished.text).into_owned();
    let call = cx.call()?;
    let closing = call.closing_tool().filter(|_| !call.report_accepted);
    // One that cannot be read is a report all the same: whoever wrote it is told what is wrong with it.
    let written =
        cli::fenced_report(&finished.text).or_else(|| cli::unreadable_report(&finished.text).map(Value::from));
    let fenced = closing.and_then(|tool| Some((tool.name(), written?)));
    let mut content = Vec::new();
    if !finished.text.trim().is_empty() {
        content.push(json!({"type": "text", "text": finished.text}));
    }
    let mut tool_uses = Vec::new();
    if let Some((name, input)) = fenced {
        let id = format!("report-{}", attempt.turn);
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
    let cost = finished.cost_usd.or_else(|| program.cost(&finished.usage, finished.model.as_deref()));
    let responded = LlmResponded {
        call: attempt.call.clone(),
        turn: attempt.turn,
        message: cx.blobs().put(message.to_string().as_bytes())?,
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
    cx.record(responded).await
}
