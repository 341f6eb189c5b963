//! The box of an overlay: its place, its keys, its text.
//!
//! Invariants: centred, or the whole screen where that is small; the keys are the last rows; text that does
//! not fit says how much of it is above and below.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};

use super::super::theme::{Role, Theme};
use super::super::widget::{clip, clip_line, inside, key_hint, panel, width};

/// Below this the whole screen is used.
const SMALL: (u16, u16) = (60, 16);

/// Keys with what they do.
pub(super) type Keys = Vec<(String, String)>;

pub(super) fn keys(pairs: &[(&str, &str)]) -> Keys {
    pairs.iter().map(|(key, does)| ((*key).to_owned(), (*does).to_owned())).collect()
}

/// Esc, and the key that people press when nothing else helps.
pub(super) fn cancels(key: KeyEvent) -> bool {
    key.code == KeyCode::Esc || (key.code == KeyCode::Char('c') && key.modifiers == KeyModifiers::CONTROL)
}

/// A box with room for so many columns and rows of text, or as many as there are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sheet {
    outer: Rect,
    pub body: Rect,
    keys: Rect,
}

impl Sheet {
    pub fn place(area: Rect, columns: usize, rows: usize, keys: &Keys) -> Self {
        let columns = u16::try_from(columns).unwrap_or(u16::MAX).saturating_add(4);
        let small = area.width < SMALL.0 || area.height < SMALL.1;
        // What would leave a rim of a few signs takes that, too.
        let wide = if small || columns.saturating_add(6) >= area.width { area.width } else { columns.max(40) };
        let key_rows = u16::try_from(key_lines(keys, usize::from(wide.saturating_sub(4))).len()).unwrap_or(u16::MAX);
        let wanted = u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(2).saturating_add(key_rows);
        let high = if small || wanted.saturating_add(2) >= area.height { area.height } else { wanted.max(5) };
        let outer = area.centered(
            ratatui::layout::Constraint::Length(wide.min(area.width)),
            ratatui::layout::Constraint::Length(high.min(area.height)),
        );
        let inner = inside(outer);
        // A blank column on each side where there is room for it.
        let pad = u16::from(inner.width > 30);
        let inner = Rect { x: inner.x + pad, width: inner.width.saturating_sub(2 * pad), ..inner };
        let key_rows = key_rows.min(inner.height.div_ceil(2));
        let body = Rect { height: inner.height.saturating_sub(key_rows), ..inner };
        let keys = Rect { y: body.bottom(), height: inner.height - body.height, ..inner };
        Self { outer, body, keys }
    }

    /// Clears its place, draws the frame, the title and the keys.
    pub fn draw(&self, frame: &mut Frame<'_>, theme: &Theme, title: &str, keys: &Keys) {
        frame.render_widget(Clear, self.outer);
        let title = clip(theme, title, usize::from(self.outer.width.saturating_sub(4)));
        frame.render_widget(panel(theme, &title, true), self.outer);
        let lines: Vec<Line<'_>> = key_lines(keys, usize::from(self.keys.width))
            .into_iter()
            .map(|row| {
                let mut spans: Vec<Span<'_>> = Vec::new();
                for (key, does) in row {
                    if !spans.is_empty() {
                        spans.push(Span::raw("  "));
                    }
                    spans.extend(key_hint(theme, &key, &does));
                }
                clip_line(theme, Line::from(spans), usize::from(self.keys.width))
            })
            .collect();
        frame.render_widget(Paragraph::new(lines), self.keys);
    }
}

/// The keys on as many rows as they need.
fn key_lines(keys: &Keys, columns: usize) -> Vec<Keys> {
    let mut rows: Vec<Keys> = Vec::new();
    let mut used = 0;
    for (key, does) in keys.iter().filter(|(key, _)| !key.is_empty()) {
        let wide = width(key) + 1 + width(does);
        match rows.last_mut() {
            Some(row) if used + 2 + wide <= columns => {
                row.push((key.clone(), does.clone()));
                used += 2 + wide;
            }
            _ => {
                rows.push(vec![(key.clone(), does.clone())]);
                used = wide;
            }
        }
    }
    rows
}

