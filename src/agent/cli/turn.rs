//! What is known of a turn while a program's output is read, and what it comes to in the end.
//!
//! Role: the state every profile fills in, and the one place where a turn is called finished or failed.
//! Not its role: the meaning of a line.
//!
//! Invariants: texts and counts are bounded; [`Turn::conclude`] gives `Finished` only for a turn that the
//! program called finished and that ended with code 0.

use std::time::Duration;

use jiff::{Timestamp, Zoned};
use serde_json::Value;

use crate::agent::error::{self, CallError, ProgramFault};
use crate::agent::message::Usage;
use crate::agent::program::{Earlier, Finished};
use crate::model::act::Act;
use crate::model::decimal::Exact;
use crate::model::loop_file::ProgramProfile;

use super::{Exit, argv, fault, reset};

/// The last words that are kept: the end of them, where the report is.
const MAX_WORDS: usize = 1024 * 1024;
/// Broken lines that are told one by one.
const MAX_NOTES: u32 = 20;
/// How much of standard error is looked at.
const STDERR_TAIL: usize = 4 * 1024;
/// How much of what a program reports as its trouble is looked at.
const MAX_TROUBLE: usize = 4 * 1024;
/// Longest piece of a program's own words in an error, in bytes.
const MAX_QUOTE: usize = 280;

#[derive(Default)]
pub(super) struct Turn {
    words: String,
    pub session: Option<String>,
    pub model: Option<String>,
    pub usage: Usage,
    /// What the session had used before this turn.
    pub earlier: Earlier,
    pub cost_usd: Option<Exact>,
    /// The program said that it has finished.
    pub finished: bool,
    /// What the program itself reported as gone wrong.
    pub trouble: Option<Trouble>,
    notes: u32,
}

/// Something that went wrong, as the program told it.
#[derive(Debug, Clone, Default)]
pub(super) struct Trouble {
    /// When the program names the reason, not only the words.
    pub fault: Option<ProgramFault>,
    pub words: String,
    pub resets_at: Option<Timestamp>,
}

impl Turn {
    /// Reads one line of JSON; a broken one becomes a note.
    pub fn event(
        &mut self,
        line: &str,
        on_act: &mut dyn FnMut(Act),
        read: impl FnOnce(&Value, &mut Self, &mut dyn FnMut(Act)),
    ) {
        match serde_json::from_str::<Value>(line) {
            Ok(event) if event.is_object() => read(&event, self, on_act),
            Ok(_) | Err(_) => self.note(format!("not an event: {}", head(line.trim(), MAX_QUOTE)), on_act),
        }
    }

    /// A remark about the output itself. Only the first ones are told.
    pub fn note(&mut self, text: String, on_act: &mut dyn FnMut(Act)) {
        self.notes = self.notes.saturating_add(1);
        if self.notes <= MAX_NOTES {
            on_act(Act::Noted { text }.bounded());
        } else if self.notes == MAX_NOTES + 1 {
            on_act(Act::Noted { text: "more lines could not be read; they are not told one by one".into() });
        }
    }

    /// These are its last words now.
    pub fn say(&mut self, words: &str) {
        self.words.clear();
        self.keep_words(words);
    }

    /// These words go on from the last ones.
    pub fn keep_words(&mut self, words: &str) {
        self.words.push_str(words);
        if self.words.len() > 2 * MAX_WORDS {
            self.cut_words();
        }
    }

    pub fn words(&self) -> &str {
        &self.words
    }

    pub fn forget_words(&mut self) {
        self.words.clear();
    }

    fn cut_words(&mut self) {
        if let Some(over) = self.words.len().checked_sub(MAX_WORDS) {
            let from = (over..=self.words.len()).find(|at| self.words.is_char_boundary(*at));
            self.words.drain(..from.unwrap_or_default());
        }
    }

    /// The program names its session.
    pub fn name_session(&mut self, name: Option<&str>) {
        if let Some(name) = name.filter(|name| argv::is_session_name(name)) {
            self.session = Some(name.to_owned());
        }
    }

    pub fn name_model(&mut self, name: Option<&str>) {
        if let Some(name) = name.filter(|name| !name.is_empty() && !name.starts_with('<')) {
            self.model = Some(error::token(name));
        }
    }

    pub fn add_cost(&mut self, cost: Option<Exact>) {
        if let Some(cost) = cost {
            self.cost_usd = self.cost_usd.unwrap_or(Exact::ZERO).checked_add(cost);
        }
    }

    /// The program said that all went well: what went wrong on the way no longer counts.
    pub fn finish_well(&mut self) {
        self.finished = true;
        self.trouble = None;
    }

    /// The program reports trouble. What is known of the reason is kept when later words say less.
    pub fn trouble(&mut self, fault: Option<ProgramFault>, words: &str) {
        let known = self.trouble.get_or_insert_default();
        known.fault = fault.or(known.fault);
        if !words.trim().is_empty() {
            known.words = head(words.trim(), MAX_TROUBLE).to_owned();
        }
    }

    pub fn resets_at(&mut self, at: Timestamp) {
        self.trouble.get_or_insert_default().resets_at = Some(at);
    }

