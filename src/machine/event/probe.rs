//! Events of the commands that the engine learns facts from.

use serde::{Deserialize, Serialize};

use crate::model::digest::Digest;
use crate::model::guard::Count;
use crate::model::signature::Signature;
use crate::model::tools::{Fix, Missing};

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
    /// The work, with what judges it as the run found it.
    Pristine,
    /// The same, with programs that were installed since.
    PristineWithTools,
    /// The work, with what judges it as it was when the last item passed.
    PristineSince,
    /// What judges the work as it is now, with the work as the run found it.
    Reverted,
    /// With a test that must fail.
    Canary,
    /// The same, with everything else as the run found it.
    CanaryAtStart,
    /// Everything as the run found it: what its output is now, it was then, but for what the work does not explain.
    AtStart,
    /// In a workspace without any file: what passes there proves nothing.
    Empty,
    /// In a step of the value playbook.
    Step(u32),
    /// In the same step once more, for a check whose result is doubted: the step, and which run after the first.
    StepAgain(u32, u8),
    /// Such a run of a replay: which replay, and which run after it.
    ReplayAgain(u8, u8),
    /// In place of the author.
    Detour,
}

impl Phase {
    /// Should a check pass there? `None`: either is as it should be.
    pub const fn should_pass(self) -> Option<bool> {
        match self {
            // Before the first iteration a check that fails is what the run is for.
            Self::Baseline | Self::CanaryAtStart | Self::AtStart => None,
            Self::Reverted | Self::Canary | Self::Empty => Some(false),
            Self::Scouted
            | Self::Iteration
            | Self::Replay(_)
            | Self::Gate
            | Self::Step(_)
            | Self::StepAgain(..)
            | Self::ReplayAgain(..)
            | Self::Detour
            | Self::Pristine
            | Self::PristineWithTools
            | Self::PristineSince => Some(true),
        }
    }

    /// Which tree it ran against, for what is tried before a success counts.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Baseline => "at the start",
            Self::Scouted => "before the work",
            Self::Iteration | Self::Step(_) | Self::Detour => "as it is",
            Self::Replay(_) | Self::StepAgain(..) | Self::ReplayAgain(..) => "again",
            Self::Gate => "for the gate",
            Self::Pristine => "with the judges of the start",
            Self::PristineWithTools => "with the judges of the start and new programs",
            Self::PristineSince => "with the judges of the last item that passed",
            Self::Reverted => "without the work",
            Self::Canary => "with a test that must fail",
            Self::CanaryAtStart => "with a test that must fail, at the start",
            Self::AtStart => "with everything as at the start",
            Self::Empty => "in an empty workspace",
        }
    }
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
    /// What it really showed, where `output` only says how it ended: its files are held back from agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_back: Option<Digest>,
    /// The digest of the whole stdout, kept or not.
    pub stdout_sha256: Digest,
    pub output_bytes: u64,
    /// The last non-empty line of stdout, bounded.
    pub last_line: Option<String>,
    /// Interface items that were there at the start and are not now; only for the interface probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_lines: Option<Vec<String>>,
    /// How many tests ran, where the output says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<Count>,
    /// Files that it changed while it ran, where that is looked at: at the start all of them, later those that judge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrote: Vec<String>,
    /// How many lines of a failed check complain: fewer than ever is progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complaints: Option<u32>,
    /// The digest of stdout without times and order, for checks: by it two runs are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady_sha256: Option<Digest>,
    /// Does the output show the test that must fail? Only where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary_shown: Option<bool>,
    /// What a failure looks like without places, times and numbers, where failures are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
    /// What the tool that failed has to mend it, where failures are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
    /// The program that it needed and did not find.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Missing>,
    pub millis: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeFinished {
    pub phase: Phase,
    pub probe: Probe,
    pub result: ProbeResult,
}
