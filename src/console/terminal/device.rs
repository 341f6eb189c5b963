//! What a terminal is to the rest: something to write to, with a size and a mode.

use std::io;

use ratatui::layout::Size;
use rustix::io::Errno;
use rustix::termios::{self, OptionalActions};

use super::restore;

/// A terminal, or what stands for one in a test.
pub trait Device {
    /// All of it, at once.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    fn size(&self) -> io::Result<Size>;

    /// Keys come one by one from here on. `leave`: what must be written to leave it as it was found.
    fn take(&mut self, leave: &str) -> io::Result<()>;

    /// More was changed: this must be written now.
    fn amend(&mut self, leave: &str);

    /// The mode of before.
    fn give_back(&mut self) -> io::Result<()>;

    /// `false` after somebody restored it behind our back: a signal, a panic.
    fn is_taken(&self) -> bool;
}

/// The terminal on standard output.
#[derive(Debug, Default)]
pub struct Stdout;

impl Device for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        restore::write_while_taken(bytes)
    }

    fn size(&self) -> io::Result<Size> {
        let size = termios::tcgetwinsize(io::stdout())?;
        Ok(Size::new(size.ws_col, size.ws_row))
    }

    fn take(&mut self, leave: &str) -> io::Result<()> {
        let found = termios::tcgetattr(io::stdout())?;
        // Remembered first: from here on whoever restores, restores this.
        restore::remember(found, leave);
        // Through the library that reads the keys: it asks itself which mode it is in.
        crossterm::terminal::enable_raw_mode().inspect_err(|_| restore::forget())
    }

    fn amend(&mut self, leave: &str) {
        restore::amend(leave);
    }

    fn give_back(&mut self) -> io::Result<()> {
        let by_library = crossterm::terminal::disable_raw_mode();
        // Once more by what was found here: the library may have looked at another terminal.
        let by_us = restore::take_back().map(|found| termios::tcsetattr(io::stdout(), OptionalActions::Now, &found));
        by_us.transpose()?;
        by_library
    }

    fn is_taken(&self) -> bool {
        restore::is_taken()
    }
}

/// Is there nobody at the other end any more?
pub fn is_lost(error: &io::Error) -> bool {
    let gone = [Errno::IO, Errno::PIPE, Errno::NXIO, Errno::NODEV, Errno::BADF, Errno::NOTTY];
    let by_number = error.raw_os_error().is_some_and(|number| gone.iter().any(|errno| errno.raw_os_error() == number));
    by_number || matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::WriteZero)
}
