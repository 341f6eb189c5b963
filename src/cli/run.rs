//! `nightloop run`: starts the loop of this directory.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::agent::rehearsal::Speed;
use crate::engine::already;
use crate::engine::command::Orders;
use crate::engine::declaration::read_declaration;
use crate::engine::error::EngineError;
use crate::engine::host::{self, Wanted, runtime};
use crate::engine::hub::Hub;
use crate::engine::launch_options::{LaunchOptions, Record};
use crate::engine::places::StateRoot;
use crate::engine::resources;
use crate::engine::session::Attendance;
use crate::engine::signer;
use crate::journal::{self, RunDir};
use crate::machine::run::RunState;

use super::headless::{Format, Headless};
use super::hold::{self, Ground};
use super::watch::{self, Look, Plan};
use super::{Outcome, auto, goal, outcome, text, typed};

#[derive(Debug, Default, Args)]
pub struct Options {
    /// Print readable lines instead of opening the console (the default without a terminal).
    #[arg(long)]
    headless: bool,
    /// Print one JSON object per event.
    #[arg(long, conflicts_with = "headless")]
    json: bool,
    /// Start without a screen and return to the prompt; `nightloop attach` watches it.
    #[arg(long, conflicts_with_all = ["headless", "json"])]
    detach: bool,
    /// Start immediately, without the ready screen.
    #[arg(long)]
    start: bool,
    /// The declaration to run [default: loop.yaml].
    #[arg(long, value_name = "FILE")]
    file: Option<String>,
    /// Start although every check is green already.
    #[arg(long)]
    anyway: bool,
    /// Record every model reply as the server sends it, to a new file that `backend: rehearsal` can play.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    #[command(flatten)]
    goal: goal::Options,
    #[command(flatten)]
    typed: typed::Options,
    #[command(flatten)]
    look: Look,
}

pub fn main(here: &Path, options: &Options) -> Outcome {
    // Before anything is read: what is missing would turn up as something else.
    resources::enough()?;
    // Read first: what is wrong with it is said on the plain terminal, before anything is drawn or written.
    let stands_for = options.goal.declaration(here, options.typed.agent.as_deref())?;
    let has_goal = stands_for.is_some();
    let mut declaration = match stands_for {
        Some(stands_for) => stands_for,
        None => read_declaration(&here.join(options.file.as_deref().unwrap_or("loop.yaml")))?,
    };
    options.typed.apply(here, &mut declaration, has_goal)?;
    let declaration = Box::new(declaration);
    let wanted = Wanted::New { workspace: here.to_owned(), declaration };
    let manner = Manner::of(options.headless, options.json, options.detach);
    let means = LaunchOptions { anyway: options.anyway, ..means(record(options.record.as_deref(), false)?) };
    start(wanted, manner, &options.look, options.start, means)
}

/// How a run's models are reached, with what is to be recorded.
pub fn means(record: Option<Record>) -> LaunchOptions {
    LaunchOptions { record, ..LaunchOptions::from(Speed::Times(1.0)) }
}

/// How a run is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    Console,
    Detached,
    Headless(Format),
}

impl Manner {
    pub fn of(headless: bool, json: bool, detach: bool) -> Self {
        match (json, detach) {
            (true, _) => Self::Headless(Format::Json),
            (false, true) => Self::Detached,
            (false, false) if headless || !watch::has_terminal() => Self::Headless(Format::Lines),
            (false, false) => Self::Console,
        }
    }
}

/// The cassette that is asked for. The path must hold when the run goes on elsewhere.
pub fn record(file: Option<&Path>, append: bool) -> Result<Option<Record>, EngineError> {
    let Some(file) = file else { return Ok(None) };
    let file =
        std::path::absolute(file).map_err(|e| EngineError::io("cannot find the path of the cassette", file, e))?;
    Ok(Some(Record { file, append }))
}

/// Runs what is wanted in the manner that is asked for.
pub fn start(wanted: Wanted, manner: Manner, look: &Look, at_once: bool, means: LaunchOptions) -> Outcome {
    match manner {
        Manner::Headless(format) => headless(&StateRoot::locate()?, wanted, format, means),
        Manner::Detached if hold::is_held() => watch::in_the_dark(wanted, means),
        Manner::Detached => hold::hold(Ground::Nothing),
        Manner::Console if hold::is_held() => {
            let plan = Plan { wanted, means, start: at_once, auto: None, greeting: None };
            Ok(watch::over_own_run(look, plan)?.code)
        }
        Manner::Console => hold::hold(Ground::Terminal),
    }
}

/// Who answers what a run without a console asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// Nobody: it stops and says what it needs.
    Nobody,
    /// The demo itself.
    Demo,
}

/// Drives a run with lines on stdout.
pub fn headless(root: &StateRoot, wanted: Wanted, format: Format, means: LaunchOptions) -> Outcome {
    headless_with(root, wanted, format, means, Answers::Nobody)
}

pub fn headless_with(
    root: &StateRoot,
    wanted: Wanted,
    format: Format,
    means: impl Into<LaunchOptions>,
    answers: Answers,
) -> Outcome {
    let means = means.into();
    let attendance = match answers {
        Answers::Nobody => Attendance::Headless,
        Answers::Demo => Attendance::Watched,
    };
    let again = matches!(wanted, Wanted::Again { .. });
    if let Wanted::New { declaration, .. } = &wanted
        && format == Format::Lines
        && !means.anyway
        && already::looks_first(&declaration.file)
    {
        text::line("running the checks once, before anything is spent");
    }
    runtime()?.block_on(async {
        let opened = match host::open(root, wanted, attendance, means).await {
            // Who asked for JSON gets nothing else.
            Err(EngineError::AlreadyMet(said)) if format == Format::Json => {
                text::json_line(&json!({"type": "already_met", "data": {"said": said}}));
                return Ok(0);
            }
            opened => opened?,
        };
        let state = &opened.session.state;
        if format == Format::Lines {
            if again {
                text::line(format!("run {} resumed in {}", state.run(), state.state));
            } else {
                text::line(format!("run {} in {}", state.run(), opened.session.workspace.display()));
                outcome::asked(state).into_iter().for_each(text::line);
                state.started.warnings.iter().for_each(|warning| text::line(format!("note: {warning}")));
            }
        }
        let cassette = opened.agents.cassette().cloned();
        let run_dir = opened.session.run_dir.clone();
        let mut observer = Headless::new(format);
        let (hub, (orders, inbox)) = (Hub::default(), Orders::channel());
        if answers == Answers::Demo {
            let (run_dir, workspace) = (opened.session.run_dir.clone(), opened.session.workspace.clone());
            auto::answer_all(hub.clone(), run_dir, orders.clone(), workspace, Duration::ZERO);
        }
        let result = host::drive(opened, hub, &orders, inbox, &mut observer).await;
        drop(observer);
        if let Some(why) = cassette.and_then(|cassette| cassette.stopped()) {
            text::complaint(format!("the recording stopped early: {why}"));
        }
        let state = result?;
        if format == Format::Lines {
            tell(&state);
        }
        unsigned(root, &run_dir);
        Ok(outcome::exit_code(&state))
    })
}

/// A run that ended without a signature says why.
fn unsigned(root: &StateRoot, run_dir: &RunDir) {
    if let (Ok(None), Err(why)) = (journal::read_envelope(run_dir), signer::key(root)) {
        text::complaint(format!("the run is unsigned: {why}"));
    }
}

fn tell(state: &RunState) {
    text::line("");
    for line in outcome::summary(state) {
        text::line(line);
    }
    text::line(format!("  check it: nightloop verify {}", state.run()));
}
