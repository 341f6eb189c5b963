//! FIX: triage, one fix, the engine runs the checks again; a fix that breaks more than it mends is undone.
//!
//! Role: aim at one root cause, keep a place to go back to, measure. Not its role: deciding how often (the decision
//! engine reads `fix_attempts`), judging by the fixer's words: it never grades itself.
//!
//! Invariants: one triage and one fix for each step. Unless the number of passing checks rises, every check that was
//! aimed at has one attempt more, even if it passes now and another one fails for it: two checks that break each other
//! run out of attempts like any other.

use crate::machine::event::{AgentEnd, Event, GitOperation, Probe};
use crate::machine::run::RunState;
use crate::machine::todo::{Effect, Todo};
use crate::model::purpose::{Purpose, Tool};
use crate::model::value::tools::{RootCause, Structured};
use crate::model::value::{Outcome, Task, Verification, VerificationStatus};
use crate::playbook::value::event::VerificationPut;
use crate::playbook::value::state::OpenStep;

use crate::playbook::value::finished;

use super::execute;
use super::qc::{self, after_run, clipped, git_once, missing, named, services_once};

/// So much of a cause tells it from others.
const CAUSE: usize = 120;
/// A line in the history of the repository.
const SUMMARY: usize = 200;
/// The place to go back to.
const BEFORE: &str = "before fix";

pub fn next(run: &RunState, step: &OpenStep, verifications: &[String]) -> Option<Todo> {
    let failing = failing(run, verifications);
    if failing.is_empty() {
        return None;
    }
    if failing.len() > 1 && step.calls_for(Purpose::Triage) == 0 {
        let ids: Vec<_> = failing.iter().map(|one| one.id.as_str()).collect();
        return Some(call(Purpose::Triage, ids.join(",")));
    }
    let aim = aim(run, step, &failing);
    if step.calls_for(Purpose::Fix) == 0 {
        let commit = git_once(run, step, GitOperation::Commit { what: BEFORE.to_owned() });
        return Some(commit.map_or_else(|| call(Purpose::Fix, aim.ids.join(",")), git));
    }
    if let Some(todo) = qc::look_once(run, step) {
        return Some(todo);
    }
    // A fix may have stopped what the scripts stand on.
    if let Some(todo) = services_once(run, step) {
        return Some(todo);
    }
    let scripts = suite(run).map(|one| Probe::Verification(one.id.clone()));
    if let Some(todo) = missing(step, scripts.chain(qc::done_checks(run)).collect()) {
        return Some(todo);
    }
    let (before, now) = (step.began.passed, passing(run, step));
    let operation = if now < before {
        GitOperation::Restore { commit: place(step)?, why: aim.undone() }
    } else if now > before {
        GitOperation::Commit { what: clipped(&format!("fix of {}", aim.named()), SUMMARY) }
    } else {
        return None;
    };
    git_once(run, step, operation).map(git)
}

pub fn decide(run: &RunState, step: &OpenStep, verifications: &[String]) -> Vec<Event> {
    let failing = failing(run, verifications);
    if failing.is_empty() {
        return vec![finished(step, Outcome::NoProgress, "nothing fails any more")];
    }
    let aim = aim(run, step, &failing);
    let (before, now) = (step.began.passed, passing(run, step));
    let undone = undone_here(step) > 0;
    let mut events: Vec<Event> = if undone {
        failing.iter().filter(|one| aim.hits(one)).map(|one| put(tried(one), "its fix was undone")).collect()
    } else {
        suite(run).filter_map(|one| measured(step, one, &aim, now > before)).collect()
    };
    let by = failing.iter().find_map(|one| one.broken_by.as_deref()).unwrap_or("a fix");
    let reopened = if undone { Vec::new() } else { qc::reopened(run, step, by) };
    events.extend(reopened.iter().map(|(_, event)| event.clone()));
    qc::disputes(run, step, &mut events);
    events.extend(person_asked(run, step));
    let mut detail = format!("{now} checks pass, {before} did before: {}", aim.named());
    if undone {
        detail = format!("undone: {now} of {before} checks passed after the fix of {}", aim.named());
    }
    if let Some(call) = step.last_call(Purpose::Fix).filter(|call| call.end != AgentEnd::Reported) {
        detail.push_str(&format!("; the fixer {}", call.end.describe()));
    }
    if !reopened.is_empty() {
        let names: Vec<&str> = reopened.iter().map(|(id, _)| id.as_str()).collect();
        detail.push_str(&format!("; it broke {}", named(&names)));
    }
    let outcome = if now > before { Outcome::Progress } else { Outcome::NoProgress };
    events.push(finished(step, outcome, detail));
    events
}

/// What the fix is for.
struct Aim {
    ids: Vec<String>,
    cause: String,
}

impl Aim {
    fn hits(&self, verification: &Verification) -> bool {
        self.ids.contains(&verification.id)
    }

