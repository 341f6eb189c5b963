//! Why the model stopped, and what that asks of the engine.
//!
//! Role: the stop reasons and the table "stop reason to next move".
//! Not its role: doing the move, or counting how often it was made. The engine caps nudges,
//! continuations and raises.
//!
//! Invariant: tools run only on stop reason `tool_use`. A reply that contradicts itself (tool
//! calls under another reason, or `tool_use` without a call) halts instead of being guessed at.

use super::message::Block;
pub use crate::model::reply::ReplyMove;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The `stop_reason` of a reply. Written and read as its wire text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum StopReason {
    EndTurn,
    MaxTokens,
    StopSequence,
    ToolUse,
    PauseTurn,
    Refusal,
    ContextWindowExceeded,
    /// A reason this version does not know; `null` when the server gave none.
    Unknown(String),
}

impl StopReason {
    /// The wire text.
    pub fn as_str(&self) -> &str {
        match self {
            StopReason::EndTurn => "end_turn",
            StopReason::MaxTokens => "max_tokens",
            StopReason::StopSequence => "stop_sequence",
            StopReason::ToolUse => "tool_use",
            StopReason::PauseTurn => "pause_turn",
            StopReason::Refusal => "refusal",
            StopReason::ContextWindowExceeded => "model_context_window_exceeded",
            StopReason::Unknown(text) => text,
        }
    }
}

impl From<String> for StopReason {
    fn from(text: String) -> Self {
        match text.as_str() {
            "end_turn" => StopReason::EndTurn,
            "max_tokens" => StopReason::MaxTokens,
            "stop_sequence" => StopReason::StopSequence,
            "tool_use" => StopReason::ToolUse,
            "pause_turn" => StopReason::PauseTurn,
            "refusal" => StopReason::Refusal,
            "model_context_window_exceeded" => StopReason::ContextWindowExceeded,
            _ => StopReason::Unknown(text),
        }
    }
}

impl From<StopReason> for String {
    fn from(reason: StopReason) -> Self {
        reason.as_str().to_owned()
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The table. Spelled out per reason, so that a new one is a compile error here.
pub fn next_move(stop: &StopReason, blocks: &[Block]) -> ReplyMove {
    let calls_a_tool = blocks.iter().any(|b| matches!(b, Block::ToolUse { .. }));
    let says_something = blocks.iter().any(has_content);
    match stop {
        StopReason::ToolUse if calls_a_tool => ReplyMove::RunTools,
        StopReason::ToolUse => ReplyMove::Stop,
        StopReason::EndTurn | StopReason::StopSequence if calls_a_tool => ReplyMove::Stop,
        StopReason::EndTurn if !says_something => ReplyMove::Nudge,
        StopReason::EndTurn | StopReason::StopSequence => ReplyMove::Finish,
        StopReason::PauseTurn => ReplyMove::SendBack,
        // A cut call must not stay in the history; a reply that never got past thinking would be
        // cut in the same place again.
        StopReason::MaxTokens if calls_a_tool || !says_something => ReplyMove::RaiseMaxTokens,
        StopReason::MaxTokens => ReplyMove::Nudge,
        StopReason::ContextWindowExceeded => ReplyMove::StartFresh,
        StopReason::Refusal => ReplyMove::Refused,
        StopReason::Unknown(_) => ReplyMove::Stop,
    }
}

fn has_content(block: &Block) -> bool {
    match block {
        Block::Text { text } => !text.trim().is_empty(),
        Block::Thinking { .. } => false,
        Block::ToolUse { .. } | Block::Other { .. } => true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::ToolInput;
    use super::*;

    fn reasons() -> Vec<StopReason> {
        let all = vec![
            StopReason::EndTurn,
            StopReason::MaxTokens,
            StopReason::StopSequence,
            StopReason::ToolUse,
            StopReason::PauseTurn,
            StopReason::Refusal,
            StopReason::ContextWindowExceeded,
            StopReason::Unknown("compaction".into()),
        ];
        for reason in &all {
            // A new variant fails to compile here and so reminds of the list above.
            match reason {
                StopReason::EndTurn
                | StopReason::MaxTokens
                | StopReason::StopSequence
                | StopReason::ToolUse
                | StopReason::PauseTurn
                | StopReason::Refusal
                | StopReason::ContextWindowExceeded
                | StopReason::Unknown(_) => {}
            }
        }
        all
    }

    #[test]
    fn the_table_covers_every_reason_and_kind_of_content() {
        use ReplyMove::*;
        let text = Block::Text { text: "hello".into() };
        let blank = Block::Text { text: " \n".into() };
        let thinking = Block::Thinking { text: "hm".into() };
        let call = Block::ToolUse { id: "t".into(), name: "bash".into(), input: ToolInput::Malformed("{".into()) };
        let other = Block::Other { kind: "web_search_tool_result".into() };
        let contents = [
            vec![],
            vec![blank],
            vec![thinking.clone()],
            vec![text.clone()],
            vec![thinking, text.clone(), call.clone()],
            vec![call, text],
            vec![other],
        ];
        let wanted = [
            [Nudge, Nudge, Nudge, Finish, Stop, Stop, Finish],
            [RaiseMaxTokens, RaiseMaxTokens, RaiseMaxTokens, Nudge, RaiseMaxTokens, RaiseMaxTokens, Nudge],
            [Finish, Finish, Finish, Finish, Stop, Stop, Finish],
            [Stop, Stop, Stop, Stop, RunTools, RunTools, Stop],
            [SendBack; 7],
            [Refused; 7],
            [StartFresh; 7],
            [Stop; 7],
        ];
        for (reason, row) in reasons().iter().zip(wanted) {
            for (blocks, wanted) in contents.iter().zip(row) {
                assert_eq!(next_move(reason, blocks), wanted, "{reason} {blocks:?}");
            }
        }
    }

    #[test]
    fn tools_run_only_on_tool_use() {
        let call = [Block::ToolUse { id: "t".into(), name: "x".into(), input: ToolInput::Json(serde_json::json!({})) }];
        for reason in reasons() {
            assert_eq!(next_move(&reason, &call) == ReplyMove::RunTools, reason == StopReason::ToolUse);
        }
    }

    #[test]
    fn is_written_as_text_and_read_back() {
        for reason in reasons() {
            let text = serde_json::to_string(&reason).unwrap();
            assert_eq!(text, format!("\"{reason}\""));
            assert_eq!(serde_json::from_str::<StopReason>(&text).unwrap(), reason);
        }
    }
}
