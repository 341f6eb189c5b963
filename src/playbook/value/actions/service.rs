//! SERVICE_FIX: bring services back to health. Never counts as progress.

use crate::machine::event::Event;
use crate::machine::next::Todo;
use crate::machine::run::RunState;
use crate::machine::value::OpenStep;
use crate::model::value::Outcome;

use crate::playbook::value::finished;

pub fn next(_run: &RunState, _step: &OpenStep, _services: &[String]) -> Option<Todo> {
    None
}

pub fn decide(_run: &RunState, step: &OpenStep, _services: &[String]) -> Vec<Event> {
    vec![finished(step, Outcome::NoProgress, "not there yet")]
}
