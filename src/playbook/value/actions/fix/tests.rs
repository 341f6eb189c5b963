//! Tests of FIX, and of its bound together with RESEARCH.

use serde_json::json;

use super::super::play::*;
use super::*;
use crate::model::value::{Action, TaskStatus};
use crate::playbook::value::testing::{Sim, report};

fn sim_with(failing: &[&str], passed: &[&str]) -> Sim {
    let mut sim = Sim::working_with("value: { max_fix_attempts: 3 }");
    for id in failing {
        sim.verification(id, VerificationStatus::Failed);
    }
    for id in passed {
        sim.verification(id, VerificationStatus::Passed);
    }
    sim
}

fn fix(sim: &mut Sim, ids: &[&str]) {
    begin(sim, Action::Fix { verifications: ids.iter().map(|id| (*id).to_owned()).collect() });
}

fn triage(causes: &[(&str, &[&str], u32)]) -> Vec<Structured> {
    let cause = |(cause, tests, priority): &(&str, &[&str], u32)| json!({"cause": cause, "affected_tests": tests, "priority": priority, "fix_suggestion": "try"});
    let causes: Vec<_> = causes.iter().map(cause).collect();
    vec![report(Tool::ReportTriage, json!({"root_causes": causes}))]
}

#[track_caller]
fn wants_fix_of(sim: &mut Sim, subject: &str) {
    let Some(Todo::StartAgent { purpose, subject: wanted, .. }) = advance(sim) else {
        panic!("no agent is wanted, but {:?}", advance(sim));
    };
    assert_eq!((purpose, wanted.as_deref()), (Purpose::Fix, Some(subject)));
}

fn attempts(sim: &Sim, id: &str) -> u32 {
    verification_of(sim, id).fix_attempts
}

#[test]
fn a_single_failure_needs_no_triage_and_the_engine_runs_everything_again() {
    let mut sim = sim_with(&["unit/a"], &["unit/b"]);
    sim.verification("unit/c", VerificationStatus::Blocked);
    sim.run.value_mut().verifications.get_mut("unit/a").unwrap().fix_attempts = 2;
    repository(&mut sim, "c0");
    fix(&mut sim, &["unit/a"]);
    assert_eq!(repository_does(&mut sim, "c1"), GitOperation::Commit { what: BEFORE.into() });
    wants_fix_of(&mut sim, "unit/a");
    sim.agent(Purpose::Fix, Vec::new());
    assert_eq!(scripts_run(&mut sim, &[]), ["unit/a", "unit/b"]);
    assert_eq!(repository_does(&mut sim, "c2"), GitOperation::Commit { what: "fix of unit/a".into() });
    assert_eq!(ends(&mut sim).0, Outcome::Progress);
    assert_eq!((verification_of(&sim, "unit/a").status, attempts(&sim, "unit/a")), (VerificationStatus::Passed, 0));
}

#[test]
fn the_most_urgent_cause_of_real_failures_is_aimed_at() {
    let mut sim = sim_with(&["unit/a", "unit/b"], &["unit/c"]);
    fix(&mut sim, &["unit/a", "unit/b"]);
    let causes: &[(&str, &[&str], u32)] =
        &[("slow", &["unit/a"], 2), ("import", &["unit/b", "unit/c"], 1), ("dream", &["unit/zz"], 0)];
    sim.agent(Purpose::Triage, triage(causes));
    wants_fix_of(&mut sim, "unit/b");
    sim.agent(Purpose::Fix, Vec::new());
    scripts_run(&mut sim, &["unit/a", "unit/b"]);
    assert_eq!(ends(&mut sim).0, Outcome::NoProgress);
    assert_eq!((attempts(&sim, "unit/a"), attempts(&sim, "unit/b")), (0, 1), "only what was aimed at");
    assert_eq!(verification_of(&sim, "unit/a").failures.len(), 1);
}

#[test]
fn without_a_triage_everything_is_one_cause_and_a_fixer_that_fails_costs_an_attempt() {
    let mut sim = sim_with(&["unit/a", "unit/b"], &[]);
    fix(&mut sim, &["unit/a", "unit/b"]);
    let failed = AgentEnd::Failed { class: "overloaded".into(), message: "later".into() };
    sim.agent_ends(Purpose::Triage, Vec::new(), failed.clone());
    wants_fix_of(&mut sim, "unit/a,unit/b");
    sim.agent_ends(Purpose::Fix, Vec::new(), failed);
    scripts_run(&mut sim, &["unit/a", "unit/b"]);
    let (outcome, detail) = ends(&mut sim);
    assert_eq!(outcome, Outcome::NoProgress);
    assert!(detail.contains("overloaded"), "{detail}");
    assert_eq!((attempts(&sim, "unit/a"), attempts(&sim, "unit/b")), (1, 1));
}

