//! Acceptance criteria as declared, and as found.

use serde::{Deserialize, Serialize};

use super::learnings::Link;

/// Who decides whether a criterion is met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// The engine runs this command; exit code 0 means met.
    Check { argv: Vec<String>, timeout_seconds: u64 },
    /// The skeptic judges, and must name an artifact.
    Judged,
}

/// One acceptance criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Criterion {
    pub id: String,
    pub text: String,
    pub proof: Proof,
    /// Globs of files that must not change in the iteration that turns this criterion green.
    pub protects: Vec<String>,
}

impl Criterion {
    pub fn is_judged(&self) -> bool {
        self.proof == Proof::Judged
    }
}

/// What was found for one criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub id: String,
    pub criterion: String,
    pub met: bool,
    /// Without a link a criterion is never met.
    pub evidence_link: Option<Link>,
    pub why: String,
}
