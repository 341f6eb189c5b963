//! How a model is called: wire formats, streaming, retries, and the rehearsal server.
//!
//! Role: one attempt of one model call over real HTTP and SSE (Messages API, chat completions), the error classes and
//! waiting rules as pure functions, the table "stop reason to next move", and a scripted model
//! served on loopback for demos and tests.
//! Not its role: the conversation loop, journaling, waiting, running tools. The engine does that.
//!
//! Invariants:
//! * A [`Reply`] exists only when the server has said that it is whole; anything less is a [`CallError`].
//! * What the model said is kept as bytes and sent back as the same bytes.
//! * Text that comes from a server is bounded and stripped of control characters before it is
//!   shown in an error.

pub mod acp;
pub mod anthropic;
mod assemble;
pub mod cassette;
pub mod cli;
mod envelope;
pub mod error;
pub mod gate;
mod headers;
pub(crate) mod http;
pub mod message;
pub mod models;
pub mod openai;
pub mod price;
pub mod program;
pub mod rehearsal;
pub mod request;
pub mod retry;
pub mod sse;
pub mod stop;
mod stream;

#[cfg(test)]
mod sample_streams;
#[cfg(test)]
mod wire_tests;

pub use anthropic::{Anthropic, AnthropicConfig, AuthStyle};
pub use error::{CallError, ProgramFault};
pub use message::{Backend, Block, Delta, ModelLimits, Pending, RateLimits, RateWindow, Reply, ToolInput, Usage};
pub use openai::{OpenAi, OpenAiConfig};
pub use price::{CacheTtl, Price};
pub use request::{PrefixMismatch, Request, Thinking, ThinkingDisplay};
pub use retry::classify;
pub use stop::{ReplyMove, StopReason, next_move};
