//! The decision engine, row by row and as a whole.

mod iteration;
mod lessons;
mod play;
mod rows;

use crate::model::decision::Patience;
use crate::model::value::plan::HUMAN_ACTION;
use crate::model::value::{Action, Outcome, TaskStatus, VerificationStatus};
use crate::playbook::value::event::ServiceHealth;
use crate::playbook::value::testing::Sim;

use super::{Choice, NextStep, choose};

/// What a verdict comes to, in a word.
fn says(verdict: &NextStep) -> &'static str {
    match verdict {
        NextStep::Step(action, _) => action.name(),
        NextStep::GiveUp(_) => "give up",
        NextStep::End(_) => "end",
    }
}

/// What is chosen, in a word.
fn chosen(sim: &Sim) -> String {
    match choose(&sim.run) {
        Choice::Begin(action, why) => {
            assert!(!why.is_empty(), "{action} has no reason");
            action.name().to_owned()
        }
        Choice::Close => "close".to_owned(),
        Choice::Halt(halted) => {
            assert_eq!(halted.status, crate::model::stop::ExitStatus::ExitBudgetExceeded);
            "halt".to_owned()
        }
    }
}

fn why(sim: &Sim) -> String {
    match choose(&sim.run) {
        Choice::Begin(_, why) => why,
        Choice::Close => String::new(),
        Choice::Halt(halted) => halted.detail,
    }
}

/// A run nobody waits in.
fn unattended(more: &str) -> Sim {
    let mut sim = Sim::working_with(more);
    sim.run.operator.patience = Patience::STOP;
    sim
}

fn execute(task: &str) -> Action {
    Action::Execute { task: task.into() }
}

fn done(sim: &mut Sim, id: &str) {
    sim.task(id, TaskStatus::Done, &[]);
    let step = sim.step(execute(id), Outcome::Progress);
    sim.run.value_mut().tasks.last_mut().unwrap().done_in = Some(step);
}

/// A task that only a person can unblock.
fn needs_person(sim: &mut Sim, id: &str) {
    sim.task(id, TaskStatus::Blocked, &[]);
    sim.run.value_mut().tasks.last_mut().unwrap().blocked_reason = Some(format!("{HUMAN_ACTION} plug it in"));
}

fn service(sim: &mut Sim, healthy: bool) {
    sim.run.value_mut().services =
        vec![ServiceHealth { name: "db".into(), healthy, detail: String::new(), log: String::new() }];
}

/// A failing check after so many fixes.
fn failing(sim: &mut Sim, id: &str, fix_attempts: u32, researched: bool, corrected: bool) {
    sim.verification(id, VerificationStatus::Failed);
    let check = sim.run.value_mut().verifications.get_mut(id).unwrap();
    check.fix_attempts = fix_attempts;
    check.researched = researched;
    check.corrected = corrected;
}
