//! Opens the console: over a run of this process, a run of another, or a journal.

use std::io::IsTerminal as _;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use crate::console::app::{self, Exit, Host};
use crate::console::bars::{Message, Tone};
use crate::console::model::{Model, Screen};
use crate::console::scene::Link;
use crate::console::screens::welcome::{Choice, Welcome};
use crate::console::settings::{Settings, Wishes};
use crate::console::source::{self, Source, Start};
use crate::console::terminal;
use crate::console::world::World;
use crate::engine::error::EngineError;
use crate::engine::host::{self, Hosted, Wanted};
use crate::engine::launch_options::LaunchOptions;
use crate::engine::offline;
use crate::engine::places::{self, StateRoot};
use crate::engine::recorded;
use crate::engine::signals;
use crate::model::ids::RunId;
use crate::model::safe::Safe;

use super::hold::{self, Held};
use super::{Outcome, auto, order, outcome, ready, text};

/// Runs that are looked at before the first frame.
const NEWEST: usize = 20;

/// How the console looks.
#[derive(Debug, Clone, Default, Args)]
pub struct Look {
    /// The theme; `nightloop themes` lists them.
    #[arg(long, value_name = "NAME")]
    pub theme: Option<String>,
    /// Draw with ASCII characters only.
    #[arg(long)]
    pub ascii: bool,
}

impl Look {
    fn settings(&self) -> Result<Settings, EngineError> {
        let wishes = Wishes { theme: self.theme.clone(), ascii: self.ascii };
        Settings::find(places::config_dir().as_deref(), &wishes, std::io::stdout().is_terminal())
            .map_err(EngineError::Declaration)
    }
}

/// Is there a terminal to draw on and to read keys from?
pub fn has_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && std::env::var("TERM").as_deref() != Ok("dumb")
}

/// A run that this process is to drive, with a console over it.
pub struct Plan {
    pub wanted: Wanted,
    pub means: LaunchOptions,
    /// Start at once, without the ready screen.
    pub start: bool,
    /// Answer the demo's questions after this long.
    pub auto: Option<Duration>,
    /// A first word to the operator.
    pub greeting: Option<String>,
}

/// What is left when the console is closed.
pub struct Closed {
    pub code: u8,
    /// Does it go on without a screen? Then nothing may be printed any more.
    pub dark: bool,
}

/// Drives a run with a console over it, in the held process.
pub fn over_own_run(look: &Look, plan: Plan) -> Result<Closed, EngineError> {
    let held =
        Held::take().ok_or_else(|| EngineError::Internal("the process that holds the terminal is gone".to_owned()))?;
    let root = StateRoot::locate()?;
    let settings = look.settings()?;
    let ready = ready::screen(&root, &plan.wanted);
    let mut host =
        Hosting { root: root.clone(), held, wanted: Some(plan.wanted), means: plan.means, auto: plan.auto, own: None };
    let (screen, source) = match ready.filter(|_| !plan.start) {
        Some(ready) => (Screen::Ready(Box::new(ready)), None),
        None => (Screen::Run, Some(host.start()?)),
    };
    let greeting = plan.greeting.map(|text| Message { tone: Tone::Info, text: Safe::line(&text) });
    let model = model(&settings, screen, false, greeting);
    let exit = show(model, source, &root, settings, &mut host);
    host.close(exit)
}

fn model(settings: &Settings, screen: Screen, read_only: bool, greeting: Option<Message>) -> Model {
    let zone = jiff::Zoned::now();
    let world = World::new(settings.theme(), zone.offset().seconds(), read_only);
    let mut model = Model::new(world, settings.keymap.clone(), screen);
    model.mouse = settings.manners.mouse;
    let problem = settings.problems.first().map(|text| Message { tone: Tone::Bad, text: text.clone() });
    model.message = problem.or(greeting);
    model
}

/// A console that fails must not take the run with it, and whoever ends us twice gets the terminal back.
fn show(
    model: Model,
    source: Option<Source>,
    root: &StateRoot,
    settings: Settings,
    host: &mut dyn Host,
) -> Result<Exit, EngineError> {
    signals::set_last_act(|| {
        terminal::restore_now();
    });
    std::panic::catch_unwind(AssertUnwindSafe(|| app::run(model, source, root, settings, host)))
        .unwrap_or_else(|_| Err(EngineError::Internal("the console failed".to_owned())))
}

