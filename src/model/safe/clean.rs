//! The cleaner: foreign bytes in, one line of harmless text out.
//!
//! Escape sequences are found by a terminal's own state machine and dropped; whatever else could move, hide or
//! reorder text is written out by name. Not here: where lines end. Invariants: time and memory depend on the
//! limits only, not on how much there is; cleaning what is clean changes nothing.

use std::fmt::Write as _;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthChar;

use super::chars::{ZERO_WIDTH_JOINER, is_forbidden, is_mark, is_selector, is_skin_tone};

/// A tab goes to the next multiple of this.
const TAB: usize = 4;
/// Marks that may stand on one sign.
const MARKS: u8 = 3;
/// Emoji that may be joined to one.
const JOINS: u8 = 8;
/// Room for "… +N bytes".
const CUT_ROOM: usize = 32;

/// How much of a line is kept, and how much is looked at to find that much.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub kept: usize,
    pub read: usize,
}

impl Limits {
    pub const LINE: Self = Self { kept: 4 << 10, read: 64 << 10 };
    /// For text that somebody has to approve: a cut would hide what is approved.
    pub const APPROVAL: Self = Self { kept: 64 << 10, read: 64 << 10 };
    pub const NONE: Self = Self { kept: usize::MAX, read: usize::MAX };
}

/// What becomes of sequences and controls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// Sequences are dropped, the rest is written out.
    Read,
    /// Nothing is dropped, and no two texts look the same.
    Escape,
}

/// Cleans one line from one or more pieces.
pub(super) struct Cleaner {
    writer: Writer,
    parser: vte::Parser,
    limits: Limits,
    read: usize,
    /// Bytes of input behind the last place where a cut would still leave room for its mark.
    shown: usize,
    /// Where that place is in the output.
    fits: usize,
    full: bool,
}

impl Cleaner {
    pub fn new(manner: Manner, limits: Limits) -> Self {
        Self {
            writer: Writer::new(manner),
            parser: vte::Parser::new(),
            limits,
            read: 0,
            shown: 0,
            fits: 0,
            full: false,
        }
    }

    /// May it take more?
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Bytes that were looked at.
    #[cfg(test)]
    pub fn has_read(&self) -> usize {
        self.read
    }

    /// A piece without line breaks. Sequences end with it.
    pub fn piece(&mut self, bytes: &[u8]) {
        self.parser = vte::Parser::new();
        // A few bytes more than may be read, so that a character at the edge stays whole.
        let most = self.limits.read.saturating_sub(self.read).saturating_add(4).min(bytes.len());
        let Some(window) = bytes.get(..most) else { return };
        let mut last_was_escape = false;
        for chunk in window.utf8_chunks() {
            for c in chunk.valid().chars() {
                if !self.step(c.len_utf8(), |this| this.feed(c)) {
                    return;
                }
                last_was_escape = c == '\u{1b}';
            }
            for &byte in chunk.invalid() {
                if !self.step(1, |this| this.feed_invalid(byte)) {
                    return;
                }
                last_was_escape = false;
            }
        }
        if last_was_escape && self.writer.manner == Manner::Read {
            self.step(0, |this| this.writer.control('\u{1b}'));
        }
        if most < bytes.len() {
            self.full = true;
        }
    }

    /// A blank between two pieces, for the line break that was there.
    pub fn blank(&mut self, input_bytes: usize) {
        self.step(input_bytes, |this| this.writer.print(' '));
    }

    fn step(&mut self, input_bytes: usize, act: impl FnOnce(&mut Self)) -> bool {
        if self.full || self.read >= self.limits.read {
            self.full = true;
            return false;
        }
        act(self);
        self.read += input_bytes;
        let length = self.writer.out.len();
        if length > self.limits.kept {
            self.full = true;
            return false;
        }
        if length <= self.limits.kept - CUT_ROOM && self.writer.joiner.is_none() {
            self.shown = self.read;
            self.fits = length;
        }
        true
    }

