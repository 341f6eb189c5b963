//! EXECUTE: one task, its own check, and what passed before: the green verifications and the checks of done tasks.
//!
//! Role: give the task to a builder once, believe its check rather than its word, run again what passed before,
//! commit. Not its role: choosing the task, mending what broke (`fix`), asking the person (`pause`).
//!
//! Invariants: one builder call for each step; every attempt that does not finish the task costs a retry, and the
//! last one blocks it, so a task is tried at most `max_task_retries` times between two corrections of the course.

use crate::machine::event::{AgentEnd, Event, GitOperation, Probe};
use crate::machine::run::RunState;
use crate::machine::todo::{Effect, Todo};
use crate::model::purpose::Purpose;
use crate::model::value::plan::HUMAN_ACTION;
use crate::model::value::tools::{HumanActionRequest, Structured, TaskComplete};
use crate::model::value::{Dispute, Outcome, Task, TaskStatus, Verification, VerificationStatus};
use crate::playbook::value::decide;
use crate::playbook::value::event::TaskPut;
use crate::playbook::value::state::OpenStep;

use crate::playbook::value::finished;
use crate::playbook::value::services;

use super::qc::{self, clipped, git_once, missing, named, verification_put};

/// Of what an agent said this much is kept with the task.
const MAX_NOTES: usize = 2_000;
/// A request for a person is one line.
const MAX_REASON: usize = 400;
/// Files that are kept with a task.
const MAX_FILES: usize = 100;

pub fn next(run: &RunState, step: &OpenStep, id: &str) -> Option<Todo> {
    let task = run.value().task(id).filter(|task| task.status == TaskStatus::InProgress)?;
    // Before the builder, who is told of them; and again before the checks, since the builder changed files.
    let services = services::once(run, step);
    if step.calls_for(Purpose::Execute) == 0 {
        if services.is_some() {
            return services;
        }
        let (purpose, subject) = (Purpose::Execute, Some(id.to_owned()));
        return Some(Todo::StartAgent { purpose, paraphrase: None, subject });
    }
    if let Some(todo) = qc::look_once(run, step) {
        return Some(todo);
    }
    let Attempt::Complete(_) = attempt(step) else { return None };
    if services.is_some() {
        return services;
    }
    if task.check.is_some()
        && let Some(todo) = missing(step, vec![Probe::Task(id.to_owned())])
    {
        return Some(todo);
    }
    if failed_check(task, step).is_some() {
        return None;
    }
    let passed = run.value().verifications.values().filter(|one| one.status == VerificationStatus::Passed);
    let scripts = passed.map(|one| Probe::Verification(one.id.clone()));
    missing(step, scripts.chain(qc::done_checks(run)).collect()).or_else(|| {
        git_once(run, step, GitOperation::Commit { what: format!("task {id}") }).map(Effect::Git).map(Todo::Effect)
    })
}

pub fn decide(run: &RunState, step: &OpenStep, id: &str) -> Vec<Event> {
    let Some(task) = run.value().task(id) else {
        return vec![finished(step, Outcome::NoProgress, format!("there is no task {id}"))];
    };
    match task.status {
        TaskStatus::Pending if step.calls.is_empty() => {
            let mut task = task.clone();
            task.status = TaskStatus::InProgress;
            vec![put(task, "work on it begins")]
        }
        TaskStatus::InProgress => close(run, step, task),
        // Not to be worked on, or the step was interrupted just before its last event.
        TaskStatus::Done if task.done_in == Some(step.number) => {
            vec![finished(step, Outcome::Progress, format!("{id} is done"))]
        }
        TaskStatus::Pending | TaskStatus::Done | TaskStatus::Blocked | TaskStatus::Descoped => {
            vec![finished(step, Outcome::NoProgress, format!("{id} is {}", task.status.name()))]
        }
    }
}

/// A task that was in progress is pending again.
pub fn put_back(run: &RunState, id: &str, why: &str) -> Option<Event> {
    let task = run.value().task(id).filter(|task| task.status == TaskStatus::InProgress)?;
    let mut task = task.clone();
    task.status = TaskStatus::Pending;
    Some(put(task, why))
}

/// What the builder came back with.
enum Attempt<'a> {
    Complete(&'a TaskComplete),
    NeedsPerson(&'a HumanActionRequest),
    Nothing,
}

fn attempt(step: &OpenStep) -> Attempt<'_> {
    let built = step.reports.iter().rev().filter(|(purpose, _)| *purpose == Purpose::Execute);
    let mut said = built.filter_map(|(_, report)| match report {
        Structured::ReportTaskComplete(complete) => Some(Attempt::Complete(complete)),
        Structured::RequestHumanAction(request) => Some(Attempt::NeedsPerson(request)),
        _ => None,
    });
    said.next().unwrap_or(Attempt::Nothing)
}

fn was_cut(step: &OpenStep) -> bool {
    step.last_call(Purpose::Execute).is_some_and(|call| matches!(call.end, AgentEnd::Cut(_)))
}

/// What the task's own check says against it.
fn failed_check(task: &Task, step: &OpenStep) -> Option<String> {
    task.check.as_ref()?;
    let result = step.probes.get(&Probe::Task(task.id.clone()))?;
    (!result.end.passed()).then(|| qc::said(result))
}

