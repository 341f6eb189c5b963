//! Events of the run as a whole: its beginning, its states, its limits, its end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::machine::state::State;
use crate::machine::words::{Place, Told, Topic::Run, counted};
use crate::model::budget::{Effective, Exhausted};
use crate::model::decision::{Patience, Unaccepted};
use crate::model::digest::Digest;
use crate::model::ids::RunId;
use crate::model::learnings::Link;
use crate::model::loop_file::{EndTime, LoopFile};
use crate::model::northstar::Metric;
use crate::model::stop::{ExitStatus, ForbiddenState, StopReason};

use super::family::family;
use super::operator::BudgetRaised;

family! {
    /// What happened to the run.
    RunEvent {
        RunStarted = "run.started", Fact;
        RunResumed = "run.resumed", Fact;
        StateEntered = "state.entered", Decided;
        InputRejected = "input.rejected", Fact;
        NorthstarRead = "northstar.read", Fact;
        MemoryFound = "memory.found", Fact, |found| {
            let distilled = found.distilled.iter().filter_map(|distilled| distilled.found);
            let skills = found.skills.iter().chain(&found.shipped_skills).map(|skill| skill.sha256);
            found.agents_md.into_iter().chain(distilled).chain(skills).collect()
        };
        NullChecked = "null.checked", Decided;
        PlanWritten = "plan.written", Derived;
        MachineSlept = "machine.slept", Fact;
        BackpressureSeen = "backpressure.seen", Fact;
        BudgetCut = "budget.cut", Fact;
        RunHalted = "run.halted", Decided;
    }
}

impl RunEvent {
    pub fn told(&self, at: &Place) -> Told {
        match self {
            Self::RunStarted(started) => {
                let goal = started.declaration.goal.as_deref().unwrap_or("no goal is declared");
                let typed = match started.typed.as_slice() {
                    [] => String::new(),
                    typed => format!(" ({})", typed.join(" ")),
                };
                Told::new(Run, format!("the run begins{typed}: {goal}"))
            }
            Self::RunResumed(resumed) => {
                let text = format!("resumed after an interruption in {} (attempt {})", at.state, resumed.attempt);
                Told::judged(Run, false, text)
            }
            Self::StateEntered(entered) => {
                Told::quiet(Run, format!("{} to {}: {}", entered.from, entered.to, entered.why))
            }
            Self::InputRejected(rejected) => {
                Told::judged(Run, false, format!("rejected in {}: {}", rejected.state, rejected.why))
            }
            Self::NorthstarRead(read) => match &read.problem {
                Some(problem) => Told::judged(Run, false, format!("northstar: {problem}")),
                None => Told::new(Run, format!("northstar: {} metrics in {}", read.metrics.len(), read.file)),
            },
            Self::MemoryFound(found) => {
                let blocks = counted(found.blocks.len(), "block", "blocks");
                match &found.distilled {
                    None => Told::quiet(Run, format!("{blocks} of earlier runs in AGENTS.md")),
                    Some(distilled) => {
                        let steps = counted(distilled.log.len(), "step", "steps");
                        Told::new(Run, format!("{blocks} of earlier runs in AGENTS.md, made smaller in {steps}"))
                    }
                }
            }
            Self::NullChecked(checked) if checked.missing.is_empty() => Told::quiet(Run, "nothing is missing"),
            Self::NullChecked(checked) => Told::judged(Run, false, format!("missing: {}", checked.missing.join(", "))),
            Self::PlanWritten(_) => Told::new(Run, "the plan is written"),
            Self::MachineSlept(slept) => Told::judged(Run, false, slept.describe()),
            Self::BackpressureSeen(seen) if seen.signal == Signal::EndTime => {
                Told::new(Run, format!("it is {}: what is begun is finished, then the run stops as asked", seen.detail))
            }
            Self::BackpressureSeen(seen) if seen.signal.is_as_asked() || seen.signal == Signal::AgentFailed => {
                Told::judged(Run, false, format!("stop: {}", seen.signal.reason(&seen.detail)))
            }
            Self::BackpressureSeen(seen) => {
                Told::judged(Run, false, format!("stop: {} {}", seen.signal.describe(), seen.detail))
            }
            Self::BudgetCut(cut) => {
                let Exhausted { dimension, observed, limit } = &cut.exhausted;
                Told::judged(Run, false, format!("{} budget reached: {dimension} {observed} of {limit}", at.when))
            }
            Self::RunHalted(halted) => {
                let good = halted.status == ExitStatus::ExitConverged;
                Told::judged(Run, good, format!("{} ({}): {}", halted.status, halted.stop_reason, halted.detail))
            }
        }
    }
}

