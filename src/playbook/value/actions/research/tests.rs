//! Tests of RESEARCH.

use serde_json::json;

use super::super::play::*;
use super::*;
use crate::machine::event::AgentEnd;
use crate::model::decision::Patience;
use crate::model::value::Action;
use crate::playbook::value::testing::{Sim, report, result};

fn researching(patience: Patience) -> Sim {
    let mut sim = Sim::working();
    sim.run.operator.patience = patience;
    for id in ["unit/a", "unit/b"] {
        sim.verification(id, VerificationStatus::Failed);
        let one = sim.run.value_mut().verifications.get_mut(id).unwrap();
        *one = super::super::qc::after_run(one, &result(false), 0);
        one.fix_attempts = 5;
    }
    sim.run.value_mut().verifications.get_mut("unit/b").unwrap().researched = true;
    begin(&mut sim, Action::Research { verifications: vec!["unit/a".into(), "unit/b".into()] });
    sim
}

/// `(fix attempts, researched)`.
fn tries(sim: &Sim, id: &str) -> (u32, bool) {
    let one = verification_of(sim, id);
    (one.fix_attempts, one.researched)
}

#[test]
fn something_found_gives_new_attempts_once() {
    let mut sim = researching(Patience::WAIT);
    let found = json!({"topic": "t", "findings": "f", "sources": ["s"]});
    sim.agent(Purpose::Research, vec![report(Tool::ReportResearch, found)]);
    assert_eq!(ends(&mut sim).0, Outcome::Neutral);
    assert_eq!(tries(&sim, "unit/a"), (0, true));
    assert_eq!(tries(&sim, "unit/b"), (5, true), "it had its research");
    assert_eq!(sim.run.value().research.len(), 1);
    // Again for the same: nothing is looked up, nothing is given.
    begin(&mut sim, Action::Research { verifications: vec!["unit/b".into()] });
    assert_eq!(ends(&mut sim).0, Outcome::Neutral);
    assert_eq!(tries(&sim, "unit/b"), (5, true));
}

#[test]
fn a_person_is_asked_where_research_finds_nothing() {
    let mut sim = researching(Patience::WAIT);
    sim.agent(Purpose::Research, Vec::new());
    assert_eq!(advance(&mut sim), Some(Todo::AwaitPerson));
    let Request::Question { question, .. } = sim.run.operator.open().next().unwrap().request.clone() else { panic!() };
    assert!(question.contains("unit/a: exit 1, expected 1, got 2") && !question.contains("unit/b"), "{question}");
    sim.answer(Answer::Text("The port is taken.".into()));
    assert_eq!(ends(&mut sim).0, Outcome::Neutral);
    assert_eq!(tries(&sim, "unit/a"), (0, true));
    let kept = &sim.run.value().research[0];
    assert_eq!((kept.sources[0].as_str(), kept.findings.as_str()), ("human", "The port is taken."));
    assert_eq!(kept.affected_verifications, ["unit/a"]);
}

#[test]
fn nobody_is_asked_where_nobody_is_waited_for_and_no_attempts_are_given() {
    let mut sim = researching(Patience::STOP);
    let failed = AgentEnd::Failed { class: "x".into(), message: "y".into() };
    sim.agent_ends(Purpose::Research, Vec::new(), failed);
    assert_eq!(ends(&mut sim).0, Outcome::NoProgress);
    assert_eq!(tries(&sim, "unit/a"), (5, true));
    assert!(sim.run.operator.decisions.is_empty());
}
