//! Runs an engine: alone for a log, or on a thread of its own beside a console.
//!
//! The thread that drives a run starts all its processes and lives as long as they do. Nothing a console
//! does, not even a panic, reaches it.

use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::JoinHandle;

use crate::journal::RunDir;
use crate::machine::run::RunState;
use crate::model::ids::RunId;
use crate::model::loop_file::LoopFile;
use crate::tool::{process, reaper, sandbox};

use super::already;
use super::backends::Agents;
use super::claim;
use super::command::Orders;
use super::control::Control;
use super::declaration::{self, Declaration};
use super::driver::{Driver, Ports};
use super::error::EngineError;
use super::hub::Hub;
use super::launch_options::LaunchOptions;
use super::observer::{Observer, Silent};
use super::places::StateRoot;
pub use super::resources::runtime;
use super::resources::{self, exhausted};
use super::session::{Again, Attendance, Reopened, Session};
use super::signals::{self, STOP_FILE, Signals};

/// Which run is wanted.
pub enum Wanted {
    New { workspace: PathBuf, declaration: Box<Declaration> },
    Again { run: RunId, again: Again },
}

/// An open run, ready to be driven.
pub struct Opened {
    pub session: Session,
    pub agents: Agents,
}

/// Opens a run: agents first, because a missing key or a wrong script must not leave a run behind.
pub async fn open(
    root: &StateRoot,
    wanted: Wanted,
    attendance: Attendance,
    means: impl Into<LaunchOptions>,
) -> Result<Opened, EngineError> {
    let means = means.into();
    match wanted {
        Wanted::New { workspace, mut declaration } => {
            preflight(&declaration.file, attendance)?;
            claim::lies_apart(root, &workspace)?;
            let agents = Agents::prepare(&declaration.file, &workspace, root.path(), &means).await?;
            check_prices(&declaration.file, &agents)?;
            // A stop that is asked for already comes first: it is a run's end, with a report.
            if !means.anyway
                && !signals::stop_is_there(&workspace)
                && let Some(said) = already::met(root, &workspace, &declaration.file, attendance).await?
            {
                return Err(EngineError::AlreadyMet(said));
            }
            declaration.notes.extend(agents.warnings.iter().cloned());
            // What is fatal ends the run at its first check of the inputs, with a report.
            let obstacles = declaration::obstacles(&workspace, &declaration.file).into_iter();
            let hurdles = obstacles.filter(|obstacle| obstacle.fatal.is_none());
            declaration.notes.extend(hurdles.map(|obstacle| format!("{}; {}", obstacle.message, obstacle.hint)));
            let session = Session::create(root, &workspace, *declaration, attendance)?;
            Ok(Opened { session, agents })
        }
        Wanted::Again { run, again } => {
            resources::enough()?;
            let reopened = Reopened::open(root, &run, again)?;
            attendance.sandbox(reopened.state.loop_file())?;
            let workspace = &reopened.workspace;
            if !signals::take_away_stop(workspace, &reopened.state) && signals::stop_is_there(workspace) {
                return Err(EngineError::Resumable {
                    message: format!("{STOP_FILE} still exists in {}", workspace.display()),
                    hint: "remove it, then run `nightloop resume` again".to_owned(),
                });
            }
            // A missing key must not count as a try that got nowhere.
            let agents = Agents::prepare(reopened.state.loop_file(), workspace, root.path(), &means).await?;
            let session = reopened.go_on(attendance)?;
            Ok(Opened { session, agents })
        }
    }
}

/// Drives an open run to its end.
pub async fn drive(
    opened: Opened,
    hub: Hub,
    orders: &Orders,
    inbox: tokio::sync::mpsc::Receiver<super::command::Order>,
    observer: &mut dyn Observer,
) -> Result<RunState, EngineError> {
    sandbox::harden_ourselves();
    process::become_subreaper();
    let Opened { session, agents } = opened;
    let run = session.state.run().clone();
    let reaper = reaper::start().map_err(exhausted)?;
    let signals = Signals::listen(&session.workspace).map_err(exhausted)?;
    hub.grown(session.state.next_seq);
    // Without a socket the run works all the same; only nobody can be attached.
    let control = Control::listen(&session.run_dir, run.as_str(), &hub, orders).ok();
    let ports = Ports { hub: hub.clone(), orders: inbox };
    let result = Driver::new(session, agents, signals, ports, observer)?.run().await;
    // Viewers are told, and nothing is left when we say that we are done.
    let _ = tokio::task::spawn_blocking(move || {
        drop(control);
        drop(reaper);
    })
    .await;
    hub.close();
    result
}

