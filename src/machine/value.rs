//! The folded state of the value playbook. Everything its decisions, its rendered views and the console show.
//!
//! Role: fold. Not its role: deciding what comes next (`playbook::value`). Invariant: nothing here is stored
//! elsewhere; `.loop_state.json` and the plan files are rendered from it and never read.

pub mod learned;
mod legal;

use std::collections::{BTreeMap, BTreeSet};

use crate::model::decision::DecisionId;
use crate::model::digest::Digest;
use crate::model::purpose::{self, Purpose, Tool};
use crate::model::value::guard::{self, Mutation};
use crate::model::value::plan::TaskSource;
use crate::model::value::tools::{Discovery, HumanActionRequest, ResearchReport, StrategyChange, Structured};
use crate::model::value::{
    Action, Gate, Outcome, Task, TaskStatus, ValueSettings, Verification, VerificationStatus, Vrc,
};

use super::call::CallSummary;
use super::event::{
    AgentEnd, AgentFinished, DocumentsRead, EpicPut, Event, GitFacts, GitFinished, GitOperation, IterationUndone,
    PreflightChecked, Probe, ProbeResult, ReportAccepted, RoundClosed, RoundKept, ServiceHealth, StepBegan,
    StepFinished, Target,
};
use super::run::RunState;

pub(super) use legal::legal;

/// A call that a step made.
#[derive(Debug, Clone, PartialEq)]
pub struct StepCall {
    pub key: String,
    pub purpose: Purpose,
    pub subject: Option<String>,
    pub end: AgentEnd,
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

    fn begin_round(&mut self) {
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

#[derive(Debug, Clone, PartialEq, Default)]
pub struct GitState {
    /// `None`: not looked at yet.
    pub facts: Option<GitFacts>,
    /// Announced and not finished.
    pub open: Option<GitOperation>,
    pub checkpoints: Vec<Checkpoint>,
    /// Rollbacks; a fix that was undone is none.
    pub restores: u32,
    /// Did the latest operation succeed? Then everything of the run was committed there.
    pub committed: bool,
    /// Where each iteration began on the branch, with everything before it committed.
    pub starts: BTreeMap<u32, String>,
}

/// An iteration that a person took back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undone {
    pub by: String,
    pub files: Vec<String>,
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
    pub exit_gate_attempts: u32,
    pub exit_gate_passed: Option<u32>,
    pub strategy: Option<StrategyChange>,
    pub strategies: Vec<(u32, StrategyChange)>,
    pub git: GitState,
    pub epics: Vec<EpicPut>,
    pub undone: BTreeSet<u32>,
    pub undo: Option<u32>,
    /// Who asked for the present one.
    pub undo_by: Option<String>,
    /// The iterations in `undone`, with what was taken back.
    pub taken_back: BTreeMap<u32, Undone>,
    /// What agents asked a person to do, in order. A builder's request names the task it was given.
    pub human_requests: Vec<HumanActionRequest>,
    /// Fixes that were undone: the reasons given for putting the files back.
    pub undone_causes: Vec<String>,
    /// Finished calls by what they were for, so that each can be told apart.
    pub calls_made: BTreeMap<(Purpose, Option<String>), u32>,
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
        self.epics.iter().find(|epic| epic.status == super::event::EpicStatus::InProgress)
    }

    fn refinement_mut(&mut self, target: Target) -> &mut Refinement {
        match target {
            Target::Vision => &mut self.vision,
            Target::Prd => &mut self.prd,
        }
    }

    fn put_task(&mut self, task: Task) {
        match self.tasks.iter_mut().find(|known| known.id == task.id) {
            Some(known) => *known = task,
            None => self.tasks.push(task),
        }
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
        Action::Execute { .. }
        | Action::GenerateQc
        | Action::RunQc
        | Action::Fix { .. }
        | Action::Research { .. }
        | Action::InteractivePause
        | Action::ServiceFix { .. }
        | Action::Strategy => TaskSource::CourseCorrection,
    }
}

