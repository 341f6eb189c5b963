//! One order from the command line to a run that some process drives.

use std::path::Path;

use crate::engine::command::Command;
use crate::engine::control::client;
use crate::engine::error::EngineError;
use crate::engine::places::StateRoot;
use crate::model::ids::RunId;
use crate::tool::process;

use super::{Outcome, select, text};

/// What a run has started gives no run orders; only people do.
pub fn refuse_tools() -> Result<(), EngineError> {
    if std::env::var_os(process::RUN_VAR).is_some() {
        return Err(EngineError::usage(
            "this command was started by a run's tool, and tools cannot control runs",
            "ask a person",
        ));
    }
    Ok(())
}

/// Sends an order and says what became of it.
pub fn send(here: &Path, named: Option<&str>, command: Command) -> Outcome {
    refuse_tools()?;
    let root = StateRoot::locate()?;
    let selected = select::run(&root, here, named)?;
    if let Some(note) = &selected.note {
        text::line(note);
    }
    deliver(&root, &selected.run, command)
}

/// The same for a run that is already known.
pub fn deliver(root: &StateRoot, run: &RunId, command: Command) -> Outcome {
    let connection = client::connect(&root.run(run), &sender(), true, None)?;
    let receipt = connection
        .order(command)
        .map_err(|e| EngineError::usage(format!("run {run} cannot be reached: {e}"), "`nightloop status` shows it"))?;
    match receipt {
        Ok(said) => {
            text::line(text::safe(&said));
            Ok(0)
        }
        Err(why) => Err(EngineError::usage(
            format!("run {run} refused: {}", text::safe(&why)),
            "`nightloop status` and `nightloop inbox` show its state",
        )),
    }
}

/// Who sends it, for the record.
pub fn sender() -> String {
    format!("{} (command line)", user())
}

/// The user's name as the environment gives it.
pub fn user() -> String {
    let name = ["USER", "LOGNAME"].iter().find_map(|key| std::env::var(key).ok().filter(|name| !name.is_empty()));
    name.unwrap_or_else(|| "operator".to_owned())
}
