//! What people may do to a run, and what nobody may: on a recorded run, gone on with events made by hand.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use nightloop::engine::recorded;
use nightloop::journal::{self, RunDir};
use nightloop::machine::event::{
    AgentEnd, AgentFinished, AskedBy, BudgetRaised, DecisionAsked, DecisionSettled, Event, OperatorEvent, ProbeEnd,
    RunResumed, SteerDelivered, SteerQueued, StopScheduled, ViewerAttached,
};
use nightloop::machine::fold::{self, FoldError, Stamped};
use nightloop::machine::operator::SteerStatus;
use nightloop::machine::run::RunState;
use nightloop::model::budget::Dimension;
use nightloop::model::decision::{ASK_TOOL, GuardFile, Patience, Request};

const HOUR: u64 = 3_600_000;

fn recorded() -> Vec<Stamped> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/demo-run-2");
    let records = journal::read(&RunDir::open(&dir).unwrap()).map(Result::unwrap);
    records.filter(|record| record.kind != journal::SEGMENT_END).map(|r| recorded::stamped(&r).unwrap()).collect()
}

/// The run just before the `number`th event of a kind.
fn before(kind: &str, number: usize) -> RunState {
    let events = recorded();
    let at = events.iter().enumerate().filter(|(_, stamped)| stamped.event.kind() == kind).nth(number).unwrap().0;
    let mut state = nightloop::playbook::start(&events[0]).unwrap();
    for stamped in &events[1..at] {
        fold::apply(&mut state, stamped).unwrap();
    }
    state
}

/// One more event, `later` milliseconds after the last.
fn then(state: &mut RunState, event: impl Into<Event>, later: u64) -> Result<(), FoldError> {
    let stamped = Stamped {
        seq: state.next_seq,
        ts: state.time.last_ts.clone(),
        mono_ms: state.time.last_mono_ms + later,
        boot: state.time.boot.clone(),
        event: event.into(),
    };
    fold::apply(state, &stamped)
}

fn resumed() -> RunResumed {
    RunResumed {
        engine_version: String::new(),
        reducer_version: 2,
        attempt: 1,
        torn_bytes: 0,
        torn_sha256: None,
        patience: Patience::WAIT,
        raised: Vec::new(),
        end: None,
    }
}

/// The tool call of the present reply that asks a person.
fn asker(state: &RunState) -> AskedBy {
    let call = state.call.as_ref().unwrap();
    let tool = call.tools.iter().find(|tool| tool.tool_use.name == ASK_TOOL).unwrap();
    AskedBy { call: call.started.call.clone(), turn: call.turn, tool: tool.tool_use.id.clone() }
}

fn asked(state: &RunState, request: Request, asked_by: Option<AskedBy>) -> DecisionAsked {
    DecisionAsked { id: state.operator.next_id(), request, why: String::new(), asked_by }
}

#[test]
fn only_who_may_ask_asks() {
    let state = before("decision.asked", 0);
    let by = asker(&state);
    let question = || Request::Question { question: "Which?".into(), choices: Vec::new() };
    let files = vec![GuardFile { path: "checks/run.sh".into(), sha256: None }];
    let tampering = || Request::Tampering {
        iteration: 0,
        findings: Vec::new(),
        files: files.clone(),
        diff: None,
        trials: Vec::new(),
    };
    let refused = [
        // A forged approval of changed checks would begin like this.
        asked(&state, tampering(), Some(by.clone())),
        asked(&state, tampering(), None),
        asked(&state, Request::SpendLimit { detail: String::new() }, Some(by.clone())),
        asked(&state, question(), None),
        asked(&state, question(), Some(AskedBy { turn: by.turn + 1, ..by.clone() })),
        asked(&state, question(), Some(AskedBy { tool: "another".into(), ..by.clone() })),
        DecisionAsked { id: nightloop::model::decision::DecisionId(7), ..asked(&state, question(), Some(by.clone())) },
    ];
    for event in refused {
        let shown = format!("{event:?}");
        assert!(then(&mut state.clone(), event, 1).is_err(), "{shown}");
    }
    let mut honest = state.clone();
    then(&mut honest, asked(&state, question(), Some(by.clone())), 1).unwrap();
    assert!(then(&mut honest.clone(), asked(&honest, question(), Some(by)), 1).is_err(), "one at a time");
}

