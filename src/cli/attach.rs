//! `nightloop attach`: the console over a run that some process drives.

use std::path::Path;

use clap::Args;

use crate::engine::error::EngineError;
use crate::engine::places::StateRoot;

use super::watch::{self, Look};
use super::{Outcome, select, text};

#[derive(Debug, Args)]
pub struct Options {
    /// The run; default: the run of this directory.
    run: Option<String>,
    /// Read-only: nothing can be changed from this console.
    #[arg(long)]
    read_only: bool,
    #[command(flatten)]
    look: Look,
}

pub fn main(here: &Path, options: &Options) -> Outcome {
    let root = StateRoot::locate()?;
    let selected = select::run(&root, here, options.run.as_deref())?;
    if let Some(note) = &selected.note {
        text::line(note);
    }
    if !watch::has_terminal() {
        return Err(EngineError::usage("attach needs a terminal", "use `nightloop status` without one"));
    }
    watch::over_other_run(&options.look, &selected.run, options.read_only)
}
