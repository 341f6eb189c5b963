//! The shell of the console: reads keys, news and files, hands them to the model, draws what changed.
//!
//! Not here: what anything means. Invariants: many messages make one frame; frames are capped; when nothing
//! changes nothing is drawn and nothing wakes up; the terminal is given back before anything else uses it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crossterm::event::Event as TerminalEvent;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::engine::error::EngineError;
use crate::engine::host::runtime;
use crate::engine::places::StateRoot;
use crate::model::ids::RunId;
use crate::model::safe::Safe;
use crate::workspace::plain;

use super::bars::Tone;
use super::cmd::{Cmd, EditPurpose, Loaded};
use super::feed::Update;
use super::input::{Input, Typed};
use super::load::RunFiles;
use super::model::Model;
use super::pulse;
use super::scene::Link;
use super::screens::welcome::Choice;
use super::scrub::to_ascii;
use super::settings::Settings;
use super::source::{OrderSink, Source};
use super::terminal::{Terminal, is_lost};
use super::update::{Msg, update};
use super::view::view;

/// How long messages are taken before keys are looked at again.
const LONGEST_BURST: Duration = Duration::from_millis(10);
/// A larger file is not opened as a copy.
const MAX_OPENED: usize = 16 << 20;
/// A key is shown at once, unless a frame was drawn this recently.
const EAGER: Duration = Duration::from_millis(8);

/// Why the console is no longer shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The operator leaves; what runs goes on.
    Detached,
    /// There is nothing that goes on.
    Left,
    /// The terminal is gone.
    Lost,
    /// Told to end.
    Terminated,
    Chosen(Choice),
}

/// What the console needs from the process around it.
pub trait Host {
    /// Starts the loop of the ready screen.
    fn start(&mut self) -> Result<Source, EngineError>;
    /// Watches another run.
    fn watch(&mut self, run: &RunId) -> Result<(Source, Link), EngineError>;
    /// Does a run of ours go on when we leave?
    fn hosts(&self) -> bool;
    /// Stops the shell's job; returns when it goes on.
    fn suspend(&mut self);
    /// Opens a file in the operator's editor and waits. Did it end well?
    fn edit(&mut self, path: &Path) -> bool;
    /// Opens a shell in a directory and waits.
    fn shell(&mut self, directory: &Path);
}

/// Shows the console until the operator leaves it or the terminal goes away.
pub fn run(
    model: Model,
    source: Option<Source>,
    root: &StateRoot,
    settings: Settings,
    host: &mut dyn Host,
) -> Result<Exit, EngineError> {
    let terminal = match Terminal::enter(settings.terminal_options()) {
        Ok(terminal) => terminal,
        Err(error) if is_lost(&error) => return Ok(Exit::Lost),
        Err(error) => {
            return Err(EngineError::usage(
                format!("the terminal cannot be used: {error}"),
                "`nightloop run --headless` works without one",
            ));
        }
    };
    runtime()?.block_on(async {
        let (loads, loaded) = mpsc::unbounded_channel();
        let mut app =
            App { model, terminal, source, settings, host, loads, root: root.clone(), ending: None, drawn: None };
        let exit = app.live(loaded).await;
        if let Some(source) = &app.source {
            source.orders.close();
        }
        // Given back before anyone prints.
        let _ = app.terminal.leave();
        Ok(exit)
    })
}

struct App<'a> {
    model: Model,
    terminal: Terminal,
    source: Option<Source>,
    settings: Settings,
    host: &'a mut dyn Host,
    loads: mpsc::UnboundedSender<Loaded>,
    root: StateRoot,
    /// Why we leave once the run in this process has ended.
    ending: Option<Exit>,
    /// When the latest frame was drawn.
    drawn: Option<Instant>,
}

/// What woke us.
enum Woken {
    Msg(Msg),
    Draw,
    Exit(Exit),
    Nothing,
}

