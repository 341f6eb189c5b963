//! A toy: the fifth playbook, in tests only. It shows what an addition costs: this room, a row in the table of names
//! (`model::loop_file::playbook`), and a line where a playbook is chosen (`playbook::of`).
//!
//! A bank needs four coins. In each iteration a solver works, then one coin drops. Nothing is left to do once the bank
//! is full.

mod event;
mod tests;

use crate::machine::event::{Event, WorkEvent};
use crate::machine::iteration::Iteration;
use crate::machine::open::Work;
use crate::machine::playbook::Playbook;
use crate::machine::run::RunState;
use crate::machine::state::State;
use crate::machine::todo::Todo;
use crate::model::certificate::Residual;
use crate::model::decimal::Exact;
use crate::model::ids::Role;
use crate::model::loop_file::{self, LoopFile};
use crate::model::plan_row::{Row, RowKind, RowStatus};
use crate::model::purpose::Purpose;
use crate::model::ready_line::{Items, Look, ReadyLine};

use event::{CoinDropped, ToyEvent};

/// So many fill the bank.
const COINS: u32 = 4;
/// The Northstar metric that counts them.
const METRIC: &str = "vc-1";

/// The toy's part of a run: the iterations in which a coin dropped.
#[derive(Debug, Clone, PartialEq, Default)]
struct Bank {
    dropped_in: Vec<u32>,
}

impl Bank {
    fn coins(&self) -> u32 {
        u32::try_from(self.dropped_in.len()).unwrap_or(u32::MAX)
    }
}

fn bank(run: &RunState) -> Bank {
    run.work::<Bank>().cloned().unwrap_or_default()
}

pub struct Toy;

impl Playbook for Toy {
    fn name(&self) -> loop_file::Playbook {
        loop_file::Playbook::Toy
    }

    fn begin(&self) -> Box<dyn Work> {
        Box::new(Bank::default())
    }

    fn parse(&self, kind: &str, data: &str) -> Option<Result<Event, serde_json::Error>> {
        ToyEvent::parse(kind, data).map(|event| event.map(Event::from))
    }

    fn legal(&self, run: &RunState, event: &dyn WorkEvent) -> Result<(), String> {
        let Some(ToyEvent::CoinDropped(dropped)) = event.as_any().downcast_ref() else {
            return Err(format!("{} belongs to another playbook", event.kind()));
        };
        run.only_in(event.kind(), &[State::SpawnSubagent])?;
        if run.current.as_ref().map(Iteration::number) != Some(dropped.iteration) {
            return Err(format!("iteration {} is not running", dropped.iteration));
        }
        if bank(run).dropped_in.contains(&dropped.iteration) {
            return Err("a coin drops once an iteration".to_owned());
        }
        if dropped.coins != bank(run).coins() + 1 { Err("coins drop one by one".to_owned()) } else { Ok(()) }
    }

    fn fold(&self, run: &mut RunState, event: &Event) -> Result<(), &'static str> {
        if let Some(ToyEvent::CoinDropped(dropped)) = event.work() {
            run.work_mut::<Bank>().ok_or("there is no bank")?.dropped_in.push(dropped.iteration);
        }
        Ok(())
    }

    fn work(&self, run: &RunState, iteration: &Iteration) -> Option<Todo> {
        if !iteration.calls.contains_key(&iteration.call_key(Role::Solver, None)) {
            return Some(Todo::call(Purpose::Solver));
        }
        (!self.decide(run).is_empty()).then_some(Todo::Proceed)
    }

    fn decide(&self, run: &RunState) -> Vec<Event> {
        let due = |iteration: &&Iteration| {
            run.state == State::SpawnSubagent && !bank(run).dropped_in.contains(&iteration.number())
        };
        let coin = |iteration: &Iteration| CoinDropped { iteration: iteration.number(), coins: bank(run).coins() + 1 };
        run.current.as_ref().filter(due).map(|iteration| coin(iteration).into()).into_iter().collect()
    }

    fn residual(&self, run: &RunState) -> Option<Result<Residual, String>> {
        let missing = COINS.saturating_sub(bank(run).coins());
        Some(Ok(Residual { value: Exact::from_u64(missing.into()), unmet_of: Some((missing, COINS)) }))
    }

    fn metric(&self, run: &RunState, id: &str, iteration: Option<u32>) -> Option<String> {
        let by_then = |dropped: &&u32| iteration.is_some_and(|iteration| **dropped <= iteration);
        (id == METRIC).then(|| bank(run).dropped_in.iter().filter(by_then).count().to_string())
    }

    fn rows(&self, run: &RunState) -> Vec<Row> {
        let status = if bank(run).coins() < COINS { RowStatus::Working } else { RowStatus::Met };
        vec![Row::new(RowKind::Item, "bank", &format!("holds {COINS} coins"), status)]
    }

    fn title(&self, run: &RunState) -> Option<String> {
        Some(format!("Plan  {} of {COINS} coins", bank(run).coins()))
    }

    fn first_call(&self) -> Purpose {
        Purpose::Solver
    }

    fn ready_lines(&self, _declared: &LoopFile, _items: Option<&Items>) -> Vec<ReadyLine> {
        vec![ReadyLine::new("bank", Look::Plain, format!("{COINS} coins, one an iteration"))]
    }
}
