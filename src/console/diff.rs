//! A unified diff with a reader in it. Kept as bytes with an index of lines; a line is made harmless and
//! coloured when it is shown.
//!
//! Not here: where diffs come from. Invariants: a frame looks at the lines it shows; a removed line that looks
//! like a header is still a removed line.

use std::borrow::Cow;
use std::sync::Arc;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;

use super::action::Action;
use super::paint;
use super::prose;
use super::scroll::{Matches, Window};
use super::syntax::{self, Lang};
use super::theme::{Role, Theme};
use super::widget;

/// Columns that one step to the side moves.
const STEP: usize = 8;
/// Bytes of a line that are looked at.
const LONGEST: usize = 8 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Header,
    Hunk,
    Added,
    Removed,
    Context,
}

/// One file of the diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffFile {
    pub path: String,
    pub first_line: usize,
    pub added: usize,
    pub removed: usize,
}

#[derive(Debug, Clone)]
pub struct Diff {
    bytes: Arc<[u8]>,
    starts: Vec<usize>,
    kinds: Vec<Kind>,
    files: Vec<DiffFile>,
    window: Window,
    /// Columns that are scrolled away on the left.
    shift: usize,
    pub matches: Matches<usize>,
}

impl Diff {
    pub fn new(bytes: Arc<[u8]>) -> Self {
        let mut made = Self {
            bytes,
            starts: Vec::new(),
            kinds: Vec::new(),
            files: Vec::new(),
            window: Window::default(),
            shift: 0,
            matches: Matches::default(),
        };
        made.index();
        made
    }

