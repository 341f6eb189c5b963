//! Events of the run as a whole: beginning, states, limits, end.

use super::operator;
use crate::machine::claim::claims_success;
use crate::machine::ends::Sitting;
use crate::machine::event::AfterFailure;
use crate::machine::event::{BackpressureSeen, BudgetCut, RunEvent, RunHalted, RunResumed, Signal, StateEntered};
use crate::machine::halt::ended_at;
use crate::machine::run::RunState;
use crate::machine::state::State;
use crate::model::budget::Exhausted;
use crate::model::decision::Mode;
use crate::model::stop::{ExitStatus, ForbiddenState, StopReason};

/// May this event follow? The error says why not.
pub(in crate::machine) fn legal(state: &RunState, event: &RunEvent) -> Result<(), String> {
    match event {
        RunEvent::RunStarted(_) => Err("a run starts once".to_owned()),
        RunEvent::RunResumed(resumed) => legal_resume(state, resumed),
        RunEvent::StateEntered(entered) => legal_edge(state, entered),
        RunEvent::InputRejected(_) | RunEvent::MachineSlept(_) => Ok(()),
        RunEvent::BackpressureSeen(seen) => legal_stop(state, seen),
        RunEvent::BudgetCut(cut) => legal_cut(state, cut),
        RunEvent::NorthstarRead(_) | RunEvent::NullChecked(_) => state.only_in(event.kind(), &[State::NullCheck]),
        RunEvent::MemoryFound(_) if state.found.is_some() => Err("what was there is found once".to_owned()),
        RunEvent::MemoryFound(_) => Ok(()),
        RunEvent::PlanWritten(_) => state.only_in(event.kind(), &[State::DreamGoal]),
        RunEvent::RunHalted(halted) => legal_halt(state, halted),
    }
}

/// Folds an event that was found legal.
pub(in crate::machine) fn apply(state: &mut RunState, event: &RunEvent) -> Result<(), &'static str> {
    match event {
        RunEvent::RunStarted(_) => return Err("a run starts once"),
        RunEvent::RunResumed(resumed) => {
            resume(state);
            state.end.clone_from(&resumed.end);
            for raised in &resumed.raised {
                operator::raise(state, raised)?;
            }
            state.operator.patience = resumed.patience;
            // A pause that nobody can lift would hold for ever.
            if resumed.patience.mode == Mode::Stop {
                state.operator.pause = None;
            }
        }
        RunEvent::StateEntered(entered) => {
            if entered.from != state.state {
                return Err("it leaves a state the run is not in");
            }
            enter(state, entered.to);
        }
        RunEvent::InputRejected(_) => state.rejections += 1,
        RunEvent::MachineSlept(slept) => state.slept.push(slept.clone()),
        RunEvent::NorthstarRead(read) => state.northstar = Some(read.clone()),
        RunEvent::MemoryFound(found) => {
            state.frame = found.agents_md;
            state.found = Some(found.clone());
        }
        RunEvent::NullChecked(checked) => state.missing = Some(checked.missing.clone()),
        RunEvent::PlanWritten(written) => state.plan = Some(written.sha256),
        RunEvent::BackpressureSeen(seen) => state.backpressure = Some(seen.clone()),
        RunEvent::BudgetCut(cut) => state.cut = Some(cut.clone()),
        RunEvent::RunHalted(halted) => {
            enter(state, State::of_exit(halted.status));
            state.halt = Some(halted.clone());
        }
    }
    Ok(())
}

/// May the run go on?
pub(in crate::machine) fn resumable(state: &RunState) -> Result<(), String> {
    match &state.halt {
        None => Ok(()),
        Some(halted) if halted.stop_reason == StopReason::BackpressureSignal => Ok(()),
        Some(halted) => Err(format!("the run has ended: {} ({})", halted.status, halted.stop_reason)),
    }
}

/// A run that ended at a limit goes on once this limit is raised. A limit only goes up.
fn legal_resume(state: &RunState, resumed: &RunResumed) -> Result<(), String> {
    let mut limits = state.limits.clone();
    for raised in &resumed.raised {
        if limits.of(raised.dimension).as_ref() != Some(&raised.from) {
            return Err(format!("the limit for {} is not {}", raised.dimension, raised.from));
        }
        limits = limits.raised(raised.dimension, &raised.to)?;
    }
    match ended_at(state) {
        Some(end) if resumed.raised.iter().any(|raised| raised.dimension == end.dimension) => Ok(()),
        Some(end) => Err(format!(
            "the run ended at a limit: {} of {} {}; raise it with `nightloop resume --raise {}=...`",
            end.observed, end.limit, end.dimension, end.dimension
        )),
        None => resumable(state),
    }
}

