//! `nightloop stop`: asks a running loop to stop, by the file that every loop obeys.

use std::path::Path;

use clap::Args;

use crate::engine::error::EngineError;
use crate::engine::genesis;
use crate::engine::places::StateRoot;
use crate::engine::signals::{self, STOP_FILE};
use crate::journal::{RunDir, RunLock};

use super::{Outcome, order, select, text};

#[derive(Debug, Args)]
pub struct Options {
    /// The run; default: the run of this directory.
    run: Option<String>,
}

pub fn main(here: &Path, options: &Options) -> Outcome {
    let root = StateRoot::locate()?;
    let selected = select::run(&root, here, options.run.as_deref())?;
    if let Some(note) = &selected.note {
        text::line(note);
    }
    let dir = root.run(&selected.run);
    let workspace = genesis::workspace_of(&RunDir::open(&dir)?)?;
    if RunLock::owner(&dir).is_none() {
        return Err(EngineError::usage(
            format!("run {} is not running", selected.run),
            "`nightloop status` shows how it ended",
        ));
    }
    let path = workspace.join(STOP_FILE);
    signals::write_stop(&workspace, &order::sender())
        .map_err(|e| EngineError::io("cannot write the stop file", &path, e))?;
    text::line(format!("asked run {} to stop ({})", selected.run, path.display()));
    text::line("  continue later: nightloop resume");
    Ok(0)
}
