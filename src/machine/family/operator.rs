//! Events of people: what may be asked and said when, and what it does.

use crate::machine::call::{CallState, ToolPhase};
use crate::machine::event::AfterFailure;
use crate::machine::event::{AskedBy, BudgetRaised, DecisionAnswered, DecisionAsked, DecisionSettled, OperatorEvent};
use crate::machine::network;
use crate::machine::operator::{Decision, DecisionStatus, MAX_STEER, Operator, Pause};
use crate::machine::run::RunState;
use crate::machine::state::State;
use crate::model::decision::{ASK_TOOL, Answer, MAX_CHECKS, MAX_DECISIONS, MAX_TEXT, Request};

use crate::model::learnings;

use super::git;

/// Words waiting for delivery at one time.
const MAX_STEERS_QUEUED: usize = 20;

/// May a person's event follow? Only what an event itself cannot show is asked of the state.
pub(in crate::machine) fn legal(state: &RunState, event: &OperatorEvent) -> Result<(), String> {
    let operator = &state.operator;
    match event {
        OperatorEvent::DecisionAsked(asked) => {
            if asked.id != operator.next_id() {
                return Err("decisions are numbered without gaps".to_owned());
            }
            if operator.decisions.len() >= MAX_DECISIONS {
                return Err(format!("a run asks at most {MAX_DECISIONS} times"));
            }
            if operator.blocking().next().is_some() || operator.unsettled().is_some() {
                return Err("another decision is open".to_owned());
            }
            legal_asker(state, asked)
        }
        OperatorEvent::DecisionAnswered(answered) => legal_answer(state, answered),
        OperatorEvent::DecisionSettled(settled) => {
            match operator.decision(settled.id).map(|decision| decision.status) {
                Some(DecisionStatus::Answered) => legal_settling(operator, settled),
                Some(DecisionStatus::Open | DecisionStatus::Closed) | None => {
                    Err(format!("{} has no answer to carry out", settled.id))
                }
            }
        }
        OperatorEvent::PauseRequested(_) if operator.pause.is_some() => Err("the run is already paused".to_owned()),
        OperatorEvent::PauseBegan(_) if !matches!(operator.pause, Some(Pause::Requested { .. })) => {
            Err("nobody asked for a pause".to_owned())
        }
        OperatorEvent::PauseLifted(_) if operator.pause.is_none() => Err("the run is not paused".to_owned()),
        OperatorEvent::StopScheduled(stop) if stop.scheduled == operator.stop_after_iteration.is_some() => {
            Err("that is already so".to_owned())
        }
        OperatorEvent::SteerQueued(steer) => {
            if steer.number != operator.next_steer() {
                return Err("messages are numbered without gaps".to_owned());
            }
            if steer.text.trim().is_empty() || steer.text.len() > MAX_STEER {
                return Err(format!("a message has 1 to {MAX_STEER} bytes"));
            }
            if operator.queued().count() >= MAX_STEERS_QUEUED {
                return Err(format!("{MAX_STEERS_QUEUED} messages are already waiting"));
            }
            Ok(())
        }
        OperatorEvent::SteerDelivered(delivered) => {
            let queued = |number: &u32| operator.queued().any(|steer| steer.number == *number);
            if delivered.numbers.iter().all(queued) { Ok(()) } else { Err("that message is not waiting".to_owned()) }
        }
        OperatorEvent::BudgetRaised(raised) => {
            if state.limits.of(raised.dimension).as_ref() != Some(&raised.from) {
                return Err(format!("the limit for {} is not {}", raised.dimension, raised.from));
            }
            state.limits.raised(raised.dimension, &raised.to).map(|_| ())
        }
        OperatorEvent::PauseRequested(_)
        | OperatorEvent::PauseBegan(_)
        | OperatorEvent::PauseLifted(_)
        | OperatorEvent::StopScheduled(_)
        | OperatorEvent::RetryRequested(_)
        | OperatorEvent::ViewerAttached(_)
        | OperatorEvent::ViewerDetached(_) => Ok(()),
        OperatorEvent::UndoRequested(undo) => git::legal_undo(state, undo.iteration),
    }
}

