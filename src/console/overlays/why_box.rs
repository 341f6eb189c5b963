//! "Why is it not moving?": one sentence, what it leans on, what to do next.
//!
//! Role: showing what the caller found out. Not its role: finding out.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::action::{Action, Scope};
use super::super::theme::Role;
use super::sheet::{Keys, Sheet, cancels, furthest, rows};
use super::text::wrap;
use super::{Next, Overlay, Response, Stage};
use crate::model::safe::Safe;

const COLUMNS: usize = 72;

/// A sentence with its evidence and the next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhyBox {
    title: Safe,
    sentence: Safe,
    evidence: Vec<Safe>,
    next: Safe,
    /// What enter does.
    act: Option<Action>,
    scroll: usize,
    area: Rect,
}

impl WhyBox {
    pub fn new(title: Safe, sentence: Safe, evidence: Vec<Safe>, next: Safe, act: Option<Action>) -> Self {
        Self { title, sentence, evidence, next, act, scroll: 0, area: Rect::default() }
    }

    fn keys(&self) -> Keys {
        let mut keys = Vec::new();
        if let Some(action) = self.act {
            keys.push(("enter".to_owned(), action.hint().to_owned()));
        }
        keys.push(("esc".to_owned(), "close".to_owned()));
        keys
    }

    fn sheet(&self, area: Rect, stage: &Stage<'_>) -> Sheet {
        Sheet::place(area, COLUMNS, self.lines(COLUMNS, stage).len(), &self.keys())
    }

    fn lines(&self, columns: usize, stage: &Stage<'_>) -> Vec<Line<'static>> {
        let theme = stage.theme;
        let styled = |text: String, role| Line::from(Span::styled(text, theme.style(role)));
        let mut lines: Vec<Line<'static>> =
            wrap(self.sentence.as_str(), columns).into_iter().map(|row| styled(row, Role::Title)).collect();
        if !self.evidence.is_empty() {
            lines.push(Line::default());
        }
        for evidence in &self.evidence {
            for (index, row) in wrap(evidence.as_str(), columns.saturating_sub(2)).into_iter().enumerate() {
                let mark = if index == 0 { theme.glyphs().bullet } else { " " };
                lines.push(styled(format!("{mark} {row}"), Role::Text));
            }
        }
        if !self.next.is_empty() {
            lines.push(Line::default());
            let text = format!("{} {}", theme.glyphs().arrow_right, self.next);
            lines.extend(wrap(&text, columns).into_iter().map(|row| styled(row, Role::Info)));
        }
        lines.push(Line::default());
        lines
    }
}

impl Overlay for WhyBox {
    fn key(&mut self, key: KeyEvent, stage: &Stage<'_>) -> Response {
        if cancels(key) {
            return Response::close();
        }
        if let (KeyCode::Enter, Some(action)) = (key.code, self.act) {
            return Response::then(Next::Act(action));
        }
        match stage.keymap.action(&[Scope::Move, Scope::Global], key) {
            Some(Action::Up) => self.scroll = self.scroll.saturating_sub(1),
            Some(Action::Down | Action::PageDown) => {
                let body = self.sheet(self.area, stage).body;
                let all = self.lines(usize::from(body.width), stage).len();
                self.scroll = (self.scroll + 1).min(furthest(all, body.height));
            }
            Some(Action::Why | Action::Quit) => return Response::close(),
            _ => {}
        }
        Response::stay()
    }

    fn resize(&mut self, area: Rect) {
        self.area = area;
    }

    fn view(&self, frame: &mut Frame<'_>, area: Rect, stage: &Stage<'_>) {
        let sheet = self.sheet(area, stage);
        sheet.draw(frame, stage.theme, self.title.as_str(), &self.keys());
        rows(frame, sheet.body, stage.theme, self.lines(usize::from(sheet.body.width), stage), self.scroll);
    }
}

#[cfg(test)]
mod tests {
    use super::super::stages::Staged;
    use super::*;

    fn why() -> WhyBox {
        WhyBox::new(
            Safe::line("Why is it not moving?"),
            Safe::line("It is waiting for you: d3 asks whether `cargo publish` may run, since 42 min."),
            vec![
                Safe::line("decision d3 (permission) was asked at 02:14:03 by it4.solver"),
                Safe::line(
                    "waiting costs nothing: no tokens, no budget time; the last real change was src/parser.rs at 02:13:40",
                ),
            ],
            Safe::line("Open the inbox and answer d3."),
            Some(Action::OpenInbox),
        )
    }

    #[test]
    fn looks() {
        let staged = Staged::running();
        insta::assert_snapshot!("why_80x20", staged.screen(&mut why(), 80, 20));
        insta::assert_snapshot!("why_120x36", staged.screen(&mut why(), 120, 36));
        insta::assert_snapshot!("why_ascii", Staged::running().ascii().screen(&mut why(), 40, 12));
        staged.all_sizes(&mut why());
    }

    #[test]
    fn enter_takes_the_next_step() {
        let staged = Staged::running();
        assert!(matches!(staged.press(&mut why(), KeyCode::Enter).next, Next::Act(Action::OpenInbox)));
        assert!(matches!(staged.press(&mut why(), KeyCode::Esc).next, Next::Close));
    }
}
