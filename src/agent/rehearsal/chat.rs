//! A scripted turn as the chunks of a chat-completions stream.
//!
//! Role: write what a server of that format would send for a turn, and its error objects.
//! Not its role: sockets, timing, choosing the turn.
//!
//! Invariant: equal turns at equal positions give equal bytes; nothing is random or timed.

use super::play::{id, input_text, pieces, tokens};
use super::script::Turn;
use super::select::Position;
use serde_json::{Value, json};

/// One chunk as bytes.
fn event(data: &Value) -> Vec<u8> {
    format!("data: {data}\n\n").into_bytes()
}

pub fn error(kind: &str, code: Option<&str>, message: &str) -> Value {
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

pub fn error_event(kind: &str, message: &str) -> Vec<u8> {
    event(&error(kind, None, message))
}

/// The whole stream of a turn, chunk by chunk.
pub fn events(turn: &Turn, at: &Position, model: &str, request_bytes: usize) -> Vec<Vec<u8>> {
    let mut player = Player { at, model, events: vec![first(at, model)], said: 0 };
    for piece in pieces(turn.thinking.as_deref().unwrap_or_default()) {
        player.delta(json!({"reasoning_content": piece}), piece.len());
    }
    for piece in pieces(turn.text.as_deref().unwrap_or_default()) {
        player.delta(json!({"content": piece}), piece.len());
    }
    for (index, call) in turn.calls.iter().enumerate() {
        let function = json!({"name": call.tool, "arguments": ""});
        let start = json!({"index": index, "id": id("call", at, index), "type": "function", "function": function});
        player.delta(json!({"tool_calls": [start]}), call.tool.len());
        for piece in pieces(&input_text(&call.input)) {
            let more = json!({"index": index, "function": {"arguments": piece}});
            player.delta(json!({"tool_calls": [more]}), piece.len());
        }
    }
    player.end(turn, turn.usage.input.unwrap_or(tokens(request_bytes)));
    player.events
}

/// The first chunk, also used by faults that strike later.
pub fn first(at: &Position, model: &str) -> Vec<u8> {
    event(&chunk(at, model, json!({"role": "assistant", "content": ""}), Value::Null))
}

fn chunk(at: &Position, model: &str, delta: Value, finish: Value) -> Value {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    json!({"id": id("chatcmpl", at, 0), "object": "chat.completion.chunk", "created": 0, "model": model, "choices": [choice]})
}

struct Player<'a> {
    at: &'a Position,
    model: &'a str,
    events: Vec<Vec<u8>>,
    /// Bytes said so far, for the default output count.
    said: usize,
}

impl Player<'_> {
    fn delta(&mut self, delta: Value, bytes: usize) {
        self.said += bytes;
        self.events.push(event(&chunk(self.at, self.model, delta, Value::Null)));
    }

    fn end(&mut self, turn: &Turn, prompt: u64) {
        let default = if turn.calls.is_empty() { "end_turn" } else { "tool_use" };
        let reason = finish_reason(turn.stop.as_deref().unwrap_or(default));
        self.events.push(event(&chunk(self.at, self.model, json!({}), json!(reason))));
        let completion = turn.usage.output.unwrap_or(tokens(self.said));
        let mut last = chunk(self.at, self.model, Value::Null, Value::Null);
        last["choices"] = json!([]);
        last["usage"] = json!({
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt.saturating_add(completion),
        });
        self.events.push(event(&last));
        self.events.push(b"data: [DONE]\n\n".to_vec());
    }
}

/// A script names stop reasons as the Messages API does.
fn finish_reason(stop: &str) -> &str {
    match stop {
        "end_turn" | "stop_sequence" => "stop",
        "tool_use" => "tool_calls",
        "max_tokens" => "length",
        "refusal" => "content_filter",
        other => other,
    }
}
