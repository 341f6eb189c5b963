//! The names in a workspace that the engine writes itself: they are no work of an agent, and in no tree.

use crate::model::loop_file::LoopFile;
use crate::playbook;

/// What every playbook leaves out.
const EXCLUDED: &[&str] = &["evidence/", ".git/", "scratch/STOP", "AGENTS.md"];

/// The paths that no snapshot of the workspace holds.
pub fn excluded(declared: &LoopFile) -> Vec<String> {
    let own = playbook::of(declared.playbook).own_files(declared);
    EXCLUDED.iter().map(|name| (*name).to_owned()).chain(own).collect()
}
