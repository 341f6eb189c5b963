//! What the ready screen says about a loop before anything is spent, in a playbook's own words.

use std::collections::BTreeSet;

use super::prd::{Counts, Needs, Prd};
use super::safe::Safe;

/// Lines of one kind that are worth reading.
const MOST_WARNINGS: usize = 5;

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
    /// How many wait for others.
    pub waiting: usize,
    /// How many name a command of their own.
    pub commands: usize,
    /// What is worth saying before anything is spent: waiting that makes no sense, criteria that are not met.
    pub warnings: Vec<Safe>,
    /// The branch that the file names, and the one that is checked out.
    pub branch: Option<Safe>,
    pub current: Option<Safe>,
}

impl From<&Prd> for ItemCounts {
    fn from(prd: &Prd) -> Self {
        let Counts { all, passing, .. } = prd.counts();
        let next = prd.next_item(&BTreeSet::new());
        let waiting = prd.waiting();
        let needs = Needs::of(&waiting);
        let silent = prd.is_silent().then(|| "no item says whether it passes: none does".to_owned());
        let warnings = silent.into_iter().chain(needs.warnings(&waiting, MOST_WARNINGS)).chain(half_done(prd));
        Self {
            all,
            passing,
            next: next.map(|item| Safe::line(&format!("{} {}", item.id, item.title))),
            waiting: needs.open.iter().filter(|open| !open.is_empty()).count(),
            commands: prd.items().iter().filter(|item| item.command.is_some()).count(),
            warnings: warnings.map(|line| Safe::line(&line)).collect(),
            branch: prd.branch().map(Safe::line),
            current: None,
        }
    }
}

/// Items that say that they pass, and of their parts that these do not.
pub fn half_done(prd: &Prd) -> impl Iterator<Item = String> {
    let passing = prd.items().iter().filter(|item| item.passes);
    let half = passing.map(|item| (item, item.parts_open())).filter(|(_, (open, _))| *open > 0);
    half.take(MOST_WARNINGS).map(|(item, (open, all))| {
        format!("{} says that it passes, but {open} of its {all} criteria or subtasks do not", item.id)
    })
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
