//! The plan of a value run: while it prepares itself, at work, and after the exit gate.

use super::rows::rows;
use super::*;
use crate::console::moment::{assert_harmless, sizes};
use crate::console::sample::{scene, screen};
use crate::console::theme::Glyphs;
use crate::machine::measure;
use crate::machine::run::RunState;
use crate::model::digest::Digest;
use crate::model::value::{
    Action as Step, Failure, Gate, Outcome, Recommendation, TaskStatus, VerificationStatus, VrcMode,
};
use crate::playbook::value::event::{RoundClosed, RoundKept, StepBegan, StepFinished, Target};
use crate::playbook::value::testing::Sim;

fn drawn(plan: &Plan, run: &RunState, width: u16, height: u16, theme: &Theme) -> String {
    screen(width, height, |frame| plan.view(frame, frame.area(), &scene(run, theme)))
}

fn gate(sim: &mut Sim, gate: Gate, outcome: Option<(Outcome, &str)>) {
    let step = sim.run.value().steps_begun;
    sim.record(StepBegan { step, action: Step::Gate { gate }, why: gate.title().into() });
    if let Some((outcome, detail)) = outcome {
        sim.record(StepFinished { step, outcome, detail: detail.into() });
    }
}

/// Two gates passed, one failed, one open with a round of refinement behind it.
fn preparing() -> Sim {
    let mut sim = Sim::preparing();
    gate(&mut sim, Gate::Inputs, Some((Outcome::Passed, "VISION.md: 707 bytes; PRD.md: 409 bytes")));
    gate(&mut sim, Gate::VisionValidated, None);
    for (round, consensus, how) in [(1, false, "revised"), (2, true, "acknowledged")] {
        let kept = RoundKept {
            target: Target::Vision,
            round,
            document: Digest::of(b"vision"),
            validation: None,
            critique: None,
            unknown: false,
            issues: Vec::new(),
            research: Vec::new(),
            proposal: None,
        };
        sim.record(kept);
        sim.record(RoundClosed { target: Target::Vision, round, how: how.into(), decision: None, consensus });
    }
    let step = sim.run.value().steps_begun - 1;
    sim.record(StepFinished { step, outcome: Outcome::Passed, detail: "acknowledged in round 2".into() });
    gate(&mut sim, Gate::VisionClassified, Some((Outcome::Failed, "the vision is larger than one run")));
    gate(&mut sim, Gate::ContextDiscovered, None);
    sim
}

/// Tasks in every state with dependencies and phases, a check that fails, one that passes, a value that falls.
fn working() -> Sim {
    let mut sim = Sim::working();
    sim.task("T1", TaskStatus::Done, &[]);
    sim.task("T2", TaskStatus::InProgress, &["T1"]);
    sim.task("T3", TaskStatus::Blocked, &["T1"]);
    sim.task("T4", TaskStatus::Pending, &["T2", "T3"]);
    sim.task("T5", TaskStatus::Descoped, &[]);
    let done = sim.step(Step::Execute { task: "T1".into() }, Outcome::Progress);
    let tasks = &mut sim.run.value_mut().tasks;
    tasks[0].done_in = Some(done);
    tasks[1].phase = Some("1".into());
    tasks[1].check = Some(vec!["sh".into(), "check.sh".into(), "find".into()]);
    tasks[1].files_expected = vec!["greet.sh".into()];
    tasks[2].blocked_reason = Some("HUMAN_ACTION: an account is needed".into());
    tasks[2].retries = 1;
    sim.verification("unit/usage", VerificationStatus::Passed);
    sim.verification("value/find", VerificationStatus::Failed);
    sim.verification("value/keep", VerificationStatus::Pending);
    let failing = sim.run.value_mut().verifications.get_mut("value/find").unwrap();
    failing.runs = 3;
    failing.fix_attempts = 2;
    for step in 0..3 {
        let (end, excerpt) = ("exit 1".to_owned(), "expected 1 line, got 2".to_owned());
        let (output, signature) = (Digest::of(b"output"), "expected line, got".to_owned());
        failing.failures.push(Failure { step, end, excerpt, output, signature });
    }
    for score in ["0", "0.5", "0.4"] {
        sim.value(VrcMode::Full, score, Recommendation::Continue);
    }
    sim
}

