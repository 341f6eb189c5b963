//! `nightloop run`: starts the loop of this directory.

use std::path::Path;

use clap::Args;

use crate::agent::rehearsal::Speed;
use crate::engine::command::Orders;
use crate::engine::host::{self, Wanted, runtime};
use crate::engine::hub::Hub;
use crate::engine::places::StateRoot;
use crate::engine::session::{Attendance, read_declaration};
use crate::machine::run::RunState;

use super::headless::{Format, Headless};
use super::{Outcome, outcome, text};

#[derive(Debug, Args)]
pub struct Options {
    /// Print readable lines (the default).
    #[arg(long)]
    headless: bool,
    /// Print one JSON object per event.
    #[arg(long, conflicts_with = "headless")]
    json: bool,
    /// The declaration to run.
    #[arg(long, value_name = "FILE", default_value = "loop.yaml")]
    file: String,
}

pub fn main(here: &Path, options: &Options) -> Outcome {
    let format = if options.json { Format::Json } else { Format::Lines };
    start(here, &options.file, format, Speed::Times(1.0))
}

/// Reads, checks, creates, runs.
pub fn start(workspace: &Path, file: &str, format: Format, speed: Speed) -> Outcome {
    let declaration = read_declaration(&workspace.join(file))?;
    let root = StateRoot::locate()?;
    headless(&root, Wanted::New { workspace: workspace.to_owned(), declaration }, format, speed)
}

/// Drives a run with lines on stdout.
pub fn headless(root: &StateRoot, wanted: Wanted, format: Format, speed: Speed) -> Outcome {
    let again = matches!(wanted, Wanted::Again { .. });
    runtime()?.block_on(async {
        let opened = host::open(root, wanted, Attendance::Headless, speed).await?;
        let state = &opened.session.state;
        if format == Format::Lines {
            if again {
                text::line(format!("run {} goes on in {}", state.run(), state.state));
            } else {
                text::line(format!("run {} in {}", state.run(), opened.session.workspace.display()));
                state.started.warnings.iter().for_each(|warning| text::line(format!("note: {warning}")));
            }
        }
        let mut observer = Headless::new(format);
        let (orders, inbox) = Orders::channel();
        let result = host::drive(opened, Hub::default(), &orders, inbox, &mut observer).await;
        drop(observer);
        let state = result?;
        if format == Format::Lines {
            tell(&state);
        }
        Ok(outcome::exit_code(&state))
    })
}

fn tell(state: &RunState) {
    text::line("");
    for line in outcome::summary(state) {
        text::line(line);
    }
    text::line(format!("  check it: nightloop verify {}", state.run()));
}
