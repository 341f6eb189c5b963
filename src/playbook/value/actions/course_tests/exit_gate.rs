//! EXIT_GATE: every way it stays shut, and the one way it opens.

use super::*;
use crate::machine::event::{Phase, Probe};
use crate::model::criterion::{Criterion, Proof};
use crate::model::purpose::Purpose;
use crate::model::value::{Outcome, TaskSource, VerificationStatus as Status};
use crate::playbook::value::event::StepFinished;
use crate::playbook::value::testing::{LOOP, result};

fn ready() -> Sim {
    let mut sim = Sim::working();
    sim.task("T1", TaskStatus::Done, &[]);
    sim.task("T2", TaskStatus::Descoped, &[]);
    sim.verification("unit/a", Status::Passed);
    sim.verification("value/b", Status::Passed);
    sim
}

/// Begins the gate and plays the sweep; these fail.
#[track_caller]
fn sweep(sim: &mut Sim, failing: &[&str]) {
    begin(sim, Action::ExitGate);
    let all: Vec<String> = sim.run.value().verifications.keys().cloned().collect();
    let probes: Vec<Probe> = all.iter().cloned().map(Probe::Verification).collect();
    assert_eq!(sim.settle(), Todo::Effect(Effect::RunProbes(probes)));
    for id in all {
        let passes = !failing.contains(&id.as_str());
        sim.probe(Probe::Verification(id), passes);
    }
    // What had passed is run again, and fails again.
    while let Todo::Effect(Effect::RunProbesAgain(nth, doubted)) = sim.todo() {
        let step = sim.run.value().step.as_ref().unwrap().number;
        for probe in doubted {
            sim.probed(Phase::StepAgain(step, nth), probe, result(false));
        }
    }
}

/// The gate with this judgement.
#[track_caller]
fn judged(sim: &mut Sim, report: Structured) -> StepFinished {
    sweep(sim, &[]);
    sim.agent(Purpose::ExitGate, vec![report]);
    finish(sim)
}

fn is_shut(finished: &StepFinished, why: &str) {
    assert_eq!(finished.outcome, Outcome::Failed);
    assert!(finished.detail.contains(why), "{}", finished.detail);
}

#[test]
fn it_opens_after_sweep_judge_evaluation_and_checkpoint() {
    let mut sim = ready();
    with_git(&mut sim);
    sim.verification("unit/lost", Status::Blocked);
    sweep(&mut sim, &[]);
    sim.agent(
        Purpose::ExitGate,
        vec![vrc("0.95", "SHIP_READY", json!([{ "description": "d", "severity": "polish" }]))],
    );
    sim.agent(Purpose::CriticalEval, vec![finding("degraded", "Long names are cut.")]);
    assert_eq!(do_git(&mut sim, None), GitOperation::Checkpoint { label: "exit-gate".into() });
    let finished = finish(&mut sim);
    assert_eq!(finished.outcome, Outcome::Passed);
    assert_eq!(sim.run.value().exit_gate_passed, Some(finished.step));
    assert_eq!(check(&sim, "unit/lost").status, Status::Passed, "given up, but it passes after all");
    let taken = sim.run.value().latest_vrc().unwrap();
    assert_eq!((taken.value_score.to_string().as_str(), taken.carried, taken.step), ("0.95", false, finished.step));
    assert_eq!(sim.run.value().tasks.len(), 2, "nothing is left to do");
}

#[test]
fn without_a_repository_there_is_no_checkpoint_to_wait_for() {
    let mut sim = ready();
    sweep(&mut sim, &[]);
    sim.agent(Purpose::ExitGate, vec![vrc("1", "SHIP_READY", json!([]))]);
    sim.agent(Purpose::CriticalEval, Vec::new());
    assert_eq!(finish(&mut sim).outcome, Outcome::Passed);
}