impl App<'_> {
    async fn live(&mut self, mut loaded: mpsc::UnboundedReceiver<Loaded>) -> Exit {
        let mut input = Some(Input::open(Typed::default()));
        let signals = (signal(SignalKind::hangup()), signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
        let (Ok(mut hung_up), Ok(mut terminated), Ok(mut interrupted)) = signals else { return Exit::Left };
        let Ok(size) = self.terminal.size() else { return Exit::Lost };
        if let Some(exit) = self.tell(Msg::Resized(size.width, size.height), &mut input) {
            return exit;
        }
        let mut themes = self.settings.watch_themes();
        loop {
            let now = Instant::now();
            let due = self.due(now);
            let tick = pulse::next(&self.model, self.settings.manners.over_ssh);
            let woken = tokio::select! {
                biased;
                _ = hung_up.recv() => Woken::Exit(Exit::Lost),
                _ = terminated.recv() => self.end_with(Exit::Terminated),
                _ = interrupted.recv() => self.end_with(Exit::Terminated),
                () = until(due) => Woken::Draw,
                event = next_event(&mut input) => on_terminal(event),
                news = next_news(&mut self.source) => Woken::Msg(news),
                Some(loaded) = loaded.recv() => Woken::Msg(Msg::Loaded(loaded)),
                Some(()) = themes.recv() => match self.settings.reload() {
                    Ok(theme) => Woken::Msg(Msg::Themed(Box::new(theme))),
                    Err(why) => Woken::Msg(Msg::Said(Tone::Bad, why)),
                },
                () = until(tick.filter(|_| due.is_none()).map(|tick| now + tick)) => Woken::Msg(Msg::Tick),
            };
            let exit = match woken {
                Woken::Exit(exit) => Some(exit),
                Woken::Nothing => None,
                Woken::Draw => self.draw(),
                Woken::Msg(msg) => self.tell(msg, &mut input).or_else(|| self.drain(&mut loaded, &mut input)),
            };
            if let Some(exit) = exit {
                return exit;
            }
            if let Some(exit) = self.ending.filter(|_| self.model.world.ended) {
                return exit;
            }
        }
    }

    /// Told to end: at once, or when the run in this process has been brought to its end.
    fn end_with(&mut self, exit: Exit) -> Woken {
        if self.host.hosts() && !self.model.world.ended {
            self.ending = Some(exit);
            return Woken::Nothing;
        }
        Woken::Exit(exit)
    }

    /// When the next frame is due; `None`: there is nothing to draw.
    fn due(&self, now: Instant) -> Option<Instant> {
        if !self.model.dirty {
            return None;
        }
        let pause = Duration::from_secs(1) / self.settings.manners.fps.max(1);
        Some(self.drawn.map_or(now, |drawn| drawn + pause))
    }

    fn draw(&mut self) -> Option<Exit> {
        self.model.dirty = false;
        self.drawn = Some(Instant::now());
        let (model, utf8) = (&self.model, self.settings.utf8);
        let drawn = self.terminal.draw(|frame| {
            view(frame, model);
            model.world.theme.paint(frame.buffer_mut());
            if !utf8 {
                to_ascii(frame.buffer_mut());
            }
        });
        match drawn {
            Ok(()) => None,
            Err(_) => Some(Exit::Lost),
        }
    }

    /// Takes what else is there, so that a burst makes one frame.
    fn drain(&mut self, loaded: &mut mpsc::UnboundedReceiver<Loaded>, input: &mut Option<Input>) -> Option<Exit> {
        let began = Instant::now();
        while began.elapsed() < LONGEST_BURST {
            let msg = match loaded.try_recv() {
                Ok(loaded) => Msg::Loaded(loaded),
                Err(_) => match self.source.as_mut().map(|source| source.updates.try_recv()) {
                    Some(Ok(updates)) => Msg::Feed(updates),
                    _ => break,
                },
            };
            if let Some(exit) = self.tell(msg, input) {
                return Some(exit);
            }
        }
        None
    }

    fn tell(&mut self, msg: Msg, input: &mut Option<Input>) -> Option<Exit> {
        #[cfg(debug_assertions)]
        fail_on_purpose(&msg);
        let is_key = matches!(msg, Msg::Key(_) | Msg::Paste(_));
        let cmds = update(&mut self.model, msg, now_ms());
        for cmd in cmds {
            if let Some(exit) = self.perform(cmd, input) {
                return Some(exit);
            }
        }
        let rested = self.drawn.is_none_or(|drawn| drawn.elapsed() >= EAGER);
        if is_key && self.model.dirty && rested { self.draw() } else { None }
    }

    fn say(&mut self, tone: Tone, text: impl AsRef<str>, input: &mut Option<Input>) -> Option<Exit> {
        self.tell(Msg::Said(tone, Safe::line(text.as_ref())), input)
    }

    fn perform(&mut self, cmd: Cmd, input: &mut Option<Input>) -> Option<Exit> {
        match cmd {
            Cmd::Order(command) => {
                let refused = match &mut self.source {
                    Some(source) => source.orders.order(command).err(),
                    None => Some("there is no run yet".to_owned()),
                };
                return refused.and_then(|why| self.say(Tone::Bad, why, input));
            }
            Cmd::Load(load) => {
                let (files, loads) = (self.files(), self.loads.clone());
                tokio::task::spawn_blocking(move || {
                    let _ = loads.send(files.load(load));
                });
            }
            Cmd::Copy { what, text } => return self.copy(what, &text, input),
            Cmd::OpenFile(path) => return self.open_file(&path, input),
            Cmd::Edit { purpose, name, text } => return self.edit(purpose, &name, &text, input),
            Cmd::Start => match self.host.start() {
                Ok(source) => return self.show(source, Link::InProcess, input),
                Err(error) => return self.say(Tone::Bad, error.to_string().replace('\n', " · "), input),
            },
            Cmd::Watch(run) => match self.host.watch(&run) {
                Ok((source, link)) => return self.show(source, link, input),
                Err(error) => return self.say(Tone::Bad, error.to_string().replace('\n', " · "), input),
            },
            Cmd::Detach => return Some(if self.host.hosts() { Exit::Detached } else { Exit::Left }),
            Cmd::Leave => return self.leave(input),
            Cmd::Suspend => self.aside(input, |host| host.suspend()),
            Cmd::Shell => {
                let directory = self.source.as_ref().map(|source| source.workspace.clone());
                let directory = directory.unwrap_or_else(|| PathBuf::from("."));
                self.aside(input, |host| host.shell(&directory));
            }
            Cmd::Redraw => {
                let _ = self.terminal.redraw();
            }
            Cmd::SetMouse(on) => {
                let _ = self.terminal.set_mouse(on);
            }
            Cmd::NextTheme => {
                let theme = self.settings.next_theme();
                return self.tell(Msg::Themed(Box::new(theme)), input);
            }
            Cmd::Replay(step) => {
                if let Some(source) = &self.source {
                    source.orders.replay(step);
                }
            }
            Cmd::Notify { title, body } => {
                let _ = self.terminal.notify(title.as_str(), body.as_str());
            }
            Cmd::Title(title) => {
                let _ = self.terminal.set_title(&title);
            }
            Cmd::Choose(choice) => return Some(Exit::Chosen(choice)),
        }
        None
    }

    fn open_file(&mut self, path: &Path, input: &mut Option<Input>) -> Option<Exit> {
        let workspace = self.source.as_ref().map(|source| source.workspace.clone()).unwrap_or_default();
        let inside = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        if !inside {
            return self.say(Tone::Bad, "not a file of the workspace", input);
        }
        // Evidence is looked at, not edited: a slip of the hand would be tampering.
        let copy = path.starts_with("evidence").then(|| plain::read(&workspace, path, MAX_OPENED).ok().flatten());
        let copy = copy.flatten().and_then(|file| String::from_utf8(file.bytes).ok());
        let draft = copy.and_then(|text| draft(&path.to_string_lossy(), &text).ok());
        let shown = draft.as_ref().map_or_else(|| workspace.join(path), |draft| draft.path().to_owned());
        self.aside(input, |host| host.edit(&shown));
        None
    }

    fn leave(&mut self, input: &mut Option<Input>) -> Option<Exit> {
        let halted = self.model.world.run.as_ref().is_some_and(|run| run.halt.is_some());
        if !self.host.hosts() {
            return Some(Exit::Left);
        }
        // Between a run's last event and its seal there is a moment: whoever leaves then wants the end.
        if !halted || self.ending.is_some() {
            return Some(Exit::Detached);
        }
        self.ending = Some(Exit::Left);
        self.say(Tone::Info, "the run is being sealed; press again to leave it to finish by itself", input)
    }

    fn files(&self) -> RunFiles {
        let run = self.source.as_ref().map(|s| (s.run.clone(), s.run_dir.clone(), s.workspace.clone()));
        RunFiles { root: self.root.clone(), run }
    }

    /// Shows another run.
    fn show(&mut self, source: Source, link: Link, input: &mut Option<Input>) -> Option<Exit> {
        let read_only = match &source.orders {
            OrderSink::Local { .. } => false,
            OrderSink::Remote { may_act, .. } => !may_act,
            OrderSink::Replay(_) => true,
        };
        if let Some(old) = self.source.replace(source) {
            old.orders.close();
        }
        self.tell(Msg::Watching { link, read_only }, input)
    }

    /// Gives the terminal to something else for a while.
    fn aside<T>(&mut self, input: &mut Option<Input>, act: impl FnOnce(&mut dyn Host) -> T) -> T
    where
        T: Default,
    {
        // Whoever comes now reads the keys.
        let typed = input.take().map(Input::close).unwrap_or_default();
        let _ = self.terminal.suspend();
        let result = act(self.host);
        let _ = self.terminal.resume();
        *input = Some(Input::open(typed));
        if let Ok(size) = self.terminal.size() {
            self.model.size = ratatui::layout::Rect::new(0, 0, size.width, size.height);
        }
        self.model.dirty = true;
        result
    }

    fn edit(&mut self, purpose: EditPurpose, name: &str, text: &str, input: &mut Option<Input>) -> Option<Exit> {
        let file = match draft(name, text) {
            Ok(file) => file,
            Err(error) => return self.say(Tone::Bad, format!("cannot write a draft: {error}"), input),
        };
        let path = file.path().to_owned();
        let ended_well = self.aside(input, |host| host.edit(&path));
        let edited = std::fs::read_to_string(&path).ok().filter(|_| ended_well);
        self.tell(Msg::Loaded(Loaded::Edited { purpose, text: edited }), input)
    }

    /// To the terminal's clipboard, and to a file that is there when the terminal takes no such thing.
    fn copy(&mut self, what: &str, text: &str, input: &mut Option<Input>) -> Option<Exit> {
        let path = self.root.path().join("copied.txt");
        let saved = std::fs::write(&path, text);
        let _ = self.terminal.copy(text);
        match saved {
            Ok(()) => self.say(Tone::Good, format!("{what} copied; also saved to {}", path.display()), input),
            Err(error) => self.say(Tone::Info, format!("{what} copied; it could not be saved: {error}"), input),
        }
    }
}