    fn named(&self) -> String {
        named(&self.ids.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Why its fix is undone. Says the same for the same cause, so that it is known again.
    fn undone(&self) -> String {
        format!("fewer checks passed after the fix of {}: {}", self.ids.join(", "), self.cause)
    }
}

/// The most urgent root cause that is behind a real failure; one whose fix was undone before comes last. Without a
/// triage everything that fails is one cause.
fn aim(run: &RunState, step: &OpenStep, failing: &[&Verification]) -> Aim {
    let causes: &[RootCause] = match step.last_report(Tool::ReportTriage) {
        Some(Structured::ReportTriage(triage)) => &triage.root_causes,
        _ => &[],
    };
    let undone = &run.value().undone_causes;
    let undone = &undone[..undone.len().saturating_sub(undone_here(step))];
    let aims = causes.iter().filter_map(|cause| {
        let hit = failing.iter().filter(|one| cause.affected_tests.iter().any(|id| id.trim() == one.id));
        let ids: Vec<_> = hit.map(|one| one.id.clone()).collect();
        let aim = Aim { ids, cause: clipped(&cause.cause, CAUSE) };
        (!aim.ids.is_empty()).then(|| ((undone.contains(&aim.undone()), cause.priority), aim))
    });
    aims.min_by_key(|(rank, _)| *rank).map_or_else(|| everything(failing), |(_, aim)| aim)
}

fn everything(failing: &[&Verification]) -> Aim {
    let last = failing.iter().find_map(|one| one.failures.last());
    let cause = last.map_or_else(String::new, |failure| format!("{}, {}", failure.end, failure.excerpt));
    Aim { ids: failing.iter().map(|one| one.id.clone()).collect(), cause: clipped(&cause, CAUSE) }
}

fn failing<'a>(run: &'a RunState, verifications: &[String]) -> Vec<&'a Verification> {
    let known = verifications.iter().filter_map(|id| run.value().verifications.get(id));
    known.filter(|one| one.status == VerificationStatus::Failed).collect()
}

/// Everything that has a verdict which a fix may change.
fn suite(run: &RunState) -> impl Iterator<Item = &Verification> {
    let judged = |one: &&Verification| matches!(one.status, VerificationStatus::Passed | VerificationStatus::Failed);
    run.value().verifications.values().filter(judged)
}

fn passing(run: &RunState, step: &OpenStep) -> usize {
    let result = |one: &Verification| step.probes.get(&Probe::Verification(one.id.clone()));
    suite(run).filter(|one| result(one).is_some_and(|result| result.end.passed())).count()
}

/// The commit of the state before the fix.
fn place(step: &OpenStep) -> Option<String> {
    let before = |operation: &GitOperation| matches!(operation, GitOperation::Commit { what } if what == BEFORE);
    let commit = step.git.iter().find(|done| before(&done.operation) && done.problem.is_none())?;
    commit.facts.head.clone()
}

/// How often this step put the files back: once or not at all.
fn undone_here(step: &OpenStep) -> usize {
    let restored = |operation: &GitOperation| matches!(operation, GitOperation::Restore { .. });
    step.git.iter().filter(|done| restored(&done.operation) && done.problem.is_none()).count()
}

/// The record after the engine's own run of the script.
fn measured(step: &OpenStep, before: &Verification, aim: &Aim, progress: bool) -> Option<Event> {
    let result = step.probes.get(&Probe::Verification(before.id.clone()))?;
    let mut after = after_run(before, result, step.number);
    if !progress {
        (after.researched, after.corrected) = (before.researched, before.corrected);
        after.fix_attempts = before.fix_attempts;
    }
    if aim.hits(before) && !(progress && result.end.passed()) {
        after.fix_attempts = before.fix_attempts.saturating_add(1);
    }
    Some(put(after, if result.end.passed() { "it passes after a fix" } else { "it fails after a fix" }))
}

/// One attempt more, and nothing else known.
fn tried(verification: &Verification) -> Verification {
    let mut verification = verification.clone();
    verification.fix_attempts = verification.fix_attempts.saturating_add(1);
    verification
}

/// A fixer that needs a person blocks the task it names, where there is one to be done; else its request is only kept.
fn person_asked(run: &RunState, step: &OpenStep) -> Option<Event> {
    let Some(Structured::RequestHumanAction(request)) = step.last_report(Tool::RequestHumanAction) else { return None };
    let task = run.value().task(&request.blocked_task_id).filter(|task: &&Task| task.is_open())?;
    Some(execute::put(execute::blocked_for_person(task, request), "the fixer needs a person"))
}

fn call(purpose: Purpose, subject: String) -> Todo {
    Todo::StartAgent { purpose, paraphrase: None, subject: Some(subject) }
}

fn git(operation: GitOperation) -> Todo {
    Todo::Effect(Effect::Git(operation))
}

fn put(verification: Verification, why: &str) -> Event {
    VerificationPut { verification: Box::new(verification), why: why.to_owned() }.into()
}

#[cfg(test)]
mod tests;
