//! One thing in the transcript: what was said, what was called, what happened in between.
//!
//! Not here: order, places, drawing. Invariants: all text is made harmless before it gets here; the rows of
//! an item follow from its text, its fold and the width alone.

use std::ops::Range;

use crate::console::prose::{self, Break};
use crate::model::ids::Role;

/// Output of at most this many lines is shown without being asked for.
pub const BRIEF_LINES: usize = 4;
/// More lines of one item are not kept.
pub const MOST_LINES: usize = 20_000;
/// Columns in front of every row: the cursor's.
pub const GUTTER: u16 = 2;

/// What a note is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Good,
    Bad,
    /// Something is waited for.
    Wait,
    /// A person said it, or has to.
    Person,
}

/// How a tool call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub good: bool,
    /// "exit 1, 38 ms".
    pub words: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    pub summary: String,
    pub rule: String,
    pub ended: Option<Ended>,
    /// Its report was accepted.
    pub accepted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemKind {
    /// A call begins.
    Heading {
        title: String,
        detail: String,
    },
    Speech,
    Thinking,
    /// A tool call while the model still spells it.
    Spelling,
    Tool(ToolCall),
    Note(Tone),
    /// Its place is taken by something else.
    Gone,
}

/// What a line of a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// What a tool was given.
    Input,
    Output,
    Text,
    /// A clock time follows: that of `Item::until_ms`.
    Until,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyLine {
    pub part: Part,
    pub text: Box<str>,
}

impl BodyLine {
    /// What it weighs, with its place in the layout.
    pub fn bytes(&self) -> usize {
        self.text.len() + size_of::<Self>() + size_of::<u32>()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    /// The head only.
    Folded,
    /// The head and the output.
    Brief,
    Full,
}

#[derive(Debug, Clone)]
pub struct Item {
    pub kind: ItemKind,
    pub seq: u64,
    /// The event that completed it, if that came later.
    pub done_seq: Option<u64>,
    pub at_ms: i64,
    pub until_ms: Option<i64>,
    pub iteration: Option<u32>,
    pub role: Option<Role>,
    pub body: Vec<BodyLine>,
    pub fold: Fold,
    /// Shown as it was before `done_seq`.
    pub undone: bool,
    /// Rows of the shown body lines, added up.
    ends: Vec<u32>,
}

impl Item {
    pub fn new(kind: ItemKind, seq: u64, at_ms: i64) -> Self {
        Self {
            kind,
            seq,
            done_seq: None,
            at_ms,
            until_ms: None,
            iteration: None,
            role: None,
            body: Vec::new(),
            fold: Fold::Full,
            undone: false,
            ends: Vec::new(),
        }
    }

    /// Adds lines, and says how many were too many.
    pub fn extend(&mut self, part: Part, lines: impl Iterator<Item = String>) {
        let mut left_out = 0usize;
        for text in lines {
            if self.body.len() < MOST_LINES {
                self.body.push(BodyLine { part, text: text.into() });
            } else {
                left_out += 1;
            }
        }
        if left_out > 0 {
            let text = format!("[{left_out} more lines are kept with the run, not here]");
            self.body.push(BodyLine { part, text: text.into() });
        }
    }

    /// Is there a row above the body?
    pub const fn has_head(&self) -> bool {
        matches!(self.kind, ItemKind::Heading { .. } | ItemKind::Thinking | ItemKind::Spelling | ItemKind::Tool(_))
    }

    /// The text of the head that can be searched.
    pub fn head_text(&self) -> String {
        match &self.kind {
            ItemKind::Heading { title, detail } => format!("{title} {detail}"),
            ItemKind::Thinking => "thinking".to_owned(),
            ItemKind::Spelling => "writes a tool call".to_owned(),
            ItemKind::Tool(tool) => format!("{} {}", tool.name, tool.summary),
            ItemKind::Speech | ItemKind::Note(_) | ItemKind::Gone => String::new(),
        }
    }

    pub fn can_fold(&self) -> bool {
        matches!(self.kind, ItemKind::Tool(_) | ItemKind::Thinking) && !self.body.is_empty()
    }

    pub fn toggle_fold(&mut self) {
        self.fold = match self.fold {
            Fold::Full => Fold::Folded,
            // Where there is no input, brief is all there is.
            Fold::Brief if self.first_output() == 0 => Fold::Folded,
            Fold::Folded | Fold::Brief => Fold::Full,
        };
    }

    pub fn fold(&mut self, folded: bool) {
        self.fold = if folded { Fold::Folded } else { Fold::Full };
    }

    fn first_output(&self) -> usize {
        self.body.iter().position(|line| line.part != Part::Input).unwrap_or(self.body.len())
    }

