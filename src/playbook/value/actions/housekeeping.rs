//! What follows a step by itself: value checks, plan health, strategy, coherence.

use crate::machine::event::Event;
use crate::machine::next::Todo;
use crate::machine::run::RunState;
use crate::machine::value::OpenStep;
use crate::model::value::Outcome;

use crate::playbook::value::finished;

pub fn next_vrc(_run: &RunState, _step: &OpenStep, _mode: crate::model::value::VrcMode) -> Option<Todo> {
    None
}

pub fn decide_vrc(_run: &RunState, step: &OpenStep, _mode: crate::model::value::VrcMode) -> Vec<Event> {
    vec![finished(step, Outcome::NoProgress, "not there yet")]
}

pub fn next_plan_health(_run: &RunState, _step: &OpenStep) -> Option<Todo> {
    None
}

pub fn decide_plan_health(_run: &RunState, step: &OpenStep) -> Vec<Event> {
    vec![finished(step, Outcome::NoProgress, "not there yet")]
}

pub fn next_strategy(_run: &RunState, _step: &OpenStep) -> Option<Todo> {
    None
}

pub fn decide_strategy(_run: &RunState, step: &OpenStep) -> Vec<Event> {
    vec![finished(step, Outcome::NoProgress, "not there yet")]
}

pub fn next_coherence(_run: &RunState, _step: &OpenStep) -> Option<Todo> {
    None
}

pub fn decide_coherence(_run: &RunState, step: &OpenStep) -> Vec<Event> {
    vec![finished(step, Outcome::NoProgress, "not there yet")]
}
