//! Tests of EXECUTE.

use crate::playbook::value::event::ValueEvent;
use serde_json::json;

use super::super::play::*;
use super::*;
use crate::machine::event::AgentEnd;
use crate::model::purpose::Tool;
use crate::model::value::Action;
use crate::playbook::value::testing::{Sim, report};

fn working_on(id: &str, check: bool) -> Sim {
    let mut sim = Sim::working();
    sim.task(id, TaskStatus::Pending, &[]);
    if check {
        sim.run.value_mut().tasks[0].check = Some(vec!["true".into()]);
    }
    begin(&mut sim, Action::Execute { task: id.into() });
    sim
}

fn complete() -> Vec<Structured> {
    let input = json!({"task_id": "T1", "files_created": ["a.txt"], "files_modified": [], "completion_notes": "made"});
    vec![report(Tool::ReportTaskComplete, input)]
}

#[test]
fn a_task_is_done_when_its_check_and_everything_before_it_pass() {
    let mut sim = working_on("T1", true);
    sim.verification("unit/a", VerificationStatus::Passed);
    sim.verification("unit/b", VerificationStatus::Pending);
    repository(&mut sim, "c0");
    let Some(Todo::StartAgent { subject, .. }) = advance(&mut sim) else { panic!() };
    assert_eq!(subject.as_deref(), Some("T1"));
    assert_eq!(task_of(&sim, "T1").status, TaskStatus::InProgress);
    sim.agent(Purpose::Execute, complete());
    assert_eq!(scripts_run(&mut sim, &[]), ["T1"]);
    assert_eq!(scripts_run(&mut sim, &[]), ["unit/a"], "what never passed cannot regress");
    assert_eq!(repository_does(&mut sim, "c1"), GitOperation::Commit { what: "task T1".into() });
    assert_eq!(ends(&mut sim).0, Outcome::Progress);
    let task = task_of(&sim, "T1");
    assert_eq!((task.status, task.done_in, task.retries), (TaskStatus::Done, Some(16), 0));
    assert_eq!((task.files_created[0].as_str(), task.notes.as_str()), ("a.txt", "made"));
    assert_eq!(task_puts(&sim), ["T1 in progress", "T1 done"]);
}

#[test]
fn the_builders_word_does_not_stand_against_a_failing_check() {
    let mut sim = working_on("T1", true);
    sim.verification("unit/a", VerificationStatus::Passed);
    repository(&mut sim, "c0");
    sim.agent(Purpose::Execute, complete());
    scripts_run(&mut sim, &["T1"]);
    assert_eq!(ends(&mut sim).0, Outcome::NoProgress);
    let task = task_of(&sim, "T1");
    assert_eq!((task.status, task.retries, task.done_in), (TaskStatus::Pending, 1, None));
    assert!(task.notes.contains("exit 1, expected 1, got 2"), "{}", task.notes);
}

#[test]
fn attempts_without_a_result_block_the_task_in_the_end() {
    let mut sim = Sim::working();
    sim.task("T1", TaskStatus::Pending, &[]);
    let failed = AgentEnd::Failed { class: "overloaded".into(), message: "try later".into() };
    for end in [AgentEnd::NoReport, failed, AgentEnd::Refused("no".into())] {
        assert_eq!(task_of(&sim, "T1").status, TaskStatus::Pending);
        begin(&mut sim, Action::Execute { task: "T1".into() });
        sim.agent_ends(Purpose::Execute, Vec::new(), end);
        assert_eq!(ends(&mut sim).0, Outcome::NoProgress);
    }
    let task = task_of(&sim, "T1");
    assert_eq!((task.status, task.retries), (TaskStatus::Blocked, 3));
    assert!(!task.needs_person() && task.notes.contains("refused"), "{task:?}");
    // Chosen by mistake, it costs nothing.
    begin(&mut sim, Action::Execute { task: "T1".into() });
    assert_eq!(ends(&mut sim).0, Outcome::NoProgress);
    begin(&mut sim, Action::Execute { task: "T9".into() });
    assert_eq!(ends(&mut sim).0, Outcome::NoProgress);
}

#[test]
fn a_task_that_breaks_a_check_is_done_and_the_check_fails() {
    let mut sim = working_on("T1", false);
    sim.verification("unit/a", VerificationStatus::Passed);
    sim.verification("unit/b", VerificationStatus::Passed);
    sim.agent(Purpose::Execute, complete());
    assert_eq!(scripts_run(&mut sim, &["unit/b"]), ["unit/a", "unit/b"]);
    let (outcome, detail) = ends(&mut sim);
    assert_eq!(outcome, Outcome::NoProgress);
    assert!(detail.contains("unit/b") && !detail.contains("unit/a"), "{detail}");
    assert_eq!(task_of(&sim, "T1").status, TaskStatus::Done);
    assert_eq!(verification_of(&sim, "unit/a").status, VerificationStatus::Passed);
    let broken = verification_of(&sim, "unit/b");
    assert_eq!((broken.status, broken.failures.len()), (VerificationStatus::Failed, 1));
    assert_eq!(broken.failures[0].excerpt, "expected 1, got 2");
}

#[test]
fn what_only_a_person_can_do_blocks_the_task_and_is_kept() {
    let mut sim = working_on("T1", true);
    let input = json!({"action": "Log in", "instructions": "Run login.", "blocked_task_id": "",
        "verification_command": ["test", "-e", "token"]});
    sim.agent_ends(Purpose::Execute, vec![report(Tool::RequestHumanAction, input)], AgentEnd::Reported);
    assert_eq!(ends(&mut sim).0, Outcome::NoProgress);
    let task = task_of(&sim, "T1");
    assert!(task.needs_person(), "{task:?}");
    assert_eq!((task.blocked_reason.as_deref(), task.retries), (Some("HUMAN_ACTION: Log in"), 0));
    let request = &sim.run.value().human_requests[0];
    assert_eq!((request.blocked_task_id.as_str(), request.instructions.as_str()), ("T1", "Run login."));
    assert!(request.verification_command.is_some());
}

#[test]
fn only_what_is_in_progress_is_put_back() {
    let mut sim = working_on("T1", false);
    assert_eq!(put_back(&sim.run, "T1", "cut"), None);
    advance(&mut sim);
    let put_back = put_back(&sim.run, "T1", "cut").unwrap();
    let Some(ValueEvent::TaskPut(put)) = put_back.work() else { panic!() };
    assert_eq!((put.task.status, put.task.retries), (TaskStatus::Pending, 0));
}
