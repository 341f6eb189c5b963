//! A scripted turn as the events of a Messages API stream.
//!
//! Role: write the events that the real service would send for a turn.
//! Not its role: sockets, timing, choosing the turn.
//!
//! Invariant: equal turns at equal positions give equal bytes; nothing is random or timed.

use super::script::{CallInput, Turn};
use super::select::Position;
use serde_json::{Value, json};

/// A long text is sent in at most about this many pieces.
const MAX_PIECES: usize = 200;
const MIN_PIECE_CHARS: usize = 24;

/// One event as bytes.
pub fn event(name: &str, data: &Value) -> Vec<u8> {
    format!("event: {name}\ndata: {data}\n\n").into_bytes()
}

pub fn error_event(kind: &str, message: &str, request_id: &str) -> Vec<u8> {
    event("error", &json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id}))
}

/// An identifier made of the position: the same one each time the turn is asked for.
pub fn id(prefix: &str, at: &Position, number: usize) -> String {
    let who = match &at.call {
        Some(call) => format!("{}_{}", call.purpose, call.subject.as_deref().unwrap_or_default()),
        None => at.role.clone(),
    };
    let role: String = who.chars().take(40).map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let iteration = at.iteration.map_or("x".to_owned(), |i| i.to_string());
    // Two calls of one role in one iteration are told apart.
    let nth = at.call.as_ref().map(|call| format!("{}_", call.nth)).unwrap_or_default();
    let part = if at.part > 0 { format!("p{}_", at.part) } else { String::new() };
    format!("{prefix}_{role}_{nth}{part}{iteration}_{}_{number}", at.turn)
}

/// The whole stream of a turn, event by event.
pub fn events(turn: &Turn, at: &Position, model: &str, request_bytes: usize) -> Vec<Vec<u8>> {
    let mut player = Player { events: Vec::new(), index: 0, said: 0 };
    let input = turn.usage.input.unwrap_or(tokens(request_bytes));
    let cached = (turn.usage.cache_write, turn.usage.cache_read);
    player.events.push(start_with(at, model, input, cached));
    player.events.push(event("ping", &json!({"type": "ping"})));
    if let Some(thinking) = &turn.thinking {
        player.thinking(thinking, &id("sig", at, 0));
    }
    if let Some(text) = &turn.text {
        player.text(text);
    }
    for block in &turn.blocks {
        player.start(block.clone());
        player.stop();
    }
    for (n, call) in turn.calls.iter().enumerate() {
        player.call(&id("toolu", at, n), &call.tool, &call.input);
    }
    let output = turn.usage.output.unwrap_or(tokens(player.said));
    let default = if turn.calls.is_empty() { "end_turn" } else { "tool_use" };
    player.end(turn.stop.as_deref().unwrap_or(default), output, turn.usage.searches);
    player.events
}

/// The first event, also used by faults that strike later.
pub fn message_start(at: &Position, model: &str, input_tokens: u64) -> Vec<u8> {
    start_with(at, model, input_tokens, (0, 0))
}

fn start_with(at: &Position, model: &str, input_tokens: u64, (cache_write, cache_read): (u64, u64)) -> Vec<u8> {
    let message = json!({
        "id": id("msg", at, 0), "type": "message", "role": "assistant", "model": model, "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": input_tokens, "cache_creation_input_tokens": cache_write, "cache_read_input_tokens": cache_read, "output_tokens": 1},
    });
    event("message_start", &json!({"type": "message_start", "message": message}))
}

pub fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}

struct Player {
    events: Vec<Vec<u8>>,
    index: u64,
    /// Bytes said so far, for the default output count.
    said: usize,
}

impl Player {
    fn thinking(&mut self, text: &str, signature: &str) {
        self.start(json!({"type": "thinking", "thinking": "", "signature": ""}));
        for piece in pieces(text) {
            self.delta(json!({"type": "thinking_delta", "thinking": piece}), piece.len());
        }
        self.delta(json!({"type": "signature_delta", "signature": signature}), 0);
        self.stop();
    }

