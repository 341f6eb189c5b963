//! The terminal as the console has it: taken, drawn on, and given back as it was found.
//!
//! Not here: reading keys, deciding when to draw. Invariants: whichever way the console ends, the terminal is
//! as before; every cell passes the last gate; foreign text is safe before it is part of a title, a notice or
//! a clipboard; a terminal that went away is an answer, not a crash, and nothing is written to it any more.

mod device;
mod manners;
mod restore;
mod screen;
#[cfg(test)]
mod tests;
mod words;

use std::io;

use ratatui::Frame;
use ratatui::layout::Size;

use crate::model::safe::{Safe, pasteable};

use super::scrub::scrub;
pub use device::{Device, Stdout, is_lost};
pub use manners::{Manners, Notices};
pub use restore::{report, restore_now};
use screen::Screen;
pub use screen::Stats;
pub use words::LEAVE;

/// Longer texts do not go to the clipboard: terminals drop them, or worse, half of them.
pub const LARGEST_COPY: usize = 100 << 10;

/// Why nothing can be drawn.
#[derive(Debug, thiserror::Error)]
pub enum TerminalError {
    /// Nobody is there any more: hang-up, closed window.
    #[error("the terminal is gone: {0}")]
    Lost(#[source] io::Error),
    /// Somebody gave it back: a signal or a panic.
    #[error("the terminal was given back")]
    Restored,
    #[error("the terminal cannot be used: {0}")]
    Io(#[source] io::Error),
}

impl From<TerminalError> for io::Error {
    fn from(error: TerminalError) -> Self {
        match error {
            TerminalError::Lost(error) | TerminalError::Io(error) => error,
            TerminalError::Restored => Self::other(error),
        }
    }
}

/// How to take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    pub mouse: bool,
    pub manners: Manners,
}

/// What became of a text for the clipboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copied {
    /// Told to the terminal. Whether it listens, it does not say.
    Sent,
    TooLarge {
        bytes: usize,
    },
    /// This terminal has none.
    Unsupported,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Taken,
    /// Lent to an editor or a shell.
    Lent,
    Left,
    Lost,
}

/// The guard. Dropping it gives the terminal back.
pub struct Terminal<D: Device = Stdout> {
    ratatui: ratatui::Terminal<Screen<D>>,
    options: Options,
    phase: Phase,
    title: Option<Safe>,
}

impl Terminal<Stdout> {
    /// Takes the terminal on standard output.
    pub fn enter(options: Options) -> io::Result<Self> {
        Ok(Self::enter_on(Stdout, options)?)
    }
}

impl<D: Device> Terminal<D> {
    /// Takes this terminal.
    pub fn enter_on(device: D, options: Options) -> Result<Self, TerminalError> {
        let ratatui = ratatui::Terminal::new(Screen::new(device)).map_err(classify)?;
        let mut terminal = Self { ratatui, options, phase: Phase::Left, title: None };
        terminal.take()?;
        Ok(terminal)
    }