#[test]
fn a_checkpoint_that_fails_is_told_and_holds_nothing_up() {
    let mut sim = ready();
    with_git(&mut sim);
    sweep(&mut sim, &[]);
    sim.agent(Purpose::ExitGate, vec![vrc("1", "SHIP_READY", json!([]))]);
    sim.agent(Purpose::CriticalEval, Vec::new());
    do_git(&mut sim, Some("the branch is gone"));
    let finished = finish(&mut sim);
    assert_eq!(finished.outcome, Outcome::Passed);
    assert!(finished.detail.contains("the branch is gone"));
}

#[test]
fn unfinished_tasks_keep_it_shut_before_anything_runs() {
    for open in [TaskStatus::Pending, TaskStatus::Blocked, TaskStatus::InProgress] {
        let mut sim = ready();
        sim.task("T9", open, &[]);
        begin(&mut sim, Action::ExitGate);
        is_shut(&finish(&mut sim), "T9");
    }
}

#[test]
fn a_check_that_fails_keeps_it_shut_and_is_failing_from_then_on() {
    let mut sim = ready();
    sim.verification("unit/lost", Status::Blocked);
    sweep(&mut sim, &["value/b", "unit/lost"]);
    let finished = finish(&mut sim);
    is_shut(&finished, "unit/lost (given up), value/b");
    let failed = check(&sim, "value/b");
    assert_eq!((failed.status, failed.runs, failed.failures.len()), (Status::Failed, 1, 1));
    assert_eq!(failed.failures[0].step, finished.step);
    assert_eq!(check(&sim, "unit/lost").status, Status::Blocked, "given up stays given up");
    assert!(sim.run.value().vrcs.is_empty(), "no judge was asked");
}

#[test]
fn without_scripts_it_opens_only_after_every_try_to_write_some_and_on_a_declared_check() {
    let mut sim = ready();
    sim.run.value_mut().verifications.clear();
    begin(&mut sim, Action::ExitGate);
    is_shut(&finish(&mut sim), "no check at all");
    let failed = sim.run.value().log.last().unwrap().clone();
    for _ in 0..3 {
        let mut generation = failed.clone();
        generation.action = Action::GenerateQc;
        sim.run.value_mut().log.push(generation);
    }
    begin(&mut sim, Action::ExitGate);
    is_shut(&finish(&mut sim), "no criterion has one");
    // What a person declared is run all the same.
    let proof = Proof::Check { argv: vec!["true".into()], timeout_seconds: 1 };
    sim.run.criteria.push(Criterion {
        id: "c".into(),
        text: String::new(),
        proof,
        protects: Vec::new(),
        hidden: None,
        writes: Vec::new(),
    });
    begin(&mut sim, Action::ExitGate);
    sim.agent(Purpose::ExitGate, vec![vrc("1", "SHIP_READY", json!([]))]);
    sim.agent(Purpose::CriticalEval, Vec::new());
    let finished = finish(&mut sim);
    assert_eq!(finished.outcome, Outcome::Passed);
    assert!(finished.detail.contains("no check exists after 3 tries"), "{}", finished.detail);
}

#[test]
fn a_judge_that_does_not_report_keeps_it_shut_and_nothing_is_carried_forward() {
    let mut sim = ready();
    begin(&mut sim, Action::Vrc { mode: crate::model::value::VrcMode::Full });
    sim.agent(Purpose::VrcFull, vec![vrc("1", "SHIP_READY", json!([]))]);
    finish(&mut sim);
    sweep(&mut sim, &[]);
    sim.agent_ends(Purpose::ExitGate, Vec::new(), failed());
    is_shut(&finish(&mut sim), "no answer");
    assert_eq!(sim.run.value().vrcs.len(), 1);
}

#[test]
fn only_ship_ready_without_debt_opens_it() {
    for recommendation in ["CONTINUE", "COURSE_CORRECT", "DESCOPE"] {
        is_shut(&judged(&mut ready(), vrc("1", recommendation, json!([]))), recommendation);
    }
    for severity in ["degraded", "blocking", "critical"] {
        let gaps = json!([{ "description": "greets only Ann", "severity": severity }]);
        is_shut(&judged(&mut ready(), vrc("1", "SHIP_READY", gaps)), "greets only Ann");
    }
}