/// What a failed call stops the run for is decided, not seen.
fn legal_stop(state: &RunState, seen: &BackpressureSeen) -> Result<(), String> {
    let decided = state.call.as_ref().and_then(|call| call.after_failure);
    match (seen.signal, decided) {
        (Signal::SpendLimit | Signal::DownstreamUnavailable | Signal::AgentFailed, Some(after))
            if after != AfterFailure::Stop(seen.signal) =>
        {
            Err(format!("after the failed call comes {}", after.describe()))
        }
        _ => Ok(()),
    }
}

/// A limit cuts what agents and checks do, once, and only a limit that is set. Older engines could name the one from
/// before it was raised.
fn legal_cut(state: &RunState, cut: &BudgetCut) -> Result<(), String> {
    let Exhausted { dimension, limit, .. } = &cut.exhausted;
    state.only_in("budget.cut", &[State::DreamGoal, State::SpawnSubagent, State::CheckHalting, State::BudgetCheck])?;
    if state.cut.is_some() {
        return Err("the iteration is cut already".to_owned());
    }
    let mut earlier = state.operator.overrides.iter().filter(|raised| raised.dimension == *dimension);
    if state.limits.of(*dimension).as_ref() != Some(limit) && !earlier.any(|raised| raised.from == *limit) {
        return Err(format!("the limit for {dimension} is not {limit}"));
    }
    Ok(())
}

fn legal_edge(state: &RunState, entered: &StateEntered) -> Result<(), String> {
    if entered.from != state.state {
        return Err(format!("the run is in {}, not in {}", state.state, entered.from));
    }
    // Exits are entered by `run.halted` alone.
    if entered.to.exit().is_none() && state.state.followers(state.spec()).contains(&entered.to) {
        Ok(())
    } else {
        Err(format!("there is no edge from {} to {}", entered.from, entered.to))
    }
}

fn legal_halt(state: &RunState, halted: &RunHalted) -> Result<(), String> {
    if halted.last_state != state.state {
        return Err(format!("the run is in {}, not in {}", state.state, halted.last_state));
    }
    match halted.status {
        ExitStatus::ExitConverged => {
            let passed = state.current.as_ref().and_then(|it| it.gate.as_ref()).is_some_and(|gate| gate.passed);
            if state.state == State::BudgetCheck && claims_success(state) && passed {
                Ok(())
            } else {
                Err(format!(
                    "{}: no certificate that passed the gate",
                    ForbiddenState::ConvergenceClaimWithoutCertificate
                ))
            }
        }
        ExitStatus::ExitNeedInfo => match state.state {
            State::NullCheck | State::DreamGoal => Ok(()),
            _ => Err(format!("EXIT_NEED_INFO is not possible in {}", state.state)),
        },
        ExitStatus::ExitDiverged | ExitStatus::ExitBudgetExceeded | ExitStatus::ExitBlocked => Ok(()),
    }
}

fn enter(state: &mut RunState, to: State) {
    let edge = (state.state, to);
    *state.edges.entry(edge).or_default() += 1;
    *state.visits.entry(to).or_default() += 1;
    state.last_edge = Some(edge);
    // The loop back to SPAWN_SUBAGENT closes the iteration.
    if state.state == State::BudgetCheck
        && to == State::SpawnSubagent
        && let Some(finished) = state.current.take()
    {
        state.done.push(finished);
    }
    state.state = to;
}

fn resume(state: &mut RunState) {
    state.ledger.lose();
    state.resumes += 1;
    state.stalled_resumes += 1;
    state.backpressure = None;
    state.operator.viewers.clear();
    let was_stopped = state.halt.is_some();
    if let Some(halted) = state.halt.take() {
        // Whoever resumes a run that stopped wants it to go on. After a crash an order still stands.
        state.operator.pause = None;
        state.operator.stop_after_iteration = None;
        state.state = halted.last_state;
        state.sitting = Sitting::begins(state);
    }
    if let Some(call) = &mut state.call {
        call.failed = None;
        // What no further attempt can mend is not forgotten.
        call.after_failure = call.after_failure.filter(|after| *after == AfterFailure::HandOver);
        if was_stopped {
            call.wait = None;
        }
    }
}
