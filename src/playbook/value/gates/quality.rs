//! The quality gates of the plan (CRAAP to TIDY): one session each, judged by rule, through the microloop's kernel.
//!
//! The session is the author, the rule the critic. A session that changes nothing is a success. The plan of a later epic
//! has the same sessions at the boundary (`actions::epics`).

use crate::machine::event::AgentEnd;
use crate::machine::run::RunState;
use crate::machine::todo::Todo;
use crate::model::purpose::Purpose;
use crate::model::value::tools::Structured;
use crate::model::value::{Task, TaskStatus};
use crate::playbook::micro::{CriticVerdict, Kernel, Next};
use crate::playbook::value::state::OpenStep;

use super::{Move, fail, how_it_ended, list, need, pass};

/// Sessions of one gate.
const PASSES: usize = 3;

/// All of them, in order.
pub const REVIEWS: [Purpose; 7] = [
    Purpose::Craap,
    Purpose::Clarity,
    Purpose::Validate,
    Purpose::Connect,
    Purpose::Break,
    Purpose::Prune,
    Purpose::Tidy,
];

/// Where the review of a plan stands.
pub enum Review {
    /// A session is missing.
    Session,
    Verified,
    /// No more sessions, and this is wrong all the same.
    Concerns(Vec<String>),
}

pub fn review(run: &RunState, step: &OpenStep, purpose: Purpose) -> Review {
    let unverified = || CriticVerdict::Unverified { help: true, signature: None };
    let concerns = concerns(run, step, purpose);
    // Only the latest pass can have been verified: the gate ends with it.
    let mut verdicts: Vec<CriticVerdict> = (0..step.calls_for(purpose)).map(|_| unverified()).collect();
    if let Some(latest) = verdicts.last_mut()
        && concerns.is_empty()
    {
        *latest = CriticVerdict::Verified;
    }
    let kernel = Kernel { limit: PASSES, passes: verdicts.into_iter().map(Into::into).collect() };
    match kernel.next() {
        Next::Author => Review::Session,
        Next::Verified => Review::Verified,
        Next::AdvanceWithConcerns | Next::NoViablePath | Next::Detour(_) | Next::Escalate => Review::Concerns(concerns),
    }
}

pub(super) fn script(run: &RunState, step: &OpenStep, purpose: Purpose) -> Move {
    match review(run, step, purpose) {
        Review::Session => need(Todo::call(purpose)),
        Review::Verified => {
            let changes = step.reports.len();
            pass(step, format!("{changes} change(s), {} task(s)", run.value().tasks.len()))
        }
        Review::Concerns(concerns) if run.value_settings().strict_gates => fail(&concerns),
        Review::Concerns(concerns) => {
            pass(step, format!("warning, not passed but gates are not strict: {}", list(&concerns)))
        }
    }
}

/// What is wrong after the latest session, in words; nothing: it is passed.
fn concerns(run: &RunState, step: &OpenStep, purpose: Purpose) -> Vec<String> {
    let mut concerns = Vec::new();
    if let Some(call) = step.last_call(purpose).filter(|call| call.end != AgentEnd::Reported) {
        concerns.push(format!("the session {}", how_it_ended(&call.end)));
    }
    let tasks = &run.value().tasks;
    if !tasks.iter().any(Task::is_open) {
        concerns.push("no task is left in the plan".to_owned());
    }
    if let Some(task) = never_ready(tasks) {
        concerns.push(format!("task {task} can never begin: the dependencies go in a circle"));
    }
    for task in tasks.iter().filter(|task| task.status == TaskStatus::Blocked && !task.needs_person()) {
        if touched(step, &task.id) {
            let reason = task.blocked_reason.as_deref().unwrap_or("no reason given");
            concerns.push(format!("task {} was blocked ({reason}): make it workable, or say what is missing", task.id));
        }
    }
    concerns
}

/// Did a session of this step change the task? What was blocked before is left to the gate for blockers.
fn touched(step: &OpenStep, id: &str) -> bool {
    step.reports.iter().any(|(_, report)| matches!(report, Structured::ManageTask(wish) if wish.task_id == id))
}

/// A task on a circle of dependencies, or behind one.
fn never_ready(tasks: &[Task]) -> Option<&str> {
    let mut waiting: Vec<&Task> = tasks.iter().collect();
    loop {
        let blocked = |task: &&Task| task.dependencies.iter().any(|id| waiting.iter().any(|other| other.id == *id));
        let rest: Vec<&Task> = waiting.iter().copied().filter(blocked).collect();
        if rest.len() == waiting.len() {
            return rest.first().map(|task| task.id.as_str());
        }
        waiting = rest;
    }
}
