//! GENERATE_QC and RUN_QC: scripts of the QC role, run by the engine.

use crate::machine::event::Event;
use crate::machine::next::Todo;
use crate::machine::run::RunState;
use crate::machine::value::OpenStep;
use crate::model::value::Outcome;

use crate::playbook::value::finished;

pub fn next_generate(_run: &RunState, _step: &OpenStep) -> Option<Todo> {
    None
}

pub fn decide_generate(_run: &RunState, step: &OpenStep) -> Vec<Event> {
    vec![finished(step, Outcome::NoProgress, "not there yet")]
}

pub fn next_run(_run: &RunState, _step: &OpenStep) -> Option<Todo> {
    None
}

pub fn decide_run(_run: &RunState, step: &OpenStep) -> Vec<Event> {
    vec![finished(step, Outcome::NoProgress, "not there yet")]
}
