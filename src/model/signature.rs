//! The signature of a failure: its class, and a digest of its words without what differs from run to run.
//!
//! Role: say whether two outputs show the same error. Not its role: what follows from that, what tools say
//! (`model::tools`).
//!
//! Invariants: equal means equal class and equal digest; any bytes have a signature; the work is bounded by
//! [`MAX_INPUT`].

mod earlier;
mod normal;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::tools;

/// Of a longer output the end is looked at.
pub const MAX_INPUT: usize = 64 * 1024;

/// What kind of error it is, by the rules of `assets/check-tools.yaml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    LintErrors,
    MissingImport,
    TypeMismatch,
    TestFixtureMissing,
    UpstreamDiverged,
    /// What fits no other class.
    Unknown,
}

impl Class {
    pub const fn name(self) -> &'static str {
        match self {
            Self::LintErrors => "lint_errors",
            Self::MissingImport => "missing_import",
            Self::TypeMismatch => "type_mismatch",
            Self::TestFixtureMissing => "test_fixture_missing",
            Self::UpstreamDiverged => "upstream_diverged",
            Self::Unknown => "unknown",
        }
    }
}

/// Two errors are the same when their signatures are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Signature {
    pub class: Class,
    /// The first 16 hex digits of the SHA-256 of the normal form; empty when nothing was said.
    pub hash: String,
}

impl Signature {
    /// The signature of what an author or a critic says.
    pub fn of_words(words: &str) -> Self {
        Self { class: tools::class_of_words(words), hash: hash(&plain(words.as_bytes())) }
    }

    /// The signature of what a failed check printed, which need not be text.
    pub fn of_check(argv: &[String], output: &[u8]) -> Self {
        let plain = plain(output);
        Self { class: tools::class_of(argv, &plain), hash: hash(&plain) }
    }

    /// By phrases anywhere: how words are told apart in runs that began before tools were known.
    pub fn by_phrases(words: &str) -> Self {
        let plain = plain(words.as_bytes());
        Self { class: earlier::class_of(&plain.to_lowercase()), hash: hash(&plain) }
    }
}

/// The end of an output as text without colours: errors come last.
pub fn plain(output: &[u8]) -> String {
    let kept = &output[output.len().saturating_sub(MAX_INPUT)..];
    normal::plain(&String::from_utf8_lossy(kept))
}

fn hash(plain: &str) -> String {
    let normal = normal::normal(plain);
    if normal.is_empty() {
        return String::new();
    }
    Digest::of(normal.as_bytes()).to_string().chars().take(16).collect()
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.class.name(), self.hash)
    }
}

#[cfg(test)]
mod tests;