#[test]
fn a_fix_that_lowers_what_passes_is_undone_and_its_cause_comes_last_from_then_on() {
    let mut sim = sim_with(&["unit/a", "unit/b"], &["unit/c", "unit/d"]);
    repository(&mut sim, "c0");
    fix(&mut sim, &["unit/a", "unit/b"]);
    let causes: &[(&str, &[&str], u32)] = &[("import", &["unit/a"], 1), ("slow", &["unit/b"], 2)];
    sim.agent(Purpose::Triage, triage(causes));
    repository_does(&mut sim, "c1");
    wants_fix_of(&mut sim, "unit/a");
    sim.agent(Purpose::Fix, Vec::new());
    scripts_run(&mut sim, &["unit/b", "unit/c", "unit/d"]);
    let operation = repository_does(&mut sim, "c2");
    let GitOperation::Restore { commit, why } = operation else { panic!("{operation:?}") };
    assert_eq!(commit, "c1");
    let (outcome, detail) = ends(&mut sim);
    assert_eq!(outcome, Outcome::NoProgress);
    assert!(detail.starts_with("undone"), "{detail}");
    let statuses: Vec<_> = sim.run.value().verifications.values().map(|one| one.status.name()).collect();
    assert_eq!(statuses, ["failed", "failed", "passed", "passed"], "as they were before");
    assert_eq!((attempts(&sim, "unit/a"), attempts(&sim, "unit/b")), (1, 0));
    assert_eq!((&sim.run.value().undone_causes, sim.run.value().restores), (&vec![why], 0));

    fix(&mut sim, &["unit/a", "unit/b"]);
    sim.agent(Purpose::Triage, triage(causes));
    repository_does(&mut sim, "c3");
    wants_fix_of(&mut sim, "unit/b");
}

#[test]
fn what_cannot_be_undone_is_told_as_it_is() {
    // Without a repository, and with one that does not go back.
    for git in [false, true] {
        let mut sim = sim_with(&["unit/a"], &["unit/b"]);
        if git {
            repository(&mut sim, "c0");
        }
        fix(&mut sim, &["unit/a"]);
        if git {
            repository_does(&mut sim, "c1");
        }
        sim.agent(Purpose::Fix, Vec::new());
        scripts_run(&mut sim, &["unit/a", "unit/b"]);
        if git {
            repository_tries(&mut sim, "c1", Some("the branch is gone"));
        }
        assert_eq!(ends(&mut sim).0, Outcome::NoProgress);
        assert_eq!(verification_of(&sim, "unit/b").status, VerificationStatus::Failed);
        assert_eq!((attempts(&sim, "unit/a"), attempts(&sim, "unit/b")), (1, 0));
        assert!(sim.run.value().undone_causes.is_empty());
    }
}

#[test]
fn two_checks_that_break_each_other_run_out_of_attempts() {
    let mut sim = sim_with(&["unit/a"], &["unit/b"]);
    let mut fixes = 0;
    loop {
        let failing = sim.run.value().verifications.values().find(|one| one.status == VerificationStatus::Failed);
        let failing = failing.unwrap();
        if failing.fix_attempts >= 3 {
            break;
        }
        let (id, other) = if failing.id == "unit/a" { ("unit/a", "unit/b") } else { ("unit/b", "unit/a") };
        fix(&mut sim, &[id]);
        sim.agent(Purpose::Fix, Vec::new());
        scripts_run(&mut sim, &[other]);
        assert_eq!(ends(&mut sim).0, Outcome::NoProgress, "nothing is won");
        fixes += 1;
        assert!(fixes <= 6, "endless");
    }
    assert_eq!(fixes, 6);
}

#[test]
fn fixes_of_one_check_are_at_most_twice_the_limit() {
    let mut sim = sim_with(&["unit/a"], &["unit/b"]);
    let limit = sim.run.value_settings().max_fix_attempts;
    let mut fixes = 0;
    let mut looked_up = 0;
    // The decision engine in small: fix, then research, then give up.
    loop {
        let one = verification_of(&sim, "unit/a").clone();
        if one.fix_attempts < limit {
            fix(&mut sim, &["unit/a"]);
            sim.agent(Purpose::Fix, Vec::new());
            scripts_run(&mut sim, &["unit/a"]);
            fixes += 1;
        } else if !one.researched {
            begin(&mut sim, Action::Research { verifications: vec!["unit/a".into()] });
            let found = json!({"topic": "t", "findings": "f", "sources": ["s"]});
            sim.agent(Purpose::Research, vec![report(Tool::ReportResearch, found)]);
            looked_up += 1;
        } else {
            break;
        }
        ends(&mut sim);
        assert!(fixes <= 2 * limit, "endless");
    }
    assert_eq!((fixes, looked_up), (2 * limit, 1));
}

#[test]
fn a_fixer_that_needs_a_person_blocks_the_open_task_it_names() {
    for (id, status, blocked) in
        [("T1", TaskStatus::Pending, true), ("T1", TaskStatus::Done, false), ("", TaskStatus::Pending, false)]
    {
        let mut sim = sim_with(&["unit/a"], &[]);
        sim.task("T1", status, &[]);
        fix(&mut sim, &["unit/a"]);
        let input = json!({"action": "Log in", "instructions": "Run login.", "blocked_task_id": id});
        sim.agent(Purpose::Fix, vec![report(Tool::RequestHumanAction, input)]);
        scripts_run(&mut sim, &["unit/a"]);
        assert_eq!(ends(&mut sim).0, Outcome::NoProgress);
        assert_eq!(task_of(&sim, "T1").needs_person(), blocked, "{id:?} {status:?}");
        assert_eq!(sim.run.value().human_requests[0].blocked_task_id, id);
    }
}

#[test]
fn what_no_longer_fails_is_not_fixed() {
    let mut sim = sim_with(&[], &["unit/a"]);
    fix(&mut sim, &["unit/a", "unit/gone"]);
    assert_eq!(ends(&mut sim).0, Outcome::NoProgress);
}