    pub fn output_lines(&self) -> usize {
        self.body.len() - self.first_output()
    }

    /// Body lines that are shown.
    pub fn shown(&self) -> Range<usize> {
        let len = self.body.len();
        if self.undone {
            return 0..0;
        }
        match (&self.kind, self.fold) {
            (ItemKind::Gone, _) | (_, Fold::Folded) => 0..0,
            (_, Fold::Brief) => self.first_output()..len,
            (_, Fold::Full) => 0..len,
        }
    }

    const fn how(&self) -> Break {
        match self.kind {
            ItemKind::Tool(_) | ItemKind::Spelling => Break::Anywhere,
            ItemKind::Heading { .. } | ItemKind::Speech | ItemKind::Thinking | ItemKind::Note(_) | ItemKind::Gone => {
                Break::Words
            }
        }
    }

    /// Columns in front of its body's text, besides the gutter.
    pub const fn indent(&self) -> u16 {
        match self.kind {
            ItemKind::Speech | ItemKind::Heading { .. } | ItemKind::Gone => 0,
            ItemKind::Thinking | ItemKind::Spelling | ItemKind::Tool(_) | ItemKind::Note(_) => 2,
        }
    }

    fn text_columns(&self, columns: u16) -> usize {
        usize::from(columns.saturating_sub(GUTTER + self.indent()).max(1))
    }

    /// Computes its rows anew; returns how many there are.
    pub fn lay_out(&mut self, columns: u16) -> u32 {
        if self.kind == ItemKind::Gone {
            self.ends = Vec::new();
            return 0;
        }
        let (how, width) = (self.how(), self.text_columns(columns));
        self.ends.clear();
        let mut rows = 0u32;
        for line in self.body.get(self.shown()).unwrap_or_default() {
            rows += u32::try_from(prose::height(&line.text, width, how)).unwrap_or(1);
            self.ends.push(rows);
        }
        u32::from(self.has_head()) + rows
    }

    /// Lays out from a body line on: for text that only grows at its end.
    pub fn lay_out_from(&mut self, line: usize, columns: u16) -> u32 {
        let (how, width) = (self.how(), self.text_columns(columns));
        self.ends.truncate(line);
        let mut rows = self.ends.last().copied().unwrap_or(0);
        for line in self.body.get(self.ends.len()..).unwrap_or_default() {
            rows += u32::try_from(prose::height(&line.text, width, how)).unwrap_or(1);
            self.ends.push(rows);
        }
        u32::from(self.has_head()) + rows
    }

    /// The line that a row shows: 0 is the head, `k + 1` body line `k`; and the row within that line.
    pub fn line_at(&self, row: u32) -> (u32, u32) {
        let head = u32::from(self.has_head());
        if row < head {
            return (0, 0);
        }
        let row = row - head;
        let index = self.ends.partition_point(|end| *end <= row).min(self.ends.len().saturating_sub(1));
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let line = u32::try_from(self.shown().start + index + 1).unwrap_or(u32::MAX);
        (line, row.saturating_sub(start))
    }

    /// The row of a line; a line that is not shown has the item's first row.
    pub fn row_of(&self, line: u32, within: u32) -> u32 {
        let head = u32::from(self.has_head());
        let Some(body) = usize::try_from(line).unwrap_or(usize::MAX).checked_sub(1) else { return 0 };
        let shown = self.shown();
        if !shown.contains(&body) {
            return 0;
        }
        let index = body - shown.start;
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(index).copied().unwrap_or(start + 1);
        head + (start + within).min(end.saturating_sub(1))
    }

    /// The part of a body line that stands in one of its rows.
    pub fn row_text(&self, line: u32, within: u32, columns: u16) -> Option<(&BodyLine, Range<usize>)> {
        let body = self.body.get(usize::try_from(line).ok()?.checked_sub(1)?)?;
        let mut rows = prose::rows(&body.text, self.text_columns(columns), self.how());
        Some((body, rows.nth(usize::try_from(within).ok()?)?))
    }

    /// What it weighs.
    pub fn bytes(&self) -> usize {
        self.body.iter().map(BodyLine::bytes).sum::<usize>() + size_of::<Self>()
    }

    pub fn line_count(&self) -> usize {
        self.body.len() + usize::from(self.has_head())
    }

    /// As text to be copied.
    pub fn copied(&self) -> String {
        let mut out = self.head_text();
        if let ItemKind::Tool(ToolCall { ended: Some(ended), .. }) = &self.kind {
            out.push_str(&format!(" ({})", ended.words));
        }
        for line in &self.body {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(&line.text);
        }
        out
    }
}
