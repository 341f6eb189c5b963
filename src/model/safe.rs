//! Foreign text made harmless: the only text of agents, tools, files and people that may reach a screen,
//! a title, a log line or a clipboard.
//!
//! Not here: colours, layout. Invariant: a [`Safe`] holds no control character, no escape sequence, nothing
//! that reorders or hides other text, and it is one line.

use std::fmt;

use super::learnings::flatten;

/// One line of text that may be shown.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Safe(String);

impl Safe {
    /// One line: line breaks become blanks.
    pub fn line(text: &str) -> Self {
        Self(flatten(text))
    }

    /// Line by line.
    pub fn lines(text: &str) -> Vec<Self> {
        text.lines().map(Self::line).collect()
    }

    /// Bytes of unknown encoding, line by line.
    pub fn lines_of(bytes: &[u8]) -> Vec<Self> {
        Self::lines(&String::from_utf8_lossy(bytes))
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
