//! `nightloop answer`: answers a decision, of a run that is driven or one that stands still.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::engine::command::Command;
use crate::engine::error::EngineError;
use crate::engine::offline;
use crate::engine::places::StateRoot;
use crate::engine::recorded;
use crate::machine::event::DecisionAnswered;
use crate::machine::run::RunState;
use crate::model::decision::{Answer, DecisionId, MAX_PROPOSAL, Request};
use crate::model::digest::Digest;

use super::{Outcome, inbox, order, select, text};

#[derive(Debug, Args)]
pub struct Options {
    /// The decision, for example d1.
    id: String,
    /// The answer; `nightloop inbox` lists the valid ones.
    #[arg(required = true)]
    words: Vec<String>,
    /// A note for whoever asked.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// For `approve`: the text to write instead of the proposed one.
    #[arg(long, value_name = "FILE")]
    with: Option<PathBuf>,
    /// The run; default: the run of this directory.
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
}

pub fn main(here: &Path, options: &Options) -> Outcome {
    order::refuse_tools()?;
    let root = StateRoot::locate()?;
    let selected = select::run(&root, here, options.run.as_deref())?;
    if let Some(note) = &selected.note {
        text::line(note);
    }
    let id = DecisionId::parse(&options.id)
        .ok_or_else(|| EngineError::usage(format!("`{}` is not a decision id", options.id), "it looks like d1"))?;
    let state = recorded::read_state(&root, &selected.run)?;
    let decision = state.operator.decision(id).ok_or_else(|| {
        EngineError::usage(
            format!("run {} has no decision {id}", selected.run),
            "`nightloop inbox` shows what is waiting",
        )
    })?;
    let document = document(&decision.request, options)?;
    let answer = answer(&decision.request, options, document.as_deref())?;
    decision
        .request
        .permits(&answer)
        .map_err(|why| EngineError::usage(format!("{id}: {why}"), inbox::how(&decision.request)))?;
    if offline::is_driven(&root, &selected.run) {
        let note = options.note.clone();
        return order::deliver(&root, &selected.run, Command::Answer { id, answer, note, document });
    }
    let answered = DecisionAnswered { id, answer, note: options.note.clone(), by: order::sender() };
    let state = offline::answer(&root, &selected.run, answered, document.as_deref())?;
    text::line(format!("{id} is answered; `nightloop resume` continues the run"));
    tell_rest(&state);
    Ok(0)
}

fn tell_rest(state: &RunState) {
    for decision in state.operator.open() {
        text::line(format!("{} is still waiting", decision.id));
    }
}

fn answer(request: &Request, options: &Options, document: Option<&str>) -> Result<Answer, EngineError> {
    let (first, rest) = match options.words.split_first() {
        Some((first, rest)) => (first.as_str(), rest.join(" ")),
        None => ("", String::new()),
    };
    let whole = options.words.join(" ");
    Ok(match (first, request) {
        ("quit", _) if rest.is_empty() => Answer::Quit,
        (_, Request::Question { .. } | Request::Escalation { .. }) => Answer::Text(whole),
        ("done", _) => Answer::Done,
        ("check", Request::HumanAction { .. }) => Answer::DoneBy { command: command(&options.words) },
        ("override", Request::HumanAction { .. }) if rest.is_empty() => Answer::Override,
        ("allow", _) => Answer::Allow,
        ("always", _) => Answer::AllowAlways,
        ("deny", _) => Answer::Deny,
        ("accept", _) => Answer::Accept,
        ("reject", _) => Answer::Reject,
        ("acknowledge", _) => Answer::Acknowledge,
        ("retry", Request::Stuck { .. }) if !rest.is_empty() => Answer::Text(rest),
        ("retry", _) => Answer::Retry,
        ("skip", Request::Stuck { .. }) if rest.is_empty() => Answer::Skip,
        ("split", Request::Stuck { subject: Some(_), .. }) if rest.is_empty() => Answer::Split,
        (_, Request::Stuck { .. }) if !whole.is_empty() => Answer::Text(whole),
        ("revise", _) => Answer::Revise(rest),
        ("approve", Request::Refinement { after, .. }) => {
            Answer::Approve { result: document.map_or(*after, |text| Digest::of(text.as_bytes())) }
        }
        (word, _) => {
            return Err(EngineError::usage(
                format!("`{word}` is not an answer to a {}", request.name()),
                inbox::how(request),
            ));
        }
    })
}

/// The words after `check`: program and arguments, or one text for a shell.
fn command(words: &[String]) -> Vec<String> {
    match words.get(1..).unwrap_or_default() {
        [line] => vec!["sh".to_owned(), "-c".to_owned(), line.clone()],
        argv => argv.to_vec(),
    }
}

/// The document of an approval, where it is not the proposal itself.
fn document(request: &Request, options: &Options) -> Result<Option<String>, EngineError> {
    let Some(path) = &options.with else { return Ok(None) };
    if !matches!(request, Request::Refinement { .. }) {
        return Err(EngineError::usage("--with is only for proposed documents", inbox::how(request)));
    }
    let text = std::fs::read_to_string(path).map_err(|e| EngineError::io("cannot read the document", path, e))?;
    if text.len() > MAX_PROPOSAL {
        return Err(EngineError::usage(format!("the document has more than {MAX_PROPOSAL} bytes"), "shorten it"));
    }
    Ok(Some(text))
}