fn after_the_gate() -> Sim {
    let mut sim = working();
    for task in &mut sim.run.value_mut().tasks {
        if task.status != TaskStatus::Descoped {
            task.status = TaskStatus::Done;
        }
    }
    for check in sim.run.value_mut().verifications.values_mut() {
        check.status = VerificationStatus::Passed;
    }
    sim.value(VrcMode::Full, "1", Recommendation::ShipReady);
    sim.step(Step::ExitGate, Outcome::Passed);
    sim
}

fn at(run: &RunState, id: &str) -> Plan {
    let mut plan = Plan::new();
    plan.cursor.set(rows(run).iter().position(|item| item.id.as_str() == id).unwrap());
    plan.chosen = true;
    plan
}

#[test]
fn screens() {
    let ascii = Theme::plain().with_glyphs(Glyphs::ASCII);
    for (name, sim, chosen) in [
        ("preparing", preparing(), "vision_classified"),
        ("working", working(), "value/find"),
        ("after_the_gate", after_the_gate(), "1"),
    ] {
        let run = &sim.run;
        insta::assert_snapshot!(format!("value_{name}_80x24"), drawn(&Plan::new(), run, 80, 24, &Theme::dark()));
        let plan = at(run, chosen);
        insta::assert_snapshot!(format!("value_{name}_120x40"), drawn(&plan, run, 120, 40, &Theme::dark()));
        insta::assert_snapshot!(format!("value_{name}_40x12_ascii"), drawn(&plan, run, 40, 12, &ascii));
    }
}

#[test]
fn until_somebody_chooses_the_item_in_progress_is_shown() {
    let mut sim = preparing();
    let theme = Theme::plain();
    let mut plan = Plan::new();
    let shown = |plan: &Plan, run: &RunState| rows(run)[plan.place(&rows(run)).at(99)].id.to_string();
    assert_eq!(shown(&plan, &sim.run), "context_discovered");
    let step = sim.run.value().steps_begun - 1;
    sim.record(StepFinished { step, outcome: Outcome::Passed, detail: String::new() });
    gate(&mut sim, Gate::PrdCritique, None);
    assert_eq!(shown(&plan, &sim.run), "prd_critique");
    plan.act(Action::Up, &scene(&sim.run, &theme));
    assert_eq!(shown(&plan, &sim.run), "context_discovered");
    let step = sim.run.value().steps_begun - 1;
    sim.record(StepFinished { step, outcome: Outcome::Passed, detail: String::new() });
    gate(&mut sim, Gate::PlanGenerated, None);
    assert_eq!(shown(&plan, &sim.run), "context_discovered");
}

#[test]
fn the_course_is_named_with_what_was_noticed() {
    let sim = working();
    let text = drawn(&at(&sim.run, "RED"), &sim.run, 120, 40, &Theme::plain());
    assert!(text.contains("value 0.4, RED"), "{text}");
    assert!(text.contains("RED, error recurrence: check"), "{text}");
    let course = rows(&sim.run).into_iter().find(|item| item.kind == RowKind::Course).unwrap();
    assert_eq!(course.text.as_str(), "check value/find failed 3 times with the same error");
    let calm = Sim::working();
    assert_eq!(rows(&calm.run)[0].id.as_str(), "GREEN");
    assert!(!drawn(&Plan::new(), &calm.run, 80, 24, &Theme::plain()).contains("RED"));
}

fn closed(target: Target, how: &str, consensus: bool) -> (RowStatus, String) {
    let mut sim = Sim::preparing();
    gate(&mut sim, Gate::PrdCritique, None);
    let (round, document) = (1, Digest::of(b"text"));
    let (validation, critique, proposal) = (None, None, None);
    let (issues, research, unknown) = (Vec::new(), Vec::new(), false);
    sim.record(RoundKept { target, round, document, validation, critique, unknown, issues, research, proposal });
    sim.record(RoundClosed { target, round, how: how.into(), decision: None, consensus });
    let item = rows(&sim.run).into_iter().find(|item| item.kind == RowKind::Round).unwrap();
    (item.status, item.as_text())
}

