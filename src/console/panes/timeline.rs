//! The timeline pane: where the night went, and every event of it; any moment can be gone back to.
//!
//! Not here: spans (`night`), words for events (`console::words`). Invariants: what is kept is bounded and
//! says so; a reader at the end stays at the end, any other stays where it is.

mod night;

use std::collections::VecDeque;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

use crate::console::action::Action;
use crate::console::cmd::{Cmd, Load};
use crate::console::paint;
use crate::console::prose;
use crate::console::scene::{Link, News, Scene, millis_of};
use crate::console::scroll::{Matches, Window};
use crate::console::theme::{Role, Theme};
use crate::console::widget;
use crate::console::words::{self, Told, Topic};
use crate::machine::event::Event;
use crate::model::safe::Safe;

use super::Pane;
use night::{Doing, Night};

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
                let Told { topic, good, quiet, text } = words::describe(state, &stamped.event);
                self.add(Entry {
                    seq: stamped.seq,
                    at_ms: millis_of(&stamped.ts).unwrap_or(0),
                    topic,
                    good,
                    quiet,
                    begins_iteration: matches!(stamped.event, Event::IterationBegan(_)),
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

/// How a kind of time is drawn: told apart without colour.
fn texture(theme: &Theme, doing: Doing) -> (&'static str, Role) {
    let ascii = theme.glyphs().cut.is_ascii();
    match doing {
        Doing::Work => (if ascii { "#" } else { "█" }, Role::SpanWork),
        Doing::Check => (if ascii { "=" } else { "▒" }, Role::SpanCheck),
        Doing::Limit => (if ascii { "~" } else { "≈" }, Role::SpanLimit),
        Doing::Human => ("?", Role::SpanHuman),
        Doing::Stalled => ("!", Role::SpanStalled),
        Doing::Down => ("x", Role::SpanDown),
    }
}

impl TimelinePane {
    /// The night in rows, then the times of its edges, then the legend and a line.
    fn spans(&self, frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
        let theme = scene.theme;
        let Some((from, last)) = self.night.range().filter(|_| area.height >= 4) else { return };
        let now = Self::now(scene);
        let to = now.unwrap_or(last).max(from + 1);
        let label = match area.width {
            0..30 => 0,
            30..60 => 6,
            _ => 9,
        };
        let columns = usize::from(area.width.saturating_sub(label));
        let rows = usize::from(area.height) - 2;
        let rows = if rows < 2 { 1 } else { rows - 1 };
        let cells = self.night.columns(from, to, columns * rows, now);
        let at_ms = self.current().map_or(from, |entry| entry.at_ms);
        let cells_i = i64::try_from(cells.len()).unwrap_or(1).max(1);
        let cell_of = |ms: i64| usize::try_from((ms - from).max(0) * cells_i / (to - from)).unwrap_or(0);
        let marked = cell_of(at_ms).min(cells.len().saturating_sub(1));
        for (row, (y, chunk)) in (area.y..).zip(cells.chunks(columns.max(1))).enumerate() {
            let mut spans = Vec::new();
            if label > 0 {
                let part = (to - from) * i64::try_from(row).unwrap_or(0) / i64::try_from(rows).unwrap_or(1).max(1);
                let shown = usize::from(label - 1);
                let clock: String = paint::clock(scene, from + part).chars().take(shown).collect();
                spans.push(Span::styled(format!("{clock} "), theme.style(Role::Muted)));
            }
            for (column, doing) in chunk.iter().enumerate() {
                let (sign, role) = doing.map_or((" ", Role::Muted), |doing| texture(theme, doing));
                let role = if row * columns + column == marked { Role::Selection } else { role };
                spans.push(Span::styled(sign, theme.style(role)));
            }
            frame.render_widget(Line::from(spans), Rect { y, height: 1, ..area });
        }
        let below = area.y + u16::try_from(rows).unwrap_or(1);
        // In an earlier row the sign itself is lit; a caret below would point at another time.
        if marked / columns.max(1) + 1 == rows {
            let caret = usize::from(label) + marked % columns.max(1);
            let clock = paint::clock(scene, at_ms);
            let sign = theme.glyphs().arrow_up;
            let axis = if caret + clock.len() + 2 < usize::from(area.width) {
                format!("{}{sign} {clock}", " ".repeat(caret))
            } else {
                format!("{}{clock} {sign}", " ".repeat(caret.saturating_sub(clock.len() + 1)))
            };
            let axis = widget::clip_line(theme, widget::styled(axis, theme.style(Role::Key)), usize::from(area.width));
            frame.render_widget(axis, Rect { y: below, height: 1, ..area });
        }
        let length = widget::duration(u64::try_from(to - from).unwrap_or(0));
        let ends = widget::styled(format!("{length}, to {}", paint::clock(scene, to)), theme.style(Role::Muted));
        let legend = self.legend(theme, now);
        let fits = legend.width() + ends.width() < usize::from(area.width);
        let ends = if fits { ends } else { Line::default() };
        let legend = paint::both_ends(theme, legend, ends, usize::from(area.width));
        frame.render_widget(legend, Rect { y: below + 1, height: 1, ..area });
        let rule = theme.glyphs().line_h.repeat(usize::from(area.width));
        frame.render_widget(
            widget::styled(rule, theme.style(Role::Border)),
            Rect { y: area.bottom().saturating_sub(1), height: 1, ..area },
        );
    }

    fn legend(&self, theme: &Theme, now: Option<i64>) -> Line<'static> {
        let mut spans = Vec::new();
        let totals = self.night.totals(now);
        for (doing, total) in Doing::ALL.into_iter().zip(totals).filter(|(_, total)| *total > 0) {
            let (sign, role) = texture(theme, doing);
            if !spans.is_empty() {
                spans.push(Span::raw("  "));
            }
            let time = match u64::try_from(total).unwrap_or(0) {
                0..1_000 => "<1 s".to_owned(),
                millis => widget::duration(millis),
            };
            spans.push(Span::styled(sign, theme.style(role)));
            spans.push(Span::styled(format!(" {} {time}", doing.name()), theme.style(Role::Text)));
        }
        Line::from(spans)
    }

    fn list(&self, frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
        let theme = scene.theme;
        let glyphs = theme.glyphs();
        if self.shown.is_empty() {
            let words = widget::clip(theme, "No such event yet.", usize::from(area.width));
            frame.render_widget(widget::styled(words, theme.style(Role::Muted)), area);
            return;
        }
        let digits = self.entries.back().map_or(1, |entry| entry.seq.to_string().len());
        let moment = (!scene.live).then(|| scene.run.next_seq.saturating_sub(1));
        for (y, index) in (area.y..).zip(self.window.shown(self.shown.len(), usize::from(area.height))) {
            let Some(entry) = self.shown.get(index).and_then(|id| self.entry(*id)) else { continue };
            let mark = if index == self.window.cursor() && scene.focused {
                glyphs.arrow_right
            } else if moment == Some(entry.seq) {
                glyphs.current
            } else {
                " "
            };
            let (sign, role) = match entry.good {
                Some(true) => (glyphs.yes, Role::Good),
                Some(false) => (glyphs.no, Role::Bad),
                None => (" ", Role::Muted),
            };
            let text = match (entry.topic, entry.good) {
                (_, Some(false)) => Role::Bad,
                (Topic::People, _) => Role::Operator,
                _ if entry.begins_iteration => Role::Heading,
                _ if entry.quiet => Role::Muted,
                _ => Role::Text,
            };
            let mut spans = vec![Span::styled(format!("{mark} "), theme.style(Role::Key))];
            if area.width >= 30 {
                spans.push(Span::styled(paint::clock(scene, entry.at_ms), theme.style(Role::Muted)));
                spans.push(Span::styled(format!(" {:>digits$} ", entry.seq), theme.style(Role::Muted)));
            }
            spans.push(Span::styled(format!("{sign} "), theme.style(role)));
            let needle = self.matches.needle();
            spans.extend(paint::spans(theme, &entry.text, 0..entry.text.len(), &[], text, needle));
            let line = widget::clip_line(theme, Line::from(spans), usize::from(area.width));
            frame.render_widget(line, Rect { y, height: 1, ..area });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::sample::{Sample, scene, screen};
    use crate::console::theme::Glyphs;
    use crate::machine::fold;
    use crate::machine::run::RunState;

    fn told(pane: &mut TimelinePane, sample: &Sample, count: usize) -> RunState {
        let mut state = fold::start(&sample.events[0]).unwrap();
        for (index, stamped) in sample.events.iter().take(count).enumerate() {
            if index > 0 {
                fold::apply(&mut state, stamped).unwrap();
            }
            pane.learn(News::Event { stamped, state: &state, body: None });
        }
        state
    }

    fn draw(pane: &mut TimelinePane, state: &RunState, theme: &Theme, width: u16, height: u16) -> String {
        pane.resize(Rect::new(0, 0, width, height));
        screen(width, height, |frame| pane.view(frame, frame.area(), &scene(state, theme)))
    }

    #[test]
    fn it_reads_well() {
        let sample = Sample::demo();
        let theme = Theme::dark();
        let mut pane = TimelinePane::new();
        let state = told(&mut pane, &sample, sample.events.len());
        insta::assert_snapshot!("timeline_80x20", draw(&mut pane, &state, &theme, 80, 20));
        insta::assert_snapshot!("timeline_120x36", draw(&mut pane, &state, &theme, 120, 36));
        let ascii = Theme::plain().with_glyphs(Glyphs::ASCII);
        pane.resize(Rect::new(0, 0, 80, 20));
        pane.act(Action::PreviousIteration, &scene(&state, &theme));
        pane.act(Action::PreviousIteration, &scene(&state, &theme));
        insta::assert_snapshot!("timeline_ascii", draw(&mut pane, &state, &ascii, 80, 20));
        insta::assert_snapshot!("timeline_40x12", draw(&mut pane, &state, &theme, 40, 12));
    }

    #[test]
    fn a_running_run_grows_until_now() {
        let sample = Sample::demo();
        let mut pane = TimelinePane::new();
        let state = told(&mut pane, &sample, sample.first("llm.failed", 0));
        let shown = draw(&mut pane, &state, &Theme::dark(), 80, 20);
        assert!(shown.contains("limit 1 s") && shown.contains("work 59 s"), "{shown}");
        assert!(shown.contains("1 min"), "{shown}");
    }

    #[test]
    fn filters_cycle_and_every_one_shows_what_it_says() {
        let sample = Sample::demo();
        let theme = Theme::dark();
        let mut pane = TimelinePane::new();
        let state = told(&mut pane, &sample, sample.events.len());
        let mut counts = Vec::new();
        for _ in 0..7 {
            counts.push((pane.filter.name(), pane.shown.len()));
            assert!(pane.shown.iter().all(|id| pane.filter.shows(pane.entry(*id).unwrap())));
            pane.act(Action::FilterEvents, &scene(&state, &theme));
        }
        assert_eq!(pane.filter, Filter::Main);
        assert_eq!(counts[6], ("every event", sample.events.len()));
        let about: usize = counts[1..5].iter().map(|(_, count)| count).sum();
        assert_eq!(about, sample.events.len());
        assert!(counts[5].1 > 0 && counts[5].1 < counts[0].1);
    }

    #[test]
    fn scrubbing_asks_for_the_moment_under_the_cursor() {
        let sample = Sample::demo();
        let theme = Theme::dark();
        let mut pane = TimelinePane::new();
        let state = told(&mut pane, &sample, sample.events.len());
        draw(&mut pane, &state, &theme, 80, 20);
        pane.search("residual 4", &scene(&state, &theme));
        let cmds = pane.act(Action::Scrub, &scene(&state, &theme));
        let [Cmd::Load(Load::Moment(seq))] = cmds.as_slice() else { panic!("{cmds:?}") };
        let event = &sample.events[usize::try_from(*seq).unwrap()].event;
        assert_eq!(event.kind(), "residual.measured");
        let then = sample.after(usize::try_from(*seq).unwrap() + 1);
        let mut at = scene(&then, &theme);
        at.live = false;
        pane.act(Action::Down, &at);
        let shown = screen(80, 20, |frame| pane.view(frame, frame.area(), &at));
        assert!(shown.contains(&format!("at event {seq}")), "{shown}");
        assert!(shown.lines().any(|line| line.contains("●") && line.contains("residual 4")), "{shown}");
    }

    #[test]
    fn what_is_kept_is_bounded_and_a_reader_stays() {
        let sample = Sample::demo();
        let theme = Theme::dark();
        let mut pane = TimelinePane { most: 100, ..TimelinePane::new() };
        let state = told(&mut pane, &sample, 150);
        draw(&mut pane, &state, &theme, 80, 20);
        for _ in 0..5 {
            pane.act(Action::Up, &scene(&state, &theme));
        }
        let here = pane.current().unwrap().seq;
        told(&mut pane, &sample, 40);
        assert_eq!(pane.current().unwrap().seq, here);
        assert!(pane.entries.len() <= 100);
        assert!(draw(&mut pane, &state, &theme, 80, 20).contains("older events are not listed"));
        assert!(shortened("é".repeat(500)).len() <= LONGEST_WORDS);
    }

    #[test]
    fn any_size_is_survived() {
        let sample = Sample::demo();
        let mut pane = TimelinePane::new();
        let state = told(&mut pane, &sample, 200);
        for width in [1u16, 2, 3, 5, 9, 17, 29, 30, 40, 80, 300] {
            for height in [1u16, 2, 3, 5, 7, 8, 12, 26, 60, 120] {
                draw(&mut pane, &state, &Theme::dark(), width, height);
                pane.act(Action::PageUp, &scene(&state, &Theme::dark()));
            }
        }
    }
}