    fn feed(&mut self, c: char) {
        if self.writer.manner == Manner::Escape {
            self.writer.print(c);
            return;
        }
        let mut encoded = [0; 4];
        self.parser.advance(&mut self.writer, c.encode_utf8(&mut encoded).as_bytes());
    }

    fn feed_invalid(&mut self, byte: u8) {
        let text = format!("\\x{byte:02X}");
        match self.writer.manner {
            Manner::Escape => self.writer.named(&text),
            // Through the machine: inside a sequence it is part of that.
            Manner::Read => self.parser.advance(&mut self.writer, text.as_bytes()),
        }
    }

    /// The line. `total`: bytes that there were, read or not.
    pub fn finish(mut self, total: usize) -> String {
        if !self.full {
            self.writer.settle_joiner();
            self.full = self.writer.out.len() > self.limits.kept;
        }
        let mut out = self.writer.out;
        if self.full {
            out.truncate(self.fits);
            let _ = write!(out, "… +{} bytes", total.saturating_sub(self.shown));
        }
        out
    }
}

/// Puts characters together so that none hides another.
struct Writer {
    out: String,
    manner: Manner,
    column: usize,
    /// Where the last sign begins that others may lean on.
    base: Option<usize>,
    marks: u8,
    selected: bool,
    toned: bool,
    joins: u8,
    /// A joiner that waits for what it joins to.
    joiner: Option<char>,
}

impl Writer {
    fn new(manner: Manner) -> Self {
        Self {
            out: String::new(),
            manner,
            column: 0,
            base: None,
            marks: 0,
            selected: false,
            toned: false,
            joins: 0,
            joiner: None,
        }
    }

    fn print(&mut self, c: char) {
        if let Some(joiner) = self.joiner.take() {
            if self.joins < JOINS && self.joins_to(c) {
                self.out.push(joiner);
                self.joins += 1;
                self.base(c);
                return;
            }
            self.code_point(joiner);
        }
        match c {
            '\t' if self.manner == Manner::Read => {
                let blanks = TAB - self.column % TAB;
                for _ in 0..blanks {
                    self.start(' ');
                }
            }
            c if c.is_control() => self.control(c),
            c if is_forbidden(c) => self.code_point(c),
            _ if self.manner == Manner::Escape => self.print_escaped(c),
            ZERO_WIDTH_JOINER if self.base.is_some() => self.joiner = Some(c),
            ZERO_WIDTH_JOINER => self.code_point(c),
            c if is_selector(c) => {
                if self.base.is_some() && !self.selected {
                    self.selected = true;
                    self.out.push(c);
                } else {
                    self.code_point(c);
                }
            }
            c if is_mark(c) => match self.base {
                Some(_) if self.marks < MARKS => self.mark(c),
                // A tower of marks says nothing that its foot does not say.
                Some(_) => {}
                None => self.code_point(c),
            },
            c if is_skin_tone(c) && self.base.is_some() => {
                if self.toned {
                    self.code_point(c);
                } else {
                    self.toned = true;
                    self.out.push(c);
                    self.column += 2;
                }
            }
            c => self.start(c),
        }
    }

    /// Whatever is written stands for itself only; what could be taken for our own marks is named as well.
    fn print_escaped(&mut self, c: char) {
        match c {
            ZERO_WIDTH_JOINER | '⟨' | '\u{2400}'..='\u{243f}' => self.code_point(c),
            c if is_selector(c) => self.code_point(c),
            c if is_mark(c) && (self.base.is_none() || self.marks >= MARKS) => self.code_point(c),
            c if is_mark(c) => self.mark(c),
            c => self.start(c),
        }
    }

    fn mark(&mut self, c: char) {
        self.marks += 1;
        self.out.push(c);
    }

    /// A sign of its own.
    fn start(&mut self, c: char) {
        self.joins = 0;
        self.base(c);
    }

