//! Foreign text made harmless: the only text of agents, tools, files and people that may reach a screen,
//! a title, a log line or a clipboard.
//!
//! Not here: colours, layout. Invariants: a [`Safe`] holds no control character, no escape sequence, nothing
//! that reorders or hides other text; it is one line, and a short one; making it takes a moment, however long
//! the text is.

mod chars;
mod clean;
#[cfg(test)]
pub(crate) mod corpus;
#[cfg(test)]
mod tests;

use std::fmt;

pub use chars::is_forbidden;
use chars::stands_alone;
use clean::{Cleaner, Limits, Manner};

/// One line of text that may be shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Safe(String);

impl Safe {
    /// One line: line breaks become blanks, those at the end nothing.
    pub fn line(text: &str) -> Self {
        Self::line_of(text.as_bytes())
    }

    /// One line of bytes of unknown encoding.
    pub fn line_of(bytes: &[u8]) -> Self {
        if is_plain(bytes) {
            return Self(as_text(bytes));
        }
        let mut rest = bytes;
        while let [head @ .., b'\n' | b'\r'] = rest {
            rest = head;
        }
        let total = rest.len();
        let mut cleaner = Cleaner::new(Manner::Read, Limits::LINE);
        while let Some(end) = find(rest, b'\n') {
            let (piece, behind) = rest.split_at(end);
            cleaner.piece(last_written(piece));
            cleaner.blank(1);
            if cleaner.is_full() {
                return Self(cleaner.finish(total));
            }
            rest = behind.get(1..).unwrap_or_default();
        }
        cleaner.piece(last_written(rest));
        Self(cleaner.finish(total))
    }

    /// Line by line.
    pub fn lines(text: &str) -> Vec<Self> {
        Self::lines_of(text.as_bytes())
    }

    /// Bytes of unknown encoding, line by line.
    pub fn lines_of(bytes: &[u8]) -> Vec<Self> {
        Lines(bytes).map(Self::piece).collect()
    }

    /// At most so many lines; the last one says what is left out.
    pub fn lines_capped(text: &str, max_lines: usize) -> Vec<Self> {
        Self::lines_capped_of(text.as_bytes(), max_lines)
    }

    /// At most so many lines of bytes; the last one says what is left out.
    pub fn lines_capped_of(bytes: &[u8], max_lines: usize) -> Vec<Self> {
        let mut lines = Lines(bytes);
        let mut out: Vec<_> = lines.by_ref().take(max_lines).map(Self::piece).collect();
        let left = lines.count();
        // The line that says so takes the place of one.
        if left > 0 && out.pop().is_some() {
            out.push(Self(format!("… +{} lines", left + 1)));
        }
        out
    }

    /// For text that somebody is asked to approve: nothing is dropped, everything is seen, sequences and line
    /// breaks included, and no two texts look the same by what is invisible in them.
    pub fn escaped(text: &str) -> Self {
        let mut cleaner = Cleaner::new(Manner::Escape, Limits::APPROVAL);
        cleaner.piece(text.as_bytes());
        Self(cleaner.finish(text.len()))
    }

    /// One line that has no line break.
    fn piece(bytes: &[u8]) -> Self {
        if is_plain(bytes) {
            return Self(as_text(bytes));
        }
        let written = last_written(bytes);
        let mut cleaner = Cleaner::new(Manner::Read, Limits::LINE);
        cleaner.piece(written);
        Self(cleaner.finish(written.len()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Safe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl AsRef<str> for Safe {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// Text for somebody else's clipboard: lines, blanks and tabs as they are, nothing cut, nothing that acts.
/// As long as what it is made of; whoever calls it bounds that.
pub fn pasteable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (index, line) in Lines(text.as_bytes()).enumerate() {
        if index > 0 {
            out.push('\n');
        }
        for (index, field) in line.split(|byte| *byte == b'\t').enumerate() {
            if index > 0 {
                out.push('\t');
            }
            let mut cleaner = Cleaner::new(Manner::Read, Limits::NONE);
            cleaner.piece(last_written(field));
            out.push_str(&cleaner.finish(field.len()));
        }
    }
    if text.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// May this stand in one cell of a screen as it is?
pub fn is_clean(symbol: &str) -> bool {
    let mut chars = symbol.chars();
    match (chars.next(), chars.next()) {
        (None, _) => true,
        (Some(' '..='~'), None) => true,
        // By far the most cells; a character alone needs no look around.
        (Some(c), None) => stands_alone(c),
        _ => {
            let mut cleaner = Cleaner::new(Manner::Read, Limits::LINE);
            cleaner.piece(symbol.as_bytes());
            cleaner.finish(symbol.len()) == symbol
        }
    }
}

/// Short and of printable ASCII only, as nearly everything is.
fn is_plain(bytes: &[u8]) -> bool {
    bytes.len() <= Limits::LINE.kept && bytes.iter().all(|byte| matches!(byte, b' '..=b'~'))
}

fn as_text(ascii: &[u8]) -> String {
    String::from_utf8_lossy(ascii).into_owned()
}

/// What a terminal would show of a line that returns to its beginning: the part written last.
fn last_written(line: &[u8]) -> &[u8] {
    let mut line = line;
    while let [head @ .., b'\r'] = line {
        line = head;
    }
    match rfind(line, b'\r') {
        Some(at) => line.get(at + 1..).unwrap_or_default(),
        None => line,
    }
}

/// Large enough that the search inside `contains` does the work.
const STRIDE: usize = 4 << 10;

fn find(bytes: &[u8], wanted: u8) -> Option<usize> {
    bytes.chunks(STRIDE).enumerate().find_map(|(index, chunk)| {
        let hit = chunk.contains(&wanted).then(|| chunk.iter().position(|byte| *byte == wanted))?;
        hit.map(|at| index * STRIDE + at)
    })
}

fn rfind(bytes: &[u8], wanted: u8) -> Option<usize> {
    let mut end = bytes.len();
    bytes.rchunks(STRIDE).find_map(|chunk| {
        end -= chunk.len();
        let hit = chunk.contains(&wanted).then(|| chunk.iter().rposition(|byte| *byte == wanted))?;
        hit.map(|at| end + at)
    })
}

/// The lines of a text without their ends; none for an empty text.
struct Lines<'a>(&'a [u8]);

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let end = find(self.0, b'\n').unwrap_or(self.0.len());
        let (line, rest) = self.0.split_at(end);
        self.0 = rest.get(1..).unwrap_or_default();
        Some(line)
    }
}