    /// One pass: where lines begin, and what they are.
    fn index(&mut self) {
        let bytes = Arc::clone(&self.bytes);
        let mut at = 0;
        // Lines that the hunk still has to bring, old and new.
        let (mut old, mut new) = (0usize, 0usize);
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let inside = old > 0 || new > 0;
            let kind = match line.first() {
                Some(b'+') if inside => {
                    new = new.saturating_sub(1);
                    Kind::Added
                }
                Some(b'-') if inside => {
                    old = old.saturating_sub(1);
                    Kind::Removed
                }
                Some(b'\\') => Kind::Context,
                _ if inside => {
                    (old, new) = (old.saturating_sub(1), new.saturating_sub(1));
                    Kind::Context
                }
                _ => match hunk(line) {
                    Some(counts) => {
                        (old, new) = counts;
                        Kind::Hunk
                    }
                    None => Kind::Header,
                },
            };
            if kind == Kind::Header && line.starts_with(b"--- ") {
                self.files.push(DiffFile {
                    path: header_path(line),
                    first_line: self.starts.len(),
                    added: 0,
                    removed: 0,
                });
            }
            if let Some(file) = self.files.last_mut() {
                match kind {
                    Kind::Header if line.starts_with(b"+++ ") && header_path(line) != "/dev/null" => {
                        file.path = header_path(line);
                    }
                    Kind::Added => file.added += 1,
                    Kind::Removed => file.removed += 1,
                    Kind::Header | Kind::Hunk | Kind::Context => {}
                }
            }
            self.starts.push(at);
            self.kinds.push(kind);
            at += line.len();
        }
    }

    pub fn len(&self) -> usize {
        self.starts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    pub fn files(&self) -> &[DiffFile] {
        &self.files
    }

    /// The file that the reader is in.
    pub fn file(&self) -> Option<&DiffFile> {
        self.file_of(self.window.cursor())
    }

    fn file_of(&self, line: usize) -> Option<&DiffFile> {
        let after = self.files.partition_point(|file| file.first_line <= line);
        self.files.get(after.checked_sub(1)?)
    }

    fn raw(&self, line: usize) -> Cow<'_, str> {
        let start = self.starts.get(line).copied().unwrap_or(0);
        let end = self.starts.get(line + 1).copied().unwrap_or(self.bytes.len());
        let bytes = self.bytes.get(start..end.min(start + LONGEST)).unwrap_or_default();
        String::from_utf8_lossy(bytes)
    }

    /// The line, harmless, with its sign.
    fn text(&self, line: usize) -> String {
        #[cfg(test)]
        prose::work::one();
        let raw = self.raw(line);
        match self.kinds.get(line) {
            // The sign is no indentation: what follows keeps its own.
            Some(Kind::Added | Kind::Removed | Kind::Context) => match raw.get(1..) {
                Some(rest) => format!("{}{}", raw.get(..1).unwrap_or(" "), prose::line(rest)),
                None => prose::line(&raw),
            },
            _ => prose::line(&raw),
        }
    }

    pub fn resize(&mut self, page: u16) {
        self.window.set_page(usize::from(page), self.starts.len());
    }

    pub fn go(&mut self, line: usize) {
        self.window.jump(line, self.starts.len());
    }

    /// Moves as the operator says. `false`: that was no move.
    pub fn act(&mut self, action: Action) -> bool {
        let len = self.starts.len();
        match action {
            Action::Left => self.shift = self.shift.saturating_sub(STEP),
            Action::Right => self.shift = (self.shift + STEP).min(LONGEST),
            Action::NextMatch => {
                if let Some(line) = self.matches.next(self.window.cursor()) {
                    self.go(line);
                }
            }
            Action::PreviousMatch => {
                if let Some(line) = self.matches.previous(self.window.cursor()) {
                    self.go(line);
                }
            }
            _ => return self.window.act(action, len),
        }
        true
    }

    pub fn search(&mut self, needle: &str) {
        self.matches.start(needle);
        if !self.matches.is_on() {
            return;
        }
        for line in 0..self.starts.len() {
            if prose::find(&self.raw(line), self.matches.needle(), 0).is_some() {
                self.matches.add(line);
            }
        }
        if let Some(line) = self.matches.seek(self.window.cursor()) {
            self.go(line);
        }
    }

    /// The hunk under the cursor, with the headers that make it a patch.
    pub fn hunk(&self) -> String {
        let cursor = self.window.cursor();
        let kind = |line: &usize| self.kinds.get(*line).copied();
        let start = (0..=cursor).rev().find(|line| matches!(kind(line), Some(Kind::Hunk | Kind::Header)));
        let start = start.unwrap_or(0);
        let end = (start + 1..self.starts.len()).find(|line| matches!(kind(line), Some(Kind::Hunk | Kind::Header)));
        let end = end.unwrap_or(self.starts.len());
        let mut lines = Vec::new();
        if let Some(file) = self.file_of(start).filter(|_| kind(&start) == Some(Kind::Hunk)) {
            let headers = file.first_line..(file.first_line + 2).min(start);
            lines.extend(headers.map(|line| self.text(line)));
        }
        lines.extend((start..end).map(|line| self.text(line)));
        lines.join("\n") + "\n"
    }

    pub fn status(&self) -> String {
        let mut words = String::new();
        if let Some(label) = self.matches.label() {
            words = format!("\"{}\" {label}, ", crate::model::safe::Safe::line(self.matches.needle()));
        }
        let line = widget::count(self.window.cursor() as u64 + 1);
        format!("{words}line {line} of {}", widget::count(self.starts.len() as u64))
    }

    /// Draws the page into `area`, without a frame.
    pub fn view(&self, frame: &mut Frame<'_>, area: Rect, theme: &Theme, focused: bool) {
        for (y, line) in (area.y..).zip(self.window.shown(self.starts.len(), usize::from(area.height))) {
            let here = focused && line == self.window.cursor();
            let drawn = widget::clip_line(theme, self.row(theme, line, here), usize::from(area.width));
            frame.render_widget(drawn, Rect { y, height: 1, ..area });
        }
    }

    fn row(&self, theme: &Theme, line: usize, here: bool) -> Line<'static> {
        let glyphs = theme.glyphs();
        let mark = if here { glyphs.arrow_right } else { " " };
        let mut spans = vec![Span::styled(format!("{mark} "), theme.style(Role::Key))];
        let text = self.text(line);
        let kind = self.kinds.get(line).copied().unwrap_or(Kind::Context);
        let base = match kind {
            Kind::Header => Role::Heading,
            Kind::Hunk => Role::DiffHunk,
            Kind::Added => Role::DiffAdded,
            Kind::Removed => Role::DiffRemoved,
            Kind::Context => Role::Text,
        };
        let mut pieces = Vec::new();
        if matches!(kind, Kind::Added | Kind::Removed | Kind::Context)
            && let Some(lang) = self.file_of(line).and_then(|file| Lang::of_path(&file.path))
            && let Some(code) = text.get(1..)
        {
            pieces.extend(
                syntax::lex(lang, code).into_iter().map(|(range, role)| (range.start + 1..range.end + 1, role)),
            );
        }
        let from = if self.shift > 0 && matches!(kind, Kind::Added | Kind::Removed | Kind::Context) {
            // The sign stays, and what is scrolled away is marked.
            spans.push(Span::styled(text.get(..1).unwrap_or(" ").to_owned(), theme.style(base)));
            spans.push(Span::styled(glyphs.cut, theme.style(Role::Muted)));
            skip_columns(&text, self.shift + 2)
        } else {
            0
        };
        spans.extend(paint::spans(theme, &text, from..text.len(), &pieces, base, self.matches.needle()));
        Line::from(spans)
    }
}

