//! The plan: one planning session, a second one where the first brought nothing or broke off.

use crate::machine::event::AgentEnd;
use crate::machine::run::RunState;
use crate::machine::todo::Todo;
use crate::model::purpose::Purpose;
use crate::playbook::value::state::OpenStep;

use super::{Move, TRIES, fail, how_it_ended, need, pass};

pub(super) fn script(run: &RunState, step: &OpenStep) -> Move {
    let tasks = run.value().tasks.len();
    let last = step.last_call(Purpose::Plan);
    match last {
        Some(call) if call.end == AgentEnd::Reported && tasks > 0 => pass(step, format!("{tasks} task(s)")),
        Some(_) | None if step.calls_for(Purpose::Plan) < TRIES => need(Todo::call(Purpose::Plan)),
        Some(call) if tasks > 0 => {
            let how = how_it_ended(&call.end);
            fail(&[format!("the plan is not finished ({tasks} task(s)): the planning session {how}")])
        }
        Some(_) | None => fail(&[
            "the vision or the PRD is too abstract: no task could be planned from it".to_owned(),
            "say in the PRD what is to be there, and how somebody can see it".to_owned(),
        ]),
    }
}