/// May this be the answer to its decision, as that stands?
fn legal_answer(state: &RunState, answered: &DecisionAnswered) -> Result<(), String> {
    let decision =
        state.operator.decision(answered.id).ok_or_else(|| format!("there is no decision {}", answered.id))?;
    if decision.status != DecisionStatus::Open {
        return Err(format!("{} is already answered", answered.id));
    }
    if answered.note.as_ref().is_some_and(|note| note.len() > MAX_TEXT) {
        return Err("the note is too long".to_owned());
    }
    let most = max_checks(state, decision);
    if answered.answer == Answer::Done && decision.checks >= most {
        let way = "`check` another command, `override` with a note, or `quit`";
        return Err(format!("the verification failed {most} times: {way}"));
    }
    let checks = matches!(answered.answer, Answer::DoneBy { .. });
    if checks && decision.checks >= MAX_CHECKS {
        return Err(format!("{MAX_CHECKS} verifications failed: `override` with a note, or `quit`"));
    }
    if answered.answer == Answer::Override && answered.note.as_ref().is_none_or(|note| note.trim().is_empty()) {
        return Err("an override needs a note that says why it is done all the same".to_owned());
    }
    decision.request.permits(&answered.answer).map_err(str::to_owned)
}

/// How often a verification may fail: what a playbook asks for may have a limit of its own.
fn max_checks(state: &RunState, decision: &Decision) -> u32 {
    let own = state.playbook().max_checks(state).filter(|_| decision.asked_by.is_none());
    own.map_or(MAX_CHECKS, |own| own.min(MAX_CHECKS))
}

/// The machine asks about tampering, money and calls denied too often; everything else is asked by a tool call that waits for it.
fn legal_asker(state: &RunState, asked: &DecisionAsked) -> Result<(), String> {
    let call = state.call.as_ref();
    let Some(by) = &asked.asked_by else {
        if let Some(host) = asked.request.host() {
            return network::legal_ask(state, host);
        }
        return match (&asked.request, call) {
            (Request::Tampering { .. }, None) if matches!(state.state, State::CheckHalting | State::BudgetCheck) => {
                Ok(())
            }
            (Request::Refinement { path, .. }, None)
                if path == learnings::FILE && state.state == State::CheckHalting =>
            {
                Ok(())
            }
            (Request::SpendLimit { .. }, Some(call)) if !call.request_open && asks_for_money(call) => Ok(()),
            (Request::Escalation { .. }, Some(_)) if state.denied_too_often().is_some() => Ok(()),
            // Between its calls a playbook asks for itself.
            (request, None) if state.playbook().may_ask(state, request) => Ok(()),
            (request, _) => Err(format!("nobody asks for a {} here", request.name())),
        };
    };
    if let Some(call) = call.filter(|call| call.is_program()) {
        return legal_asker_of_program(call, by, &asked.request);
    }
    let waits = |call: &&CallState| {
        let mut tools = call.tools.iter().filter(|tool| tool.tool_use.id == by.tool && tool.phase == ToolPhase::Asked);
        call.started.call == by.call && call.turn == by.turn && tools.next().is_some()
    };
    let Some(call) = call.filter(waits) else { return Err("no tool call waits for this".to_owned()) };
    let asks = call.tools.iter().any(|tool| tool.tool_use.id == by.tool && tool.tool_use.name == ASK_TOOL);
    match &asked.request {
        Request::Tampering { .. } | Request::SpendLimit { .. } | Request::Stuck { .. } => {
            Err("no tool asks this".to_owned())
        }
        Request::Permission { .. } if !asks => Ok(()),
        Request::Permission { .. } => Err("asking needs no permission".to_owned()),
        Request::HumanAction { .. }
        | Request::Question { .. }
        | Request::Refinement { .. }
        | Request::Vision { .. }
        | Request::Escalation { .. } => {
            if asks {
                Ok(())
            } else {
                Err(format!("only {ASK_TOOL} asks this"))
            }
        }
    }
}

/// Older journals do not say what was decided after a failed attempt.
fn asks_for_money(call: &CallState) -> bool {
    call.after_failure.is_none_or(|after| after == AfterFailure::Ask)
}

