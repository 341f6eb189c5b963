//! `nightloop run`: starts the loop of this directory.

use std::path::Path;

use clap::Args;

use crate::agent::rehearsal::Speed;
use crate::engine::backends::Agents;
use crate::engine::command::Orders;
use crate::engine::driver::{Driver, Ports};
use crate::engine::error::EngineError;
use crate::engine::hub::Hub;
use crate::engine::places::StateRoot;
use crate::engine::session::{Attendance, Session, read_declaration};
use crate::engine::signals::{STOP_FILE, Signals};
use crate::machine::run::RunState;
use crate::model::loop_file::{LoopFile, SandboxMode};
use crate::tool::{process, reaper, sandbox};

use super::headless::{Format, Headless};
use super::{Outcome, outcome, runtime, text};

#[derive(Debug, Args)]
pub struct Options {
    /// Print readable lines (the default).
    #[arg(long)]
    headless: bool,
    /// Print one JSON object per event.
    #[arg(long, conflicts_with = "headless")]
    json: bool,
    /// The declaration to run.
    #[arg(long, value_name = "FILE", default_value = "loop.yaml")]
    file: String,
}

pub fn main(here: &Path, options: &Options) -> Outcome {
    let format = if options.json { Format::Json } else { Format::Lines };
    start(here, &options.file, format, Speed::Times(1.0))
}

/// Reads, checks, creates, runs.
pub fn start(workspace: &Path, file: &str, format: Format, speed: Speed) -> Outcome {
    let declaration = read_declaration(&workspace.join(file))?;
    preflight(workspace, &declaration.file)?;
    let root = StateRoot::locate()?;
    runtime()?.block_on(async {
        // Agents first: a missing key or a wrong script must not leave a run behind.
        let agents = Agents::prepare(&declaration.file, workspace, speed).await?;
        check_prices(&declaration.file, &agents)?;
        let session = Session::create(&root, workspace, declaration, Attendance::Headless)?;
        if format == Format::Lines {
            text::line(format!("run {} in {}", session.state.run(), session.workspace.display()));
            for warning in &session.state.started.warnings {
                text::line(format!("note: {warning}"));
            }
        }
        drive(session, agents, format).await
    })
}

/// Runs an open session to its end and tells how it ended.
pub async fn drive(session: Session, agents: Agents, format: Format) -> Outcome {
    process::become_subreaper();
    let run = session.state.run().clone();
    let reaper =
        reaper::start(run.as_str()).map_err(|e| EngineError::Internal(format!("the reaper cannot start: {e}")))?;
    let signals = Signals::listen(&session.workspace)
        .map_err(|e| EngineError::Internal(format!("cannot listen for signals: {e}")))?;
    let mut observer = Headless::new(format);
    let (_orders, orders) = Orders::channel();
    let ports = Ports { hub: Hub::default(), orders };
    let result = Driver::new(session, agents, signals, ports, &mut observer)?.run().await;
    drop(observer);
    // Waits for the sweep, so that nothing is left when we say that we are done.
    let _ = tokio::task::spawn_blocking(move || drop(reaper)).await;
    let state = result?;
    if format == Format::Lines {
        tell(&state);
    }
    Ok(outcome::exit_code(&state))
}

fn tell(state: &RunState) {
    text::line("");
    for line in outcome::summary(state) {
        text::line(line);
    }
    text::line(format!("  check it: nightloop verify {}", state.run()));
}

/// What must be known before anything is written.
fn preflight(workspace: &Path, declared: &LoopFile) -> Result<(), EngineError> {
    if declared.sandbox.mode == SandboxMode::Required {
        let level = sandbox::detect();
        if level.name == "none" {
            return Err(EngineError::usage(
                format!("loop.yaml requires a sandbox, and none can be enforced here ({})", level.detail),
                "set `sandbox: { mode: off }` if you accept that",
            ));
        }
    }
    if workspace.join(STOP_FILE).exists() {
        return Err(EngineError::usage(
            format!("{STOP_FILE} exists, so the loop would stop at once"),
            "remove it first",
        ));
    }
    Ok(())
}

/// A money limit that cannot be counted is no limit.
fn check_prices(declared: &LoopFile, agents: &Agents) -> Result<(), EngineError> {
    if declared.budget.max_cost_usd.is_none() {
        return Ok(());
    }
    let unpriced = declared.agents.names().find(|name| agents.get(name).is_some_and(|agent| !agent.has_price()));
    match unpriced {
        Some(name) => Err(EngineError::usage(
            format!("max_cost_usd is set, but the price of agent `{name}` is unknown"),
            "declare `price: { input: \"…\", output: \"…\" }` (US dollars per million tokens)",
        )),
        None => Ok(()),
    }
}
