//! `nightloop completions` and `nightloop man`: generated from the same definitions as the parser.

use clap::Args;

use super::{Outcome, command, text};

#[derive(Debug, Args)]
pub struct Options {
    shell: clap_complete::Shell,
}

pub fn main(options: &Options) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut command(), "nightloop", &mut script);
    text::own(&script);
    Ok(0)
}

pub fn man() -> Outcome {
    let mut page = Vec::new();
    // Writing into memory cannot fail.
    let _ = clap_mangen::Man::new(command()).render(&mut page);
    text::own(&page);
    Ok(0)
}
