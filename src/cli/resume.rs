//! `nightloop resume`: goes on with a run at the exact step.

use std::path::Path;

use clap::Args;

use crate::agent::rehearsal::Speed;
use crate::engine::backends::Agents;
use crate::engine::error::EngineError;
use crate::engine::places::StateRoot;
use crate::engine::session::{self, Attendance, Session};
use crate::engine::signals::STOP_FILE;
use crate::machine::run::RunState;
use crate::model::ids::RunId;
use crate::model::stop::StopReason;
use crate::tool::process;

use super::headless::Format;
use super::{Outcome, outcome, run, runtime, select, text};

#[derive(Debug, Args)]
pub struct Options {
    /// The run; default: the run of this directory.
    run: Option<String>,
    /// Print one JSON object per event.
    #[arg(long)]
    json: bool,
    /// Try again although the last three tries got nowhere.
    #[arg(long)]
    insist: bool,
}

pub fn main(here: &Path, options: &Options) -> Outcome {
    let root = StateRoot::locate()?;
    let selected = select::run(&root, here, options.run.as_deref())?;
    let format = if options.json { Format::Json } else { Format::Lines };
    if let (Format::Lines, Some(note)) = (format, &selected.note) {
        text::line(note);
    }
    let state = session::read_state(&root, &selected.run)?;
    if !may_go_on(&state) {
        return complete(&root, &selected.run, &state, format);
    }
    let run_dir = crate::journal::RunDir::open(&root.run(&selected.run))?;
    let workspace = session::workspace_of(&run_dir)?;
    if !workspace.is_dir() {
        return Err(EngineError::usage(
            format!("the workspace of run {} is gone: {}", selected.run, workspace.display()),
            "put it back where it was, then `nightloop resume` again",
        ));
    }
    if workspace.join(STOP_FILE).exists() {
        return Err(EngineError::Resumable {
            message: format!("{} still exists in {}", STOP_FILE, workspace.display()),
            hint: "remove it, then `nightloop resume` again".to_owned(),
        });
    }
    runtime()?.block_on(async {
        // Agents first: a missing key must not count as a try that got nowhere.
        let agents = Agents::prepare(state.loop_file(), &workspace, Speed::Times(1.0)).await?;
        let session = Session::resume(&root, &selected.run, Attendance::Headless, options.insist)?;
        // What a killed engine left running must not race with what comes next.
        process::sweep(session.state.run().as_str());
        if format == Format::Lines {
            text::line(format!("run {} goes on in {}", session.state.run(), session.state.state));
        }
        run::drive(session, agents, format).await
    })
}

/// Only a stop signal leaves something to go on with.
fn may_go_on(state: &RunState) -> bool {
    state.halt.as_ref().is_none_or(|halted| halted.stop_reason == StopReason::BackpressureSignal)
}

/// The run is over. If the engine died before it could seal, that is made up for.
fn complete(root: &StateRoot, run: &RunId, state: &RunState, format: Format) -> Outcome {
    if !session::is_sealed(root, run) {
        session::seal_ended(root, run)?;
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
