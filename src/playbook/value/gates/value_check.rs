//! The value at the start: the first value reality check.

use crate::machine::event::VrcTaken;
use crate::machine::next::Todo;
use crate::machine::run::RunState;
use crate::machine::value::OpenStep;
use crate::model::decimal::Exact;
use crate::model::purpose::Purpose;
use crate::model::value::tools::{Structured, VrcReport};
use crate::model::value::{Recommendation, Vrc, VrcMode};

use super::{Attempt, Move, attempt, need, pass, say};

pub(super) fn script(run: &RunState, step: &OpenStep) -> Move {
    if let Some(vrc) = run.value.latest_vrc().filter(|vrc| vrc.step == step.number) {
        return pass(step, format!("value score {} at the start", vrc.value_score));
    }
    match attempt(step, Purpose::VrcFull) {
        Attempt::Missing => need(Todo::call(Purpose::VrcFull)),
        Attempt::Reported(Structured::ReportVrc(report)) if report.value_score <= Exact::from_u64(1) => {
            say(VrcTaken { vrc: measured(step, report) })
        }
        Attempt::Reported(_) => say(VrcTaken { vrc: nothing_known(step, "the score is not between 0 and 1") }),
        Attempt::Failed(how) => say(VrcTaken { vrc: nothing_known(step, &how) }),
    }
}

fn measured(step: &OpenStep, report: &VrcReport) -> Vrc {
    Vrc {
        step: step.number,
        mode: VrcMode::Full,
        value_score: report.value_score,
        deliverables_total: report.deliverables_total,
        deliverables_verified: report.deliverables_verified,
        deliverables_blocked: report.deliverables_blocked,
        gaps: report.gaps.clone(),
        recommendation: report.recommendation,
        summary: report.summary.clone(),
        carried: false,
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
