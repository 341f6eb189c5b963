//! `nightloop retry`, `skip` and `split`: what is to become of an item that is stuck.
//!
//! Role: find the decision that waits about the item, and answer it; say plainly where none does. Not its role: what an
//! answer does (the machine), writing prd.json (`engine::by_hand`).

use std::path::{Path, PathBuf};

use clap::Args;

use crate::engine::by_hand;
use crate::engine::command::Command;
use crate::engine::error::EngineError;
use crate::engine::offline;
use crate::engine::places::StateRoot;
use crate::engine::recorded;
use crate::machine::event::DecisionAnswered;
use crate::machine::run::RunState;
use crate::model::decision::{Answer, DecisionId, Request};
use crate::model::ids::RunId;
use crate::playbook::passes::state::{decisions, has_items};

use super::{Outcome, again, hold, order, select, text, typed};

/// The longest text of the parts.
const MOST_PARTS: u64 = 1 << 20;

/// Which item of which run.
#[derive(Debug, Args)]
pub struct Which {
    /// The item, by its id in the PRD.
    item: String,
    /// The run; default: the run of this directory.
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
    /// Continue the run at once, where it had stopped.
    #[arg(long)]
    resume: bool,
}

#[derive(Debug, Args)]
pub struct Retry {
    #[command(flatten)]
    which: Which,
    /// What its author should try.
    #[arg(long, value_name = "TEXT")]
    hint: Option<String>,
}

#[derive(Debug, Args)]
pub struct Skip {
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Args)]
pub struct Split {
    #[command(flatten)]
    which: Which,
    /// The parts, as a JSON list in a file; without it $EDITOR opens a draft.
    #[arg(long, value_name = "FILE")]
    with: Option<PathBuf>,
}

pub fn retry(here: &Path, options: &Retry) -> Outcome {
    let stuck = Found::find(here, &options.which)?;
    let hint = options.hint.as_deref().map(str::trim).filter(|hint| !hint.is_empty());
    if options.hint.is_some() && hint.is_none() {
        return Err(EngineError::usage("the hint is empty", "say what to try: --hint \"use tr, not sed\""));
    }
    let (answer, said) = match hint {
        Some(hint) => (Answer::Text(hint.to_owned()), "is tried again, with your hint"),
        None => (Answer::Retry, "is tried again"),
    };
    stuck.answer(here, answer, said)
}

pub fn skip(here: &Path, options: &Skip) -> Outcome {
    Found::find(here, &options.which)?.answer(here, Answer::Skip, "is left out of this run")
}

pub fn split(here: &Path, options: &Split) -> Outcome {
    let stuck = Found::find(here, &options.which)?;
    let run_dir = crate::journal::RunDir::open(&stuck.root.run(&stuck.run))?;
    let workspace = crate::engine::genesis::workspace_of(&run_dir)?;
    let file = stuck.state.loop_file().prd().file.clone();
    let item = &options.which.item;
    let parts = match &options.with {
        Some(path) => bounded(path)?,
        None => edited(&by_hand::draft(&workspace, &file, item)?)?,
    };
    let ids = by_hand::split(&workspace, &file, item, &parts)?;
    text::line(text::safe(&format!("{file}: {item} is split into {}", ids.join(", "))));
    stuck.answer(here, Answer::Split, "stays in the file, linked to its parts")
}

fn bounded(path: &Path) -> Result<String, EngineError> {
    let failed = |e| EngineError::io("cannot read the parts", path, e);
    if std::fs::metadata(path).map_err(failed)?.len() > MOST_PARTS {
        return Err(EngineError::usage(format!("{} has more than {MOST_PARTS} bytes", path.display()), "shorten it"));
    }
    std::fs::read_to_string(path).map_err(failed)
}

