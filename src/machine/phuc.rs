//! The Phuc Test: does the loop remember, reflect, care, adapt and choose growth?

use serde::{Deserialize, Serialize};

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
        && repeated_failure(state).is_none();
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

/// An iteration that tried again, word for word, what had not helped before.
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
    let repeated = repeated_failure(state).map_or_else(
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