fn close(run: &RunState, step: &OpenStep, task: &Task) -> Vec<Event> {
    match attempt(step) {
        Attempt::Complete(complete) => match failed_check(task, step) {
            None => done(run, step, task, complete),
            Some(said) => not_done(run, step, task, format!("reported as done, but its check fails: {said}")),
        },
        Attempt::NeedsPerson(request) => wait_for_person(run, step, task, request),
        // Cut for the sake of the iteration's close, it is gone on with in the next one, and that is no failed attempt.
        Attempt::Nothing if decide::work_is_over(run) && was_cut(step) => {
            let why = "the iteration closes; the next one goes on with it";
            let mut events: Vec<Event> = put_back(run, &task.id, why).into_iter().collect();
            events.push(finished(step, Outcome::NoProgress, format!("{} is not finished: {why}", task.id)));
            events
        }
        Attempt::Nothing => {
            let end = step.last_call(Purpose::Execute).map_or_else(String::new, |call| call.end.describe());
            not_done(run, step, task, format!("the builder {end}"))
        }
    }
}

fn done(run: &RunState, step: &OpenStep, task: &Task, complete: &TaskComplete) -> Vec<Event> {
    let mut task = task.clone();
    let id = task.id.clone();
    let notes = [&complete.value_verified, &complete.completion_notes].into_iter().flatten();
    task.status = TaskStatus::Done;
    task.blocked_reason = None;
    task.broken_by = None;
    task.done_in = Some(step.number);
    task.notes = clipped(&notes.cloned().collect::<Vec<_>>().join("\n"), MAX_NOTES);
    task.files_created = complete.files_created.iter().take(MAX_FILES).cloned().collect();
    task.files_modified = complete.files_modified.iter().take(MAX_FILES).cloned().collect();
    let proof = if task.check.is_some() { "its check passes" } else { "the builder says so" };
    let mut events = vec![put(task, proof)];

    let broken: Vec<_> = run.value().verifications.values().filter(|one| qc::fails_in(step, &one.id)).collect();
    for verification in &broken {
        let known = Verification { broken_by: after_task(run, &id), ..(*verification).clone() };
        events.extend(verification_put(step, &known, format!("task {id} broke it")));
    }
    // A script that broke is mended first, and may have the same cause: the fix looks at the done tasks again.
    let reopened = if broken.is_empty() { qc::reopened(run, step, &id) } else { Vec::new() };
    let mut names: Vec<&str> = broken.iter().map(|one| one.id.as_str()).collect();
    names.extend(reopened.iter().map(|(id, _)| id.as_str()));
    events.extend(reopened.iter().map(|(_, event)| event.clone()));
    qc::disputes(run, step, &mut events);
    events.push(if names.is_empty() {
        finished(step, Outcome::Progress, format!("{id} is done"))
    } else {
        finished(step, Outcome::NoProgress, format!("{id} is done, but broke {}", named(&names)))
    });
    events
}

/// Who broke a check; older runs did not note it.
fn after_task(run: &RunState, id: &str) -> Option<String> {
    (!run.began_before_recovery()).then(|| id.to_owned())
}

/// The check is said to be wrong: no attempt is lost until its author has looked.
fn doubted(run: &RunState, step: &OpenStep, task: &Task, dispute: Dispute, why: &str) -> Vec<Event> {
    let detail = clipped(&format!("{} waits for its check: {}", task.id, dispute.reason), MAX_NOTES);
    let (status, notes, dispute) = (TaskStatus::Pending, clipped(why, MAX_NOTES), Some(dispute));
    let task = Task { status, notes, dispute, ..task.clone() };
    let mut events = vec![put(task, "its builder says that its check is wrong")];
    qc::disputes(run, step, &mut events);
    events.push(finished(step, Outcome::NoProgress, detail));
    events
}

fn not_done(run: &RunState, step: &OpenStep, task: &Task, why: String) -> Vec<Event> {
    if let Some(dispute) = qc::said_wrong(step, &task.id).filter(|_| task.dispute.is_none()) {
        return doubted(run, step, task, dispute, &why);
    }
    let mut task = task.clone();
    let limit = run.value_settings().max_task_retries;
    let id = task.id.clone();
    let why = clipped(&why, MAX_NOTES);
    task.retries = task.retries.saturating_add(1);
    task.notes.clone_from(&why);
    task.status = TaskStatus::Pending;
    let mut detail = format!("{id} is not done ({} of {limit}): {why}", task.retries);
    if task.retries >= limit {
        task.status = TaskStatus::Blocked;
        task.blocked_reason = Some(format!("{} attempts did not finish it", task.retries));
        detail = format!("{id} is blocked after {} attempts: {why}", task.retries);
    }
    let mut events = vec![put(task, &why)];
    qc::disputes(run, step, &mut events);
    events.push(finished(step, Outcome::NoProgress, detail));
    events
}

fn wait_for_person(run: &RunState, step: &OpenStep, task: &Task, request: &HumanActionRequest) -> Vec<Event> {
    let task = blocked_for_person(task, request);
    let detail = format!("{} waits for a person: {}", task.id, clipped(&request.action, MAX_REASON));
    let mut events = vec![put(task, "only a person can go on")];
    qc::disputes(run, step, &mut events);
    events.push(finished(step, Outcome::NoProgress, detail));
    events
}

/// The task as it waits for a person. What the person has to do stands in `value.human_requests`.
pub fn blocked_for_person(task: &Task, request: &HumanActionRequest) -> Task {
    let mut task = task.clone();
    task.status = TaskStatus::Blocked;
    task.blocked_reason = Some(format!("{HUMAN_ACTION} {}", clipped(&request.action, MAX_REASON)));
    task.notes = clipped(&request.instructions, MAX_NOTES);
    task
}

pub fn put(task: Task, why: &str) -> Event {
    TaskPut { task: Box::new(task), why: why.to_owned() }.into()
}

#[cfg(test)]
mod tests;
