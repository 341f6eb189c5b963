//! The timeline pane: where the night went, and every event of it; any moment can be gone back to.
//!
//! Not here: spans (`night`), words for events (`machine::words`). Invariants: what is kept is bounded and
//! says so; a reader at the end stays at the end, any other stays where it is.

mod draw;

use std::collections::VecDeque;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};

use crate::console::action::Action;
use crate::console::cmd::{Cmd, Load};
use crate::console::paint;
use crate::console::prose;
use crate::console::scene::{Link, News, Scene, millis_of};
use crate::console::scroll::{Matches, Window};
use crate::console::theme::Role;
use crate::console::widget;
use crate::machine::event::{Event, IterationEvent};
use crate::machine::words::{Told, Topic};
use crate::model::safe::Safe;

use super::Pane;
use crate::evidence::night::Night;

/// Events that are kept, and how much of their words.
const MOST_ENTRIES: usize = 100_000;
const LONGEST_WORDS: usize = 160;

#[derive(Debug, Clone)]
struct Entry {
    seq: u64,
    at_ms: i64,
    topic: Topic,
    good: Option<bool>,
    quiet: bool,
    begins_iteration: bool,
    text: Box<str>,
}

/// Which events are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Filter {
    /// All but bookkeeping.
    #[default]
    Main,
    About(Topic),
    Trouble,
    Everything,
}

impl Filter {
    const fn next(self) -> Self {
        match self {
            Self::Main => Self::About(Topic::Run),
            Self::About(Topic::Run) => Self::About(Topic::Agent),
            Self::About(Topic::Agent) => Self::About(Topic::Check),
            Self::About(Topic::Check) => Self::About(Topic::People),
            Self::About(Topic::People) => Self::Trouble,
            Self::Trouble => Self::Everything,
            Self::Everything => Self::Main,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Main => "main events",
            Self::About(Topic::Run) => "run only",
            Self::About(Topic::Agent) => "agents only",
            Self::About(Topic::Check) => "checks only",
            Self::About(Topic::People) => "people only",
            Self::Trouble => "trouble only",
            Self::Everything => "every event",
        }
    }

    fn shows(self, entry: &Entry) -> bool {
        match self {
            Self::Main => !entry.quiet,
            Self::About(topic) => entry.topic == topic,
            Self::Trouble => entry.good == Some(false),
            Self::Everything => true,
        }
    }
}

pub struct TimelinePane {
    night: Night,
    entries: VecDeque<Entry>,
    /// The number of the first kept entry.
    first: u64,
    most: usize,
    filter: Filter,
    /// Numbers of the entries that the filter shows.
    shown: Vec<u64>,
    window: Window,
    matches: Matches<u64>,
}

impl Default for TimelinePane {
    fn default() -> Self {
        Self {
            night: Night::default(),
            entries: VecDeque::new(),
            first: 0,
            most: MOST_ENTRIES,
            filter: Filter::default(),
            shown: Vec::new(),
            window: Window::default(),
            matches: Matches::default(),
        }
    }
}

impl TimelinePane {
    pub fn new() -> Self {
        Self::default()
    }

    fn entry(&self, id: u64) -> Option<&Entry> {
        self.entries.get(usize::try_from(id.checked_sub(self.first)?).ok()?)
    }

    fn current(&self) -> Option<&Entry> {
        self.entry(*self.shown.get(self.window.cursor())?)
    }

    fn add(&mut self, entry: Entry) {
        let id = self.first + u64::try_from(self.entries.len()).unwrap_or(0);
        if self.filter.shows(&entry) {
            let at_end = self.window.cursor() + 1 >= self.shown.len();
            self.shown.push(id);
            if self.matches.is_on() && prose::find(&entry.text, self.matches.needle(), 0).is_some() {
                self.matches.add(id);
            }
            if at_end {
                self.window.go(self.shown.len() - 1, self.shown.len());
            }
        }
        self.entries.push_back(entry);
        if self.entries.len() > self.most {
            self.drop_oldest();
        }
    }

    /// Many at a time, so that it is rarely done.
    fn drop_oldest(&mut self) {
        let count = (self.most / 20).max(1);
        self.entries.drain(..count.min(self.entries.len()));
        self.first += u64::try_from(count).unwrap_or(0);
        let gone = self.shown.partition_point(|id| *id < self.first);
        self.shown.drain(..gone);
        self.window.shift(gone);
        self.window.settle(self.shown.len());
        self.matches.forget(0, self.first);
    }

    fn set_filter(&mut self, filter: Filter) {
        let here = self.shown.get(self.window.cursor()).copied().unwrap_or(u64::MAX);
        let at_end = self.window.cursor() + 1 >= self.shown.len();
        self.filter = filter;
        let shown = (self.first..).zip(&self.entries).filter(|(_, entry)| filter.shows(entry));
        self.shown = shown.map(|(id, _)| id).collect();
        let at = self.shown.partition_point(|id| *id < here);
        let to = if at_end { self.shown.len().saturating_sub(1) } else { at };
        self.window.go(to, self.shown.len());
        let needle = self.matches.needle().to_owned();
        self.find(&needle);
    }

    fn find(&mut self, needle: &str) {
        self.matches.start(needle);
        if !self.matches.is_on() {
            return;
        }
        for id in &self.shown {
            let entry = id.checked_sub(self.first).and_then(|at| self.entries.get(usize::try_from(at).ok()?));
            if entry.is_some_and(|entry| prose::find(&entry.text, self.matches.needle(), 0).is_some()) {
                self.matches.add(*id);
            }
        }
    }

