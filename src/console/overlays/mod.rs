//! What lies over the panes: inbox, questions, help, palette. One stack; the top one has the keys.
//!
//! Role: the contract of an overlay. Not its role: the stack itself, which the root keeps.
//! Invariants: an overlay writes every key it wants into its own box; it never changes the run by itself,
//! it only returns commands; where nothing may be done it says why.

pub mod allowed;
pub mod budget;
pub mod confirm;
pub mod help;
pub mod inbox;
mod input;
pub mod palette;
pub mod prompt;
pub mod quit;
mod sheet;
#[cfg(test)]
mod stages;
mod text;
pub mod why_box;

use crossterm::event::KeyEvent;
use ratatui::Frame;
use ratatui::layout::Rect;

use super::action::Action;
use super::cmd::{Cmd, Loaded};
use super::keymap::Keymap;
use super::scene::Scene;
use super::theme::Theme;

pub use budget::Budget;
pub use confirm::Confirm;
pub use help::Help;
pub use inbox::Inbox;
pub use palette::Palette;
pub use prompt::Prompt;
pub use quit::Quit;
pub use why_box::WhyBox;

/// What an overlay may look at.
#[derive(Debug, Clone, Copy)]
pub struct Stage<'a> {
    /// `None`: no run has been started.
    pub scene: Option<&'a Scene<'a>>,
    pub theme: &'a Theme,
    pub keymap: &'a Keymap,
    pub read_only: bool,
}

/// What becomes of the stack.
pub enum Next {
    Stay,
    Close,
    Push(Box<dyn Overlay>),
    Replace(Box<dyn Overlay>),
    /// Close, and do this.
    Act(Action),
    /// Close, and search the pane for this; empty: search no more.
    Search(String),
}

/// What an overlay says to a key.
pub struct Response {
    pub cmds: Vec<Cmd>,
    pub next: Next,
}

impl Response {
    pub fn stay() -> Self {
        Self::then(Next::Stay)
    }

    pub fn close() -> Self {
        Self::then(Next::Close)
    }

    pub fn then(next: Next) -> Self {
        Self { cmds: Vec::new(), next }
    }

    /// Stay open and do this.
    pub fn cmd(cmd: Cmd) -> Self {
        Self { cmds: vec![cmd], next: Next::Stay }
    }

    #[must_use]
    pub fn and_close(self) -> Self {
        Self { next: Next::Close, ..self }
    }
}

/// One box over the panes.
pub trait Overlay {
    /// A key that was pressed, not released. All of them come here while it is on top.
    fn key(&mut self, key: KeyEvent, stage: &Stage<'_>) -> Response;

    /// Text from the clipboard.
    fn paste(&mut self, _text: &str) {}

    /// Something that was asked for has been read, or something failed.
    fn take(&mut self, _loaded: &Loaded, _stage: &Stage<'_>) -> Response {
        Response::stay()
    }

    /// Something about the run may have changed: ask for what is missing. Called before each frame that
    /// follows a change.
    fn refresh(&mut self, _stage: &Stage<'_>) -> Vec<Cmd> {
        Vec::new()
    }

    /// It was closed, kept, and is opened again.
    fn reopened(&mut self) {}

    /// The whole area that panes have. Called before `key` and `view`.
    fn resize(&mut self, _area: Rect) {}

    /// Draws itself over the panes. Pure.
    fn view(&self, frame: &mut Frame<'_>, area: Rect, stage: &Stage<'_>);

    /// Is it kept when it is closed, so that what was begun in it is there when it is opened again?
    fn is_kept(&self) -> bool {
        false
    }
}
