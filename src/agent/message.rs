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
pub use super::stop::{ReplyMove, StopReason, next_move};
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
    /// How many of those are kept for an hour; `None`: the server does not say.
    pub cache_creation_1h_input_tokens: Option<u64>,
    pub cache_read_input_tokens: u64,
    /// Includes thinking.
    pub output_tokens: u64,
    pub thinking_tokens: u64,
    /// Searches that the server ran.
    pub web_search_requests: u64,
}

impl Usage {
    /// All tokens of the prompt, cached or not.
    pub fn prompt(&self) -> u64 {
        self.input_tokens.saturating_add(self.cache_creation_input_tokens).saturating_add(self.cache_read_input_tokens)
    }

    /// All tokens of the call. Thinking is part of the output and not counted twice.
    pub fn total(&self) -> u64 {
        self.prompt().saturating_add(self.output_tokens)
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
    ToolStarted {
        name: &'a str,
    },
    ToolInput(&'a str),
    /// What the server has counted so far: owed even if the reply never ends. `last`: it also says why it stops.
    Usage {
        usage: Usage,
        last: bool,
    },
    /// What the server says is left of its rate limits; comes before the first piece.
    Limits(&'a RateLimits),
}

/// What a server says about one of its models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelLimits {
    pub max_input_tokens: Option<u64>,
    pub max_tokens: Option<u32>,
}

/// An answer that is still to come.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Something that answers a request: one attempt, no retries.
pub trait Backend: Send + Sync {
    /// Sends `request`, shows pieces through `on_delta`, and gives the whole reply or an error.
    /// Dropping the future ends the call.
    fn complete<'a>(
        &'a self,
        request: &'a Request,
        on_delta: &'a mut (dyn FnMut(Delta<'_>) + Send),
    ) -> Pin<Box<dyn Future<Output = Result<Reply, CallError>> + Send + 'a>>;

    /// Tokens of the request's input as the server counts them; `None`: it cannot say.
    fn count_tokens<'a>(&'a self, _request: &'a Request) -> Pending<'a, Option<u64>> {
        Box::pin(async { None })
    }

    /// What the server knows of a model; `None`: it cannot say.
    fn model_limits<'a>(&'a self, _model: &'a str) -> Pending<'a, Option<ModelLimits>> {
        Box::pin(async { None })
    }
}

/// Does this assistant message wait for a result of the server's own tools? Then only tool results may follow.
pub fn has_open_server_tool(message: &str) -> bool {
    #[derive(Deserialize)]
    struct Content {
        content: Vec<Part>,
    }
    #[derive(Deserialize)]
    struct Part {
        r#type: String,
        id: Option<String>,
        tool_use_id: Option<String>,
    }
    let Ok(Content { content }) = serde_json::from_str::<Content>(message) else { return false };
    let answered =
        |id: &Option<String>| content.iter().any(|part| part.tool_use_id.is_some() && part.tool_use_id == *id);
    content.iter().any(|part| part.r#type == "server_tool_use" && !answered(&part.id))
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
            ..Usage::default()
        };
        assert_eq!(usage.total(), 4321);
        assert_eq!(Usage { input_tokens: u64::MAX, output_tokens: 1, ..usage }.total(), u64::MAX);
    }

    #[test]
    fn a_server_tool_is_open_until_its_result_is_there() {
        let open = r#"{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{}},{"type":"tool_use","id":"t1","name":"bash","input":{}}]}"#;
        assert!(has_open_server_tool(open));
        let closed = r#"{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}]}"#;
        assert!(!has_open_server_tool(closed));
        assert!(!has_open_server_tool(r#"{"role":"assistant","content":"words"}"#));
    }
}
