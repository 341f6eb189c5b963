//! What an agent may do to the plan. Deterministic; a rejection is a text that goes back to the agent.

use super::plan::{Task, TaskSource};
use super::settings::ValueSettings;
use super::tools::ManageTask;

/// What the plan becomes: one task added, changed or taken away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mutation {
    Add(Box<Task>),
    Replace(Box<Task>),
    Remove(String),
}

/// Checks a wish of an agent against the plan. `source` and `step` come from the engine.
pub fn judge(
    _tasks: &[Task],
    _settings: &ValueSettings,
    _source: TaskSource,
    _step: u32,
    _wish: &ManageTask,
) -> Result<Mutation, String> {
    Err("the plan cannot be changed yet".to_owned())
}
