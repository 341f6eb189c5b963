//! The one event of the toy.

use serde::{Deserialize, Serialize};

use crate::machine::event::{family, work_event};
use crate::machine::words::{Place, Told, Topic::Run};

family! {
    /// What happened to the bank.
    ToyEvent {
        CoinDropped = "coin.dropped", Decided;
    }
}
work_event!(ToyEvent);

impl ToyEvent {
    pub fn told(&self, at: &Place) -> Told {
        let Self::CoinDropped(dropped) = self;
        Told::new(Run, format!("{} coin {} drops", at.when, dropped.coins))
    }
}

/// A coin is in the bank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CoinDropped {
    pub iteration: u32,
    /// How many there are with it.
    pub coins: u32,
}
