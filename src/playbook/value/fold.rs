//! The fold of events into the value playbook's part of a run: its own, and what it has to know of the others.
//!
//! Role: apply an event that was found legal. Not its role: legality (`legal`), decisions (`decide`).
//! Invariant: no clock, no file; the same events give the same state.

use std::collections::{BTreeMap, BTreeSet};

use crate::machine::call::CallState;
use crate::machine::event::{
    AgentEnd, CallEvent, Event, GitEvent, GitFinished, GitOperation, IterationEvent, IterationUndone, OperatorEvent,
    Phase, Report, ReportAccepted, RunEvent,
};
use crate::machine::iteration::Iteration;
use crate::machine::run::RunState;
use crate::model::digest::Digest;
use crate::model::ids::Role;
use crate::model::value::guard::{self, Mutation};
use crate::model::value::tools::Structured;
use crate::model::value::{Action, Outcome, Task, TaskStatus, VerificationStatus};

use super::event::{ServicesChecked, StepBegan, StepFinished, ValueEvent};
use super::services;
use super::state::{Checkpoint, Mark, OpenStep, Round, RoundMark, StepCall, StepRecord, ValueState, source_of};

/// Folds any event of a run of this playbook.
pub fn fold(run: &mut RunState, event: &Event) -> Result<(), &'static str> {
    if let Some(event) = event.work() {
        return apply(run, event);
    }
    match event {
        Event::Iteration(IterationEvent::ProbeFinished(finished)) => {
            if let (Phase::Step(_), Some(step)) = (finished.phase, &mut value_mut(run)?.step) {
                step.probes.insert(finished.probe.clone(), finished.result.clone());
            }
        }
        Event::Iteration(IterationEvent::IterationBegan(_)) => {
            let value = value_mut(run)?;
            value.in_iteration.clear();
            value.seen = None;
            value.iteration_starts.push(value.steps_begun);
        }
        Event::Call(CallEvent::ReportAccepted(accepted)) => accept(run, accepted)?,
        Event::Call(CallEvent::AgentFinished(finished)) => {
            let call = run.call.as_ref().ok_or("no agent is running")?;
            let (purpose, subject) = (call.purpose(), call.started.subject.clone());
            let words = last_message(call);
            // Scripts of the QC role are no part of what runs.
            if purpose.role().may_write() && purpose.role() != Role::Qc {
                services::files_changed(value_mut(run)?);
            }
            if let Some(step) = &mut value_mut(run)?.step {
                let (key, end) = (finished.call.clone(), finished.end.clone());
                step.calls.push(StepCall { key, purpose, subject, end, words });
                step.preflight = None;
            }
        }
        Event::Operator(OperatorEvent::DecisionAsked(asked)) => {
            // A step asks between its calls; what is asked during one (money, denials) is no question of the step's.
            if asked.asked_by.is_none()
                && run.call.is_none()
                && let Some(step) = &mut value_mut(run)?.step
            {
                step.ask(asked.id);
            }
        }
        Event::Run(RunEvent::RunResumed(_)) => services::engine_ended(value_mut(run)?),
        Event::Git(GitEvent::GitFinished(finished)) => git_finished(value_mut(run)?, finished),
        Event::Git(GitEvent::IterationUndone(undone)) if undone.problem.is_none() => {
            iteration_undone(value_mut(run)?, undone);
        }
        _ => {}
    }
    Ok(())
}

/// What the agent said last, with or without a tool call. After tools have run, it stands before their results.
fn last_message(call: &CallState) -> Option<Digest> {
    let before_results = || call.messages.len().checked_sub(2).filter(|at| *at > 0).map(|at| call.messages[at]);
    call.reply.as_ref().map(|reply| reply.message).or_else(before_results)
}

fn value_mut(run: &mut RunState) -> Result<&mut ValueState, &'static str> {
    run.work_mut().ok_or("the run is not of the value playbook")
}

