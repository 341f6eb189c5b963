//! PRD Refinement.

use super::*;
use crate::model::decision::{Answer, Request, Severity};

pub fn critique(verdict: &str) -> Vec<Structured> {
    let input = json!({ "verdict": verdict, "reason": "the reason", "amendments": ["say how"], "descope_suggestions": ["less"] });
    vec![report(Tool::ReportCritique, input)]
}

fn proposal(text: &str) -> Vec<Structured> {
    vec![report(Tool::ProposePrd, json!({ "text": text, "note": "clearer" }))]
}

#[track_caller]
fn asked(at: &mut At) -> Request {
    assert_eq!(at.sim.settle(), Todo::AwaitPerson);
    at.sim.run.operator.open().next().unwrap().request.clone()
}

/// Approves the proposed text; the engine writes it, and reads again.
#[track_caller]
fn approves(at: &mut At, text: &str) {
    let Request::Refinement { after, path, .. } = asked(at) else { panic!() };
    assert_eq!((path.as_str(), after), ("PRD.md", Digest::of(text.as_bytes())));
    at.sim.answer(Answer::Approve { result: after });
    let Todo::Settle(id) = at.sim.settle() else { panic!() };
    at.sim.record(DecisionSettled { id, closed: true, check: None, detail: String::new() });
    at.reads(VISION, text);
}

fn closings(at: &At) -> Vec<String> {
    let rounds = at.sim.run.value().prd.rounds.iter();
    rounds.map(|round| round.closed.as_ref().map_or("open", |closed| &closed.how).to_owned()).collect()
}

#[test]
fn an_approved_prd_needs_nobody() {
    let mut at = at(Gate::PrdCritique);
    at.sim.agent(Purpose::PrdCritique, critique("APPROVE"));
    at.passes(Gate::PrdCritique);
    assert_eq!(closings(&at), ["approve"]);
}

#[test]
fn an_amendment_is_put_before_a_person_and_judged_again() {
    let mut at = at(Gate::PrdCritique);
    at.sim.agent(Purpose::PrdCritique, critique("AMEND"));
    at.sim.agent(Purpose::PrdAmend, proposal("A better one."));
    let Request::Refinement { before, .. } = asked(&mut at) else { panic!() };
    assert_eq!(before, Digest::of(PRD.as_bytes()));
    approves(&mut at, "A better one.");
    at.sim.agent(Purpose::PrdCritique, critique("APPROVE"));
    at.passes(Gate::PrdCritique);
    assert_eq!(closings(&at), ["amended", "approve"]);
    assert_eq!(at.sim.run.value().prd.rounds[1].kept.document, Digest::of(b"A better one."));
}

#[test]
fn a_person_may_want_the_prd_as_it_is() {
    let mut at = at(Gate::PrdCritique);
    at.sim.agent(Purpose::PrdCritique, critique("DESCOPE"));
    at.sim.agent(Purpose::PrdAmend, proposal("Less."));
    asked(&mut at);
    at.sim.answer(Answer::Reject);
    at.passes(Gate::PrdCritique);
    assert_eq!(closings(&at), ["rejected"]);
}

#[test]
fn as_many_rounds_as_declared_need_no_person_and_no_more() {
    let mut at = at_with(Gate::PrdCritique, "value: { auto_approve_prd: 1 }");
    at.sim.agent(Purpose::PrdCritique, critique("DESCOPE"));
    at.sim.agent(Purpose::PrdAmend, proposal("Less."));
    let write = Effect::WriteDocument { path: "PRD.md".into(), text: Digest::of(b"Less.") };
    assert_eq!(at.sim.settle(), Todo::Effect(write));
    at.sim.record(documents(VISION, "Less."));
    at.sim.agent(Purpose::PrdCritique, critique("AMEND"));
    at.sim.agent(Purpose::PrdAmend, proposal("Still less."));
    approves(&mut at, "Still less.");
    at.sim.agent(Purpose::PrdCritique, critique("APPROVE"));
    at.passes(Gate::PrdCritique);
    assert_eq!(closings(&at), ["auto_descope", "amended", "approve"]);
}

