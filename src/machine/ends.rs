//! `stop_when`: where a run leaves off for today, from recorded facts alone.
//!
//! Role: may it end here, and is one of its ends due? Not its role: the clock. That the time has come is a signal that
//! the engine brings in.
//! Invariants: nothing that is begun is cut: an agent's call and a check end first. What was asked for counts for one
//! sitting, so that whoever resumes the run goes on.

use crate::model::decimal::Exact;

use super::event::{BackpressureSeen, Signal};
use super::run::RunState;
use super::state::State;
use super::words::counted;

/// What a run has done between its start, or a resume after a stop, and its next stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sitting {
    /// The iteration it began with.
    pub first: u32,
    /// What was spent before it.
    pub spent_before: Exact,
}

impl Sitting {
    /// That of a run that starts.
    pub(super) const START: Self = Self { first: 0, spent_before: Exact::ZERO };

    /// One that begins here.
    pub(super) fn begins(state: &RunState) -> Self {
        // What is over but for the last word on it is over.
        let over = u32::from(state.current.is_some() && state.state == State::BudgetCheck);
        Self {
            first: state.iteration_number().saturating_add(over),
            spent_before: state.spent.cost_usd.unwrap_or(Exact::ZERO),
        }
    }
}

/// Is nothing begun that would have to be cut? What only waits is not at work.
pub fn may_end(state: &RunState) -> bool {
    let waits = state.operator.waits() || state.call.as_ref().is_some_and(|call| call.wait.is_some());
    let at_rest = state.call.is_none() && state.open_probes.is_empty();
    let after_item = state.loop_file().stop_when.as_ref().is_some_and(|when| when.after_item);
    waits || (at_rest && (!after_item || state.playbook().is_between_items(state)))
}

/// The end that is due here, if one is.
pub fn due(state: &RunState) -> Option<BackpressureSeen> {
    let when = state.loop_file().stop_when.as_ref().filter(|_| state.halt.is_none() && may_end(state))?;
    let sitting = &state.sitting;
    let spent = state.spent.cost_usd.and_then(|spent| spent.checked_sub(sitting.spent_before));
    if let Some((spent, limit)) = spent.zip(when.cost_usd).filter(|(spent, limit)| spent >= limit) {
        let detail = format!("after {} of {}", spent.dollars(), limit.dollars());
        return Some(BackpressureSeen { signal: Signal::CostReached, detail });
    }
    let over = |number: u32| number >= sitting.first;
    let closing = state.current.as_ref().filter(|_| state.state == State::BudgetCheck);
    let made = state.done.iter().chain(closing).filter(|iteration| over(iteration.number())).count();
    let rests = state.current.is_none() || closing.is_some();
    if when.iterations.is_some_and(|most| rests && u64::try_from(made).is_ok_and(|made| made >= most)) {
        let detail = format!("after {}", counted(made, "iteration", "iterations"));
        return Some(BackpressureSeen { signal: Signal::WorkDone, detail });
    }
    let finished = state.done.last().is_some_and(|done| over(done.number()));
    if when.is_after_item_alone() && finished && state.playbook().is_between_items(state) {
        let detail = format!("after {}", state.playbook().last_item(state));
        return Some(BackpressureSeen { signal: Signal::WorkDone, detail });
    }
    None
}
