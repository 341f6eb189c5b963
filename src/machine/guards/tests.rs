//! What speaks against a success: every kind of change, with every outcome of the trials.

use crate::machine::event::*;
use crate::machine::guards;
use crate::machine::replay::replayed;
use crate::machine::state::State;
use crate::machine::testing::{GREEN, Sim, World};
use crate::machine::todo::Todo;
use crate::model::decision::{Answer, Patience, Request};
use crate::model::digest::Digest;
use crate::model::guard::Class;
use crate::model::stop::{ExitStatus, StopReason};

fn changed(class: Class, kind: ChangeKind) -> GuardChange {
    GuardChange { path: "judge".into(), class, kind, sha256: None }
}

/// The phases that a run went through before its success counted.
fn phases(sim: &Sim) -> Vec<Phase> {
    let iteration = sim.run.current.as_ref().unwrap();
    let mut phases: Vec<Phase> = iteration.probes.keys().map(|(phase, _)| *phase).collect();
    phases.dedup();
    phases.retain(|phase| !matches!(phase, Phase::Iteration | Phase::Replay(_)));
    phases
}

fn asks(world: &World) -> Option<Vec<String>> {
    let mut sim = Sim::plain("");
    sim.until(world, |run| run.halt.is_some() || run.operator.waits());
    let asked = sim.run.operator.open().next()?;
    match &asked.request {
        Request::Tampering { findings, .. } => Some(findings.clone()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn work_that_leaves_the_judges_alone_is_only_taken_back() {
    let mut sim = Sim::plain("");
    assert_eq!(sim.end(&GREEN).status, ExitStatus::ExitConverged);
    assert_eq!(phases(&sim), [Phase::Reverted], "no list of names is complete");
}

#[test]
fn a_changed_judge_is_tried_from_both_sides() {
    let world = World { guards: |found| found.changed = vec![changed(Class::Test, ChangeKind::Modified)], ..GREEN };
    let mut sim = Sim::plain("");
    assert_eq!(sim.end(&world).status, ExitStatus::ExitConverged, "green where it should be, red where it should be");
    assert_eq!(phases(&sim), [Phase::Pristine, Phase::Reverted]);
    let gate = sim.run.current.as_ref().unwrap().gate.as_ref().unwrap();
    let said = gate.checks.iter().find(|check| check.name.contains("judges")).unwrap();
    assert!(said.detail.contains("fail without the work") && said.detail.contains("changed: judge"), "{}", said.detail);
}

#[test]
fn each_trial_can_raise_a_doubt() {
    let test = |found: &mut GuardsCompared| found.changed = vec![changed(Class::Test, ChangeKind::Modified)];
    let canary = |found: &mut GuardsCompared| {
        let canary = CanaryMade { path: "tests/a".into(), marker: "m".into() };
        found.canaries.insert("a".into(), canary);
    };
    type Guards = fn(&mut GuardsCompared);
    type Trial = fn(Phase) -> bool;
    let cases: [(&str, Guards, Trial, &str); 8] = [
        ("red by the old judges", test, |phase| !matches!(phase, Phase::Pristine | Phase::Reverted), "at the start"),
        ("green without the work", test, |_| true, "without any change to the work"),
        (
            "settings of an unknown tool",
            |found| found.changed = vec![changed(Class::Unknown, ChangeKind::Added)],
            |_| true,
            "without any change to the work",
        ),
        (
            "blind",
            canary,
            |phase| !matches!(phase, Phase::CanaryAtStart | Phase::Reverted),
            "does not see a failing test",
        ),
        ("a replaced program", |found| found.tools.changed_in_all = 1, |_| true, "without any change to the work"),
        (
            "tests in the code were weakened",
            |found| found.tests_in_code = true,
            |phase| !matches!(phase, Phase::Pristine | Phase::Reverted),
            "at the start",
        ),
        (
            "no replay is possible",
            |found| {
                found.without_replays = Some("no overlay".into());
                found.changed = vec![changed(Class::Guard, ChangeKind::Modified)];
            },
            |_| true,
            "cannot be run",
        ),
        (
            "judges of the last item",
            |found| {
                found.since = Some(Digest::of(b"tree"));
                found.changed_since = 2;
            },
            |phase| !matches!(phase, Phase::PristineSince | Phase::Reverted),
            "2 judges changed since",
        ),
    ];
    for (name, guards, trial, expected) in cases {
        let findings = asks(&World { guards, trial, ..GREEN }).unwrap_or_else(|| panic!("{name}: nobody is asked"));
        assert!(findings.iter().any(|finding| finding.contains(expected)), "{name}: {findings:?}");
    }
}

#[test]
fn honest_changes_cost_no_question() {
    type Guards = fn(&mut GuardsCompared);
    type Trial = fn(Phase) -> bool;
    let cases: [(&str, Guards, Trial); 4] = [
        (
            "a canary that was never seen says nothing",
            |found| {
                found.canaries.insert("a".into(), CanaryMade { path: "x".into(), marker: "m".into() });
            },
            |phase| phase != Phase::Reverted,
        ),
        (
            "a new dependency is needed",
            |found| found.tools.added_in_all = 9,
            |phase| !matches!(phase, Phase::Pristine | Phase::Reverted),
        ),
        (
            "there was no judge, so the run brought one",
            |found| {
                found.judge_at_start = false;
                found.changed = vec![changed(Class::Test, ChangeKind::Added)];
            },
            |phase| !matches!(phase, Phase::Pristine | Phase::Reverted),
        ),
        (
            "no replay is possible, and tests were added",
            |found| {
                found.without_replays = Some("no overlay".into());
                found.changed = vec![changed(Class::Test, ChangeKind::Added)];
            },
            |_| true,
        ),
    ];
    for (name, guards, trial) in cases {
        assert_eq!(asks(&World { guards, trial, ..GREEN }), None, "{name}");
    }
}

/// A doubt is decided by a person, and where none is waited for, the run can be resumed after the answer.
#[test]
fn people_decide_about_a_doubt() {
    let world = World {
        guards: |found| found.changed = vec![changed(Class::Guard, ChangeKind::Modified)],
        trial: |_| true,
        ..GREEN
    };
    for (answer, status, reason) in [
        (Answer::Accept, ExitStatus::ExitConverged, StopReason::Pass),
        (Answer::Reject, ExitStatus::ExitBlocked, StopReason::InvariantViolation),
    ] {
        let mut sim = Sim::patient("", Patience::STOP);
        sim.until(&world, |run| run.operator.waits());
        assert_eq!((sim.run.state, sim.todo()), (State::BudgetCheck, Todo::AwaitPerson));
        let iteration = sim.run.current.as_ref().unwrap();
        assert!(iteration.frozen.is_none(), "the last look comes after the answer");
        assert!(guards::ask(&sim.run, iteration, &replayed(&sim.run)).is_none(), "asked once");
        sim.answer(answer);
        let halted = sim.end(&world);
        assert_eq!((halted.status, halted.stop_reason), (status, reason));
    }
}
