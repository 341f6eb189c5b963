//! Where things are: the state root outside the workspace, and the runs in it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::model::digest::Digest;
use crate::model::ids::RunId;

use super::error::EngineError;

/// The operator's own files: `NIGHTLOOP_CONFIG_DIR`, else `$XDG_CONFIG_HOME/nightloop`.
pub fn config_dir() -> Option<PathBuf> {
    if let Some(dir) = std::env::var_os("NIGHTLOOP_CONFIG_DIR").filter(|dir| !dir.is_empty()) {
        return Some(PathBuf::from(dir));
    }
    use etcetera::BaseStrategy;
    etcetera::choose_base_strategy().ok().map(|base| base.config_dir().join("nightloop"))
}

/// The directory that holds all runs of this user.
#[derive(Debug, Clone)]
pub struct StateRoot(PathBuf);

impl StateRoot {
    /// `NIGHTLOOP_STATE_DIR`, else `$XDG_STATE_HOME/nightloop`.
    pub fn locate() -> Result<Self, EngineError> {
        if let Some(dir) = std::env::var_os("NIGHTLOOP_STATE_DIR").filter(|dir| !dir.is_empty()) {
            let dir = PathBuf::from(dir);
            let absolute = std::path::absolute(&dir)
                .map_err(|e| EngineError::io("cannot resolve the state directory", &dir, e))?;
            return Ok(Self(absolute));
        }
        use etcetera::BaseStrategy;
        let base = etcetera::choose_base_strategy()
            .map_err(|e| EngineError::usage(format!("no home directory: {e}"), "set NIGHTLOOP_STATE_DIR"))?;
        let dir = base.state_dir().unwrap_or_else(|| base.data_dir());
        Ok(Self(dir.join("nightloop")))
    }

    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn anchors(&self) -> PathBuf {
        self.0.join("anchors.log")
    }

    pub fn run(&self, run: &RunId) -> PathBuf {
        self.0.join("runs").join(run.as_str())
    }

    /// All runs, oldest first: their ids sort by time.
    pub fn runs(&self) -> Vec<RunId> {
        let Ok(entries) = fs::read_dir(self.0.join("runs")) else { return Vec::new() };
        let mut runs: Vec<RunId> =
            entries.flatten().filter_map(|entry| RunId::parse(entry.file_name().to_str()?)).collect();
        runs.sort();
        runs
    }

    /// The directory that remembers which run a workspace has, and holds its lock.
    pub fn workspace(&self, workspace: &Path) -> PathBuf {
        let key = Digest::of(workspace.as_os_str().as_encoded_bytes()).short();
        self.0.join("workspaces").join(key)
    }

    /// The latest run of a workspace.
    pub fn run_of(&self, workspace: &Path) -> Option<RunId> {
        let text = fs::read_to_string(self.workspace(workspace).join("run")).ok()?;
        RunId::parse(text.trim())
    }
}
