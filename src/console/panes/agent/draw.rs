//! How the rows of the transcript look.
//!
//! Not here: which rows are shown. Invariants: one row is one line; what an item is about is told by a sign
//! and a word as well as by its colour.

use ratatui::text::{Line, Span};

use crate::console::paint;
use crate::console::scene::Scene;
use crate::console::theme::Role;
use crate::console::transcript::item::{Fold, Item, ItemKind, Part, Tone, ToolCall};
use crate::console::transcript::{Place, Row};
use crate::console::widget;

use super::{AgentPane, WIDE};

impl AgentPane {
    pub(super) fn row(&self, scene: &Scene<'_>, row: &Row<'_>, cursor: Option<Place>, columns: u16) -> Line<'static> {
        let theme = scene.theme;
        let glyphs = theme.glyphs();
        let mark = match cursor {
            Some(place) if place == row.place && !self.at.follow => {
                Span::styled(format!("{} ", glyphs.arrow_right), theme.style(Role::Key))
            }
            Some(place) if place.item == row.place.item && !self.at.follow => {
                Span::styled(format!("{} ", glyphs.line_v), theme.style(Role::Key))
            }
            _ => Span::raw("  "),
        };
        let room = usize::from(columns).saturating_sub(2);
        let mut line = if row.place.line == 0 {
            self.head(scene, row.item, room)
        } else {
            self.body(scene, row, self.transcript.columns())
        };
        line.spans.insert(0, mark);
        line
    }

    fn head(&self, scene: &Scene<'_>, item: &Item, room: usize) -> Line<'static> {
        let theme = scene.theme;
        let glyphs = theme.glyphs();
        let needle = self.transcript.matches.needle();
        let words = |text: &str, role| paint::spans(theme, text, 0..text.len(), &[], role, needle);
        match &item.kind {
            ItemKind::Heading { title, detail } => {
                let mut left = vec![Span::styled(glyphs.line_h.repeat(2) + " ", theme.style(Role::Border))];
                left.extend(words(title, Role::Heading));
                left.push(Span::raw("  "));
                left.extend(words(detail, Role::Muted));
                left.push(Span::raw(" "));
                let clock = scene.clock_at(item.at_ms);
                let used = Line::from(left.clone()).width() + clock.len() + 2;
                left.push(Span::styled(glyphs.line_h.repeat(room.saturating_sub(used)), theme.style(Role::Border)));
                paint::both_ends(theme, Line::from(left), widget::styled(clock, theme.style(Role::Muted)), room)
            }
            ItemKind::Thinking | ItemKind::Spelling => {
                let mut left = vec![Span::styled(fold_mark(scene, item), theme.style(Role::Muted))];
                left.extend(words(&item.head_text(), Role::Thinking));
                if item.fold == Fold::Folded {
                    left.push(Span::styled(format!(", {} lines", item.body.len()), theme.style(Role::Muted)));
                }
                Line::from(left)
            }
            ItemKind::Tool(tool) => self.tool_head(scene, item, tool, room),
            ItemKind::Speech | ItemKind::Note(_) | ItemKind::Gone => Line::default(),
        }
    }

    fn tool_head(&self, scene: &Scene<'_>, item: &Item, tool: &ToolCall, room: usize) -> Line<'static> {
        let theme = scene.theme;
        let glyphs = theme.glyphs();
        let needle = self.transcript.matches.needle();
        let ended = tool.ended.as_ref().filter(|_| !item.undone);
        let (mark, role, outcome) = match ended {
            None => (glyphs.current, Role::Info, "running".to_owned()),
            Some(ended) if ended.good => (glyphs.yes, Role::Good, ended.words.clone()),
            Some(ended) => (glyphs.no, Role::Bad, ended.words.clone()),
        };
        let outcome = if tool.accepted && ended.is_some() { "report accepted".to_owned() } else { outcome };
        let mut left = vec![
            Span::styled(fold_mark(scene, item), theme.style(Role::Muted)),
            Span::styled(format!("{mark} "), theme.style(role)),
        ];
        left.extend(paint::spans(theme, &tool.name, 0..tool.name.len(), &[], Role::Tool, needle));
        if !tool.summary.is_empty() {
            left.push(Span::raw("  "));
            left.extend(paint::spans(theme, &tool.summary, 0..tool.summary.len(), &[], Role::Text, needle));
        }
        let outcome_role = if role == Role::Good { Role::Muted } else { role };
        let mut right = vec![Span::styled(outcome, theme.style(outcome_role))];
        let lines = item.output_lines();
        if item.fold == Fold::Folded && lines > 0 && ended.is_some() && !tool.accepted {
            let unit = if lines == 1 { "line" } else { "lines" };
            right.push(Span::styled(format!(", {} {unit}", widget::count(lines as u64)), theme.style(Role::Muted)));
        }
        if room >= WIDE || item.fold == Fold::Full {
            right.push(Span::styled(format!(" [{}]", tool.rule), theme.style(Role::Muted)));
        }
        paint::both_ends(theme, Line::from(left), Line::from(right), room)
    }

    fn body(&self, scene: &Scene<'_>, row: &Row<'_>, columns: u16) -> Line<'static> {
        let theme = scene.theme;
        let glyphs = theme.glyphs();
        let item = row.item;
        let Some((body, range)) = item.row_text(row.place.line, row.place.within, columns) else {
            return Line::default();
        };
        let first = row.place.line == 1 && row.place.within == 0;
        let (prefix, prefix_role, role) = match (&item.kind, body.part) {
            (ItemKind::Tool(_), Part::Input) => (glyphs.gap, Role::Border, Role::Muted),
            (ItemKind::Tool(_) | ItemKind::Spelling, _) => (glyphs.line_v, Role::Border, Role::Code),
            (ItemKind::Thinking, _) => (glyphs.gap, Role::Border, Role::Thinking),
            (ItemKind::Note(tone), _) => {
                let (mark, role) = match tone {
                    Tone::Plain => (glyphs.bullet, Role::Muted),
                    Tone::Good => (glyphs.yes, Role::Good),
                    Tone::Bad => (glyphs.no, Role::Bad),
                    Tone::Wait => ("!", Role::Warning),
                    Tone::Person => (glyphs.current, Role::Operator),
                };
                (if first { mark } else { " " }, role, role)
            }
            (ItemKind::Speech | ItemKind::Heading { .. } | ItemKind::Gone, _) => ("", Role::Text, Role::Speech),
        };
        let mut spans = Vec::new();
        if !prefix.is_empty() {
            spans.push(Span::styled(format!("{prefix} "), theme.style(prefix_role)));
        }
        spans.extend(paint::spans(theme, &body.text, range, &[], role, self.transcript.matches.needle()));
        if let (Part::Until, Some(until)) = (body.part, item.until_ms) {
            spans.push(Span::styled(scene.clock_at(until), theme.style(role)));
        }
        Line::from(spans)
    }
}

fn fold_mark(scene: &Scene<'_>, item: &Item) -> String {
    let glyphs = scene.theme.glyphs();
    let mark = match (item.can_fold(), item.fold) {
        (false, _) => " ",
        (true, Fold::Full) => glyphs.unfolded,
        (true, Fold::Folded | Fold::Brief) => glyphs.folded,
    };
    format!("{mark} ")
}
