//! The right to work in a workspace.
//!
//! Role: keep everybody else out for as long as a process drives, answers or seals a run there. Two locks: one in
//! the state directory, whose text says who holds it, and one on the workspace's own folder, which also holds
//! against a process with another state directory.
//! Not its role: the run's own lock (`journal::lock`).
//!
//! Invariants: the kernel gives both back when the holder dies; nothing is written into the workspace; what is
//! claimed lies apart from the state directory, so that no agent writes the record of its own run.

use std::fs;
use std::path::{Path, PathBuf};

use crate::journal::{FolderLock, JournalError, RunLock};

use super::error::EngineError;
use super::places::{StateRoot, private};

/// A claimed workspace. Given back when dropped.
#[derive(Debug)]
pub struct Claim {
    _state: RunLock,
    /// Not yet taken, or a file system that knows no such locks.
    folder: Option<FolderLock>,
}

impl Claim {
    /// Claims a workspace, or says who has it.
    pub fn take(root: &StateRoot, workspace: &Path) -> Result<Self, EngineError> {
        let mut claim = Self::in_state(root, workspace)?;
        claim.complete(workspace)?;
        Ok(claim)
    }

    /// Only against processes with the same state directory. [`Claim::complete`] does the rest.
    pub fn in_state(root: &StateRoot, workspace: &Path) -> Result<Self, EngineError> {
        lies_apart(root, workspace)?;
        let dir = root.workspace(workspace);
        let is_new = !root.path().exists();
        fs::create_dir_all(&dir).map_err(|e| EngineError::io("cannot create the state directory", &dir, e))?;
        // Only a directory of our own making: a given one belongs to somebody.
        if is_new {
            private(root.path())?;
        }
        let lock = RunLock::acquire(&dir).map_err(|error| match error {
            JournalError::Locked { owner, .. } => {
                let run = root.run_of(workspace).map_or_else(|| "a run".to_owned(), |run| format!("run {run}"));
                EngineError::Busy {
                    message: format!("{run} is already running in {}: {owner}", workspace.display()),
                    hint: "`nightloop status` shows it, `nightloop stop` ends it".to_owned(),
                }
            }
            other => other.into(),
        })?;
        Ok(Self { _state: lock, folder: None })
    }

    /// Against everybody else.
    pub fn complete(&mut self, workspace: &Path) -> Result<(), EngineError> {
        self.folder = FolderLock::acquire(workspace).map_err(|error| match error {
            JournalError::Locked { owner, .. } => EngineError::Busy {
                message: format!("another process holds the workspace {}: {owner}", workspace.display()),
                hint: "if it is a nightloop with another state directory, `nightloop stop` with that one's \
                       NIGHTLOOP_STATE_DIR ends it; else end the process, then try again"
                    .to_owned(),
            },
            other => other.into(),
        })?;
        Ok(())
    }
}

/// A state directory in the workspace would be within the reach of agents, and part of what they are measured by.
pub fn lies_apart(root: &StateRoot, workspace: &Path) -> Result<(), EngineError> {
    let (state, workspace) = (real(root.path()), real(workspace));
    if state.starts_with(&workspace) {
        return Err(EngineError::usage(
            format!("the state directory {} is inside the workspace {}", state.display(), workspace.display()),
            "set NIGHTLOOP_STATE_DIR to a directory outside the workspace, or run in a directory that holds only the \
             project; existing runs move with their state directory",
        ));
    }
    if workspace.starts_with(&state) {
        return Err(EngineError::usage(
            format!("the workspace {} is inside the state directory {}", workspace.display(), state.display()),
            "move the workspace, or set NIGHTLOOP_STATE_DIR to another directory",
        ));
    }
    Ok(())
}

/// Without links, as far as there is something already.
fn real(path: &Path) -> PathBuf {
    for existing in path.ancestors() {
        if let (Ok(found), Ok(rest)) = (existing.canonicalize(), path.strip_prefix(existing)) {
            // An empty rest would add a slash.
            return if rest.as_os_str().is_empty() { found } else { found.join(rest) };
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_directory_lies_apart_from_the_workspace_whatever_it_is_called() {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().join("work");
        fs::create_dir_all(work.join("inner")).unwrap();
        std::os::unix::fs::symlink(work.join("inner"), dir.path().join("alias")).unwrap();
        let at = |name: &str| StateRoot::at(dir.path().join(name));
        for inside in ["work", "work/state", "work/not/yet/there", "alias", "alias/state", "work/inner/../x"] {
            let refused = lies_apart(&at(inside), &work).unwrap_err();
            assert_eq!(refused.exit_code(), 64, "{inside}");
            assert!(refused.to_string().contains("NIGHTLOOP_STATE_DIR"), "{refused}");
        }
        for apart in ["state", "work2", "workx/state", "work/../state"] {
            lies_apart(&at(apart), &work).unwrap();
        }
        assert!(lies_apart(&StateRoot::at(dir.path()), &work).is_err(), "the workspace is in the state directory");
    }

    #[test]
    fn two_state_directories_do_not_share_a_workspace() {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().join("work");
        fs::create_dir(&work).unwrap();
        let (one, two) = (StateRoot::at(dir.path().join("one")), StateRoot::at(dir.path().join("two")));
        let claim = Claim::take(&one, &work).unwrap();
        let refused = Claim::take(&two, &work).unwrap_err();
        assert_eq!(refused.exit_code(), 73);
        assert!(refused.to_string().contains("work"), "{refused}");
        drop(claim);
        Claim::take(&two, &work).unwrap();
        assert_eq!(fs::read_dir(&work).unwrap().count(), 0, "nothing is written into the workspace");
    }
}
