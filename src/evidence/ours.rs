//! The names in a workspace that the engine writes itself: they are no work of an agent, and in no tree.

use crate::model::loop_file::{LoopFile, Playbook};
use crate::model::value::VIEWS;

/// What the prd playbook writes beside prd.json.
pub const PROGRESS: &str = "progress.txt";
pub const LOG: &str = "loop/log.txt";
pub const ARCHIVE: &str = "loop/log.archive.txt";
pub const LAST_ERROR: &str = "loop/last_error.txt";
/// The latest text of the file that was found and not believed.
pub const THEIRS: &str = "loop/prd.theirs.json";
/// All of them: no part of what is worked on.
pub const LEDGER: [&str; 5] = [LOG, ARCHIVE, LAST_ERROR, THEIRS, PROGRESS];

/// What every playbook leaves out.
const EXCLUDED: &[&str] = &["evidence/", ".git/", "scratch/STOP", "AGENTS.md"];

/// The paths that no snapshot of the workspace holds.
pub fn excluded(declared: &LoopFile) -> Vec<String> {
    let own: Vec<String> = match declared.playbook {
        Playbook::Value => VIEWS.map(str::to_owned).to_vec(),
        Playbook::Prd => std::iter::once(declared.prd().file.clone()).chain(LEDGER.map(str::to_owned)).collect(),
        Playbook::Swarm | Playbook::Micro => Vec::new(),
    };
    EXCLUDED.iter().map(|name| (*name).to_owned()).chain(own).collect()
}
