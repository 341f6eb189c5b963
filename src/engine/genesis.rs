//! genesis.json: what a run is, written once before its first event.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::journal::{JournalError, RunDir};
use crate::machine::event::RunStarted;
use crate::model::canonical;
use crate::model::ids::RunId;

use super::error::EngineError;

/// The text of the file.
pub(super) fn text(run: &RunId, workspace: &Path, started: &RunStarted) -> Result<String, EngineError> {
    let value = json!({
        "nightloop": 1,
        "run": run,
        "workspace": workspace.to_string_lossy(),
        "loop_sha256": started.loop_sha256,
        "engine_version": started.engine_version,
        "reducer_version": started.reducer_version,
        "sandbox": started.sandbox,
        "started": started.started,
    });
    canonical::pretty(&value).map_err(|e| EngineError::Internal(e.to_string()))
}

/// The workspace a run belongs to.
pub fn workspace_of(run_dir: &RunDir) -> Result<PathBuf, EngineError> {
    let value: Value = serde_json::from_slice(run_dir.genesis())
        .map_err(|e| EngineError::Journal(JournalError::Invalid { detail: format!("genesis.json: {e}") }))?;
    let path = value.get("workspace").and_then(Value::as_str);
    path.map(PathBuf::from)
        .ok_or_else(|| EngineError::Journal(JournalError::Invalid { detail: "genesis.json names no workspace".into() }))
}

/// One spelling for one directory.
pub fn canonical_workspace(workspace: &Path) -> Result<PathBuf, EngineError> {
    workspace.canonicalize().map_err(|e| EngineError::io("cannot find the workspace", workspace, e))
}