#[test]
fn the_missing_value_must_be_small_enough_for_a_certificate() {
    is_shut(&judged(&mut ready(), vrc("0.9", "SHIP_READY", json!([]))), "0.1 is not less than R_p 0.1");
    let exact = LOOP.replace("[EXACT, CONVERGED]", "[EXACT]");
    let mut sim = ready();
    let only_exact = Sim::declared(&exact, sim.run.operator.patience);
    sim.run.certificates = only_exact.run.certificates;
    is_shut(&judged(&mut sim, vrc("0.99", "SHIP_READY", json!([]))), "0.01");
}

fn gaps() -> serde_json::Value {
    json!([
        { "id": "g1", "description": "no help", "severity": "blocking", "suggested_task": "Write a help page." },
        { "id": "", "description": "dull", "severity": "polish", "suggested_task": "Choose other colours for it." },
        { "id": "", "description": "slow", "severity": "degraded", "suggested_task": "Start within one second." },
        { "id": "g4", "description": "vague", "severity": "critical" },
    ])
}

#[test]
fn gaps_become_tasks_on_each_attempt_the_same_one_twice() {
    let mut sim = ready();
    judged(&mut sim, vrc("0.5", "CONTINUE", gaps()));
    let made: Vec<_> = tasks_like(&sim, "EG-").iter().map(|task| (task.id.clone(), task.source)).collect();
    assert_eq!(made.len(), 3, "all but polish, whether or not the judge says how: {made:?}");
    assert_eq!(made[0], ("EG-1-g1".to_owned(), TaskSource::ExitGate));
    let help = sim.run.value().task("EG-1-g1").unwrap();
    assert_eq!(help.acceptance, "Gap 'g1' resolved: no help");
    // The second attempt finds as much again; the third one would only feed itself.
    for most in [6, 6] {
        for task in &mut sim.run.value_mut().tasks {
            task.status = TaskStatus::Done;
        }
        is_shut(&judged(&mut sim, vrc("0.5", "CONTINUE", gaps())), "CONTINUE");
        assert_eq!(tasks_like(&sim, "EG-").len(), most);
    }
    assert_eq!(sim.run.value().exit_gate_attempts, 3);
    // Runs from before made tasks on the first attempt alone.
    let mut older = ready();
    older.run.started.reducer_version = 6;
    older.run.value_mut().exit_gate_attempts = 1;
    judged(&mut older, vrc("0.5", "CONTINUE", gaps()));
    assert_eq!(tasks_like(&older, "EG-").len(), 0);
}

#[test]
fn a_grave_finding_of_the_last_evaluation_keeps_it_shut() {
    let mut sim = ready();
    sweep(&mut sim, &[]);
    sim.agent(Purpose::ExitGate, vec![vrc("1", "SHIP_READY", json!([]))]);
    sim.agent(Purpose::CriticalEval, vec![finding("blocking", "The help page is empty.")]);
    is_shut(&finish(&mut sim), "1 blocking");
    assert_eq!(tasks_like(&sim, "CE-").len(), 1);
    assert!(sim.run.value().exit_gate_passed.is_none());
}

#[test]
fn an_evaluator_that_fails_keeps_it_shut() {
    let mut sim = ready();
    sweep(&mut sim, &[]);
    sim.agent(Purpose::ExitGate, vec![vrc("1", "SHIP_READY", json!([]))]);
    sim.agent_ends(Purpose::CriticalEval, Vec::new(), failed());
    is_shut(&finish(&mut sim), "no last evaluation");
}

#[test]
fn an_evaluator_that_breaks_off_after_a_small_finding_keeps_it_shut() {
    let mut sim = ready();
    sweep(&mut sim, &[]);
    sim.agent(Purpose::ExitGate, vec![vrc("1", "SHIP_READY", json!([]))]);
    sim.agent_ends(Purpose::CriticalEval, vec![finding("polish", "The colours are dull.")], failed());
    is_shut(&finish(&mut sim), "broke off: it failed: no answer");
}
