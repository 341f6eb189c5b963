//! The Phuc Test: does the loop remember, reflect, care, adapt and choose growth?

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::digest::Digest;
use crate::model::gate_report::{GateCheck, check};
use crate::model::learnings::ResidualDirection;
use crate::model::rung::Rung;
use crate::model::stop::{ForbiddenState, StopReason};

use super::iteration::Iteration;
use super::run::RunState;

/// The five conditions of the Phuc Test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhucTest {
    pub condition_1_history: bool,
    pub condition_2_reflection: bool,
    pub condition_3_care: bool,
    pub condition_4_adaptation: bool,
    pub condition_5_growth: bool,
    pub pass: bool,
}

/// The Phuc Test over the whole run.
pub fn phuc_test(state: &RunState, rung_achieved: Option<Rung>) -> PhucTest {
    let mut iterations: Vec<_> = state.iterations().collect();
    iterations.retain(|iteration| iteration.entry.is_some());
    let any = !iterations.is_empty();
    let condition_1_history = any && state.iterations().all(|iteration| iteration.entry.is_some());
    let condition_2_reflection = any && iterations.iter().all(|iteration| reflects(iteration));
    let condition_3_care = any && iterations.iter().all(|iteration| !iteration.began.bleeds);
    let condition_4_adaptation = any
        && iterations.iter().all(|iteration| iteration.began.carries_questions)
        && repeats_failures(state).is_none();
    let condition_5_growth = rung_achieved.is_some_and(|rung| rung >= state.rung_target());
    PhucTest {
        condition_1_history,
        condition_2_reflection,
        condition_3_care,
        condition_4_adaptation,
        condition_5_growth,
        pass: condition_1_history
            && condition_2_reflection
            && condition_3_care
            && condition_4_adaptation
            && condition_5_growth,
    }
}

fn reflects(iteration: &Iteration) -> bool {
    iteration.entry.as_ref().is_some_and(|entry| {
        entry.measures.glow.is_some() && entry.measures.northstar_direction.is_some() && entry.operators.is_some()
    })
}

/// A change that was made again as often as this after its first repetition was told shows that nobody listens.
const MOST_REPETITIONS_AFTER_TOLD: usize = 2;

/// What an iteration changed, as one digest; `None`: nothing.
fn change_of(iteration: &Iteration) -> Option<Digest> {
    let artifacts = iteration.artifacts.as_ref()?;
    if let Some(more) = &artifacts.more {
        return Some(more.all);
    }
    let changes = &artifacts.changes;
    let mut lines: Vec<String> = changes
        .iter()
        .map(|change| {
            let now = change.sha256.map_or_else(|| "gone".to_owned(), |sha256| sha256.to_string());
            format!("{now} {}\n", change.path)
        })
        .collect();
    lines.sort();
    (!lines.is_empty()).then(|| Digest::of(lines.concat().as_bytes()))
}

/// Did it help? Not known is no.
fn improved(iteration: &Iteration) -> bool {
    let entry = iteration.entry.as_ref();
    entry.is_some_and(|entry| entry.measures.residual_direction == ResidualDirection::Improving)
}

/// The iteration made a change that an earlier one had made in vain: in words, for its entry and for the next Scout.
pub fn repetition(state: &RunState, iteration: &Iteration) -> Option<String> {
    if state.began_before_replays() {
        return None;
    }
    let change = change_of(iteration)?;
    let number = iteration.number();
    let earlier = state.iterations().filter(|it| it.number() < number && !improved(it));
    let first = earlier.into_iter().find(|it| change_of(it) == Some(change))?.number();
    Some(format!(
        "REPETITION: iteration {number} made the same change as iteration {first}, whose residual did not improve: \
         do something else"
    ))
}

/// Iterations that made one change again and again although each had been told that it had not helped. `None`: no such.
fn insists(state: &RunState) -> Option<(u32, u32)> {
    let mut made: BTreeMap<Digest, Vec<u32>> = BTreeMap::new();
    for iteration in state.recorded() {
        let Some(change) = change_of(iteration) else { continue };
        let times = made.entry(change).or_default();
        // The one that helps may be the same as one that did not: what it stood on was another.
        if !improved(iteration) {
            times.push(iteration.number());
        }
    }
    // The first one, the repetition that was told, and those after it.
    let too_often = |times: &&Vec<u32>| times.len() >= 2 + MOST_REPETITIONS_AFTER_TOLD;
    let times = made.values().find(too_often)?;
    Some((*times.first()?, *times.last()?))
}

/// What speaks against adaptation, by the rules that the run began with.
fn repeats_failures(state: &RunState) -> Option<(u32, u32)> {
    if state.began_before_replays() { repeated_failure(state) } else { insists(state) }
}

/// An iteration that tried again, word for word, what had not helped before: the rule of older runs.
fn repeated_failure(state: &RunState) -> Option<(u32, u32)> {
    let normal = |tried: &[String]| -> Vec<String> {
        let mut lines: Vec<_> =
            tried.iter().map(|t| t.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()).collect();
        lines.sort();
        lines
    };
    // Without a solver's report the list is the engine's own wording, which says nothing about the approach.
    let reported = state.recorded().filter(|iteration| iteration.solver().is_some());
    let entries: Vec<_> = reported.filter_map(|iteration| iteration.entry.as_ref()).collect();
    let improved = |index: usize| entries[index].measures.residual_direction == ResidualDirection::Improving;
    for later in 1..entries.len() {
        for earlier in 0..later {
            let same = normal(&entries[earlier].tried) == normal(&entries[later].tried);
            if same && !entries[later].tried.is_empty() && !improved(earlier) {
                return Some((entries[earlier].iteration, entries[later].iteration));
            }
        }
    }
    None
}

pub(super) fn checks(state: &RunState, rung_achieved: Option<Rung>) -> Vec<GateCheck> {
    let test = phuc_test(state, rung_achieved);
    let repeated = repeats_failures(state).map_or_else(
        || "learnings reach the next capsule".to_owned(),
        |(a, b)| format!("iteration {b} repeats iteration {a}"),
    );
    let target = state.rung_target();
    let rung = rung_achieved.map_or_else(|| "none".to_owned(), |rung| rung.to_string());
    [
        (
            "Phuc Test 1: remembers history",
            test.condition_1_history,
            "a capsule per iteration".to_owned(),
            StopReason::PhucTestFailure1,
        ),
        (
            "Phuc Test 2: reflects",
            test.condition_2_reflection,
            "residual, GLOW and distance per entry".to_owned(),
            StopReason::PhucTestFailure2,
        ),
        (
            "Phuc Test 3: cares about context",
            test.condition_3_care,
            "no context bleed".to_owned(),
            StopReason::PhucTestFailure3,
        ),
        ("Phuc Test 4: adapts", test.condition_4_adaptation, repeated, StopReason::PhucTestFailure4),
        (
            "Phuc Test 5: chooses growth",
            test.condition_5_growth,
            format!("VERIFICATION_RUNG: achieved {rung}, target {target}"),
            StopReason::PhucTestFailure5,
        ),
    ]
    .into_iter()
    .map(|(name, ok, detail, reason)| check(name, None, ok, detail, reason).forbids(ForbiddenState::PhucTestFailure))
    .collect()
}
