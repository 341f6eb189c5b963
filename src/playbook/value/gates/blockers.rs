//! Blockers: no task of the plan is blocked, unless only a person can unblock it.

use crate::machine::run::RunState;
use crate::machine::todo::Todo;
use crate::model::purpose::Purpose;
use crate::model::value::TaskStatus;
use crate::model::value::plan::HUMAN_ACTION;
use crate::playbook::value::state::OpenStep;

use super::{Move, TRIES, bounded, fail, need, pass};

/// Of each reason this much is shown.
const MAX_REASON: usize = 300;

pub(super) fn script(run: &RunState, step: &OpenStep) -> Move {
    let blocked: Vec<String> = run
        .value()
        .tasks_with(TaskStatus::Blocked)
        .filter(|task| !task.needs_person())
        .map(|task| {
            let reason = task.blocked_reason.as_deref().unwrap_or("no reason given");
            format!("task {}: {}", task.id, bounded(reason, MAX_REASON))
        })
        .collect();
    let calls = step.calls_for(Purpose::VerifyBlockers);
    if blocked.is_empty() {
        let people = run.value().tasks.iter().filter(|task| task.needs_person()).count();
        let how = if calls == 0 { "no task is blocked" } else { "what was blocked is cleared up" };
        return pass(step, format!("{how}; {people} task(s) wait for a person ({HUMAN_ACTION})"));
    }
    if calls < TRIES {
        return need(Todo::call(Purpose::VerifyBlockers));
    }
    fail(&blocked)
}
