//! The boundary between two epics: summary, feedback, the next slice.

use crate::machine::event::Event;
use crate::machine::next::Todo;
use crate::machine::run::RunState;
use crate::machine::value::OpenStep;
use crate::model::value::Outcome;

use crate::playbook::value::finished;

pub fn next(_run: &RunState, _step: &OpenStep, _epic: u32) -> Option<Todo> {
    None
}

pub fn decide(_run: &RunState, step: &OpenStep, _epic: u32) -> Vec<Event> {
    vec![finished(step, Outcome::NoProgress, "not there yet")]
}
