//! The signature of a failure: its class, and a digest of its words without what differs from run to run.
//!
//! Role: say whether two outputs show the same error. Not its role: what follows from that.
//!
//! Invariants: equal means equal class and equal digest; any bytes have a signature; the work is bounded by
//! [`MAX_INPUT`].

mod normal;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::digest::Digest;

/// Of a longer output the end is looked at: errors come last.
pub const MAX_INPUT: usize = 64 * 1024;

/// What kind of error it is. The first that fits, in this order.
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

    /// The phrases that give a class away, in lower case.
    const fn phrases(self) -> &'static [&'static str] {
        match self {
            Self::LintErrors => &[
                "lint error",
                "linting failed",
                "eslint",
                "flake8",
                "pylint",
                "ruff check",
                "clippy::",
                "shellcheck",
                "rustfmt",
                "would reformat",
                "prettier --check",
                "code style issues",
            ],
            Self::MissingImport => &[
                "modulenotfounderror",
                "importerror",
                "no module named",
                "cannot find module",
                "module not found",
                "unresolved import",
                "could not resolve \"",
                "err_module_not_found",
                "cannot find package",
                "can't find crate",
                "use of undeclared crate",
                "no such module",
            ],
            Self::TypeMismatch => &[
                "mismatched types",
                "type mismatch",
                "typeerror",
                "incompatible type",
                "is not assignable to type",
                "cannot be assigned to",
                "error[e0308]",
                "cannot use type",
                "has no attribute",
            ],
            Self::TestFixtureMissing => &[
                "fixture '",
                "fixture not found",
                "missing fixture",
                "no such fixture",
                "fixtures/",
                "test data not found",
            ],
            Self::UpstreamDiverged => &[
                "have diverged",
                "non-fast-forward",
                "merge conflict",
                "automatic merge failed",
                "unmerged paths",
                "updates were rejected",
                "need to specify how to reconcile divergent branches",
            ],
            Self::Unknown => &[],
        }
    }

    fn of(text: &str) -> Self {
        const ORDER: [Class; 5] = [
            Class::LintErrors,
            Class::MissingImport,
            Class::TypeMismatch,
            Class::TestFixtureMissing,
            Class::UpstreamDiverged,
        ];
        let fits = |class: &Class| class.phrases().iter().any(|phrase| text.contains(phrase));
        ORDER.into_iter().find(fits).unwrap_or(Self::Unknown)
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
    /// The signature of an error text.
    pub fn of(text: &str) -> Self {
        Self::of_bytes(text.as_bytes())
    }

    /// The signature of an output, which need not be text.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let kept = &bytes[bytes.len().saturating_sub(MAX_INPUT)..];
        let (plain, normal) = normal::forms(&String::from_utf8_lossy(kept));
        let hash = match normal.is_empty() {
            true => String::new(),
            false => Digest::of(normal.as_bytes()).to_string().chars().take(16).collect(),
        };
        // Paths tell fixtures from other files, so the class is read before they are shortened.
        Self { class: Class::of(&plain), hash }
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.class.name(), self.hash)
    }
}

#[cfg(test)]
mod tests;
