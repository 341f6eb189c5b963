//! Tests of GENERATE_QC and RUN_QC.

use super::super::play::*;
use super::*;
use crate::machine::event::AgentEnd;
use crate::model::value::Action;
use crate::playbook::value::testing::{Sim, result, verification};

fn generated(end: AgentEnd, found: &[(&str, VerificationStatus)]) -> Outcome {
    let mut sim = Sim::working();
    begin(&mut sim, Action::GenerateQc);
    sim.agent_ends(Purpose::GenerateVerifications, Vec::new(), end);
    scripts_found(&mut sim, found.iter().map(|(id, status)| verification(id, *status)).collect());
    ends(&mut sim).0
}

#[test]
fn scripts_count_as_progress_only_if_there_are_new_ones() {
    let failed = AgentEnd::Failed { class: "x".into(), message: "y".into() };
    assert_eq!(generated(AgentEnd::Reported, &[]), Outcome::NoProgress);
    assert_eq!(generated(failed.clone(), &[]), Outcome::NoProgress);
    assert_eq!(generated(AgentEnd::Reported, &[("unit/a", VerificationStatus::Passed)]), Outcome::NoProgress);
    assert_eq!(generated(failed, &[("unit/a", VerificationStatus::Pending)]), Outcome::Progress);
}

/// Pending scripts, `(id, required category)`.
fn pending_scripts(scripts: &[(&str, &str)]) -> Sim {
    let mut sim = Sim::working();
    for (id, requires) in scripts {
        sim.verification(id, VerificationStatus::Pending);
        let requires = (!requires.is_empty()).then(|| (*requires).to_owned());
        sim.run.value_mut().verifications.get_mut(*id).unwrap().requires = requires.into_iter().collect();
    }
    begin(&mut sim, Action::RunQc);
    sim
}

fn statuses(sim: &Sim) -> Vec<&'static str> {
    sim.run.value().verifications.values().map(|one| one.status.name()).collect()
}

#[test]
fn categories_run_after_those_they_require_and_green_is_a_checkpoint() {
    let mut sim = pending_scripts(&[("api/a", "unit"), ("unit/a", ""), ("unit/b", "")]);
    repository(&mut sim, "c0");
    assert_eq!(scripts_run(&mut sim, &[]), ["unit/a", "unit/b"]);
    assert_eq!(scripts_run(&mut sim, &[]), ["api/a"]);
    assert_eq!(repository_does(&mut sim, "c1"), GitOperation::Checkpoint { label: "qc-16".into() });
    assert_eq!(ends(&mut sim).0, Outcome::Progress);
    assert_eq!(statuses(&sim), ["passed", "passed", "passed"]);
    assert_eq!(sim.run.value().checkpoints[0].passing, ["api/a", "unit/a", "unit/b"]);
    assert_eq!(verification_of(&sim, "unit/a").first_passed_in, Some(16));
}

#[test]
fn the_first_category_with_a_failure_is_the_last_that_runs() {
    let mut sim = pending_scripts(&[("a/1", ""), ("a/2", ""), ("b/1", ""), ("c/1", "a")]);
    repository(&mut sim, "c0");
    assert_eq!(scripts_run(&mut sim, &["a/2"]), ["a/1", "a/2"]);
    let (outcome, detail) = ends(&mut sim);
    assert_eq!(outcome, Outcome::Progress, "one more passes");
    assert!(detail.contains("a/2"), "{detail}");
    assert_eq!(statuses(&sim), ["passed", "failed", "pending", "pending"]);
    // The failure is not run again here, and what it holds up waits.
    begin(&mut sim, Action::RunQc);
    assert_eq!(scripts_run(&mut sim, &["b/1"]), ["b/1"]);
    assert_eq!(ends(&mut sim).0, Outcome::NoProgress);
    begin(&mut sim, Action::RunQc);
    assert_eq!(ends(&mut sim).0, Outcome::NoProgress);
    assert_eq!(statuses(&sim), ["passed", "failed", "failed", "pending"]);
}

#[test]
fn what_can_never_run_is_blocked() {
    let mut sim = pending_scripts(&[("a/1", "nowhere"), ("b/1", "a"), ("c/1", "")]);
    assert_eq!(scripts_run(&mut sim, &[]), ["c/1"]);
    ends(&mut sim);
    assert_eq!(statuses(&sim), ["blocked", "blocked", "passed"]);

    let mut circle = pending_scripts(&[("a/1", "b"), ("b/1", "a"), ("c/1", "c")]);
    assert_eq!(scripts_run(&mut circle, &[]), ["c/1"], "to require oneself is no circle");
    ends(&mut circle);
    assert_eq!(statuses(&circle), ["blocked", "blocked", "passed"]);
}

#[test]
fn a_pass_forgets_what_was_tried_and_failures_are_bounded() {
    let mut one = verification("unit/a", VerificationStatus::Failed);
    (one.fix_attempts, one.researched, one.corrected, one.first_passed_in) = (4, true, true, Some(2));
    for step in 0..30 {
        one = after_run(&one, &result(false), step);
    }
    assert_eq!((one.failures.len(), one.failures[0].step, one.runs), (MAX_FAILURES, 10, 30));
    assert_eq!((one.fix_attempts, one.researched), (4, true), "a failure resets nothing");
    let passed = after_run(&one, &result(true), 30);
    assert_eq!((passed.status, passed.first_passed_in), (VerificationStatus::Passed, Some(2)));
    assert_eq!((passed.fix_attempts, passed.researched, passed.corrected), (0, false, false));
}

#[test]
fn texts_are_clipped_at_characters_and_names_are_counted() {
    assert_eq!(clipped("aé", 2), "a");
    assert_eq!(named(&["a", "b"]), "a, b");
    assert_eq!(named(&["a", "b", "c", "d", "e", "f", "g"]), "a, b, c, d, e and 2 more");
}
