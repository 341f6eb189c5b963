//! Who watches a run. The engine tells; it never waits for an answer.

use crate::agent::Delta;
use crate::machine::fold::Stamped;
use crate::machine::run::RunState;
use crate::model::ids::Role;

/// Something that shows a run.
pub trait Observer {
    /// An event is durable and folded.
    fn event(&mut self, state: &RunState, stamped: &Stamped);
    /// A piece of a model's reply has arrived. Never journaled.
    fn delta(&mut self, _role: Role, _delta: Delta<'_>) {}
}

/// Watches nothing.
#[derive(Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn event(&mut self, _: &RunState, _: &Stamped) {}
}
