//! The steps that judge and steer, played through with the real machine.

mod correct;
mod epics;
mod evaluate;
mod exit_gate;
mod housekeeping;
mod pause;

use crate::playbook::value::event::ValueEvent;
use serde_json::{Value, json};

use crate::machine::event::{AgentEnd, Event, GitFacts, GitFinished, GitOperation};
use crate::machine::todo::{Effect, Todo};
use crate::model::purpose::Tool;
use crate::model::value::tools::Structured;
use crate::model::value::{Action, Task, TaskStatus, Verification};
use crate::playbook::value::event::{StepBegan, StepFinished};
use crate::playbook::value::testing::{Sim, report};

fn begin(sim: &mut Sim, action: Action) {
    let step = sim.run.value().steps_begun;
    sim.record(StepBegan { step, action, why: String::new() });
}

/// Lets the machine decide until the open step is finished.
#[track_caller]
fn finish(sim: &mut Sim) -> StepFinished {
    for _ in 0..5 {
        for event in sim.proceed() {
            if let Some(ValueEvent::StepFinished(finished)) = event.work() {
                return finished.clone();
            }
        }
    }
    panic!("the step does not end: {:?}", sim.run.value().step);
}

fn failed() -> AgentEnd {
    AgentEnd::Failed { class: "server".into(), message: "no answer".into() }
}

fn vrc(score: &str, recommendation: &str, gaps: Value) -> Structured {
    let input = json!({
        "value_score": score, "deliverables_total": 2, "deliverables_verified": 1,
        "gaps": gaps, "recommendation": recommendation, "summary": "as seen",
    });
    report(Tool::ReportVrc, input)
}

fn finding(severity: &str, description: &str) -> Structured {
    let input = json!({ "severity": severity, "description": description, "user_impact": "Nobody is greeted." });
    report(Tool::ReportEvalFinding, input)
}

fn add(id: &str, description: &str) -> Structured {
    let input = json!({
        "action": "add", "task_id": id, "description": description, "value": "More.", "acceptance": "It is there.",
    });
    report(Tool::ManageTask, input)
}

fn status(sim: &Sim, task: &str) -> TaskStatus {
    sim.run.value().task(task).unwrap().status
}

fn check<'a>(sim: &'a Sim, id: &str) -> &'a Verification {
    &sim.run.value().verifications[id]
}

fn tasks_like<'a>(sim: &'a Sim, prefix: &str) -> Vec<&'a Task> {
    sim.run.value().tasks.iter().filter(|task| task.id.starts_with(prefix)).collect()
}

/// The repository as it is once the run has a branch of its own.
fn with_git(sim: &mut Sim) {
    git(sim, GitOperation::Prepare, None);
}

fn git(sim: &mut Sim, operation: GitOperation, problem: Option<&str>) {
    let head = match &operation {
        GitOperation::Checkpoint { label } => format!("commit-of-{label}"),
        GitOperation::Prepare
        | GitOperation::Commit { .. }
        | GitOperation::CommitItem { .. }
        | GitOperation::Restore { .. } => "head".to_owned(),
    };
    let facts = GitFacts { branch: Some("nightloop/x".into()), head: Some(head), ..GitFacts::default() };
    sim.record(GitFinished { operation, facts, problem: problem.map(str::to_owned) });
}

/// Does what the machine wants done to the repository, and says what that was.
#[track_caller]
fn do_git(sim: &mut Sim, problem: Option<&str>) -> GitOperation {
    let Todo::Effect(Effect::Git(operation)) = sim.settle() else { panic!("not git, but {:?}", sim.todo()) };
    git(sim, operation.clone(), problem);
    operation
}
