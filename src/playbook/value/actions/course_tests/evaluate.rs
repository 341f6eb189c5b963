//! CRITICAL_EVAL.

use super::*;
use crate::machine::event::AgentEnd;
use crate::model::purpose::Purpose;
use crate::model::value::{Outcome, TaskSource};
use crate::playbook::value::event::StepFinished;

fn evaluate(sim: &mut Sim, findings: Vec<Structured>, end: AgentEnd) -> StepFinished {
    begin(sim, Action::CriticalEval);
    sim.agent_ends(Purpose::CriticalEval, findings, end);
    finish(sim)
}

#[test]
fn only_what_keeps_users_from_the_value_becomes_a_task() {
    let mut sim = Sim::working();
    let findings = vec![
        finding("polish", "The colours are dull."),
        finding("critical", "The greeting is never printed anywhere."),
        finding("degraded", "Long names are cut."),
        finding("blocking", "The program asks for a password twice before it starts."),
    ];
    let finished = evaluate(&mut sim, findings, AgentEnd::Reported);
    assert_eq!(finished.outcome, Outcome::Neutral);
    let made: Vec<_> = sim.run.value().tasks.iter().map(|task| (task.id.as_str(), task.source)).collect();
    assert_eq!(made, [("CE-16-2", TaskSource::CriticalEval), ("CE-16-4", TaskSource::CriticalEval)]);
    let task = sim.run.value().task("CE-16-2").unwrap();
    assert_eq!(task.value, "Nobody is greeted.");
    assert!(task.acceptance.contains("never printed"), "{}", task.acceptance);
    assert!(finished.detail.contains("1 critical, 1 blocking, 1 degraded, 1 polish"), "{}", finished.detail);
}

#[test]
fn finding_nothing_is_neither_progress_nor_the_lack_of_it() {
    let mut sim = Sim::working();
    assert_eq!(evaluate(&mut sim, Vec::new(), AgentEnd::Reported).outcome, Outcome::Neutral);
    assert_eq!(sim.run.value().no_progress, 0);
}

#[test]
fn an_evaluator_that_fails_is_no_evaluation_but_what_it_found_counts() {
    let mut sim = Sim::working();
    let finished = evaluate(&mut sim, Vec::new(), failed());
    assert_eq!((finished.outcome, finished.detail.contains("no answer")), (Outcome::NoProgress, true));
    let mut sim = Sim::working();
    let finished = evaluate(&mut sim, vec![finding("critical", "It does not start.")], failed());
    assert_eq!((finished.outcome, sim.run.value().tasks.len()), (Outcome::Neutral, 1));
}

#[test]
fn the_guardrails_hold_for_findings_too_and_a_refused_one_is_named() {
    let mut sim = Sim::working_with("value: { max_unplanned_tasks: 2 }");
    let findings = vec![
        finding("critical", "The greeting is never printed anywhere."),
        finding("critical", "The greeting is never printed anywhere!"),
        finding("blocking", "Names with umlauts crash the parser."),
        finding("blocking", "Opening the help page shows an empty window."),
    ];
    let finished = evaluate(&mut sim, findings, AgentEnd::Reported);
    let made: Vec<_> = sim.run.value().tasks.iter().map(|task| task.id.as_str()).collect();
    assert_eq!(made, ["CE-16-1", "CE-16-3"]);
    assert!(finished.detail.contains("CE-16-2 (") && finished.detail.contains("CE-16-4 ("), "{}", finished.detail);
}

#[test]
fn deciding_again_after_a_crash_makes_no_task_twice() {
    let mut sim = Sim::working();
    begin(&mut sim, Action::CriticalEval);
    let findings = vec![finding("critical", "It does not start."), finding("blocking", "The help page is empty.")];
    sim.agent(Purpose::CriticalEval, findings);
    let step = sim.run.value().step.clone().unwrap();
    let first = crate::playbook::value::actions::decide(&sim.run, &step).remove(0);
    sim.record(first);
    let finished = finish(&mut sim);
    assert_eq!(sim.run.value().tasks.len(), 2);
    assert!(finished.detail.ends_with("new tasks: CE-16-1, CE-16-2"), "{}", finished.detail);
}

#[test]
fn a_long_finding_without_an_impact_still_becomes_a_task() {
    let mut sim = Sim::working();
    let input = json!({ "severity": "critical", "description": "x ".repeat(900), "user_impact": " " });
    begin(&mut sim, Action::CriticalEval);
    let long = Structured::ReportEvalFinding(serde_json::from_value(input).unwrap());
    sim.agent(Purpose::CriticalEval, vec![long]);
    finish(&mut sim);
    assert_eq!(sim.run.value().tasks.len(), 1);
}
