//! What follows a failed attempt at a model call: try again, wait, ask a person, stop the run, or give the call up. Pure.
//!
//! Role: the policy. The engine tells the class of the failure and what it knew ([`FailureFacts`]); both are recorded, so
//! that `verify` decides it again. Not its role: the length of a wait ([`crate::model::failure`]), waiting it out.
//!
//! Invariants: what a server asks to be waited for is waited for while the run's time lasts; a spend limit is put before
//! a person where one is waited for, and never retried; what no retry can mend ends the call, not the run.

use crate::model::decision::{MAX_DECISIONS, Mode, Request};
use crate::model::failure::{FailureClass, FailureFacts, delay};

use super::call::CallState;
use super::event::{AfterFailure, BackpressureSeen, CallEvent, DecisionAsked, Event, LlmFailed, Signal};
use super::handover;
use super::run::RunState;

/// Decides what follows.
pub fn decide(state: &RunState, class: FailureClass, facts: &FailureFacts) -> AfterFailure {
    let (attempts, faults) = state.call.as_ref().map_or((0, 0), |call| (call.attempts, call.faults));
    // Waits that a server asked for do not use up the tries of what breaks down.
    let tries = match class {
        FailureClass::Crashed | FailureClass::Transient => faults,
        _ => attempts,
    };
    // Where no request was sent, another run was told to wait: so long, and no longer.
    let sent = state.call.as_ref().is_some_and(|call| call.request_open);
    let wait = if sent {
        delay(class, tries.saturating_add(1), facts.retry_after_ms, facts.jitter)
    } else {
        facts.retry_after_ms
    };
    let retry = wait.filter(|wait| *wait < facts.left_ms).map(|after_ms| AfterFailure::Retry { after_ms });
    let is_program = state.call.as_ref().is_some_and(CallState::is_program) && !state.began_before_parking();
    let gone = if is_program { Signal::AgentFailed } else { Signal::DownstreamUnavailable };
    match class {
        FailureClass::SpendLimit if may_ask(state) => AfterFailure::Ask,
        FailureClass::SpendLimit => AfterFailure::Stop(Signal::SpendLimit),
        FailureClass::Auth => AfterFailure::Stop(gone),
        FailureClass::RateLimited | FailureClass::Overloaded => retry.unwrap_or(AfterFailure::Stop(Signal::RateLimit)),
        FailureClass::Transient | FailureClass::Crashed => retry.unwrap_or(AfterFailure::Stop(gone)),
        FailureClass::TooLarge if state.call.as_ref().is_some_and(handover::may_go_on) => AfterFailure::HandOver,
        FailureClass::TooLarge | FailureClass::Fatal => AfterFailure::GiveUp,
        FailureClass::PrefixMismatch | FailureClass::Cancelled => AfterFailure::Retry { after_ms: 0 },
    }
}

/// Where people are waited for, one can raise the account's limit. One decision is open at a time.
fn may_ask(state: &RunState) -> bool {
    let operator = &state.operator;
    let free = operator.blocking().next().is_none() && operator.unsettled().is_none();
    free && operator.patience.mode == Mode::Wait && operator.decisions.len() < MAX_DECISIONS
}

/// Was it decided as the facts demand? Older journals have none.
pub(super) fn legal(state: &RunState, failed: &LlmFailed) -> Result<(), String> {
    let Some(facts) = &failed.facts else { return Ok(()) };
    let due = decide(state, failed.class, facts);
    if due.wait_millis() == failed.wait_millis {
        Ok(())
    } else {
        let said = failed.wait_millis.map_or_else(|| "no retry".to_owned(), |ms| format!("a wait of {ms} ms"));
        Err(format!("after a failure of class {} comes {}, not {said}", failed.class.name(), due.describe()))
    }
}

/// What is recorded right after an event, because it follows from it.
pub(super) fn follow_up(state: &RunState, event: &Event) -> Option<Event> {
    let Event::Call(CallEvent::LlmFailed(failed)) = event else { return None };
    match decide(state, failed.class, failed.facts.as_ref()?) {
        AfterFailure::Ask => Some(
            DecisionAsked {
                id: state.operator.next_id(),
                request: Request::SpendLimit { detail: failed.message.clone() },
                why: "the account's spend limit is reached; no retry helps before it is raised".to_owned(),
                asked_by: None,
            }
            .into(),
        ),
        // One stop is enough: what came first is the reason.
        AfterFailure::Stop(signal) if state.backpressure.is_none() => {
            Some(BackpressureSeen { signal, detail: failed.message.clone() }.into())
        }
        AfterFailure::Stop(_) | AfterFailure::Retry { .. } | AfterFailure::HandOver | AfterFailure::GiveUp => None,
    }
}

#[cfg(test)]
mod tests;
