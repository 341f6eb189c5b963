//! The folded state of the value playbook. Everything its decisions, its rendered views and the console show.
//!
//! Role: the state and what is read off it; `fold` changes it, `legal` says what may. Not its role: deciding what comes
//! next (`decide`). Invariant: nothing here is stored elsewhere; `.loop_state.json` and the plan files are rendered from
//! it and never read.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::LazyLock;

use crate::model::decision::DecisionId;
use crate::model::digest::Digest;
use crate::model::purpose::{Purpose, Tool};
use crate::model::value::plan::TaskSource;
use crate::model::value::tools::{Discovery, HumanActionRequest, ResearchReport, Service, StrategyChange, Structured};
use crate::model::value::{
    Action, Gate, Outcome, Task, TaskStatus, ValueSettings, Verification, VerificationStatus, Vrc,
};

use super::event::{
    DocumentsRead, EpicPut, EpicStatus, PreflightChecked, RoundClosed, RoundKept, ServiceHealth, Target, WorkSeen,
};
use crate::machine::event::{AgentEnd, GitFinished, Phase, Probe, ProbeResult};
use crate::machine::run::RunState;

/// A call that a step made.
#[derive(Debug, Clone, PartialEq)]
pub struct StepCall {
    pub key: String,
    pub purpose: Purpose,
    pub subject: Option<String>,
    pub end: AgentEnd,
    /// The last message of the agent, as a blob.
    pub words: Option<Digest>,
}

/// An attempt at a task or at failing checks: what the next agent has to know of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    pub step: u32,
    /// The task, or the verifications.
    pub subject: Vec<String>,
    pub end: AgentEnd,
    pub words: Option<Digest>,
    /// How the task's own check failed, and its output.
    pub failed: Option<(String, Digest)>,
    pub work: Option<WorkSeen>,
}

/// A step in progress: what it has so far.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenStep {
    pub number: u32,
    pub action: Action,
    /// The state of things when it began.
    pub began: Mark,
    pub calls: Vec<StepCall>,
    /// What structured tools brought, in order, with the purpose of the call.
    pub reports: Vec<(Purpose, Structured)>,
    pub probes: BTreeMap<Probe, ProbeResult>,
    pub git: Vec<GitFinished>,
    /// What its agent changed.
    pub work: Option<WorkSeen>,
    pub services: Option<Vec<ServiceHealth>>,
    /// How often the services were looked at in this step.
    pub service_checks: u32,
    /// `None` again once an agent or a person may have changed what was seen.
    pub preflight: Option<PreflightChecked>,
    /// Were the documents read in this step, after its latest round was kept and its latest question asked?
    pub documents_read: bool,
    /// Were the scripts read in this step?
    pub scripts_found: bool,
    /// What the step asked a person, in order.
    pub decisions: Vec<DecisionId>,
    /// Where the present round of refinement begins.
    pub round: RoundMark,
}

/// How much of a step lay before its present round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RoundMark {
    calls: usize,
    reports: usize,
    decisions: usize,
}

impl OpenStep {
    /// The calls of the present round; of the whole step where there are no rounds.
    pub fn round_calls(&self) -> &[StepCall] {
        self.calls.get(self.round.calls..).unwrap_or_default()
    }

    pub fn round_reports(&self) -> &[(Purpose, Structured)] {
        self.reports.get(self.round.reports..).unwrap_or_default()
    }

    pub fn round_decisions(&self) -> &[DecisionId] {
        self.decisions.get(self.round.decisions..).unwrap_or_default()
    }

    pub(super) fn begin_round(&mut self) {
        let (calls, reports, decisions) = (self.calls.len(), self.reports.len(), self.decisions.len());
        self.round = RoundMark { calls, reports, decisions };
    }

    /// The step asks a person, who may change the documents and the machine meanwhile.
    pub(super) fn ask(&mut self, id: DecisionId) {
        self.decisions.push(id);
        self.documents_read = false;
        self.preflight = None;
    }

    /// How often the step has called for this purpose.
    pub fn calls_for(&self, purpose: Purpose) -> usize {
        self.calls.iter().filter(|call| call.purpose == purpose).count()
    }

    /// The latest call for this purpose.
    pub fn last_call(&self, purpose: Purpose) -> Option<&StepCall> {
        self.calls.iter().rev().find(|call| call.purpose == purpose)
    }

    /// The latest thing a tool brought in this step.
    pub fn last_report(&self, tool: Tool) -> Option<&Structured> {
        self.reports.iter().rev().map(|(_, report)| report).find(|report| report.tool() == tool)
    }
}

