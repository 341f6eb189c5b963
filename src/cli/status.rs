//! `nightloop status`: what a run is doing, or how it ended.

use std::path::Path;

use clap::Args;
use serde_json::json;

use crate::engine::places::StateRoot;
use crate::engine::session;
use crate::journal::RunLock;
use crate::machine::operator::Pause;
use crate::machine::run::RunState;

use super::{Outcome, outcome, select, text};

#[derive(Debug, Default, Args)]
pub struct Options {
    /// The run; default: the run of this directory.
    run: Option<String>,
    #[arg(long)]
    json: bool,
}

pub fn main(here: &Path, options: &Options) -> Outcome {
    let root = StateRoot::locate()?;
    let selected = select::run(&root, here, options.run.as_deref())?;
    let state = session::read_state(&root, &selected.run)?;
    let owner = RunLock::owner(&root.run(&selected.run));
    if options.json {
        text::line(text::json(&as_json(&state, owner.as_deref())));
        return Ok(0);
    }
    if let Some(note) = &selected.note {
        text::line(note);
    }
    let name = state.loop_file().name.clone().unwrap_or_else(|| "loop".to_owned());
    text::line(format!("run {} · {}", state.run(), text::safe(&name)));
    text::line(format!("  goal: {}", text::safe(state.loop_file().goal.as_deref().unwrap_or("(none)"))));
    match (&state.halt, &owner) {
        (Some(_), _) => outcome::summary(&state).into_iter().for_each(text::line),
        (None, Some(owner)) => text::line(format!("  running in {} ({owner})", doing(&state))),
        (None, None) => text::line(format!("  cut off in {}; `nightloop resume` goes on there", doing(&state))),
    }
    for decision in state.operator.open() {
        let gist = text::safe(decision.request.gist().lines().next().unwrap_or_default());
        text::line(format!("  waits for you: {} {}: {gist} (`nightloop inbox`)", decision.id, decision.request.name()));
    }
    match &state.operator.pause {
        Some(Pause::Requested { by }) => text::line(format!("  pauses after this step, says {}", text::safe(by))),
        Some(Pause::Holding { by, .. }) => {
            text::line(format!("  paused by {}; `nightloop pause --off` goes on", text::safe(by)));
        }
        None => {}
    }
    if state.halt.is_none() {
        let residuals: Vec<String> =
            state.residual_history().iter().map(|r| r.map_or_else(|| "null".to_owned(), |r| r.to_string())).collect();
        let spent = &state.spent;
        text::line(format!(
            "  residuals: {}",
            if residuals.is_empty() { "none yet".to_owned() } else { residuals.join(" → ") }
        ));
        text::line(format!(
            "  spent: {} of {} iterations · {} of {} · {} of {} tool calls · {} tokens · {}",
            spent.iterations,
            state.limits.max_iterations,
            text::duration(spent.millis),
            text::duration(state.limits.max_total_seconds * 1_000),
            spent.tool_calls,
            state.limits.max_total_tool_calls,
            text::count(spent.tokens()),
            spent.cost_usd.map_or_else(|| "cost unknown".to_owned(), |cost| format!("${cost}")),
        ));
    }
    Ok(0)
}

fn doing(state: &RunState) -> String {
    let call = state.current.as_ref().and_then(|iteration| iteration.call.as_ref());
    match call {
        Some(call) => {
            format!("{}, iteration {}, {} (turn {})", state.state, state.iteration_number(), call.role(), call.turn + 1)
        }
        None => format!("{}, iteration {}", state.state, state.iteration_number()),
    }
}

fn as_json(state: &RunState, owner: Option<&str>) -> serde_json::Value {
    json!({
        "run": state.run(),
        "goal": state.loop_file().goal,
        "state": state.state,
        "running": owner.is_some(),
        "owner": owner,
        "iteration": state.iteration_number(),
        "residuals": state.residual_history(),
        "spent": state.spent,
        "limits": state.limits,
        "resumes": state.resumes,
        "waiting": state.operator.open().map(|decision| decision.id.to_string()).collect::<Vec<_>>(),
        "paused": state.operator.pause.is_some(),
        "halted": state.halt,
        "exit_code": state.halt.as_ref().map(|_| outcome::exit_code(state)),
    })
}
