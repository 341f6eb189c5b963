//! A proposed text under review: each change can be taken or left, and the whole can be edited.
//!
//! Role: the choice and how it is drawn. Not its role: answering.
//! Invariant: what is approved is exactly the text that the preview shows.

use std::ops::Range;

use ratatui::text::{Line, Span};

use super::super::super::hunks::Hunks;
use super::super::super::theme::{Role, Theme};
use super::super::sheet::picked;
use super::super::text::{fold, whole};

/// Lines around a change.
const CONTEXT: usize = 2;
/// Rows that are made of a text; a reader who needs more needs an editor.
const MOST_ROWS: usize = 10_000;

#[derive(Debug, Clone)]
pub(super) struct Review {
    before: String,
    hunks: Hunks,
    taken: Vec<bool>,
    cursor: usize,
    edited: bool,
    preview: bool,
}

impl Review {
    pub fn new(before: &str, after: &str) -> Self {
        let hunks = Hunks::between(before, after);
        let taken = vec![true; hunks.len()];
        Self { before: before.to_owned(), hunks, taken, cursor: 0, edited: false, preview: false }
    }

    /// The operator's own text takes the place of the proposal.
    pub fn edit(&mut self, text: &str) {
        let preview = self.preview;
        *self = Self { edited: true, preview, ..Self::new(&self.before, text) };
    }

    pub fn toggle(&mut self) {
        if let Some(taken) = self.taken.get_mut(self.cursor) {
            *taken = !*taken;
        }
    }

    pub fn toggle_preview(&mut self) {
        self.preview = !self.preview;
    }

    pub fn previewing(&self) -> bool {
        self.preview
    }

    pub fn next(&mut self) {
        self.cursor = (self.cursor + 1).min(self.hunks.len().saturating_sub(1));
    }

    pub fn previous(&mut self) {
        self.cursor = self.cursor.saturating_sub(1);
    }

    /// None of it.
    pub fn leave_all(&mut self) {
        self.taken.fill(false);
    }

    /// Changes taken, and all.
    pub fn counts(&self) -> (usize, usize) {
        (self.taken.iter().filter(|taken| **taken).count(), self.taken.len())
    }

    /// The text as it would become.
    pub fn merged(&self) -> String {
        self.hunks.merge(|number| self.taken.get(number).copied().unwrap_or(false))
    }

    pub fn changes_nothing(&self) -> bool {
        self.merged() == self.before
    }

    /// What stands at the top, and the rows below it. The second part says where the cursor's change starts.
    pub fn lines(&self, theme: &Theme, columns: usize) -> (Vec<Line<'static>>, usize) {
        let (taken, all) = self.counts();
        let mut head = match all {
            0 => "The texts are identical: there is nothing to approve.".to_owned(),
            1 => format!("1 change, {}", if taken == 1 { "taken" } else { "left" }),
            _ => format!("{all} changes, {taken} taken"),
        };
        if self.edited {
            head.push_str(" (edited by you)");
        }
        if self.preview {
            head.push_str(": the resulting text");
        }
        let mut lines = vec![Line::from(Span::styled(head, theme.style(Role::Heading)))];
        if self.preview {
            for (number, line) in self.merged().split_inclusive('\n').enumerate() {
                let gutter = format!("{:>4} ", number + 1);
                lines.extend(row(theme, &gutter, line, Role::Text, columns));
                if lines.len() > MOST_ROWS {
                    lines.push(too_long(theme));
                    break;
                }
            }
            return (lines, 0);
        }
        let texts = Texts { before: self.hunks.before(), after: self.hunks.after(), theme, columns };
        let mut at = 0;
        for number in 0..all {
            if number == self.cursor {
                at = lines.len();
            }
            self.hunk(number, &texts, &mut lines);
            if lines.len() > MOST_ROWS {
                lines.push(too_long(theme));
                break;
            }
        }
        (lines, at)
    }