/// May this structured report be taken now? The error goes back to the agent.
pub fn admit(run: &RunState, report: &Structured) -> Result<(), String> {
    let value = &run.value;
    let step = value.step.as_ref().ok_or("no step is open")?;
    match report {
        Structured::ManageTask(wish) => {
            guard::judge(&value.tasks, run.value_settings(), source_of(&step.action), step.number, wish).map(|_| ())
        }
        Structured::ReportTaskComplete(complete) => match &step.action {
            Action::Execute { task } if *task == complete.task_id => Ok(()),
            Action::Execute { task } => Err(format!("this call is for task {task}, not {}", complete.task_id)),
            _ => Err("no task is being worked on".to_owned()),
        },
        Structured::RequestHumanAction(request) => {
            let id = &request.blocked_task_id;
            let known = id.is_empty() || value.task(id).is_some();
            if known { Ok(()) } else { Err(format!("there is no task `{id}`")) }
        }
        Structured::ReportStrategyChange(change) => change.within(run.value_settings()),
        _ => Ok(()),
    }
}

/// Folds an event of this playbook.
pub(super) fn apply(run: &mut RunState, event: &Event) -> Result<(), &'static str> {
    match event {
        Event::StepBegan(began) => begin(run, began),
        Event::StepFinished(finished) => return finish(run, finished),
        Event::TaskPut(put) => run.value.put_task((*put.task).clone()),
        Event::DocumentsRead(read) => {
            run.value.documents = Some(read.clone());
            if let Some(step) = &mut run.value.step {
                step.documents_read = true;
            }
        }
        Event::VerificationsFound(found) => {
            let fresh = found.verifications.iter().map(|one| (one.id.clone(), one.clone()));
            run.value.verifications = fresh.collect();
            open_step(run)?.scripts_found = true;
        }
        Event::VerificationPut(put) => {
            run.value.verifications.insert(put.verification.id.clone(), (*put.verification).clone());
        }
        Event::VrcTaken(taken) => run.value.vrcs.push(taken.vrc.clone()),
        Event::ServicesChecked(checked) => {
            run.value.services.clone_from(&checked.services);
            if let Some(step) = &mut run.value.step {
                step.services = Some(checked.services.clone());
                step.service_checks += 1;
            }
        }
        Event::PreflightChecked(checked) => open_step(run)?.preflight = Some(checked.clone()),
        Event::RoundKept(kept) => {
            run.value.refinement_mut(kept.target).rounds.push(Round { kept: kept.clone(), closed: None });
            open_step(run)?.documents_read = false;
        }
        Event::RoundClosed(closed) => {
            let refinement = run.value.refinement_mut(closed.target);
            let round = refinement.rounds.last_mut().ok_or("no round is open")?;
            round.closed = Some(closed.clone());
            if closed.consensus {
                refinement.consensus = Some(closed.how.clone());
            }
            open_step(run)?.begin_round();
        }
        Event::ResearchKept(kept) => run.value.research.push(kept.brief.clone()),
        Event::GitIntended(intended) => run.value.git.open = Some(intended.operation.clone()),
        Event::GitFinished(finished) => git_finished(run, finished),
        Event::UndoRequested(undo) => {
            run.value.undo = Some(undo.iteration);
            run.value.undo_by = Some(undo.by.clone());
        }
        Event::IterationUndone(undone) => iteration_undone(run, undone),
        Event::EpicPut(put) => match run.value.epics.iter_mut().find(|epic| epic.epic == put.epic) {
            Some(known) => *known = put.clone(),
            None => run.value.epics.push(put.clone()),
        },
        _ => return Err("it is no event of the value playbook"),
    }
    Ok(())
}

/// Folds an accepted structured report.
pub(super) fn accept(run: &mut RunState, accepted: &ReportAccepted, purpose: Purpose) {
    let super::event::Report::Value(report) = &accepted.report else { return };
    let settings = run.value_settings().clone();
    let value = &mut run.value;
    if let Structured::ManageTask(wish) = report
        && let Some(step) = &value.step
        && let Ok(mutation) = guard::judge(&value.tasks, &settings, source_of(&step.action), step.number, wish)
    {
        match mutation {
            Mutation::Add(task) | Mutation::Replace(task) => value.put_task(*task),
            Mutation::Remove(id) => value.tasks.retain(|task| task.id != id),
        }
    }
    match report {
        Structured::ReportDiscovery(discovery) => value.context = Some(discovery.clone()),
        Structured::ReportResearch(brief) => value.research.push(brief.clone()),
        Structured::RequestHumanAction(request) => {
            let mut request = request.clone();
            if let Some(Action::Execute { task }) = value.step.as_ref().map(|step| &step.action) {
                request.blocked_task_id.clone_from(task);
            }
            value.human_requests.push(request);
        }
        Structured::ReportStrategyChange(change) => {
            let step = value.step.as_ref().map_or(0, |step| step.number);
            value.strategy = Some(change.clone());
            value.strategies.push((step, change.clone()));
        }
        _ => {}
    }
    if let Some(step) = &mut value.step {
        step.reports.push((purpose, report.clone()));
    }
}

