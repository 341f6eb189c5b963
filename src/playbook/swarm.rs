//! The swarm: Scout, then Solver, then (after the engine ran the checks) Skeptic.

use crate::machine::iteration::Iteration;
use crate::machine::playbook::Playbook;
use crate::machine::run::RunState;
use crate::machine::todo::Todo;
use crate::model::loop_file;
use crate::model::purpose::Purpose;

/// One Scout -> Solver -> Skeptic cycle per iteration.
#[derive(Debug, Clone, Copy, Default)]
pub struct Swarm;

impl Playbook for Swarm {
    fn name(&self) -> loop_file::Playbook {
        loop_file::Playbook::Swarm
    }

    fn tells_skills(&self) -> bool {
        true
    }

    fn work(&self, _run: &RunState, iteration: &Iteration) -> Option<Todo> {
        let missing = |purpose: &Purpose| !has_run(iteration, *purpose);
        [Purpose::Scout, Purpose::Solver].into_iter().find(missing).map(Todo::call)
    }

    fn review(&self, run: &RunState, iteration: &Iteration) -> Option<Todo> {
        let due = run.cut.is_none() && !has_run(iteration, Purpose::Skeptic);
        due.then(|| Todo::call(Purpose::Skeptic))
    }
}

fn has_run(iteration: &Iteration, purpose: Purpose) -> bool {
    iteration.calls.contains_key(&iteration.call_key(purpose.role(), None))
}
