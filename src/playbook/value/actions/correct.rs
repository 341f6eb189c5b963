//! COURSE_CORRECT: change the approach, within bounds.
//!
//! Role: carry out what the reasoner decided: a changed plan (made through the guardrails during its call), a
//! rollback, new checks, a word of a person. Not its role: changing the plan by itself.
//!
//! Invariants: every failing verification is corrected at most once and then given up, also when the reasoner brings
//! nothing, so that correcting ends; what passes stays as it is; only a rollback makes a done task pending again.

use crate::machine::event::{Event, GitFinished, GitOperation};
use crate::machine::run::RunState;
use crate::machine::todo::{Effect, Todo};
use crate::model::purpose::{Purpose, Tool};
use crate::model::value::tools::{CorrectionAction, CourseCorrection, Structured};
use crate::model::value::{Action, Outcome, Task, TaskStatus, Verification, VerificationStatus};
use crate::playbook::value::event::{TaskPut, VerificationPut};
use crate::playbook::value::state::{Checkpoint, OpenStep};

use crate::playbook::value::decide::history;
use crate::playbook::value::{finished, monitor};

use super::ask::{self, MAX_DETAIL, cut};
use super::evaluate::describe;
use super::qc::services_once;

pub fn next(run: &RunState, step: &OpenStep) -> Option<Todo> {
    if step.calls_for(Purpose::CourseCorrect) == 0 {
        return Some(Todo::call(Purpose::CourseCorrect));
    }
    let correction = correction(step)?;
    match correction.action {
        CorrectionAction::Rollback => next_in_rollback(run, step, correction),
        CorrectionAction::RegenerateTests => next_in_regeneration(run, step),
        CorrectionAction::Restructure
        | CorrectionAction::Descope
        | CorrectionAction::NewTasks
        | CorrectionAction::Escalate => None,
    }
}

pub fn decide(run: &RunState, step: &OpenStep) -> Vec<Event> {
    let Some(correction) = correction(step) else {
        let end = step.last_call(Purpose::CourseCorrect).map_or_else(String::new, |call| describe(&call.end));
        return close(run, step, Change::Nothing, &format!("no correction: {end}"));
    };
    let reason = correction.reason.trim();
    match correction.action {
        CorrectionAction::Restructure => close(run, step, plan_change(step), &format!("restructured: {reason}")),
        CorrectionAction::Descope => close(run, step, plan_change(step), &format!("descoped: {reason}")),
        CorrectionAction::NewTasks => close(run, step, plan_change(step), &format!("new tasks: {reason}")),
        CorrectionAction::Rollback => decide_rollback(run, step, correction),
        CorrectionAction::RegenerateTests => decide_regeneration(run, step, reason),
        CorrectionAction::Escalate => decide_escalation(run, step, reason),
    }
}

/// What the reasoner decided.
fn correction(step: &OpenStep) -> Option<&CourseCorrection> {
    match step.last_report(Tool::ReportCourseCorrection) {
        Some(Structured::ReportCourseCorrection(correction)) => Some(correction),
        _ => None,
    }
}

/// How far the correction changed what is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Nothing,
    Plan,
}

/// A wish that was accepted has changed the plan: the guardrails refuse those that change nothing.
fn plan_change(step: &OpenStep) -> Change {
    let wished = |(purpose, report): &(Purpose, Structured)| {
        *purpose == Purpose::CourseCorrect && report.tool() == Tool::ManageTask
    };
    if step.reports.iter().any(wished) { Change::Plan } else { Change::Nothing }
}

fn close(run: &RunState, step: &OpenStep, change: Change, detail: &str) -> Vec<Event> {
    let verifications = run.value().verifications.values();
    let mut events: Vec<Event> = verifications.filter_map(|one| after_correction(run, one, change)).collect();
    events.push(end(step, change, detail));
    events
}

fn end(step: &OpenStep, change: Change, detail: &str) -> Event {
    match change {
        Change::Plan => finished(step, Outcome::Progress, cut(detail, MAX_DETAIL)),
        Change::Nothing => {
            finished(step, Outcome::NoProgress, format!("{} (nothing changed)", cut(detail, MAX_DETAIL)))
        }
    }
}

