//! What the steps that judge and steer ask a person, and the texts they write.
//!
//! Not its role: waiting (the machine does), answers (never invented). Invariant: a run asks a bounded number of
//! times; who cannot ask any more gets `None` and has to go on without an answer.

use crate::machine::event::{DecisionAsked, Event};
use crate::machine::run::RunState;
use crate::model::decision::{Answer, MAX_DECISIONS, Request};
use crate::playbook::value::state::OpenStep;

/// The longest text that goes into a question.
pub const MAX_ASKED: usize = 4_000;
/// The longest detail of a finished step.
pub const MAX_DETAIL: usize = 1_000;

/// The event that asks; `None`: the run has asked too often already.
pub fn ask(run: &RunState, request: Request, why: impl Into<String>) -> Option<Event> {
    let may = run.operator.decisions.len() < MAX_DECISIONS;
    may.then(|| DecisionAsked { id: run.operator.next_id(), request, why: why.into(), asked_by: None }.into())
}

/// Asks for a word of a person: the loop does not know how to go on.
pub fn escalate(run: &RunState, problem: &str, options: &[&str], why: impl Into<String>) -> Option<Event> {
    let options = options.iter().map(|option| (*option).to_owned()).collect();
    ask(run, Request::Escalation { problem: cut(problem, MAX_ASKED), options }, why)
}

/// The answer that closed the step's `nth` question, with its note.
pub fn answer<'a>(run: &'a RunState, step: &OpenStep, nth: usize) -> Option<(&'a Answer, Option<&'a str>)> {
    let decision = run.operator.decision(*step.decisions.get(nth)?)?;
    let note = decision.answer.as_ref().and_then(|answered| answered.note.as_deref());
    decision.closed_with().map(|answer| (answer, note))
}

/// At most so many characters, trimmed; what is cut off shows.
pub fn cut(text: &str, most: usize) -> String {
    let text = text.trim();
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// A list for people: the first few by name, the others by number.
pub fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 8;
    let names: Vec<&str> = names.into_iter().collect();
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_lists_are_bounded_and_say_so() {
        assert_eq!(cut("  short ", 10), "short");
        assert_eq!(cut("äöü äöü", 4), "äöü…");
        let names: Vec<String> = (0..10).map(|n| n.to_string()).collect();
        assert_eq!(list(names.iter().map(String::as_str)), "0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
    }
}
