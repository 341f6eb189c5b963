//! One conversation of a call: what it has used, and what of it is remembered for the next one.
//!
//! Not here: when it ends (`machine::handover`). Invariant: what is remembered is bounded.

use crate::machine::event::HandoverReason;
use crate::model::digest::Digest;

/// So many of the latest tool calls are remembered for a handover.
const RECENT: usize = 12;
/// So much of what it was called with.
const MAX_SUMMARY: usize = 160;
/// What one conversation of a call has used; a handover begins the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Talk {
    /// Replies so far, also those that were thrown away.
    pub replies: u32,
    pub tool_calls: u32,
    /// The iteration's clock when it began.
    pub began_ms: u64,
    /// Tokens that it holds, as the server counted them last, and about as many as were added since.
    pub context: u64,
    /// A summary was asked for, since it ends for this reason.
    pub asked: Option<HandoverReason>,
    /// Something was said to that.
    pub answered: bool,
    /// The server paused in the middle of a turn of its own: nothing of ours may stand between.
    pub paused: bool,
}

/// A tool call that ended, or a program's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recent {
    pub id: String,
    pub name: String,
    pub summary: String,
    /// How it ended, once it has.
    pub ended: Option<String>,
}

/// What a call that was cut left for the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOver {
    /// The handover, as a blob.
    pub text: Digest,
    pub iteration: u32,
}

/// Keeps a call, and lets go of the oldest one.
pub(super) fn remember(recent: &mut Vec<Recent>, id: &str, name: &str, summary: &str) {
    if recent.len() >= RECENT {
        recent.remove(0);
    }
    let summary = summary.chars().take(MAX_SUMMARY).collect();
    recent.push(Recent { id: id.to_owned(), name: name.to_owned(), summary, ended: None });
}