    fn go_to(&mut self, id: Option<u64>) {
        if let Some(id) = id {
            let at = self.shown.partition_point(|shown| *shown < id);
            self.window.jump(at, self.shown.len());
        }
    }

    fn jump_iteration(&mut self, forward: bool) {
        let begins = |index: &usize| {
            let entry = self.shown.get(*index).and_then(|id| self.entry(*id));
            entry.is_some_and(|entry| entry.begins_iteration)
        };
        let cursor = self.window.cursor();
        let found = if forward { (cursor + 1..self.shown.len()).find(begins) } else { (0..cursor).rev().find(begins) };
        if let Some(to) = found {
            self.window.jump(to, self.shown.len());
        }
    }

    /// The end of the time that is shown, where the run is still at it.
    fn now(scene: &Scene<'_>) -> Option<i64> {
        let present = matches!(scene.link, Link::InProcess | Link::Attached);
        (scene.live && present && scene.run.halt.is_none()).then_some(scene.now_ms)
    }
}

/// The upper and the lower part.
fn parts(inner: Rect) -> (Rect, Rect) {
    let upper = match inner.height {
        0..6 => 0,
        6..24 => 3,
        24..40 => 4,
        _ => 5,
    };
    let upper = if upper > 0 { upper + 1 } else { 0 };
    let [above, below] = Layout::vertical([Constraint::Length(upper), Constraint::Fill(1)]).areas(inner);
    (above, below)
}

impl Pane for TimelinePane {
    fn act(&mut self, action: Action, _scene: &Scene<'_>) -> Vec<Cmd> {
        let here = self.shown.get(self.window.cursor()).copied().unwrap_or(0);
        match action {
            Action::FilterEvents => self.set_filter(self.filter.next()),
            Action::Scrub | Action::Select => {
                return self.current().map(|entry| Cmd::Load(Load::Moment(entry.seq))).into_iter().collect();
            }
            Action::NextIteration | Action::PreviousIteration => self.jump_iteration(action == Action::NextIteration),
            Action::NextMatch => {
                let found = self.matches.next(here);
                self.go_to(found);
            }
            Action::PreviousMatch => {
                let found = self.matches.previous(here);
                self.go_to(found);
            }
            Action::Copy => {
                let text = self.current().map(|entry| format!("event {}: {}", entry.seq, entry.text));
                return text.map(|text| Cmd::Copy { what: "event", text }).into_iter().collect();
            }
            action => {
                self.window.act(action, self.shown.len());
            }
        }
        Vec::new()
    }

    fn learn(&mut self, news: News<'_>) {
        match news {
            News::Reset => {
                let page = self.window.page();
                *self = Self::default();
                self.window.set_page(page, 0);
            }
            News::Live(_) => self.night.heard(),
            News::Event { stamped, state, .. } => {
                self.night.learn(stamped, state);
                let Told { topic, good, quiet, text } = state.told(&stamped.event);
                self.add(Entry {
                    seq: stamped.seq,
                    at_ms: millis_of(&stamped.ts).unwrap_or(0),
                    topic,
                    good,
                    quiet,
                    begins_iteration: matches!(stamped.event, Event::Iteration(IterationEvent::IterationBegan(_))),
                    text: shortened(text),
                });
            }
        }
    }

    fn search(&mut self, text: &str, _scene: &Scene<'_>) {
        self.find(text);
        let here = self.shown.get(self.window.cursor()).copied().unwrap_or(0);
        let found = self.matches.seek(here);
        self.go_to(found);
    }

    fn resize(&mut self, area: Rect) {
        let (_, below) = parts(widget::inside(area));
        self.window.set_page(usize::from(below.height), self.shown.len());
    }

    fn view(&self, frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
        let theme = scene.theme;
        let mut status = Vec::new();
        if !scene.live {
            status.push(format!("at event {}", scene.run.next_seq.saturating_sub(1)));
        }
        if let Some(label) = self.matches.label() {
            status.push(format!("\"{}\" {label}", Safe::line(self.matches.needle())));
        }
        status.push(format!("{}, {}", self.filter.name(), widget::count(self.shown.len() as u64)));
        let block = widget::panel(theme, "Timeline", scene.focused);
        let block = paint::corner(block, theme, "Timeline", &status.join(", "), area.width);
        let block = if self.first > 0 {
            let words = format!("{} older events are not listed; the journal has them", widget::count(self.first));
            paint::foot(block, theme, &words, Role::Warning, area.width)
        } else {
            block
        };
        frame.render_widget(block, area);
        let (above, below) = parts(widget::inside(area));
        if self.entries.is_empty() {
            let words = widget::clip(theme, "Nothing has happened yet.", usize::from(below.width));
            frame.render_widget(widget::styled(words, theme.style(Role::Muted)), below);
            return;
        }
        self.spans(frame, above, scene);
        self.list(frame, below, scene);
    }
}

/// Words cut to what is kept of them.
fn shortened(text: String) -> Box<str> {
    if text.len() <= LONGEST_WORDS {
        return text.into();
    }
    let mut end = LONGEST_WORDS - 3;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}...", text.get(..end).unwrap_or_default()).into()
}

#[cfg(test)]
mod night_tests;
#[cfg(test)]
mod tests;
