//! The screen behind ratatui: cells in, the fewest bytes out, one write for a frame.
//!
//! Not here: taking and leaving the terminal. Invariants: a frame that changes nothing writes nothing; every
//! frame is bracketed, so that a terminal shows it whole; the cursor is moved explicitly wherever terminals may
//! disagree about the width of what was written.

use std::fmt::Write as _;
use std::io;

use ratatui::backend::{Backend, ClearType, WindowSize};
use ratatui::buffer::Cell;
use ratatui::layout::{Position, Size};
use unicode_width::UnicodeWidthChar;

use crate::console::theme::sgr::Pen;

use super::device::Device;
use super::words;

/// What was written so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Frames that changed something.
    pub frames: u64,
    pub bytes: u64,
}

pub struct Screen<D> {
    device: D,
    pending: String,
    pen: Pen,
    /// Where the terminal's cursor is, if that is certain.
    at: Option<Position>,
    cursor_shown: bool,
    stats: Stats,
}

/// A terminal that says nothing of its size, or nonsense.
const USUAL: Size = Size { width: 80, height: 24 };
const LARGEST: Size = Size { width: 1_000, height: 500 };

impl<D: Device> Screen<D> {
    pub fn new(device: D) -> Self {
        Self { device, pending: String::new(), pen: Pen::PLAIN, at: None, cursor_shown: false, stats: Stats::default() }
    }

    pub fn device(&mut self) -> &mut D {
        &mut self.device
    }

    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Forgets what the terminal was told: somebody else wrote to it.
    pub fn forget(&mut self) {
        self.pending.clear();
        self.pen = Pen::PLAIN;
        self.at = None;
        self.cursor_shown = false;
    }

    /// A word between frames.
    pub fn say(&mut self, word: &str) -> io::Result<()> {
        self.stats.bytes += word.len() as u64;
        self.device.write(word.as_bytes())
    }

    fn move_to(&mut self, to: Position) {
        if self.at != Some(to) {
            let _ = write!(self.pending, "\u{1b}[{};{}H", u32::from(to.y) + 1, u32::from(to.x) + 1);
            self.at = Some(to);
        }
    }

    /// Behind a sign that every terminal draws one column wide, the cursor is where it should be.
    fn advance(&mut self, symbol: &str, columns: u16) {
        let mut chars = symbol.chars();
        let narrow = match (chars.next(), chars.next()) {
            (Some(c), None) => c.is_ascii() || (c.width() == Some(1) && c.width_cjk() == Some(1)),
            _ => false,
        };
        // Lines, blocks and braille are drawn narrow wherever a console makes sense.
        let drawn = matches!(symbol.as_bytes(), [0xe2, 0x94..=0x96 | 0xa0..=0xa3, _]);
        self.at = self.at.filter(|at| (narrow || drawn) && at.x + 1 < columns).map(|at| Position::new(at.x + 1, at.y));
    }
}

impl<D: Device> Backend for Screen<D> {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let columns = self.size().map_or(0, |size| size.width);
        for (x, y, cell) in content {
            self.move_to(Position::new(x, y));
            self.pen.change(Pen::of_cell(cell), &mut self.pending);
            self.pending.push_str(cell.symbol());
            self.advance(cell.symbol(), columns);
        }
        // What comes behind a frame, a word or the shell, begins plain.
        self.pen.change(Pen::PLAIN, &mut self.pending);
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        if self.cursor_shown {
            self.cursor_shown = false;
            self.pending.push_str("\u{1b}[?25l");
        }
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        if !self.cursor_shown {
            self.cursor_shown = true;
            self.pending.push_str("\u{1b}[?25h");
        }
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(self.at.unwrap_or(Position::ORIGIN))
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.move_to(position.into());
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, clear_type: ClearType) -> io::Result<()> {
        self.pen.change(Pen::PLAIN, &mut self.pending);
        self.pending.push_str(match clear_type {
            ClearType::All => "\u{1b}[2J",
            ClearType::AfterCursor => "\u{1b}[J",
            ClearType::BeforeCursor => "\u{1b}[1J",
            ClearType::CurrentLine => "\u{1b}[2K",
            ClearType::UntilNewLine => "\u{1b}[K",
        });
        Ok(())
    }

    fn size(&self) -> io::Result<Size> {
        let size = self.device.size()?;
        if size.width == 0 || size.height == 0 {
            return Ok(USUAL);
        }
        Ok(Size::new(size.width.min(LARGEST.width), size.height.min(LARGEST.height)))
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size()?, pixels: Size::ZERO })
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let frame = format!("{}{}{}", words::FRAME_BEGIN, self.pending, words::FRAME_END);
        self.pending.clear();
        self.stats.frames += 1;
        self.stats.bytes += frame.len() as u64;
        self.device.write(frame.as_bytes())
    }
}
