//! Secrets, and how they are kept out of everything that is stored or shown.
//!
//! Role: know secret values and what keys look like; replace both by a mark, in whole texts and in text that
//! arrives in pieces.
//! Not its role: finding the values (the engine reads environment and files), and what is secret in a user's own
//! files.
//!
//! Invariants:
//! * No value leaves: neither `Debug` nor `Serialize` exist, and a mark holds a name only.
//! * Redacting twice is redacting once.
//! * Time is linear in the text: each place is compared with a bounded number of bounded forms.
//! * A text without secrets comes back as it was.

mod known;
mod pattern;
mod stream;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::Value;

use known::Forms;
pub use stream::Stream;

/// Shorter values are ordinary words; replacing them would maim everything.
pub const MIN_BYTES: usize = 8;
/// Of a longer value only the beginning is known.
const MAX_BYTES: usize = 4 * 1024;
/// More values than this are not kept.
const MAX_VALUES: usize = 64;
const MAX_NAME: usize = 40;
const MARK: &[u8] = b"[secret:";
/// Values at least this long are also found when only one half of them is there: output is cut in the middle.
const MIN_BYTES_FOR_HALVES: usize = 32;

/// Words in the name of a variable that say that its value is nobody's business.
const TELLING_WORDS: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"];

/// Does a variable of this name hold a secret?
pub fn looks_secret(variable: &str) -> bool {
    let name = variable.to_ascii_uppercase();
    let telling = |part: &str| TELLING_WORDS.iter().any(|word| part.strip_suffix('S').unwrap_or(part).ends_with(word));
    name.split(['_', '-']).any(telling)
}

/// What is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The known values.
    Known,
    /// The known values, and whatever looks like a key.
    Everything,
}

/// What a place in a text holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    /// This many bytes.
    Secret(usize),
    /// The text ends before it can be told.
    Unclear,
}

/// The known secrets.
#[derive(Default, Clone)]
pub struct Secrets {
    /// Marks, by the number that a form carries.
    marks: Vec<String>,
    values: Vec<String>,
    forms: Forms,
}

impl Secrets {
    /// Remembers a value under a name that may be shown. Short values are left alone; says whether it was kept.
    pub fn add(&mut self, name: &str, value: &str) -> bool {
        let value = value.trim();
        if value.len() < MIN_BYTES || self.values.len() >= MAX_VALUES {
            return false;
        }
        if self.values.iter().any(|known| known == value) {
            return true;
        }
        let value = cut(value, MAX_BYTES);
        let number = self.marks.len();
        self.marks.push(mark(name));
        self.forms.add(value, number);
        if value.len() >= MIN_BYTES_FOR_HALVES {
            let (first, second) = value.split_at(cut(value, value.len() / 2).len());
            self.forms.add(first, number);
            self.forms.add(second, number);
        }
        self.values.push(value.to_owned());
        true
    }

    /// All that another one knows.
    pub fn join(&mut self, other: &Secrets) {
        for (mark, value) in other.marks.iter().zip(&other.values) {
            let name = mark.trim_start_matches("[secret:").trim_end_matches(']');
            self.add(name, value);
        }
    }

