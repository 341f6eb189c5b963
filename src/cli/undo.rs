//! `nightloop undo`: takes back what a finished iteration changed, with a receipt.

use std::path::Path;

use clap::Args;

use crate::engine::command::Command;

use super::{Outcome, order};

#[derive(Debug, Args)]
pub struct Options {
    /// The iteration, as `nightloop status` and the console number them.
    iteration: u32,
    /// The run; default: the run of this directory.
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
}

pub fn main(here: &Path, options: &Options) -> Outcome {
    order::send(here, options.run.as_deref(), Command::Undo(options.iteration))
}
