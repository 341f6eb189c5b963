//! A text of styled lines with a reader in it: wrapped, searched, one line under the cursor.
//!
//! Not here: what the lines mean. Invariants: a frame looks at the lines it shows; lines are measured once
//! per width; the reader stays on its line when the width or the text changes.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::action::Action;
use super::paint::{self, Piece};
use super::prose::{self, Break};
use super::scroll::Matches;
use super::theme::{Role, Theme};
use super::widget;

/// A sign in front of a line, drawn by the theme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    Good,
    Bad,
    Unknown,
    Bullet,
    Rule,
}

/// One line. Its text has been made harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocLine {
    pub indent: u16,
    pub sign: Option<Sign>,
    pub text: Box<str>,
    pub base: Role,
    pub pieces: Vec<Piece>,
}

impl DocLine {
    pub fn new(text: impl Into<Box<str>>, base: Role) -> Self {
        Self { indent: 0, sign: None, text: text.into(), base, pieces: Vec::new() }
    }

    #[must_use]
    pub fn indented(self, indent: u16) -> Self {
        Self { indent, ..self }
    }

    #[must_use]
    pub fn signed(self, sign: Sign) -> Self {
        Self { sign: Some(sign), ..self }
    }

    #[must_use]
    pub fn with(self, pieces: Vec<Piece>) -> Self {
        Self { pieces, ..self }
    }

    /// Columns in front of its text, in every row.
    fn hang(&self, columns: u16) -> u16 {
        let sign = if self.sign.is_some() { 2 } else { 0 };
        (self.indent + sign).min(columns / 2)
    }
}

/// The lines and the reader.
#[derive(Debug, Clone)]
pub struct Document {
    lines: Vec<DocLine>,
    how: Break,
    columns: u16,
    page: usize,
    /// Rows up to and with each line.
    ends: Vec<u32>,
    cursor: usize,
    top: u32,
    pub matches: Matches<usize>,
}

impl Default for Document {
    fn default() -> Self {
        Self::new(Vec::new(), Break::Words)
    }
}

impl Document {
    pub fn new(lines: Vec<DocLine>, how: Break) -> Self {
        let mut made =
            Self { lines, how, columns: 80, page: 1, ends: Vec::new(), cursor: 0, top: 0, matches: Matches::default() };
        made.measure();
        made
    }

    /// Other lines; the reader stays where it was, as far as there is such a line, and goes on searching.
    pub fn replace(&mut self, lines: Vec<DocLine>) {
        self.lines = lines;
        self.measure();
        self.go(self.cursor);
        if self.matches.is_on() {
            let needle = self.matches.needle().to_owned();
            self.find(&needle);
        }
    }

    pub fn len(&self) -> usize {
        self.lines.len()
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub fn cursor(&self) -> usize {
        self.cursor
    }

    pub fn line(&self, index: usize) -> Option<&DocLine> {
        self.lines.get(index)
    }

    fn measure(&mut self) {
        let mut rows = 0u32;
        self.ends.clear();
        self.ends.reserve(self.lines.len());
        for line in &self.lines {
            let room = usize::from(self.columns.saturating_sub(2 + line.hang(self.columns)).max(1));
            rows = rows.saturating_add(u32::try_from(prose::height(&line.text, room, self.how)).unwrap_or(1));
            self.ends.push(rows);
        }
    }

    fn total(&self) -> u32 {
        self.ends.last().copied().unwrap_or(0)
    }

    fn start_of(&self, line: usize) -> u32 {
        line.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0)
    }

    pub fn resize(&mut self, columns: u16, page: u16) {
        let columns = columns.max(1);
        self.page = usize::from(page).max(1);
        if columns != self.columns {
            self.columns = columns;
            self.measure();
        }
        self.go(self.cursor);
    }

    /// Puts the reader on a line and shows it.
    pub fn go(&mut self, line: usize) {
        self.cursor = line.min(self.lines.len().saturating_sub(1));
        let page = u32::try_from(self.page).unwrap_or(1);
        let start = self.start_of(self.cursor);
        let end = self.ends.get(self.cursor).copied().unwrap_or(start + 1);
        if start < self.top {
            self.top = start;
        } else if end > self.top + page {
            self.top = end.saturating_sub(page).min(start);
        }
        self.top = self.top.min(self.total().saturating_sub(page));
    }

    /// Puts the reader on a line that becomes the first of the page.
    pub fn go_to_top(&mut self, line: usize) {
        self.top = self.start_of(line);
        self.go(line);
    }

    /// Moves as the operator says. `false`: that was no move.
    pub fn act(&mut self, action: Action) -> bool {
        let page = u32::try_from(self.page.max(2) - 1).unwrap_or(1);
        let last = self.lines.len().saturating_sub(1);
        let at_row = |row: u32| self.ends.partition_point(|end| *end <= row).min(last);
        let to = match action {
            Action::Up => self.cursor.saturating_sub(1),
            Action::Down => self.cursor + 1,
            Action::PageUp => {
                let row = self.start_of(self.cursor).saturating_sub(page);
                self.top = self.top.saturating_sub(page);
                at_row(row)
            }
            Action::PageDown => {
                let row = self.start_of(self.cursor).saturating_add(page);
                self.top = self.top.saturating_add(page);
                // A line longer than the page must not hold the reader.
                at_row(row).max((self.cursor + 1).min(last))
            }
            Action::Top => 0,
            Action::Bottom => last,
            Action::NextMatch => match self.matches.next(self.cursor) {
                Some(line) => line,
                None => return true,
            },
            Action::PreviousMatch => match self.matches.previous(self.cursor) {
                Some(line) => line,
                None => return true,
            },
            _ => return false,
        };
        self.go(to);
        true
    }

