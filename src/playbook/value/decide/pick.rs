//! Which task is worked on next.

use crate::machine::run::RunState;
use crate::model::value::{Task, TaskSource, TaskStatus};

/// Tasks of the epic that is worked on; where there are no epics, all. A task without an epic belongs to any.
pub fn in_scope(run: &RunState) -> impl Iterator<Item = &Task> {
    let current = run.value().current_epic().map(|epic| epic.epic);
    run.value().tasks.iter().filter(move |task| match (task.epic, current) {
        (Some(epic), Some(current)) => epic == current,
        (Some(_), None) | (None, _) => true,
    })
}

/// Still to be done. Between steps nothing is in progress, so a task that says so was left there.
pub const fn waits(task: &Task) -> bool {
    match task.status {
        TaskStatus::Pending | TaskStatus::InProgress => true,
        TaskStatus::Done | TaskStatus::Blocked | TaskStatus::Descoped => false,
    }
}

/// The waiting tasks in scope.
pub fn waiting(run: &RunState) -> impl Iterator<Item = &Task> {
    in_scope(run).filter(|task| waits(task))
}

/// Is everything it stands on done, or no longer wanted?
pub fn is_ready(run: &RunState, task: &Task) -> bool {
    task.dependencies.iter().all(|id| run.value().task(id).is_some_and(|needed| needed.status.is_settled()))
}

/// The task to work on: by where it came from, then what holds up most others, then by phase, then the oldest.
pub fn next(run: &RunState) -> Option<&Task> {
    let ready = waiting(run).filter(|task| is_ready(run, task));
    ready.min_by_key(|task| {
        // What was done and is broken is mended before more is built on it.
        let whole = task.broken_by.is_none();
        let unblocks = dependents(&run.value().tasks, &task.id);
        // `min_by_key` keeps the first of equals: the order in which they were made.
        (whole, rank(task.source), std::cmp::Reverse(unblocks), phase_order(&run.value().tasks, task.phase.as_deref()))
    })
}

const fn rank(source: TaskSource) -> u8 {
    match source {
        TaskSource::ExitGate => 0,
        TaskSource::CriticalEval => 1,
        TaskSource::Vrc => 2,
        TaskSource::CourseCorrection => 3,
        TaskSource::Plan | TaskSource::Gate => 4,
        TaskSource::PlanHealth | TaskSource::Coherence | TaskSource::Qc => 5,
    }
}

/// How many waiting tasks stand on this one, directly or not.
fn dependents(tasks: &[Task], id: &str) -> usize {
    let mut found: Vec<&str> = Vec::new();
    let mut looked_at = vec![id];
    while let Some(needed) = looked_at.pop() {
        for task in tasks {
            let depends = task.dependencies.iter().any(|dependency| dependency == needed);
            if depends && waits(task) && task.id != id && !found.contains(&task.id.as_str()) {
                found.push(&task.id);
                looked_at.push(&task.id);
            }
        }
    }
    found.len()
}

/// Phases by their number where they have one, the others as they first appear, tasks without a phase last.
fn phase_order(tasks: &[Task], phase: Option<&str>) -> (u64, usize) {
    let Some(phase) = phase else { return (u64::MAX, usize::MAX) };
    let digits: String = phase.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    let number = digits.parse().unwrap_or(u64::MAX);
    let appears = tasks.iter().position(|task| task.phase.as_deref() == Some(phase)).unwrap_or(usize::MAX);
    (number, appears)
}