/// Drives a run without a console, in the held process, until its end.
pub fn in_the_dark(wanted: Wanted, means: LaunchOptions) -> Outcome {
    let held =
        Held::take().ok_or_else(|| EngineError::Internal("the process that started this one is gone".to_owned()))?;
    let hosted = host::host(&StateRoot::locate()?, wanted, means)?;
    held.say(&format!("started {} {}", hosted.run, Safe::line(&hosted.workspace.to_string_lossy())));
    held.detach();
    hold::go_dark();
    Ok(outcome::exit_code(&hosted.join()?))
}

/// The process around a console that drives a run.
struct Hosting {
    root: StateRoot,
    held: Held,
    wanted: Option<Wanted>,
    means: LaunchOptions,
    auto: Option<Duration>,
    own: Option<Hosted>,
}

impl Hosting {
    /// Leaves the terminal, and stays with the run where it goes on.
    fn close(self, exit: Result<Exit, EngineError>) -> Result<Closed, EngineError> {
        let Some(hosted) = self.own else {
            return exit.map(|_| Closed { code: 0, dark: false });
        };
        let run = hosted.run.clone();
        let goes_on = match &exit {
            Ok(Exit::Detached | Exit::Lost) | Err(_) => !hosted.is_over(),
            Ok(Exit::Left | Exit::Terminated | Exit::Chosen(_)) => false,
        };
        if goes_on {
            if let Err(error) = &exit {
                text::error(error);
            }
            if !matches!(exit, Ok(Exit::Lost)) {
                text::line(format!("run {run} continues without a screen"));
                text::line("  watch it: nightloop attach · decisions: nightloop inbox · end it: nightloop stop");
            }
            self.held.detach();
            hold::go_dark();
        }
        let state = hosted.join()?;
        if !goes_on {
            outcome::summary(&state).into_iter().for_each(text::line);
            text::line(format!("  check it: nightloop verify {run}"));
        }
        Ok(Closed { code: outcome::exit_code(&state), dark: goes_on })
    }
}

impl Host for Hosting {
    fn start(&mut self) -> Result<Source, EngineError> {
        let wanted = match self.wanted.take() {
            Some(wanted) => wanted,
            None => return Err(EngineError::usage("the loop has already been started", "one run at a time")),
        };
        // Read again where that is cheap: a start that failed may be tried once more.
        self.wanted = match &wanted {
            Wanted::New { workspace, declaration } => {
                Some(Wanted::New { workspace: workspace.clone(), declaration: declaration.clone() })
            }
            Wanted::Again { run, again } => Some(Wanted::Again { run: run.clone(), again: again.clone() }),
        };
        let hosted = host::host(&self.root, wanted, self.means.clone())?;
        self.wanted = None;
        if let Some(moment) = self.auto {
            auto::answer_all(
                hosted.hub.clone(),
                hosted.run_dir.clone(),
                hosted.orders.clone(),
                hosted.workspace.clone(),
                moment,
            );
        }
        let source = source::local(&hosted, &format!("{} (console)", order::user()));
        self.own = Some(hosted);
        Ok(source)
    }

    fn watch(&mut self, run: &RunId) -> Result<(Source, Link), EngineError> {
        match &self.own {
            Some(hosted) if hosted.run == *run => {
                Ok((source::local(hosted, &format!("{} (console)", order::user())), Link::InProcess))
            }
            _ => watch_other(&self.root, run, true),
        }
    }

    fn hosts(&self) -> bool {
        self.own.as_ref().is_some_and(|hosted| !hosted.is_over())
    }

    fn suspend(&mut self) {
        self.held.suspend();
    }

    fn edit(&mut self, path: &Path) -> bool {
        self.held.edit(&path.to_string_lossy()) == Some(0)
    }

    fn shell(&mut self, directory: &Path) {
        self.held.shell(&directory.to_string_lossy());
    }
}

