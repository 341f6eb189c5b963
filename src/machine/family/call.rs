//! Events of an agent call: what it costs, what it counts, what it hands in.

use crate::machine::call::{CallState, CallSummary, LeftOver, Refused, ToolPhase};
use crate::machine::event::AfterFailure;
use crate::machine::event::{AgentFinished, AgentStarted, CallEvent, Report, ReportAccepted, Usage};
use crate::machine::failure;
use crate::machine::handover;
use crate::machine::ledger::{Row, add_cost};
use crate::machine::run::RunState;
use crate::machine::state::State;
use crate::model::act::Act;
use crate::model::decimal::Exact;
use crate::model::stop::ForbiddenState;

/// May this event follow? The error says why not.
pub(in crate::machine) fn legal(state: &RunState, event: &CallEvent) -> Result<(), String> {
    use State::{BudgetCheck, CheckHalting, DreamGoal, SpawnSubagent};
    let states = [SpawnSubagent, CheckHalting, BudgetCheck, DreamGoal];
    let first_too = state.playbook().has_steps();
    state.only_in(event.kind(), if first_too { &states } else { &states[..3] })?;
    let call = || state.call.as_ref().ok_or("no agent is running");
    match event {
        CallEvent::AgentStarted(_) if state.call.is_some() => {
            Err(format!("{}: another agent is still running", ForbiddenState::StackedSpeculativeIterations))
        }
        // Before the first iteration only an open step has agents.
        CallEvent::AgentStarted(_) if state.current.is_none() && state.open_step().is_none() => {
            Err("no iteration is running".to_owned())
        }
        CallEvent::AgentStarted(_) => Ok(()),
        CallEvent::LlmRequested(_)
        | CallEvent::LlmResponded(_)
        | CallEvent::ConversationExtended(_)
        | CallEvent::ToolIntended(_)
        | CallEvent::ToolFinished(_) => Ok(call().map(|_| ())?),
        CallEvent::AgentFinished(_) => match call()?.after_failure {
            Some(AfterFailure::Stop(_)) if state.backpressure.is_none() => {
                Err("its failed call stops the run first".to_owned())
            }
            _ => Ok(()),
        },
        CallEvent::LlmFailed(failed) => call().map_err(str::to_owned).and_then(|_| failure::legal(state, failed)),
        CallEvent::ConversationHandedOver(handed) => {
            let call = call()?;
            let busy =
                call.request_open || call.tools.iter().any(|tool| matches!(tool.phase, ToolPhase::Intended { .. }));
            if busy {
                Err("something of this conversation is still open".to_owned())
            } else {
                handover::legal(state, call, handed.reason)
            }
        }
        CallEvent::ReportAccepted(accepted) => legal_report(state, call()?, accepted),
        CallEvent::AgentActed(_) | CallEvent::AgentCalled(_) => {
            let open = state.call.as_ref();
            if open.is_some_and(|call| call.request_open) { Ok(()) } else { Err("no program is at work".to_owned()) }
        }
    }
}

/// A report is taken only from whoever may hand it in, and only if the guardrails admit it.
fn legal_report(state: &RunState, call: &CallState, accepted: &ReportAccepted) -> Result<(), String> {
    if let Report::Value(report) = &accepted.report
        && !call.purpose().tools().contains(&report.tool())
    {
        return Err(format!("a call for {} does not hand in {}", call.purpose(), report.tool()));
    }
    state.playbook().admit(state, &accepted.report)
}