    fn hunk(&self, number: usize, texts: &Texts<'_>, lines: &mut Vec<Line<'static>>) {
        let (all, theme) = (self.hunks.all(), texts.theme);
        let Some(hunk) = all.get(number) else { return };
        let taken = self.taken.get(number).copied().unwrap_or(false);
        let (mark, word) = if taken { ("[x]", "take") } else { ("[ ]", "keep as is") };
        let text = format!("{mark} change {} of {}, line {}: {word}", number + 1, all.len(), hunk.before.start + 1);
        let title = Line::from(Span::styled(text, theme.style(Role::DiffHunk)));
        lines.push(picked(theme, title, number == self.cursor));
        let (old, new) = (&hunk.before, &hunk.after);
        // Lines between two changes are shown once.
        let above = number.checked_sub(1).and_then(|above| all.get(above));
        let shown_to = above.map_or(0, |above| above.before.end + CONTEXT);
        let below = all.get(number + 1).map_or(usize::MAX, |below| below.before.start);
        let mut show = |gutter: &str, shown: &[&str], role| {
            for line in shown.iter().take(MOST_ROWS) {
                lines.extend(row(theme, gutter, line, role, texts.columns));
            }
        };
        let removed = part(&texts.before, old.clone());
        let added = part(&texts.after, new.clone());
        let (minus, plus) = if taken { (Role::DiffRemoved, Role::DiffAdded) } else { (Role::Text, Role::Muted) };
        show("   ", part(&texts.before, old.start.saturating_sub(CONTEXT).max(shown_to)..old.start), Role::Muted);
        show(" - ", removed, minus);
        show(" + ", added, plus);
        let same = removed.len() == added.len() && removed.iter().zip(added).all(|(old, new)| whole(old) == whole(new));
        if same {
            let text = "   only line ends or invisible characters differ";
            lines.push(Line::from(Span::styled(text, theme.style(Role::Warning))));
        }
        let end = (old.end + CONTEXT).min(below).min(texts.before.len());
        for line in part(&texts.before, old.end..end) {
            lines.extend(row(theme, "   ", line, Role::Muted, texts.columns));
        }
    }
}

/// Both texts by line, with what is needed to draw them.
struct Texts<'a> {
    before: Vec<&'a str>,
    after: Vec<&'a str>,
    theme: &'a Theme,
    columns: usize,
}

fn part<'a, 'b>(lines: &'b [&'a str], range: Range<usize>) -> &'b [&'a str] {
    lines.get(range).unwrap_or_default()
}

fn too_long(theme: &Theme) -> Line<'static> {
    let text = "There is more than fits here: open the editor to see all of it.";
    Line::from(Span::styled(text, theme.style(Role::Warning)))
}

/// One line of a file, on as many rows as it needs.
fn row(theme: &Theme, gutter: &str, line: &str, role: Role, columns: usize) -> Vec<Line<'static>> {
    let mut text = whole(line);
    if !line.ends_with('\n') {
        text.push_str(" (no line end)");
    }
    let room = columns.saturating_sub(gutter.len()).max(1);
    let blank = " ".repeat(gutter.len());
    fold(&text, room)
        .into_iter()
        .enumerate()
        .map(|(index, piece)| {
            let lead = if index == 0 { gutter } else { blank.as_str() };
            Line::from(Span::styled(format!("{lead}{piece}"), theme.style(role)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preview_is_what_is_approved() {
        let mut review = Review::new("a\nb\nc\nd\n", "a\nB\nc\nD\n");
        assert_eq!(review.counts(), (2, 2));
        review.next();
        review.next();
        review.toggle();
        assert_eq!(review.merged(), "a\nB\nc\nd\n");
        review.toggle_preview();
        let theme = Theme::plain();
        let shown: Vec<String> = review.lines(&theme, 40).0.iter().skip(1).map(ToString::to_string).collect();
        assert_eq!(shown, ["   1 a", "   2 B", "   3 c", "   4 d"]);
        review.previous();
        review.toggle();
        assert!(review.changes_nothing());
        review.edit("mine\n");
        assert_eq!(review.merged(), "mine\n");
        assert_eq!(review.counts(), (1, 1));
    }

    #[test]
    fn a_text_without_end_is_cut_with_a_word() {
        let huge = "x\n".repeat(50_000);
        let mut review = Review::new("", &huge);
        for _ in 0..2 {
            let (lines, _) = review.lines(&Theme::plain(), 40);
            assert!(lines.len() < MOST_ROWS + 10);
            assert!(lines.last().unwrap().to_string().contains("more than fits here"));
            review.toggle_preview();
        }
    }

    #[test]
    fn changes_that_cannot_be_seen_are_said() {
        let review = Review::new("a\r\nb\n", "a\nb\n");
        let text: Vec<String> = review.lines(&Theme::plain(), 80).0.iter().map(ToString::to_string).collect();
        assert!(text.iter().any(|line| line.contains("only line ends")), "{text:?}");
        let review = Review::new("a\nb", "a\nb\n");
        let text: Vec<String> = review.lines(&Theme::plain(), 80).0.iter().map(ToString::to_string).collect();
        assert!(text.iter().any(|line| line == " - b (no line end)"), "{text:?}");
    }
}
