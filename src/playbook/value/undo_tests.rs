//! Taking an iteration back: when it may be asked for, and what it means for the plan.

use crate::machine::event::*;
use crate::machine::iteration::Iteration;
use crate::machine::legal::legal;
use crate::machine::todo::{Effect, Todo};
use crate::model::value::{Action, Outcome, TaskStatus, VerificationStatus};
use crate::playbook::value::state::StepRecord;

use super::testing::{Sim, task, verification};

fn asked(iteration: u32) -> Event {
    UndoRequested { iteration, by: "ada".into() }.into()
}

fn finished(operation: GitOperation, head: &str, problem: Option<&str>) -> GitFinished {
    let facts = GitFacts { branch: Some("nightloop/x".into()), head: Some(head.into()), ..GitFacts::default() };
    GitFinished { operation, facts, problem: problem.map(str::to_owned) }
}

/// Iteration 0 is done, iteration 1 goes on; both beginnings are known.
fn second_iteration(problem: Option<&str>) -> Sim {
    let mut sim = Sim::working();
    sim.run.current = None;
    sim.record(finished(GitOperation::Prepare, "c0", None));
    sim.run.state = crate::machine::state::State::SpawnSubagent;
    sim.begin_iteration();
    let done = sim.run.current.take().unwrap();
    sim.run.done.push(done);
    sim.record(finished(GitOperation::Commit { what: "w".into() }, "c1", problem));
    sim.begin_iteration();
    sim
}

#[test]
fn only_a_finished_iteration_with_a_known_beginning_is_taken_back_and_once() {
    let mut sim = second_iteration(None);
    assert_eq!(sim.run.git.starts, [(0, "c0".to_owned()), (1, "c1".to_owned())].into());
    assert_eq!(legal(&sim.run, &asked(0)), Ok(()));
    assert!(legal(&sim.run, &asked(1)).unwrap_err().contains("not finished"));
    assert!(legal(&sim.run, &asked(7)).unwrap_err().contains("not finished"));
    let undone = |iteration| Event::from(IterationUndone { iteration, files: vec![], head: None, problem: None });
    assert!(legal(&sim.run, &undone(0)).is_err(), "nobody asked");
    sim.record(asked(0));
    assert!(legal(&sim.run, &asked(0)).unwrap_err().contains("already"));
    assert!(legal(&sim.run, &undone(1)).is_err(), "that is not what was asked for");
    assert_eq!(sim.todo(), Todo::Effect(Effect::Undo(0)));
    sim.record(undone(0));
    assert!(legal(&sim.run, &asked(0)).unwrap_err().contains("already"));

    let mut certified = second_iteration(None);
    certified.run.value_mut().exit_gate_passed = Some(20);
    assert_eq!(legal(&certified.run, &asked(0)), Ok(()), "it comes before the certificate");
    certified.run.state = crate::machine::state::State::BudgetCheck;
    assert!(legal(&certified.run, &asked(0)).unwrap_err().contains("certified"), "the success would not wait");

    let mut without = second_iteration(None);
    without.run.git.facts.as_mut().unwrap().branch = None;
    assert!(legal(&without.run, &asked(0)).unwrap_err().contains("no branch"));
}

#[test]
fn an_iteration_that_began_with_uncommitted_work_has_no_beginning() {
    let sim = second_iteration(Some("the workspace is on branch main"));
    assert_eq!(sim.run.git.starts, [(0, "c0".to_owned())].into());
}

#[test]
fn what_was_proved_with_files_that_are_gone_is_not_proved() {
    let mut sim = second_iteration(None);
    let value = sim.run.value_mut();
    for (id, step) in [("early", 3), ("later", 4)] {
        let mut task = task(id);
        task.status = TaskStatus::Done;
        task.done_in = Some(step);
        value.tasks.push(task);
        value.log.push(StepRecord {
            step,
            iteration: Some(step - 3),
            action: Action::Execute { task: id.into() },
            outcome: Outcome::Progress,
            detail: String::new(),
            tokens: 0,
            millis: 0,
            cut: false,
        });
    }
    let passed = verification("unit/a", VerificationStatus::Passed);
    value.verifications.insert(passed.id.clone(), passed);
    value.exit_gate_passed = Some(4);
    let before = value.clone();
    sim.record(asked(0));
    let failed = |problem: Option<&str>| IterationUndone {
        iteration: 0,
        files: vec!["a.txt".into()],
        head: Some("c2".into()),
        problem: problem.map(str::to_owned),
    };
    sim.record(failed(Some("changed again")));
    assert_eq!(*sim.run.value(), before, "nothing was taken back");
    sim.record(asked(0));
    sim.record(failed(None));
    let value = sim.run.value();
    assert_eq!(value.task("early").map(|task| (task.status, task.done_in)), Some((TaskStatus::Pending, None)));
    assert_eq!(value.task("later").map(|task| task.status), Some(TaskStatus::Done));
    assert_eq!(value.count(VerificationStatus::Passed), 0);
    assert_eq!(value.exit_gate_passed, None);
    assert_eq!(sim.run.git.facts.as_ref().and_then(|facts| facts.head.as_deref()), Some("c2"));
    assert_eq!((sim.run.git.taken_back[&0].by.as_str(), sim.run.git.taken_back[&0].files.len()), ("ada", 1));
    assert!(sim.run.done.iter().all(|iteration: &Iteration| iteration.number() == 0), "the record stays");
}
