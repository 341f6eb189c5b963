//! The actions of the decision engine: one file for each, or for a few that belong together.

pub mod ask;
pub mod correct;
#[cfg(test)]
mod course_tests;
pub mod epics;
pub mod evaluate;
pub mod execute;
pub mod exit_gate;
pub mod fix;
pub mod follow_up;
pub mod housekeeping;
pub mod pause;
#[cfg(test)]
pub mod play;
pub mod qc;
pub mod research;
pub mod service;

use crate::machine::event::Event;
use crate::machine::run::RunState;
use crate::machine::todo::Todo;
use crate::model::value::{Action, Outcome};
use crate::playbook::value::state::OpenStep;

use super::finished;

/// The effect that the open step misses; `None`: everything is there, decide.
pub fn next(run: &RunState, step: &OpenStep) -> Option<Todo> {
    match &step.action {
        Action::Gate { .. } => None,
        Action::Execute { task } => execute::next(run, step, task),
        Action::GenerateQc => qc::next_generate(run, step),
        Action::RunQc => qc::next_run(run, step),
        Action::Fix { verifications } => fix::next(run, step, verifications),
        Action::CriticalEval => evaluate::next(run, step),
        Action::CourseCorrect => correct::next(run, step),
        Action::Research { verifications } => research::next(run, step, verifications),
        Action::InteractivePause => pause::next(run, step),
        Action::ServiceFix { services } => service::next(run, step, services),
        Action::CoherenceEval => housekeeping::next_coherence(run, step),
        Action::ExitGate => exit_gate::next(run, step),
        Action::EpicBoundary { epic } => epics::next(run, step, *epic),
        Action::Vrc { mode } => housekeeping::next_vrc(run, step, *mode),
        Action::PlanHealth => housekeeping::next_plan_health(run, step),
        Action::Strategy => housekeeping::next_strategy(run, step),
    }
}

/// What follows once no effect is missing: questions, changes of the plan, the end of the step.
pub fn decide(run: &RunState, step: &OpenStep) -> Vec<Event> {
    match &step.action {
        Action::Gate { .. } => Vec::new(),
        Action::Execute { task } => execute::decide(run, step, task),
        Action::GenerateQc => qc::decide_generate(run, step),
        Action::RunQc => qc::decide_run(run, step),
        Action::Fix { verifications } => fix::decide(run, step, verifications),
        Action::CriticalEval => evaluate::decide(run, step),
        Action::CourseCorrect => correct::decide(run, step),
        Action::Research { verifications } => research::decide(run, step, verifications),
        Action::InteractivePause => pause::decide(run, step),
        Action::ServiceFix { services } => service::decide(run, step, services),
        Action::CoherenceEval => housekeeping::decide_coherence(run, step),
        Action::ExitGate => exit_gate::decide(run, step),
        Action::EpicBoundary { epic } => epics::decide(run, step, *epic),
        Action::Vrc { mode } => housekeeping::decide_vrc(run, step, *mode),
        Action::PlanHealth => housekeeping::decide_plan_health(run, step),
        Action::Strategy => housekeeping::decide_strategy(run, step),
    }
}

/// A limit cut the step: what was in progress is pending again, and nothing is claimed.
pub fn cut(run: &RunState, step: &OpenStep) -> Vec<Event> {
    let why = run.cut.as_ref().map_or_else(String::new, |cut| cut.exhausted.dimension.to_string());
    let mut events = Vec::new();
    if let Action::Execute { task } = &step.action {
        events.extend(execute::put_back(run, task, "a limit cut it"));
    }
    let outcome = match step.action {
        Action::Gate { .. } => Outcome::Failed,
        _ => Outcome::NoProgress,
    };
    events.push(finished(step, outcome, format!("cut: the budget for {why} is used up")));
    events
}