/// A program asks in the middle of its turn. It names its asks itself; the engine makes the names.
fn legal_asker_of_program(call: &CallState, by: &AskedBy, request: &Request) -> Result<(), String> {
    if call.started.call != by.call || call.turn != by.turn {
        return Err("another turn asks this".to_owned());
    }
    // A report that came as text is an ordinary tool call; that asks for nothing.
    if !call.request_open {
        return Err("no program is at work".to_owned());
    }
    match request {
        Request::Tampering { .. } | Request::SpendLimit { .. } | Request::Stuck { .. } => {
            Err("no program asks this".to_owned())
        }
        Request::HumanAction { .. }
        | Request::Question { .. }
        | Request::Permission { .. }
        | Request::Refinement { .. }
        | Request::Vision { .. }
        | Request::Escalation { .. } => Ok(()),
    }
}

/// What was carried out must be what the answer asked for, and come out as it is said.
fn legal_settling(operator: &Operator, settled: &DecisionSettled) -> Result<(), String> {
    let request = operator.decision(settled.id).map(|decision| &decision.request);
    match (request, &settled.check) {
        (Some(Request::HumanAction { .. }), Some(check)) if settled.closed == check.end.passed() => Ok(()),
        (Some(Request::HumanAction { .. }), _) => Err("only its verification closes a pause".to_owned()),
        (Some(_), None) => Ok(()),
        (Some(_), Some(_)) | (None, _) => Err("there is nothing to verify".to_owned()),
    }
}

/// An operator's override takes effect.
pub(super) fn raise(state: &mut RunState, raised: &BudgetRaised) -> Result<(), &'static str> {
    state.limits = state.limits.raised(raised.dimension, &raised.to).map_err(|_| "a limit can only be raised")?;
    // What was cut for this limit goes on.
    if state.cut.as_ref().is_some_and(|cut| cut.exhausted.dimension == raised.dimension) {
        state.cut = None;
    }
    state.operator.overrides.push(raised.clone());
    Ok(())
}

/// Folds an event that was found legal.
pub(in crate::machine) fn apply(state: &mut RunState, event: &OperatorEvent, ts: &str) -> Result<(), &'static str> {
    match event {
        OperatorEvent::DecisionAsked(asked) => state.operator.ask(asked, ts),
        OperatorEvent::DecisionAnswered(answered) => {
            state.operator.answer(answered)?;
            if state.operator.hear_escalation(answered, ts) {
                state.denials.excused = state.denials.total;
                if let Some(call) = &mut state.call {
                    call.denied = 0;
                }
            }
        }
        OperatorEvent::DecisionSettled(settled) => state.operator.settle(settled)?,
        OperatorEvent::PauseRequested(requested) => {
            state.operator.pause = Some(Pause::Requested { by: requested.by.clone() });
        }
        OperatorEvent::PauseBegan(_) => {
            if let Some(Pause::Requested { by }) = state.operator.pause.take() {
                state.operator.pause = Some(Pause::Holding { by, since: ts.to_owned() });
            }
        }
        OperatorEvent::PauseLifted(_) => state.operator.pause = None,
        OperatorEvent::StopScheduled(stop) => {
            state.operator.stop_after_iteration = stop.scheduled.then(|| stop.by.clone());
        }
        OperatorEvent::SteerQueued(queued) => state.operator.steer(queued, ts),
        OperatorEvent::SteerDelivered(delivered) => state.operator.deliver(&delivered.numbers, &delivered.call),
        OperatorEvent::BudgetRaised(raised) => {
            raise(state, raised)?;
        }
        // "Now" means now, also after a resume.
        OperatorEvent::RetryRequested(_) => {
            if let Some(call) = &mut state.call {
                call.wait = None;
            }
        }
        OperatorEvent::UndoRequested(undo) => {
            state.git.undo = Some(undo.iteration);
            state.git.undo_by = Some(undo.by.clone());
        }
        OperatorEvent::ViewerAttached(attached) => {
            state.operator.viewers.insert(attached.viewer.clone());
        }
        OperatorEvent::ViewerDetached(detached) => {
            state.operator.viewers.remove(&detached.viewer);
        }
    }
    Ok(())
}
