//! Checks outside of a run: before the start, and when a run that ended is looked at again.
//!
//! Role: run one declared command as a run would, in an overlay that is thrown away. Not its role: what follows from its
//! end, recording anything.
//!
//! Invariants: where an overlay can be had, nothing reaches the workspace; a check that is held back runs with its own
//! files or not at all; what one of those writes is seen by no other.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::model::learnings;
use crate::tool::process::{self, Access, CommandSpec, ProcessOutcome};
use crate::tool::sandbox::{Overlay, Sandbox};
use crate::workspace::layer;

use super::confine;
use super::error::EngineError;
use super::keys;
use super::places::StateRoot;

/// Where such checks run.
pub struct Aside<'a> {
    sandbox: &'a Sandbox,
    workspace: &'a Path,
    marker: &'a str,
    /// `None`: they see the workspace itself.
    layers: Option<Layers>,
}

impl<'a> Aside<'a> {
    /// `marker` names what belongs together, for this machine.
    pub fn open(
        root: &StateRoot,
        workspace: &'a Path,
        sandbox: &'a Sandbox,
        marker: &'a str,
    ) -> Result<Self, EngineError> {
        let layers = if sandbox.overlays() { Some(Layers::make(root, marker)?) } else { None };
        Ok(Self { sandbox, workspace, marker, layers })
    }

    /// What a command came to; `None`: its files are held back, and cannot be shown to it here.
    pub async fn run(
        &self,
        argv: &[String],
        seconds: u64,
        hidden: Option<&str>,
    ) -> Result<Option<ProcessOutcome>, EngineError> {
        let mut spec = CommandSpec::new(argv.to_vec(), self.workspace, self.marker);
        spec.timeout = Duration::from_secs(seconds);
        let sealed = [learnings::FILE.into()];
        let mut apart = None;
        spec.confinement = match (&self.layers, hidden) {
            (None, Some(_)) => return Ok(None),
            (None, None) => confine::put_up(self.sandbox.for_tool_sealing(Access::ReadWrite, &sealed))?,
            (Some(layers), hidden) => {
                if hidden.is_some() {
                    apart = Some(confine::put_up(self.sandbox.apart())?);
                }
                let overlay = layers.overlay(hidden.map(keys::expand))?;
                let own = apart.as_ref().map(tempfile::TempDir::path);
                confine::put_up(self.sandbox.for_check(&sealed, &overlay, own))?
            }
        };
        let outcome = process::run(spec, &CancellationToken::new()).await;
        drop(apart);
        Ok(Some(outcome))
    }
}

/// Folders for what is written, out of sight of every command; gone with it.
struct Layers(PathBuf);

impl Layers {
    fn make(root: &StateRoot, marker: &str) -> Result<Self, EngineError> {
        let layers = Self(root.path().join(format!("checks-{marker}")));
        for name in ["common", "work"] {
            layers.folder(name)?;
        }
        Ok(layers)
    }

    fn folder(&self, name: &str) -> Result<PathBuf, EngineError> {
        let folder = self.0.join(name);
        fs::create_dir_all(&folder).map_err(|e| EngineError::io("cannot make a layer for checks", &folder, e))?;
        Ok(folder)
    }

    /// Checks share what they write, but for one whose files are held back.
    fn overlay(&self, hidden: Option<PathBuf>) -> Result<Overlay, EngineError> {
        let (common, work) = (self.folder("common")?, self.folder("work")?);
        let Some(hidden) = hidden else { return Ok(Overlay { over: Vec::new(), upper: common, work }) };
        let thrown = self.0.join("thrown");
        layer::remove(&thrown).map_err(|fault| EngineError::Internal(format!("a layer for checks: {fault}")))?;
        Ok(Overlay { over: vec![hidden, common], upper: self.folder("thrown")?, work })
    }
}

impl Drop for Layers {
    fn drop(&mut self) {
        // What is left of it is out of everybody's way.
        let _ = layer::remove(&self.0);
    }
}