/// A file with the ending of the document, so that editors know what it is.
fn draft(name: &str, text: &str) -> std::io::Result<tempfile::NamedTempFile> {
    let ending = Path::new(name).extension().map(|ending| format!(".{}", ending.to_string_lossy()));
    let file = tempfile::Builder::new().prefix("nightloop-").suffix(&ending.unwrap_or_default()).tempfile()?;
    std::fs::write(file.path(), text)?;
    Ok(file)
}

/// A test sees what a fault of the console does to the terminal and to the run. Release builds have none.
#[cfg(debug_assertions)]
#[expect(clippy::panic, reason = "it is the fault that the test needs")]
fn fail_on_purpose(msg: &Msg) {
    let pressed = matches!(msg, Msg::Key(key) if key.code == crossterm::event::KeyCode::F(12));
    if pressed && std::env::var_os("NIGHTLOOP_PANIC_KEY").is_some() {
        panic!("F12, with NIGHTLOOP_PANIC_KEY set");
    }
}

fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

async fn until(when: Option<Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when).await,
        None => std::future::pending().await,
    }
}

async fn next_event(input: &mut Option<Input>) -> Option<std::io::Result<TerminalEvent>> {
    match input {
        Some(input) => input.next().await,
        None => std::future::pending().await,
    }
}