/// Folds the end of a call.
pub(super) fn call_ended(run: &mut RunState, key: &str, summary: &CallSummary) {
    let made = run.value.calls_made.entry((summary.purpose, summary.subject.clone())).or_default();
    *made = made.saturating_add(1);
    if let Some(step) = &mut run.value.step {
        step.calls.push(StepCall {
            key: key.to_owned(),
            purpose: summary.purpose,
            subject: summary.subject.clone(),
            end: summary.end.clone(),
        });
        step.preflight = None;
    }
}

fn mark(run: &RunState) -> Mark {
    Mark {
        tokens: run.spent.tokens(),
        millis: run.spent.millis,
        done: run.value.tasks_with(TaskStatus::Done).count(),
        passed: run.value.count(VerificationStatus::Passed),
    }
}

fn begin(run: &mut RunState, began: &StepBegan) {
    // Before the first iteration the limits of an iteration hold for each step.
    if run.current.is_none() {
        run.spent.iteration_millis = 0;
        run.spent.iteration_tool_calls = 0;
        run.cut = None;
    }
    if began.action == Action::ExitGate {
        run.value.exit_gate_attempts += 1;
    }
    run.value.steps_begun = began.step + 1;
    run.value.step = Some(OpenStep {
        number: began.step,
        action: began.action.clone(),
        began: mark(run),
        calls: Vec::new(),
        reports: Vec::new(),
        probes: BTreeMap::new(),
        git: Vec::new(),
        services: None,
        service_checks: 0,
        preflight: None,
        documents_read: false,
        scripts_found: false,
        decisions: Vec::new(),
        round: RoundMark::default(),
    });
}

fn finish(run: &mut RunState, finished: &StepFinished) -> Result<(), &'static str> {
    let step = run.value.step.take().ok_or("no step is open")?;
    if step.number != finished.step {
        return Err("another step is open");
    }
    let now = mark(run);
    let iteration = run.current.as_ref().map(super::iteration::Iteration::number);
    let value = &mut run.value;
    if let Action::Gate { gate } = step.action
        && finished.outcome == Outcome::Passed
    {
        value.gates.insert(gate);
    }
    if step.action == Action::ExitGate && finished.outcome == Outcome::Passed {
        value.exit_gate_passed = Some(step.number);
    } else if step.action.is_decision() {
        // Whatever is done after a passed gate makes it stale.
        value.exit_gate_passed = None;
    }
    if step.action.is_decision() {
        match finished.outcome {
            Outcome::Progress | Outcome::Passed => value.no_progress = 0,
            Outcome::NoProgress | Outcome::Failed => value.no_progress += 1,
            Outcome::Neutral => {}
        }
    }
    value.in_iteration.push(step.number);
    value.log.push(StepRecord {
        step: step.number,
        iteration,
        action: step.action,
        outcome: finished.outcome,
        detail: finished.detail.clone(),
        tokens: now.tokens.saturating_sub(step.began.tokens),
        millis: now.millis.saturating_sub(step.began.millis),
    });
    Ok(())
}

