//! Styled pieces of text: syntax, matches and rows put together. Names roles, never colours.

use std::ops::Range;

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Block;

use super::prose;
use super::theme::{Role, Theme};
use super::widget;

/// A part of a line and what it means.
pub type Piece = (Range<usize>, Role);

/// The part `shown` of a line: its pieces in their roles, the rest as `base`, matches of `needle` on top.
pub fn spans(
    theme: &Theme,
    text: &str,
    shown: Range<usize>,
    pieces: &[Piece],
    base: Role,
    needle: &str,
) -> Vec<Span<'static>> {
    let mut matches = if needle.is_empty() { Vec::new() } else { prose::find_all(text, needle) };
    matches.retain(|range| range.start < shown.end && range.end > shown.start);
    let mut cuts: Vec<usize> = vec![shown.start, shown.end];
    let edges = pieces.iter().map(|(range, _)| range).chain(&matches);
    cuts.extend(edges.flat_map(|range| [range.start, range.end]).filter(|at| shown.contains(at)));
    cuts.sort_unstable();
    cuts.dedup();
    let mut out: Vec<Span<'static>> = Vec::new();
    for pair in cuts.windows(2) {
        let [start, end] = pair else { continue };
        let Some(part) = text.get(*start..*end) else { continue };
        let role = if matches.iter().any(|range| range.contains(start)) {
            Role::Match
        } else {
            pieces.iter().find(|(range, _)| range.contains(start)).map_or(base, |(_, role)| *role)
        };
        out.push(Span::styled(part.to_owned(), style(theme, role)));
    }
    out
}

/// A match must be seen without colours too.
fn style(theme: &Theme, role: Role) -> Style {
    let style = theme.style(role);
    if role == Role::Match && style == Style::default() {
        return theme.style(Role::Selection);
    }
    style
}

/// Words at the right end of a box's upper edge, as far as they fit beside its title.
pub fn corner<'a>(block: Block<'a>, theme: &Theme, title: &str, words: &str, columns: u16) -> Block<'a> {
    let room = usize::from(columns).saturating_sub(widget::width(title) + 7);
    if words.is_empty() || room < 4 {
        return block;
    }
    let words = format!(" {} ", widget::clip(theme, words, room));
    block.title_top(Line::from(Span::styled(words, theme.style(Role::Muted))).right_aligned())
}

/// Words in the middle of a box's lower edge.
pub fn foot<'a>(block: Block<'a>, theme: &Theme, words: &str, role: Role, columns: u16) -> Block<'a> {
    let room = usize::from(columns).saturating_sub(4);
    if words.is_empty() || room < 4 {
        return block;
    }
    let words = format!(" {} ", widget::clip(theme, words, room.saturating_sub(2)));
    block.title_bottom(Line::from(Span::styled(words, theme.style(role))).right_aligned())
}

/// Two texts on one row: the left one is cut, the right one kept; without room, the left one alone.
pub fn both_ends(theme: &Theme, left: Line<'static>, right: Line<'static>, columns: usize) -> Line<'static> {
    let kept = right.width();
    if kept == 0 || kept + 12 > columns {
        return widget::clip_line(theme, left, columns);
    }
    let room = columns - kept - 1;
    let mut line = widget::clip_line(theme, left, room);
    let gap = columns.saturating_sub(line.width() + kept);
    line.spans.push(Span::raw(" ".repeat(gap)));
    line.spans.extend(right.spans);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_and_matches_cover_the_row() {
        let theme = Theme::dark();
        let text = "let x = 12; // twelve";
        let pieces = [(0..3, Role::Keyword), (8..10, Role::Literal), (12..21, Role::Comment)];
        let row = spans(&theme, text, 2..21, &pieces, Role::Text, "12");
        let joined: String = row.iter().map(|span| span.content.as_ref()).collect();
        assert_eq!(joined, &text[2..21]);
        let found = row.iter().find(|span| span.content == "12").unwrap();
        assert_eq!(found.style, style(&theme, Role::Match));
        assert_ne!(style(&Theme::plain(), Role::Match), Style::default());
    }

    #[test]
    fn the_right_end_is_kept() {
        let theme = Theme::plain();
        let line = both_ends(&theme, Line::from("a long text on the left"), Line::from("exit 0"), 20);
        assert_eq!(line.width(), 20);
        assert!(line.to_string().ends_with("exit 0"));
        assert!(line.to_string().contains('…'));
    }
}
