//! `nightloop replay`: a journal played back in the console.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::engine::error::EngineError;
use crate::engine::places::StateRoot;

use super::watch::{self, Look};
use super::{Outcome, select};

#[derive(Debug, Args)]
pub struct Options {
    /// The run, or a directory with a copied one; default: the run of this directory.
    run: Option<String>,
    /// Play this many times faster than it happened.
    #[arg(long, value_name = "N", default_value_t = 8)]
    speed: u32,
    #[command(flatten)]
    look: Look,
}

pub fn main(here: &Path, options: &Options) -> Outcome {
    if !watch::has_terminal() {
        return Err(EngineError::usage(
            "replay needs a terminal",
            "use `nightloop status` or `nightloop verify` without one",
        ));
    }
    let copied = options.run.as_ref().map(PathBuf::from).filter(|path| path.join("genesis.json").is_file());
    let dir = match copied {
        Some(dir) => dir,
        None => {
            let root = StateRoot::locate()?;
            let selected = select::run(&root, here, options.run.as_deref())?;
            root.run(&selected.run)
        }
    };
    watch::over_journal(&options.look, &dir, options.speed)
}
