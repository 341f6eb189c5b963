//! An operator at a console without a terminal: real model, real updates of a recorded run, real files.
//!
//! Shared by the screen tests, the console's benchmark and the pictures. What the console asks to read is
//! read at once; what else it asks for is remembered.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use nightloop::console::cmd::{Cmd, Load};
use nightloop::console::feed::Update;
use nightloop::console::keymap::Keymap;
use nightloop::console::load::RunFiles;
use nightloop::console::model::{Model, Screen};
use nightloop::console::scene::{Link, millis_of};
use nightloop::console::scrub::scrub;
use nightloop::console::source::{self, Start};
use nightloop::console::theme::{Glyphs, Theme};
use nightloop::console::update::{Msg, update};
use nightloop::console::view::view;
use nightloop::console::world::World;
use nightloop::engine::hub::{LiveKind, LiveText};
use nightloop::engine::places::StateRoot;
use nightloop::journal::RunDir;
use nightloop::machine::event::{CallEvent, Event, OperatorEvent};
use nightloop::machine::fold::Stamped;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;

/// How long after the last event the operator looks.
const LATER_MS: i64 = 42_000;

pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// A recorded run: all its events with their texts, and where its files are.
pub struct Recorded {
    pub events: Vec<Update>,
    pub dir: PathBuf,
    shelf: RunFiles,
}

impl Recorded {
    /// The demo, with a refinement and an action that a person had to decide on.
    pub fn demo() -> &'static Self {
        static DEMO: OnceLock<Recorded> = OnceLock::new();
        DEMO.get_or_init(|| Self::read(&fixtures().join("demo-run-2")))
    }

    fn read(dir: &Path) -> Self {
        let mut source = source::replay(dir, 1, Start::End).unwrap();
        // At the end, everything comes in one batch.
        let mut events = source.updates.blocking_recv().unwrap();
        events.retain(|update| matches!(update, Update::Event { .. }));
        let run_dir = RunDir::open(dir).unwrap();
        let shelf = RunFiles { root: machine(), run: Some((source.run, run_dir, dir.join("workspace"))) };
        Self { events, dir: dir.to_owned(), shelf }
    }

    pub fn stamped(&self, index: usize) -> &Stamped {
        match &self.events[index] {
            Update::Event { stamped, .. } => stamped,
            other => panic!("no event: {other:?}"),
        }
    }

    /// The number of events up to and including the first that fits.
    pub fn until(&self, fits: impl Fn(&Event) -> bool) -> usize {
        let found = (0..self.events.len()).position(|index| fits(&self.stamped(index).event));
        found.expect("there is such an event") + 1
    }

    /// In the third iteration, while the solver tries its change.
    pub fn at_work(&self) -> usize {
        self.after_first_tool_of("it2.solver")
    }

    /// In the fourth iteration, which will be the last one.
    pub fn at_last_work(&self) -> usize {
        self.after_first_tool_of("it3.solver")
    }

    fn after_first_tool_of(&self, call: &str) -> usize {
        let started =
            self.until(|event| matches!(event, Event::Call(CallEvent::AgentStarted(started)) if started.call == call));
        let rest = (started..self.events.len()).position(|index| self.stamped(index).event.kind() == "tool.finished");
        started + rest.unwrap() + 1
    }

    /// The first decision has just been asked: a new text of PRD.md.
    pub fn at_refinement(&self) -> usize {
        self.until(|event| matches!(event, Event::Operator(OperatorEvent::DecisionAsked(asked)) if asked.request.name() == "refinement"))
    }

    /// A person must put a file into the workspace.
    pub fn at_action(&self) -> usize {
        self.until(|event| matches!(event, Event::Operator(OperatorEvent::DecisionAsked(asked)) if asked.request.name() != "refinement"))
    }
}

