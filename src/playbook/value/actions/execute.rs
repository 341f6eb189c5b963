//! EXECUTE: one task, its own check, and what passed before.

use crate::machine::event::Event;
use crate::machine::next::Todo;
use crate::machine::run::RunState;
use crate::machine::value::OpenStep;
use crate::model::value::Outcome;

use crate::playbook::value::finished;

pub fn next(_run: &RunState, _step: &OpenStep, _task: &str) -> Option<Todo> {
    None
}

pub fn decide(_run: &RunState, step: &OpenStep, _task: &str) -> Vec<Event> {
    vec![finished(step, Outcome::NoProgress, "not there yet")]
}

/// A task that was in progress is pending again.
pub fn put_back(_run: &RunState, _task: &str, _why: &str) -> Option<Event> {
    None
}
