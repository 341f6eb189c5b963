//! Verifications: scripts that the QC role wrote and the engine runs.

use serde::{Deserialize, Serialize};

use crate::model::digest::Digest;

/// Where the scripts live, relative to the workspace.
pub const DIRECTORY: &str = ".loop/verifications";
/// Of each output this much is kept in a failure record.
pub const MAX_EXCERPT: usize = 2_000;
/// Failure records kept for each verification.
pub const MAX_FAILURES: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerificationStatus {
    Pending,
    Passed,
    Failed,
    /// Given up on after everything bounded was tried; stays visible, and keeps the exit gate shut.
    Blocked,
}

impl VerificationStatus {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
        }
    }
}

/// One failed run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub step: u32,
    /// How the script ended, in words.
    pub end: String,
    /// The end of its output, bounded.
    pub excerpt: String,
    /// The whole kept output, as a blob.
    pub output: Digest,
    /// The output with places, times and numbers taken out, so that the same error is seen again.
    pub signature: String,
}

/// Runs of one script on the same files that did not agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flaky {
    pub step: u32,
    pub passed: u32,
    pub runs: u32,
}

impl Flaky {
    /// For people and agents.
    pub fn words(&self) -> String {
        format!("flaky: {} of {} runs passed on the same files", self.passed, self.runs)
    }
}

/// Whoever works against a check says that the check is wrong. Its author looks at it once, and then it is settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dispute {
    pub step: u32,
    /// Why, in the words of the agent; bounded.
    pub reason: String,
    /// `None`: nobody has looked at it yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settled>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settled {
    WrittenAnew,
    Stands,
}

impl Dispute {
    pub const fn is_open(&self) -> bool {
        self.settled.is_none()
    }
}

/// One script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// `category/stem`.
    pub id: String,
    pub category: String,
    pub path: String,
    /// The script as the QC role left it, as a blob. The engine runs these bytes and no others.
    pub script: Digest,
    pub executable: bool,
    /// Categories that must have passed before this one runs.
    pub requires: Vec<String>,
    pub status: VerificationStatus,
    /// Times it ran.
    pub runs: u32,
    /// Fixes that were tried for it.
    pub fix_attempts: u32,
    /// Was research done for it since it last passed? Kept by verification, so that another failure resets nothing.
    pub researched: bool,
    /// Was the course corrected for it since it last passed?
    pub corrected: bool,
    pub failures: Vec<Failure>,
    /// The step in which it first passed.
    pub first_passed_in: Option<u32>,
    /// Its latest runs that did not agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaky: Option<Flaky>,
    /// The task after which it failed, where it had passed before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispute: Option<Dispute>,
}

impl Verification {
    /// Is it said to be wrong, does it not pass, and has its author not looked yet?
    pub fn is_disputed(&self) -> bool {
        let open = self.dispute.as_ref().is_some_and(Dispute::is_open);
        open && matches!(self.status, VerificationStatus::Failed | VerificationStatus::Blocked)
    }
}