    fn base(&mut self, c: char) {
        self.base = Some(self.out.len());
        self.marks = 0;
        self.selected = false;
        self.toned = false;
        self.column += UnicodeWidthChar::width(c).unwrap_or(0);
        self.out.push(c);
    }

    /// Would a joiner make one emoji of the last sign and this one? Asked of the rules for clusters.
    fn joins_to(&self, c: char) -> bool {
        let Some(base) = self.base.and_then(|base| self.out.get(base..)) else { return false };
        if is_mark(c) || is_selector(c) || is_skin_tone(c) || c == ZERO_WIDTH_JOINER || is_forbidden(c) {
            return false;
        }
        let joined: String = base.chars().chain([ZERO_WIDTH_JOINER, c]).collect();
        joined.graphemes(true).count() == 1
    }

    fn control(&mut self, c: char) {
        match (c, self.manner) {
            ('\u{1b}', _) => self.named("␛"),
            (c @ '\0'..='\u{1f}', Manner::Escape) => {
                let picture = char::from_u32(0x2400 + u32::from(c)).unwrap_or('?');
                self.named(picture.encode_utf8(&mut [0; 4]));
            }
            ('\u{7f}', Manner::Escape) => self.named("␡"),
            // As a terminal driver echoes it.
            (c @ ('\0'..='\u{1f}' | '\u{7f}'), Manner::Read) => {
                let letter = char::from_u32(u32::from(c) ^ 0x40).unwrap_or('?');
                self.named(&format!("^{letter}"));
            }
            (c, _) => self.code_point(c),
        }
    }

    fn code_point(&mut self, c: char) {
        self.named(&format!("⟨U+{:04X}⟩", u32::from(c)));
    }

    fn named(&mut self, text: &str) {
        self.settle_joiner();
        for c in text.chars() {
            self.start(c);
        }
    }

    fn settle_joiner(&mut self) {
        if let Some(joiner) = self.joiner.take() {
            self.code_point(joiner);
        }
    }
}

impl vte::Perform for Writer {
    fn print(&mut self, c: char) {
        Self::print(self, c);
    }

    fn execute(&mut self, byte: u8) {
        Self::print(self, char::from(byte));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(text: &str) -> String {
        let mut cleaner = Cleaner::new(Manner::Read, Limits::LINE);
        cleaner.piece(text.as_bytes());
        cleaner.finish(text.len())
    }

    #[test]
    fn emoji_stay_whole() {
        for text in ["👩‍💻", "👨‍👩‍👧‍👦", "❤️‍🔥", "🏳️‍🌈", "👩🏽‍🚀", "1️⃣", "🇩🇪", "é", "e\u{301}", "각", "日本語"]
        {
            assert_eq!(clean(text), text);
        }
    }

    #[test]
    fn a_joiner_that_joins_no_emoji_is_shown() {
        assert_eq!(clean("ad\u{200d}min"), "ad⟨U+200D⟩min");
        assert_eq!(clean("👩\u{200d}x"), "👩⟨U+200D⟩x");
        assert_eq!(clean("👩\u{200d}"), "👩⟨U+200D⟩");
        assert_eq!(clean("\u{200d}👩"), "⟨U+200D⟩👩");
    }

    #[test]
    fn marks_are_capped_and_never_lean_on_what_is_not_there() {
        assert_eq!(clean(&format!("e{}", "\u{301}".repeat(20))), format!("e{}", "\u{301}".repeat(3)));
        assert_eq!(clean("\u{301}a"), "⟨U+0301⟩a");
        assert_eq!(clean("☺\u{fe0f}\u{fe0f}"), "☺\u{fe0f}⟨U+FE0F⟩");
    }

    #[test]
    fn tabs_go_to_the_next_stop() {
        assert_eq!(clean("\ta\tbcd\te"), "    a   bcd e");
        assert_eq!(clean("日\tx"), "日  x");
    }
}