    /// The next line after (or before) the reader's that `wanted` holds for.
    pub fn jump(&mut self, forward: bool, wanted: impl Fn(usize, &DocLine) -> bool) -> bool {
        let fits = |index: &usize| self.lines.get(*index).is_some_and(|line| wanted(*index, line));
        let found =
            if forward { (self.cursor + 1..self.lines.len()).find(fits) } else { (0..self.cursor).rev().find(fits) };
        if let Some(line) = found {
            self.go_to_top(line);
        }
        found.is_some()
    }

    pub fn search(&mut self, needle: &str) {
        self.find(needle);
        if let Some(line) = self.matches.seek(self.cursor) {
            self.go(line);
        }
    }

    fn find(&mut self, needle: &str) {
        self.matches.start(needle);
        for (index, line) in self.lines.iter().enumerate() {
            if prose::find(&line.text, self.matches.needle(), 0).is_some() {
                self.matches.add(index);
            }
        }
    }

    /// Draws the page into `area`, without a frame.
    pub fn view(&self, frame: &mut Frame<'_>, area: Rect, theme: &Theme, focused: bool) {
        let height = u32::from(area.height);
        let top = self.top.min(self.total().saturating_sub(height));
        let mut index = self.ends.partition_point(|end| *end <= top);
        let mut skip = top.saturating_sub(self.start_of(index));
        let mut y = area.y;
        while y < area.bottom() {
            let Some(line) = self.lines.get(index) else { break };
            let hang = line.hang(self.columns);
            let room = usize::from(self.columns.saturating_sub(2 + hang).max(1));
            for (row, range) in (0u32..).zip(prose::rows(&line.text, room, self.how)) {
                if row < skip {
                    continue;
                }
                if y >= area.bottom() {
                    break;
                }
                let mut spans = self.front(theme, line, row, index == self.cursor && focused, hang);
                spans.extend(paint::spans(theme, &line.text, range, &line.pieces, line.base, self.matches.needle()));
                let drawn = widget::clip_line(theme, Line::from(spans), usize::from(area.width));
                frame.render_widget(drawn, Rect { y, height: 1, ..area });
                y += 1;
            }
            skip = 0;
            index += 1;
        }
    }

    fn front(&self, theme: &Theme, line: &DocLine, row: u32, here: bool, hang: u16) -> Vec<Span<'static>> {
        let glyphs = theme.glyphs();
        let cursor = match (here, row) {
            (true, 0) => Span::styled(format!("{} ", glyphs.arrow_right), theme.style(Role::Key)),
            (true, _) => Span::styled(format!("{} ", glyphs.line_v), theme.style(Role::Key)),
            (false, _) => Span::raw("  "),
        };
        let blanks = usize::from(hang).saturating_sub(if line.sign.is_some() { 2 } else { 0 });
        let mut spans = vec![cursor, Span::raw(" ".repeat(blanks))];
        if let Some(sign) = line.sign.filter(|_| hang >= 2) {
            let (mark, role) = match sign {
                Sign::Good => (glyphs.yes, Role::Good),
                Sign::Bad => (glyphs.no, Role::Bad),
                Sign::Unknown => (glyphs.unknown, Role::Muted),
                Sign::Bullet => (glyphs.bullet, Role::Muted),
                Sign::Rule => (glyphs.line_v, Role::Border),
            };
            let mark = if row == 0 || sign == Sign::Rule { mark } else { " " };
            spans.push(Span::styled(format!("{mark} "), theme.style(role)));
        }
        spans
    }

    /// "line 12 of 340", and where the search stands.
    pub fn status(&self) -> String {
        let mut words = String::new();
        if let Some(label) = self.matches.label() {
            let needle = crate::model::safe::Safe::line(self.matches.needle());
            words = format!("\"{needle}\" {label}, ");
        }
        format!("{words}line {} of {}", widget::count(self.cursor as u64 + 1), widget::count(self.lines.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::sample::screen;

    fn document(count: usize) -> Document {
        let lines = (0..count).map(|n| DocLine::new(format!("line {n} has some words in it"), Role::Text));
        Document::new(lines.collect(), Break::Words)
    }

    #[test]
    fn a_frame_looks_at_what_it_shows() {
        let mut document = document(100_000);
        document.resize(20, 10);
        prose::work::take();
        for action in [Action::Bottom, Action::PageUp, Action::Up, Action::Top, Action::PageDown] {
            document.act(action);
            screen(20, 10, |frame| document.view(frame, frame.area(), &Theme::dark(), true));
            assert!(prose::work::take() <= 11, "{action:?}");
        }
    }

    #[test]
    fn the_reader_stays_on_its_line() {
        let mut document = document(50);
        document.resize(40, 5);
        document.go(20);
        document.resize(12, 5);
        let shown = screen(12, 5, |frame| document.view(frame, frame.area(), &Theme::dark(), true));
        assert!(shown.contains("→ line 20"), "{shown}");
        document.search("line 33");
        assert_eq!(document.cursor(), 33);
        assert!(document.status().starts_with("\"line 33\" 1/1"), "{}", document.status());
        document.replace(vec![DocLine::new("only", Role::Text)]);
        assert_eq!(document.cursor(), 0);
    }

    #[test]
    fn pages_reach_the_end_even_over_long_lines() {
        let mut document = Document::new(
            vec![DocLine::new("word ".repeat(500), Role::Text), DocLine::new("end", Role::Text)],
            Break::Words,
        );
        document.resize(20, 5);
        document.act(Action::PageDown);
        assert_eq!(document.cursor(), 1);
    }
}
