//! What people were asked and said, as files: decisions.json for the record, inbox.md for whoever has to answer.

use serde_json::{Value, json};

use crate::journal::{Blobs, JournalError};
use crate::machine::operator::{Decision, DecisionStatus, SteerStatus};
use crate::machine::run::RunState;
use crate::model::decision::{Request, Severity, VisionIssue};
use crate::model::learnings::flatten;

use crate::playbook::passes::stuck::stuck;

use super::rewritten;

/// Everything between the run and people; `None` where they had nothing to do with each other.
pub fn decisions(state: &RunState) -> Option<Value> {
    let operator = &state.operator;
    if operator.decisions.is_empty() && operator.steers.is_empty() && operator.overrides.is_empty() {
        return None;
    }
    let decisions: Vec<Value> = operator.decisions.iter().map(decision).collect();
    let words: Vec<Value> = operator
        .steers
        .iter()
        .map(|steer| {
            let (status, call) = match &steer.status {
                SteerStatus::Queued => ("queued", None),
                SteerStatus::Delivered { call } => ("delivered", Some(call)),
                SteerStatus::Acknowledged { call } => ("acknowledged", Some(call)),
            };
            json!({"number": steer.number, "by": steer.by, "text": steer.text, "status": status, "call": call})
        })
        .collect();
    Some(json!({
        "decisions": decisions,
        "words": words,
        "overrides": operator.overrides,
        "waited_millis": operator.waited_millis,
    }))
}

fn decision(decision: &Decision) -> Value {
    json!({
        "id": decision.id.to_string(),
        "request": decision.request,
        "why": decision.why,
        "status": match decision.status {
            DecisionStatus::Open => "open",
            DecisionStatus::Answered => "answered",
            DecisionStatus::Closed => "closed",
        },
        "answer": decision.answer,
        "checks": decision.checks,
        "last_check": decision.last_check,
        "detail": decision.detail,
    })
}

/// What is asked, line by line: all of it, because whoever reads the file may have nothing else.
fn asked(request: &Request) -> Vec<String> {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    match request {
        Request::Vision { issues } => {
            let issue = |issue: &VisionIssue| {
                let severity = match issue.severity {
                    Severity::Hard => "HARD",
                    Severity::Soft => "SOFT",
                };
                let alternatives = issue.alternatives.iter().map(|one| format!("- {one}"));
                std::iter::once(format!("{severity}: {}", issue.text)).chain(alternatives).collect::<Vec<_>>()
            };
            issues.iter().flat_map(issue).collect()
        }
        Request::Question { question: text, choices } | Request::Escalation { problem: text, options: choices } => {
            let choices = choices.iter().map(|choice| format!("- {choice}"));
            lines(text).into_iter().chain(choices).collect()
        }
        Request::HumanAction { .. }
        | Request::Permission { .. }
        | Request::Refinement { .. }
        | Request::Tampering { .. }
        | Request::SpendLimit { .. }
        | Request::Stuck { .. } => lines(&request.gist()),
    }
}

/// The brief for a person: what waits, why, and how to answer. `None`: nothing ever waited.
pub fn inbox(state: &RunState, blobs: &Blobs) -> Result<Option<String>, JournalError> {
    if state.operator.decisions.is_empty() {
        return Ok(None);
    }
    let mut open = state.operator.open().peekable();
    if open.peek().is_none() {
        return Ok(Some("# Nothing waits for a person\n".to_owned()));
    }
    let mut text = format!(
        "# Waiting for a person\n\nRun {} in {}. If nobody answers: {}.\n",
        state.run(),
        state.state,
        state.operator.patience.describe()
    );
    let stuck = if state.began_before_parking() { Vec::new() } else { stuck(state) };
    for decision in open {
        text.push_str(&format!("\n## {} {}\n\n", decision.id, decision.request.name()));
        for line in asked(&decision.request) {
            text.push_str(&format!("> {}\n", flatten(&line)));
        }
        text.push_str(&format!("\nWhy: {}\n", flatten(&decision.why)));
        if let Request::HumanAction { verify: Some(argv), .. } = &decision.request {
            text.push_str(&format!("Verified by: `{}`\n", flatten(&argv.join(" "))));
        }
        if let Some(diff) = rewritten::of_request(&decision.request, blobs)?.filter(|_| !state.began_before_recovery())
        {
            text.push_str(&as_code(&diff));
        }
        if let Some(stuck) = stuck.iter().find(|stuck| stuck.decision == decision.id) {
            text.extend(stuck.output.iter().map(|line| format!("It printed: {line}\n")));
            text.push_str(&format!("Try it again: `{}`\n", stuck.command()));
        }
        text.push_str(&format!("Answer: `nightloop answer {} …` (`nightloop inbox` says how)\n", decision.id));
    }
    text.push_str("\nThen: `nightloop resume`\n");
    Ok(Some(text))
}

/// Foreign text as a block of its own: moved in, so that no line of it ends the block.
fn as_code(text: &str) -> String {
    let lines = text.lines().map(|line| format!("    {}\n", flatten(line)));
    format!("\n{}\n", lines.collect::<String>())
}
