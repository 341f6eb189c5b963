//! The size of the vision: one run, or epics.
//!
//! What is plainly small is one run without asking anybody; a model may only find more than one slice. Where it says
//! nothing, the run is one.

use crate::machine::run::RunState;
use crate::machine::todo::Todo;
use crate::model::purpose::Purpose;
use crate::model::value::settings::EpicMode;
use crate::model::value::tools::{EpicDecomposition, Structured};
use crate::playbook::value::event::{EpicPut, EpicStatus};
use crate::playbook::value::state::OpenStep;

use super::{Attempt, Move, attempt, bounded, fail, need, pass, say};

/// Vision and PRD of no more bytes than this are one run.
const SMALL: u64 = 500;
/// More slices than this are too much for one run.
const MAX_EPICS: usize = 5;
/// The longest reason that is kept.
const MAX_REASON: usize = 1_000;

pub(super) fn script(run: &RunState, step: &OpenStep) -> Move {
    match run.value_settings().epics.mode {
        EpicMode::Off => return pass(step, "not needed: epics are off, this is a single run"),
        EpicMode::Auto => {}
    }
    let bytes = run.value().documents.as_ref().map_or(0, |read| read.vision.bytes.saturating_add(read.prd.bytes));
    if bytes <= SMALL {
        return pass(step, format!("a single run: vision and PRD have {bytes} bytes"));
    }
    match attempt(step, Purpose::EpicDecompose) {
        Attempt::Missing => need(Todo::call(Purpose::EpicDecompose)),
        Attempt::Reported(Structured::ReportEpicDecomposition(found)) => slice(run, step, found),
        Attempt::Reported(_) => pass(step, "a single run: nothing was decomposed"),
        Attempt::Failed(how) => pass(step, format!("a single run: {how}")),
    }
}

fn slice(run: &RunState, step: &OpenStep, found: &EpicDecomposition) -> Move {
    let rationale = bounded(&found.rationale, MAX_REASON);
    if found.vision_too_large || found.epics.len() > MAX_EPICS {
        let what = format!("the vision is too large for one run ({rationale})");
        return fail(&[what, format!("split it into visions of at most {MAX_EPICS} epics, and start with one")]);
    }
    if found.epics.len() < 2 {
        return pass(step, format!("a single run: {rationale}"));
    }
    for (number, plan) in (0..).zip(&found.epics) {
        if run.value().epics.iter().any(|epic| epic.epic == number) {
            continue;
        }
        return say(EpicPut {
            epic: number,
            title: plan.title.clone(),
            value_statement: plan.value_statement.clone(),
            deliverables: plan.deliverables.clone(),
            completion_criteria: plan.completion_criteria.clone(),
            status: if number == 0 { EpicStatus::InProgress } else { EpicStatus::Pending },
            feedback: None,
        });
    }
    pass(step, format!("{} epics: {rationale}", found.epics.len()))
}
