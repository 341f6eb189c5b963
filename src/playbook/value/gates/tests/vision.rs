//! Vision Refinement.

use super::*;
use crate::model::decision::{Answer, MAX_DECISIONS, Request, Severity, VisionIssue};
use crate::playbook::value::event::DocumentsRead;

const SOFT: &[(&str, &str, &str)] = &[("V1", "SOFT", "weak_evidence")];
const HARD: &[(&str, &str, &str)] = &[("V1", "SOFT", "weak_evidence"), ("V2", "HARD", "no_mechanism")];

/// One round of all five passes.
#[track_caller]
pub fn analysed(at: &mut At, verdict: Vec<Structured>) {
    for purpose in [Purpose::VisionExtract, Purpose::VisionForces, Purpose::VisionCauses, Purpose::VisionPremortem] {
        at.sim.agent(purpose, notes(purpose));
    }
    at.sim.agent(Purpose::VisionValidate, verdict);
}

fn researched() -> Vec<Structured> {
    let input = json!({ "topic": "V2", "findings": "others do it by post", "sources": [],
        "alternatives": ["by post", "V2: by phone", "V9 and V1 are fine"] });
    vec![report(Tool::ReportResearch, input)]
}

/// What is being asked.
#[track_caller]
fn asked(at: &mut At) -> (Vec<VisionIssue>, String) {
    assert_eq!(at.sim.settle(), Todo::AwaitPerson);
    let open = at.sim.run.operator.open().next().unwrap();
    let Request::Vision { issues } = &open.request else { panic!("{:?}", open.request) };
    (issues.clone(), open.why.clone())
}

fn closings(at: &At) -> Vec<String> {
    let rounds = at.sim.run.value().vision.rounds.iter();
    rounds.map(|round| round.closed.as_ref().map_or("open", |closed| &closed.how).to_owned()).collect()
}

#[test]
fn a_vision_that_passes_needs_nobody() {
    let mut at = at(Gate::VisionValidated);
    analysed(&mut at, verdict("PASS", &[]));
    at.passes(Gate::VisionValidated);
    assert_eq!(closings(&at), ["pass"]);
}

#[test]
fn soft_issues_of_a_vision_that_passes_are_kept_as_acknowledged() {
    let mut at = at(Gate::VisionValidated);
    analysed(&mut at, verdict("PASS", SOFT));
    at.passes(Gate::VisionValidated);
    assert_eq!(closings(&at), ["auto_acknowledged"]);
    assert_eq!(at.sim.run.value().vision.rounds[0].kept.issues.len(), 1);
}

#[test]
fn soft_issues_are_acknowledged_by_a_person() {
    let mut at = at(Gate::VisionValidated);
    analysed(&mut at, verdict("NEEDS_REVISION", SOFT));
    let (issues, why) = asked(&mut at);
    assert!(issues[0].text.starts_with("V1: ") && why.contains("causally sound WEAK"), "{why}");
    // The round is there before the question is.
    assert_eq!(closings(&at), ["open"]);
    at.sim.answer(Answer::Acknowledge);
    at.passes(Gate::VisionValidated);
    assert_eq!(closings(&at), ["acknowledged"]);
    assert_eq!(at.sim.run.value().vision.rounds[0].closed.as_ref().unwrap().decision.unwrap().0, 1);
}

#[test]
fn soft_issues_can_be_acknowledged_beforehand_but_only_all_of_them() {
    let mut all = at_with(Gate::VisionValidated, "value: { acknowledge_soft: [V1] }");
    analysed(&mut all, verdict("NEEDS_REVISION", SOFT));
    all.passes(Gate::VisionValidated);
    assert_eq!(closings(&all), ["auto_acknowledged"]);

    let mut some = at_with(Gate::VisionValidated, "value: { acknowledge_soft: [V1] }");
    analysed(&mut some, verdict("NEEDS_REVISION", &[SOFT[0], ("V3", "SOFT", "adoption_risk")]));
    assert_eq!(asked(&mut some).0.len(), 2);

    // Naming a HARD one helps nothing.
    let mut hard = at_with(Gate::VisionValidated, "value: { acknowledge_soft: [V1, V2] }");
    analysed(&mut hard, verdict("NEEDS_REVISION", HARD));
    hard.sim.agent(Purpose::VisionResearch, researched());
    assert_eq!(asked(&mut hard).0.len(), 2);
}

