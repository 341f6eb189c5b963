//! "Are you sure?" before what cannot be taken back.
//!
//! Invariant: only `y` says yes. Enter does not: it is too easily pressed.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::cmd::Cmd;
use super::super::theme::Role;
use super::allowed::barred;
use super::sheet::{Keys, Sheet, cancels, keys, rows};
use super::text::wrap;
use super::{Overlay, Response, Stage};
use crate::engine::command::Command;
use crate::model::decision::{Answer, DecisionId};

/// Columns of the text.
const COLUMNS: usize = 56;

pub struct Confirm {
    title: &'static str,
    question: String,
    consequence: &'static str,
    yes: &'static str,
    no: &'static str,
    command: Command,
}

impl Confirm {
    pub fn stop() -> Self {
        Self {
            title: "STOP",
            question: "Stop now?".to_owned(),
            consequence: "The call in flight is cancelled; `nightloop resume` continues later.",
            yes: "stop now",
            no: "keep running",
            command: Command::Stop,
        }
    }

    /// End the run instead of answering.
    pub fn end_run(id: DecisionId, note: Option<String>) -> Self {
        Self {
            title: "End the run",
            question: format!("End the run instead of answering {id}?"),
            consequence: "This is final: the run is closed as ended by you, with all its evidence. It cannot be resumed.",
            yes: "end the run",
            no: "keep it",
            command: Command::Answer { id, answer: Answer::Quit, note, document: None },
        }
    }

    /// Take back what an iteration changed.
    pub fn undo(iteration: u32) -> Self {
        Self {
            title: "Undo",
            question: format!("Undo what iteration {iteration} changed?"),
            consequence: "Before the next step its files are restored, and its evidence is marked as no longer valid. The run's branch keeps both states.",
            yes: "undo it",
            no: "keep it",
            command: Command::Undo(iteration),
        }
    }

    fn keys(&self, stage: &Stage<'_>) -> Keys {
        match barred(stage) {
            Some(_) => keys(&[("esc", "close")]),
            None => keys(&[("y", self.yes), ("n/esc", self.no)]),
        }
    }

    fn lines(&self, columns: usize, stage: &Stage<'_>) -> Vec<Line<'static>> {
        let styled = |rows: Vec<String>, role| {
            let style = stage.theme.style(role);
            rows.into_iter().map(move |row| Line::from(Span::styled(row, style)))
        };
        let mut lines = Vec::new();
        if let Some(reason) = barred(stage) {
            let text = format!("{} Not possible: {reason}.", stage.theme.glyphs().no);
            lines.extend(styled(wrap(&text, columns), Role::Warning));
            return lines;
        }
        lines.extend(styled(wrap(&self.question, columns), Role::Title));
        lines.extend(styled(wrap(self.consequence, columns), Role::Text));
        lines.push(Line::default());
        lines
    }
}

impl Overlay for Confirm {
    fn key(&mut self, key: KeyEvent, stage: &Stage<'_>) -> Response {
        match key.code {
            KeyCode::Char('y') if barred(stage).is_none() => {
                Response::cmd(Cmd::Order(self.command.clone())).and_close()
            }
            KeyCode::Char('n') => Response::close(),
            _ if cancels(key) => Response::close(),
            _ => Response::stay(),
        }
    }

    fn view(&self, frame: &mut Frame<'_>, area: Rect, stage: &Stage<'_>) {
        let keys = self.keys(stage);
        let sheet = Sheet::place(area, COLUMNS, self.lines(COLUMNS, stage).len(), &keys);
        sheet.draw(frame, stage.theme, self.title, &keys);
        rows(frame, sheet.body, stage.theme, self.lines(usize::from(sheet.body.width), stage), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Next;
    use super::super::stages::Staged;
    use super::*;

    #[test]
    fn looks() {
        let staged = Staged::running();
        insta::assert_snapshot!("confirm_80x20", staged.screen(&mut Confirm::stop(), 80, 20));
        insta::assert_snapshot!("confirm_120x36", staged.screen(&mut Confirm::end_run(DecisionId(3), None), 120, 36));
        insta::assert_snapshot!("confirm_ascii", Staged::running().ascii().screen(&mut Confirm::stop(), 40, 12));
        staged.all_sizes(&mut Confirm::stop());
    }

    #[test]
    fn only_y_stops() {
        let staged = Staged::running();
        for code in [KeyCode::Enter, KeyCode::Char(' '), KeyCode::Char('S'), KeyCode::Char('q')] {
            let response = staged.press(&mut Confirm::stop(), code);
            assert!(response.cmds.is_empty() && matches!(response.next, Next::Stay), "{code}");
        }
        for code in [KeyCode::Char('n'), KeyCode::Esc] {
            let response = staged.press(&mut Confirm::stop(), code);
            assert!(response.cmds.is_empty() && matches!(response.next, Next::Close), "{code}");
        }
        let response = staged.press(&mut Confirm::stop(), KeyCode::Char('y'));
        assert_eq!(response.cmds, [Cmd::Order(Command::Stop)]);
        assert!(matches!(response.next, Next::Close));
    }

    #[test]
    fn an_iteration_is_taken_back_only_with_y() {
        let staged = Staged::running();
        assert!(staged.press(&mut Confirm::undo(2), KeyCode::Enter).cmds.is_empty());
        assert_eq!(staged.press(&mut Confirm::undo(2), KeyCode::Char('y')).cmds, [Cmd::Order(Command::Undo(2))]);
        assert!(staged.screen(&mut Confirm::undo(2), 80, 20).contains("Undo what iteration 2 changed?"));
    }

    #[test]
    fn looking_is_not_stopping() {
        let mut staged = Staged::running();
        staged.read_only = true;
        assert!(staged.press(&mut Confirm::stop(), KeyCode::Char('y')).cmds.is_empty());
        assert!(staged.screen(&mut Confirm::stop(), 80, 20).contains("read-only"));
        let ended = Staged::ended();
        assert!(ended.press(&mut Confirm::stop(), KeyCode::Char('y')).cmds.is_empty());
    }
}
