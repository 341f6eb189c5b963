//! What can stop the engine itself, with the exit code that tells it apart.

use std::io;
use std::path::{Path, PathBuf};

use crate::journal::JournalError;
use crate::machine::fold::FoldError;
use crate::model::diagnose::Diagnostic;
use crate::playbook::prompts::PromptError;

/// Exit codes other than those of a finished run.
pub mod code {
    pub const USAGE: u8 = 64;
    pub const CORRUPT: u8 = 65;
    pub const INTERNAL: u8 = 70;
    pub const BUSY: u8 = 73;
    pub const IO: u8 = 74;
    pub const RESUMABLE: u8 = 75;
    pub const NEWER: u8 = 76;
    pub const NEED_INFO: u8 = 3;
}

/// The engine cannot go on. The journal keeps what was acknowledged.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("the journal cannot be replayed: {0}\n  hint: `nightloop verify` names the place")]
    Fold(#[from] FoldError),
    #[error("the journal holds events of a newer version (`{kind}`)\n  hint: use the nightloop that wrote it")]
    NewerEvents { kind: String },
    #[error("{0}")]
    Declaration(Diagnostic),
    #[error("{0}")]
    NeedInfo(Diagnostic),
    #[error(transparent)]
    Prompt(#[from] PromptError),
    #[error("{what} ({}): {source}", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    #[error("{message}\n  hint: {hint}")]
    Usage { message: String, hint: String },
    #[error("{message}\n  hint: {hint}")]
    Busy { message: String, hint: String },
    #[error("{message}\n  hint: {hint}")]
    Resumable { message: String, hint: String },
    #[error("{message}\n  hint: {hint}")]
    Unanchored { message: String, hint: String },
    /// No failure: there is nothing to do.
    #[error("{0}")]
    AlreadyMet(String),
    #[error("internal error: {0}")]
    Internal(String),
}

impl EngineError {
    pub fn io(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { what, path: path.to_owned(), source }
    }

    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: hint.into() }
    }

    /// What happened, and what to do where that is known: for whoever shows the two on lines of their own.
    pub fn parts(&self) -> (String, Option<String>) {
        match self {
            Self::Usage { message, hint }
            | Self::Busy { message, hint }
            | Self::Resumable { message, hint }
            | Self::Unanchored { message, hint } => (message.clone(), Some(hint.clone())),
            Self::Declaration(wrong) | Self::NeedInfo(wrong) => {
                let hint = wrong.hint.clone();
                (Diagnostic { hint: None, ..wrong.clone() }.to_string(), hint)
            }
            // Their hints are our own words, so the last one is it.
            Self::Fold(_) | Self::NewerEvents { .. } => {
                let text = self.to_string();
                match text.rsplit_once("\n  hint: ") {
                    Some((message, hint)) => (message.to_owned(), Some(hint.to_owned())),
                    None => (text, None),
                }
            }
            Self::AlreadyMet(said) => (said.clone(), Some("`nightloop run --anyway` starts all the same".to_owned())),
            Self::Journal(_) | Self::Prompt(_) | Self::Io { .. } | Self::Internal(_) => (self.to_string(), None),
        }
    }

    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Journal(error) => match error {
                JournalError::Locked { .. } => code::BUSY,
                JournalError::Corrupt { .. } | JournalError::Torn { .. } => code::CORRUPT,
                JournalError::NewerVersion { .. } => code::NEWER,
                JournalError::DiskFull { .. } => code::RESUMABLE,
                JournalError::NotFound { .. } | JournalError::Exists { .. } => code::USAGE,
                JournalError::Poisoned { .. } | JournalError::Io { .. } => code::IO,
                JournalError::TooLarge { .. } | JournalError::Invalid { .. } | JournalError::Closed => code::INTERNAL,
            },
            Self::Fold(_) | Self::Unanchored { .. } => code::CORRUPT,
            Self::NewerEvents { .. } => code::NEWER,
            Self::Declaration(_) | Self::Usage { .. } => code::USAGE,
            Self::AlreadyMet(_) => 0,
            Self::NeedInfo(_) => code::NEED_INFO,
            Self::Io { .. } => code::IO,
            Self::Busy { .. } => code::BUSY,
            Self::Resumable { .. } => code::RESUMABLE,
            Self::Prompt(_) | Self::Internal(_) => code::INTERNAL,
        }
    }
}