/// The first event: everything the run was declared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    pub run: RunId,
    pub engine_version: String,
    pub reducer_version: u32,
    pub started: String,
    pub loop_sha256: Digest,
    pub declaration: Box<LoopFile>,
    /// The text of the declaration, where there is no loop.yaml that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared_text: Option<String>,
    /// What the operator typed beside it, option by option: it is part of `declaration` already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub typed: Vec<String>,
    /// When the run is to leave off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<EndTime>,
    pub budget: Effective,
    /// The level that is enforced around tools and checks, as the sandbox names it.
    pub sandbox: String,
    /// Can checks be run against other trees than the workspace?
    #[serde(default)]
    pub overlays: bool,
    /// Judges that an earlier run changed, and that nobody accepted: they count as that run found them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unaccepted: Vec<Unaccepted>,
    /// Rules that the operator had remembered for this workspace; they stand beside the declared ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remembered: Vec<String>,
    pub warnings: Vec<String>,
    /// What happens to a decision nobody answers.
    #[serde(default)]
    pub patience: Patience,
}

/// The run goes on after a crash, a kill or an interruption.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResumed {
    pub engine_version: String,
    pub reducer_version: u32,
    /// Recoveries in a row that started from the same place.
    pub attempt: u32,
    pub torn_bytes: u64,
    pub torn_sha256: Option<Digest>,
    #[serde(default)]
    pub patience: Patience,
    /// Limits that the operator raised so that it can go on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub raised: Vec<BudgetRaised>,
    /// When it is to leave off this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<EndTime>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StateEntered {
    pub from: State,
    pub to: State,
    pub why: String,
}

/// An input that is illegal in the state it arrived in. Recorded, never ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InputRejected {
    pub state: State,
    pub input: String,
    pub why: String,
}

/// NORTHSTAR.md as found; `problem` says why it cannot serve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NorthstarRead {
    pub file: String,
    pub sha256: Option<Digest>,
    pub metrics: Vec<Metric>,
    pub problem: Option<String>,
}

/// What the run could remember when it began, before any agent worked.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MemoryFound {
    /// AGENTS.md as it was, as a blob. `None`: it holds a secret, and so is not kept.
    pub agents_md: Option<Digest>,
    /// The generated blocks of earlier runs, by run.
    pub blocks: BTreeMap<String, Digest>,
    /// The workspace's own skills: blobs.
    pub skills: Vec<Link>,
    /// The shipped skills, where they stand in the evidence: blobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shipped_skills: Vec<Link>,
    /// Own skills that are told to nobody: there are too many, they are too large, or hold a secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills_left_out: Vec<String>,
    /// What AGENTS.md says where it is a link. A seal holds what it leads to, and not the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Blocks of earlier runs that were made smaller before anything was compared with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distilled: Option<BlocksDistilled>,
}

/// The engine's own rewriting of earlier blocks in AGENTS.md. It follows from the text, so that a killed engine's
/// successor does it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlocksDistilled {
    /// The digests of AGENTS.md before and after.
    pub before: Digest,
    pub after: Digest,
    /// The text before, as a blob. `None`: it holds a secret, and so is not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Digest>,
    /// What went, line by line.
    pub log: Vec<String>,
}