/// What was spent, and where the plan stood, at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    pub tokens: u64,
    pub millis: u64,
    pub done: usize,
    pub passed: usize,
}

/// A finished step: a line of the progress log.
#[derive(Debug, Clone, PartialEq)]
pub struct StepRecord {
    pub step: u32,
    pub iteration: Option<u32>,
    pub action: Action,
    pub outcome: Outcome,
    pub detail: String,
    pub tokens: u64,
    pub millis: u64,
    /// A limit ended it before its work was done.
    pub cut: bool,
}

/// The rounds of one document's refinement.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Refinement {
    pub rounds: Vec<Round>,
    pub consensus: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    pub kept: RoundKept,
    pub closed: Option<RoundClosed>,
}

/// A place to go back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    pub label: String,
    pub commit: String,
    pub step: u32,
    pub tasks_done: Vec<String>,
    pub passing: Vec<String>,
}

/// What is known of a service that the engine starts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Life {
    pub starts: u32,
    /// What it was started as, while it runs.
    pub runs: Option<Box<Service>>,
    /// Files changed since it was started.
    pub stale: bool,
    pub was_healthy: bool,
    /// How it ended the last time.
    pub last_end: Option<String>,
}

/// The value playbook's part of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ValueState {
    pub documents: Option<DocumentsRead>,
    pub gates: BTreeSet<Gate>,
    pub vision: Refinement,
    pub prd: Refinement,
    pub context: Option<Discovery>,
    /// In the order they were made.
    pub tasks: Vec<Task>,
    pub verifications: BTreeMap<String, Verification>,
    pub vrcs: Vec<Vrc>,
    pub research: Vec<ResearchReport>,
    pub log: Vec<StepRecord>,
    pub step: Option<OpenStep>,
    /// Numbers are never used twice.
    pub steps_begun: u32,
    /// The first step of each iteration.
    pub iteration_starts: Vec<u32>,
    /// Finished steps of the present iteration.
    pub in_iteration: Vec<u32>,
    pub no_progress: u32,
    pub services: Vec<ServiceHealth>,
    /// The services that agents declared, in the order they came.
    pub declared: Vec<Service>,
    /// The services that the engine started.
    pub lives: BTreeMap<String, Life>,
    /// The round of checks that services were looked at for, outside of steps.
    pub services_for: Option<(u32, Phase)>,
    pub exit_gate_attempts: u32,
    pub exit_gate_passed: Option<u32>,
    /// Did a judge of the latest exit gate break off, so that nothing is known of the work?
    pub gate_unjudged: bool,
    pub strategy: Option<StrategyChange>,
    pub strategies: Vec<(u32, StrategyChange)>,
    pub checkpoints: Vec<Checkpoint>,
    /// Rollbacks; a fix that was undone is none.
    pub restores: u32,
    pub epics: Vec<EpicPut>,
    /// The tree of the latest look within this iteration.
    pub seen: Option<Digest>,
    /// The latest attempts of builders and fixers, oldest first.
    pub attempts: VecDeque<Attempt>,
    /// Steps of GENERATE_QC that looked at checks that were said to be wrong.
    pub regenerations: Vec<u32>,
    /// What agents asked a person to do, in order. A builder's request names the task it was given.
    pub human_requests: Vec<HumanActionRequest>,
    /// Fixes that were undone: the reasons given for putting the files back.
    pub undone_causes: Vec<String>,
    /// Steps in which an obstacle went away: a person did what a task waited for, or what was down is up again.
    pub cleared_in: BTreeSet<u32>,
}

