//! The first screen in a directory without a loop: what this is, and the ways on.
//!
//! Not here: doing any of it. The choice is handed back to the shell.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::console::action::Action;
use crate::console::charts::pen::Pen;
use crate::console::prose::wrap;
use crate::console::theme::{Role, Theme};

/// What the operator wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    Demo,
    Init,
    Runs,
    Help,
    Quit,
}

impl Choice {
    pub const ALL: [Self; 5] = [Self::Demo, Self::Init, Self::Runs, Self::Help, Self::Quit];

    /// The key that chooses it at once.
    pub const fn key(self) -> char {
        match self {
            Self::Demo => 'd',
            Self::Init => 'n',
            Self::Runs => '0',
            Self::Help => '?',
            Self::Quit => 'q',
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Demo => "demo",
            Self::Init => "init",
            Self::Runs => "runs",
            Self::Help => "help",
            Self::Quit => "quit",
        }
    }

    pub const fn says(self) -> &'static str {
        match self {
            Self::Demo => "A small loop from start to proof: no key, no network, no cost.",
            Self::Init => "Write a commented loop.yaml here.",
            Self::Runs => "Show all runs on this machine.",
            Self::Help => "Show the keys.",
            Self::Quit => "Back to the shell.",
        }
    }
}

const WHAT: [&str; 2] = [
    "nightloop runs agents in a loop until there is proof that they are done, or a recorded reason to stop.",
    "Declare the goal and its checks in loop.yaml, start it in the evening, and read in the morning what is proven.",
];

/// The screen; it keeps only the cursor.
#[derive(Debug, Clone, Default)]
pub struct Welcome {
    cursor: usize,
}

impl Welcome {
    /// A key of the registry; `Some` when a choice is made.
    pub fn act(&mut self, action: Action) -> Option<Choice> {
        let last = Choice::ALL.len() - 1;
        match action {
            Action::Up => self.cursor = self.cursor.saturating_sub(1),
            Action::Down => self.cursor = (self.cursor + 1).min(last),
            Action::Top => self.cursor = 0,
            Action::Bottom => self.cursor = last,
            Action::Select | Action::Start => return Choice::ALL.get(self.cursor).copied(),
            Action::ShowRuns => return Some(Choice::Runs),
            Action::Help => return Some(Choice::Help),
            Action::Quit => return Some(Choice::Quit),
            _ => {}
        }
        None
    }

    /// A character that is no key of the registry here.
    pub fn key(&self, key: char) -> Option<Choice> {
        Choice::ALL.into_iter().find(|choice| choice.key() == key)
    }

    pub fn view(&self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        let mut pen = Pen::new(frame.buffer_mut(), area, theme);
        let columns = pen.width().saturating_sub(4).min(76);
        let choices = Choice::ALL.len();
        let room = usize::from(pen.height());
        // The choices must be seen; of the rest as much as fits.
        let heads = [head(theme, usize::from(columns), 2, true), head(theme, usize::from(columns), 2, false)];
        let more = [head(theme, usize::from(columns), 1, false), head(theme, usize::from(columns), 0, false)];
        let fitting = heads.into_iter().chain(more).find(|head| head.len() + choices <= room);
        let mut lines = fitting.unwrap_or_default();
        for (index, choice) in Choice::ALL.into_iter().enumerate() {
            let here = index == self.cursor;
            let sign = if here { theme.glyphs().folded } else { " " };
            let line = Line::from(vec![
                Span::styled(format!("{sign} "), theme.style(Role::Text)),
                Span::styled(choice.key().to_string(), theme.style(Role::Key)),
                Span::styled(
                    format!(" {:<5}", choice.name()),
                    theme.style(if here { Role::Selection } else { Role::Text }),
                ),
                Span::styled(format!("  {}", choice.says()), theme.style(Role::Muted)),
            ]);
            lines.push(line);
        }
        let free = room.saturating_sub(lines.len());
        let top = u16::try_from(free / 3).unwrap_or(0);
        let left = pen.width().saturating_sub(columns) / 2;
        for (y, line) in (top..pen.height()).zip(lines) {
            pen.line(left, y, line);
        }
    }
}

/// The name, and so many of the sentences; with room around them, or without.
fn head(theme: &Theme, columns: usize, sentences: usize, roomy: bool) -> Vec<Line<'static>> {
    let mut lines = vec![Line::from(Span::styled("nightloop", theme.style(Role::Heading)))];
    let blank = || roomy.then(Line::default);
    lines.extend(blank());
    for sentence in WHAT.iter().take(sentences) {
        let rows = wrap(sentence, columns).into_iter();
        lines.extend(rows.map(|row| Line::from(Span::styled(row, theme.style(Role::Text)))));
    }
    lines.extend(blank());
    if roomy {
        lines.push(Line::from(Span::styled("There is no loop.yaml here.", theme.style(Role::Muted))));
    }
    lines.extend(blank());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::sample::screen;
    use crate::console::theme::Glyphs;

    fn drawn(width: u16, height: u16, theme: &Theme) -> String {
        screen(width, height, |frame| Welcome::default().view(frame, frame.area(), theme))
    }

    #[test]
    fn screens() {
        insta::assert_snapshot!(drawn(80, 22, &Theme::dark()));
        insta::assert_snapshot!(drawn(40, 10, &Theme::plain().with_glyphs(Glyphs::ASCII)));
    }

    #[test]
    fn every_choice_can_be_made_by_key_and_by_cursor() {
        let mut welcome = Welcome::default();
        for (index, choice) in Choice::ALL.into_iter().enumerate() {
            assert_eq!(welcome.key(choice.key()), Some(choice));
            assert_eq!(welcome.act(Action::Select), Some(choice), "{index}");
            assert_eq!(welcome.act(Action::Down), None);
        }
        assert_eq!(welcome.act(Action::Quit), Some(Choice::Quit));
        assert_eq!(welcome.key('x'), None);
    }

    #[test]
    fn the_choices_are_seen_at_any_sane_size() {
        for (width, height) in [(40, 12), (40, 5), (80, 24), (300, 120)] {
            let text = drawn(width, height, &Theme::plain());
            for choice in Choice::ALL {
                assert!(text.contains(choice.name()), "{width}x{height}: {text}");
            }
        }
        for width in 1..60 {
            for height in 1..12 {
                drawn(width, height, &Theme::dark());
            }
        }
    }
}