/// Folds an event that was found legal.
pub(in crate::machine) fn apply(state: &mut RunState, event: &CallEvent, ts: &str) -> Result<(), &'static str> {
    match event {
        CallEvent::AgentStarted(started) => {
            state.call = Some(opened(state, started));
            call(state)?.talk.began_ms = state.spent.iteration_millis;
        }
        CallEvent::ConversationHandedOver(_) => {
            call(state)?.apply(event);
            call(state)?.talk.began_ms = state.spent.iteration_millis;
        }
        CallEvent::LlmRequested(requested) => {
            let row = row(state)?;
            state.ledger.requested(row, requested);
            state.spent.requests += 1;
            if let Some(iteration) = &mut state.current {
                iteration.spend.requests += 1;
            }
            let call = call(state)?;
            call.apply(event);
            call.wait = None;
        }
        CallEvent::LlmResponded(reply) => {
            let row = row(state)?;
            state.ledger.responded(row, reply);
            charge(state, &reply.usage, reply.cost_usd);
            if reply.rate.is_some() {
                state.rate.clone_from(&reply.rate);
            }
            call(state)?.apply(event);
            state.operator.acknowledge(&reply.call);
        }
        CallEvent::LlmFailed(failed) => {
            let row = row(state)?;
            state.ledger.failed(row, failed);
            if let Some(usage) = &failed.usage {
                charge(state, usage, failed.cost_usd);
            }
            if let Some(iteration) = &mut state.current {
                let spend = &mut iteration.spend;
                spend.waited_millis = spend.waited_millis.saturating_add(failed.wait_millis.unwrap_or(0));
            }
            let after = failed.facts.map(|facts| failure::decide(state, failed.class, &facts));
            let call = call(state)?;
            call.apply(event);
            call.after_failure = after;
            call.wait = failed.wait_millis.map(|millis| (ts.to_owned(), millis));
        }
        CallEvent::ToolIntended(_) => {
            count_tool_calls(state, 1);
            call(state)?.apply(event);
        }
        CallEvent::AgentActed(acted) => {
            let calls = acted.acts.iter().filter(|act| matches!(act, Act::Called { .. })).count() as u64;
            count_tool_calls(state, calls);
            call(state)?.apply(event);
        }
        CallEvent::AgentCalled(_) => {
            count_tool_calls(state, 1);
            call(state)?.apply(event);
        }
        CallEvent::ToolFinished(finished) => {
            let call = call(state)?;
            let denied = call.is_denial(finished);
            call.apply(event);
            state.denials.total += u64::from(denied);
        }
        CallEvent::ConversationExtended(_) => call(state)?.apply(event),
        CallEvent::ReportAccepted(accepted) => {
            let call = call(state)?;
            call.apply(event);
            let paraphrase = call.started.paraphrase;
            if let Some(iteration) = &mut state.current {
                iteration.accept(accepted, paraphrase);
            }
        }
        CallEvent::AgentFinished(finished) => finish(state, finished)?,
    }
    Ok(())
}

fn opened(state: &RunState, started: &AgentStarted) -> CallState {
    let mut call = CallState::new(started.clone());
    if !state.began_before_counted_tries() {
        call.refused = Refused::of(started.purpose());
    }
    call
}

/// The agent's part is over.
fn finish(state: &mut RunState, finished: &AgentFinished) -> Result<(), &'static str> {
    let call = state.call.take().ok_or("no agent is running")?;
    let summary = CallSummary {
        role: finished.role,
        purpose: call.purpose(),
        subject: call.started.subject.clone(),
        end: finished.end.clone(),
        turns: call.turn,
        paraphrase: call.started.paraphrase,
        moved: finished.moved.clone(),
    };
    // The next call for the same work is told of this one, where it was cut.
    let of = (summary.purpose, summary.subject.clone());
    state.left_over.remove(&of);
    if let Some(text) = finished.handover {
        state.left_over.insert(of, LeftOver { text, iteration: state.iteration_number() });
    }
    let made = state.calls_made.entry((summary.purpose, summary.subject.clone())).or_default();
    *made = made.saturating_add(1);
    if let Some(iteration) = &mut state.current {
        iteration.calls.insert(finished.call.clone(), summary.clone());
    }
    state.last_call = Some(summary);
    state.ledger.lose();
    state.operator.requeue(&finished.call);
    Ok(())
}

fn count_tool_calls(state: &mut RunState, calls: u64) {
    state.spent.tool_calls = state.spent.tool_calls.saturating_add(calls);
    state.spent.iteration_tool_calls = state.spent.iteration_tool_calls.saturating_add(calls);
    if let Some(iteration) = &mut state.current {
        iteration.spend.tool_calls = iteration.spend.tool_calls.saturating_add(calls);
    }
}

/// Adds what the server counted for one attempt.
fn charge(state: &mut RunState, usage: &Usage, cost: Option<Exact>) {
    // The server's numbers are foreign: they may be anything, and must not wrap.
    let cached = usage.cache_read.saturating_add(usage.cache_write);
    let input = usage.input.saturating_add(cached);
    state.spent.input_tokens = state.spent.input_tokens.saturating_add(input);
    state.spent.output_tokens = state.spent.output_tokens.saturating_add(usage.output);
    state.spent.cost_usd = add_cost(state.spent.cost_usd, cost);
    if let Some(cost) = cost {
        let known = state.spent.known_cost_usd.unwrap_or(Exact::ZERO).checked_add(cost);
        state.spent.known_cost_usd = known.or(state.spent.known_cost_usd);
    }
    if let Some(iteration) = &mut state.current {
        let spend = &mut iteration.spend;
        spend.input_tokens = spend.input_tokens.saturating_add(input);
        spend.output_tokens = spend.output_tokens.saturating_add(usage.output);
    }
}

/// The ledger's row of the open call.
fn row(state: &mut RunState) -> Result<Row, &'static str> {
    // What is spent before the first iteration stands with the first one.
    let iteration = state.iteration_number();
    let call = call(state)?;
    Ok(Row { iteration, role: call.role(), model: call.started.model.clone() })
}

fn call(state: &mut RunState) -> Result<&mut CallState, &'static str> {
    state.call.as_mut().ok_or("no agent is running")
}
