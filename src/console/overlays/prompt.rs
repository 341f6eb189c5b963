//! Words of the operator: to the next agent call, or to look for in a pane.
//!
//! Role: taking the text. Not its role: delivering or searching.
//! Invariant: a word is only called delivered or acknowledged when the journal says so.

use crossterm::event::KeyEvent;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::cmd::{Cmd, Loaded};
use super::super::theme::{Role, Theme};
use super::super::widget::{clip, duration, width};
use super::allowed::barred;
use super::input::{Input, Lines, Typed};
use super::sheet::{Keys, Sheet, furthest, keys, rows};
use super::{Next, Overlay, Response, Stage};
use crate::engine::command::Command;
use crate::machine::operator::{MAX_STEER, Steer, SteerStatus};
use crate::model::safe::Safe;

const COLUMNS: usize = 84;
/// Rows of the text to write.
const ROWS: u16 = 4;

enum Purpose {
    Steer,
    Search,
}

pub struct Prompt {
    purpose: Purpose,
    input: Input,
    notice: Option<String>,
}

impl Prompt {
    pub fn steer() -> Self {
        Self { purpose: Purpose::Steer, input: Input::new(Lines::Several, MAX_STEER), notice: None }
    }

    /// `last`: what was searched for before.
    pub fn search(last: &str) -> Self {
        let input = Input::new(Lines::One, 500).with_text(last);
        Self { purpose: Purpose::Search, input, notice: None }
    }

    fn keys(&self, stage: &Stage<'_>) -> Keys {
        match self.purpose {
            Purpose::Search => keys(&[("enter", "search (empty: clear)"), ("esc", "close")]),
            Purpose::Steer if barred(stage).is_some() => keys(&[("esc", "close")]),
            Purpose::Steer => keys(&[("enter", "send"), ("alt-enter", "new line"), ("esc", "close")]),
        }
    }

    fn send(&mut self, stage: &Stage<'_>) -> Response {
        if matches!(self.purpose, Purpose::Search) {
            return Response::then(Next::Search(self.input.text().trim().to_owned()));
        }
        self.notice = barred(stage).map(str::to_owned).or_else(|| self.input.problem());
        if self.notice.is_some() || self.input.is_blank() {
            return Response::stay();
        }
        let text = self.input.text().trim().to_owned();
        self.input.clear();
        Response::cmd(Cmd::Order(Command::Steer(text)))
    }

    fn view_steer(&self, frame: &mut Frame<'_>, area: Rect, stage: &Stage<'_>) {
        let theme = stage.theme;
        let steers: &[Steer] = stage.scene.map_or(&[], |scene| &scene.run.operator.steers);
        let keys = self.keys(stage);
        let wanted = usize::from(ROWS) + 2 + steers.len().max(1);
        let sheet = Sheet::place(area, COLUMNS, wanted, &keys);
        sheet.draw(frame, theme, "Steer: a message for the next agent call", &keys);
        let body = sheet.body;
        let columns = usize::from(body.width);
        let input = Rect { height: ROWS.min(body.height.saturating_sub(1).max(1)).min(body.height), ..body };
        self.input.view(frame, input, theme);
        let rest = Rect { y: input.bottom(), height: body.bottom().saturating_sub(input.bottom()), ..body };
        let status = match (barred(stage), &self.notice) {
            (Some(why), _) => Span::styled(format!("{} {why}", theme.glyphs().no), theme.style(Role::Warning)),
            (None, Some(why)) => Span::styled(why.clone(), theme.style(Role::Bad)),
            (None, None) => Span::styled(theme.glyphs().line_h.repeat(columns), theme.style(Role::Border)),
        };
        let status = Span::styled(clip(theme, &status.content, columns), status.style);
        frame.render_widget(status, Rect { height: rest.height.min(1), ..rest });
        let list = Rect { y: rest.y + rest.height.min(1), height: rest.height.saturating_sub(1), ..rest };
        let mut lines: Vec<Line<'_>> = steers.iter().map(|steer| receipt(steer, columns, stage)).collect();
        if lines.is_empty() {
            lines.push(Line::from(Span::styled("Nothing has been sent yet.", theme.style(Role::Muted))));
        }
        let newest = furthest(lines.len(), list.height);
        rows(frame, list, theme, lines, newest);
    }

    fn view_search(&self, frame: &mut Frame<'_>, area: Rect, stage: &Stage<'_>) {
        let keys = self.keys(stage);
        let sheet = Sheet::place(area, 50, 1, &keys);
        sheet.draw(frame, stage.theme, "Search", &keys);
        self.input.view(frame, Rect { height: sheet.body.height.min(1), ..sheet.body }, stage.theme);
    }
}

