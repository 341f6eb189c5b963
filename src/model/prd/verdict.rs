//! The words with which an item says whether it passes.
//!
//! Role: find them, read them, and name the word to write instead. Not its role: finding items, editing text.
//! Invariants: `passes` is true or false and nothing else; a status is done or not done only by a word from the
//! list here; all that an item says must agree. Nothing is guessed: an absent, null or unknown verdict is an error.

use super::error::{Why, quote};
use super::json::{JsonKind, Member, Span};
use super::{is, is_one_of};

/// Keys that say it with true or false. Only the first is bound to: a `completed` may also hold a date.
const FLAGS: &[&str] = &["passes", "passed", "complete", "completed", "done"];
const STATUS: &str = "status";
/// The word of feature lists: `passing` or `failing`. Elsewhere it may be a part of a country, or of a machine.
const STATE: &str = "state";
/// Keys that speak of passing in words nobody here knows: with one of them a file is not silent about it.
const HINTS: &[&str] = &[
    "finished",
    "implemented",
    "isdone",
    "iscomplete",
    "iscompleted",
    "ispassing",
    "verified",
    "resolved",
    "closed",
    "shipped",
    "result",
    "outcome",
    "progress",
];

const DONE: &[&str] = &["done", "complete", "completed", "passed", "passing", "finished"];
/// Not begun: what an item goes back to.
const UNTOUCHED: &[&str] =
    &["pending", "todo", "notstarted", "open", "new", "ready", "planned", "queued", "backlog", "draft"];
/// Begun, but not done.
const UNDERWAY: &[&str] = &[
    "inprogress",
    "active",
    "partial",
    "partiallycomplete",
    "doing",
    "started",
    "wip",
    "blocked",
    "failed",
    "failing",
    "notpassing",
    "incomplete",
    "inreview",
    "review",
    "testing",
];

/// One value that says whether an item passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassesValue {
    pub key: String,
    pub key_span: Span,
    pub value: Span,
    pub how: How,
    pub passes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// true or false.
    Flag,
    /// A word.
    Status { untouched: bool },
}

/// Does an object with these members speak of passing at all?
pub fn speaks(members: &[Member]) -> bool {
    members.iter().any(|member| is_verdict_key(&member.key) && (!is(&member.key, STATE) || says_state(member)))
}

/// Is it a key that can say whether something passes?
pub fn is_verdict_key(key: &str) -> bool {
    is(key, STATUS) || is(key, STATE) || is_one_of(key, FLAGS)
}

/// Is there any word, known here or not, that may be about passing?
pub fn hints(members: &[Member]) -> bool {
    members.iter().any(|member| is_verdict_key(&member.key) || is_one_of(&member.key, HINTS))
}

fn says_state(member: &Member) -> bool {
    member.value.text().is_some_and(|word| status(word).is_some())
}

/// Does it do so in the one word that cannot mean anything else?
pub fn speaks_plainly(members: &[Member]) -> bool {
    members.iter().any(|member| is(&member.key, FLAGS[0]))
}

/// All that an item says about passing, the plainest first; they agree. The byte is where the trouble is.
pub fn read(item: &str, item_start: usize, members: &[Member]) -> Result<Vec<PassesValue>, (usize, Why)> {
    let mut verdicts: Vec<PassesValue> = Vec::new();
    let mut unclear: Option<&Member> = None;
    for name in FLAGS.iter().chain([&STATUS, &STATE]) {
        for member in members.iter().filter(|member| is(&member.key, name)) {
            match judge(item, name, member)? {
                Some(verdict) => verdicts.push(verdict),
                None if *name == FLAGS[0] => return Err(no_verdict(item, member)),
                None => unclear = unclear.or(Some(member)),
            }
        }
    }
    let Some(first) = verdicts.first() else {
        return Err(match unclear {
            Some(member) => no_verdict(item, member),
            None => (item_start, Why::VerdictMissing { item: quote(item) }),
        });
    };
    match verdicts.iter().find(|other| other.passes != first.passes) {
        None => Ok(verdicts),
        Some(other) => {
            let why = Why::Contradiction { item: quote(item), first: first.says(), second: other.says() };
            Err((other.value.start, why))
        }
    }
}

