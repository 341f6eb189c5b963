//! Foreign text on rows: made harmless without losing what a reader must see, and broken to fit.
//!
//! Invariant: nothing is dropped here. Long lines continue on the next row; blanks that matter stay.

use unicode_segmentation::UnicodeSegmentation;

use super::super::widget::width;
use crate::console::prose::{self, Break};
use crate::model::safe::Safe;

/// Columns of a tab.
const TAB: &str = "    ";

/// One line of foreign text, whole: what would act or hide is shown, nothing is left out.
pub(super) fn whole(line: &str) -> String {
    let line = line.strip_suffix('\n').unwrap_or(line);
    let line = line.strip_suffix('\r').unwrap_or(line).replace('\t', TAB);
    Safe::escaped(&line).as_str().to_owned()
}

/// Breaks a harmless line at blanks; a word that is too long is broken where it must. Blanks inside a row stay:
/// what is shown may be typed.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
    prose::rows(text, columns, Break::Words).filter_map(|range| text.get(range)).map(str::to_owned).collect()
}

/// Breaks a harmless line where it is full, keeping every blank: for commands and files.
pub(super) fn fold(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut rows = vec![String::new()];
    let mut used = 0;
    for cluster in text.graphemes(true) {
        let wide = width(cluster);
        if used > 0 && used + wide > columns {
            rows.push(String::new());
            used = 0;
        }
        if let Some(row) = rows.last_mut() {
            row.push_str(cluster);
        }
        used += wide;
    }
    rows
}

/// Foreign text of several lines, wrapped.
pub(super) fn paragraphs(text: &str, columns: usize) -> Vec<String> {
    text.lines().flat_map(|line| wrap(&whole(line), columns)).collect()
}

/// Arguments as one would type them, so that no blank hides where one ends.
pub(super) fn argv(arguments: &[String]) -> String {
    let quoted = |argument: &String| {
        let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%^".contains(c);
        if !argument.is_empty() && argument.chars().all(plain) {
            argument.clone()
        } else {
            format!("'{}'", argument.replace('\'', "'\\''"))
        }
    };
    arguments.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn blanks_stay_and_escapes_do_not() {
        assert_eq!(whole("\t  two\u{1b}[31m words \r\n").matches("    ").count(), 1);
        assert!(whole("\t  x").starts_with("      x"));
        assert!(!whole("a\u{1b}b\u{202e}c").contains(['\u{1b}', '\u{202e}']));
        assert_eq!(whole("   "), "   ");
        let long = "x".repeat(5_000);
        assert_eq!(whole(&long), long, "a long command is shown to its end");
    }

    #[test]
    fn words_and_arguments() {
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrap("", 4), [""]);
        assert_eq!(fold("a  b c", 3), ["a  ", "b c"]);
        let args: Vec<String> = ["sh", "-c", "a b", "it's", ""].map(str::to_owned).into();
        assert_eq!(argv(&args), r"sh -c 'a b' 'it'\''s' ''");
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_too_wide(text in "[a-z 日]{0,60}", columns in 2usize..20) {
            let rows = wrap(&text, columns);
            prop_assert!(rows.iter().all(|row| width(row) <= columns), "{:?}", rows);
            let letters = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
            prop_assert_eq!(letters(&rows.concat()), letters(&text));
            let folded = fold(&text, columns);
            prop_assert!(folded.iter().all(|row| width(row) <= columns), "{:?}", folded);
            prop_assert_eq!(folded.concat(), text);
        }
    }
}
