//! What the words of a description give away: twins, instructions about the plan, too large a scope.
//!
//! Plain matching of whole words, so that "install remaining" is not "all remaining". Exact integers, no floats.

use std::collections::BTreeSet;

/// Instructions to whoever runs the plan, which are no work of their own.
const META: &[&str] = &[
    "continue with execution",
    "continue execution",
    "proceed with execution",
    "proceed with the plan",
    "continue with the plan",
    "no new tasks needed",
    "no new tasks are needed",
    "no new task needed",
    "no new task is needed",
    "no further tasks",
    "no additional tasks",
    "no changes needed",
    "already covered",
    "already in the plan",
    "mark as done",
    "mark as complete",
    "mark as completed",
    "mark task",
    "mark tasks",
];

/// `run tasks 1.2 to 1.5`: one of these, then `task` or `tasks`, then something with a digit.
const RUNS: &[&str] = &["run", "execute", "complete", "finish", "implement", "do", "perform", "start"];

/// More than one task's worth.
const OVERSIZED: &[&str] = &[
    "all remaining",
    "everything for",
    "everything else",
    "everything that is left",
    "the rest of the plan",
    "all features",
    "all other features",
];

/// `entire frontend`, `whole application`.
const WHOLE: &[&str] = &["entire", "whole"];
const LARGE: &[&str] = &[
    "frontend",
    "backend",
    "app",
    "application",
    "system",
    "project",
    "codebase",
    "ui",
    "api",
    "server",
    "client",
    "product",
    "site",
    "website",
    "database",
    "stack",
    "platform",
];

/// An instruction about the plan, as it was found.
pub fn meta_instruction(description: &str) -> Option<String> {
    let words = words(description);
    let run = words.windows(3).find(|three| {
        RUNS.contains(&three[0].as_str())
            && matches!(three[1].as_str(), "task" | "tasks")
            && three[2].contains(|c: char| c.is_ascii_digit())
    });
    phrase(&words, META).or_else(|| run.map(|three| three.join(" ")))
}

/// A scope that is too large, as it was found.
pub fn oversized(description: &str) -> Option<String> {
    let words = words(description);
    let whole = words
        .windows(2)
        .find(|two| WHOLE.contains(&two[0].as_str()) && LARGE.contains(&two[1].as_str()))
        .map(|two| two.join(" "));
    phrase(&words, OVERSIZED).or(whole)
}

/// Do the two share at least three quarters of their words?
pub fn similar(one: &str, other: &str) -> bool {
    let (one, other): (BTreeSet<String>, BTreeSet<String>) =
        (words(one).into_iter().collect(), words(other).into_iter().collect());
    let all = one.union(&other).count();
    all > 0 && 4 * one.intersection(&other).count() >= 3 * all
}

fn phrase(words: &[String], phrases: &[&str]) -> Option<String> {
    let found = phrases.iter().find(|phrase| {
        let wanted: Vec<&str> = phrase.split(' ').collect();
        words.windows(wanted.len()).any(|window| window.iter().eq(wanted.iter()))
    });
    found.map(|phrase| (*phrase).to_owned())
}

/// In lower case, without the punctuation around them; `1.2` stays one word.
fn words(text: &str) -> Vec<String> {
    let words = text.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase());
    words.filter(|word| !word.is_empty()).collect()
}