#[test]
fn only_its_verification_closes_a_pause() {
    let state = before("decision.settled", 1);
    let Some(decision) = state.operator.unsettled() else { panic!("an answer waits to be carried out") };
    let events = recorded();
    let mut settled = events.iter().filter_map(|stamped| match &stamped.event {
        Event::Operator(OperatorEvent::DecisionSettled(settled)) if settled.id == decision.id => Some(settled.clone()),
        _ => None,
    });
    let honest: DecisionSettled = settled.next_back().unwrap();
    assert!(then(&mut state.clone(), honest.clone(), 1).is_ok());
    let mut failed = honest.clone();
    failed.check.as_mut().unwrap().end = ProbeEnd::Exited(1);
    assert!(then(&mut state.clone(), failed.clone(), 1).is_err(), "a failed check closes nothing");
    assert!(then(&mut state.clone(), DecisionSettled { closed: false, ..failed }, 1).is_ok());
    assert!(then(&mut state.clone(), DecisionSettled { check: None, ..honest }, 1).is_err(), "no check, no end");
}

#[test]
fn a_raised_limit_changes_the_limit_and_no_document() {
    let mut state = before("iteration.began", 2);
    let (learnings, plan) = (state.learnings_document(), nightloop::machine::document::plan(&state));
    let raise = |from: &str, to: &str| BudgetRaised {
        dimension: Dimension::Iterations,
        from: from.into(),
        to: to.into(),
        by: "ada".into(),
    };
    assert!(then(&mut state, raise("6", "5"), 1).is_err(), "only upwards");
    assert!(then(&mut state, raise("7", "9"), 1).is_err(), "from what it is");
    then(&mut state, raise("6", "8"), 1).unwrap();
    assert_eq!(state.limits.max_iterations, 8);
    assert_eq!(state.learnings_document(), learnings);
    assert_eq!(nightloop::machine::document::plan(&state), plan);
}

#[test]
fn waiting_for_a_person_costs_no_budget() {
    let mut state = before("decision.answered", 0);
    let spent = state.spent.clone();
    then(&mut state, ViewerAttached { viewer: "ada".into(), may_act: true }, HOUR).unwrap();
    assert_eq!(state.spent, spent);
    assert!(state.operator.waited_millis >= HOUR);
    let mut working = before("llm.responded", 0);
    let before = working.spent.millis;
    then(&mut working, ViewerAttached { viewer: "ada".into(), may_act: true }, HOUR).unwrap();
    assert_eq!(working.spent.millis, before + HOUR, "work is budget time, whoever watches");
}

#[test]
fn a_word_that_was_not_answered_waits_for_the_next_call() {
    let mut state = before("llm.responded", 3);
    let call = state.call.as_ref().unwrap();
    let (key, role) = (call.started.call.clone(), call.started.role);
    then(&mut state, SteerQueued { number: 1, text: "Mind the tests.".into(), by: "ada".into() }, 1).unwrap();
    then(&mut state, SteerDelivered { numbers: vec![1], call: key.clone() }, 1).unwrap();
    assert_eq!(state.operator.queued().count(), 0);
    then(&mut state, AgentFinished { call: key, role, end: AgentEnd::Cut("time".into()), handover: None }, 1).unwrap();
    assert_eq!(state.operator.steers[0].status, SteerStatus::Queued);
}

#[test]
fn an_order_survives_a_crash_and_watching_is_no_progress() {
    let mut state = before("llm.responded", 3);
    then(&mut state, StopScheduled { by: "ada".into(), scheduled: true }, 1).unwrap();
    for expected in 1..=3 {
        then(&mut state, resumed(), 1).unwrap();
        then(&mut state, ViewerAttached { viewer: "ada".into(), may_act: true }, 1).unwrap();
        assert_eq!(state.stalled_resumes, expected);
    }
    assert_eq!(state.operator.stop_after_iteration.as_deref(), Some("ada"));
}
