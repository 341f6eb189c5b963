//! Foreign text as lines for a screen: every line [`Safe`], its indentation kept, and cut into rows.
//!
//! Not here: styles, places of readers. Invariants: the rows of a line hold all of it but the blanks they
//! were broken at; `height` is the number of `rows`.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::model::safe::Safe;

/// Tab stops of shown text.
const TAB: usize = 4;
/// Deeper indentation is nobody's.
const DEEPEST: usize = 120;

/// One line made harmless, with its indentation.
pub fn line(text: &str) -> String {
    let text = text.trim_end();
    let rest = text.trim_start_matches([' ', '\t']);
    let mut columns = 0;
    for c in text.strip_suffix(rest).unwrap_or_default().chars() {
        columns += if c == '\t' { TAB - columns % TAB } else { 1 };
    }
    let mut out = " ".repeat(columns.min(DEEPEST));
    if rest.contains('\t') {
        out.push_str(Safe::line(&expand(rest, columns)).as_str());
    } else {
        out.push_str(Safe::line(rest).as_str());
    }
    out
}

fn expand(text: &str, from: usize) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut column = from;
    for c in text.chars() {
        if c == '\t' {
            let blanks = TAB - column % TAB;
            out.extend(std::iter::repeat_n(' ', blanks));
            column += blanks;
        } else {
            out.push(c);
            column += 1;
        }
    }
    out
}

/// All lines of a text.
pub fn lines(text: &str) -> impl Iterator<Item = String> + '_ {
    text.lines().map(line)
}

/// How a line is broken when it is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// Between words where possible.
    Words,
    /// At the last column: for code and output.
    Anywhere,
}

/// The rows of a line, as byte ranges.
pub struct Rows<'a> {
    text: &'a str,
    columns: usize,
    how: Break,
    at: usize,
    first: bool,
}

/// How many lines were measured or cut: tests count work instead of time.
#[cfg(test)]
pub mod work {
    use std::cell::Cell;

    thread_local! {
        static LINES: Cell<usize> = const { Cell::new(0) };
    }

    pub fn one() {
        LINES.with(|lines| lines.set(lines.get() + 1));
    }

    /// Lines since the last call.
    pub fn take() -> usize {
        LINES.with(|lines| lines.replace(0))
    }
}

/// Cuts a line into rows of at most `columns`. An empty line is one row.
pub fn rows(text: &str, columns: usize, how: Break) -> Rows<'_> {
    #[cfg(test)]
    work::one();
    Rows { text, columns: columns.max(1), how, at: 0, first: true }
}

/// Running text in rows, blanks made one. Nothing is lost, and a text without words has no rows.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() {
        return Vec::new();
    }
    rows(&text, columns.max(2), Break::Words).filter_map(|range| text.get(range)).map(str::to_owned).collect()
}

/// Number of rows a line takes.
pub fn height(text: &str, columns: usize, how: Break) -> usize {
    #[cfg(test)]
    work::one();
    let columns = columns.max(1);
    if text.is_ascii() {
        if text.len() <= columns {
            return 1;
        }
        if how == Break::Anywhere {
            return text.len().div_ceil(columns);
        }
    }
    rows(text, columns, how).count()
}

impl Iterator for Rows<'_> {
    type Item = std::ops::Range<usize>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.text.get(self.at..)?;
        if rest.is_empty() && !self.first {
            return None;
        }
        self.first = false;
        let start = self.at;
        let fits = fitting(rest, self.columns);
        if fits == rest.len() {
            self.at = self.text.len();
            return Some(start..self.at);
        }
        let (end, next) = match self.how {
            Break::Anywhere => (fits, fits),
            Break::Words => break_words(rest, fits),
        };
        self.at = start + next;
        Some(start..start + end)
    }
}

/// Bytes of the longest prefix of at most `columns`; at least one cluster, so that every cut makes progress.
fn fitting(text: &str, columns: usize) -> usize {
    // ASCII is one column a byte, and breaks anywhere.
    let window = text.len().min(columns + 1);
    if text.as_bytes().iter().take(window).all(u8::is_ascii) {
        return text.len().min(columns);
    }
    let mut used = 0;
    for (at, cluster) in text.grapheme_indices(true) {
        used += cluster.width();
        if used > columns {
            return if at == 0 { cluster.len() } else { at };
        }
    }
    text.len()
}

