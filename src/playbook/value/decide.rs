//! The decision engine: which step comes next in an iteration. Pure, deterministic, no model.

use crate::machine::run::RunState;

use super::Choice;

/// What comes next, by the priority table.
pub fn choose(_run: &RunState) -> Choice {
    Choice::Close
}
