//! `nightloop inbox`: the decisions that wait for a person, with what each needs.

use std::path::Path;

use clap::Args;
use serde_json::json;

use crate::engine::places::StateRoot;
use crate::engine::recorded;
use crate::evidence::rewritten;
use crate::journal::RunDir;
use crate::machine::operator::{Decision, DecisionStatus};
use crate::model::decision::{GuardFile, Request, Severity};
use crate::playbook::passes::stuck::{Stuck, stuck};
use crate::tool::permission::is_critical;

use super::{Outcome, select, text};

#[derive(Debug, Args)]
pub struct Options {
    /// The run; default: the run of this directory.
    run: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Also show closed decisions.
    #[arg(long)]
    all: bool,
}

pub fn main(here: &Path, options: &Options) -> Outcome {
    let root = StateRoot::locate()?;
    let selected = select::run(&root, here, options.run.as_deref())?;
    let state = recorded::read_state(&root, &selected.run)?;
    let wanted = |decision: &&Decision| options.all || decision.status != DecisionStatus::Closed;
    let blobs = RunDir::open(&root.run(&selected.run))?.blobs();
    // A text that cannot be read is missed by `verify`; everything else can be shown all the same.
    let diff = |decision: &Decision| rewritten::of_request(&decision.request, &blobs).ok().flatten();
    let decisions: Vec<&Decision> = state.operator.decisions.iter().filter(wanted).collect();
    if options.json {
        let list: Vec<_> = decisions.iter().map(|decision| as_json(decision, diff(decision))).collect();
        let value = json!({"run": state.run(), "decisions": list});
        text::json_line(&value);
        return Ok(0);
    }
    if let Some(note) = &selected.note {
        text::line(note);
    }
    if decisions.is_empty() {
        text::line("nothing is waiting for you");
        return Ok(0);
    }
    let stuck = stuck(&state);
    for decision in decisions {
        let stuck = stuck.iter().find(|stuck| stuck.decision == decision.id);
        show(decision, diff(decision).as_deref(), stuck);
    }
    if state.operator.open().next().is_some() {
        text::line(format!("if nobody answers: {}", state.operator.patience.describe()));
    }
    Ok(0)
}

fn as_json(decision: &Decision, diff: Option<String>) -> serde_json::Value {
    let mut value = json!({
        "id": decision.id.to_string(),
        "request": decision.request,
        "why": decision.why,
        "asked": decision.asked_ts,
        "status": status(decision.status),
        "answer": decision.answer,
        "last_check": decision.last_check,
        "detail": decision.detail,
    });
    if let Some(diff) = diff {
        value["diff"] = diff.into();
    }
    value
}

const fn status(status: DecisionStatus) -> &'static str {
    match status {
        DecisionStatus::Open => "open",
        DecisionStatus::Answered => "answered",
        DecisionStatus::Closed => "closed",
    }
}

fn show(decision: &Decision, diff: Option<&str>, stuck: Option<&Stuck>) {
    text::line(format!("{} {} ({})", decision.id, decision.request.name(), status(decision.status)));
    for line in decision.request.gist().lines() {
        text::line(format!("  {}", text::safe(line)));
    }
    text::line(format!("  why: {}", text::safe(&decision.why)));
    match &decision.request {
        Request::HumanAction { verify: Some(argv), .. } => {
            text::line(format!("  verified by: {}", text::safe(&argv.join(" "))));
        }
        Request::Question { choices, .. } | Request::Escalation { options: choices, .. } if !choices.is_empty() => {
            for choice in choices {
                text::line(format!("  · {}", text::safe(choice)));
            }
        }
        Request::Permission { directory, rule, .. } => {
            text::line(format!("  in {} (rule {})", text::safe(directory), text::safe(rule)));
        }
        Request::Vision { issues } => {
            for issue in issues {
                text::line(format!("  {:?}: {}", issue.severity, text::safe(&issue.text)));
                for alternative in &issue.alternatives {
                    text::line(format!("    · {}", text::safe(alternative)));
                }
            }
        }
        Request::Tampering { files, trials, .. } => {
            text::line(format!("  files: {}", text::safe(&paths(files))));
            for trial in trials {
                text::line(format!("  the {}", text::safe(&trial.what)));
            }
        }
        _ => {}
    }
    if let Some(printed) = stuck.and_then(|stuck| stuck.output.as_ref()) {
        text::line(format!("  it printed: {}", text::safe(printed)));
    }
    for line in diff.unwrap_or_default().lines() {
        text::line(format!("    {}", text::safe(line)));
    }
    if !decision.detail.is_empty() {
        text::line(format!("  last: {}", text::safe(&decision.detail)));
    }
    if decision.status == DecisionStatus::Open {
        text::line(format!("  answer: nightloop answer {} {}", decision.id, how(&decision.request)));
        if let Some(stuck) = stuck {
            text::line(format!("  or: {}", text::safe(&stuck.command())));
        }
        match &decision.request {
            Request::Permission { rule, .. } if is_critical(rule) => {
                text::line("  `always` works only once here: a critical call is asked about every time");
            }
            request if request.host().is_some() => {
                text::line("  for this run: list the host under `sandbox.network` in loop.yaml to keep it");
            }
            Request::Permission { .. } => {
                text::line(
                    "  `always` is kept for later runs in this workspace; `nightloop rules` shows and forgets it",
                );
            }
            _ => {}
        }
    }
}

fn paths(files: &[GuardFile]) -> String {
    files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>().join(", ")
}

/// The words that answer a request of this kind.
pub fn how(request: &Request) -> &'static str {
    match request {
        Request::HumanAction { verify: Some(_), .. } => "done | check 'COMMAND' | override --note 'why' | quit",
        Request::HumanAction { verify: None, .. } => "done | quit",
        Request::Question { .. } | Request::Escalation { .. } => "'your text' | quit",
        Request::Permission { .. } => "allow | always | deny | quit",
        Request::Refinement { .. } => "approve [--with FILE] | reject | quit",
        Request::Vision { issues } if issues.iter().any(|issue| issue.severity == Severity::Hard) => {
            "revise (once the document is edited) | quit"
        }
        Request::Vision { .. } => "revise (once the document is edited) | acknowledge | quit",
        Request::Tampering { .. } => "accept | reject | quit",
        Request::SpendLimit { .. } => "retry | quit",
        Request::Stuck { subject: Some(_), .. } => "retry | 'a hint' | split (once the file is edited) | skip | quit",
        Request::Stuck { subject: None, .. } => "retry | 'a hint' | quit",
    }
}
