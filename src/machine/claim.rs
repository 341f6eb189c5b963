//! Is a success claimed, and does a stop come before it?

use super::ends;
use super::event::{BackpressureSeen, Signal};
use super::run::RunState;
use super::state::State;

/// Does the latest certificate claim success, and was that not taken back?
pub fn claims_success(state: &RunState) -> bool {
    let claiming = state.current.as_ref().filter(|iteration| !iteration.taken_back);
    let certificate = claiming.and_then(|iteration| iteration.certificate.as_ref());
    certificate.is_some_and(|certificate| certificate.kind.is_success())
}

/// Has the stop signal that was seen to be obeyed right here?
pub fn must_stop(state: &RunState) -> bool {
    state.backpressure.as_ref().is_some_and(|seen| stops(state, seen.signal))
}

/// What has to be obeyed right here: the stop signal that was seen, or an end that was asked for.
pub fn stop(state: &RunState) -> Option<BackpressureSeen> {
    pressing(state).filter(|seen| stops(state, seen.signal))
}

/// What wants the run to stop, here or once a claim is settled.
pub fn pressing(state: &RunState) -> Option<BackpressureSeen> {
    let seen = state.backpressure.clone().filter(|seen| !seen.signal.is_as_asked() || stops(state, seen.signal));
    seen.or_else(|| ends::due(state))
}

/// Would this signal stop the run where it is? A finished success is certified first, unless the engine
/// itself is told to go: work that is complete beats a stop, but not a closing terminal.
pub fn stops(state: &RunState, signal: Signal) -> bool {
    if signal == Signal::EndTime && !ends::may_end(state) {
        return false;
    }
    match state.state {
        // The learnings of a certified iteration are written first; that takes no process and no time.
        State::AccumulateLearnings | State::GlowCheck => false,
        // Without a claim everything is decided in order, at once. A claim is settled first, unless its work
        // cannot go on: a model that does not answer, or an engine that is told to go.
        // Where a person is waited for, there is nothing to wait for instead.
        State::BudgetCheck => {
            let can_wait = signal.is_as_asked() || matches!(signal, Signal::StopFile | Signal::DiskUsage);
            claims_success(state) && (!can_wait || state.operator.waits())
        }
        _ => state.halt.is_none(),
    }
}

/// Does a stop cut agents short whose changes nobody has looked at since?
pub fn wants_partial(state: &RunState) -> bool {
    let in_work = matches!(state.state, State::SpawnSubagent | State::CollectArtifacts);
    let unseen = state.current.as_ref().is_some_and(|iteration| {
        let seen = iteration.partial.as_ref().is_some_and(|partial| partial.resumes == state.resumes);
        iteration.artifacts.is_none() && !iteration.calls.is_empty() && !seen
    });
    !state.began_before_replays() && in_work && unseen && stop(state).is_some()
}
