//! The value at the start: the first value reality check.

use crate::machine::run::RunState;
use crate::machine::todo::Todo;
use crate::model::decimal::Exact;
use crate::model::purpose::Purpose;
use crate::model::value::tools::Structured;
use crate::model::value::{Recommendation, Vrc, VrcMode};
use crate::playbook::value::event::VrcTaken;
use crate::playbook::value::state::OpenStep;

use super::{Attempt, Move, attempt, need, pass, say};

pub(super) fn script(run: &RunState, step: &OpenStep) -> Move {
    if let Some(vrc) = run.value().latest_vrc().filter(|vrc| vrc.step == step.number) {
        return pass(step, format!("value score {} at the start", vrc.value_score));
    }
    match attempt(step, Purpose::VrcFull) {
        Attempt::Missing => need(Todo::call(Purpose::VrcFull)),
        Attempt::Reported(report) => {
            let vrc = match report {
                Structured::ReportVrc(report) => Vrc::reported(step.number, VrcMode::Full, report),
                _ => None,
            };
            say(VrcTaken { vrc: vrc.unwrap_or_else(|| nothing_known(step, "the score is not between 0 and 1")) })
        }
        Attempt::Failed(how) => say(VrcTaken { vrc: nothing_known(step, &how) }),
    }
}

/// Nobody measured, and there is no check before this one: nothing is there until somebody shows it.
fn nothing_known(step: &OpenStep, why: &str) -> Vrc {
    Vrc {
        step: step.number,
        mode: VrcMode::Full,
        value_score: Exact::ZERO,
        deliverables_total: 0,
        deliverables_verified: 0,
        deliverables_blocked: 0,
        gaps: Vec::new(),
        recommendation: Recommendation::Continue,
        summary: format!("not measured: {why}"),
        carried: true,
    }
}
