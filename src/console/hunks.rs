//! A change of a text, cut into pieces that can be taken or left one by one.
//!
//! Role: finding the hunks and building the text that a choice of them makes. Not its role: drawing.
//! Invariants: taking all gives the new text, taking none the old one, byte for byte; every line of any
//! merge is a line of one of the two, with its own line end.

use std::ops::Range;

use similar::{Algorithm, DiffTag, capture_diff_slices};

/// Beyond this many differing lines the search for the best cut could take minutes: one hunk, then.
const MOST_LINES: usize = 10_000;

/// One place where the texts differ, in lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    pub before: Range<usize>,
    pub after: Range<usize>,
}

/// Two texts and where they differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunks {
    before: String,
    after: String,
    hunks: Vec<Hunk>,
}

impl Hunks {
    pub fn between(before: &str, after: &str) -> Self {
        let hunks = cut(&lines(before), &lines(after));
        Self { before: before.to_owned(), after: after.to_owned(), hunks }
    }

    pub fn len(&self) -> usize {
        self.hunks.len()
    }

    pub fn is_empty(&self) -> bool {
        self.hunks.is_empty()
    }

    pub fn all(&self) -> &[Hunk] {
        &self.hunks
    }

    /// The lines of the old text, each with its line end.
    pub fn before(&self) -> Vec<&str> {
        lines(&self.before)
    }

    /// The lines of the new text, each with its line end.
    pub fn after(&self) -> Vec<&str> {
        lines(&self.after)
    }

    /// The text with the hunks for which `taken` says yes.
    pub fn merge(&self, taken: impl Fn(usize) -> bool) -> String {
        let (before, after) = (self.before(), self.after());
        let mut out = String::with_capacity(self.before.len().max(self.after.len()));
        let mut at = 0;
        for (number, hunk) in self.hunks.iter().enumerate() {
            out.extend(piece(&before, at..hunk.before.start));
            let chosen =
                if taken(number) { piece(&after, hunk.after.clone()) } else { piece(&before, hunk.before.clone()) };
            out.extend(chosen);
            at = hunk.before.end;
        }
        out.extend(piece(&before, at..before.len()));
        out
    }
}

/// Lines with their ends, so that CRLF and a missing last line end are part of what is compared and kept.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn piece<'a>(lines: &[&'a str], range: Range<usize>) -> impl Iterator<Item = &'a str> {
    lines.get(range).unwrap_or_default().to_vec().into_iter()
}

fn cut(before: &[&str], after: &[&str]) -> Vec<Hunk> {
    let head = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let rest = before.len().min(after.len()) - head;
    let tail = before.iter().rev().zip(after.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let (old, new) = (head..before.len() - tail, head..after.len() - tail);
    if old.is_empty() && new.is_empty() {
        return Vec::new();
    }
    if old.len() + new.len() > MOST_LINES {
        return vec![Hunk { before: old, after: new }];
    }
    let middle = |lines: &[&str], range: &Range<usize>| -> Vec<String> {
        lines.get(range.clone()).unwrap_or_default().iter().map(|line| (*line).to_owned()).collect()
    };
    let mut hunks: Vec<Hunk> = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, &middle(before, &old), &middle(after, &new)) {
        let (tag, from, to) = op.as_tag_tuple();
        if tag == DiffTag::Equal {
            continue;
        }
        let hunk = Hunk { before: from.start + head..from.end + head, after: to.start + head..to.end + head };
        match hunks.last_mut() {
            // A removal and an addition at one place are one change to a reader.
            Some(last) if last.before.end == hunk.before.start && last.after.end == hunk.after.start => {
                last.before.end = hunk.before.end;
                last.after.end = hunk.after.end;
            }
            _ => hunks.push(hunk),
        }
    }
    hunks
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_place_is_one_hunk() {
        let hunks = Hunks::between("a\nb\nc\nd\ne\n", "a\nB\nc\nd\ne\nf\n");
        assert_eq!(hunks.all(), [Hunk { before: 1..2, after: 1..2 }, Hunk { before: 5..5, after: 5..6 }]);
        assert_eq!(hunks.merge(|number| number == 0), "a\nB\nc\nd\ne\n");
        assert_eq!(hunks.merge(|number| number == 1), "a\nb\nc\nd\ne\nf\n");
        assert!(Hunks::between("same", "same").is_empty());
        assert_eq!(Hunks::between("", "new\n").len(), 1);
    }

    #[test]
    fn line_ends_are_part_of_the_line() {
        let hunks = Hunks::between("a\r\nb\r\nc", "a\nb\r\nc\n");
        assert_eq!(hunks.len(), 2);
        assert_eq!(hunks.merge(|number| number == 0), "a\nb\r\nc");
        assert_eq!(hunks.merge(|number| number == 1), "a\r\nb\r\nc\n");
    }

    #[test]
    fn a_huge_change_is_one_hunk_and_not_a_long_wait() {
        let old: String = (0..60_000).map(|n| format!("old {n}\n")).collect();
        let new: String = (0..60_000).map(|n| format!("new {n}\n")).collect();
        let hunks = Hunks::between(&format!("same\n{old}end\n"), &format!("same\n{new}end\n"));
        assert_eq!(hunks.len(), 1);
        assert_eq!(hunks.merge(|_| true), format!("same\n{new}end\n"));
    }

    fn text() -> impl Strategy<Value = String> {
        prop_oneof!["((a|b|c|)(\n|\r\n)){0,12}(|a|b)", any::<String>()]
    }

    proptest! {
        #[test]
        fn all_is_after_and_none_is_before(before in text(), after in text()) {
            let hunks = Hunks::between(&before, &after);
            prop_assert_eq!(hunks.merge(|_| true), after.clone());
            prop_assert_eq!(hunks.merge(|_| false), before.clone());
            prop_assert_eq!(hunks.is_empty(), before == after);
        }

        #[test]
        fn any_choice_is_a_merge_of_whole_lines(before in text(), after in text(), taken in any::<u64>()) {
            let hunks = Hunks::between(&before, &after);
            let merged = hunks.merge(|number| taken >> (number % 64) & 1 == 1);
            for line in lines(&merged) {
                prop_assert!(lines(&before).contains(&line) || lines(&after).contains(&line), "{:?}", line);
            }
            // What was left can still be taken afterwards, and what was taken can be given back.
            prop_assert_eq!(Hunks::between(&merged, &after).merge(|_| true), after);
            prop_assert_eq!(Hunks::between(&before, &merged).merge(|_| false), before);
        }

        #[test]
        fn hunks_are_in_order_and_apart(before in text(), after in text()) {
            let hunks = Hunks::between(&before, &after);
            let found = hunks.all();
            for pair in found.windows(2) {
                prop_assert!(pair[0].before.end < pair[1].before.start, "{:?}", found);
            }
            for hunk in found {
                prop_assert!(!hunk.before.is_empty() || !hunk.after.is_empty());
            }
        }
    }
}
