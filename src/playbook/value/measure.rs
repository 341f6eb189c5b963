//! How far the goal of the value playbook is: the value score, the exit gate, the scripts behind it.

use crate::machine::document;
use crate::machine::event::{Event, Phase, Probe};
use crate::machine::iteration::Iteration;
use crate::machine::playbook::WayOut;
use crate::machine::run::RunState;
use crate::model::certificate::Residual;
use crate::model::learnings::Link;
use crate::model::purpose::Purpose;
use crate::model::value::Verification;

use super::actions::qc::{after_run, name_flaky};
use super::event::ClaimTakenBack;
use super::flaky;

use super::services;

/// The Northstar metric that value checks measure.
pub const VALUE_SCORE: &str = "value_score";

/// 1 - value_score of the latest check, exactly.
pub fn residual(run: &RunState) -> Result<Residual, String> {
    let vrc = run.value().latest_vrc().ok_or("the value was never checked")?;
    let value = vrc.residual().ok_or_else(|| format!("a value score of {} is more than 1", vrc.value_score))?;
    Ok(Residual { value, unmet_of: None })
}

/// The value score at the end of an iteration.
pub fn metric(run: &RunState, id: &str, iteration: Option<u32>) -> Option<String> {
    let vrc = run.value().vrc_at_end_of(iteration).filter(|_| id == VALUE_SCORE)?;
    Some(vrc.value_score.to_string())
}

/// The scripts of the QC role.
pub fn scripts(run: &RunState) -> Vec<Probe> {
    run.value().verifications.keys().map(|id| Probe::Verification(id.clone())).collect()
}

/// The scripts as verifiers: in the iteration they ran in the step of the exit gate.
pub fn verifiers(run: &RunState, iteration: &Iteration, phase: Phase) -> Vec<(Phase, Probe)> {
    let phase = match (phase, run.value().exit_gate_passed) {
        (Phase::Iteration, Some(step)) => Phase::Step(step),
        _ => phase,
    };
    let shown = |probe: Probe| (shown_in(run, iteration, phase, &probe).unwrap_or(phase), probe);
    scripts(run).into_iter().map(shown).collect()
}

/// Where a script was seen to pass. Older runs took its first run for it.
fn shown_in(run: &RunState, iteration: &Iteration, phase: Phase, probe: &Probe) -> Option<Phase> {
    if run.began_before_recovery() {
        return iteration.probe(phase, probe).filter(|result| result.end.passed()).map(|_| phase);
    }
    flaky::shown_in(iteration, phase, probe)
}

/// The gate is open no more where a script does not hold in the replays: it goes to FIX, and the run goes on.
pub fn takes_back(run: &RunState, iteration: &Iteration) -> Option<Event> {
    run.value().exit_gate_passed?;
    let failed = flaky::failed_in_replay(run, iteration);
    let step = run.value().exit_gate_passed.unwrap_or_default();
    let verifications: Vec<Verification> = failed
        .iter()
        .filter_map(|(id, phase)| {
            let (known, probe) = (run.value().verifications.get(id)?, Probe::Verification(id.clone()));
            let mut after = after_run(known, iteration.probe(*phase, &probe)?, step);
            after.flaky = flaky::Runs::of(iteration, *phase, &probe)?.flaky(step);
            name_flaky(&mut after);
            Some(after)
        })
        .collect();
    (!verifications.is_empty()).then(|| ClaimTakenBack { verifications }.into())
}

/// The exit gate of this iteration, with its scripts as the phase ran them.
pub fn way_out(run: &RunState, iteration: &Iteration, phase: Phase) -> WayOut {
    let Some(step) = run.value().exit_gate_passed else {
        return (false, None, "the exit gate is not passed".to_owned());
    };
    if let Some(name) = services::down(run) {
        return (false, None, format!("the service {name} is not healthy"));
    }
    let phase = if phase == Phase::Iteration { Phase::Step(step) } else { phase };
    let passed = |id: &&String| shown_in(run, iteration, phase, &Probe::Verification((*id).clone())).is_some();
    let failed: Vec<&str> = run.value().verifications.keys().filter(|id| !passed(id)).map(String::as_str).collect();
    if !failed.is_empty() {
        return (false, None, format!("these checks do not pass: {}", failed.join(", ")));
    }
    let judged = iteration.reports.iter().find(|(key, _)| key.contains(&format!(".step{step}.{}.", Purpose::ExitGate)));
    let link = judged
        .map(|(key, accepted)| Link { path: document::report_path(iteration.number(), key), sha256: accepted.sha256 });
    match link {
        Some(link) => (true, Some(link), format!("passed in step {step}")),
        None => (false, None, "the exit gate was passed in another iteration".to_owned()),
    }
}

/// How far the exit gate is, before a certificate says so.
pub fn way_out_tried(run: &RunState) -> (bool, &'static str) {
    let tried = run.value().exit_gate_attempts > 0;
    match (run.value().exit_gate_passed, tried) {
        (Some(_), _) => (tried, "the exit gate is passed; the certificate follows"),
        (None, false) => (tried, "the exit gate was not tried yet"),
        (None, true) => (tried, "the exit gate was tried, and not passed yet"),
    }
}