/// How far a word has come, and how long ago it was said.
fn receipt(steer: &Steer, columns: usize, stage: &Stage<'_>) -> Line<'static> {
    let theme: &Theme = stage.theme;
    let glyphs = theme.glyphs();
    let (mark, word, role) = match &steer.status {
        SteerStatus::Queued => (glyphs.visited, "queued".to_owned(), Role::Warning),
        SteerStatus::Delivered { call } => {
            (glyphs.arrow_right, format!("delivered to {}", Safe::line(call)), Role::Info)
        }
        SteerStatus::Acknowledged { call } => (glyphs.yes, format!("acknowledged by {}", Safe::line(call)), Role::Good),
    };
    let age = stage.scene.and_then(|scene| scene.since(&steer.ts)).map(duration).unwrap_or_default();
    let age = if columns < 50 { String::new() } else { age };
    let state = format!("{mark} {word}");
    let room = columns.saturating_sub(width(&state) + width(&age) + 5);
    Line::from(vec![
        Span::styled(state, theme.style(role)),
        Span::styled(format!("  {}", clip(theme, Safe::line(&steer.text).as_str(), room)), theme.style(Role::Text)),
        Span::styled(format!("  {age}"), theme.style(Role::Muted)),
    ])
}

impl Overlay for Prompt {
    fn key(&mut self, key: KeyEvent, stage: &Stage<'_>) -> Response {
        match self.input.key(key) {
            Typed::Cancel => Response::close(),
            Typed::Send => self.send(stage),
            Typed::Text => {
                self.notice = None;
                Response::stay()
            }
        }
    }

    fn paste(&mut self, text: &str) {
        self.input.paste(text);
    }

    fn take(&mut self, loaded: &Loaded, _stage: &Stage<'_>) -> Response {
        if let (Purpose::Steer, Loaded::Failed(why)) = (&self.purpose, loaded) {
            self.notice = Some(why.to_string());
        }
        Response::stay()
    }

    fn view(&self, frame: &mut Frame<'_>, area: Rect, stage: &Stage<'_>) {
        match self.purpose {
            Purpose::Steer => self.view_steer(frame, area, stage),
            Purpose::Search => self.view_search(frame, area, stage),
        }
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyModifiers};

    use super::super::stages::Staged;
    use super::*;
    use crate::machine::event::{SteerDelivered, SteerQueued};

    fn steered() -> Staged {
        let mut staged = Staged::running();
        let word = |number, text: &str| SteerQueued { number, text: text.to_owned(), by: "maria@tty1".to_owned() };
        staged.happen(word(1, "Do not touch the public API, only the parser."));
        staged.happen(SteerDelivered { numbers: vec![1], call: "it0.scout".to_owned() });
        staged.happen(word(2, "The failing test is flaky on Tuesdays\u{1b}[31m; run it twice before you believe it."));
        staged
    }

    #[test]
    fn looks() {
        let staged = steered();
        let mut prompt = Prompt::steer();
        staged.type_text(&mut prompt, "Prefer the small fix.");
        insta::assert_snapshot!("steer_80x20", staged.screen(&mut prompt, 80, 20));
        insta::assert_snapshot!("steer_120x36", staged.screen(&mut prompt, 120, 36));
        insta::assert_snapshot!("steer_ascii", steered().ascii().screen(&mut prompt, 40, 12));
        insta::assert_snapshot!("search_80x20", staged.screen(&mut Prompt::search("panic"), 80, 20));
        staged.all_sizes(&mut prompt);
        staged.all_sizes(&mut Prompt::search("x"));
    }

    #[test]
    fn a_word_is_sent_once_and_the_box_stays_for_its_receipt() {
        let staged = steered();
        let mut prompt = Prompt::steer();
        assert!(staged.press(&mut prompt, KeyCode::Enter).cmds.is_empty(), "nothing to send");
        staged.type_text(&mut prompt, "one");
        staged.with(|stage| prompt.key(KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT), stage));
        staged.type_text(&mut prompt, "two");
        let response = staged.press(&mut prompt, KeyCode::Enter);
        assert_eq!(response.cmds, [Cmd::Order(Command::Steer("one\ntwo".to_owned()))]);
        assert!(matches!(response.next, Next::Stay));
        assert!(staged.press(&mut prompt, KeyCode::Enter).cmds.is_empty(), "it is gone from the box");
    }

    #[test]
    fn what_cannot_be_sent_stays_in_the_box() {
        let mut staged = steered();
        let mut prompt = Prompt::steer();
        prompt.paste(&"x".repeat(MAX_STEER + 1));
        assert!(staged.press(&mut prompt, KeyCode::Enter).cmds.is_empty());
        assert!(staged.screen(&mut prompt, 80, 20).contains("too long: 4,001 of 4,000 bytes"));
        staged.read_only = true;
        let mut prompt = Prompt::steer();
        staged.type_text(&mut prompt, "x");
        assert!(staged.press(&mut prompt, KeyCode::Enter).cmds.is_empty());
        assert!(staged.screen(&mut prompt, 80, 20).contains("read-only"));
    }

    #[test]
    fn a_search_closes_with_its_text() {
        let staged = steered();
        let mut prompt = Prompt::search("old");
        staged.type_text(&mut prompt, "er ");
        match staged.press(&mut prompt, KeyCode::Enter).next {
            Next::Search(text) => assert_eq!(text, "older"),
            _ => panic!("no search"),
        }
    }
}
