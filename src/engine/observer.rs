//! Who watches a run. The engine tells; it never waits for an answer.

use crate::machine::fold::Stamped;
use crate::machine::run::RunState;

/// Something that shows a run.
pub trait Observer {
    /// An event is durable and folded.
    fn event(&mut self, state: &RunState, stamped: &Stamped);
}

/// Watches nothing.
#[derive(Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn event(&mut self, _: &RunState, _: &Stamped) {}
}
