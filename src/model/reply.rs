//! What a finished reply of a model asks for next. Decided once, from the stop reason; journaled with the reply.

use serde::{Deserialize, Serialize};

/// What to do after a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyMove {
    /// The turn is over.
    Finish,
    /// Run every client tool call; answer all of them in one user message.
    RunTools,
    /// Append the reply unchanged and send again.
    SendBack,
    /// Throw the reply away and ask once more with a larger `max_tokens`.
    RaiseMaxTokens,
    /// Add a user message that asks to go on. (A reply without content is not appended first.)
    Nudge,
    /// The conversation is full: compact, or begin a fresh one.
    StartFresh,
    /// The model refused: throw the reply away, count it, never loop.
    Refused,
    /// Nothing safe can be done by itself: journal and pause.
    Stop,
}