fn skip_columns(text: &str, columns: usize) -> usize {
    let mut used = 0;
    for (at, cluster) in text.grapheme_indices(true) {
        if used >= columns {
            return at;
        }
        used += widget::width(cluster);
    }
    text.len()
}

/// The numbers of old and new lines that `@@ -1,2 +3,4 @@` announces.
fn hunk(line: &[u8]) -> Option<(usize, usize)> {
    let text = std::str::from_utf8(line.get(..line.len().min(80))?).ok()?;
    let mut parts = text.strip_prefix("@@ -")?.split(' ');
    let count = |range: &str| match range.split_once(',') {
        Some((_, count)) => count.parse().ok(),
        None => range.parse::<usize>().ok().map(|_| 1),
    };
    let old = count(parts.next()?)?;
    let new = count(parts.next()?.strip_prefix('+')?)?;
    Some((old, new))
}

fn header_path(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line.get(4..).unwrap_or_default());
    let path = text.trim_end();
    path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::sample::screen;

    const TWO: &str = "--- a/run.sh\n+++ b/run.sh\n@@ -1,2 +1,2 @@\n if true\n--- not a header\n+\tthen 12\n\
                       --- /dev/null\n+++ b/new.rs\n@@ -0,0 +1 @@\n+let x = 1;\n";

    fn diff(text: &str) -> Diff {
        Diff::new(Arc::from(text.as_bytes()))
    }

    #[test]
    fn lines_are_told_apart_by_what_the_hunk_announces() {
        let diff = diff(TWO);
        let files: Vec<_> = diff.files().iter().map(|f| (f.path.as_str(), f.added, f.removed)).collect();
        assert_eq!(files, [("run.sh", 1, 1), ("new.rs", 1, 0)]);
        assert_eq!(diff.kinds[4], Kind::Removed);
        let shown = screen(40, 10, |frame| diff.view(frame, frame.area(), &Theme::dark(), true));
        assert!(shown.contains("+    then 12"), "{shown}");
    }

    #[test]
    fn a_hunk_is_copied_as_a_patch() {
        let mut diff = diff(TWO);
        diff.resize(10);
        diff.go(5);
        assert_eq!(
            diff.hunk(),
            "--- a/run.sh\n+++ b/run.sh\n@@ -1,2 +1,2 @@\n if true\n--- not a header\n+    then 12\n"
        );
    }

    #[test]
    fn five_megabytes_are_indexed_once_and_shown_by_the_page() {
        let body = "+a line that was added to a very long file\n".repeat(130_000);
        let mut diff = diff(&format!("--- /dev/null\n+++ b/long.rs\n@@ -0,0 +1,130000 @@\n{body}"));
        assert!(diff.bytes.len() > 5 << 20);
        diff.resize(20);
        prose::work::take();
        for action in [Action::Bottom, Action::PageUp, Action::Right, Action::Top] {
            diff.act(action);
            screen(80, 20, |frame| diff.view(frame, frame.area(), &Theme::dark(), true));
            assert!(prose::work::take() <= 20, "{action:?}");
        }
        diff.search("very long");
        assert_eq!(diff.matches.len(), 130_000);
    }

    #[test]
    fn moving_to_the_side_keeps_the_sign_and_marks_the_cut() {
        let mut diff = diff("--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+0123456789abcdef\n");
        diff.act(Action::Right);
        let shown = screen(30, 4, |frame| diff.view(frame, frame.area(), &Theme::dark(), false));
        assert!(shown.contains("+…9abcdef"), "{shown}");
    }
}