impl ValueState {
    pub fn task(&self, id: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| task.id == id)
    }

    pub fn latest_vrc(&self) -> Option<&Vrc> {
        self.vrcs.last()
    }

    /// The latest check at the end of an iteration; `None`: before the first one.
    pub fn vrc_at_end_of(&self, iteration: Option<u32>) -> Option<&Vrc> {
        let next = iteration.map_or(0, |number| number as usize + 1);
        let before = self.iteration_starts.get(next).copied().unwrap_or(u32::MAX);
        self.vrcs.iter().rev().find(|vrc| vrc.step < before)
    }

    pub fn count(&self, status: VerificationStatus) -> usize {
        self.verifications.values().filter(|verification| verification.status == status).count()
    }

    pub fn tasks_with(&self, status: TaskStatus) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(move |task| task.status == status)
    }

    /// Finished steps of a kind, by the name of their action.
    pub fn steps_of(&self, name: &str) -> usize {
        self.log.iter().filter(|record| record.action.name() == name).count()
    }

    /// Decision-engine steps so far, the open one included.
    pub fn decision_steps(&self) -> u32 {
        let done = self.log.iter().filter(|record| record.action.is_decision()).count();
        let open = self.step.as_ref().is_some_and(|step| step.action.is_decision());
        u32::try_from(done).unwrap_or(u32::MAX).saturating_add(u32::from(open))
    }

    pub fn refinement(&self, target: Target) -> &Refinement {
        match target {
            Target::Vision => &self.vision,
            Target::Prd => &self.prd,
        }
    }

    /// The epic that is worked on.
    pub fn current_epic(&self) -> Option<&EpicPut> {
        self.epics.iter().find(|epic| epic.status == EpicStatus::InProgress)
    }

    pub(super) fn refinement_mut(&mut self, target: Target) -> &mut Refinement {
        match target {
            Target::Vision => &mut self.vision,
            Target::Prd => &mut self.prd,
        }
    }

    /// The checks that are said to be wrong and that their author has not looked at: verifications, then tasks.
    pub fn disputed(&self) -> Vec<&str> {
        let scripts = self.verifications.values().filter(|one| one.is_disputed()).map(|one| one.id.as_str());
        scripts.chain(self.tasks.iter().filter(|task| task.is_disputed()).map(|task| task.id.as_str())).collect()
    }

    pub(super) fn put_task(&mut self, task: Task) {
        match self.tasks.iter_mut().find(|known| known.id == task.id) {
            Some(known) => *known = task,
            None => self.tasks.push(task),
        }
    }
}

/// Attempts that are remembered, of all tasks and checks together.
const MAX_ATTEMPTS: usize = 60;

impl ValueState {
    /// Keeps what the next attempt has to know of this one.
    pub(super) fn note_attempt(&mut self, step: &OpenStep) {
        let (purpose, subject, own) = match &step.action {
            Action::Execute { task } => (Purpose::Execute, vec![task.clone()], Some(Probe::Task(task.clone()))),
            Action::Fix { verifications } => (Purpose::Fix, verifications.clone(), None),
            _ => return,
        };
        let Some(call) = step.last_call(purpose) else { return };
        let failed = own.and_then(|probe| step.probes.get(&probe)).filter(|result| !result.end.passed());
        let failed = failed.map(|result| (result.end.describe(), result.output));
        if self.attempts.len() >= MAX_ATTEMPTS {
            self.attempts.pop_front();
        }
        let (end, words) = (call.end.clone(), call.words);
        let work = step.work.clone();
        self.attempts.push_back(Attempt { step: step.number, subject, end, words, failed, work });
    }
}

/// Who a task made in this step comes from.
pub fn source_of(action: &Action) -> TaskSource {
    match action {
        // The next slice of a large vision is planned at its boundary.
        Action::Gate { gate: Gate::PlanGenerated } | Action::EpicBoundary { .. } => TaskSource::Plan,
        Action::Gate { .. } => TaskSource::Gate,
        Action::CriticalEval => TaskSource::CriticalEval,
        Action::CourseCorrect => TaskSource::CourseCorrection,
        Action::ExitGate => TaskSource::ExitGate,
        Action::Vrc { .. } => TaskSource::Vrc,
        Action::CoherenceEval => TaskSource::Coherence,
        Action::PlanHealth => TaskSource::PlanHealth,
        Action::GenerateQc => TaskSource::Qc,
        Action::Execute { .. }
        | Action::RunQc
        | Action::Fix { .. }
        | Action::Research { .. }
        | Action::InteractivePause
        | Action::ServiceFix { .. }
        | Action::Strategy => TaskSource::CourseCorrection,
    }
}

/// A blob a verification's script is kept in.
pub fn scripts(value: &ValueState) -> impl Iterator<Item = (&str, Digest)> {
    value.verifications.values().map(|one| (one.path.as_str(), one.script))
}

impl RunState {
    /// The value playbook's part; empty for the others.
    pub fn value(&self) -> &ValueState {
        static EMPTY: LazyLock<ValueState> = LazyLock::new(ValueState::default);
        self.work().unwrap_or(&EMPTY)
    }

    #[cfg(test)]
    pub fn value_mut(&mut self) -> &mut ValueState {
        self.work_mut().unwrap()
    }

    /// The `value:` part of the declaration, or its defaults.
    pub fn value_settings(&self) -> &ValueSettings {
        self.loop_file().value_settings()
    }

    /// The gate that is open and its place among all of them, before the first iteration.
    pub fn open_gate(&self) -> Option<(usize, Gate)> {
        let Some(Action::Gate { gate }) = self.value().step.as_ref().map(|step| &step.action) else { return None };
        Gate::ALL.iter().position(|one| one == gate).map(|index| (index + 1, *gate))
    }
}
