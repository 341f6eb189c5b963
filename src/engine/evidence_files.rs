//! The evidence of a run in its workspace, written while it goes on.
//!
//! Role: what was rendered becomes files. Not its role: rendering (`evidence::render`), sealing (`finish`). Holds only
//! what saves work: the list of what earlier iterations wrote, and what was put right and is not recorded yet.

use std::path::Path;

use crate::evidence::{render, store};
use crate::journal::Blobs;
use crate::machine::run::RunState;
use crate::model::rendered::Rendered;
use crate::workspace::plain::Durability;

use super::error::EngineError;

#[derive(Default)]
pub(super) struct EvidenceFiles {
    /// The evidence of the iterations so far, so that the manifest need not be rendered from scratch.
    manifest: Vec<render::Listed>,
    /// Places of ours that held something else and were put right; recorded with the next look at the workspace.
    pub mended: Vec<String>,
}

impl EvidenceFiles {
    /// Makes the place ready and writes everything, from scratch: at the start and after a resume.
    pub fn begin(workspace: &Path, state: &RunState, blobs: &Blobs) -> Result<Self, EngineError> {
        let mended = store::mend_folders(workspace)
            .map_err(|e| EngineError::io("cannot prepare the evidence directories", workspace, e))?;
        store::archive_foreign(workspace, state.run())
            .map_err(|e| EngineError::io("cannot archive earlier evidence", workspace, e))?;
        store::remove_leftovers(workspace)
            .map_err(|e| EngineError::io("cannot remove what a crash left behind", workspace, e))?;
        let files = render::everything(state, blobs)?;
        let manifest = files.iter().filter(|file| file.iteration.is_some()).map(render::Listed::of).collect();
        let mut evidence = Self { manifest, mended };
        evidence.write(workspace, &files, Durability::Replaceable)?;
        remove_outdated(workspace, &files)?;
        Ok(evidence)
    }

    pub fn write(&mut self, workspace: &Path, files: &[Rendered], durability: Durability) -> Result<(), EngineError> {
        let failed = |e| EngineError::io("cannot write the evidence", workspace, e);
        self.mended.extend(store::write(workspace, files, durability).map_err(failed)?);
        self.mended.extend(store::write_copies(workspace, files).map_err(failed)?);
        Ok(())
    }

    /// The files about the run as a whole.
    pub fn write_run(&mut self, workspace: &Path, state: &RunState, blobs: &Blobs) -> Result<(), EngineError> {
        let files = render::of_run(state, blobs)?;
        self.write(workspace, &files, Durability::Replaceable)?;
        remove_outdated(workspace, &files)
    }

    /// The files of the running iteration, of the run as a whole, and the list of all.
    pub fn write_iteration(&mut self, workspace: &Path, state: &RunState, blobs: &Blobs) -> Result<(), EngineError> {
        let Some(iteration) = &state.current else { return Ok(()) };
        let files = render::of_iteration(state, iteration, blobs)?;
        self.manifest.retain(|listed| listed.iteration != Some(iteration.number()));
        self.manifest.extend(files.iter().map(render::Listed::of));
        let run_files = render::of_run(state, blobs)?;
        remove_outdated(workspace, &run_files)?;
        let mut listed = self.manifest.clone();
        listed.extend(run_files.iter().map(render::Listed::of));
        let manifest = render::manifest(state, listed);
        for batch in [files, run_files, vec![manifest]] {
            self.write(workspace, &batch, Durability::Replaceable)?;
        }
        Ok(())
    }
}

/// What an earlier moment of the run had to say and this one does not.
fn remove_outdated(workspace: &Path, files: &[Rendered]) -> Result<(), EngineError> {
    store::remove_outdated(workspace, files)
        .map_err(|e| EngineError::io("cannot remove outdated evidence", workspace, e))
}
