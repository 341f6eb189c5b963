//! The two wire formats that the rehearsal server speaks.
//!
//! Role: which format a request is in, and the bytes of each part of an answer in it.
//! Not its role: sockets, the script.
//!
//! Invariant: the same script gives the same words, calls and faults in both.

use super::script::Turn;
use super::select::Position;
use super::{chat, play};
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mouth {
    /// `/v1/messages`
    Messages,
    /// `/v1/chat/completions`
    Chat,
}

impl Mouth {
    pub fn of(method: &str, path: &str) -> Option<Self> {
        match (method, path.split('?').next()?) {
            ("POST", "/v1/messages") => Some(Mouth::Messages),
            ("POST", "/v1/chat/completions") => Some(Mouth::Chat),
            _ => None,
        }
    }

    pub fn events(self, turn: &Turn, at: &Position, model: &str, request_bytes: usize) -> Vec<Vec<u8>> {
        match self {
            Mouth::Messages => play::events(turn, at, model, request_bytes),
            Mouth::Chat => chat::events(turn, at, model, request_bytes),
        }
    }

    /// The first event, also used by faults that strike later.
    pub fn first(self, at: &Position, model: &str) -> Vec<u8> {
        match self {
            Mouth::Messages => play::message_start(at, model, 1),
            Mouth::Chat => chat::first(at, model),
        }
    }

    /// Is this event a piece of the reply, after which the script may pause?
    pub fn is_piece(self, event: &[u8]) -> bool {
        match self {
            Mouth::Messages => event.starts_with(b"event: content_block_delta"),
            Mouth::Chat => !event.starts_with(b"data: [DONE]"),
        }
    }

    pub fn error(self, kind: &str, code: Option<&str>, message: &str) -> Value {
        match self {
            Mouth::Messages => {
                let mut body = json!({"type": "error", "error": {"type": kind, "message": message}});
                if let Some(code) = code {
                    body["error"]["details"] = json!({"error_code": code});
                }
                body
            }
            Mouth::Chat => chat::error(kind, code, message),
        }
    }

    /// An error inside a stream that has begun.
    pub fn error_event(self, kind: &str, message: &str, request_id: &str) -> Vec<u8> {
        match self {
            Mouth::Messages => play::error_event(kind, message, request_id),
            Mouth::Chat => chat::error_event(kind, message),
        }
    }

    pub fn request_id_header(self) -> &'static str {
        match self {
            Mouth::Messages => "request-id",
            Mouth::Chat => "x-request-id",
        }
    }

    pub fn limit_headers(self) -> Vec<(&'static str, String)> {
        let [limit, remaining, reset] = match self {
            Mouth::Messages => [
                ("anthropic-ratelimit-requests-limit", "1000"),
                ("anthropic-ratelimit-requests-remaining", "999"),
                ("anthropic-ratelimit-requests-reset", "2000-01-01T00:00:00Z"),
            ],
            Mouth::Chat => [
                ("x-ratelimit-limit-requests", "1000"),
                ("x-ratelimit-remaining-requests", "999"),
                ("x-ratelimit-reset-requests", "60ms"),
            ],
        };
        [limit, remaining, reset].map(|(name, value)| (name, value.to_owned())).to_vec()
    }
}