    pub fn conclude(
        mut self,
        profile: ProgramProfile,
        exit: Exit,
        stderr: &[u8],
        now: &Zoned,
    ) -> Result<Finished, CallError> {
        if self.finished && self.trouble.is_none() && exit == Exit::Code(0) {
            self.cut_words();
            return Ok(Finished {
                text: self.words.trim().to_owned(),
                session: self.session,
                model: self.model,
                usage: self.usage,
                cost_usd: self.cost_usd,
            });
        }
        Err(self.failure(profile, exit, stderr, now))
    }

    fn failure(self, profile: ProgramProfile, exit: Exit, stderr: &[u8], now: &Zoned) -> CallError {
        let told = self.trouble.unwrap_or_default();
        let stderr = String::from_utf8_lossy(tail(stderr, STDERR_TAIL)).into_owned();
        let sources = [told.words.as_str(), stderr.as_str()];
        let until = told.resets_at.and_then(|at| reset::until(at, now));
        let found = sources.iter().find_map(|words| {
            let wait = until.or_else(|| reset::wait(words, now));
            fault::in_words(words, wait.is_some()).map(|fault| (fault, wait, *words))
        });
        let (fault, wait, words) = match (told.fault, found) {
            (Some(fault), Some((_, wait, _))) => (fault, wait, told.words.as_str()),
            (Some(fault), None) => (fault, until.or_else(|| reset::wait(&told.words, now)), told.words.as_str()),
            (None, Some((fault, wait, words))) => (fault, wait, words),
            (None, None) => (ProgramFault::Crash, None, ""),
        };
        let words = if words.trim().is_empty() {
            sources.into_iter().find(|words| !words.trim().is_empty()).unwrap_or_default()
        } else {
            words
        };
        let line = words.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        // A report begins with what matters; what was just printed ends with it.
        let said = match words == told.words {
            true => head(&line, MAX_QUOTE),
            // Of what a crash printed, the last line that says something.
            false if fault == ProgramFault::Crash => head(fault::last_line(words), MAX_QUOTE),
            false => end(&line, MAX_QUOTE),
        };
        let message = fault::message(profile, fault, exit, self.finished, said);
        CallError::Program { fault, message, retry_after: wait.filter(|_| fault == ProgramFault::RateLimit) }
    }
}

/// At most `limit` bytes from the beginning, cut between characters.
fn head(text: &str, limit: usize) -> &str {
    let at = (0..=limit.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..at.unwrap_or_default()]
}

/// At most `limit` bytes from the end, cut between characters.
fn end(text: &str, limit: usize) -> &str {
    let at = (text.len().saturating_sub(limit)..=text.len()).find(|at| text.is_char_boundary(*at));
    &text[at.unwrap_or_default()..]
}

fn tail(bytes: &[u8], limit: usize) -> &[u8] {
    &bytes[bytes.len().saturating_sub(limit)..]
}

/// Text of a JSON value: a string as it is, anything else as JSON.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// `{"text": …}` blocks, or plain text, as tools give their results.
pub(super) fn blocks_text(content: &Value) -> String {
    match content {
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str).or(block.as_str()));
            texts.collect::<Vec<_>>().join("\n")
        }
        other => text_of(other),
    }
}

/// A count in `object`, zero when it is absent or no count.
pub(super) fn count(object: &Value, name: &str) -> u64 {
    object.get(name).and_then(Value::as_u64).unwrap_or_default()
}

pub(super) fn string<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get(name).and_then(Value::as_str)
}

/// Money from the digits that were sent; never through a float.
pub(super) fn money(raw: Option<&serde_json::value::RawValue>) -> Option<Exact> {
    Exact::parse(raw?.get()).ok()
}

/// What `later` has more than `earlier`.
pub(super) fn since(later: Usage, earlier: &Usage) -> Usage {
    Usage {
        input_tokens: later.input_tokens.saturating_sub(earlier.input_tokens),
        cache_creation_input_tokens: later
            .cache_creation_input_tokens
            .saturating_sub(earlier.cache_creation_input_tokens),
        cache_read_input_tokens: later.cache_read_input_tokens.saturating_sub(earlier.cache_read_input_tokens),
        output_tokens: later.output_tokens.saturating_sub(earlier.output_tokens),
        thinking_tokens: later.thinking_tokens.saturating_sub(earlier.thinking_tokens),
        ..later
    }
}

pub(super) fn plus(one: Usage, other: &Usage) -> Usage {
    Usage {
        input_tokens: one.input_tokens.saturating_add(other.input_tokens),
        cache_creation_input_tokens: one.cache_creation_input_tokens.saturating_add(other.cache_creation_input_tokens),
        cache_read_input_tokens: one.cache_read_input_tokens.saturating_add(other.cache_read_input_tokens),
        output_tokens: one.output_tokens.saturating_add(other.output_tokens),
        thinking_tokens: one.thinking_tokens.saturating_add(other.thinking_tokens),
        ..one
    }
}

/// A wait as short as nothing is still an answer.
pub(super) fn at_least_zero(span: jiff::SignedDuration) -> Duration {
    Duration::try_from(span).unwrap_or_default()
}
