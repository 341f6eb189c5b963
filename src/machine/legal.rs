//! Which event may follow in which state. Every pair is spelled out; what is not allowed is a value, never ignored.
//!
//! The step function asks before it accepts, the fold asks before it applies: a forged journal gets no further
//! than a wrong input does. Each family answers for its own events; here is what holds for all.

use super::event::{Event, OperatorEvent, RunEvent};
use super::family::{call, git, iteration, network, operator, run};
use super::run::RunState;

/// May this event follow in this state? The error says why not.
pub fn legal(state: &RunState, event: &Event) -> Result<(), String> {
    let after_halt = match event {
        Event::Run(RunEvent::RunResumed(_) | RunEvent::InputRejected(_)) => true,
        // A run that stopped for an answer can be given one.
        Event::Operator(OperatorEvent::DecisionAnswered(_)) => run::resumable(state).is_ok(),
        _ => false,
    };
    if state.halt.is_some() && !after_halt {
        return Err(format!("the run has ended with {}", state.state));
    }
    match event {
        Event::Run(event) => run::legal(state, event),
        Event::Iteration(event) => iteration::legal(state, event),
        Event::Call(event) => call::legal(state, event),
        Event::Operator(event) => operator::legal(state, event),
        Event::Git(event) => git::legal(state, event),
        Event::Network(event) => network::legal(state, event),
        Event::Work(event) => state.playbook().legal(state, &**event),
    }
}

#[cfg(test)]
mod tests;
