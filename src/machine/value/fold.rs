//! The fold of the value playbook's events into its state.
//!
//! Role: apply an event that was found legal. Not its role: legality (`super::legal`), decisions (`playbook::value`).
//! Invariant: no clock, no file; the same events give the same state.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::purpose::Purpose;
use crate::model::value::guard::{self, Mutation};
use crate::model::value::tools::Structured;
use crate::model::value::{Action, Outcome, TaskStatus, VerificationStatus};

use super::super::call::CallSummary;
use super::super::event::{
    Event, GitFacts, GitFinished, GitOperation, IterationUndone, Report, ReportAccepted, StepBegan, StepFinished,
};
use super::super::iteration::Iteration;
use super::super::run::RunState;
use super::{Checkpoint, Mark, OpenStep, Round, RoundMark, StepCall, StepRecord, Undone, source_of};

/// Folds an event of this playbook.
pub(in crate::machine) fn apply(run: &mut RunState, event: &Event) -> Result<(), &'static str> {
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
pub(in crate::machine) fn accept(run: &mut RunState, accepted: &ReportAccepted, purpose: Purpose) {
    let Report::Value(report) = &accepted.report else { return };
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
pub(in crate::machine) fn call_ended(run: &mut RunState, key: &str, summary: &CallSummary) {
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
    let iteration = run.current.as_ref().map(Iteration::number);
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
        run.value.git.problem.clone_from(&finished.problem);
    }
    if let Some(step) = &mut run.value.step {
        step.git.push(finished.clone());
    }
    super::super::passes::git_finished(run, finished);
}

/// An iteration begins: it can be taken back only if all before it is committed.
pub(in crate::machine) fn iteration_began(run: &mut RunState, iteration: u32) {
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
