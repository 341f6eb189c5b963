//! What a playbook decides at once, and the rest of it where an engine died in the middle.
//!
//! Role: follow the decisions of a journal, so that a batch that was cut can be made whole. Not its role: judging
//! whether a decision follows (`evidence::verify`).
//!
//! Why: the events of a batch are made from one state. Decided anew from the state after some of them they would come
//! out differently: a task that is done hides the checks it broke, a correction that is noted counts as a second one.

use std::collections::VecDeque;

use super::event::{Event, OperatorEvent, Origin, RunEvent};
use super::run::RunState;
use super::step::{self, Input};

/// The decisions that still belong to the latest ones of a journal.
#[derive(Debug, Default)]
pub struct Batch {
    rest: VecDeque<Event>,
}

impl Batch {
    /// Takes the next event; `state` is the one before it.
    pub fn follow(&mut self, state: &RunState, event: &Event) {
        if passes(event) {
            return;
        }
        if !is_of_a_step(state, event) {
            self.rest.clear();
            return;
        }
        if self.rest.is_empty() {
            self.rest.extend(step::step(state, Input::Proceed));
        }
        if self.rest.pop_front().as_ref() != Some(event) {
            self.rest.clear();
        }
    }

    /// What is left to be recorded, in this order.
    pub fn into_rest(self) -> Vec<Event> {
        self.rest.into()
    }
}

/// Going on does not take a decision back: its rest follows right then.
pub fn passes(event: &Event) -> bool {
    matches!(event, Event::Run(RunEvent::RunResumed(_)))
}

/// Does a playbook decide this within its steps?
pub fn is_of_a_step(state: &RunState, event: &Event) -> bool {
    match event {
        Event::Work(work) => work.origin() == Origin::Decided && state.playbook().has_steps(),
        Event::Operator(OperatorEvent::DecisionAsked(asked)) => {
            asked.request.host().is_none()
                && asked.asked_by.is_none()
                && state.call.is_none()
                && state.open_step().is_some()
        }
        _ => false,
    }
}
