//! The one fold: events in, [`RunState`] out. Six readers use it, so it decides nothing.
//!
//! A journal whose events do not fit together is reported, not smoothed over.

use crate::model::digest::Digest;
use crate::model::loop_file;

use super::event::{CallEvent, Event, RunEvent};
use super::family::{call, git, iteration, network, operator, run};
use super::legal;
use super::playbook::Playbook;
use super::run::RunState;

/// An event with its place in the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Stamped {
    pub seq: u64,
    pub ts: String,
    pub mono_ms: u64,
    pub boot: String,
    pub event: Event,
}

/// Events that do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {seq} ({kind}) does not fit the events before it: {why}")]
pub struct FoldError {
    pub seq: u64,
    pub kind: &'static str,
    pub why: String,
}

/// Folds the first event into a fresh state. `choose` finds the playbook that the declaration names.
pub fn start(
    stamped: &Stamped,
    choose: impl Fn(loop_file::Playbook) -> &'static dyn Playbook,
) -> Result<RunState, FoldError> {
    let Event::Run(RunEvent::RunStarted(started)) = &stamped.event else {
        return Err(misfit(stamped, "the first event must be run.started"));
    };
    if started.declared_text.as_ref().is_some_and(|text| Digest::of(text.as_bytes()) != started.loop_sha256) {
        return Err(misfit(stamped, "the text of the declaration is not the one that was declared"));
    }
    let mut state = RunState::new(started.clone(), choose(started.declaration.playbook));
    keep_time(&mut state, stamped);
    state.next_seq = stamped.seq + 1;
    Ok(state)
}

/// Folds one more event.
pub fn apply(state: &mut RunState, stamped: &Stamped) -> Result<(), FoldError> {
    legal::legal(state, &stamped.event).map_err(|why| misfit(stamped, &why))?;
    keep_time(state, stamped);
    apply_event(state, stamped).map_err(|why| misfit(stamped, why))?;
    state.next_seq = stamped.seq + 1;
    // Someone who watches or speaks is no progress.
    if !matches!(stamped.event, Event::Run(RunEvent::RunResumed(_))) && !stamped.event.is_from_people() {
        state.stalled_resumes = 0;
    }
    Ok(())
}

fn misfit(stamped: &Stamped, why: &str) -> FoldError {
    FoldError { seq: stamped.seq, kind: stamped.event.kind(), why: why.to_owned() }
}

/// Elapsed time is the sum of the gaps between events while an engine was alive. It follows the boot
/// clock, so that a jump of the wall clock neither extends nor cuts a budget.
fn keep_time(state: &mut RunState, stamped: &Stamped) {
    let was_down = matches!(stamped.event, Event::Run(RunEvent::RunResumed(_) | RunEvent::RunStarted(_)));
    let mut delta = 0;
    if !was_down && state.time.boot == stamped.boot {
        delta = stamped.mono_ms.saturating_sub(state.time.last_mono_ms);
        if state.waits_for_people() {
            // Waiting for a person is no budget time.
            state.operator.waited_millis += delta;
        } else {
            state.spent.millis += delta;
            if state.current.is_some() || state.open_step().is_some() {
                state.spent.iteration_millis += delta.saturating_sub(state.time.waiting_ms);
            }
            if let Some(iteration) = &mut state.current {
                iteration.spend.millis += delta;
            }
        }
    }
    state.time.waiting_ms = match &stamped.event {
        Event::Call(CallEvent::LlmFailed(failed)) => failed.wait_millis.unwrap_or(0),
        // What a person says meanwhile does not end the wait for the server.
        event if event.is_from_people() => state.time.waiting_ms.saturating_sub(delta),
        _ => 0,
    };
    state.time.boot.clone_from(&stamped.boot);
    state.time.last_mono_ms = stamped.mono_ms;
    state.time.last_ts.clone_from(&stamped.ts);
}

/// The playbook's part first: it sees the run as it was when the event came.
fn apply_event(state: &mut RunState, stamped: &Stamped) -> Result<(), &'static str> {
    state.playbook().fold(state, &stamped.event)?;
    let ts = stamped.ts.as_str();
    match &stamped.event {
        Event::Run(event) => run::apply(state, event),
        Event::Iteration(event) => iteration::apply(state, event),
        Event::Call(event) => call::apply(state, event, ts),
        Event::Operator(event) => operator::apply(state, event, ts),
        Event::Git(event) => git::apply(state, event),
        Event::Network(event) => {
            network::apply(state, event);
            Ok(())
        }
        Event::Work(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
