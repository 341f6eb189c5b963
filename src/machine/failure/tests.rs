//! The policy by table, and that a journal cannot say otherwise.

use super::*;
use crate::machine::event::{AgentEnd, AgentFinished, BudgetCut, LlmRequested};
use crate::machine::state::State;
use crate::machine::step::{self, Input};
use crate::machine::testing::{RED, Sim, started};
use crate::model::budget::{Dimension, Exhausted};
use crate::model::decision::Patience;
use crate::model::digest::Digest;
use crate::model::purpose::Purpose;
use FailureClass::*;

const STOP: Patience = Patience::STOP;
const HOUR: u64 = 3_600_000;

/// A run whose solver is called.
fn calling(patience: Patience) -> Sim {
    let mut sim = Sim::patient("", patience);
    sim.until(&RED, |run| run.state == State::SpawnSubagent && run.current.is_some());
    sim.record(started(&sim.run, Purpose::Solver, None));
    sim
}

fn request(sim: &mut Sim) {
    let call = sim.run.call.as_ref().unwrap();
    sim.record(LlmRequested {
        call: call.started.call.clone(),
        turn: 0,
        attempt: call.attempts,
        request_sha256: Digest::of(b"request"),
        reserved_tokens: 1,
        reserved_usd: None,
        drop_blocks: false,
    });
}

fn failed(sim: &Sim, class: FailureClass, facts: FailureFacts, wait_millis: Option<u64>) -> LlmFailed {
    let call = sim.run.call.as_ref().unwrap();
    LlmFailed {
        call: call.started.call.clone(),
        turn: 0,
        attempt: call.attempts,
        class,
        message: "no".into(),
        wait_millis,
        usage: None,
        cost_usd: None,
        facts: Some(facts),
    }
}

/// Fails as the policy wants it; returns what was recorded.
fn fail(sim: &mut Sim, class: FailureClass, facts: FailureFacts) -> Vec<Event> {
    let wait = decide(&sim.run, class, &facts).wait_millis();
    let failed = failed(sim, class, facts, wait);
    let events = step::step(&sim.run, Input::Record(Box::new(failed.into())));
    events.iter().for_each(|event| sim.record(event.clone()));
    events
}

const fn facts(retry_after_ms: Option<u64>, left_ms: u64) -> FailureFacts {
    FailureFacts { retry_after_ms, jitter: 0, left_ms }
}

#[test]
fn what_follows_each_class_of_failure() {
    let retry = |after_ms| AfterFailure::Retry { after_ms };
    let (rate, gone) = (AfterFailure::Stop(Signal::RateLimit), AfterFailure::Stop(Signal::DownstreamUnavailable));
    let table = [
        // A server's wait is waited out while it fits the time left, and not a moment longer.
        (RateLimited, Patience::WAIT, facts(Some(60_000), HOUR), retry(60_000)),
        (RateLimited, Patience::WAIT, facts(Some(60_000), 60_001), retry(60_000)),
        (RateLimited, Patience::WAIT, facts(Some(60_000), 60_000), rate),
        (RateLimited, STOP, facts(None, HOUR), retry(100)),
        (Overloaded, STOP, facts(Some(5_000), HOUR), retry(5_000)),
        (Overloaded, STOP, facts(Some(5_000), 0), rate),
        (Transient, STOP, facts(None, HOUR), retry(100)),
        (Transient, STOP, facts(None, 50), gone),
        (Crashed, STOP, facts(None, HOUR), retry(100)),
        (Crashed, STOP, facts(None, 0), gone),
        // Money is a person's to give. Where nobody is waited for, the run stops.
        (SpendLimit, Patience::WAIT, facts(None, HOUR), AfterFailure::Ask),
        (SpendLimit, STOP, facts(Some(1), HOUR), AfterFailure::Stop(Signal::SpendLimit)),
        (Auth, Patience::WAIT, facts(None, HOUR), gone),
        (TooLarge, Patience::WAIT, facts(None, HOUR), AfterFailure::GiveUp),
        (Fatal, Patience::WAIT, facts(Some(1), HOUR), AfterFailure::GiveUp),
        (PrefixMismatch, Patience::WAIT, facts(None, 0), retry(0)),
        (Cancelled, Patience::WAIT, facts(None, 0), retry(0)),
    ];
    for (class, patience, facts, expected) in table {
        let mut sim = calling(patience);
        request(&mut sim);
        assert_eq!(decide(&sim.run, class, &facts), expected, "{class:?} {patience:?} {facts:?}");
    }
}

#[test]
fn a_wait_before_anything_was_sent_is_as_long_as_it_was_told() {
    let mut sim = calling(STOP);
    for _ in 0..12 {
        request(&mut sim);
        fail(&mut sim, RateLimited, facts(None, HOUR));
    }
    let told = FailureFacts { retry_after_ms: Some(1_000), jitter: u32::MAX, left_ms: HOUR };
    assert_eq!(decide(&sim.run, RateLimited, &told), AfterFailure::Retry { after_ms: 1_000 });
    request(&mut sim);
    assert!(matches!(decide(&sim.run, RateLimited, &told), AfterFailure::Retry { after_ms: 1_001.. }));
}

