//! What can go wrong with a journal, in words an operator can act on.
//!
//! Role: one error type for the whole module; each message says what, where and what to do.
//! Not its role: choosing exit codes.
//! Invariant: it clones, because one failed disk write is the answer to every waiting append.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A journal operation that did not succeed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum JournalError {
    #[error(
        "{} is in use by {owner}; stop that process or wait for it to end, then try again",
        path.display()
    )]
    Locked { path: PathBuf, owner: String },

    #[error(
        "{}{} is damaged: {detail}; the run cannot be resumed, restore it from a copy or start a new run",
        path.display(), place(*line, *seq)
    )]
    Corrupt {
        path: PathBuf,
        /// `None` when the damage is outside the journal segments (a blob, the seal).
        segment: Option<u32>,
        /// Counted from 1, as editors do.
        line: Option<u64>,
        /// The sequence number expected at that place.
        seq: Option<u64>,
        detail: String,
    },

    #[error(
        "{}{} ends in {bytes} bytes that are not a record: {detail}; a write was cut short, resume the run to repair it",
        path.display(), place(Some(*line), Some(*seq))
    )]
    Torn { path: PathBuf, segment: u32, line: u64, seq: u64, offset: u64, bytes: u64, detail: String },

    #[error(
        "{} line {line} was written by a newer nightloop (format {found}, this one knows up to {known}); upgrade nightloop to use this run",
        path.display()
    )]
    NewerVersion { path: PathBuf, segment: u32, line: u64, seq: u64, found: u64, known: u64 },

    #[error("no space left on the disk that holds {}; free some space, then resume the run", path.display())]
    DiskFull { path: PathBuf },

    #[error(
        "the journal accepts no more events: {detail}; what was acknowledged before is safe, check the disk, then resume the run"
    )]
    Poisoned { detail: String },

    #[error("{}: {source}; check the disk, the permissions and the limits of this shell (ulimit -a)", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: Arc<io::Error>,
    },

    #[error("{what} is {bytes} bytes, the limit is {limit}; store the content as a blob and name its digest")]
    TooLarge { what: String, bytes: u64, limit: u64 },

    #[error("{} does not exist; check the run id", path.display())]
    NotFound { path: PathBuf },

    #[error("{} already exists; choose a new run id", path.display())]
    Exists { path: PathBuf },

    #[error("{detail}")]
    Invalid { detail: String },

    #[error("the journal was closed; this is a bug in nightloop, please report it")]
    Closed,
}

fn place(line: Option<u64>, seq: Option<u64>) -> String {
    match (line, seq) {
        (Some(line), Some(seq)) => format!(" line {line} (seq {seq})"),
        (Some(line), None) => format!(" line {line}"),
        (None, Some(seq)) => format!(" (seq {seq})"),
        (None, None) => String::new(),
    }
}

impl JournalError {
    /// An input or output error at `path`. A full disk keeps its own name wherever it shows up.
    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        if is_full(&source) { Self::DiskFull { path } } else { Self::Io { path, source: Arc::new(source) } }
    }

    /// Damage to a file that is not a journal segment.
    pub(super) fn damaged(path: &Path, detail: impl Into<String>) -> Self {
        Self::Corrupt { path: path.to_owned(), segment: None, line: None, seq: None, detail: detail.into() }
    }

    pub(super) fn invalid(detail: impl Into<String>) -> Self {
        Self::Invalid { detail: detail.into() }
    }
}

/// A full disk and an exhausted quota mean the same to the operator.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// `result.map_err(at(path))`: names the file in an input or output error.
pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> JournalError + '_ {
    move |source| JournalError::io(path, source)
}
