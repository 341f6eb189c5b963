//! Small pieces that all panes share: frames around things, texts cut to fit, words for numbers.

use std::path::{Component, Path, PathBuf};

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::theme::{Role, Theme};

/// A titled box. The focused one is told by its title mark as well as by its colour.
pub fn panel<'a>(theme: &Theme, title: &'a str, focused: bool) -> Block<'a> {
    let role = if focused { Role::BorderFocused } else { Role::Border };
    Block::default()
        .borders(Borders::ALL)
        .border_set(theme.glyphs().border)
        .border_style(theme.style(role))
        .title(Span::styled(format!(" {title} "), theme.style(Role::Title)))
}

/// Columns that a text takes.
pub fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// Cuts a text to `columns`; what is missing is marked.
pub fn clip(theme: &Theme, text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mark = theme.glyphs().cut;
    let room = columns.saturating_sub(width(mark));
    if room == 0 {
        return if columns == 0 { String::new() } else { mark.chars().take(columns).collect() };
    }
    let mut out = String::new();
    let mut used = 0;
    for cluster in text.graphemes(true) {
        let columns = width(cluster);
        if used + columns > room {
            break;
        }
        out.push_str(cluster);
        used += columns;
    }
    out.push_str(mark);
    out
}

/// Cuts a line to fit, keeping its styles.
pub fn clip_line<'a>(theme: &Theme, line: Line<'a>, columns: usize) -> Line<'a> {
    if line.width() <= columns {
        return line;
    }
    let mut left = columns;
    let mut spans: Vec<Span<'a>> = Vec::new();
    for span in line.spans {
        let columns = width(&span.content);
        if columns < left {
            left -= columns;
            spans.push(span);
        } else {
            // One more column than there is room for, so that the cut is marked.
            let mut text = span.content.into_owned();
            text.push(' ');
            spans.push(Span::styled(clip(theme, &text, left), span.style));
            break;
        }
    }
    Line::from(spans).style(line.style)
}

/// The inside of a one-column border; empty where there is no room.
pub fn inside(area: Rect) -> Rect {
    Block::default().borders(Borders::ALL).inner(area)
}

pub use crate::model::amount::{count, duration, took};

/// A key and what it does, for footers: `p pause`.
pub fn key_hint(theme: &Theme, key: &str, does: &str) -> Vec<Span<'static>> {
    vec![
        Span::styled(key.to_owned(), theme.style(Role::Key)),
        Span::styled(format!(" {does}"), theme.style(Role::Muted)),
    ]
}

/// A path inside the workspace, as agents and files name it. `None`: it leads elsewhere.
pub fn workspace_path(text: &str) -> Option<PathBuf> {
    let path = Path::new(text);
    let inside = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    // A name that begins like an option must not be taken for one.
    let named = if text.starts_with('-') { Path::new(".").join(path) } else { path.to_owned() };
    (inside && !text.is_empty() && !text.contains('\0')).then_some(named)
}

/// A style over a whole line.
pub fn styled<'a>(text: impl Into<String>, style: Style) -> Line<'a> {
    Line::from(Span::styled(text.into(), style))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_is_marked_and_never_too_wide() {
        let theme = Theme::plain();
        for columns in 0..12 {
            for text in ["", "short", "a longer text that does not fit", "日本語の長いテキスト"] {
                let cut = clip(&theme, text, columns);
                assert!(width(&cut) <= columns, "{cut:?} is wider than {columns}");
                assert_eq!(cut == text, width(text) <= columns, "{text:?} at {columns}");
            }
        }
    }

    #[test]
    fn paths_do_not_lead_out_of_the_workspace() {
        assert_eq!(workspace_path("src/a.rs"), Some(PathBuf::from("src/a.rs")));
        assert_eq!(workspace_path("-c"), Some(PathBuf::from("./-c")));
        for text in ["", "/etc/passwd", "../x", "a/../../x", "a\0b"] {
            assert_eq!(workspace_path(text), None, "{text:?}");
        }
    }
}