/// Folds an event of this playbook.
fn apply(run: &mut RunState, event: &ValueEvent) -> Result<(), &'static str> {
    match event {
        ValueEvent::StepBegan(began) => return begin(run, began),
        ValueEvent::StepFinished(finished) => return finish(run, finished),
        ValueEvent::ClaimTakenBack(_) => run.current.as_mut().ok_or("no iteration is running")?.taken_back = true,
        ValueEvent::ServicesChecked(checked) => return services_checked(run, checked),
        _ => {}
    }
    let value = value_mut(run)?;
    match event {
        ValueEvent::StepBegan(_) | ValueEvent::StepFinished(_) | ValueEvent::ServicesChecked(_) => {}
        ValueEvent::TaskPut(put) => {
            let waited = value.task(&put.task.id).is_some_and(Task::needs_person);
            let paused = value.step.as_ref().filter(|step| step.action == Action::InteractivePause);
            if let Some(step) = paused.filter(|_| waited && put.task.status == TaskStatus::Pending) {
                value.cleared_in.insert(step.number);
            }
            value.put_task((*put.task).clone());
        }
        ValueEvent::DocumentsRead(read) => {
            value.documents = Some(read.clone());
            if let Some(step) = &mut value.step {
                step.documents_read = true;
            }
        }
        ValueEvent::VerificationsFound(found) => {
            let fresh = found.verifications.iter().map(|one| (one.id.clone(), one.clone()));
            value.verifications = fresh.collect();
            open_step(value)?.scripts_found = true;
        }
        ValueEvent::VerificationPut(put) => {
            value.verifications.insert(put.verification.id.clone(), (*put.verification).clone());
        }
        ValueEvent::WorkSeen(seen) => {
            value.seen = Some(seen.tree);
            open_step(value)?.work = Some(seen.clone());
        }
        ValueEvent::ClaimTakenBack(taken) => {
            let taken = taken.verifications.iter().map(|one| (one.id.clone(), one.clone()));
            value.verifications.extend(taken);
            value.exit_gate_passed = None;
        }
        ValueEvent::VrcTaken(taken) => value.vrcs.push(taken.vrc.clone()),
        ValueEvent::ServiceStarted(started) => services::began(value, started),
        ValueEvent::ServiceEnded(ended) => services::ended(value, ended),
        ValueEvent::PreflightChecked(checked) => open_step(value)?.preflight = Some(checked.clone()),
        ValueEvent::RoundKept(kept) => {
            value.refinement_mut(kept.target).rounds.push(Round { kept: kept.clone(), closed: None });
            open_step(value)?.documents_read = false;
        }
        ValueEvent::RoundClosed(closed) => {
            let refinement = value.refinement_mut(closed.target);
            let round = refinement.rounds.last_mut().ok_or("no round is open")?;
            round.closed = Some(closed.clone());
            if closed.consensus {
                refinement.consensus = Some(closed.how.clone());
            }
            open_step(value)?.begin_round();
        }
        ValueEvent::ResearchKept(kept) => value.research.push(kept.brief.clone()),
        ValueEvent::EpicPut(put) => match value.epics.iter_mut().find(|epic| epic.epic == put.epic) {
            Some(known) => *known = put.clone(),
            None => value.epics.push(put.clone()),
        },
    }
    Ok(())
}

fn services_checked(run: &mut RunState, checked: &ServicesChecked) -> Result<(), &'static str> {
    let place = services::checked(run, checked);
    let value = value_mut(run)?;
    let was_down = value.services.iter().any(|one| !one.healthy);
    if let Some(step) = &value.step
        && was_down
        && checked.services.iter().all(|one| one.healthy)
    {
        value.cleared_in.insert(step.number);
    }
    value.services.clone_from(&checked.services);
    value.services_for = place.or(value.services_for);
    for one in checked.services.iter().filter(|one| one.healthy) {
        if let Some(life) = value.lives.get_mut(&one.name) {
            life.was_healthy = true;
        }
    }
    if let Some(step) = &mut value.step {
        step.services = Some(checked.services.clone());
        step.service_checks += 1;
    }
    Ok(())
}

