//! Plays the effects of one step for the tests of the actions.

use crate::machine::event::{GitFacts, GitFinished, GitIntended, GitOperation, Probe};
use crate::machine::todo::{Effect, Todo};
use crate::model::value::{Action, Outcome, Task, Verification};
use crate::playbook::value::event::ValueEvent;
use crate::playbook::value::event::{ServiceHealth, StepBegan};
use crate::playbook::value::event::{ServicesChecked, VerificationsFound};
use crate::playbook::value::state::StepRecord;
use crate::playbook::value::testing::Sim;

/// Opens a step as if the decision engine had chosen it.
#[track_caller]
pub fn begin(sim: &mut Sim, action: Action) {
    let step = sim.run.value().steps_begun;
    sim.record(StepBegan { step, action, why: "test".into() });
}

/// Lets the machine decide until the step needs something; `None`: the step is finished.
#[track_caller]
pub fn advance(sim: &mut Sim) -> Option<Todo> {
    for _ in 0..50 {
        sim.run.value().step.as_ref()?;
        match sim.todo() {
            Todo::Proceed => {
                sim.proceed();
            }
            Todo::Effect(Effect::LookAtWork) => {
                let tree = crate::model::digest::Digest::of(b"tree");
                sim.record(crate::playbook::value::event::WorkSeen { tree, changes: Vec::new(), more: 0, diff: None });
            }
            other => return Some(other),
        }
    }
    panic!("the step goes in circles: {:?}", sim.run.value().step);
}

/// Lets the step end without another effect; how it ended.
#[track_caller]
pub fn ends(sim: &mut Sim) -> (Outcome, String) {
    let wanted = advance(sim);
    assert_eq!(wanted, None);
    let StepRecord { outcome, detail, .. } = sim.run.value().log.last().unwrap();
    (*outcome, detail.clone())
}

/// Runs the scripts that the step wants now; those named fail. Returns their names.
#[track_caller]
pub fn scripts_run(sim: &mut Sim, failing: &[&str]) -> Vec<String> {
    let Some(Todo::Effect(Effect::RunProbes(probes))) = advance(sim) else {
        panic!("no scripts are wanted, but {:?}", advance(sim));
    };
    let mut names = Vec::new();
    for probe in probes {
        let (Probe::Verification(id) | Probe::Task(id)) = probe.clone() else { panic!("{probe:?} is no script") };
        sim.probe(probe, !failing.contains(&id.as_str()));
        names.push(id);
    }
    names
}

/// A branch of the run's own, at `head`.
pub fn repository(sim: &mut Sim, head: &str) {
    let facts = GitFacts { branch: Some("nightloop/x".into()), head: Some(head.into()), ..GitFacts::default() };
    sim.run.git.facts = Some(facts);
}

/// Does what the step wants of the repository, which is at `head` then.
#[track_caller]
pub fn repository_does(sim: &mut Sim, head: &str) -> GitOperation {
    repository_tries(sim, head, None)
}

#[track_caller]
pub fn repository_tries(sim: &mut Sim, head: &str, problem: Option<&str>) -> GitOperation {
    let Some(Todo::Effect(Effect::Git(operation))) = advance(sim) else {
        panic!("nothing is wanted of the repository, but {:?}", advance(sim));
    };
    sim.record(GitIntended { operation: operation.clone() });
    let facts = GitFacts { branch: Some("nightloop/x".into()), head: Some(head.into()), ..GitFacts::default() };
    sim.record(GitFinished { operation: operation.clone(), facts, problem: problem.map(str::to_owned) });
    operation
}

#[track_caller]
pub fn services_are(sim: &mut Sim, healthy: bool) {
    assert_eq!(advance(sim), Some(Todo::Effect(Effect::CheckServices)));
    let one = ServiceHealth { name: "db".into(), healthy, detail: String::new(), log: String::new() };
    sim.record(ServicesChecked { services: vec![one] });
}

#[track_caller]
pub fn scripts_found(sim: &mut Sim, verifications: Vec<Verification>) {
    assert_eq!(advance(sim), Some(Todo::Effect(Effect::FindVerifications)));
    sim.record(VerificationsFound { verifications, passed_over: Vec::new() });
}

pub fn task_of<'a>(sim: &'a Sim, id: &str) -> &'a Task {
    sim.run.value().task(id).unwrap()
}

pub fn verification_of<'a>(sim: &'a Sim, id: &str) -> &'a Verification {
    &sim.run.value().verifications[id]
}

/// The task changes so far, as words.
pub fn task_puts(sim: &Sim) -> Vec<String> {
    let puts = sim.events.iter().filter_map(|event| match event.work() {
        Some(ValueEvent::TaskPut(put)) => Some(format!("{} {}", put.task.id, put.task.status.name())),
        _ => None,
    });
    puts.collect()
}
