//! What an iteration is worth, and what is told when it repeats one that did not help.

use super::*;
use crate::machine::compose;
use crate::machine::event::{ArtifactsCollected, Change, ChangeKind, IterationEvent};
use crate::machine::phuc;
use crate::machine::state::State;
use crate::machine::testing::{GREEN, RED, Sim, World};
use crate::model::digest::Digest;
use crate::model::rung::Rung;

fn recorded(run: &RunState, number: usize) -> (&Entry, &Glow) {
    let iteration = run.iterations().nth(number).unwrap();
    (iteration.entry.as_ref().unwrap(), iteration.glow.as_ref().unwrap())
}

/// After this many iterations.
fn after(world: &World, iterations: usize) -> RunState {
    let mut sim = Sim::plain("budget: { max_iterations: 9 }");
    sim.until(world, |run| run.done.len() == iterations || run.halt.is_some());
    sim.run
}

fn same_change(collected: &mut ArtifactsCollected) {
    let sha256 = Some(Digest::of(b"the same"));
    collected.changes = vec![Change { path: "a".into(), kind: ChangeKind::Modified, sha256 }];
}

/// Iterations 0 and 2 are the same.
fn there_and_back(collected: &mut ArtifactsCollected) {
    if collected.iteration != 1 {
        same_change(collected);
    }
}

#[test]
fn reports_alone_are_little_output_and_no_learning() {
    let run = after(&World { changes: false, ..RED }, 1);
    let (_, glow) = recorded(&run, 0);
    assert_eq!(glow.o, 5, "{glow:?}");
    assert!(glow.l <= 5, "{glow:?}");
}

#[test]
fn the_same_file_again_is_no_new_output() {
    let run = after(&World { artifacts: same_change, ..RED }, 2);
    assert_eq!((recorded(&run, 0).1.o, recorded(&run, 1).1.o), (15, 5));
}

#[test]
fn an_untouched_file_backs_nothing() {
    let run = after(&RED, 1);
    let last = run.done.last().unwrap();
    for (path, backs) in [
        ("file0", true),
        ("./file0", true),
        ("evidence/loop/iter_0/checks/a.txt", true),
        ("evidence/loop/iter_1/checks/a.txt", false),
        ("loop.yaml", false),
        ("NORTHSTAR.md", false),
        ("evidence/loop/plan.json", false),
    ] {
        assert_eq!(backing::is_of_iteration(last, path), backs, "{path}");
        assert_eq!(backing::is_of_run(&run, path), backs, "{path}");
    }
}

#[test]
fn a_repetition_is_told_when_it_happens() {
    let run = after(&World { artifacts: there_and_back, ..RED }, 3);
    let told = |number| recorded(&run, number).0.failed.iter().any(|claim| claim.text.starts_with("REPETITION"));
    assert_eq!([told(0), told(1), told(2)], [false, false, true]);
    let words = phuc::repetition(&run, run.done.last().unwrap()).unwrap();
    assert!(words.contains("iteration 2 made the same change as iteration 0"), "{words}");
}

#[test]
fn whoever_was_told_and_did_something_else_adapts() {
    let adapts = |world: &World, iterations| {
        phuc::phuc_test(&after(world, iterations), Some(Rung::Stable)).condition_4_adaptation
    };
    let stubborn = World { artifacts: same_change, ..RED };
    assert!(adapts(&World { artifacts: there_and_back, ..RED }, 3));
    assert!(adapts(&stubborn, 3), "told once, repeated once more");
    assert!(!adapts(&stubborn, 4), "told, and repeated twice more");
}

#[test]
fn many_new_files_give_a_small_capsule() {
    let many = |collected: &mut ArtifactsCollected| {
        let change = |n| Change { path: format!("out/{n}"), kind: ChangeKind::Added, sha256: Some(Digest::of(b"x")) };
        collected.changes = (0..3_000).map(change).collect();
    };
    let run = after(&World { artifacts: many, ..RED }, 1);
    let capsule = compose::compose(&run, "", Role::Scout, 0).capsule;
    let text = capsule.text().unwrap();
    assert!(text.len() < 8_000, "{} bytes", text.len());
    assert!(text.contains("iter_0/artifacts.json"), "{text}");
}

#[test]
fn the_operator_check_is_in_the_evidence_alone() {
    let run = after(&RED, 2);
    assert!(!run.learnings_document().contains("GBB Operator Check"), "{}", run.learnings_document());
    let entry = document::entry(&run, &run.done[0]).unwrap();
    assert!(entry.contains("### 0.6 GBB Operator Check"), "{entry}");
}

#[test]
fn whether_words_alone_end_the_loop_is_answered_from_the_certificate() {
    let mut sim = Sim::plain("");
    sim.until(&GREEN, |run| run.state == State::GlowCheck);
    let iteration = sim.run.current.as_ref().unwrap();
    let mut certificate = iteration.certificate.clone().unwrap();
    let answer = lane_c_as_evidence(&sim.run, iteration, &certificate);
    assert!(answer.ok && answer.answer.contains("1 criteria rest on a check's output"), "{answer:?}");
    certificate.acceptance_criteria_checklist[0].evidence_link = None;
    let answer = lane_c_as_evidence(&sim.run, iteration, &certificate);
    assert!(!answer.ok && answer.answer.ends_with("backs a"), "{answer:?}");
    assert!(sim.events.iter().any(|event| matches!(event,
        crate::machine::event::Event::Iteration(IterationEvent::LearningsRecorded(recorded))
            if recorded.review.iter().any(|one| one.question == answer.question && one.ok))));
}
