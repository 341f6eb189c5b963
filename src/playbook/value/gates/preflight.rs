//! Preflight: the tools and variables that the work needs are there. The engine looks; an agent and a person may help.
//!
//! At most three looks: at first, after the agent, after the person.

use crate::machine::run::RunState;
use crate::machine::todo::{Effect, Todo};
use crate::model::decision::{DEFAULT_VERIFY_SECONDS, Request};
use crate::model::purpose::{Purpose, Tool};
use crate::model::value::tools::Structured;
use crate::playbook::value::event::PreflightChecked;
use crate::playbook::value::state::OpenStep;

use super::{MAX_TEXT, Move, ask, bounded, fail, list, need, pass};

pub(super) fn script(run: &RunState, step: &OpenStep) -> Move {
    // What was seen before an agent or a person did something does not count any more.
    let Some(seen) = &step.preflight else {
        return need(Todo::Effect(Effect::CheckPreflight));
    };
    if seen.is_clear() {
        return pass(step, "tools and variables are there");
    }
    if step.calls_for(Purpose::Preflight) == 0 {
        return need(Todo::call(Purpose::Preflight));
    }
    let missing = missing(seen);
    if step.decisions.is_empty() {
        let mut instructions = format!("Before the work can begin: {}.", list(&missing));
        if let Some(Structured::ReportPreflight(report)) = step.last_report(Tool::ReportPreflight)
            && !report.instructions.trim().is_empty()
        {
            instructions.push_str("\n\n");
            instructions.push_str(report.instructions.trim());
        }
        let request = Request::HumanAction {
            instructions: bounded(&instructions, MAX_TEXT),
            verify: None,
            timeout_seconds: DEFAULT_VERIFY_SECONDS,
        };
        return ask(run, request, "the work needs something that this machine lacks");
    }
    fail(&missing)
}

fn missing(seen: &PreflightChecked) -> Vec<String> {
    let tools = seen.missing_tools.iter().map(|name| format!("install `{name}`"));
    let variables = seen.missing_variables.iter().map(|name| format!("set `{name}`"));
    let placeholders = seen.placeholder_variables.iter().map(|name| format!("give `{name}` its real value"));
    tools.chain(variables).chain(placeholders).chain(seen.services.iter().cloned()).collect()
}
