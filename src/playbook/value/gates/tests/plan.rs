//! The plan, its quality gates, blockers, the value at the start, preflight.

use super::*;
use crate::model::decision::{Answer, Request};
use crate::model::value::{Recommendation, TaskStatus};
use crate::playbook::value::event::PreflightChecked;

pub fn vrc(score: &str) -> Vec<Structured> {
    let input = json!({ "value_score": score, "deliverables_total": 2, "deliverables_verified": 0,
        "recommendation": "CONTINUE", "summary": "little" });
    vec![report(Tool::ReportVrc, input)]
}

pub fn preflight(tools: &[&str]) -> PreflightChecked {
    let missing_tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
    PreflightChecked {
        missing_tools,
        missing_variables: Vec::new(),
        placeholder_variables: Vec::new(),
        services: Vec::new(),
    }
}

fn blocked(id: &str, reason: &str) -> Task {
    Task { status: TaskStatus::Blocked, blocked_reason: Some(reason.to_owned()), ..task(id) }
}

fn blocks(id: &str, reason: &str) -> Vec<Structured> {
    vec![report(Tool::ManageTask, json!({ "action": "modify", "task_id": id, "blocked_reason": reason }))]
}

#[test]
fn a_session_without_tasks_is_tried_once_more() {
    let mut empty = at(Gate::PlanGenerated);
    empty.sim.agent(Purpose::Plan, Vec::new());
    empty.sim.agent(Purpose::Plan, Vec::new());
    assert!(empty.asks_again(Gate::PlanGenerated).contains("too abstract"));

    let mut second = at(Gate::PlanGenerated);
    second.breaks_down(Purpose::Plan);
    second.put(task("T1"));
    second.sim.agent(Purpose::Plan, Vec::new());
    second.passes(Gate::PlanGenerated);
}

#[test]
fn a_plan_that_broke_off_is_no_plan() {
    let mut at = at(Gate::PlanGenerated);
    at.put(task("T1"));
    at.breaks_down(Purpose::Plan);
    at.breaks_down(Purpose::Plan);
    assert!(at.asks_again(Gate::PlanGenerated).contains("not finished"));
}

#[test]
fn a_quality_gate_that_changes_nothing_is_passed() {
    let mut at = at(Gate::Craap);
    at.sim.agent(Purpose::Craap, Vec::new());
    assert!(at.passes(Gate::Craap).contains("0 change(s)"));
}

#[test]
fn a_quality_gate_has_three_passes() {
    let mut third = at(Gate::Clarity);
    third.breaks_down(Purpose::Clarity);
    third.breaks_down(Purpose::Clarity);
    third.sim.agent(Purpose::Clarity, Vec::new());
    third.passes(Gate::Clarity);

    let mut never = at(Gate::Clarity);
    for _ in 0..3 {
        never.breaks_down(Purpose::Clarity);
    }
    never.asks_again(Gate::Clarity);
}

#[test]
fn gates_that_are_not_strict_warn() {
    let mut at = at_with(Gate::Tidy, "value: { strict_gates: false }");
    for _ in 0..3 {
        at.breaks_down(Purpose::Tidy);
    }
    assert!(at.passes(Gate::Tidy).contains("warning"));
}

#[test]
fn a_quality_gate_may_not_leave_a_task_blocked_unless_a_person_is_needed() {
    let mut at_fault = at(Gate::Break);
    for pass in 0..3 {
        at_fault.session(Purpose::Break, blocks("T1", &format!("unclear {pass}")), AgentEnd::Reported);
    }
    assert!(at_fault.asks_again(Gate::Break).contains("T1 was blocked (unclear 2)"));

    let mut person = at(Gate::Break);
    person.session(Purpose::Break, blocks("T1", "HUMAN_ACTION: buy a key"), AgentEnd::Reported);
    person.passes(Gate::Break);

    // What was blocked before is not this gate's doing.
    let mut before = at(Gate::Break);
    before.put(blocked("T1", "unclear"));
    before.sim.agent(Purpose::Break, Vec::new());
    before.passes(Gate::Break);
}

