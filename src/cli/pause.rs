//! `nightloop pause`: holds a run after its present step, or lets it go on.

use std::path::Path;

use clap::Args;

use crate::engine::command::Command;

use super::{Outcome, order};

#[derive(Debug, Args)]
pub struct Options {
    /// The run; default: the run of this directory.
    run: Option<String>,
    /// Continue a paused run.
    #[arg(long)]
    off: bool,
}

pub fn main(here: &Path, options: &Options) -> Outcome {
    let command = if options.off { Command::Resume } else { Command::Pause };
    order::send(here, options.run.as_deref(), command)
}
