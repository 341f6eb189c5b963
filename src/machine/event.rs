//! What happened, in the past tense. These are the payloads of the journal.
//!
//! Events are nested as they are owned: each family has a table of its own (`event::family`) with all that is true of its
//! events (kind, whose word it is, the blobs they name) and their English. This file only routes. A playbook's own
//! events are known to its room alone; here they are a [`WorkEvent`].
//!
//! An event is durable before the effect it announces starts. Large texts live in blobs; events carry
//! their digests. Adding a kind is a new reducer version: an older engine must refuse, not guess.

mod call;
mod family;
mod git;
mod guard;
mod iteration;
mod network;
mod operator;
mod probe;
mod run;
mod work;

use serde_json::value::RawValue;

use crate::model::digest::Digest;

use super::words::{Place, Told};

pub use call::*;
pub(crate) use family::family;
pub use git::*;
pub use guard::*;
pub use iteration::*;
pub use network::*;
pub use operator::*;
pub use probe::*;
pub use run::*;
pub use work::WorkEvent;
pub(crate) use work::work_event;

/// Journals written by a newer reducer are not resumed.
pub const REDUCER_VERSION: u32 = 9;

/// From this version on a run is judged by the rules that stand in the code without a condition. One that began before
/// is judged by the rules it began with ([`RunState::began_before_replays`](super::run::RunState::began_before_replays)).
pub const FIRST_WITH_REPLAYS: u32 = 6;

/// From this version on recovery in the value playbook comes before drift: what counts as a sub-goal, when the exit gate
/// is tried again, what is run again after a task. One that began before is judged by what it began with
/// ([`RunState::began_before_recovery`](super::run::RunState::began_before_recovery)).
pub const FIRST_WITH_RECOVERY: u32 = 7;

/// From this version on what a limit cuts is gone on with: a step before the first iteration is begun again, an iteration
/// keeps a share for the look at its value, and an end by a limit says which limit.
pub const FIRST_WITH_CONTINUATIONS: u32 = 7;

/// From this version on a stuck item is parked while the others go on, unless loop.yaml says otherwise, and what ends a
/// pass is told in words of its own. One that began before goes on as it began
/// ([`RunState::began_before_parking`](super::run::RunState::began_before_parking)).
pub const FIRST_WITH_PARKING: u32 = 9;

/// Whose word an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The engine saw it, or did it.
    Fact,
    /// The machine or a playbook decided it from the facts before it; `verify` decides it again.
    Decided,
    /// The engine wrote down what follows from the facts; `verify` computes it again.
    Derived,
    /// A person caused it, or someone who watches. Such events come at any moment of a run.
    Person,
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    Run(RunEvent),
    Iteration(IterationEvent),
    Call(CallEvent),
    Operator(OperatorEvent),
    Git(GitEvent),
    Network(NetworkEvent),
    /// Of the run's playbook.
    Work(Box<dyn WorkEvent>),
}

/// Asks the family.
macro_rules! of_family {
    ($event:expr, $data:ident => $answer:expr) => {
        match $event {
            Event::Run($data) => $answer,
            Event::Iteration($data) => $answer,
            Event::Call($data) => $answer,
            Event::Operator($data) => $answer,
            Event::Git($data) => $answer,
            Event::Network($data) => $answer,
            Event::Work($data) => $answer,
        }
    };
}

impl Event {
    pub fn kind(&self) -> &'static str {
        of_family!(self, event => event.kind())
    }

    pub fn origin(&self) -> Origin {
        of_family!(self, event => event.origin())
    }

    /// The blobs it leans on.
    pub fn blobs(&self) -> Vec<Digest> {
        of_family!(self, event => event.blobs())
    }

    /// The payload as one line of JSON.
    pub fn data(&self) -> Result<Box<RawValue>, serde_json::Error> {
        of_family!(self, event => event.data())
    }

    /// In English; foreign text in it is not cleaned.
    pub fn told(&self, at: &Place) -> Told {
        of_family!(self, event => event.told(at))
    }

    /// Reads a payload. `None`: the kind is not one of the machine's own.
    pub fn parse(kind: &str, data: &str) -> Option<Result<Self, serde_json::Error>> {
        None.or_else(|| RunEvent::parse(kind, data).map(|event| event.map(Self::Run)))
            .or_else(|| IterationEvent::parse(kind, data).map(|event| event.map(Self::Iteration)))
            .or_else(|| CallEvent::parse(kind, data).map(|event| event.map(Self::Call)))
            .or_else(|| OperatorEvent::parse(kind, data).map(|event| event.map(Self::Operator)))
            .or_else(|| GitEvent::parse(kind, data).map(|event| event.map(Self::Git)))
            .or_else(|| NetworkEvent::parse(kind, data).map(|event| event.map(Self::Network)))
    }

    /// The event of a playbook, if it is one of this family.
    pub fn work<T: 'static>(&self) -> Option<&T> {
        match self {
            Self::Work(event) => event.as_any().downcast_ref(),
            _ => None,
        }
    }

    /// Did a person cause it, or someone who watches?
    pub fn is_from_people(&self) -> bool {
        self.origin() == Origin::Person
    }
}

macro_rules! from_family {
    ($($family:ident => $variant:ident),+) => {
        $(impl From<$family> for Event {
            fn from(event: $family) -> Self {
                Self::$variant(event)
            }
        })+
    };
}
from_family!(
    RunEvent => Run,
    IterationEvent => Iteration,
    CallEvent => Call,
    OperatorEvent => Operator,
    GitEvent => Git,
    NetworkEvent => Network
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_unique_and_parse_back() {
        let families = [
            RunEvent::KINDS,
            IterationEvent::KINDS,
            CallEvent::KINDS,
            OperatorEvent::KINDS,
            GitEvent::KINDS,
            NetworkEvent::KINDS,
        ]
        .concat();
        let mut kinds = families.clone();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), families.len());
        assert!(kinds.iter().all(|kind| Event::parse(kind, "{").is_some()), "{kinds:?}");

        let event = Event::from(PlanWritten { sha256: Digest::of(b"plan") });
        let data = event.data().unwrap();
        assert_eq!(Event::parse(event.kind(), data.get()).unwrap().unwrap(), event);
        assert!(Event::parse("no.such", "{}").is_none());
    }
}
