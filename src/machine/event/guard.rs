//! What guards the checks of a run, compared with how the run found it: the facts a claim of success is judged by.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::digest::Digest;
use crate::model::guard::Class;

use super::iteration::ChangeKind;

/// A changed file that is no plain product of the work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardChange {
    pub path: String,
    pub class: Class,
    pub kind: ChangeKind,
    /// What it is now; `None`: gone, or known by its times only.
    pub sha256: Option<Digest>,
}

/// Files of program folders that no tree holds (`node_modules`, `.venv`), by their times.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolsChanged {
    /// Changed or removed since the run found them, the first few.
    pub changed: Vec<String>,
    pub changed_in_all: u64,
    pub added_in_all: u64,
    /// There are more than were looked at.
    #[serde(default)]
    pub cut: bool,
}

/// A test that must fail: where it is put, and which word it shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CanaryMade {
    pub path: String,
    pub marker: String,
}

/// The workspace against the tree that is trusted: what decides about the checks, and what can be tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardsCompared {
    pub iteration: u32,
    /// The tree whose judges count: that of the start, or the latest that a person accepted.
    pub trusted: Digest,
    /// The tree of the last item that passed since: what it brought judges the next one, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Digest>,
    /// Judges that changed since that item.
    #[serde(default)]
    pub changed_since: u64,
    /// Why no check can be run against another tree here; `None`: it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_replays: Option<String>,
    /// What changed and is not code, bounded.
    pub changed: Vec<GuardChange>,
    /// Changed files that are not listed.
    #[serde(default)]
    pub unlisted: u64,
    /// Changed files that are the work itself.
    pub code_changed: u64,
    /// Does any of the code hold tests that are put back in a pristine replay?
    #[serde(default)]
    pub tests_in_code: bool,
    #[serde(default)]
    pub tools: ToolsChanged,
    /// Was there anything at the start that a check is made of: tests, scripts, settings?
    pub judge_at_start: bool,
    /// By criterion.
    #[serde(default)]
    pub canaries: BTreeMap<String, CanaryMade>,
    /// What cannot be put back for a replay, because it was not kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_kept: Vec<String>,
    /// What changed in what guards the checks, for people.
    pub diff: Digest,
}