/// A source that is closed has said why before.
async fn next_news(source: &mut Option<Source>) -> Msg {
    match source {
        Some(source) => match source.updates.recv().await {
            Some(updates) => Msg::Feed(updates),
            None => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

fn on_terminal(event: Option<std::io::Result<TerminalEvent>>) -> Woken {
    match event {
        Some(Ok(TerminalEvent::Key(key))) => Woken::Msg(Msg::Key(key)),
        Some(Ok(TerminalEvent::Mouse(mouse))) => Woken::Msg(Msg::Mouse(mouse)),
        Some(Ok(TerminalEvent::Paste(text))) => Woken::Msg(Msg::Paste(text)),
        Some(Ok(TerminalEvent::Resize(width, height))) => Woken::Msg(Msg::Resized(width, height)),
        Some(Ok(TerminalEvent::FocusGained)) => Woken::Msg(Msg::LookedAt(true)),
        Some(Ok(TerminalEvent::FocusLost)) => Woken::Msg(Msg::LookedAt(false)),
        // No more keys: nobody is there.
        Some(Err(_)) | None => Woken::Exit(Exit::Lost),
    }
}

/// A run that is lost is told once.
pub fn lost(why: &str) -> Vec<Update> {
    vec![Update::Linked(Link::Lost(why.to_owned()))]
}
