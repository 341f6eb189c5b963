//! Which run a command means: the one named, else this workspace's, else the newest; and it says which.

use std::path::Path;

use crate::engine::error::EngineError;
use crate::engine::genesis::canonical_workspace;
use crate::engine::places::StateRoot;
use crate::model::ids::RunId;

/// A run, and how it was found when it was not named.
pub struct Selected {
    pub run: RunId,
    pub note: Option<String>,
}

/// Finds the run. A prefix of an id is enough where it is the only one.
pub fn run(root: &StateRoot, here: &Path, named: Option<&str>) -> Result<Selected, EngineError> {
    if let Some(named) = named {
        return by_name(root, named);
    }
    if let Some(run) = canonical_workspace(here).ok().and_then(|workspace| root.run_of(&workspace)) {
        return Ok(Selected { run, note: None });
    }
    match root.runs().pop() {
        Some(run) => Ok(Selected { note: Some(format!("run {run} (the newest; this directory has none)")), run }),
        None => Err(EngineError::usage(
            "there are no runs yet",
            "`nightloop demo` shows one; `nightloop init` writes a loop to start from",
        )),
    }
}

fn by_name(root: &StateRoot, named: &str) -> Result<Selected, EngineError> {
    let wanted = named.to_uppercase();
    let mut matching: Vec<RunId> = root.runs().into_iter().filter(|run| run.as_str().starts_with(&wanted)).collect();
    match (matching.pop(), matching.is_empty()) {
        (Some(run), true) => Ok(Selected { run, note: None }),
        (Some(_), false) => {
            Err(EngineError::usage(format!("several run ids begin with {named}"), "`nightloop runs` lists them"))
        }
        (None, _) => Err(EngineError::usage(format!("there is no run {named}"), "`nightloop runs` lists them")),
    }
}
