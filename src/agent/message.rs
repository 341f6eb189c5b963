//! The reply, as the engine sees it, and the trait every model backend has.
//!
//! Role: the nouns of one answered call.
//! Not its role: how a reply is read from the wire ([`super::anthropic`]), what to do with it
//! ([`super::stop`]).
//!
//! Invariants: [`Reply::message`] is the only form that is stored and sent back; [`Reply::blocks`]
//! is a view for deciding and showing. Tool ids are given as received: the engine refuses
//! duplicates.

use super::error::CallError;
pub use super::request::{PrefixMismatch, Request, Thinking, ThinkingDisplay};
pub use super::stop::{NextMove, StopReason, next_move};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::future::Future;
use std::pin::Pin;

/// One content block, parsed.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    Text {
        text: String,
    },
    /// Empty when the server keeps thinking to itself.
    Thinking {
        text: String,
    },
    /// A call of a tool of ours.
    ToolUse {
        id: String,
        name: String,
        input: ToolInput,
    },
    /// A block we only carry: server tools, their results, kinds to come.
    Other {
        kind: String,
    },
}

/// What the model wrote as tool input.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolInput {
    /// JSON of any type; the engine validates it against the tool's schema.
    Json(serde_json::Value),
    /// Not JSON, or cut: the text as it came.
    Malformed(String),
}

/// A complete reply.
#[derive(Debug, Clone)]
pub struct Reply {
    /// `{"role":"assistant","content":[…]}`, assembled once, stored and sent back verbatim.
    pub message: Box<RawValue>,
    pub blocks: Vec<Block>,
    pub stop: StopReason,
    /// Why the model refused, in short, when the server says it.
    pub stop_details: Option<String>,
    pub usage: Usage,
    pub request_id: Option<String>,
    pub limits: RateLimits,
}

/// Tokens of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input after the last cache breakpoint only.
    pub input_tokens: u64,
    pub cache_creation_input_tokens: u64,
    pub cache_read_input_tokens: u64,
    /// Includes thinking.
    pub output_tokens: u64,
    pub thinking_tokens: u64,
}

impl Usage {
    /// All tokens of the call. Thinking is part of the output and not counted twice.
    pub fn total(&self) -> u64 {
        self.input_tokens
            .saturating_add(self.cache_creation_input_tokens)
            .saturating_add(self.cache_read_input_tokens)
            .saturating_add(self.output_tokens)
    }
}

/// What the server said about its rate limits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RateLimits {
    pub requests: RateWindow,
    pub tokens: RateWindow,
    pub input_tokens: RateWindow,
    pub output_tokens: RateWindow,
}

/// One limit. A part the server did not send, or sent unreadable, is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateWindow {
    pub limit: Option<u64>,
    pub remaining: Option<u64>,
    pub reset: Option<jiff::Timestamp>,
}

/// A piece of a reply that is still arriving. For showing only: the attempt may yet be void.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delta<'a> {
    Text(&'a str),
    Thinking(&'a str),
    ToolStarted { name: &'a str },
    ToolInput(&'a str),
}

/// Something that answers a request: one attempt, no retries.
pub trait Backend: Send + Sync {
    /// Sends `request`, shows pieces through `on_delta`, and gives the whole reply or an error.
    /// Dropping the future ends the call.
    fn complete<'a>(
        &'a self,
        request: &'a Request,
        on_delta: &'a mut (dyn FnMut(Delta<'_>) + Send),
    ) -> Pin<Box<dyn Future<Output = Result<Reply, CallError>> + Send + 'a>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_counts_thinking_once_and_never_overflows() {
        let usage = Usage {
            input_tokens: 1,
            cache_creation_input_tokens: 20,
            cache_read_input_tokens: 300,
            output_tokens: 4000,
            thinking_tokens: 3000,
        };
        assert_eq!(usage.total(), 4321);
        assert_eq!(Usage { input_tokens: u64::MAX, output_tokens: 1, ..usage }.total(), u64::MAX);
    }
}
