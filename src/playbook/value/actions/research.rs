//! RESEARCH: look up what repeated fixes did not solve; else ask a person.
//!
//! Role: give checks at their limit new fix attempts when something new is known. Not its role: fixing.
//!
//! Invariants: kept for each check by itself, so that another failure resets nothing; a check gets new attempts from
//! research once until it passes: at most twice `max_fix_attempts` fixes are tried for it. A person is asked once.

use crate::machine::event::{DecisionAsked, Event};
use crate::machine::run::RunState;
use crate::machine::todo::Todo;
use crate::model::decision::{Answer, MAX_DECISIONS, Mode, Request};
use crate::model::purpose::{Purpose, Tool};
use crate::model::value::tools::ResearchReport;
use crate::model::value::{Outcome, Verification, VerificationStatus};
use crate::playbook::value::event::{ResearchKept, VerificationPut};
use crate::playbook::value::state::OpenStep;

use crate::playbook::value::finished;

use super::qc::{clipped, named};

/// Of what a check said last this much stands in the question.
const MAX_SAID: usize = 300;

pub fn next(run: &RunState, step: &OpenStep, verifications: &[String]) -> Option<Todo> {
    if open(run, verifications).is_empty() || step.calls_for(Purpose::Research) > 0 {
        return None;
    }
    let subject = Some(verifications.join(","));
    Some(Todo::StartAgent { purpose: Purpose::Research, paraphrase: None, subject })
}

pub fn decide(run: &RunState, step: &OpenStep, verifications: &[String]) -> Vec<Event> {
    let open = open(run, verifications);
    if open.is_empty() {
        return vec![finished(step, Outcome::Neutral, "nothing is left to look up")];
    }
    let names: Vec<_> = open.iter().map(|one| one.id.as_str()).collect();
    if step.last_report(Tool::ReportResearch).is_some() {
        return close(step, &open, true, format!("something was found out about {}", named(&names)));
    }
    match step.decisions.first().and_then(|id| run.operator.decision(*id)) {
        Some(asked) => match asked.closed_with() {
            Some(Answer::Text(text)) => {
                let mut events = vec![heard(&names, text)];
                events.extend(close(step, &open, true, format!("a person knew something about {}", named(&names))));
                events
            }
            _ => close(step, &open, false, format!("nothing was found out about {}", named(&names))),
        },
        None if may_ask(run) => vec![ask(run, &open, &names)],
        None => close(step, &open, false, format!("nothing was found out about {}", named(&names))),
    }
}

/// The checks that fail and were not looked up since they last passed.
fn open<'a>(run: &'a RunState, verifications: &[String]) -> Vec<&'a Verification> {
    let known = verifications.iter().filter_map(|id| run.value().verifications.get(id));
    known.filter(|one| one.status == VerificationStatus::Failed && !one.researched).collect()
}

fn may_ask(run: &RunState) -> bool {
    run.operator.patience.mode == Mode::Wait && run.operator.decisions.len() < MAX_DECISIONS
}

fn ask(run: &RunState, open: &[&Verification], names: &[&str]) -> Event {
    let said = open.iter().filter_map(|one| {
        let last = one.failures.last()?;
        Some(format!("{}: {}, {}", one.id, last.end, clipped(&last.excerpt, MAX_SAID)))
    });
    let said: Vec<_> = said.take(5).collect();
    let question = format!("What do you know about {}?\n{}", named(names), said.join("\n"));
    DecisionAsked {
        id: run.operator.next_id(),
        request: Request::Question { question: question.trim_end().to_owned(), choices: Vec::new() },
        why: "fixes did not help, and research found nothing".to_owned(),
        asked_by: None,
    }
    .into()
}

/// A person's words, kept as research.
fn heard(names: &[&str], text: &str) -> Event {
    let brief = ResearchReport {
        topic: format!("What a person knows about {}", named(names)),
        findings: text.to_owned(),
        sources: vec!["human".to_owned()],
        alternatives: Vec::new(),
        affected_verifications: names.iter().map(|name| (*name).to_owned()).collect(),
    };
    ResearchKept { brief }.into()
}

/// Looked up, with or without a result; new attempts only where something new is known.
fn close(step: &OpenStep, open: &[&Verification], found: bool, detail: String) -> Vec<Event> {
    let (outcome, why) = if found {
        (Outcome::Neutral, "looked up: it may be tried again")
    } else {
        (Outcome::NoProgress, "looked up without a result")
    };
    let puts = open.iter().map(|one| {
        let mut verification = (*one).clone();
        verification.researched = true;
        if found {
            verification.fix_attempts = 0;
        }
        VerificationPut { verification: Box::new(verification), why: why.to_owned() }.into()
    });
    puts.chain([finished(step, outcome, detail)]).collect()
}

#[cfg(test)]
mod tests;