#[test]
fn a_hard_issue_is_researched_shown_first_and_never_acknowledged() {
    let mut at = at(Gate::VisionValidated);
    analysed(&mut at, verdict("NEEDS_REVISION", HARD));
    let Todo::StartAgent { subject, .. } = at.sim.settle() else { panic!() };
    assert_eq!(subject.as_deref(), Some("V2"));
    at.sim.agent(Purpose::VisionResearch, researched());
    let (issues, _) = asked(&mut at);
    assert_eq!(issues.iter().map(|one| one.severity).collect::<Vec<_>>(), [Severity::Hard, Severity::Soft]);
    assert_eq!(issues[0].alternatives[..2], ["by post".to_owned(), "V2: by phone".into()]);
    assert!(issues[1].alternatives.is_empty());
    let acknowledge = DecisionAnswered {
        id: crate::model::decision::DecisionId(1),
        answer: Answer::Acknowledge,
        note: None,
        by: "x".into(),
    };
    assert!(crate::machine::legal::legal(&at.sim.run, &acknowledge.into()).is_err());

    at.sim.answer(Answer::Revise("by post".into()));
    at.reads("People get a letter.", PRD);
    analysed(&mut at, verdict("PASS", &[]));
    at.passes(Gate::VisionValidated);
    assert_eq!(closings(&at), ["revised", "pass"]);
    let rounds = &at.sim.run.value().vision.rounds;
    assert_eq!((rounds[0].kept.round, rounds[1].kept.round), (1, 2));
    assert_eq!(rounds[0].kept.research.len(), 1);
    assert_ne!(rounds[0].kept.document, rounds[1].kept.document);
}

#[test]
fn research_that_fails_does_not_stand_in_the_way() {
    let mut at = at(Gate::VisionValidated);
    analysed(&mut at, verdict("NEEDS_REVISION", HARD));
    at.breaks_down(Purpose::VisionResearch);
    assert_eq!(asked(&mut at).0.len(), 2);
}

#[test]
fn a_vision_that_was_not_changed_is_not_analysed_again() {
    let mut at = at(Gate::VisionValidated);
    analysed(&mut at, verdict("NEEDS_REVISION", SOFT));
    asked(&mut at);
    at.sim.answer(Answer::Revise("later".into()));
    at.reads(VISION, PRD);
    assert!(asked(&mut at).1.contains("VISION.md has not changed"));
    at.sim.answer(Answer::Revise("now".into()));
    assert_eq!(at.sim.settle(), Todo::Effect(Effect::ReadDocuments));
    at.sim.record(DocumentsRead { vision: missing("VISION.md"), prd: document("PRD.md", PRD) });
    assert!(asked(&mut at).1.contains("VISION.md is not there"));
    at.sim.answer(Answer::Acknowledge);
    at.passes(Gate::VisionValidated);
    assert_eq!(closings(&at), ["acknowledged"]);
}

#[test]
fn a_pass_that_reports_at_the_second_try_is_enough() {
    let mut at = at(Gate::VisionValidated);
    at.sim.agent(Purpose::VisionExtract, Vec::new());
    analysed(&mut at, verdict("PASS", &[]));
    at.passes(Gate::VisionValidated);
}

#[test]
fn a_pass_that_never_reports_needs_a_person_and_the_same_text_is_analysed_again() {
    let mut at = at(Gate::VisionValidated);
    at.sim.agent(Purpose::VisionExtract, notes(Purpose::VisionExtract));
    at.sim.agent(Purpose::VisionForces, Vec::new());
    at.breaks_down(Purpose::VisionForces);
    let (issues, _) = asked(&mut at);
    assert!(issues[0].severity == Severity::Hard && issues[0].text.contains("it is down"), "{issues:?}");
    assert!(at.sim.run.value().vision.rounds[0].kept.unknown);
    at.sim.answer(Answer::Revise("again".into()));
    at.reads(VISION, PRD);
    analysed(&mut at, verdict("PASS", &[]));
    at.passes(Gate::VisionValidated);
    assert_eq!(closings(&at), ["revised", "pass"]);
}

#[test]
fn asking_has_an_end() {
    let mut at = at(Gate::VisionValidated);
    analysed(&mut at, verdict("NEEDS_REVISION", SOFT));
    for _ in 0..MAX_DECISIONS {
        asked(&mut at);
        at.sim.answer(Answer::Revise("no".into()));
        at.reads(VISION, PRD);
    }
    at.from = at.sim.events.len();
    assert!(at.halts(Gate::VisionValidated).detail.contains("200 times"));
}
