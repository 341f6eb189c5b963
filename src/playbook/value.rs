//! The value playbook: from a vision to value, in steps that a pure decision engine chooses.
//!
//! Role: say which step comes next and how an open one goes on. Every step is a small script of two functions in
//! a file of its own: `next` names the effect that is missing, `decide` what follows once none is.
//! Not its role: making effects (`engine::value`), folding (`machine::value`), texts (`prompts/value/`).
//!
//! Invariants: nothing here raises a limit; where `next` has nothing to do, `decide` has something to say.

pub mod actions;
#[cfg(test)]
mod admit_tests;
pub mod brief;
pub mod decide;
pub mod gates;
pub mod monitor;
#[cfg(test)]
mod proof_tests;
#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod undo_tests;
pub mod words;

use crate::machine::event::{Event, RunHalted, StepBegan, StepFinished};
use crate::machine::iteration::Iteration;
use crate::machine::next::{Effect, Playbook, Todo};
use crate::machine::run::RunState;
use crate::machine::state::State;
use crate::machine::value::OpenStep;
use crate::model::value::{Action, Outcome};

/// From VISION.md and PRD.md to an exit gate.
#[derive(Debug, Clone, Copy, Default)]
pub struct Value;

/// What comes after a finished step.
#[derive(Debug, Clone, PartialEq)]
pub enum Choice {
    Begin(Action, String),
    /// The preparation, or this iteration, is over.
    Close,
    Halt(Box<RunHalted>),
}

impl Playbook for Value {
    fn prepare(&self, run: &RunState) -> Option<Todo> {
        go_on(run)
    }

    fn work(&self, run: &RunState, _iteration: &Iteration) -> Option<Todo> {
        go_on(run)
    }

    fn decide(&self, run: &RunState) -> Vec<Event> {
        match &run.value.step {
            Some(step) if run.cut.is_some() => actions::cut(run, step),
            Some(step) => decide_in(run, step),
            // The machine closes a cut iteration; before the first one there is none, and the gates say how it ends.
            None if run.cut.is_some() && run.state != State::DreamGoal => Vec::new(),
            None => match choose(run) {
                Choice::Begin(action, why) => {
                    vec![StepBegan { step: run.value.steps_begun, action, why }.into()]
                }
                Choice::Close => Vec::new(),
                Choice::Halt(halted) => vec![(*halted).into()],
            },
        }
    }
}

fn choose(run: &RunState) -> Choice {
    if run.state == State::DreamGoal { gates::choose(run) } else { decide::choose(run) }
}

/// What the open step, or the next one, needs; `None`: there is nothing more to do here.
fn go_on(run: &RunState) -> Option<Todo> {
    // A person's undo comes between steps: it changes the files that the next step stands on.
    if let (Some(iteration), None) = (run.value.undo, &run.value.step) {
        return Some(Todo::Effect(Effect::Undo(iteration)));
    }
    match &run.value.step {
        // Nothing more is begun in a step that a limit cut.
        Some(_) if run.cut.is_some() => Some(Todo::Proceed),
        Some(step) => Some(next_in(run, step).unwrap_or(Todo::Proceed)),
        None if choose(run) == Choice::Close => None,
        None => Some(Todo::Proceed),
    }
}

fn next_in(run: &RunState, step: &OpenStep) -> Option<Todo> {
    match &step.action {
        Action::Gate { gate } => gates::next(run, step, *gate),
        _ => actions::next(run, step),
    }
}

fn decide_in(run: &RunState, step: &OpenStep) -> Vec<Event> {
    match &step.action {
        Action::Gate { gate } => gates::decide(run, step, *gate),
        _ => actions::decide(run, step),
    }
}

/// The event that closes a step.
pub(crate) fn finished(step: &OpenStep, outcome: Outcome, detail: impl Into<String>) -> Event {
    StepFinished { step: step.number, outcome, detail: detail.into() }.into()
}