    fn text(&mut self, text: &str) {
        self.start(json!({"type": "text", "text": ""}));
        for piece in pieces(text) {
            self.delta(json!({"type": "text_delta", "text": piece}), piece.len());
        }
        self.stop();
    }

    fn call(&mut self, id: &str, tool: &str, input: &CallInput) {
        self.start(json!({"type": "tool_use", "id": id, "name": tool, "input": {}}));
        for piece in pieces(&input_text(input)) {
            self.delta(json!({"type": "input_json_delta", "partial_json": piece}), piece.len());
        }
        self.said += tool.len();
        self.stop();
    }

    fn start(&mut self, block: Value) {
        let data = json!({"type": "content_block_start", "index": self.index, "content_block": block});
        self.events.push(event("content_block_start", &data));
    }

    fn delta(&mut self, delta: Value, bytes: usize) {
        self.said += bytes;
        let data = json!({"type": "content_block_delta", "index": self.index, "delta": delta});
        self.events.push(event("content_block_delta", &data));
    }

    fn stop(&mut self) {
        let data = json!({"type": "content_block_stop", "index": self.index});
        self.events.push(event("content_block_stop", &data));
        self.index += 1;
    }

    fn end(&mut self, reason: &str, output: u64, searches: u64) {
        let mut delta = json!({"stop_reason": reason, "stop_sequence": null});
        if reason == "refusal" {
            delta["stop_details"] = json!({"type": "refusal", "category": null, "explanation": "scripted refusal"});
        }
        let mut usage = json!({"output_tokens": output});
        if searches > 0 {
            usage["server_tool_use"] = json!({"web_search_requests": searches, "web_fetch_requests": 0});
        }
        let data = json!({"type": "message_delta", "delta": delta, "usage": usage});
        self.events.push(event("message_delta", &data));
        self.events.push(event("message_stop", &json!({"type": "message_stop"})));
    }
}

/// What is streamed as the input of a call.
pub fn input_text(input: &CallInput) -> String {
    match input {
        CallInput::Json(value) => value.to_string(),
        CallInput::Raw(text) => text.clone(),
    }
}

/// Cuts a text into pieces of equal length, between characters.
pub fn pieces(text: &str) -> Vec<&str> {
    let size = text.chars().count().div_ceil(MAX_PIECES).max(MIN_PIECE_CHARS);
    let mut rest = text;
    let mut out = Vec::new();
    while !rest.is_empty() {
        let end = rest.char_indices().nth(size).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        out.push(piece);
        rest = after;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::call_place::CallPlace;
    use crate::model::purpose::Purpose;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_join_to_the_text(text in ".{0,400}") {
            prop_assert_eq!(pieces(&text).concat(), text);
        }
    }

    #[test]
    fn a_huge_text_is_a_bounded_number_of_pieces() {
        assert!(pieces(&"é".repeat(1_000_000)).len() <= MAX_PIECES);
    }

    #[test]
    fn ids_are_stable_and_fit_the_api() {
        let at = Position { role: "scout é/2".into(), iteration: Some(3), turn: 1, ..Position::default() };
        assert_eq!(id("toolu", &at, 0), "toolu_scout___2_3_1_0");
        let at = Position { role: "a".into(), ..Position::default() };
        assert_eq!(id("msg", &at, 2), "msg_a_x_0_2");
        let call = CallPlace { purpose: Purpose::Execute, subject: Some("T1.2".into()), nth: 3 };
        let at = Position { call: Some(call), iteration: Some(0), ..at };
        assert_eq!(id("toolu", &at, 0), "toolu_execute_T1_2_3_0_0_0");
        let marked = super::super::inject::marked(&at);
        assert!(id("toolu", &marked, 0).starts_with(super::super::select::INJECTED), "a fault stays known as one");
    }
}
