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
    /// The value playbook's exit gate: its scripts all pass, and a judge that saw nothing of the work agrees.
    ExitGate,
    /// The prd playbook: every item of prd.json passes.
    Items,
    /// The micro playbook: the critic found nothing grave in this iteration's result.
    Verified,
}

/// One acceptance criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Criterion {
    pub id: String,
    pub text: String,
    pub proof: Proof,
    /// Globs of files that must not change in the iteration that turns this criterion green.
    pub protects: Vec<String>,
    /// A folder outside of the workspace whose files only the engine shows to the check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden: Option<String>,
    /// Globs of what the check may write into the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
}

/// The id of the criterion that the value playbook adds.
pub const EXIT_GATE: &str = "exit-gate";

/// The id of the criterion that the prd playbook adds.
pub const ITEMS: &str = "items";
/// The id of the criterion that the micro playbook adds.
pub const VERIFIED: &str = "verified";

impl Proof {
    /// Is it a playbook's own way out? Without it there is no success, whatever a residual says.
    pub const fn is_the_way_out(&self) -> bool {
        matches!(self, Self::ExitGate | Self::Items | Self::Verified)
    }
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