/// Asked or stopped, whatever is recorded can be folded again.
#[test]
fn money_is_not_asked_for_while_another_decision_is_open() {
    let mut sim = calling(Patience::WAIT);
    request(&mut sim);
    fail(&mut sim, SpendLimit, facts(None, HOUR));
    assert_eq!(decide(&sim.run, SpendLimit, &facts(None, HOUR)), AfterFailure::Stop(Signal::SpendLimit));
    assert_eq!(sim.refolded(), sim.run);
}

#[test]
fn a_program_that_breaks_down_three_times_stops_the_run_and_waits_do_not_count() {
    let mut sim = calling(STOP);
    for class in [Crashed, RateLimited, RateLimited, Crashed] {
        request(&mut sim);
        assert_eq!(fail(&mut sim, class, facts(None, HOUR)).len(), 1, "{class:?} is tried again");
    }
    request(&mut sim);
    let kinds: Vec<&str> = fail(&mut sim, Crashed, facts(None, HOUR)).iter().map(Event::kind).collect();
    assert_eq!(kinds, ["llm.failed", "backpressure.seen"]);
    assert_eq!(sim.run.backpressure.as_ref().map(|seen| seen.signal), Some(Signal::DownstreamUnavailable));
}

#[test]
fn what_follows_is_recorded_with_it() {
    let mut sim = calling(Patience::WAIT);
    request(&mut sim);
    let kinds: Vec<&str> = fail(&mut sim, SpendLimit, facts(None, HOUR)).iter().map(Event::kind).collect();
    assert_eq!(kinds, ["llm.failed", "decision.asked"]);
    assert_eq!(sim.run.operator.open().count(), 1);

    // A stop that was seen before is the reason that stands.
    let mut sim = calling(STOP);
    request(&mut sim);
    sim.record(BackpressureSeen { signal: Signal::StopFile, detail: String::new() });
    assert_eq!(fail(&mut sim, Auth, facts(None, HOUR)).len(), 1);
    assert_eq!(sim.run.backpressure.as_ref().map(|seen| seen.signal), Some(Signal::StopFile));
}

/// Each of these was decided otherwise, so a journal that says so is refused.
#[test]
fn a_journal_cannot_say_otherwise() {
    let mut sim = calling(STOP);
    request(&mut sim);
    let refused = |sim: &Sim, event: Event| {
        let events = step::step(&sim.run, Input::Record(Box::new(event)));
        assert_eq!(events.iter().map(Event::kind).collect::<Vec<_>>(), ["input.rejected"]);
    };
    // A fatal failure is not retried, a rate limit is not given up, a wait is as long as it was decided.
    for (class, wait) in [(Fatal, Some(0)), (RateLimited, None), (RateLimited, Some(99)), (SpendLimit, Some(0))] {
        refused(&sim, failed(&sim, class, facts(None, HOUR), wait).into());
    }
    // The call of a run that has to stop does not just end, and it stops for no other reason.
    let event = failed(&sim, Auth, facts(None, HOUR), None);
    sim.record(event);
    let call = sim.run.call.as_ref().unwrap();
    let (call, role) = (call.started.call.clone(), call.role());
    refused(&sim, AgentFinished { call, role, end: AgentEnd::NoReport, handover: None, moved: None }.into());
    refused(&sim, BackpressureSeen { signal: Signal::SpendLimit, detail: String::new() }.into());
    let asked = DecisionAsked {
        id: sim.run.operator.next_id(),
        request: Request::SpendLimit { detail: String::new() },
        why: String::new(),
        asked_by: None,
    };
    refused(&sim, asked.into());
    sim.record(BackpressureSeen { signal: Signal::DownstreamUnavailable, detail: String::new() });
}

#[test]
fn only_the_limit_that_is_set_cuts_and_once() {
    let cut = |limit: &str| BudgetCut {
        exhausted: Exhausted { dimension: Dimension::IterationToolCalls, observed: limit.into(), limit: limit.into() },
    };
    let mut sim = calling(STOP);
    let limit = sim.run.limits.of(Dimension::IterationToolCalls).unwrap();
    let kind = |sim: &Sim, cut: BudgetCut| step::step(&sim.run, Input::Record(Box::new(cut.into())))[0].kind();
    assert_eq!(kind(&Sim::at(State::CollectArtifacts), cut(&limit)), "input.rejected");
    assert_eq!(kind(&sim, cut("1")), "input.rejected");
    assert_eq!(kind(&sim, cut(&limit)), "budget.cut");
    sim.record(cut(&limit));
    assert_eq!(kind(&sim, cut(&limit)), "input.rejected");
}