/// A failing verification after a correction: tried anew once, and given up the second time.
fn after_correction(run: &RunState, one: &Verification, change: Change) -> Option<Event> {
    if one.status != VerificationStatus::Failed {
        return None;
    }
    let exhausted = one.fix_attempts >= monitor::fix_limit(run);
    let mut after = one.clone();
    after.corrected = true;
    let why = match (one.corrected, change) {
        (true, _) if exhausted => {
            after.status = VerificationStatus::Blocked;
            "given up: fixes, research and a correction did not help"
        }
        (true, _) => return None,
        (false, Change::Plan) => {
            after.status = VerificationStatus::Pending;
            after.fix_attempts = 0;
            "the plan changed: it is tried anew, once"
        }
        (false, Change::Nothing) if exhausted => "the course was corrected for it, to no avail",
        (false, Change::Nothing) => return None,
    };
    Some(VerificationPut { verification: Box::new(after), why: why.to_owned() }.into())
}

// Rollback.

fn next_in_rollback(run: &RunState, step: &OpenStep, correction: &CourseCorrection) -> Option<Todo> {
    match restored(step) {
        None => {
            let checkpoint = goal(run, correction).ok()?;
            let why = cut(&format!("rollback to {}: {}", checkpoint.label, correction.reason), 200);
            Some(Todo::Effect(Effect::Git(GitOperation::Restore { commit: checkpoint.commit.clone(), why })))
        }
        // Other files may mean other services.
        Some(done) if done.problem.is_none() => services_once(run, step),
        Some(_) => None,
    }
}

fn restored(step: &OpenStep) -> Option<&GitFinished> {
    step.git.iter().find(|done| matches!(done.operation, GitOperation::Restore { .. }))
}

/// The place to go back to, or why there is none.
fn goal<'a>(run: &'a RunState, correction: &CourseCorrection) -> Result<&'a Checkpoint, String> {
    let most = run.value_settings().max_rollbacks;
    if run.git.branch().is_none() {
        return Err("there is no branch of the run's own to roll back".to_owned());
    }
    if run.value().restores >= most {
        return Err(format!("{most} rollback(s) are all a run may have"));
    }
    // A finished slice was shown to a person: what is behind it stays.
    let boundary = run.value().log.iter().rev().find(|one| matches!(one.action, Action::EpicBoundary { .. }));
    let first = boundary.map_or(0, |record| record.step);
    let mut reachable = run.value().checkpoints.iter().rev().filter(|checkpoint| checkpoint.step >= first);
    let named = correction.rollback_to_checkpoint.as_deref().map(str::trim).filter(|label| !label.is_empty());
    match named {
        Some(label) => reachable
            .find(|checkpoint| checkpoint.label == label)
            .ok_or_else(|| format!("there is no checkpoint `{}` to go back to", cut(label, 60))),
        None => reachable.next().ok_or_else(|| "there is no checkpoint to go back to".to_owned()),
    }
}

fn decide_rollback(run: &RunState, step: &OpenStep, correction: &CourseCorrection) -> Vec<Event> {
    let reason = correction.reason.trim();
    let Some(done) = restored(step) else {
        let why = goal(run, correction).err().unwrap_or_default();
        return close(run, step, plan_change(step), &format!("no rollback: {why}; wanted because: {reason}"));
    };
    if let Some(problem) = &done.problem {
        return close(run, step, plan_change(step), &format!("the rollback failed: {problem}"));
    }
    let GitOperation::Restore { commit, .. } = &done.operation else {
        return close(run, step, Change::Nothing, "nothing was put back");
    };
    let Some(checkpoint) = run.value().checkpoints.iter().rev().find(|one| one.commit == *commit) else {
        return close(run, step, Change::Nothing, "the checkpoint that was put back is not known");
    };
    let undone = run.value().tasks_with(TaskStatus::Done).filter(|task| !checkpoint.tasks_done.contains(&task.id));
    let mut events: Vec<Event> = undone.map(|task| task_after_rollback(task, checkpoint)).collect();
    let verifications = run.value().verifications.values();
    events.extend(verifications.filter_map(|one| verification_after_rollback(one, checkpoint)));
    events.push(end(step, Change::Plan, &format!("rolled back to {}: {reason}", checkpoint.label)));
    events
}

fn task_after_rollback(task: &Task, checkpoint: &Checkpoint) -> Event {
    let mut again = task.clone();
    again.status = TaskStatus::Pending;
    again.done_in = None;
    again.files_created.clear();
    again.files_modified.clear();
    let why = format!("its work was rolled back to {}", checkpoint.label);
    again.notes = cut(&format!("{} {why}.", task.notes), MAX_DETAIL).trim().to_owned();
    TaskPut { task: Box::new(again), why }.into()
}

