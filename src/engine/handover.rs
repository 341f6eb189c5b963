//! What a conversation that ends leaves to the next one: asking for a summary, and composing the handover.
//!
//! Role: the texts, from what was folded, stored and found in the workspace. Not its role: when a conversation ends
//! (`machine::handover`).
//!
//! Invariants: what agents and tools said stands in it as JSON strings, so that it cannot pass for words of ours; it is
//! bounded; whoever is killed while it is composed composes it again.

use serde_json::{Value, json};

use crate::agent::message::has_open_server_tool;
use crate::journal;
use crate::machine::call::CallTodo;
use crate::machine::event::{AgentEnd, AgentFinished, ConversationExtended, ConversationHandedOver};
use crate::machine::event::{ExtendedBecause, HandoverReason, Moved};
use crate::machine::handover;
use crate::model::digest::Digest;

use super::calls;
use super::context::Context;
use super::error::EngineError;
use super::excerpt::cut_in_the_middle;
use super::git;
use super::trees::Trees;

/// The most that is handed on of a summary, of the last words, and of what was changed.
const MAX_SUMMARY: usize = 12_000;
const MAX_WORDS: usize = 3_000;
const MAX_PATCH: usize = 12_000;
/// Changed files that are named.
const MAX_FILES: usize = 100;

const ASK: &str = "This conversation ends here, and you go on in a fresh one that knows nothing of it but what you write \
now. If your part is finished, hand in your report as usual. Otherwise call no tool and answer with a summary: what is \
done; what is still open, and what you were about to do next; which files you touched and why; what you tried that \
failed, and how it failed.";

/// Asks for a summary, together with the results that are due.
pub(super) async fn ask(
    cx: &mut Context<'_>,
    trees: &mut Trees,
    reason: HandoverReason,
    head: Option<&str>,
) -> Result<(), EngineError> {
    let call = cx.call()?;
    let key = call.started.call.clone();
    let text = format!("{}{}: {ASK}", reason.describe()[..1].to_uppercase(), &reason.describe()[1..]);
    let reply = call.reply.as_ref().map(|reply| cx.blobs().get(&reply.message)).transpose()?;
    // While the server's own tool is open, nothing of ours may stand beside the results.
    if reply.is_some_and(|message| has_open_server_tool(&String::from_utf8_lossy(&message))) {
        return match handover::after(call, reason) {
            CallTodo::End(end) => self::end(cx, trees, end, head).await,
            _ => hand_over(cx, trees, reason).await,
        };
    }
    let mut content = calls::results(cx)?;
    let why = if content.is_empty() { ExtendedBecause::Handover } else { ExtendedBecause::ToolResults };
    content.push(json!({"type": "text", "text": text}));
    let message = json!({"role": "user", "content": content}).to_string();
    let message = cx.blobs().put(message.as_bytes())?;
    cx.record(ConversationExtended { call: key, message, why, handover: Some(reason) }).await
}

/// Begins the fresh conversation: what the call was told first, and the handover.
pub(super) async fn hand_over(
    cx: &mut Context<'_>,
    trees: &mut Trees,
    reason: HandoverReason,
) -> Result<(), EngineError> {
    let Some(changed) = changed(cx, trees).await? else { return Ok(()) };
    let call = cx.call()?;
    let (key, continuation) = (call.started.call.clone(), call.handovers.saturating_add(1));
    let mut handed = facts(cx, reason.describe(), changed)?;
    handed["continuation"] = continuation.into();
    let first: Value = serde_json::from_slice(&cx.blobs().get(&call.started.message)?)
        .map_err(|e| EngineError::Internal(format!("the first message cannot be read: {e}")))?;
    let first = first["content"].as_str().unwrap_or_default();
    let message = json!({"role": "user", "content": format!("{first}\n{}", section(&handed))});
    let message = cx.blobs().put(message.to_string().as_bytes())?;
    journal::failpoint("handover");
    cx.record(ConversationHandedOver { call: key, message, reason }).await
}