#[test]
fn a_round_that_brought_a_new_text_is_no_quarrel() {
    for (target, how, words) in [
        (Target::Vision, "revised", "vision 1: revised by a person (new text)"),
        (Target::Prd, "amended", "PRD 1: the amendment was approved (new text)"),
        (Target::Prd, "auto_amend", "PRD 1: amended by itself, as loop.yaml allows (new text)"),
        (Target::Prd, "auto_descope", "PRD 1: descoped by itself, as loop.yaml allows (new text)"),
    ] {
        let (status, text) = closed(target, how, false);
        assert_eq!(status, RowStatus::Changed, "{how}");
        assert!(text.starts_with(words), "{text}");
    }
    assert_eq!(closed(Target::Prd, "rejected", true).0, RowStatus::Met, "who keeps the text has decided");
    assert_eq!(closed(Target::Prd, "approve", true).0, RowStatus::Met);
    assert_eq!(closed(Target::Prd, "unknown", false).0, RowStatus::NotAccepted);
}

#[test]
fn an_exit_gate_that_nobody_tried_has_not_been_shut_since_anything() {
    let mut sim = working();
    let certificate = measure::iteration_certificate(&sim.run, sim.run.current.as_ref().unwrap());
    sim.run.current.as_mut().unwrap().certificate = Some(certificate);
    let goal = |sim: &Sim| rows(&sim.run).into_iter().find(|item| item.kind == RowKind::Criterion).unwrap();
    assert_eq!((goal(&sim).status, goal(&sim).since_text()), (RowStatus::NotJudged, String::new()));
    sim.step(Step::ExitGate, Outcome::Failed);
    assert_eq!((goal(&sim).status, goal(&sim).since_text()), (RowStatus::NotMet, "since it0".to_owned()));
}

#[test]
fn what_was_descoped_is_not_counted_as_done() {
    let (all, one) = (rows::title(&after_the_gate().run), rows::title(&working().run));
    assert!(all.contains("4 of 5 tasks done, 1 descoped, "), "{all}");
    assert!(one.contains("1 of 5 tasks done, 1 descoped, "), "{one}");
    let mut sim = Sim::working();
    sim.task("T1", TaskStatus::Done, &[]);
    assert!(!rows::title(&sim.run).contains("descoped"));
}

#[test]
fn a_score_is_a_bar_of_its_height() {
    let scores = ["0", "0.5", "1"].map(|score| Exact::parse(score).unwrap());
    assert_eq!(spark(&Theme::dark(), &scores), "▁▅█");
    let many: Vec<Exact> = std::iter::repeat_n(scores[0], 100).chain([scores[2]]).collect();
    let long = spark(&Theme::dark(), &many);
    assert!(long.chars().count() == SPARK && long.ends_with('█'), "{long}");
}

#[test]
fn what_agents_wrote_is_harmless_at_every_size() {
    let mut sim = working();
    let hostile = "\u{1b}[2J\u{9d}0;title\u{7}\u{202e}".to_owned();
    for task in &mut sim.run.value_mut().tasks {
        task.description.clone_from(&hostile);
        task.acceptance.clone_from(&hostile);
        task.phase = Some(hostile.clone());
        task.dependencies.push(hostile.clone());
        task.files_expected.push(hostile.clone());
    }
    for check in sim.run.value_mut().verifications.values_mut() {
        check.requires.push(hostile.clone());
        for failure in &mut check.failures {
            failure.excerpt.clone_from(&hostile);
        }
    }
    for index in 0..rows(&sim.run).len() {
        let mut plan = Plan::new();
        plan.cursor.set(index);
        plan.chosen = true;
        assert_harmless(&drawn(&plan, &sim.run, 120, 40, &Theme::dark()));
    }
    for (width, height) in sizes() {
        drawn(&Plan::new(), &sim.run, width, height, &Theme::dark());
    }
}
