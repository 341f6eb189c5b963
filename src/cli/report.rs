//! `nightloop report`: what happened, for people; in the terminal, as Markdown, as one HTML file, or as JSON.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::engine::error::EngineError;
use crate::engine::genesis;
use crate::engine::places::StateRoot;
use crate::engine::recorded;
use crate::evidence::night::Night;
use crate::evidence::night_report;
use crate::journal::RunDir;
use crate::machine::run::RunState;
use crate::model::ids::RunId;

use super::{Outcome, select, text};

#[derive(Debug, Args)]
pub struct Options {
    /// The run; default: the run of this directory.
    run: Option<String>,
    /// Write the report as Markdown.
    #[arg(long, value_name = "FILE")]
    md: Option<PathBuf>,
    /// Write the report as one HTML file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub fn main(here: &Path, options: &Options) -> Outcome {
    let root = StateRoot::locate()?;
    let selected = select::run(&root, here, options.run.as_deref())?;
    let mut night = Night::default();
    let state = recorded::read_through(&root, &selected.run, |stamped, state| night.learn(stamped, state))?;
    let before = run_before(&root, &selected.run);
    let report = night_report::of(&state, &night, before.as_ref());
    let offset = jiff::Zoned::now().offset().seconds();
    if let Some(file) = &options.md {
        write(&here.join(file), &night_report::markdown(&report, offset))?;
    }
    if let Some(file) = &options.html {
        write(&here.join(file), &night_report::html(&report, offset))?;
    }
    if options.json {
        text::json_line(&report);
    } else if options.md.is_none() && options.html.is_none() {
        selected.note.iter().for_each(text::line);
        night_report::text(&report, offset).into_iter().for_each(text::line);
    } else {
        for file in options.md.iter().chain(&options.html) {
            text::line(format!("written: {}", file.display()));
        }
    }
    Ok(0)
}

/// The run before this one in the same workspace, if it can be read.
fn run_before(root: &StateRoot, run: &RunId) -> Option<RunState> {
    let workspace = |run: &RunId| genesis::workspace_of(&RunDir::open(&root.run(run)).ok()?).ok();
    let here = workspace(run)?;
    let earlier = root.runs().into_iter().rev().filter(|other| other < run);
    let before = earlier.into_iter().find(|other| workspace(other).as_ref() == Some(&here))?;
    recorded::read_state(root, &before).ok()
}

fn write(path: &Path, text: &str) -> Result<(), EngineError> {
    let refused = |e| EngineError::io("cannot write the report", path, e);
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(path).map_err(|e| {
        if e.kind() == std::io::ErrorKind::AlreadyExists {
            let message = format!("{} exists already, and is not overwritten", path.display());
            return EngineError::usage(message, "name another file");
        }
        refused(e)
    })?;
    std::io::Write::write_all(&mut file, text.as_bytes()).map_err(refused)
}

#[cfg(test)]
mod tests;