/// A machine on which the recorded runs, and no others, took place.
fn machine() -> StateRoot {
    let place = option_env!("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let root = place.join("nightloop-recorded");
    std::fs::create_dir_all(root.join("runs")).unwrap();
    for name in ["demo-run", "demo-run-2"] {
        let dir = fixtures().join(name);
        let run = source::replay(&dir, 1, Start::End).unwrap().run;
        // It may be there from the time before.
        let _ = std::os::unix::fs::symlink(&dir, root.join("runs").join(run.as_str()));
    }
    StateRoot::at(root)
}

/// The three ways the console can look.
pub fn looks() -> [(&'static str, Theme); 3] {
    [("dark", Theme::dark()), ("mono", Theme::plain()), ("ascii", Theme::plain().with_glyphs(Glyphs::ASCII))]
}

/// Somebody with a keyboard.
pub struct Operator {
    pub model: Model,
    pub now_ms: i64,
    /// What the console asked for, besides things to read.
    pub asked: Vec<Cmd>,
    /// Things to read wait here instead of being read at once.
    pub slow: Option<Vec<Load>>,
    shelf: Option<RunFiles>,
}

impl Operator {
    pub fn before(screen: Screen, theme: Theme, (width, height): (u16, u16)) -> Self {
        let world = World::new(theme, 0, false);
        let model = Model::new(world, Keymap::default(), screen);
        let mut operator = Self { model, now_ms: 1_800_000_000_000, asked: Vec::new(), slow: None, shelf: None };
        operator.tell(Msg::Resized(width, height));
        operator
    }

    /// Watches the first `count` events of a recorded run, as if it ran in this process.
    pub fn watching(recorded: &Recorded, count: usize, theme: Theme, size: (u16, u16)) -> Self {
        let mut operator = Self::before(Screen::Run, theme, size);
        operator.shelf = Some(recorded.shelf.clone());
        operator.hear(recorded, 0..count);
        operator.tell(Msg::Feed(vec![Update::CaughtUp]));
        let ended = count == recorded.events.len();
        if ended {
            operator.tell(Msg::Feed(vec![Update::Ended]));
        }
        operator
    }

    /// Events of the recorded run, and the clock goes on.
    pub fn hear(&mut self, recorded: &Recorded, range: std::ops::Range<usize>) {
        let events: Vec<Update> = recorded.events[range].to_vec();
        if let Some(Update::Event { stamped, .. }) = events.last() {
            self.now_ms = millis_of(&stamped.ts).unwrap() + LATER_MS;
        }
        self.tell(Msg::Feed(events));
    }

    /// An event that the recorded run lacks, a second after its last one.
    pub fn happen(&mut self, event: impl Into<Event>) {
        let run = self.model.world.run.as_ref().unwrap();
        let millis = millis_of(&run.time.last_ts).unwrap() + 1_000;
        let stamped = Stamped {
            seq: run.next_seq,
            ts: jiff::Timestamp::from_millisecond(millis).unwrap().to_string(),
            mono_ms: run.time.last_mono_ms + 1_000,
            boot: run.time.boot.clone(),
            event: event.into(),
        };
        self.tell(Msg::Feed(vec![Update::Event { stamped: Box::new(stamped), body: None }]));
        assert!(!matches!(self.model.world.link, Link::Lost(_)), "{:?}", self.model.world.link);
    }

    pub fn linked(&mut self, link: Link) {
        self.tell(Msg::Feed(vec![Update::Linked(link)]));
    }

    /// A message; what the console asks to read is read, and what that leads to as well.
    pub fn tell(&mut self, msg: Msg) {
        let mut todo = update(&mut self.model, msg, self.now_ms);
        while let Some(cmd) = todo.pop() {
            match (cmd, &self.shelf) {
                (Cmd::Load(load), _) if self.slow.is_some() => {
                    self.slow.iter_mut().for_each(|all| all.push(load.clone()))
                }
                (Cmd::Load(load), Some(shelf)) => {
                    let loaded = shelf.load(load);
                    todo.extend(update(&mut self.model, Msg::Loaded(loaded), self.now_ms));
                }
                (other, _) => self.asked.push(other),
            }
        }
    }

    /// Reads one of the things that wait to be read; which one is anybody's guess.
    pub fn read_one(&mut self, which: usize) {
        let Some(waiting) = self.slow.as_mut().filter(|waiting| !waiting.is_empty()) else { return };
        let load = waiting.remove(which % waiting.len());
        if let Some(shelf) = &self.shelf {
            let loaded = shelf.load(load);
            self.tell(Msg::Loaded(loaded));
        }
    }

    /// Keys by name, separated by blanks: `2 down enter ctrl-p`.
    pub fn press(&mut self, keys: &str) -> &mut Self {
        for name in keys.split_whitespace() {
            self.tell(Msg::Key(key(name)));
        }
        self
    }

    /// What is on the screen, cell by cell.
    pub fn cells(&mut self) -> Buffer {
        let mut cells = self.unscrubbed();
        scrub(&mut cells);
        cells
    }

    /// What the views drew, before the last gate.
    pub fn unscrubbed(&mut self) -> Buffer {
        self.model.dirty = false;
        let size = self.model.size;
        let mut terminal = ratatui::Terminal::new(TestBackend::new(size.width, size.height)).unwrap();
        let model = &self.model;
        terminal
            .draw(|frame| {
                view(frame, model);
                model.world.theme.paint(frame.buffer_mut());
            })
            .unwrap();
        terminal.backend().buffer().clone()
    }

    pub fn text(&mut self) -> String {
        text_of(&self.cells())
    }
}

/// The rows of a screen, without the blanks at their ends.
pub fn text_of(cells: &Buffer) -> String {
    let mut text = String::new();
    for y in cells.area.top()..cells.area.bottom() {
        let mut row = String::new();
        let mut covered = 0;
        for x in cells.area.left()..cells.area.right() {
            // A wide sign covers the cell behind it.
            if covered > 0 {
                covered -= 1;
                continue;
            }
            let symbol = cells[(x, y)].symbol();
            covered = unicode_width::UnicodeWidthStr::width(symbol).saturating_sub(1);
            row.push_str(symbol);
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

/// A key by its name.
pub fn key(name: &str) -> KeyEvent {
    let (modifiers, name) = match name.strip_prefix("ctrl-") {
        Some(rest) if !rest.is_empty() => (KeyModifiers::CONTROL, rest),
        _ => (KeyModifiers::NONE, name),
    };
    let code = match name {
        "enter" => KeyCode::Enter,
        "esc" => KeyCode::Esc,
        "tab" => KeyCode::Tab,
        "backtab" => KeyCode::BackTab,
        "space" => KeyCode::Char(' '),
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "pageup" => KeyCode::PageUp,
        "pagedown" => KeyCode::PageDown,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "backspace" => KeyCode::Backspace,
        "f1" => KeyCode::F(1),
        one => KeyCode::Char(one.chars().next().unwrap()),
    };
    let modifiers = match code {
        KeyCode::Char(c) if c.is_ascii_uppercase() => modifiers | KeyModifiers::SHIFT,
        _ => modifiers,
    };
    KeyEvent::new(code, modifiers)
}

/// Text as a model writes it.
pub fn live(call: &str, turn: u32, text: impl Into<String>) -> Update {
    Update::Live(LiveText { call: call.to_owned(), turn, kind: LiveKind::Text, text: text.into() })
}
