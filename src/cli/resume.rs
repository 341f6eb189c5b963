//! `nightloop resume`: goes on with a run at the exact step.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::engine::host::Wanted;
use crate::engine::places::StateRoot;
use crate::engine::recorded;
use crate::engine::seal;
use crate::engine::session::Again;
use crate::machine::event::RunHalted;
use crate::machine::halt::ended_at;
use crate::machine::run::RunState;
use crate::model::budget::Dimension;
use crate::model::ids::RunId;
use crate::model::stop::StopReason;

use super::headless::Format;
use super::run::Manner;
use super::watch::Look;
use super::{Outcome, outcome, run, select, text};

#[derive(Debug, Args)]
pub struct Options {
    /// The run; default: the run of this directory.
    run: Option<String>,
    /// Print readable lines instead of opening the console (the default without a terminal).
    #[arg(long)]
    headless: bool,
    /// Print one JSON object per event.
    #[arg(long, conflicts_with = "headless")]
    json: bool,
    /// Continue without a screen, and return to the prompt.
    #[arg(long, conflicts_with_all = ["headless", "json"])]
    detach: bool,
    /// Try again although the last three resumes made no progress.
    #[arg(long)]
    insist: bool,
    /// Continue although the journal is not the anchored one, or its anchors are missing.
    #[arg(long)]
    unanchored: bool,
    /// Raise a limit, so that a run that ended at it goes on: `total_tool_calls=4000`. May be given several times.
    #[arg(long, value_name = "LIMIT=VALUE", value_parser = raise)]
    raise: Vec<(Dimension, String)>,
    /// Record what follows, to a new file or at the end of an existing cassette.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    #[command(flatten)]
    look: Look,
}

pub fn main(here: &Path, options: &Options) -> Outcome {
    let root = StateRoot::locate()?;
    let selected = select::run(&root, here, options.run.as_deref())?;
    let format = if options.json { Format::Json } else { Format::Lines };
    if let (Format::Lines, Some(note)) = (format, &selected.note) {
        text::line(note);
    }
    let state = recorded::read_state(&root, &selected.run)?;
    if !may_go_on(&state, !options.raise.is_empty()) {
        return complete(&root, &selected.run, &state, format, options.unanchored);
    }
    let again = Again { insist: options.insist, unanchored: options.unanchored, raise: options.raise.clone() };
    let wanted = Wanted::Again { run: selected.run.clone(), again };
    let manner = Manner::of(options.headless, options.json, options.detach);
    run::start(wanted, manner, &options.look, true, run::means(run::record(options.record.as_deref(), true)?))
}

/// A limit and its new value.
fn raise(text: &str) -> Result<(Dimension, String), String> {
    let (name, to) = text.split_once('=').ok_or("give a limit and its new value, for example total_tool_calls=4000")?;
    let names = || Dimension::ALL.map(Dimension::name).join(", ");
    let dimension = Dimension::parse(name.trim()).ok_or_else(|| format!("`{name}` is no limit: use {}", names()))?;
    Ok((dimension, to.trim().to_owned()))
}

/// A stop signal leaves something to go on with, and a limit once it is raised.
fn may_go_on(state: &RunState, raises: bool) -> bool {
    let stopped = |halted: &RunHalted| halted.stop_reason == StopReason::BackpressureSignal;
    state.halt.as_ref().is_none_or(stopped) || (raises && ended_at(state).is_some())
}

/// The run is over. If the engine died before it could seal, that is made up for.
fn complete(root: &StateRoot, run: &RunId, state: &RunState, format: Format, unanchored: bool) -> Outcome {
    if !seal::is_sealed(root, run) {
        seal::seal_ended(root, run, unanchored)?;
        if format == Format::Lines {
            text::line(format!("run {run} had ended without a seal; it is sealed now"));
        }
    } else if format == Format::Lines {
        text::line(format!("run {run} has ended; there is nothing to resume"));
    }
    if format == Format::Lines {
        outcome::summary(state).into_iter().for_each(text::line);
    }
    Ok(outcome::exit_code(state))
}
