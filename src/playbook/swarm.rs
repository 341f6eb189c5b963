//! The swarm: Scout, then Solver, then (after the engine ran the checks) Skeptic.

use crate::machine::iteration::Iteration;
use crate::machine::next::Playbook;
use crate::model::ids::Role;

/// One Scout -> Solver -> Skeptic cycle per iteration.
#[derive(Debug, Clone, Copy, Default)]
pub struct Swarm;

impl Playbook for Swarm {
    fn next_worker(&self, iteration: &Iteration) -> Option<Role> {
        [Role::Scout, Role::Solver].into_iter().find(|role| !has_run(iteration, *role))
    }

    fn next_reviewer(&self, iteration: &Iteration) -> Option<Role> {
        (!has_run(iteration, Role::Skeptic)).then_some(Role::Skeptic)
    }
}

fn has_run(iteration: &Iteration, role: Role) -> bool {
    iteration.calls.contains_key(&iteration.call_key(role, None))
}
