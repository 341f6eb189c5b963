//! What an event is in English: one short line for people, and what kind of news it is.
//!
//! Each family of events says its own (`told`); consoles, lines and lists show the same words. Not here: time, order,
//! drawing. Invariants: every event has words; nothing but foreign text in them needs more than ASCII; foreign text is
//! not cleaned here but as a whole line, by [`Told::cleaned`].

use crate::model::safe::Safe;

use super::state::State;

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    /// The run and its machine.
    Run,
    Agent,
    Check,
    People,
}

/// An event in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub topic: Topic,
    /// Did it go well? `None`: there is no such question.
    pub good: Option<bool>,
    /// Bookkeeping that an operator rarely asks for.
    pub quiet: bool,
    pub text: String,
}

impl Told {
    pub fn new(topic: Topic, text: impl Into<String>) -> Self {
        Self { topic, good: None, quiet: false, text: text.into() }
    }

    pub fn quiet(topic: Topic, text: impl Into<String>) -> Self {
        Self { quiet: true, ..Self::new(topic, text) }
    }

    pub fn judged(topic: Topic, good: bool, text: impl Into<String>) -> Self {
        Self { good: Some(good), ..Self::new(topic, text) }
    }

    /// Worth a line only where it went badly.
    pub fn quiet_if_good(self) -> Self {
        Self { quiet: self.good == Some(true), ..self }
    }

    /// Fit for a screen, a log or a title.
    pub fn cleaned(self) -> Self {
        Self { text: Safe::line(&self.text).to_string(), ..self }
    }
}

/// Where in the run an event stands: what its words need besides itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// `start`, or the iteration: `it3`.
    pub when: String,
    pub state: State,
    /// The iteration that runs, or would run next.
    pub iteration: u32,
    /// Who has just ended a call, and what it was for.
    pub who: String,
}

/// `1 file`, `2 files`.
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Of a check that passes where there is nothing.
pub fn proves_nothing(check: &str) -> String {
    format!("check `{check}` passes in an empty workspace: it proves nothing by itself")
}