/// What was missing at NULL_CHECK, by field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NullChecked {
    pub missing: Vec<String>,
}

/// plan.json is written: the loop's contract stands before iteration 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanWritten {
    pub sha256: Digest,
}

/// Why everything has to stop now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    StopFile,
    UserInterrupt,
    Terminated,
    DiskUsage,
    RateLimit,
    SpendLimit,
    DownstreamUnavailable,
    /// Something that loop.yaml names under `backpressure` does not answer.
    DependencyDown,
    /// An operator asked for a stop at the end of the iteration.
    AfterIteration,
    /// A person has to decide, and nobody is waited for.
    DecisionNeeded,
    /// `stop_when`: the time has come.
    EndTime,
    /// `stop_when`: so much was spent.
    CostReached,
    /// `stop_when`: an item, or so many iterations, are finished.
    WorkDone,
    /// `stop_when`: nothing happened for so long.
    Idle,
    /// An agent program breaks down again and again, or is not signed in.
    AgentFailed,
}

impl Signal {
    pub const fn describe(self) -> &'static str {
        match self {
            Self::StopFile => "scratch/STOP exists",
            Self::UserInterrupt => "interrupted by the operator",
            Self::Terminated => "asked to terminate",
            Self::DiskUsage => "the workspace's file system is more than 90 % full",
            Self::RateLimit => "the rate limit does not reset within the time budget",
            Self::SpendLimit => "the account's spend limit is reached",
            Self::DownstreamUnavailable => "the model API cannot be reached",
            Self::DependencyDown => "what the work needs is not available",
            Self::AfterIteration => "the operator asked for a stop after this iteration",
            Self::DecisionNeeded => "a person has to decide",
            Self::EndTime => "the time to stop has come",
            Self::CostReached => "what was to be spent is spent",
            Self::WorkDone => "as much as was asked for is done",
            Self::Idle => "nothing happens",
            Self::AgentFailed => "the agent program does not work",
        }
    }

    /// Was it asked for in `stop_when`, so that nothing is wrong?
    pub const fn is_as_asked(self) -> bool {
        matches!(self, Self::EndTime | Self::CostReached | Self::WorkDone | Self::Idle)
    }

    /// Why the run stops, in a sentence.
    pub fn reason(self, detail: &str) -> String {
        const GOES_ON: &str = "`nightloop resume` goes on";
        match self {
            Self::EndTime => format!("Stopped at {detail} as asked, {GOES_ON}"),
            Self::CostReached | Self::WorkDone | Self::Idle => format!("Stopped {detail} as asked, {GOES_ON}"),
            Self::AgentFailed if !detail.is_empty() => detail.to_owned(),
            other if detail.is_empty() => other.describe().to_owned(),
            other => format!("{}: {detail}", other.describe()),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BackpressureSeen {
    pub signal: Signal,
    pub detail: String,
}

/// The machine was suspended: local times, RFC 3339 with their offset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineSlept {
    pub from: String,
    pub to: String,
}

impl MachineSlept {
    /// In hours and minutes, as a clock on the wall showed them.
    pub fn describe(&self) -> String {
        let clock = |time: &str| time.get(11..16).unwrap_or(time).to_owned();
        format!("the machine slept {}-{}", clock(&self.from), clock(&self.to))
    }
}

/// A limit was reached inside an iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BudgetCut {
    pub exhausted: Exhausted,
}

/// The end, unless a stop signal caused it: then `resume` goes on at `last_state` once the cause is gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunHalted {
    pub status: ExitStatus,
    pub stop_reason: StopReason,
    pub forbidden_state: Option<ForbiddenState>,
    pub last_state: State,
    pub detail: String,
    pub exhausted: Option<Exhausted>,
    pub signal: Option<Signal>,
}