#[test]
fn a_plan_that_is_empty_or_goes_in_a_circle_is_not_passed() {
    let needs = |id: &str, other: &str| Task { dependencies: vec![other.to_owned()], ..task(id) };
    let mut circle = at(Gate::Validate);
    circle.put(needs("T2", "T3"));
    circle.put(needs("T3", "T2"));
    for _ in 0..3 {
        circle.sim.agent(Purpose::Validate, Vec::new());
    }
    assert!(circle.asks_again(Gate::Validate).contains("circle"));

    let mut row = at(Gate::Validate);
    row.put(needs("T2", "T1"));
    row.put(needs("T3", "T2"));
    row.sim.agent(Purpose::Validate, Vec::new());
    row.passes(Gate::Validate);

    let mut empty = at(Gate::Validate);
    empty.put(Task { status: TaskStatus::Descoped, ..task("T1") });
    for _ in 0..3 {
        empty.sim.agent(Purpose::Validate, Vec::new());
    }
    assert!(empty.asks_again(Gate::Validate).contains("no task is left"));
}

#[test]
fn blockers_are_cleared_up_or_listed() {
    let mut none = at(Gate::Blockers);
    none.passes(Gate::Blockers);
    assert!(!none.sim.events[none.from..].iter().any(|event| matches!(event, Event::Call(CallEvent::AgentStarted(_)))));

    let mut person = planned(&[blocked("T1", "HUMAN_ACTION: buy a key")]);
    assert!(person.passes(Gate::Blockers).contains("1 task(s) wait for a person"));
}

/// At the gate for blockers, with this plan.
fn planned(tasks: &[Task]) -> At {
    at_after(Gate::Blockers, "", documents(VISION, PRD), tasks.to_vec())
}

#[test]
fn what_stays_blocked_after_two_sessions_stops_the_run() {
    let mut stays = planned(&[blocked("T1", "unclear"), blocked("T2", "no key")]);
    stays.sim.agent(Purpose::VerifyBlockers, Vec::new());
    stays.sim.agent(Purpose::VerifyBlockers, Vec::new());
    let detail = stays.asks_again(Gate::Blockers);
    assert!(detail.contains("1) task T1: unclear; 2) task T2: no key"), "{detail}");

    let mut cleared = planned(&[blocked("T1", "unclear")]);
    cleared.sim.agent(Purpose::VerifyBlockers, Vec::new());
    cleared.put(task("T1"));
    assert!(cleared.passes(Gate::Blockers).contains("cleared up"));
}

#[test]
fn the_value_at_the_start_is_measured_or_nothing() {
    let mut measured = at(Gate::VrcInit);
    measured.sim.agent(Purpose::VrcFull, vrc("0.25"));
    measured.passes(Gate::VrcInit);
    let taken = measured.sim.run.value().latest_vrc().unwrap();
    assert_eq!((taken.value_score.to_string().as_str(), taken.carried), ("0.25", false));

    let mut silent = at(Gate::VrcInit);
    silent.sim.agent(Purpose::VrcFull, Vec::new());
    silent.breaks_down(Purpose::VrcFull);
    silent.passes(Gate::VrcInit);
    let taken = silent.sim.run.value().latest_vrc().unwrap();
    assert!(taken.carried && taken.value_score.is_zero() && taken.recommendation == Recommendation::Continue);
    assert_eq!(silent.sim.run.value().vrcs.len(), 1);
}

fn looks(at: &mut At, tools: &[&str]) {
    assert_eq!(at.sim.settle(), Todo::Effect(Effect::CheckPreflight));
    at.sim.record(preflight(tools));
}

fn judged(status: &str) -> Vec<Structured> {
    vec![report(Tool::ReportPreflight, json!({ "status": status, "instructions": "Get a cc." }))]
}

#[test]
fn preflight_that_is_clear_needs_nobody() {
    let mut at = at(Gate::Preflight);
    looks(&mut at, &[]);
    at.passes(Gate::Preflight);
}