fn git_finished(run: &mut RunState, finished: &GitFinished) {
    let passing = run.value.verifications.values().filter(|one| one.status == VerificationStatus::Passed);
    let passing = passing.map(|one| one.id.clone()).collect();
    let tasks_done = run.value.tasks_with(TaskStatus::Done).map(|task| task.id.clone()).collect();
    let step = run.value.step.as_ref().map_or(0, |step| step.number);
    let fixing = matches!(run.value.step.as_ref().map(|step| &step.action), Some(Action::Fix { .. }));
    let git = &mut run.value.git;
    git.open = None;
    git.committed = finished.problem.is_none();
    if finished.problem.is_none() {
        match &finished.operation {
            GitOperation::Prepare => git.facts = Some(finished.facts.clone()),
            GitOperation::Checkpoint { label } => {
                if let Some(commit) = &finished.facts.head {
                    let (label, commit) = (label.clone(), commit.clone());
                    git.checkpoints.push(Checkpoint { label, commit, step, tasks_done, passing });
                }
            }
            GitOperation::Restore { why, .. } if fixing => run.value.undone_causes.push(why.clone()),
            GitOperation::Restore { .. } => git.restores += 1,
            GitOperation::Commit { .. } => {}
        }
        if let Some(facts) = &mut run.value.git.facts {
            facts.head.clone_from(&finished.facts.head);
        }
    } else if finished.operation == GitOperation::Prepare {
        // Looked at, and not to be used; the playbook decides whether the run may go on so.
        run.value.git.facts = Some(GitFacts { branch: None, ..finished.facts.clone() });
    }
    if let Some(step) = &mut run.value.step {
        step.git.push(finished.clone());
    }
}

/// An iteration begins: it can be taken back only if all before it is committed.
pub(super) fn iteration_began(run: &mut RunState, iteration: u32) {
    run.value.in_iteration.clear();
    let first = run.value.steps_begun;
    run.value.iteration_starts.push(first);
    let git = &mut run.value.git;
    let facts = git.facts.as_ref().filter(|facts| facts.branch.is_some());
    if let Some(head) = facts.and_then(|facts| facts.head.clone()).filter(|_| git.committed && git.open.is_none()) {
        git.starts.insert(iteration, head);
    }
}

/// What was proved with files that are gone is not proved.
fn iteration_undone(run: &mut RunState, undone: &IterationUndone) {
    let value = &mut run.value;
    value.undo = None;
    let by = value.undo_by.take().unwrap_or_default();
    if undone.problem.is_some() {
        return;
    }
    value.undone.insert(undone.iteration);
    value.taken_back.insert(undone.iteration, Undone { by, files: undone.files.clone() });
    if let (Some(facts), Some(head)) = (&mut value.git.facts, &undone.head) {
        facts.head = Some(head.clone());
    }
    value.exit_gate_passed = None;
    let of_iteration = |record: &&StepRecord| record.iteration == Some(undone.iteration);
    let steps: BTreeSet<u32> = value.log.iter().filter(of_iteration).map(|record| record.step).collect();
    for task in &mut value.tasks {
        if task.status == TaskStatus::Done && task.done_in.is_some_and(|step| steps.contains(&step)) {
            task.status = TaskStatus::Pending;
            task.done_in = None;
            task.files_created.clear();
            task.files_modified.clear();
            task.notes = format!("Was done; iteration {} was taken back by a person.", undone.iteration);
        }
    }
    for verification in value.verifications.values_mut() {
        if verification.status == VerificationStatus::Passed {
            verification.status = VerificationStatus::Pending;
        }
    }
}

fn open_step(run: &mut RunState) -> Result<&mut OpenStep, &'static str> {
    run.value.step.as_mut().ok_or("no step is open")
}

/// A blob a verification's script is kept in.
pub fn scripts(value: &ValueState) -> impl Iterator<Item = (&str, Digest)> {
    value.verifications.values().map(|one| (one.path.as_str(), one.script))
}

impl RunState {
    /// The `value:` part of the declaration, or its defaults.
    pub fn value_settings(&self) -> &ValueSettings {
        static DEFAULTS: std::sync::LazyLock<ValueSettings> = std::sync::LazyLock::new(ValueSettings::default);
        self.loop_file().value.as_ref().unwrap_or(&DEFAULTS)
    }

    /// The gate that is open and its place among all of them, before the first iteration.
    pub fn open_gate(&self) -> Option<(usize, Gate)> {
        let Some(Action::Gate { gate }) = self.value.step.as_ref().map(|step| &step.action) else { return None };
        Gate::ALL.iter().position(|one| one == gate).map(|index| (index + 1, *gate))
    }

    /// Who a call was that has just ended, and what for. For people; not cleaned.
    pub fn who_finished(&self, finished: &AgentFinished) -> String {
        let mut calls = self.value.step.iter().flat_map(|step| step.calls.iter().rev());
        let call = calls.find(|call| call.key == finished.call);
        call.map_or_else(|| finished.role.to_string(), |call| purpose::who(call.purpose, call.subject.as_deref()))
    }
}