/// Folds an accepted structured report.
fn accept(run: &mut RunState, accepted: &ReportAccepted) -> Result<(), &'static str> {
    let Report::Value(report) = &accepted.report else { return Ok(()) };
    let purpose = run.call.as_ref().ok_or("no agent is running")?.purpose();
    let settings = run.value_settings().clone();
    let value = value_mut(run)?;
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
        Structured::ReportDiscovery(discovery) => {
            discovery.services.iter().for_each(|service| services::declare(value, service));
            value.context = Some(discovery.clone());
        }
        Structured::ManageService(wish) => services::manage(value, wish),
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
    Ok(())
}

fn mark(run: &RunState) -> Mark {
    Mark {
        tokens: run.spent.tokens(),
        millis: run.spent.millis,
        done: run.value().tasks_with(TaskStatus::Done).count(),
        passed: run.value().count(VerificationStatus::Passed),
    }
}

fn begin(run: &mut RunState, began: &StepBegan) -> Result<(), &'static str> {
    // Before the first iteration the limits of an iteration hold for each step.
    if run.current.is_none() {
        run.spent.iteration_millis = 0;
        run.spent.iteration_tool_calls = 0;
        run.cut = None;
    }
    let now = mark(run);
    let value = value_mut(run)?;
    if began.action == Action::ExitGate {
        value.exit_gate_attempts += 1;
    }
    if began.action == Action::GenerateQc && !value.disputed().is_empty() {
        value.regenerations.push(began.step);
    }
    value.steps_begun = began.step + 1;
    value.step = Some(OpenStep {
        number: began.step,
        action: began.action.clone(),
        began: now,
        calls: Vec::new(),
        reports: Vec::new(),
        probes: BTreeMap::new(),
        git: Vec::new(),
        work: None,
        services: None,
        service_checks: 0,
        preflight: None,
        documents_read: false,
        scripts_found: false,
        decisions: Vec::new(),
        round: RoundMark::default(),
    });
    Ok(())
}

fn finish(run: &mut RunState, finished: &StepFinished) -> Result<(), &'static str> {
    let step = value_mut(run)?.step.take().ok_or("no step is open")?;
    if step.number != finished.step {
        return Err("another step is open");
    }
    let now = mark(run);
    let iteration = run.current.as_ref().map(Iteration::number);
    let was_cut = run.cut.is_some();
    let value = value_mut(run)?;
    value.note_attempt(&step);
    if let Action::Gate { gate } = step.action
        && finished.outcome == Outcome::Passed
    {
        value.gates.insert(gate);
    }
    if step.action == Action::ExitGate {
        let unheard = |call: &StepCall| call.end != AgentEnd::Reported;
        value.gate_unjudged = step.calls.last().is_some_and(unheard);
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
        cut: was_cut,
    });
    Ok(())
}

fn git_finished(value: &mut ValueState, finished: &GitFinished) {
    if finished.problem.is_none() {
        if matches!(finished.operation, GitOperation::Restore { .. }) {
            value.seen = None;
            services::files_changed(value);
        }
        let step = value.step.as_ref().map(|step| (step.number, &step.action));
        match &finished.operation {
            GitOperation::Checkpoint { label } => {
                let passing = value.verifications.values().filter(|one| one.status == VerificationStatus::Passed);
                let passing = passing.map(|one| one.id.clone()).collect();
                let tasks_done = value.tasks_with(TaskStatus::Done).map(|task| task.id.clone()).collect();
                let step = step.map_or(0, |(number, _)| number);
                if let Some(commit) = &finished.facts.head {
                    let (label, commit) = (label.clone(), commit.clone());
                    value.checkpoints.push(Checkpoint { label, commit, step, tasks_done, passing });
                }
            }
            GitOperation::Restore { why, .. } if matches!(step, Some((_, Action::Fix { .. }))) => {
                value.undone_causes.push(why.clone());
            }
            GitOperation::Restore { .. } => value.restores += 1,
            GitOperation::Prepare | GitOperation::Commit { .. } => {}
        }
    }
    if let Some(step) = &mut value.step {
        step.git.push(finished.clone());
    }
}

/// What was proved with files that are gone is not proved.
fn iteration_undone(value: &mut ValueState, undone: &IterationUndone) {
    value.exit_gate_passed = None;
    services::files_changed(value);
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

fn open_step(value: &mut ValueState) -> Result<&mut OpenStep, &'static str> {
    value.step.as_mut().ok_or("no step is open")
}
