//! INTERACTIVE_PAUSE: what only a person can do, with a command that proves it.

use crate::machine::event::Event;
use crate::machine::next::Todo;
use crate::machine::run::RunState;
use crate::machine::value::OpenStep;
use crate::model::value::Outcome;

use crate::playbook::value::finished;

pub fn next(_run: &RunState, _step: &OpenStep) -> Option<Todo> {
    None
}

pub fn decide(_run: &RunState, step: &OpenStep) -> Vec<Event> {
    vec![finished(step, Outcome::NoProgress, "not there yet")]
}
