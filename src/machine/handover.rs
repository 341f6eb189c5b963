//! When the conversation of a call ends before its work does, and what follows: a summary is asked for, then a fresh
//! conversation begins with a handover, or the call's part is over. Pure.
//!
//! Role: hold the call's own limits ([`CallBounds`](crate::model::call_limits::CallBounds)) against what was folded. Not
//! its role: the limits of the iteration and of the run, which cut what is in flight; what a handover says (the engine).
//!
//! Invariants: looked at only between two turns, so that no tool call is left without its result; a conversation with no
//! reply in it is never handed over, and a call has a bounded number of conversations: no road leads round in a circle.
//! A call that was begun without bounds goes on as it did when it was begun.

use super::call::{CallState, CallTodo};
use super::event::{AfterFailure, AgentEnd, HandoverReason};
use super::run::RunState;
use crate::model::budget::iteration_nearly_used;
use crate::model::reply::ReplyMove;

/// From this share of the model's window on a conversation is handed over.
const MOST: (u64, u64) = (80, 100);
/// Beyond this one there is no room left to ask for a summary.
const NO_ROOM: (u64, u64) = (95, 100);

/// What comes in place of the next thing that the conversation by itself would do.
pub(super) fn instead(state: &RunState, call: &CallState, todo: CallTodo) -> CallTodo {
    if call.started.bounds.is_none() {
        return todo;
    }
    if is_full(call) {
        return if may_go_on(call) { CallTodo::HandOver(HandoverReason::ContextFull) } else { todo };
    }
    let at_rest = matches!(todo, CallTodo::Ask | CallTodo::ReturnResults | CallTodo::Remind(_));
    if let Some(reason) = call.talk.asked {
        // Words without a tool are the summary that was asked for, and no end of the work.
        let said = match &todo {
            CallTodo::End(AgentEnd::Reported | AgentEnd::NoReport) => !call.report_accepted,
            CallTodo::End(AgentEnd::BadReport { .. }) => !call.refused.is_over(),
            _ => false,
        };
        return if call.talk.answered && (at_rest || said) { after(call, reason) } else { todo };
    }
    match due(state, call).filter(|_| at_rest && !call.talk.paused) {
        None => todo,
        Some(reason) if has_room(call) => CallTodo::AskHandover(reason),
        Some(reason) => after(call, reason),
    }
}

/// What follows once the conversation has ended for a reason.
pub fn after(call: &CallState, reason: HandoverReason) -> CallTodo {
    if reason == HandoverReason::Iteration {
        CallTodo::End(AgentEnd::Cut(reason.describe().to_owned()))
    } else if may_go_on(call) {
        CallTodo::HandOver(reason)
    } else {
        CallTodo::End(AgentEnd::Cut(format!("{}, and no further conversation is allowed", reason.describe())))
    }
}

/// May a fresh conversation take over?
pub(super) fn may_go_on(call: &CallState) -> bool {
    call.talk.replies > 0 && call.started.bounds.is_some_and(|bounds| call.handovers < bounds.continuations)
}

/// May the conversation be handed over here, for this reason? The error says why not.
pub(super) fn legal(state: &RunState, call: &CallState, reason: HandoverReason) -> Result<(), String> {
    let wanted = match reason {
        HandoverReason::Iteration => false,
        HandoverReason::ContextFull => is_full(call),
        _ => call.talk.asked == Some(reason) || due(state, call) == Some(reason),
    };
    if wanted && may_go_on(call) { Ok(()) } else { Err("this conversation is not to be handed over".to_owned()) }
}

/// Has the server said that the conversation no longer fits?
fn is_full(call: &CallState) -> bool {
    let stopped = call.reply.as_ref().is_some_and(|reply| reply.next == ReplyMove::StartFresh);
    stopped || call.after_failure == Some(AfterFailure::HandOver)
}

/// The limit of this conversation that is reached.
fn due(state: &RunState, call: &CallState) -> Option<HandoverReason> {
    let (bounds, talk) = (call.started.bounds?, &call.talk);
    if talk.replies == 0 {
        return None;
    }
    if state.playbook().keeps_a_reserve(state) && iteration_nearly_used(&state.limits, &state.spent) {
        return Some(HandoverReason::Iteration);
    }
    let seconds = state.spent.iteration_millis.saturating_sub(talk.began_ms) / 1_000;
    if fills(call, MOST) {
        Some(HandoverReason::Context)
    } else if talk.replies >= bounds.turns {
        Some(HandoverReason::Turns)
    } else if talk.tool_calls >= bounds.tool_calls {
        Some(HandoverReason::ToolCalls)
    } else if seconds >= bounds.seconds {
        Some(HandoverReason::Seconds)
    } else {
        None
    }
}

fn has_room(call: &CallState) -> bool {
    !fills(call, NO_ROOM)
}

/// Does the conversation fill this share of what the model can hold?
fn fills(call: &CallState, (share, of): (u64, u64)) -> bool {
    let window = call.started.bounds.and_then(|bounds| bounds.window);
    window.is_some_and(|window| call.talk.context.saturating_mul(of) >= window.saturating_mul(share))
}

#[cfg(test)]
mod tests;