    /// How many values are known.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// A text without known values and without anything that looks like a key.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        // Known values first: what only looks like a key may run into one and would leave the rest of it.
        match self.text(text, Scope::Known) {
            Cow::Borrowed(text) => self.text(text, Scope::Everything),
            Cow::Owned(clean) => Cow::Owned(self.text(&clean, Scope::Everything).into_owned()),
        }
    }

    pub fn redact_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        match self.bytes(bytes, Scope::Known) {
            Cow::Borrowed(bytes) => self.bytes(bytes, Scope::Everything),
            Cow::Owned(clean) => Cow::Owned(self.bytes(&clean, Scope::Everything).into_owned()),
        }
    }

    /// A text without known values.
    pub fn redact_known<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.text(text, Scope::Known)
    }

    /// Takes known values out of every text of a JSON value, keys included. Says whether there were any.
    pub fn redact_json(&self, value: &mut Value) -> bool {
        if self.is_empty() {
            return false;
        }
        match value {
            Value::String(text) => match self.text(text, Scope::Known) {
                Cow::Borrowed(_) => false,
                Cow::Owned(clean) => {
                    *text = clean;
                    true
                }
            },
            // No shortcut: each part is to be cleaned.
            Value::Array(items) => items.iter_mut().fold(false, |found, item| self.redact_json(item) | found),
            Value::Object(members) => {
                let mut found = members.values_mut().fold(false, |found, item| self.redact_json(item) | found);
                let telling: Vec<String> = members
                    .keys()
                    .filter(|key| matches!(self.text(key, Scope::Known), Cow::Owned(_)))
                    .cloned()
                    .collect();
                for key in telling {
                    if let Some(item) = members.remove(&key) {
                        members.insert(self.text(&key, Scope::Known).into_owned(), item);
                        found = true;
                    }
                }
                found
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Is anything to be taken out?
    pub fn betrayed_by(&self, bytes: &[u8], scope: Scope) -> bool {
        matches!(self.bytes(bytes, scope), Cow::Owned(_))
    }

    fn text<'a>(&self, text: &'a str, scope: Scope) -> Cow<'a, str> {
        match self.bytes(text.as_bytes(), scope) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            // Values are whole characters, so what is left is, too; lossy only for the compiler.
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    fn bytes<'a>(&self, text: &'a [u8], scope: Scope) -> Cow<'a, [u8]> {
        if scope == Scope::Known && self.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut scan = Scan { out: Vec::new(), copied: 0, before: [b' '; 2] };
        self.scan(text, scope, false, &mut scan);
        if scan.copied == 0 {
            return Cow::Borrowed(text);
        }
        scan.out.extend_from_slice(&text[scan.copied..]);
        Cow::Owned(scan.out)
    }

    /// Goes through a text. With `more` to come it stops where the end could be the start of a secret; returns
    /// how far it got.
    fn scan(&self, text: &[u8], scope: Scope, more: bool, scan: &mut Scan) -> usize {
        let mut at = 0;
        while let Some(byte) = text.get(at) {
            let may_start = *byte == MARK[0]
                || self.forms.may_start(*byte)
                || (scope == Scope::Everything && pattern::may_start(*byte));
            if !may_start {
                at += 1;
                continue;
            }
            if let Some(length) = self.mark_at(&text[at..]) {
                at += length;
                continue;
            }
            let (known, number) = self.forms.find(text, at, more);
            let (found, name) = match known {
                Found::Nothing if scope == Scope::Everything && self.fresh_word(text, at, scan) => {
                    let (found, name) = pattern::find(&text[at..], more);
                    (found, Cow::Owned(mark(name)))
                }
                found => (found, Cow::Borrowed(self.marks.get(number).map_or("", String::as_str))),
            };
            match found {
                Found::Secret(length) => {
                    scan.out.extend_from_slice(&text[scan.copied..at]);
                    scan.out.extend_from_slice(name.as_bytes());
                    at += length;
                    scan.copied = at;
                }
                Found::Unclear => return at,
                Found::Nothing if more && could_be_mark(&text[at..]) => return at,
                Found::Nothing => at += 1,
            }
        }
        at
    }

    /// A key begins where a word does: `task-…` holds no `sk-…`. The end of a mark counts as such a place.
    fn fresh_word(&self, text: &[u8], at: usize, scan: &Scan) -> bool {
        let back = |n: usize| match at.checked_sub(n) {
            Some(place) if place < scan.copied => b']',
            Some(place) => text.get(place).copied().unwrap_or(b' '),
            None => scan.before[n - at - 1],
        };
        match back(1) {
            // In JSON text a line break is two characters, the second a letter.
            b'n' | b'r' | b't' => back(2) == b'\\',
            byte => !byte.is_ascii_alphanumeric() && byte != b'_',
        }
    }

    /// The length of a mark that stands here.
    fn mark_at(&self, text: &[u8]) -> Option<usize> {
        let rest = text.strip_prefix(MARK)?;
        let end = rest.iter().take(MAX_NAME + 1).position(|byte| *byte == b']')?;
        rest[..end].iter().all(|byte| is_name(*byte)).then_some(MARK.len() + end + 1)
    }
}

/// How far a scan has got.
struct Scan {
    out: Vec<u8>,
    /// What comes before this place is in `out`.
    copied: usize,
    /// What stood before the text, the nearest first.
    before: [u8; 2],
}

/// Could this be the start of a mark that is cut here?
fn could_be_mark(text: &[u8]) -> bool {
    match text.strip_prefix(MARK) {
        Some(name) => name.len() <= MAX_NAME && name.iter().all(|byte| is_name(*byte)),
        None => MARK.starts_with(text),
    }
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

fn mark(name: &str) -> String {
    let name: String = name.chars().filter(|c| u8::try_from(*c).is_ok_and(is_name)).take(MAX_NAME).collect();
    format!("[secret:{name}]")
}

/// At most this many bytes, at the end of a character.
fn cut(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