/// How far a text of so many rows can be scrolled in a window of this height.
pub(super) fn furthest(rows: usize, height: u16) -> usize {
    let height = usize::from(height);
    if rows <= height { 0 } else { rows - height.saturating_sub(1).max(1) }
}

/// Draws rows from `scroll` on. Where not all fit, the last row says how many there are above and below.
pub(super) fn rows(frame: &mut Frame<'_>, area: Rect, theme: &Theme, lines: Vec<Line<'_>>, scroll: usize) {
    if area.is_empty() {
        return;
    }
    let all = lines.len();
    let scroll = scroll.min(furthest(all, area.height));
    let fits = all <= usize::from(area.height);
    let shown = if fits { all } else { usize::from(area.height).saturating_sub(1).max(1) };
    let columns = usize::from(area.width);
    let mut visible: Vec<Line<'_>> =
        lines.into_iter().skip(scroll).take(shown).map(|line| clip_line(theme, line, columns)).collect();
    if !fits && area.height > 1 {
        let below = all - scroll - visible.len();
        let glyphs = theme.glyphs();
        let mut parts = Vec::new();
        if below > 0 {
            parts.push(format!("{} {below} more below", glyphs.arrow_down));
        }
        if scroll > 0 {
            parts.push(format!("{} {scroll} above", glyphs.arrow_up));
        }
        let mark = Line::from(Span::styled(parts.join("  "), theme.style(Role::Muted)));
        visible.push(clip_line(theme, mark, columns));
    }
    frame.render_widget(Paragraph::new(visible), area);
}

/// Keeps row `at` in the window: the scroll that shows it with the least movement.
pub(super) fn reveal(scroll: usize, at: usize, rows: usize, height: u16) -> usize {
    let shown = if rows <= usize::from(height) { rows } else { usize::from(height).saturating_sub(1).max(1) };
    let low = (at + 1).saturating_sub(shown);
    scroll.clamp(low, at.max(low)).min(furthest(rows, height))
}

/// A line of a list, marked and coloured when the cursor is on it.
pub(super) fn picked<'a>(theme: &Theme, line: Line<'a>, chosen: bool) -> Line<'a> {
    let mark = if chosen { theme.glyphs().folded } else { " " };
    let mut spans = vec![Span::raw(format!("{mark} "))];
    spans.extend(line.spans);
    let line = Line::from(spans);
    if chosen { line.style(theme.style(Role::Selection)) } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_inside_and_small_screens_are_filled() {
        let keys = keys(&[("enter", "send"), ("esc", "close"), ("alt-enter", "a new line")]);
        for (wide, high) in (1..=90).flat_map(|w| (1..=40).map(move |h| (w, h))) {
            let area = Rect::new(0, 0, wide, high);
            let sheet = Sheet::place(area, 50, 9, &keys);
            assert_eq!(sheet.outer.intersection(area), sheet.outer);
            assert_eq!(sheet.body.intersection(sheet.outer), sheet.body);
            assert_eq!(sheet.outer == area, wide < 60 || high < 16, "{wide}x{high}");
        }
        let sheet = Sheet::place(Rect::new(0, 0, 80, 24), 50, 9, &keys);
        assert_eq!((sheet.body.width, sheet.body.height), (50, 9));
        assert_eq!(sheet.keys.height, 1);
    }

    #[test]
    fn scrolling_ends_with_the_last_row_in_sight() {
        assert_eq!(furthest(10, 10), 0);
        assert_eq!(furthest(11, 10), 2);
        assert_eq!(reveal(0, 8, 11, 10), 0);
        assert_eq!(reveal(0, 10, 11, 10), 2);
        assert_eq!(reveal(2, 0, 11, 10), 0);
        assert_eq!(reveal(5, 3, 4, 10), 0);
        for high in 0..12 {
            for at in 0..11 {
                let scroll = reveal(0, at, 11, high);
                assert!(scroll <= at);
            }
        }
    }

    #[test]
    fn keys_are_broken_not_cut() {
        let many = keys(&[("a", "approve"), ("r", "reject"), ("esc", "close")]);
        let rows = key_lines(&many, 20);
        assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
    }
}