#[test]
fn an_agent_does_not_decide_that_tools_are_there() {
    let mut at = at(Gate::Preflight);
    looks(&mut at, &["cc"]);
    at.sim.agent(Purpose::Preflight, judged("READY"));
    looks(&mut at, &["cc"]);
    assert_eq!(at.sim.settle(), Todo::AwaitPerson);
    let Request::HumanAction { instructions, .. } = at.sim.run.operator.open().next().unwrap().request.clone() else {
        panic!()
    };
    assert!(instructions.contains("install `cc`") && instructions.contains("Get a cc."), "{instructions}");
    at.sim.answer(Answer::Done);
    looks(&mut at, &[]);
    at.passes(Gate::Preflight);
}

#[test]
fn what_is_missing_after_a_person_was_asked_stops_the_run() {
    let mut at = at(Gate::Preflight);
    looks(&mut at, &["cc", "ld"]);
    at.breaks_down(Purpose::Preflight);
    looks(&mut at, &["cc", "ld"]);
    assert_eq!(at.sim.settle(), Todo::AwaitPerson);
    at.sim.answer(Answer::Done);
    looks(&mut at, &["cc"]);
    let detail = at.asks_again(Gate::Preflight);
    assert!(detail.contains("install `cc`") && !detail.contains("ld`"), "{detail}");
}

#[test]
fn variables_and_placeholders_are_asked_for_like_tools() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let seen = |missing: &[&str], placeholders: &[&str]| PreflightChecked {
        missing_tools: Vec::new(),
        missing_variables: names(missing),
        placeholder_variables: names(placeholders),
        services: Vec::new(),
    };
    let look = |at: &mut At, checked: PreflightChecked| {
        assert_eq!(at.sim.settle(), Todo::Effect(Effect::CheckPreflight));
        at.sim.record(checked);
    };
    // Either of them alone keeps the gate shut.
    for checked in [seen(&["REGION"], &[]), seen(&[], &["API_KEY"])] {
        let mut alone = at(Gate::Preflight);
        look(&mut alone, checked.clone());
        alone.sim.agent(Purpose::Preflight, judged("READY"));
        look(&mut alone, checked);
        assert_eq!(alone.sim.settle(), Todo::AwaitPerson);
    }
    let mut at = at(Gate::Preflight);
    look(&mut at, seen(&["REGION"], &["API_KEY"]));
    at.sim.agent(Purpose::Preflight, judged("READY"));
    look(&mut at, seen(&["REGION"], &["API_KEY"]));
    at.sim.settle();
    let Request::HumanAction { instructions, .. } = at.sim.run.operator.open().next().unwrap().request.clone() else {
        panic!()
    };
    let both = instructions.contains("set `REGION`") && instructions.contains("give `API_KEY` its real value");
    assert!(both, "{instructions}");
    at.sim.answer(Answer::Done);
    look(&mut at, seen(&[], &["API_KEY"]));
    let detail = at.asks_again(Gate::Preflight);
    assert!(detail.contains("give `API_KEY` its real value") && !detail.contains("REGION"), "{detail}");
}

#[test]
fn a_question_during_a_call_is_none_of_the_steps_own() {
    let mut at = at(Gate::Preflight);
    looks(&mut at, &["cc"]);
    let call = at.sim.agent_begins(Purpose::Preflight);
    let request = Request::SpendLimit { detail: "no more money".into() };
    let id = at.sim.run.operator.next_id();
    at.sim.record(DecisionAsked { id, request, why: String::new(), asked_by: None });
    at.sim.answer(Answer::Retry);
    let role = Purpose::Preflight.role();
    at.sim.record(AgentFinished { call, role, end: AgentEnd::NoReport, handover: None, moved: None });
    looks(&mut at, &["cc"]);
    // The person said something about money, nothing about `cc`.
    assert_eq!(at.sim.settle(), Todo::AwaitPerson);
    assert!(matches!(at.sim.run.operator.open().next().unwrap().request, Request::HumanAction { .. }));
}
