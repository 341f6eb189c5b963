//! Stages for tests: a real run at a chosen moment, with decisions asked by hand where it has none.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::backend::TestBackend;

use super::super::keymap::Keymap;
use super::super::sample::{self, Sample};
use super::super::scene::{Link, Scene};
use super::super::theme::{Glyphs, Theme};
use super::{Overlay, Response, Stage};
use crate::machine::event::Event;
use crate::machine::fold::Stamped;
use crate::machine::run::RunState;

pub struct Staged {
    pub run: RunState,
    pub theme: Theme,
    pub keymap: Keymap,
    pub link: Link,
    pub live: bool,
    pub read_only: bool,
    pub later_ms: i64,
}

impl Staged {
    pub fn of(run: RunState) -> Self {
        Self {
            run,
            theme: Theme::dark(),
            keymap: Keymap::default(),
            link: Link::InProcess,
            live: true,
            read_only: false,
            later_ms: 0,
        }
    }

    /// In the middle of the first iteration, while a call is in flight.
    pub fn running() -> Self {
        let sample = Sample::demo();
        let count = sample.first("llm.responded", 0);
        Self::of(sample.after(count))
    }

    pub fn ended() -> Self {
        Self::of(Sample::demo().ended())
    }

    pub fn ascii(mut self) -> Self {
        self.theme = Theme::plain().with_glyphs(Glyphs::ASCII);
        self
    }

    /// One more event, ten seconds after the last one.
    pub fn happen(&mut self, event: impl Into<Event>) {
        let last: jiff::Timestamp = self.run.time.last_ts.parse().unwrap();
        let stamped = Stamped {
            seq: self.run.next_seq,
            ts: (last + jiff::SignedDuration::from_secs(10)).to_string(),
            mono_ms: self.run.time.last_mono_ms + 10_000,
            boot: self.run.time.boot.clone(),
            event: event.into(),
        };
        sample::fold_anyway(&mut self.run, &stamped);
    }

    pub fn with<T>(&self, look: impl FnOnce(&Stage<'_>) -> T) -> T {
        let scene = sample::scene(&self.run, &self.theme);
        let scene = Scene {
            link: &self.link,
            live: self.live,
            read_only: self.read_only,
            now_ms: scene.now_ms + self.later_ms,
            ..scene
        };
        look(&Stage { scene: Some(&scene), theme: &self.theme, keymap: &self.keymap, read_only: self.read_only })
    }

    pub fn press(&self, overlay: &mut dyn Overlay, code: KeyCode) -> Response {
        self.with(|stage| overlay.key(KeyEvent::new(code, KeyModifiers::NONE), stage))
    }

    pub fn type_text(&self, overlay: &mut dyn Overlay, text: &str) {
        for c in text.chars() {
            self.press(overlay, KeyCode::Char(c));
        }
    }

    /// As it is drawn, after a refresh.
    pub fn screen(&self, overlay: &mut dyn Overlay, width: u16, height: u16) -> String {
        self.with(|stage| {
            overlay.resize(ratatui::layout::Rect::new(0, 0, width, height));
            overlay.refresh(stage);
            sample::screen(width, height, |frame| overlay.view(frame, frame.area(), stage))
        })
    }

    /// Draws it at many sizes; the test is that it returns.
    pub fn all_sizes(&self, overlay: &mut dyn Overlay) {
        for width in (1..=8).chain([13, 21, 31, 40, 59, 60, 80, 113, 114, 115, 120, 200, 300]) {
            for height in (1..=8).chain([12, 15, 16, 20, 36, 120]) {
                let mut terminal = ratatui::Terminal::new(TestBackend::new(width, height)).unwrap();
                self.with(|stage| {
                    overlay.resize(ratatui::layout::Rect::new(0, 0, width, height));
                    overlay.refresh(stage);
                    terminal.draw(|frame| overlay.view(frame, frame.area(), stage)).unwrap();
                });
            }
        }
    }
}