fn verification_after_rollback(one: &Verification, checkpoint: &Checkpoint) -> Option<Event> {
    let mut after = one.clone();
    let passed_there = checkpoint.passing.contains(&one.id);
    match (one.status, passed_there) {
        (VerificationStatus::Passed, true) | (VerificationStatus::Pending, false) => return None,
        // What was given up stays so: going back is no new way of mending it.
        (VerificationStatus::Blocked, false) => return None,
        (_, true) => {
            after.status = VerificationStatus::Passed;
            after.failures.clear();
            after.fix_attempts = 0;
        }
        (VerificationStatus::Failed, false) => {
            after.status = VerificationStatus::Pending;
            after.failures.clear();
            if !one.corrected {
                after.corrected = true;
                after.fix_attempts = 0;
            }
        }
        (VerificationStatus::Passed, false) => {
            after.status = VerificationStatus::Pending;
            after.failures.clear();
        }
    }
    let why = format!("the files are as at {}", checkpoint.label);
    Some(VerificationPut { verification: Box::new(after), why }.into())
}

// New checks: made in this step, so that a correction is whole in itself.

fn next_in_regeneration(run: &RunState, step: &OpenStep) -> Option<Todo> {
    if step.calls_for(Purpose::GenerateVerifications) > 0 {
        return (!step.scripts_found).then_some(Todo::Effect(Effect::FindVerifications));
    }
    let subject = replaceable(run);
    (!subject.is_empty() && generations(run) < run.value_settings().max_qc_generations).then(|| Todo::StartAgent {
        purpose: Purpose::GenerateVerifications,
        paraphrase: None,
        subject: Some(subject.join(",")),
    })
}

/// Checks that fail or were given up; those that pass are never made anew.
fn replaceable(run: &RunState) -> Vec<&str> {
    let stuck = |one: &&Verification| matches!(one.status, VerificationStatus::Failed | VerificationStatus::Blocked);
    run.value().verifications.values().filter(stuck).map(|one| one.id.as_str()).collect()
}

/// Times an agent wrote checks in this epic, in whatever step. A boundary closes its iteration.
fn generations(run: &RunState) -> u32 {
    let boundary = history::last_boundary(run).and_then(|record| record.iteration);
    let here = run.iterations().filter(|iteration| boundary.is_none_or(|last| iteration.began.iteration > last));
    let calls = here.flat_map(|iteration| iteration.calls.values());
    let count = calls.filter(|call| call.purpose == Purpose::GenerateVerifications).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn decide_regeneration(run: &RunState, step: &OpenStep, reason: &str) -> Vec<Event> {
    let Some(call) = step.last_call(Purpose::GenerateVerifications) else {
        let most = run.value_settings().max_qc_generations;
        let why = if replaceable(run).is_empty() {
            "no check fails".to_owned()
        } else {
            format!("checks are written at most {most} time(s)")
        };
        return close(run, step, plan_change(step), &format!("no new checks: {why}"));
    };
    let replaced: Vec<&str> = call.subject.as_deref().unwrap_or_default().split(',').collect();
    let anew = replaced.iter().filter_map(|id| run.value().verifications.get(*id));
    let anew: Vec<&Verification> = anew.filter(|one| one.status == VerificationStatus::Pending).collect();
    let change = if anew.is_empty() { plan_change(step) } else { Change::Plan };
    let mut events: Vec<Event> = anew
        .iter()
        .filter(|one| !one.corrected)
        .map(|one| {
            let why = "its script was written anew, once".to_owned();
            VerificationPut { verification: Box::new(Verification { corrected: true, ..(*one).clone() }), why }.into()
        })
        .collect();
    events.extend(close(run, step, change, &format!("{} check(s) written anew: {reason}", anew.len())));
    events
}

fn decide_escalation(run: &RunState, step: &OpenStep, reason: &str) -> Vec<Event> {
    if step.decisions.is_empty() {
        let options = ["say what to do differently", "quit"];
        if let Some(asked) = ask::escalate(run, reason, &options, "a course correction asks for a person") {
            return vec![asked];
        }
    }
    let heard = if step.decisions.is_empty() { "nobody can be asked any more" } else { "a person was asked" };
    close(run, step, plan_change(step), &format!("escalated, {heard}: {reason}"))
}
