//! `nightloop status`: what a run is doing, or how it ended.

use std::path::Path;

use clap::Args;
use serde_json::json;

use crate::engine::places::StateRoot;
use crate::engine::recorded;
use crate::evidence::render;
use crate::journal::RunLock;
use crate::machine::operator::Pause;
use crate::machine::run::RunState;
use crate::model::ids::Role;

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
    let state = recorded::read_state(&root, &selected.run)?;
    let owner = RunLock::owner(&root.run(&selected.run));
    if options.json {
        text::json_line(&as_json(&state, owner.as_deref()));
        return Ok(0);
    }
    if let Some(note) = &selected.note {
        text::line(note);
    }
    let name = state.loop_file().name.clone().unwrap_or_else(|| "loop".to_owned());
    text::line(format!("run {} · {}", state.run(), text::safe(&name)));
    text::line(format!("  goal: {}", text::safe(state.loop_file().goal.as_deref().unwrap_or("(none)"))));
    outcome::asked(&state).into_iter().for_each(text::line);
    match (&state.halt, &owner) {
        (Some(_), _) => outcome::summary(&state).into_iter().for_each(text::line),
        (None, Some(owner)) => text::line(format!("  running in {} ({owner})", doing(&state))),
        (None, None) => text::line(format!("  interrupted in {}; `nightloop resume` continues there", doing(&state))),
    }
    if state.halt.is_none() {
        outcome::parked(&state).into_iter().for_each(text::line);
    }
    for decision in state.operator.open() {
        let gist = text::safe(decision.request.gist().lines().next().unwrap_or_default());
        text::line(format!(
            "  waiting for you: {} {}: {gist} (`nightloop inbox`)",
            decision.id,
            decision.request.name()
        ));
    }
    match &state.operator.pause {
        Some(Pause::Requested { by }) => text::line(format!("  pauses after this step (by {})", text::safe(by))),
        Some(Pause::Holding { by, .. }) => {
            text::line(format!("  paused by {}; `nightloop pause --off` continues it", text::safe(by)));
        }
        None => {}
    }
    if state.halt.is_none() {
        outcome::standstill(&state).into_iter().for_each(|line| text::line(format!("  {line}")));
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
            text::took(spent.millis),
            text::duration(state.limits.max_total_seconds * 1_000),
            spent.tool_calls,
            state.limits.max_total_tool_calls,
            text::count(spent.tokens()),
            spent.cost_usd.map_or_else(|| "cost unknown".to_owned(), |cost| cost.dollars()),
        ));
        usage_lines(&state).into_iter().for_each(text::line);
    }
    Ok(0)
}

/// Who used what, and what the server says is left.
fn usage_lines(state: &RunState) -> Vec<String> {
    let mut lines = Vec::new();
    for role in Role::ALL {
        let used = state.ledger.of_role(role);
        if used.calls > 0 {
            lines.push(format!(
                "  {:<8} {} calls · {} in, {} cached · {} out · {}",
                role.name(),
                used.calls,
                text::count(used.input.saturating_add(used.cache_write)),
                text::count(used.cache_read),
                text::count(used.output),
                used.cost_usd.map_or_else(|| "cost unknown".to_owned(), |cost| cost.dollars()),
            ));
        }
    }
    if state.ledger.lost > 0 {
        let most =
            state.ledger.lost_usd.map_or_else(|| "unknown".to_owned(), |usd| format!("at most {}", usd.dollars()));
        lines.push(format!("  lost     {} calls with unknown outcome · {most}", state.ledger.lost));
    }
    if let Some(rate) = &state.rate {
        let left = |count: Option<u64>| count.map_or_else(|| "?".to_owned(), text::count);
        let reset = rate.reset.as_deref().map_or_else(String::new, |at| format!(", full again {}", text::safe(at)));
        lines.push(format!("  rate     {} requests, {} tokens left{reset}", left(rate.requests), left(rate.tokens)));
    }
    lines
}

fn doing(state: &RunState) -> String {
    let call = state.call.as_ref();
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
        "usage": render::usage(state),
        "rate": state.rate,
        "typed": state.started.typed,
        "until": state.end,
        "resumes": state.resumes,
        "standstill": state.playbook().standstill(state),
        "waiting": state.operator.open().map(|decision| decision.id.to_string()).collect::<Vec<_>>(),
        "paused": state.operator.pause.is_some(),
        "halted": state.halt,
        "exit_code": state.halt.as_ref().map(|_| outcome::exit_code(state)),
    })
}