    /// Draws a frame: the difference to the one before, in one write. While it is lent, nothing.
    pub fn draw(&mut self, render: impl FnOnce(&mut Frame<'_>)) -> Result<(), TerminalError> {
        if !self.ready()? {
            return Ok(());
        }
        let drawn = self.ratatui.draw(|frame| {
            render(frame);
            scrub(frame.buffer_mut());
        });
        let drawn = drawn.map(|_| ());
        self.settle(drawn)
    }

    /// The next frame is drawn whole.
    pub fn redraw(&mut self) -> Result<(), TerminalError> {
        let cleared = self.ratatui.clear();
        self.settle(cleared)
    }

    pub fn size(&self) -> Result<Size, TerminalError> {
        self.ratatui.size().map_err(classify)
    }

    /// The title of the window, when it is another one than before.
    pub fn set_title(&mut self, title: &Safe) -> Result<(), TerminalError> {
        if self.title.as_ref() == Some(title) || !self.options.manners.extras || !self.ready()? {
            return Ok(());
        }
        let first = self.title.replace(title.clone()).is_none();
        let word = format!("{}{}", if first { words::TITLE_SAVE } else { "" }, words::title(title));
        let leave = self.leaving();
        self.screen().device().amend(&leave);
        self.say(&word)
    }

    /// To the clipboard of the terminal, wherever that is.
    pub fn copy(&mut self, text: &str) -> Result<Copied, TerminalError> {
        if !self.options.manners.extras {
            return Ok(Copied::Unsupported);
        }
        if text.len() > LARGEST_COPY {
            return Ok(Copied::TooLarge { bytes: text.len() });
        }
        // Naming what is hidden makes it longer.
        let text = pasteable(text);
        if text.len() > LARGEST_COPY {
            return Ok(Copied::TooLarge { bytes: text.len() });
        }
        if self.ready()? {
            self.say(&words::clipboard(&text, &self.options.manners))?;
        }
        Ok(Copied::Sent)
    }

    /// Tells an operator who looks elsewhere: a notice where the terminal has them, and a bell.
    pub fn notify(&mut self, title: &str, body: &str) -> Result<(), TerminalError> {
        if !self.ready()? {
            return Ok(());
        }
        let word = words::notice(title, body, &self.options.manners);
        self.say(&word)
    }

    pub fn mouse(&self) -> bool {
        self.options.mouse
    }

    pub fn set_mouse(&mut self, on: bool) -> Result<(), TerminalError> {
        let changed = self.options.mouse != on;
        self.options.mouse = on;
        if !changed || !self.ready()? {
            return Ok(());
        }
        self.say(if on { words::MOUSE_ON } else { words::MOUSE_OFF })
    }

    pub fn manners(&self) -> &Manners {
        &self.options.manners
    }

    /// What was written so far.
    pub fn stats(&self) -> Stats {
        self.ratatui.backend().stats()
    }

    /// Lends the terminal to an editor, or to the shell while this process is stopped.
    pub fn suspend(&mut self) -> Result<(), TerminalError> {
        if self.phase == Phase::Taken {
            self.give_back(Phase::Lent)?;
        }
        Ok(())
    }

    /// Takes it again. The next frame is drawn whole.
    pub fn resume(&mut self) -> Result<(), TerminalError> {
        match self.phase {
            Phase::Lent => {
                self.take()?;
                // Whatever was drawn before, another program drew over it.
                self.redraw()
            }
            Phase::Taken => Ok(()),
            Phase::Left => Err(TerminalError::Restored),
            Phase::Lost => Err(gone()),
        }
    }

    /// Gives the terminal back. More than once does no harm.
    pub fn leave(&mut self) -> Result<(), TerminalError> {
        match self.phase {
            Phase::Taken => self.give_back(Phase::Left),
            Phase::Lent => {
                self.phase = Phase::Left;
                Ok(())
            }
            Phase::Left | Phase::Lost => Ok(()),
        }
    }

    fn take(&mut self) -> Result<(), TerminalError> {
        let leave = self.leaving();
        self.screen().forget();
        self.screen().device().take(&leave).map_err(classify)?;
        self.phase = Phase::Taken;
        let title = self.title.as_ref().map(|title| format!("{}{}", words::TITLE_SAVE, words::title(title)));
        let mouse = if self.options.mouse { words::MOUSE_ON } else { "" };
        let word = format!("{}{mouse}{}", words::ENTER, title.unwrap_or_default());
        self.say(&word)
    }

    fn give_back(&mut self, phase: Phase) -> Result<(), TerminalError> {
        if !self.screen().device().is_taken() {
            self.phase = Phase::Left;
            return Ok(());
        }
        self.phase = phase;
        let leave = self.leaving();
        let said = self.screen().say(&leave);
        let given = self.screen().device().give_back();
        self.settle(said.and(given))
    }

    /// What must be written to leave everything as it was found.
    fn leaving(&self) -> String {
        format!("{}{}", words::LEAVE, if self.title.is_some() { words::TITLE_RESTORE } else { "" })
    }

    fn screen(&mut self) -> &mut Screen<D> {
        self.ratatui.backend_mut()
    }

    fn say(&mut self, word: &str) -> Result<(), TerminalError> {
        let said = self.screen().say(word);
        self.settle(said)
    }

    /// May something be written now?
    fn ready(&mut self) -> Result<bool, TerminalError> {
        let taken = self.screen().device().is_taken();
        match self.phase {
            Phase::Lent => Ok(false),
            Phase::Left => Err(TerminalError::Restored),
            Phase::Lost => Err(gone()),
            Phase::Taken if taken => Ok(true),
            Phase::Taken => {
                self.phase = Phase::Left;
                Err(TerminalError::Restored)
            }
        }
    }

    /// A terminal that is lost stays lost, and is not spoken to again.
    fn settle(&mut self, result: io::Result<()>) -> Result<(), TerminalError> {
        let Err(error) = result else { return Ok(()) };
        if self.phase == Phase::Taken && !self.screen().device().is_taken() {
            self.phase = Phase::Left;
            return Err(TerminalError::Restored);
        }
        let error = classify(error);
        if matches!(error, TerminalError::Lost(_)) {
            let _ = self.screen().device().give_back();
            self.phase = Phase::Lost;
        }
        Err(error)
    }
}

impl<D: Device> Drop for Terminal<D> {
    fn drop(&mut self) {
        // There is nobody left to tell.
        let _ = self.leave();
    }
}

fn classify(error: io::Error) -> TerminalError {
    if device::is_lost(&error) { TerminalError::Lost(error) } else { TerminalError::Io(error) }
}

fn gone() -> TerminalError {
    TerminalError::Lost(io::ErrorKind::BrokenPipe.into())
}
