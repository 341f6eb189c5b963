//! `nightloop rehearse`: what this loop would do, with a scripted model, in a copy, for nothing.
//!
//! Role: copy the workspace, put the rehearsal backend in the place of every agent, run, and tell what came of it
//! and of each fault that was asked for.
//! Not its role: the faults themselves ([`crate::agent::rehearsal`]).
//!
//! Invariants: neither the workspace nor the state directory of the user is written; nothing is spent; the copy
//! is gone afterwards.

mod plan;
mod tell;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::Args;

use crate::agent::rehearsal::{Injector, Script, Speed};
use crate::engine::command::Orders;
use crate::engine::declaration::{Declaration, read_declaration};
use crate::engine::error::EngineError;
use crate::engine::host::{self, Wanted, runtime};
use crate::engine::hub::Hub;
use crate::engine::launch_options::LaunchOptions;
use crate::engine::observer::Observer;
use crate::engine::places::StateRoot;
use crate::engine::session::Attendance;
use crate::machine::event::Event;
use crate::machine::fold::Stamped;
use crate::machine::run::RunState;
use crate::model::decision::Mode;
use crate::model::ids::Role;
use crate::model::loop_file::{BackendName, DecisionsDecl, LoopFile};
use crate::workspace::copy::{self, CopyError};

use super::{Outcome, text};
use plan::FaultWish;

const DEFAULT_SCRIPT: &str = include_str!("../../assets/rehearse/default.yaml");
/// Events that are looked at afterwards.
const MAX_EVENTS: usize = 200_000;

#[derive(Debug, Args)]
pub struct Options {
    /// What the model says: a rehearsal script or a cassette. Without it, agents report that they did nothing.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Inject a fault at the Nth model call, or at a random one: 429, 529, 500, cut, stall, bad-json,
    /// refusal, spend-limit, context-full, wrong-report.
    #[arg(long = "fault", value_name = "KIND[@N]")]
    faults: Vec<FaultWish>,
    /// Seed for the places of random faults; the same seed gives the same places.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// The declaration to rehearse [default: loop.yaml].
    #[arg(long, value_name = "FILE")]
    file: Option<String>,
}

pub fn main(here: &Path, options: &Options) -> Outcome {
    let mut declaration = read_declaration(&here.join(options.file.as_deref().unwrap_or("loop.yaml")))?;
    if options.script.is_none() {
        known_to_default(&declaration.file)?;
    }
    let seed = options.seed.unwrap_or_else(plan::some_seed);
    let injector = Arc::new(Injector::new(plan::plan(&options.faults, seed)));
    let temp = std::env::temp_dir();
    let made = tempfile::Builder::new().prefix("nightloop-rehearsal-").tempdir_in(&temp);
    let stage = made.map_err(|e| EngineError::io("cannot create a directory for the rehearsal", &temp, e))?;
    let workspace = stage.path().join("workspace");
    let copied = copy::copy(here, &workspace).map_err(|error| match error {
        CopyError::Io(error) => EngineError::io("cannot copy the workspace", here, error),
        too_much @ CopyError::TooMuch { .. } => EngineError::usage(
            too_much.to_string(),
            "add build output and data to .gitignore: what it excludes is not copied",
        ),
    })?;
    let script = script(options.script.as_deref(), stage.path())?;
    let notes = put_rehearsal(&mut declaration, &script);
    let root = StateRoot::at(stage.path().join("state"));
    // A rehearsal is of the run, not of the question whether there is anything to do.
    let means =
        LaunchOptions { faults: Some(Arc::clone(&injector)), anyway: true, ..LaunchOptions::from(Speed::Instant) };
    let began = Instant::now();
    let (state, events) = run(&root, &workspace, declaration, means)?;
    let seen = tell::Seen {
        state: &state,
        events: &events,
        struck: injector.struck(),
        calls: injector.calls(),
        wished: plan::plan(&options.faults, seed),
        seed: options.faults.iter().any(|wish| wish.call.is_none()).then_some(seed),
        copied,
        notes,
        millis: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
    };
    if options.json {
        text::json_line(&seen.json());
    } else {
        seen.lines().into_iter().for_each(text::line);
    }
    Ok(0)
}

/// Has our own script something to say for every role of this loop? Without it the rehearsal would end at the first call.
fn known_to_default(file: &LoopFile) -> Result<(), EngineError> {
    let script = Script::parse(DEFAULT_SCRIPT, "default").map_err(|e| EngineError::Internal(e.to_string()))?;
    let known = |role: &Role| script.steps.iter().any(|step| step.role.as_deref() == Some(role.name()));
    let unknown: Vec<&str> = file.playbook.roles().iter().filter(|role| !known(role)).map(|role| role.name()).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    Err(EngineError::usage(
        format!(
            "there is no built-in script for the playbook `{}`: no replies for {}",
            file.playbook.name(),
            unknown.join(", ")
        ),
        "write one and pass it with --script FILE; docs/rehearsal.md describes the format, and `nightloop demo value` \
         leaves an example in its workspace",
    ))
}

/// The script as an absolute path: it is no part of the copy.
fn script(given: Option<&Path>, stage: &Path) -> Result<PathBuf, EngineError> {
    match given {
        Some(path) => path.canonicalize().map_err(|e| EngineError::io("cannot find the script", path, e)),
        None => {
            let path = stage.join("script.yaml");
            std::fs::write(&path, DEFAULT_SCRIPT).map_err(|e| EngineError::io("cannot write the script", &path, e))?;
            Ok(path)
        }
    }
}

/// The same loop with a scripted model in the place of every agent. Says what is left out.
fn put_rehearsal(declaration: &mut Declaration, script: &Path) -> Vec<String> {
    let file: &mut LoopFile = &mut declaration.file;
    let mut notes = Vec::new();
    let agents = file.agents.iter().map(|(name, agent)| {
        let mut agent = agent.clone();
        agent.backend = BackendName::Rehearsal;
        agent.script = Some(script.to_string_lossy().into_owned());
        (name.to_owned(), agent)
    });
    file.agents = agents.collect();
    let unpriced = file.agents.iter().any(|(_, agent)| agent.price.is_none());
    if unpriced && file.budget.max_cost_usd.take().is_some() {
        notes.push("max_cost_usd is not rehearsed: not every agent has a declared price".to_owned());
    }
    // Nobody is there to answer, whatever the loop says: what would wait is told instead.
    file.decisions = Some(DecisionsDecl { mode: Some(Mode::Stop), timeout_minutes: None });
    notes
}

fn run(
    root: &StateRoot,
    workspace: &Path,
    declaration: Declaration,
    means: LaunchOptions,
) -> Result<(RunState, Vec<Event>), EngineError> {
    let wanted = Wanted::New { workspace: workspace.to_owned(), declaration: Box::new(declaration) };
    runtime()?.block_on(async {
        let opened = host::open(root, wanted, Attendance::Headless, means).await?;
        let (hub, (orders, inbox)) = (Hub::default(), Orders::channel());
        let mut watcher = Watcher::default();
        let state = host::drive(opened, hub, &orders, inbox, &mut watcher).await?;
        Ok((state, watcher.0))
    })
}

/// Keeps what happens.
#[derive(Default)]
struct Watcher(Vec<Event>);

impl Observer for Watcher {
    fn event(&mut self, _: &RunState, stamped: &Stamped) {
        if self.0.len() < MAX_EVENTS {
            self.0.push(stamped.event.clone());
        }
    }
}
