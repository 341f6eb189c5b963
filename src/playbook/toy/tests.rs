//! The toy through the machine alone, from INIT to its end.

use super::event::{CoinDropped, ToyEvent};
use super::{Bank, Toy, bank};
use crate::machine::event::{Event, InputRejected, Origin, RunEvent};
use crate::machine::playbook::Playbook;
use crate::machine::step::{Input, step};
use crate::machine::testing::{GREEN, RED, Sim, World};
use crate::model::decision::Patience;
use crate::model::plan_row::RowStatus;
use crate::model::stop::{ExitStatus, StopReason};
use crate::playbook::passes::event::PassEvent;
use crate::playbook::{self, value};

const LOOP: &str = "goal: Fill the bank.\nacceptance_criteria: [{ id: a, text: It is full., check: [x] }]\nhalting_certificates: [EXACT]\nagents: { a: { backend: anthropic, model: m } }\n";

/// The check sees what the toy knows: the bank is full after the fourth coin.
const FULL_AFTER_FOUR: World = World { green_from: Some(3), ..GREEN };

fn toy(more: &str) -> Sim {
    Sim::begin(&format!("playbook: toy\n{LOOP}{more}"), Patience::WAIT, playbook::of)
}

/// In iteration 0, before its coin drops.
fn working() -> Sim {
    let mut sim = toy("");
    sim.until(&RED, |run| run.current.as_ref().is_some_and(|iteration| !iteration.calls.is_empty()));
    sim
}

fn coins(sim: &Sim) -> Vec<&CoinDropped> {
    sim.events.iter().filter_map(|event| event.work().map(|ToyEvent::CoinDropped(dropped)| dropped)).collect()
}

#[test]
fn four_coins_fill_the_bank() {
    let mut sim = toy("");
    let halted = sim.end(&FULL_AFTER_FOUR);
    assert_eq!((halted.status, halted.stop_reason), (ExitStatus::ExitConverged, StopReason::Pass), "{}", halted.detail);
    assert_eq!(
        coins(&sim).iter().map(|coin| (coin.iteration, coin.coins)).collect::<Vec<_>>(),
        [(0, 1), (1, 2), (2, 3), (3, 4)]
    );
    let residuals: Vec<String> = sim.run.residual_history().into_iter().flatten().map(|r| r.to_string()).collect();
    assert_eq!(residuals, ["3", "2", "1", "0"]);
    assert_eq!(sim.refolded(), sim.run);
}

#[test]
fn without_time_for_four_the_budget_ends_it() {
    let mut sim = toy("budget: { max_iterations: 3 }\n");
    let halted = sim.end(&FULL_AFTER_FOUR);
    assert_eq!((halted.status, halted.stop_reason), (ExitStatus::ExitBudgetExceeded, StopReason::MaxIters));
    assert_eq!(bank(&sim.run).coins(), 3);
}

#[test]
fn its_events_are_read_as_they_are_written() {
    let mut sim = toy("");
    sim.end(&FULL_AFTER_FOUR);
    for event in &sim.events {
        let read = playbook::parse(event.kind(), event.data().unwrap().get()).unwrap().unwrap();
        assert_eq!(read, *event);
    }
    let coin = Event::from(CoinDropped { iteration: 0, coins: 1 });
    assert_eq!((coin.kind(), coin.origin()), ("coin.dropped", Origin::Decided));
    assert_eq!(coin.data().unwrap().get(), r#"{"iteration":0,"coins":1}"#);
    assert_eq!(working().run.told(&coin).text, "it0 coin 1 drops");
}

#[track_caller]
fn rejected(sim: &Sim, event: impl Into<Event>) -> String {
    let events = step(&sim.run, Input::Record(Box::new(event.into())));
    match events.as_slice() {
        [Event::Run(RunEvent::InputRejected(InputRejected { why, .. }))] => why.clone(),
        other => panic!("it was not rejected: {other:?}"),
    }
}

#[test]
fn coins_drop_in_their_place_only() {
    let mut sim = working();
    assert_eq!(rejected(&sim, CoinDropped { iteration: 1, coins: 1 }), "iteration 1 is not running");
    assert_eq!(rejected(&sim, CoinDropped { iteration: 0, coins: 2 }), "coins drop one by one");
    sim.record(CoinDropped { iteration: 0, coins: 1 });
    assert_eq!(rejected(&sim, CoinDropped { iteration: 0, coins: 2 }), "a coin drops once an iteration");
    let early = toy("");
    assert_eq!(rejected(&early, CoinDropped { iteration: 0, coins: 1 }), "coin.dropped is not possible in INIT");
}

#[test]
fn playbooks_refuse_each_others_events() {
    let foreign =
        value::event::StepFinished { step: 0, outcome: crate::model::value::Outcome::Neutral, detail: String::new() };
    assert_eq!(rejected(&working(), foreign), "step.finished belongs to another playbook");
    let coin = || CoinDropped { iteration: 0, coins: 1 };
    for other in ["swarm", "value", "micro", "prd"] {
        let sim = Sim::begin(&format!("playbook: {other}\n{LOOP}"), Patience::WAIT, playbook::of);
        assert_eq!(rejected(&sim, coin()), "coin.dropped belongs to another playbook", "{other}");
        assert!(sim.run.work::<Bank>().is_none(), "{other} has no bank");
    }
    assert!(PassEvent::parse("coin.dropped", "{}").is_none());
}

#[test]
fn people_see_how_full_the_bank_is() {
    let mut sim = working();
    assert_eq!(Toy.title(&sim.run).unwrap(), "Plan  0 of 4 coins");
    assert_eq!(Toy.rows(&sim.run)[0].status, RowStatus::Working);
    sim.end(&FULL_AFTER_FOUR);
    assert_eq!(Toy.title(&sim.run).unwrap(), "Plan  4 of 4 coins");
    assert_eq!(Toy.rows(&sim.run)[0].as_text(), "bank: holds 4 coins (passes): ");
    let lines = Toy.ready_lines(sim.run.loop_file(), None);
    assert_eq!(lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>(), ["4 coins, one an iteration"]);
}
