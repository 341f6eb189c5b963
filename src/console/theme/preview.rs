//! A theme shown by itself: every role in its own style, and a few lines as the console would draw them.

use std::io::{self, Write};

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::model::safe::Safe;

use super::background::Background;
use super::colour;
use super::sgr::Pen;
use super::{Depth, Role, Theme};

const COLUMNS: usize = 4;
const COLUMN: usize = 18;

/// Lines of at most 76 columns.
pub fn preview(theme: &Theme) -> Vec<Line<'static>> {
    let span = |role: Role, text: &str| Span::styled(text.to_owned(), theme.style(role));
    let glyphs = theme.glyphs();
    let made_for = match theme.appearance() {
        Some(Background::Dark) => "for dark terminals",
        Some(Background::Light) => "for light terminals",
        None => "for any terminal",
    };
    let mut lines = vec![
        Line::from(vec![span(Role::Title, theme.name()), span(Role::Muted, &format!("  {made_for}"))]),
        Line::from(vec![
            span(Role::StateCurrent, &format!(" {} EXECUTE ", glyphs.current)),
            span(Role::EdgeLast, &format!(" {} ", glyphs.arrow_right)),
            span(Role::StateIdle, &format!("{} VERIFY", glyphs.idle)),
            span(Role::Text, "   "),
            span(Role::Good, &format!("{} met", glyphs.yes)),
            span(Role::Text, "  "),
            span(Role::Warning, &format!("{} unknown", glyphs.unknown)),
            span(Role::Text, "  "),
            span(Role::Bad, &format!("{} unmet", glyphs.no)),
            span(Role::Text, "   "),
            span(Role::GaugeFull, &glyphs.gauge_full.repeat(8)),
            span(Role::GaugeEmpty, &glyphs.gauge_empty.repeat(4)),
            span(Role::Text, " 66 %"),
        ]),
        Line::from(vec![
            span(Role::Bar, " nightloop "),
            span(Role::Badge, " 2 decisions "),
            span(Role::Text, " "),
            span(Role::Selection, " a selected row "),
            span(Role::Text, " "),
            span(Role::Match, "match"),
            span(Role::Text, "  "),
            span(Role::Key, "p"),
            span(Role::Muted, " pause"),
        ]),
    ];
    for row in Role::ALL.chunks(COLUMNS) {
        let mut spans: Vec<Span<'static>> = Vec::new();
        for &role in row {
            let name = role.name();
            // Between the names only: a background would show at the end.
            if let Some(last) = spans.last().map(Span::width) {
                spans.push(Span::raw(" ".repeat(COLUMN.saturating_sub(last))));
            }
            spans.push(Span::styled(name, theme.style(role)));
        }
        lines.push(Line::from(spans));
    }
    lines
}

/// Writes lines with their styles, as far as a terminal of that depth goes. Without colours and weights a
/// pipe gets plain text: `Depth::Mono` to something that is no terminal is the caller's to ask for by `None`.
pub fn write_lines(out: &mut dyn Write, lines: &[Line<'_>], depth: Option<Depth>) -> io::Result<()> {
    let mut text = String::new();
    for line in lines {
        let mut pen = Pen::PLAIN;
        for span in &line.spans {
            if let Some(depth) = depth {
                let style = colour::adapt(Style::default().patch(line.style).patch(span.style), depth);
                pen.change(Pen::of_style(style), &mut text);
            }
            text.push_str(Safe::line(&span.content).as_str());
        }
        pen.change(Pen::PLAIN, &mut text);
        text.push('\n');
    }
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::super::{Glyphs, Themes};
    use super::*;

    fn written(theme: &Theme, depth: Option<Depth>) -> String {
        let mut out = Vec::new();
        write_lines(&mut out, &preview(theme), depth).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_preview_shows_every_role() {
        let text = written(&Theme::plain().with_glyphs(Glyphs::ASCII), None);
        assert!(text.is_ascii());
        insta::assert_snapshot!(text);
        for theme in Themes::shipped().all() {
            let text = written(theme, None);
            assert!(Role::ALL.iter().all(|role| text.contains(&role.name())), "{text}");
            assert!(text.lines().all(|line| line.width() <= 76), "{text}");
        }
    }

    #[test]
    fn no_more_colours_are_written_than_there_are() {
        for theme in Themes::shipped().all() {
            let full = written(theme, Some(Depth::True));
            assert_eq!(full.contains("38;2;"), theme.name() != "mono");
            let indexed = written(theme, Some(Depth::Indexed));
            assert!(!indexed.contains("38;2;") && !indexed.contains("48;2;"));
            let sixteen = written(theme, Some(Depth::Sixteen));
            assert!(!sixteen.contains("38;") && !sixteen.contains("48;"));
            assert!(!written(theme, None).contains('\u{1b}'));
        }
    }

    #[test]
    fn text_in_lines_cannot_act() {
        let mut out = Vec::new();
        let lines = [Line::from("a\u{1b}]0;x\u{7}b")];
        write_lines(&mut out, &lines, Some(Depth::True)).unwrap();
        assert_eq!(out, b"ab\n");
    }
}
