//! How the night and its events look.
//!
//! Not here: what is kept and shown. Invariants: kinds of time differ without colour.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::console::paint;
use crate::console::scene::Scene;
use crate::console::theme::{Role, Theme};
use crate::console::widget;
use crate::machine::words::Topic;

use super::TimelinePane;
use crate::evidence::night::Doing;

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
    pub(super) fn spans(&self, frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
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
                let clock: String = scene.clock_at(from + part).chars().take(shown).collect();
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
            let clock = scene.clock_at(at_ms);
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
        let ends = widget::styled(format!("{length}, to {}", scene.clock_at(to)), theme.style(Role::Muted));
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

    pub(super) fn list(&self, frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
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
                spans.push(Span::styled(scene.clock_at(entry.at_ms), theme.style(Role::Muted)));
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