#[test]
fn without_a_proposal_a_person_is_told_what_to_change() {
    // Nothing proposed, nothing new.
    for last in [Vec::new(), proposal(PRD)] {
        let mut at = at(Gate::PrdCritique);
        at.sim.agent(Purpose::PrdCritique, critique("AMEND"));
        if last.is_empty() {
            at.breaks_down(Purpose::PrdAmend);
            at.breaks_down(Purpose::PrdAmend);
        } else {
            at.session(Purpose::PrdAmend, last, AgentEnd::Reported);
        }
        let Request::Vision { issues } = asked(&mut at) else { panic!() };
        assert_eq!(issues[0].text, "say how");
        assert!(issues.iter().all(|issue| issue.severity == Severity::Soft));
        at.sim.answer(Answer::Revise("done".into()));
        at.reads(VISION, "Says how.");
        at.sim.agent(Purpose::PrdCritique, critique("APPROVE"));
        at.passes(Gate::PrdCritique);
        assert_eq!(closings(&at), ["revised", "approve"]);
    }
}

#[test]
fn what_is_infeasible_is_revised_or_the_run_ends() {
    let mut at = at(Gate::PrdCritique);
    for round in 0..6 {
        at.sim.agent(Purpose::PrdCritique, critique("REJECT"));
        let research = json!({ "topic": "t", "findings": "f", "sources": [], "alternatives": ["a smaller one"] });
        at.sim.agent(Purpose::PrdResearch, vec![report(Tool::ReportResearch, research)]);
        let Request::Vision { issues } = asked(&mut at) else { panic!() };
        assert_eq!((issues.len(), issues[0].severity), (1, Severity::Hard));
        assert_eq!(issues[0].alternatives, ["a smaller one"]);
        at.sim.answer(Answer::Revise("smaller".into()));
        // An unchanged text is not judged again.
        let same = if round == 0 { PRD.to_owned() } else { format!("text {round}") };
        at.reads(VISION, &same);
        asked(&mut at);
        at.sim.answer(Answer::Revise("smaller".into()));
        at.reads(VISION, &format!("text {}", round + 1));
    }
    at.sim.agent(Purpose::PrdCritique, critique("APPROVE"));
    at.passes(Gate::PrdCritique);
    assert_eq!(at.sim.run.value().prd.rounds.len(), 7);
}

#[test]
fn after_five_rounds_a_person_says_whether_it_goes_on() {
    let mut at = at_with(Gate::PrdCritique, "value: { auto_approve_prd: 9 }");
    for round in 0..5 {
        at.sim.agent(Purpose::PrdCritique, critique("AMEND"));
        at.sim.agent(Purpose::PrdAmend, proposal(&format!("text {round}")));
        assert!(matches!(at.sim.settle(), Todo::Effect(Effect::WriteDocument { .. })));
        at.sim.record(documents(VISION, &format!("text {round}")));
    }
    let Request::Question { choices, .. } = asked(&mut at) else { panic!() };
    assert_eq!(choices, ["go on"]);
    // Nothing else means yes.
    at.sim.answer(Answer::Text("no".into()));
    assert!(matches!(asked(&mut at), Request::Question { .. }));
    at.sim.answer(Answer::Text("Go on ".into()));
    assert!(at.passes(Gate::PrdCritique).contains("d2"));
    assert_eq!(closings(&at), ["auto_amend"; 5]);
}

#[test]
fn a_prd_that_nobody_judged_stops_the_run() {
    let mut at = at(Gate::PrdCritique);
    at.breaks_down(Purpose::PrdCritique);
    at.breaks_down(Purpose::PrdCritique);
    at.asks_again(Gate::PrdCritique);
}