/// The end of the call. Where it was cut, the next call for the same work is told how far it came.
/// `head`: where the repository was when it began.
pub(super) async fn end(
    cx: &mut Context<'_>,
    trees: &mut Trees,
    end: AgentEnd,
    head: Option<&str>,
) -> Result<(), EngineError> {
    let cut = match &end {
        AgentEnd::Cut(why) => Some(why.clone()),
        AgentEnd::Failed { class, message } if matches!(class.as_str(), "context_full" | "too_large") => {
            Some(message.clone())
        }
        _ => None,
    };
    // What was only begun leaves nothing to go on with.
    let handover = match cut.filter(|_| cx.state().call.as_ref().is_some_and(|call| call.turn > 0)) {
        Some(why) => {
            let Some(changed) = changed(cx, trees).await? else { return Ok(()) };
            let text = section(&facts(cx, &why, changed)?);
            Some(cx.blobs().put(text.as_bytes())?)
        }
        None => None,
    };
    let now = || git::head(cx.workspace()).unwrap_or_else(|| "no repository at all".to_owned());
    let moved = head.map(|from| Moved { from: from.to_owned(), to: now() }).filter(|moved| moved.from != moved.to);
    let call = cx.call()?;
    cx.record(AgentFinished { call: call.started.call.clone(), role: call.role(), end, handover, moved }).await
}

/// What an earlier call left, for the first message of the next one.
pub(super) fn left_over(cx: &Context<'_>, text: &Digest) -> Result<String, EngineError> {
    Ok(String::from_utf8_lossy(&cx.blobs().get(text)?).into_owned())
}

fn section(handed: &Value) -> String {
    format!(
        "HANDOVER\nAn earlier conversation began this same work and was ended before it was finished. Go on where it \
         stopped; do not begin anew. What follows was true then: look at a file before you change it.\n{handed:#}\n"
    )
}

/// What is known of the conversation that ends.
fn facts(cx: &Context<'_>, why: &str, changed: Value) -> Result<Value, EngineError> {
    let call = cx.call()?;
    let mut words = said(cx, &call.messages)?;
    let summary = if call.talk.answered { words.pop() } else { None };
    let last: Vec<Value> = call
        .recent
        .iter()
        .map(|recent| {
            let ended = recent.ended.as_deref().unwrap_or("not known");
            json!(format!("{} {}: {ended}", recent.name, recent.summary))
        })
        .collect();
    let unfinished: Vec<&str> = call.tools.iter().map(|tool| tool.tool_use.name.as_str()).collect();
    let mut handed = json!({
        "why_it_ended": why,
        "last_words": words.last().map(|text| cut_in_the_middle(text, MAX_WORDS)),
        "last_tool_calls": last,
        "changed_since_the_iteration_began": changed,
    });
    if let Some(summary) = summary {
        handed["its_own_summary"] = cut_in_the_middle(&summary, MAX_SUMMARY).into();
    }
    if !unfinished.is_empty() {
        handed["asked_for_when_it_ended"] = json!(unfinished);
    }
    Ok(handed)
}

/// The last texts that the agent wrote, the newest last.
fn said(cx: &Context<'_>, messages: &[Digest]) -> Result<Vec<String>, EngineError> {
    let mut found = Vec::new();
    for digest in messages.iter().rev() {
        let message: Value = serde_json::from_slice(&cx.blobs().get(digest)?).unwrap_or_default();
        if message["role"] != "assistant" {
            continue;
        }
        let text = calls::words_of(&message["content"]);
        if !text.trim().is_empty() {
            found.push(text);
        }
        if found.len() == 2 {
            break;
        }
    }
    found.reverse();
    Ok(found)
}

/// The files that differ from how the iteration found them. `None`: a stop came first.
async fn changed(cx: &mut Context<'_>, trees: &mut Trees) -> Result<Option<Value>, EngineError> {
    if !cx.call()?.role().may_write() || cx.state().tree.is_none() {
        return Ok(Some(json!([])));
    }
    let Some((changes, patch)) = trees.changed(cx).await? else { return Ok(None) };
    let named: Vec<String> =
        changes.iter().take(MAX_FILES).map(|change| format!("{} {}", change.kind.word(), change.path)).collect();
    let left = changes.len().saturating_sub(named.len());
    Ok(Some(json!({ "files": named, "files_not_named": left, "diff": cut_in_the_middle(&patch, MAX_PATCH) })))
}
