//! Which commands a certificate rests on: they are run again before it counts.

use crate::model::criterion::Proof;
use crate::model::learnings::SpecVersion;
use crate::model::rung::Rung;

use super::event::Probe;
use super::run::RunState;

/// Checks and the residual command: what a certificate rests on.
pub fn replay_probes(state: &RunState) -> Vec<Probe> {
    let checks = state.criteria.iter().filter(|c| matches!(c.proof, Proof::Check { .. }));
    let mut probes: Vec<_> = checks.map(|criterion| Probe::Criterion(criterion.id.clone())).collect();
    if state.loop_file().residual.as_ref().is_some_and(|residual| residual.command.is_some()) {
        probes.push(Probe::Residual);
    }
    probes
}

/// What a replay runs: what the certificate rests on, and what the playbook adds.
pub fn replayed(state: &RunState) -> Vec<Probe> {
    let mut probes = replay_probes(state);
    probes.extend(state.playbook().probes(state, None));
    probes
}

/// What else a certificate rests on and an agent could have changed: metrics, and for the highest rung its commands.
pub fn instruments(state: &RunState) -> Vec<Probe> {
    let mut probes = metric_probes(state);
    let declared = state.loop_file();
    if state.rung_target() == Rung::Promoted {
        probes.extend(declared.security.iter().map(|_| Probe::Security));
        probes.extend(declared.api_surface.iter().map(|_| Probe::ApiSurface));
    }
    probes
}

pub fn metric_probes(state: &RunState) -> Vec<Probe> {
    if state.spec() == SpecVersion::V1 {
        return Vec::new();
    }
    let measured = state.loop_file().northstar.iter().flat_map(|northstar| northstar.measure.keys());
    measured.map(|id| Probe::Metric(id.clone())).collect()
}
