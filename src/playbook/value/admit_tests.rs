//! What an agent hands in is refused with words that say what would be right.

use serde_json::{Value, json};

use crate::model::purpose::Tool;
use crate::model::value::{Action, TaskStatus};
use crate::playbook::value::event::StepBegan;
use crate::playbook::value::legal::admit;

use super::testing::{Sim, report};

/// `T1` is being worked on; `T2` is another task of the plan.
fn at_work(action: Action) -> Sim {
    let mut sim = Sim::working();
    sim.task("T1", TaskStatus::InProgress, &[]);
    sim.task("T2", TaskStatus::Pending, &["T1"]);
    sim.record(StepBegan { step: sim.run.value().steps_begun, action, why: String::new() });
    sim
}

fn said(sim: &Sim, tool: Tool, input: Value) -> Result<(), String> {
    admit(&sim.run, &report(tool, input))
}

fn complete(sim: &Sim, task: &str) -> Result<(), String> {
    said(sim, Tool::ReportTaskComplete, json!({"task_id": task, "files_created": [], "files_modified": []}))
}

fn ask(sim: &Sim, task: &str) -> Result<(), String> {
    let wish = json!({"action": "Get the key.", "instructions": "Put it there.", "blocked_task_id": task});
    said(sim, Tool::RequestHumanAction, wish)
}

#[test]
fn only_the_task_that_was_given_is_reported_complete() {
    let sim = at_work(Action::Execute { task: "T1".into() });
    assert_eq!(complete(&sim, "T1"), Ok(()));
    assert_eq!(complete(&sim, "T2"), Err("this call is for task T1, not T2".to_owned()));
    assert_eq!(complete(&sim, "T9"), Err("this call is for task T1, not T9".to_owned()));
    assert_eq!(complete(&at_work(Action::RunQc), "T1"), Err("no task is being worked on".to_owned()));
}

#[test]
fn a_person_is_asked_for_a_task_that_exists() {
    let sim = at_work(Action::Execute { task: "T1".into() });
    assert_eq!((ask(&sim, "T1"), ask(&sim, "T2"), ask(&sim, "")), (Ok(()), Ok(()), Ok(())));
    assert_eq!(ask(&sim, "T9"), Err("there is no task `T9`".to_owned()));
}

#[test]
fn nothing_is_handed_in_between_two_steps() {
    assert_eq!(complete(&Sim::working(), "T1"), Err("no step is open".to_owned()));
}
