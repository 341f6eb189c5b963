//! What the ready screen says about a loop before anything is spent, in a playbook's own words.

use std::collections::BTreeSet;

use super::prd::{Counts, Prd};
use super::safe::Safe;

/// How a line is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    Plain,
    Emphasis,
    Muted,
    Bad,
}

/// One line; an empty label goes on with the one before. Foreign text in it is not cleaned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadyLine {
    pub label: &'static str,
    pub text: String,
    pub look: Look,
}

impl ReadyLine {
    pub fn new(label: &'static str, look: Look, text: impl Into<String>) -> Self {
        Self { label, text: text.into(), look }
    }
}

/// The items of a file as they are before the start, or the lines that say why they cannot be used.
pub type Items = Result<ItemCounts, Vec<Safe>>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemCounts {
    pub all: u32,
    pub passing: u32,
    /// The first in order that does not pass.
    pub next: Option<Safe>,
}

impl From<&Prd> for ItemCounts {
    fn from(prd: &Prd) -> Self {
        let Counts { all, passing, .. } = prd.counts();
        let next = prd.next_item(&BTreeSet::new());
        Self { all, passing, next: next.map(|item| Safe::line(&format!("{} {}", item.id, item.title))) }
    }
}

/// What is worth saying about declared checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CheckNote {
    /// When they run.
    pub when: Option<&'static str>,
    /// Is it worth saying where one comes from?
    pub origin: bool,
    /// Is there no run without one?
    pub needed: bool,
}
