//! EPIC_BOUNDARY.

use super::*;
use crate::machine::event::{DecisionAnswered, FIRST_WITH_REVIEWS};
use crate::model::decision::{Answer, Request};
use crate::model::purpose::Purpose;
use crate::model::value::{Outcome, TaskSource};
use crate::playbook::value::event::{EpicPut, EpicStatus};
use crate::playbook::value::gates::quality;

fn epic(number: u32, status: EpicStatus) -> EpicPut {
    EpicPut {
        epic: number,
        title: format!("Slice {number}"),
        value_statement: "Someone is greeted.".into(),
        deliverables: vec!["a greeting".into()],
        completion_criteria: Vec::new(),
        status,
        feedback: None,
    }
}

/// Three slices, the first is done and summed up; a person is asked.
fn at_the_boundary(summary: Option<Structured>) -> Sim {
    let mut sim = Sim::working();
    let statuses = [EpicStatus::InProgress, EpicStatus::Pending, EpicStatus::Pending];
    sim.run.value_mut().epics = (0..).zip(statuses).map(|(number, status)| epic(number, status)).collect();
    sim.task("T1", TaskStatus::Done, &[]);
    sim.run.value_mut().steps_begun = 7;
    begin(&mut sim, Action::EpicBoundary { epic: 0 });
    match summary {
        Some(summary) => sim.agent(Purpose::EpicSummary, vec![summary]),
        None => sim.agent_ends(Purpose::EpicSummary, Vec::new(), failed()),
    };
    assert_eq!(sim.settle(), Todo::AwaitPerson);
    sim
}

fn summary() -> Structured {
    let input = json!({
        "delivered": ["greets Ann"], "vision_progress": "a third", "next_epic": "Slice 1", "confidence": "HIGH",
        "confidence_rationale": "checks pass",
    });
    report(Tool::ReportEpicSummary, input)
}

fn question(sim: &Sim) -> String {
    let Request::Question { question, choices } = &sim.run.operator.open().next().unwrap().request else { panic!() };
    assert_eq!(choices, &["proceed", "adjust", "stop"]);
    question.clone()
}

fn epics(sim: &Sim) -> Vec<EpicStatus> {
    sim.run.value().epics.iter().map(|epic| epic.status).collect()
}

/// Every review of the next plan, without a change.
fn reviews(sim: &mut Sim) {
    for purpose in quality::REVIEWS {
        sim.agent(purpose, Vec::new());
    }
}

#[test]
fn the_plan_of_a_later_slice_is_reviewed_like_the_first_one() {
    let mut sim = at_the_boundary(Some(summary()));
    sim.answer(Answer::Text("proceed".into()));
    sim.agent(Purpose::Plan, vec![add("E2-1", "Greet a list of people from a file.")]);
    sim.agent(Purpose::Craap, vec![add("E2-2", "Say goodbye to everybody who was greeted.")]);
    // A session that broke off is held again, three times; what is left open is told and holds nothing up.
    for _ in 0..3 {
        sim.agent_ends(Purpose::Clarity, Vec::new(), failed());
    }
    for purpose in quality::REVIEWS.into_iter().skip(2) {
        sim.agent(purpose, Vec::new());
    }
    let finished = finish(&mut sim);
    assert!(finished.detail.starts_with("epic 2 begins with 2 task(s); clarity: the session"), "{}", finished.detail);
    assert_eq!(sim.run.value().task("E2-2").unwrap().epic, Some(1));
}

#[test]
fn a_run_of_an_older_engine_takes_later_plans_as_they_come() {
    let mut sim = at_the_boundary(Some(summary()));
    sim.run.started.reducer_version = FIRST_WITH_REVIEWS - 1;
    sim.answer(Answer::Text("proceed".into()));
    sim.agent(Purpose::Plan, vec![add("E2-1", "Greet a list of people from a file.")]);
    assert_eq!(finish(&mut sim).detail, "epic 2 begins with 1 task(s)");
}

#[test]
fn proceeding_plans_the_next_slice() {
    let mut sim = at_the_boundary(Some(summary()));
    let asked = question(&sim);
    assert!(asked.contains("Epic 1 of 3") && asked.contains("greets Ann") && asked.contains("Slice 1"), "{asked}");
    sim.answer(Answer::Text("proceed".into()));
    sim.agent(Purpose::Plan, vec![add("E2-1", "Greet a list of people from a file.")]);
    reviews(&mut sim);
    assert_eq!(finish(&mut sim).outcome, Outcome::Neutral);
    assert_eq!(epics(&sim), [EpicStatus::Completed, EpicStatus::InProgress, EpicStatus::Pending]);
    let planned = sim.run.value().task("E2-1").unwrap();
    assert_eq!((planned.epic, planned.source), (Some(1), TaskSource::Plan));
    assert_eq!(sim.run.value().task("T1").unwrap().epic, None);
}

#[test]
fn only_the_bare_words_decide_and_everything_else_is_a_wish() {
    for (answer, note, expected) in [
        ("Proceed", None, ("proceed", "")),
        ("adjust", Some("fewer colours"), ("adjust", "fewer colours")),
        ("proceed", Some("but faster"), ("adjust", "but faster")),
        ("stop using colours", None, ("adjust", "stop using colours")),
    ] {
        let mut sim = at_the_boundary(Some(summary()));
        let id = sim.run.operator.open().next().unwrap().id;
        let (answer, note) = (Answer::Text(answer.into()), note.map(str::to_owned));
        sim.record(DecisionAnswered { id, answer, note, by: "tester".into() });
        sim.agent(Purpose::Plan, vec![add("E2-1", "Greet a list of people from a file.")]);
        reviews(&mut sim);
        finish(&mut sim);
        let feedback = sim.run.value().epics[0].feedback.clone().unwrap();
        assert_eq!((feedback.0.as_str(), feedback.1.as_str()), expected);
    }
}

#[test]
fn stopping_leaves_the_other_slices_out() {
    let mut sim = at_the_boundary(None);
    assert!(question(&sim).contains("no summary"));
    sim.task("E3-1", TaskStatus::Pending, &[]);
    sim.run.value_mut().tasks.last_mut().unwrap().epic = Some(2);
    sim.answer(Answer::Text("stop".into()));
    assert_eq!(finish(&mut sim).outcome, Outcome::Neutral);
    assert_eq!(epics(&sim), [EpicStatus::Completed, EpicStatus::Skipped, EpicStatus::Skipped]);
    assert_eq!((status(&sim, "E3-1"), status(&sim, "T1")), (TaskStatus::Descoped, TaskStatus::Done));
}

#[test]
fn a_slice_that_nobody_plans_is_no_progress() {
    let mut sim = at_the_boundary(Some(summary()));
    sim.answer(Answer::Text("proceed".into()));
    sim.agent_ends(Purpose::Plan, Vec::new(), failed());
    sim.agent(Purpose::Plan, Vec::new());
    let finished = finish(&mut sim);
    assert_eq!(finished.outcome, Outcome::NoProgress);
    assert!(finished.detail.contains("nobody planned"), "{}", finished.detail);
}

#[test]
fn the_last_slice_asks_nobody() {
    let mut sim = Sim::working();
    sim.run.value_mut().epics = vec![epic(0, EpicStatus::InProgress)];
    begin(&mut sim, Action::EpicBoundary { epic: 0 });
    sim.agent(Purpose::EpicSummary, vec![summary()]);
    assert_eq!(finish(&mut sim).outcome, Outcome::Neutral);
    assert_eq!(epics(&sim), [EpicStatus::Completed]);
}
