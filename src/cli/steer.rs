//! `nightloop steer`: a word for the next agent call, with a receipt.

use std::path::Path;

use clap::Args;

use crate::engine::command::Command;

use super::{Outcome, order};

#[derive(Debug, Args)]
pub struct Options {
    /// The message.
    #[arg(required = true)]
    words: Vec<String>,
    /// The run; default: the run of this directory.
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
}

pub fn main(here: &Path, options: &Options) -> Outcome {
    order::send(here, options.run.as_deref(), Command::Steer(options.words.join(" ")))
}