/// A run of another process where one drives it, else its journal at the end.
fn watch_other(root: &StateRoot, run: &RunId, may_act: bool) -> Result<(Source, Link), EngineError> {
    let dir = root.run(run);
    if offline::is_driven(root, run) {
        let source = source::attach(run.clone(), dir, &format!("{} (attached)", order::user()), may_act)?;
        return Ok((source, Link::Attached));
    }
    let source = source::replay(&dir, 1, Start::End)?;
    Ok((source, Link::Replay { playing: false, speed: 1, at: 0, of: 0 }))
}

/// Watches a run that exists.
pub fn over_other_run(look: &Look, run: &RunId, read_only: bool) -> Outcome {
    let root = StateRoot::locate()?;
    let (source, link) = watch_other(&root, run, !read_only)?;
    let cut_off = link != Link::Attached && recorded::read_state(&root, run)?.halt.is_none();
    let greeting = cut_off.then(|| Message {
        tone: Tone::Bad,
        text: Safe::line("no process drives this run: it was interrupted; `nightloop resume` continues it"),
    });
    look_on(look, &root, source, link, read_only, greeting)?;
    let state = recorded::read_state(&root, run)?;
    if offline::is_driven(&root, run) {
        text::line(format!("run {run} is still running ({})", state.state));
        text::line("  watch it again: nightloop attach · end it: nightloop stop");
    } else {
        outcome::summary(&state).into_iter().for_each(text::line);
    }
    Ok(0)
}

/// Plays a journal.
pub fn over_journal(look: &Look, dir: &Path, speed: u32) -> Outcome {
    let source = source::replay(dir, speed, Start::Beginning)?;
    let link = Link::Replay { playing: true, speed, at: 0, of: 0 };
    look_on(look, &StateRoot::locate()?, source, link, true, None)?;
    Ok(0)
}

fn look_on(
    look: &Look,
    root: &StateRoot,
    source: Source,
    link: Link,
    read_only: bool,
    greeting: Option<Message>,
) -> Result<Exit, EngineError> {
    let settings = look.settings()?;
    let mut model = model(&settings, Screen::Run, read_only, greeting);
    model.world.link = link;
    show(model, Some(source), root, settings, &mut Looking { root: root.clone() })
}

/// What waits for this operator in other directories, as far as the newest runs tell.
fn waiting_elsewhere(root: &StateRoot) -> Option<Message> {
    let newest = root.runs().into_iter().rev().take(NEWEST);
    let open =
        newest.filter_map(|run| recorded::read_state(root, &run).ok()).map(|state| state.operator.open().count());
    let waiting: Vec<usize> = open.filter(|count| *count > 0).collect();
    let text = match (waiting.len(), waiting.iter().sum::<usize>()) {
        (0, _) => return None,
        (1, 1) => "a decision is waiting for you in another directory: 0 shows the runs".to_owned(),
        (runs, decisions) => format!("{decisions} decisions are waiting for you in {runs} runs: 0 shows them"),
    };
    Some(Message { tone: Tone::Info, text: Safe::line(&text) })
}

/// The first screen in a directory without a loop.
pub fn welcome(look: &Look) -> Result<Option<Choice>, EngineError> {
    let settings = look.settings()?;
    let root = StateRoot::locate()?;
    let model = model(&settings, Screen::Welcome(Welcome::default()), false, waiting_elsewhere(&root));
    match show(model, None, &root, settings, &mut Looking { root: root.clone() })? {
        Exit::Chosen(choice) => Ok(Some(choice)),
        Exit::Detached | Exit::Left | Exit::Lost | Exit::Terminated => Ok(None),
    }
}

/// The process around a console that drives nothing.
struct Looking {
    root: StateRoot,
}

impl Host for Looking {
    fn start(&mut self) -> Result<Source, EngineError> {
        Err(EngineError::usage("there is nothing to start here", "`nightloop run` starts the loop of a directory"))
    }

    fn watch(&mut self, run: &RunId) -> Result<(Source, Link), EngineError> {
        watch_other(&self.root, run, true)
    }

    fn hosts(&self) -> bool {
        false
    }

    fn suspend(&mut self) {
        let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
    }

    fn edit(&mut self, path: &Path) -> bool {
        hold::edit(&path.to_string_lossy()) == Some(0)
    }

    fn shell(&mut self, directory: &Path) {
        hold::shell(&PathBuf::from(directory).to_string_lossy());
    }
}