/// A run that goes on beside us.
pub struct Hosted {
    pub run: RunId,
    pub run_dir: RunDir,
    pub workspace: PathBuf,
    pub warnings: Vec<String>,
    pub hub: Hub,
    pub orders: Orders,
    thread: JoinHandle<Result<RunState, EngineError>>,
}

impl Hosted {
    /// Waits for its end.
    pub fn join(self) -> Result<RunState, EngineError> {
        self.thread.join().unwrap_or_else(|_| Err(EngineError::Internal("the engine panicked".to_owned())))
    }

    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }
}

/// What is known once a run is open.
struct Introduction {
    run: RunId,
    run_dir: RunDir,
    workspace: PathBuf,
    warnings: Vec<String>,
}

/// Opens a run on a thread of its own, and returns when it is open.
pub fn host(root: &StateRoot, wanted: Wanted, means: impl Into<LaunchOptions>) -> Result<Hosted, EngineError> {
    let means = means.into();
    let (hub, (orders, inbox)) = (Hub::default(), Orders::channel());
    let (introduce, introduced) = mpsc::channel::<Introduction>();
    let thread = {
        let (root, hub, orders) = (root.clone(), hub.clone(), orders.clone());
        std::thread::Builder::new()
            .name("engine".to_owned())
            .spawn(move || {
                let runtime = runtime()?;
                runtime.block_on(async {
                    let opened = open(&root, wanted, Attendance::Watched, means).await?;
                    let session = &opened.session;
                    let introduction = Introduction {
                        run: session.state.run().clone(),
                        run_dir: session.run_dir.clone(),
                        workspace: session.workspace.clone(),
                        warnings: session.state.started.warnings.clone(),
                    };
                    // Nobody waits any more: the run goes on all the same.
                    let _ = introduce.send(introduction);
                    let result = drive(opened, hub.clone(), &orders, inbox, &mut Silent).await;
                    hub.close();
                    result
                })
            })
            .map_err(exhausted)?
    };
    match introduced.recv() {
        Ok(Introduction { run, run_dir, workspace, warnings }) => {
            Ok(Hosted { run, run_dir, workspace, warnings, hub, orders, thread })
        }
        // It ended before it opened a run, and says why.
        Err(mpsc::RecvError) => match thread.join() {
            Ok(Err(error)) => Err(error),
            Ok(Ok(_)) => Err(EngineError::Internal("the engine ended before it began".to_owned())),
            Err(_) => Err(EngineError::Internal("the engine panicked".to_owned())),
        },
    }
}

/// What must be known before anything is written.
pub fn preflight(declared: &LoopFile, attendance: Attendance) -> Result<(), EngineError> {
    resources::enough()?;
    attendance.sandbox(declared)?;
    Ok(())
}

/// A money limit that cannot be counted is no limit.
fn check_prices(declared: &LoopFile, agents: &Agents) -> Result<(), EngineError> {
    let stops_at_cost = declared.stop_when.as_ref().is_some_and(|when| when.cost_usd.is_some());
    if declared.budget.max_cost_usd.is_none() && !stops_at_cost {
        return Ok(());
    }
    let uncounted = |name: &&str| match (agents.get(name), agents.program(name)) {
        (Some(agent), _) => !agent.has_price(),
        (None, Some(program)) => !program.tells_cost(),
        (None, None) => false,
    };
    let what = if stops_at_cost { "stop_when.cost_usd" } else { "max_cost_usd" };
    let unpriced = declared.agents.names().find(uncounted);
    match unpriced {
        Some(name) => Err(EngineError::usage(
            format!("{what} is set, but the price of agent `{name}` is unknown"),
            "declare `price: { input: \"…\", output: \"…\" }` (US dollars per million tokens)",
        )),
        None => Ok(()),
    }
}
