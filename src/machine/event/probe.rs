//! Events of the commands that the engine learns facts from.

use serde::{Deserialize, Serialize};

use crate::model::digest::Digest;
use crate::model::signature::Signature;

/// A command the engine runs to learn a fact.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Probe {
    Criterion(String),
    Residual,
    Metric(String),
    SubGoal,
    /// A script of the value playbook.
    Verification(String),
    /// The check of a task of the plan.
    Task(String),
    /// The check of an item of the PRD.
    Item(String),
    /// A known fix that is a command. It acts, and is tried for what it does, not for what it shows.
    Detour(String),
    Security,
    SecurityVersion,
    ApiSurface,
}

impl Probe {
    /// A name for lines, files and messages.
    pub fn name(&self) -> String {
        match self {
            Self::Criterion(id) => format!("check {id}"),
            Self::Residual => "residual".to_owned(),
            Self::Metric(id) => format!("metric {id}"),
            Self::SubGoal => "sub-goal".to_owned(),
            Self::Verification(id) => format!("verification {id}"),
            Self::Task(id) => format!("check of task {id}"),
            Self::Item(id) => format!("check of item {id}"),
            Self::Detour(name) => format!("detour {name}"),
            Self::Security => "security".to_owned(),
            Self::SecurityVersion => "security version".to_owned(),
            Self::ApiSurface => "api surface".to_owned(),
        }
    }
}

/// When a probe runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before the first iteration.
    Baseline,
    /// After the scout, before the solver.
    Scouted,
    /// In CHECK_HALTING.
    Iteration,
    /// A replay of the certificate on the frozen artifacts.
    Replay(u8),
    /// For the pass-gate.
    Gate,
    /// In a step of the value playbook.
    Step(u32),
    /// In place of the author.
    Detour,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeStarted {
    pub phase: Phase,
    pub probe: Probe,
    pub argv: Vec<String>,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeEnd {
    Exited(i32),
    Signaled(i32),
    TimedOut,
    Cancelled,
    NotStarted(String),
}

impl ProbeEnd {
    pub fn passed(&self) -> bool {
        *self == Self::Exited(0)
    }

    pub fn describe(&self) -> String {
        match self {
            Self::Exited(code) => format!("exit {code}"),
            Self::Signaled(signal) => format!("ended by signal {signal}"),
            Self::TimedOut => "timed out".to_owned(),
            Self::Cancelled => "cancelled".to_owned(),
            Self::NotStarted(why) => format!("did not start: {why}"),
        }
    }
}

/// What a command showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeResult {
    pub end: ProbeEnd,
    /// The kept output, as a blob.
    pub output: Digest,
    /// The digest of the whole stdout, kept or not.
    pub stdout_sha256: Digest,
    pub output_bytes: u64,
    /// The last non-empty line of stdout, bounded.
    pub last_line: Option<String>,
    /// Interface items that were there at the start and are not now; only for the interface probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_lines: Option<Vec<String>>,
    /// What a failure looks like without places, times and numbers, where failures are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
    pub millis: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeFinished {
    pub phase: Phase,
    pub probe: Probe,
    pub result: ProbeResult,
}
