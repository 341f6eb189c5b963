//! Questions to the log of finished steps. Only reading; what follows is said elsewhere.

use crate::machine::run::RunState;
use crate::model::value::{Action, Outcome, TaskStatus, VrcMode};
use crate::playbook::value::state::StepRecord;

/// Did the step move something?
pub const fn moved(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Progress | Outcome::Passed => true,
        Outcome::NoProgress | Outcome::Neutral | Outcome::Failed => false,
    }
}

pub fn decisions(run: &RunState) -> impl DoubleEndedIterator<Item = &StepRecord> {
    run.value().log.iter().filter(|record| record.action.is_decision())
}

/// The decision-engine steps of this iteration.
pub fn in_iteration(run: &RunState) -> impl DoubleEndedIterator<Item = &StepRecord> {
    decisions(run).filter(|record| run.value().in_iteration.contains(&record.step))
}

/// Did this iteration have its full value check?
pub fn checked_fully(run: &RunState) -> bool {
    let full = Action::Vrc { mode: VrcMode::Full };
    run.value().log.iter().any(|record| record.action == full && run.value().in_iteration.contains(&record.step))
}

pub fn last_decision(run: &RunState) -> Option<&StepRecord> {
    decisions(run).next_back()
}

/// The housekeeping since the latest decision.
pub fn after_last_decision(run: &RunState) -> impl Iterator<Item = &StepRecord> {
    run.value().log.iter().rev().take_while(|record| !record.action.is_decision())
}

/// Everything since the latest value check.
pub fn after_last_check(run: &RunState) -> impl Iterator<Item = &StepRecord> {
    run.value().log.iter().rev().take_while(|record| !matches!(record.action, Action::Vrc { .. }))
}

/// The number of the latest step of a kind.
pub fn last(run: &RunState, wanted: fn(&Action) -> bool) -> Option<u32> {
    run.value().log.iter().rev().find(|record| wanted(&record.action)).map(|record| record.step)
}

/// How many steps of a kind there were.
pub fn count(run: &RunState, wanted: fn(&Action) -> bool) -> u32 {
    let count = run.value().log.iter().filter(|record| wanted(&record.action)).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The latest boundary between two epics, from which what is bounded for each epic counts anew.
pub fn last_boundary(run: &RunState) -> Option<&StepRecord> {
    let boundary = |record: &&StepRecord| matches!(record.action, Action::EpicBoundary { .. });
    run.value().log.iter().rev().find(boundary).filter(|_| !run.began_before_reviews())
}

/// Decision-engine steps after a step; `None`: all of them.
pub fn decisions_after(run: &RunState, step: Option<u32>) -> impl DoubleEndedIterator<Item = &StepRecord> {
    decisions(run).filter(move |record| step.is_none_or(|step| record.step > step))
}

/// Tasks that were done after a step; `None`: all of them.
pub fn done_after(run: &RunState, step: Option<u32>) -> u32 {
    let later = |done: Option<u32>| step.is_none_or(|step| done.is_some_and(|done| done > step));
    let count = run.value().tasks_with(TaskStatus::Done).filter(|task| later(task.done_in)).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

pub fn is_correction(action: &Action) -> bool {
    *action == Action::CourseCorrect
}

/// Decisions in a row that moved nothing, since the latest correction at most: a correction gets its chance.
pub fn fruitless_in_a_row(run: &RunState) -> u32 {
    let in_a_row = decisions(run)
        .rev()
        .take_while(|record| !moved(record.outcome) && !is_correction(&record.action))
        .filter(|record| record.outcome != Outcome::Neutral)
        .count();
    run.value().no_progress.min(u32::try_from(in_a_row).unwrap_or(u32::MAX))
}
