//! Within what a tool's call runs, and what comes of it.
//!
//! Invariant: what the model gets to read is bounded.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::access::Access;
use super::capture::head_tail;
use super::sandbox::Confinement;

/// Bounds on what a tool may take, keep and show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    pub bash_timeout_default: Duration,
    pub bash_timeout_max: Duration,
    /// What the model sees, head and tail together.
    pub model_text_bytes: usize,
    /// What is kept of an output for the record.
    pub keep_bytes: usize,
    pub read_file_bytes: usize,
    pub write_file_bytes: usize,
    pub search_matches: usize,
    pub search_depth: usize,
    pub search_files: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bash_timeout_default: Duration::from_secs(120),
            bash_timeout_max: Duration::from_secs(600),
            model_text_bytes: 30_000,
            keep_bytes: 1024 * 1024,
            read_file_bytes: 256 * 1024,
            write_file_bytes: 4 * 1024 * 1024,
            search_matches: 1000,
            search_depth: 64,
            search_files: 200_000,
        }
    }
}

/// Where and within what a call runs.
#[derive(Debug, Clone)]
pub struct ToolContext {
    pub workspace: PathBuf,
    pub access: Access,
    pub limits: Limits,
    pub run_marker: String,
    pub cancel: CancellationToken,
    /// Workspace-relative paths that no file tool may write, each with all that is under it.
    pub protected: Vec<PathBuf>,
    /// The only folder that file tools may write, where there is such a limit.
    pub within: Option<PathBuf>,
    /// What commands wear; `None`: nothing.
    pub confinement: Option<Arc<Confinement>>,
    /// What was kept of earlier results of this agent, by number: those that these calls read on in.
    pub outputs: BTreeMap<u32, Arc<[u8]>>,
}

impl ToolContext {
    /// May this call run commands? Always with write access; else only where a command cannot write.
    pub(super) fn has_shell(&self) -> bool {
        self.access == Access::ReadWrite || self.confinement.as_ref().is_some_and(|worn| worn.is_read_only())
    }
}

/// What came of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolOutcome {
    /// For the model, bounded.
    pub text: String,
    pub is_error: bool,
    /// For the record: the output as kept, head and tail if it was longer.
    pub output: Vec<u8>,
    /// How long the output was.
    pub total_bytes: u64,
    /// Whether `output` is less than all of it.
    pub truncated: bool,
    pub exit_code: Option<i32>,
    pub millis: u64,
    pub cancelled: bool,
}

impl ToolOutcome {
    pub(super) fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text.into()) }
    }

    /// The text is the whole output; the model gets all of it, so the caller has bounded it.
    pub(super) fn text(text: String) -> Self {
        let output = text.clone().into_bytes();
        Self { total_bytes: output.len() as u64, text, output, ..Self::default() }
    }

    /// The text is the whole output; the model gets its head and tail.
    pub(super) fn long_text(text: String, limits: &Limits) -> Self {
        let (shown, _) = head_tail(&text, limits.model_text_bytes);
        Self { text: shown, ..Self::text(text) }
    }

    pub(super) fn cancelled() -> Self {
        Self { cancelled: true, ..Self::error("Cancelled before it finished") }
    }
}