/// The draft as a person left it.
fn edited(draft: &str) -> Result<String, EngineError> {
    let dir = std::env::temp_dir();
    let failed = |e| EngineError::io("cannot write the draft", &dir, e);
    let file = tempfile::Builder::new().prefix("nightloop-split-").suffix(".json").tempfile().map_err(failed)?;
    std::fs::write(file.path(), draft).map_err(failed)?;
    match hold::edit(&file.path().to_string_lossy()) {
        Some(0) => bounded(file.path()),
        _ => Err(EngineError::usage(
            "the editor ended with an error: nothing was changed",
            "set EDITOR, or give the parts with --with FILE",
        )),
    }
}

/// An item that a run asks about.
struct Found {
    root: StateRoot,
    run: RunId,
    state: RunState,
    item: String,
    decision: DecisionId,
    resume: bool,
}

impl Found {
    fn find(here: &Path, which: &Which) -> Result<Self, EngineError> {
        order::refuse_tools()?;
        let root = StateRoot::locate()?;
        let selected = select::run(&root, here, which.run.as_deref())?;
        if let Some(note) = &selected.note {
            text::line(note);
        }
        let state = recorded::read_state(&root, &selected.run)?;
        let decision = asked(&state, &which.item)?;
        Ok(Self { root, run: selected.run, state, item: which.item.clone(), decision, resume: which.resume })
    }

    fn answer(self, here: &Path, answer: Answer, said: &str) -> Outcome {
        let Self { root, run, decision: id, item, resume, .. } = self;
        if offline::is_driven(&root, &run) {
            return order::deliver(&root, &run, Command::Answer { id, answer, note: None, document: None });
        }
        let answered = DecisionAnswered { id, answer, note: None, by: order::sender() };
        offline::answer(&root, &run, answered, None)?;
        let goes_on = if resume { "" } else { "; `nightloop resume` continues the run" };
        text::line(text::safe(&format!("{item} {said}{goes_on}")));
        if resume {
            let here = here.to_string_lossy();
            return again(&["-C", &here, "resume", run.as_str()]);
        }
        Ok(0)
    }
}

/// The decision that waits about this item, or why there is none.
fn asked(state: &RunState, item: &str) -> Result<DecisionId, EngineError> {
    let about = |request: &Request| matches!(request, Request::Stuck { subject: Some(id), .. } if id == item);
    if let Some(decision) = state.operator.open().find(|decision| about(&decision.request)) {
        return Ok(decision.id);
    }
    if !has_items(state) {
        return Err(EngineError::usage(
            format!("run {} has no items", state.run()),
            "`nightloop inbox` shows what waits, and how it is answered",
        ));
    }
    let items = &state.passes().prd.items;
    let Some(known) = state.passes().prd.item(item) else {
        let names: Vec<&str> = items.iter().map(|item| item.id.as_str()).collect();
        return Err(EngineError::usage(
            format!("run {} has no item `{item}`", state.run()),
            format!("its items: {}", typed::listed(&names)),
        ));
    };
    let answered =
        decisions(state, Some(item)).next().and_then(|decision| Some((decision.id, decision.answer.as_ref()?)));
    let why = match (known.passes, answered, state.passes().of(Some(item)).count()) {
        (true, ..) => "it passes".to_owned(),
        (false, Some((id, answered)), _) => format!("{id} about it was answered with `{}`", answered.answer.name()),
        (false, None, 0) => "nobody has worked on it yet".to_owned(),
        (false, None, tried) => format!("it has attempts left ({tried} made)"),
    };
    let stuck: Vec<&str> = state
        .operator
        .open()
        .filter_map(|decision| match &decision.request {
            Request::Stuck { subject: Some(item), .. } => Some(item.as_str()),
            _ => None,
        })
        .collect();
    let hint = match stuck.as_slice() {
        [] => "nothing of this run is stuck; `nightloop status` shows it".to_owned(),
        stuck => format!("stuck: {}", typed::listed(stuck)),
    };
    Err(EngineError::usage(format!("{item} is not stuck: {why}"), hint))
}
