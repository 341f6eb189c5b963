//! Context discovery: what this workspace is and needs, and what only a person knows about it.

use crate::machine::run::RunState;
use crate::machine::todo::Todo;
use crate::model::decision::Request;
use crate::model::purpose::Purpose;
use crate::model::value::tools::{Discovery, Structured};
use crate::playbook::value::state::OpenStep;

use super::{Attempt, MAX_TEXT, Move, ask, attempt, bounded, fail, need, pass};

/// Questions that are put to a person; the rest is noted.
const MAX_QUESTIONS: usize = 10;

pub(super) fn script(run: &RunState, step: &OpenStep) -> Move {
    match attempt(step, Purpose::DiscoverContext) {
        Attempt::Missing => need(Todo::call(Purpose::DiscoverContext)),
        Attempt::Reported(Structured::ReportDiscovery(found)) => clear_up(run, step, found),
        Attempt::Reported(_) => fail(&["discovery reported something else".to_owned()]),
        Attempt::Failed(how) => fail(&[format!("what this workspace is was not found out: {how}")]),
    }
}

/// One question after the other. The answers stay in the inbox, where later calls are shown them.
fn clear_up(run: &RunState, step: &OpenStep, found: &Discovery) -> Move {
    let questions: Vec<&String> = found.unresolved_questions.iter().filter(|text| !text.trim().is_empty()).collect();
    let asked = questions.len().min(MAX_QUESTIONS);
    if let Some(question) = questions[..asked].get(step.decisions.len()) {
        let why = format!("context discovery, question {} of {asked}", step.decisions.len() + 1);
        let request = Request::Question { question: bounded(question, MAX_TEXT), choices: Vec::new() };
        return ask(run, request, &why);
    }
    let mut detail = format!("{}, {asked} question(s) answered", bounded(&found.project_type, 200));
    let rest: Vec<String> = questions[asked..].iter().map(|text| (*text).clone()).collect();
    if !rest.is_empty() {
        detail.push_str(&format!("; {} more were not asked: {}", rest.len(), super::list(&rest)));
    }
    pass(step, detail)
}
