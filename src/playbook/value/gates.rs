//! The gates before the first iteration: which one is next, and the script of each.

use crate::machine::event::Event;
use crate::machine::next::Todo;
use crate::machine::run::RunState;
use crate::machine::value::OpenStep;
use crate::model::value::{Gate, Outcome};

use super::{Choice, finished};

/// The first gate that is not passed.
pub fn choose(_run: &RunState) -> Choice {
    Choice::Close
}

/// The effect that this gate misses.
pub fn next(_run: &RunState, _step: &OpenStep, _gate: Gate) -> Option<Todo> {
    None
}

/// What follows once no effect is missing.
pub fn decide(_run: &RunState, step: &OpenStep, _gate: Gate) -> Vec<Event> {
    vec![finished(step, Outcome::Failed, "not there yet")]
}
