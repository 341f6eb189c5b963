//! What counts as progress towards the Northstar: metrics that were measured, and metrics that follow the residual.
//!
//! Role: say which metrics an iteration, or the run, moved, and how far away they are. Not its role: the score (`glow`),
//! or what follows from three iterations without progress (`forbidden`).
//!
//! Invariants: no number is invented: a metric that follows the residual keeps the value of its file, only its movement
//! is read off the residual. A measured metric that moved away is never called advanced. Runs that began before replays
//! are judged by what they began with: measured metrics alone, and criteria that name any metric.

use crate::model::certificate::Certificate;
use crate::model::decimal::Exact;
use crate::model::fraction::Fraction;
use crate::model::loop_file::RESIDUAL_LINK;
use crate::model::northstar::{self, Metric};

use super::event::{Phase, Probe};
use super::iteration::Iteration;
use super::run::RunState;

/// How far these metrics are from their targets, all together.
pub fn distance(state: &RunState, metrics: &[Metric]) -> Option<Fraction> {
    let measured = if state.began_before_replays() {
        northstar::distance_to_points(metrics)
    } else {
        northstar::distance(metrics)
    };
    measured.total
}

/// The metrics as they were before the running iteration.
pub fn metrics_before(state: &RunState) -> Vec<Metric> {
    state.done.last().map_or_else(|| state.metrics_at_baseline(), |last| state.metrics_at(last))
}

/// Is its value measured in this run, by a command or by the playbook?
fn is_measured(state: &RunState, metric: &str) -> bool {
    let declared = state.loop_file().northstar.as_ref().is_some_and(|n| n.measure.contains_key(metric));
    let last = state.iterations().next_back().map(Iteration::number);
    let by_playbook =
        [None, last].iter().any(|when| state.own_metric(&Probe::Metric(metric.to_owned()), *when).is_some());
    declared || by_playbook
}

/// The metrics that follow the residual: as `links: { residual: […] }` says, else the first one; never one that is measured.
pub fn bound(state: &RunState) -> Vec<String> {
    let declared = state.loop_file().northstar.as_ref().and_then(|n| n.links.get(RESIDUAL_LINK).cloned());
    let first = || state.northstar.iter().filter_map(|n| Some(n.metrics.first()?.id.clone())).collect();
    let mut bound: Vec<String> = declared.unwrap_or_else(first);
    bound.retain(|metric| !is_measured(state, metric));
    bound
}

fn which_moved(
    state: &RunState,
    before: &[Metric],
    now: &[Metric],
    wanted: fn(Fraction, Fraction) -> bool,
) -> Vec<String> {
    let one = |metric: &Metric| distance(state, std::slice::from_ref(metric));
    let moved = before
        .iter()
        .zip(now)
        .filter(|(before, now)| matches!((one(before), one(now)), (Some(before), Some(now)) if wanted(before, now)));
    moved.map(|(_, now)| now.id.clone()).collect()
}

/// What an iteration's win can name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Moved {
    /// A measured metric that came closer.
    pub measured: Option<String>,
    /// A metric that follows the residual, which fell.
    pub by_residual: Option<String>,
    /// The metric that newly met criteria, or the residual, or the goal are linked to.
    pub linked: Option<String>,
}

/// What the running iteration moved. `newly_true` are criteria that became true by a check.
pub fn of_iteration(
    state: &RunState,
    iteration: &Iteration,
    certificate: &Certificate,
    newly_true: &[String],
) -> Moved {
    let (before, now) = (metrics_before(state), state.metrics_at(iteration));
    let closer = || matches!((distance(state, &before), distance(state, &now)), (Some(b), Some(n)) if n < b);
    let measured =
        which_moved(state, &before, &now, |before, now| now < before).into_iter().next().filter(|_| closer());
    let served = newly_true.first().or_else(|| state.criteria.first().map(|criterion| &criterion.id));
    if state.began_before_replays() {
        return Moved { measured, by_residual: None, linked: served.and_then(|id| state.linked_metric(id)) };
    }
    let away = which_moved(state, &before, &now, |before, now| now > before);
    let bound = bound(state);
    let fell = fell(state.previous_residual(), certificate.residual);
    let by_criteria = newly_true.iter().flat_map(|id| state.linked_metrics(id));
    let by_goal = served.into_iter().flat_map(|id| state.linked_metrics(id));
    let linked = by_criteria.chain(bound.iter().cloned()).chain(by_goal).find(|metric| !away.contains(metric));
    Moved { measured, by_residual: bound.into_iter().next().filter(|_| fell), linked }
}

/// Is a check closer to green than it ever was in this run: more of its tests pass, or fewer of its lines complain?
pub fn is_closer_by_check(state: &RunState, iteration: &Iteration) -> bool {
    let checks = iteration.probes.iter().filter(|((phase, _), _)| *phase == Phase::Iteration);
    checks.into_iter().any(|((phase, probe), now)| {
        let earlier = || {
            let done = state.done.iter().filter_map(|done| done.probe(*phase, probe));
            done.chain(state.baseline.probes.get(probe))
        };
        let most_passed = earlier().filter_map(|result| result.count).map(|count| count.passed).max();
        let least_complaints = earlier().filter_map(|result| result.complaints).min();
        matches!((most_passed, now.count), (Some(most), Some(now)) if now.passed > most)
            || matches!((least_complaints, now.complaints), (Some(least), Some(now)) if now < least)
    })
}

fn fell(before: Option<Exact>, now: Option<Exact>) -> bool {
    matches!((before, now), (Some(before), Some(now)) if now < before)
}

/// The metrics that are closer to their targets at the end of the run than they were at its start.
pub fn of_run(state: &RunState, before: &[Metric], now: &[Metric]) -> Vec<String> {
    let mut advanced = which_moved(state, before, now, |before, now| now < before);
    if residual_advanced(state) {
        advanced.extend(bound(state));
    }
    advanced.sort();
    advanced.dedup();
    advanced
}

/// Did the residual fall over the run? One that nobody could measure at first, and that ends below R_p, has come from
/// somewhere: an unknown start is no number, and no reason to refuse what was reached.
fn residual_advanced(state: &RunState) -> bool {
    let Some(end) = state.iterations().rev().find_map(|it| it.certificate.as_ref()).and_then(|c| c.residual) else {
        return false;
    };
    match state.baseline.residual.as_ref().and_then(|residual| residual.as_ref()) {
        Some(start) => end < start.value,
        None => end < state.r_p(),
    }
}