/// Where the row ends, and where the next begins.
fn break_words(text: &str, fits: usize) -> (usize, usize) {
    let head = text.get(..fits).unwrap_or(text);
    if text.get(fits..).is_some_and(|rest| rest.starts_with(' ')) {
        return (fits, skip_blanks(text, fits));
    }
    let indent = text.len() - text.trim_start().len();
    match head.rfind(' ') {
        // A break inside the indentation would leave an empty row.
        Some(blank) if blank >= indent && !head.get(..blank).unwrap_or("").trim().is_empty() => {
            (blank, skip_blanks(text, blank))
        }
        _ => (fits, fits),
    }
}

fn skip_blanks(text: &str, from: usize) -> usize {
    let rest = text.get(from..).unwrap_or("");
    from + (rest.len() - rest.trim_start_matches(' ').len())
}

/// Where a needle begins, letters of ASCII in either case. The place is a character boundary.
pub fn find(text: &str, needle: &str, from: usize) -> Option<usize> {
    let (text, needle) = (text.as_bytes(), needle.as_bytes());
    let first = *needle.first()?;
    let (low, high) = (first.to_ascii_lowercase(), first.to_ascii_uppercase());
    let last = text.len().checked_sub(needle.len())?;
    (from..=last).find(|at| {
        text.get(*at).is_some_and(|byte| *byte == low || *byte == high)
            && text.get(*at..*at + needle.len()).is_some_and(|part| part.eq_ignore_ascii_case(needle))
    })
}

/// All places of a needle, not overlapping.
pub fn find_all(text: &str, needle: &str) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = find(text, needle, from) {
        from = at + needle.len();
        found.push(at..from);
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(text: &str, columns: usize, how: Break) -> Vec<&str> {
        rows(text, columns, how).map(|range| &text[range]).collect()
    }

    #[test]
    fn words_stay_whole_where_they_can() {
        assert_eq!(cut("one two three", 7, Break::Words), ["one two", "three"]);
        assert_eq!(cut("one two three", 8, Break::Words), ["one two", "three"]);
        assert_eq!(cut("abcdefghij kl", 4, Break::Words), ["abcd", "efgh", "ij", "kl"]);
        assert_eq!(cut("    indented", 6, Break::Words), ["    in", "dented"]);
        assert_eq!(cut("", 5, Break::Words), [""]);
        assert_eq!(cut("abcdef", 4, Break::Anywhere), ["abcd", "ef"]);
        assert_eq!(cut("日本語", 4, Break::Anywhere), ["日本", "語"]);
    }

    #[test]
    fn indentation_is_kept_and_tabs_are_expanded() {
        assert_eq!(line("\tif x"), "    if x");
        assert_eq!(line("  12\tcode\t"), "  12    code");
        assert!(!line("a\u{1b}[2Jb").contains('\u{1b}'));
    }

    #[test]
    fn finding_ignores_case() {
        assert_eq!(find("Hello World", "WORLD", 0), Some(6));
        assert_eq!(find("Hello", "world", 0), None);
        assert_eq!(find_all("aAa", "a").len(), 3);
        assert_eq!(find("aé", "é", 0), Some(1));
        assert_eq!(find("x", "", 0), None);
    }

    proptest! {
        #[test]
        fn rows_fit_and_lose_only_blanks(text in "[a-d é日\u{301}]{0,60}", columns in 1usize..20) {
            for how in [Break::Words, Break::Anywhere] {
                let rows = cut(&text, columns, how);
                prop_assert_eq!(rows.len(), height(&text, columns, how));
                for row in &rows {
                    prop_assert!(row.width() <= columns.max(2), "{row:?} in {columns}");
                }
                let joined: String = rows.concat();
                let without = |text: &str| text.replace(' ', "");
                prop_assert_eq!(without(&joined), without(&text));
            }
        }
    }
}