/// None for a value of a kind that says nothing about passing.
fn judge(item: &str, name: &str, member: &Member) -> Result<Option<PassesValue>, (usize, Why)> {
    let (how, passes) = match &member.value.kind {
        JsonKind::Flag(flag) if name != STATUS && name != STATE => (How::Flag, *flag),
        JsonKind::Text(word) if name == STATE => match status(word) {
            Some(said) => said,
            None => return Ok(None),
        },
        JsonKind::Text(word) if name == STATUS => status(word).ok_or_else(|| {
            let why = Why::StatusUnknown { item: quote(item), key: quote(&member.key), word: quote(word) };
            (member.value.span.start, why)
        })?,
        _ => return Ok(None),
    };
    let (key, key_span, value) = (member.key.clone(), member.key_span, member.value.span);
    Ok(Some(PassesValue { key, key_span, value, how, passes }))
}

fn no_verdict(item: &str, member: &Member) -> (usize, Why) {
    let why = Why::VerdictUnclear { item: quote(item), key: quote(&member.key), found: member.value.noun() };
    (member.value.span.start, why)
}

fn status(word: &str) -> Option<(How, bool)> {
    let untouched = is_one_of(word, UNTOUCHED);
    if is_one_of(word, DONE) {
        Some((How::Status { untouched }, true))
    } else if untouched || is_one_of(word, UNDERWAY) {
        Some((How::Status { untouched }, false))
    } else {
        None
    }
}

impl PassesValue {
    fn says(&self) -> String {
        let yes = if self.passes { "that it passes" } else { "that it does not pass" };
        format!("`{}` says {yes}", quote(&self.key))
    }
}

/// The JSON value that says `passes` in place of `now` (as written, with quotes), where the file has no other item
/// whose word could be taken.
pub fn default_word(passes: bool, now: &str) -> String {
    let is_now = |words: &[&str]| is_one_of(now.trim_matches('"'), words);
    let word = match passes {
        true if is_now(&["failing", "notpassing"]) => "passing",
        false if is_now(&["passing"]) => "failing",
        true => "done",
        false => "pending",
    };
    let letters: Vec<char> = now.chars().filter(|c| c.is_alphabetic()).collect();
    let capital = letters.first().is_some_and(|c| c.is_uppercase());
    let shouted = capital && letters.len() > 1 && letters.iter().all(|c| c.is_uppercase());
    if shouted {
        format!("\"{}\"", word.to_uppercase())
    } else if capital {
        format!("\"{}{}\"", word[..1].to_uppercase(), &word[1..])
    } else {
        format!("\"{word}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_done_or_not_and_never_both() {
        for word in DONE {
            assert!(!UNTOUCHED.contains(word) && !UNDERWAY.contains(word), "{word}");
        }
        for word in DONE.iter().chain(UNTOUCHED).chain(UNDERWAY) {
            assert!(is(word, word), "{word} can never match");
        }
        for (word, passes) in [("Done", true), ("not_started", false), ("IN PROGRESS", false), ("to-do", false)] {
            assert_eq!(status(word).map(|(_, passes)| passes), Some(passes), "{word}");
        }
        for word in ["", "skipped", "cancelled", "deferred", "closed", "n/a", "done?"] {
            assert_eq!(status(word), None, "{word}");
        }
    }

    #[test]
    fn a_word_takes_the_case_of_the_one_it_replaces() {
        assert_eq!(default_word(true, "\"TODO\""), "\"DONE\"");
        assert_eq!(default_word(true, "\"To do\""), "\"Done\"");
        assert_eq!(default_word(false, "\"done\""), "\"pending\"");
        assert_eq!(default_word(true, "\"\""), "\"done\"");
        assert_eq!(default_word(true, "\"FAILING\""), "\"PASSING\"");
        assert_eq!(default_word(false, "\"passing\""), "\"failing\"");
    }
}
