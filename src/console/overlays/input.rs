//! A text that an operator types: one line or several.
//!
//! Role: editing and drawing it. Not its role: what the text is for.
//! Invariant: it holds only characters that may be shown, so nothing pasted can disturb the screen.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui_textarea::{TextArea, WrapMode};

use super::super::theme::{Role, Theme};
use super::super::widget::count;
use super::sheet::cancels;
use crate::model::safe::Safe;

/// What a key meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Typed {
    /// Something about the text, or nothing.
    Text,
    Send,
    Cancel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    One,
    Several,
}

pub(super) struct Input {
    area: TextArea<'static>,
    lines: Lines,
    /// In bytes.
    limit: usize,
}

impl Input {
    pub fn new(lines: Lines, limit: usize) -> Self {
        let mut area = TextArea::default();
        area.set_cursor_line_style(Style::default());
        if lines == Lines::Several {
            area.set_wrap_mode(WrapMode::WordOrGlyph);
        }
        Self { area, lines, limit }
    }

    pub fn with_text(mut self, text: &str) -> Self {
        self.paste(text);
        self
    }

    pub fn key(&mut self, key: KeyEvent) -> Typed {
        if cancels(key) {
            return Typed::Cancel;
        }
        let breaks = key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SHIFT);
        match key.code {
            KeyCode::Enter if breaks && self.lines == Lines::Several => self.area.insert_newline(),
            KeyCode::Enter => return Typed::Send,
            KeyCode::Char('j') if key.modifiers == KeyModifiers::CONTROL && self.lines == Lines::Several => {
                self.area.insert_newline();
            }
            // The widget would break the line here.
            KeyCode::Char('m' | 'j') if key.modifiers.contains(KeyModifiers::CONTROL) => {}
            KeyCode::Char(c) if !harmless(c) => {}
            KeyCode::Tab => {}
            _ => {
                self.area.input(key);
            }
        }
        Typed::Text
    }

    /// Anything from a clipboard, made harmless. A single line swallows line breaks.
    pub fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\t', "    ");
        let lines = self.lines;
        let clean: String = text
            .chars()
            .filter_map(|c| match c {
                '\n' | '\r' if lines == Lines::Several => Some('\n'),
                '\n' | '\r' => Some(' '),
                c => harmless(c).then_some(c),
            })
            // What is far beyond the limit is no slip of the hand.
            .take(2 * self.limit)
            .collect();
        self.area.insert_str(clean);
    }

    pub fn clear(&mut self) {
        self.area = Self::new(self.lines, self.limit).area;
    }

    pub fn text(&self) -> String {
        self.area.lines().join("\n")
    }

    pub fn is_blank(&self) -> bool {
        self.area.lines().iter().all(|line| line.trim().is_empty())
    }

    /// Why it cannot be sent like this.
    pub fn problem(&self) -> Option<String> {
        let bytes = self.text().len();
        (bytes > self.limit).then(|| {
            let (bytes, limit) = (bytes as u64, self.limit as u64);
            format!("too long: {} of {} bytes", count(bytes), count(limit))
        })
    }

    pub fn view(&self, frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
        if area.is_empty() {
            return;
        }
        frame.render_widget(&self.area, area);
        frame.buffer_mut().set_style(area, theme.style(Role::Text));
    }
}

/// May this character stand in a text that is shown?
fn harmless(c: char) -> bool {
    let text = c.to_string();
    c == ' ' || Safe::line(&text).as_str() == text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(input: &mut Input, code: KeyCode, modifiers: KeyModifiers) -> Typed {
        input.key(KeyEvent::new(code, modifiers))
    }

    #[test]
    fn enter_sends_and_a_modified_enter_breaks_the_line() {
        let mut several = Input::new(Lines::Several, 100).with_text("one");
        assert_eq!(press(&mut several, KeyCode::Enter, KeyModifiers::ALT), Typed::Text);
        press(&mut several, KeyCode::Char('x'), KeyModifiers::NONE);
        assert_eq!(several.text(), "one\nx");
        assert_eq!(press(&mut several, KeyCode::Enter, KeyModifiers::NONE), Typed::Send);
        assert_eq!(press(&mut several, KeyCode::Esc, KeyModifiers::NONE), Typed::Cancel);

        let mut one = Input::new(Lines::One, 100).with_text("a\nb");
        press(&mut one, KeyCode::Char('m'), KeyModifiers::CONTROL);
        press(&mut one, KeyCode::Char('j'), KeyModifiers::CONTROL);
        assert_eq!(one.text(), "a b");
        assert_eq!(press(&mut one, KeyCode::Enter, KeyModifiers::ALT), Typed::Send);
    }

    #[test]
    fn what_is_pasted_cannot_disturb_the_screen() {
        let input = Input::new(Lines::Several, 100).with_text("a\u{1b}]52;c;x\u{7}b\r\nc\u{202e}d\te");
        assert_eq!(input.text(), "a]52;c;xb\ncd    e");
    }

    #[test]
    fn too_much_is_said_not_cut() {
        let input = Input::new(Lines::One, 4).with_text("12345");
        assert_eq!(input.problem().as_deref(), Some("too long: 5 of 4 bytes"));
        assert!(Input::new(Lines::One, 4).with_text("1234").problem().is_none());
        assert!(Input::new(Lines::Several, 4).with_text(" \n ").is_blank());
    }
}
