//! The step function: an input in a state becomes events, or a rejection. Pure.
//!
//! Every (state, input) pair is spelled out in [`legal()`](super::legal::legal); what is not allowed is a value, never ignored.

use crate::model::budget;
use crate::model::certificate::CertificateKind;
use crate::model::decision::{MAX_DECISIONS, Mode, Request};
use crate::model::feasible::{self, Obstacle};
use crate::model::learnings::{self, SpecVersion};
use crate::model::northstar;
use crate::model::stop::{ExitStatus, ForbiddenState, StopReason};

use super::claim;
use super::entry;
use super::event::{
    BackpressureSeen, CertificateIssued, DecisionAsked, Event, GateJudged, InputRejected, NullChecked, Phase, Probe,
    ResidualMeasured, RunHalted, Signal, StateEntered,
};
use super::failure;
use super::forbidden;
use super::gate;
use super::guards;
use super::halt::{halt, over_budget};
use super::iteration::Iteration;
use super::legal::legal;
use super::measure;
use super::progress;
use super::replay::replayed;
use super::run::RunState;
use super::state::State;

/// Null residuals in a row after which the metric counts as unmeasurable.
const MAX_NULL_RESIDUALS: usize = 3;

/// What comes into the machine.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Nothing outside is needed; decide.
    Proceed,
    /// An effect was announced or is done.
    Record(Box<Event>),
}

/// Turns an input into events. An illegal input becomes one `input.rejected`.
pub fn step(state: &RunState, input: Input) -> Vec<Event> {
    match input {
        Input::Proceed => decide(state),
        Input::Record(event) => match legal(state, &event) {
            Ok(()) => {
                let follow_up = failure::follow_up(state, &event);
                std::iter::once(*event).chain(follow_up).collect()
            }
            Err(why) => {
                vec![InputRejected { state: state.state, input: event.kind().to_owned(), why }.into()]
            }
        },
    }
}

fn decide(state: &RunState) -> Vec<Event> {
    if state.halt.is_some() {
        return Vec::new();
    }
    if let Some(violation) = forbidden::detect(state) {
        return vec![
            RunHalted {
                status: violation.status,
                stop_reason: violation.stop_reason,
                forbidden_state: Some(violation.forbidden),
                last_state: state.state,
                detail: violation.what.to_owned(),
                exhausted: None,
                signal: None,
            }
            .into(),
        ];
    }
    if let Some(seen) = claim::stop(state) {
        return vec![stopped_by(state, &seen)];
    }
    if let Some(quit) = state.operator.quit() {
        let detail = format!("{} was answered with `quit` by {}", quit.id, quit.by);
        return vec![halt(state, ExitStatus::ExitBlocked, StopReason::HumanQuit, detail).into()];
    }
    if matches!(state.state, State::DreamGoal | State::SpawnSubagent | State::CheckHalting) {
        let decided = state.playbook().decide(state);
        if !decided.is_empty() {
            return decided;
        }
    }
    match state.state {
        State::Init => enter(state, State::IntakeGoal, "a goal was requested"),
        State::IntakeGoal => enter(state, State::NullCheck, "the declaration is read"),
        State::NullCheck => decide_null_check(state),
        State::DreamGoal => decide_dream(state),
        State::SpawnSubagent => enter(state, State::CollectArtifacts, "the agents are done"),
        State::CollectArtifacts => decide_collect(state),
        State::CheckHalting => decide_check(state),
        State::AccumulateLearnings => match state.spec() {
            SpecVersion::V2 => enter(state, State::GlowCheck, "the entry is in AGENTS.md"),
            SpecVersion::V1 => enter(state, State::BudgetCheck, "the entry is in AGENTS.md"),
        },
        State::GlowCheck => decide_glow(state),
        State::BudgetCheck => decide_budget(state),
        State::ExitConverged
        | State::ExitDiverged
        | State::ExitBudgetExceeded
        | State::ExitBlocked
        | State::ExitNeedInfo => Vec::new(),
    }
}

fn enter(state: &RunState, to: State, why: &str) -> Vec<Event> {
    vec![StateEntered { from: state.state, to, why: why.to_owned() }.into()]
}

fn stopped_by(state: &RunState, seen: &BackpressureSeen) -> Event {
    let reason = seen.signal.reason(&seen.detail);
    RunHalted {
        signal: Some(seen.signal),
        ..halt(state, ExitStatus::ExitBlocked, StopReason::BackpressureSignal, reason)
    }
    .into()
}

/// The inputs that are missing, by field, in the order they are asked for.
fn missing_inputs(state: &RunState) -> Vec<(&'static str, StopReason)> {
    let declared = state.loop_file();
    let mut missing = Vec::new();
    if declared.goal.as_ref().is_none_or(|goal| goal.trim().is_empty()) {
        missing.push(("goal", StopReason::NullInput));
    }
    if state.criteria.is_empty() {
        missing.push(("acceptance_criteria", StopReason::NullInput));
    }
    if !state.certificates.iter().any(|kind| kind.is_success()) {
        missing.push(("halting_certificates", StopReason::HaltingCriteriaMissing));
    }
    if declared.agents.is_empty() {
        missing.push(("agents", StopReason::NullInput));
    }
    let northstar_ok = state.northstar.as_ref().is_some_and(|n| n.problem.is_none() && !n.metrics.is_empty());
    let comparable =
        northstar::distance(&state.northstar.as_ref().map(|n| n.metrics.clone()).unwrap_or_default()).total.is_some();
    if state.spec() == SpecVersion::V2 && !(northstar_ok && comparable) {
        missing.push(("northstar", StopReason::NorthstarMissing));
    }
    if missing.is_empty()
        && let Some(obstacle) = fatal_obstacle(state)
        && let Some(reason) = obstacle.fatal
    {
        missing.push((obstacle.key, reason));
    }
    missing
}

/// Why no run of this declaration can succeed.
fn fatal_obstacle(state: &RunState) -> Option<Obstacle> {
    if state.began_before_replays() {
        return None;
    }
    let metrics = state.northstar.as_ref().map(|read| read.metrics.as_slice()).unwrap_or_default();
    feasible::obstacles(state.loop_file(), metrics).into_iter().find(|obstacle| obstacle.fatal.is_some())
}

fn decide_null_check(state: &RunState) -> Vec<Event> {
    let missing = missing_inputs(state);
    let names: Vec<String> = missing.iter().map(|(name, _)| (*name).to_owned()).collect();
    let checked = NullChecked { missing: names.clone() }.into();
    let Some((_, reason)) = missing.first() else {
        let mut events = vec![checked];
        events.extend(enter(state, State::DreamGoal, "inputs, certificates and Northstar are there"));
        return events;
    };
    if let Some(obstacle) = fatal_obstacle(state).filter(|obstacle| names == [obstacle.key]) {
        let detail = format!("{}: {}", obstacle.message, obstacle.hint);
        return vec![checked, halt(state, ExitStatus::ExitNeedInfo, *reason, detail).into()];
    }
    let problem = state.northstar.as_ref().and_then(|n| n.problem.clone());
    let detail = match problem {
        Some(problem) if names.iter().any(|name| name == "northstar") => {
            format!("missing: {} ({problem})", names.join(", "))
        }
        Some(_) | None => format!("missing: {}", names.join(", ")),
    };
    vec![checked, halt(state, ExitStatus::ExitNeedInfo, *reason, detail).into()]
}

fn decide_dream(state: &RunState) -> Vec<Event> {
    if state.baseline.residual.is_none() {
        let findings: Vec<_> = state
            .criteria
            .iter()
            .map(|criterion| crate::model::criterion::Finding {
                id: criterion.id.clone(),
                criterion: criterion.text.clone(),
                met: measure::was_met_at_baseline(state, &criterion.id),
                evidence_link: None,
                why: String::new(),
            })
            .collect();
        let measured = measure::residual(state, &findings, state.baseline.probes.get(&Probe::Residual));
        return vec![residual_event(None, measured)];
    }
    enter(state, State::SpawnSubagent, "plan.json stands")
}

fn residual_event(iteration: Option<u32>, measured: Result<crate::model::certificate::Residual, String>) -> Event {
    match measured {
        Ok(residual) => ResidualMeasured { iteration, residual: Some(residual), why_null: None }.into(),
        Err(why) => ResidualMeasured { iteration, residual: None, why_null: Some(why) }.into(),
    }
}

fn decide_collect(state: &RunState) -> Vec<Event> {
    let Some(iteration) = &state.current else { return Vec::new() };
    if let Some(violation) = artifact_violation(state, iteration) {
        return vec![violation];
    }
    if iteration.artifact_count() > 0 {
        return enter(state, State::CheckHalting, "artifacts are there");
    }
    if iteration.certificate.is_none() {
        return certify_iteration(state, iteration);
    }
    if let Some(exhausted) = exhausted(state) {
        return vec![over_budget(state, exhausted).into()];
    }
    let detail = "the iteration produced no artifacts: no file changed and no report was handed in";
    vec![halt(state, ExitStatus::ExitBlocked, StopReason::EvidenceIncomplete, detail).into()]
}

/// Things an iteration must not have touched.
fn artifact_violation(state: &RunState, iteration: &Iteration) -> Option<Event> {
    let artifacts = iteration.artifacts.as_ref()?;
    if !artifacts.learnings_intact {
        let detail = "the generated block of AGENTS.md was changed while agents ran; the engine is its only writer";
        return Some(halt(state, ExitStatus::ExitBlocked, StopReason::InvariantViolation, detail).into());
    }
    let read = state.northstar.as_ref().and_then(|n| n.sha256);
    if state.spec() == SpecVersion::V2 && artifacts.northstar_sha256 != read {
        return Some(drifted(state, "NORTHSTAR.md changed during the run: its goal must stay fixed"));
    }
    None
}

/// The Northstar moved away, or was moved.
fn drifted(state: &RunState, detail: &str) -> Event {
    RunHalted {
        forbidden_state: Some(ForbiddenState::GlowWithoutNorthstarAlignment),
        ..halt(state, ExitStatus::ExitBlocked, StopReason::NorthstarDrift, detail)
    }
    .into()
}

fn certify_iteration(state: &RunState, iteration: &Iteration) -> Vec<Event> {
    let findings = measure::findings(state, iteration, Phase::Iteration, None);
    let measured = if iteration.artifact_count() == 0 {
        Err("there are no artifacts to measure".to_owned())
    } else {
        measure::residual(state, &findings, iteration.probe(Phase::Iteration, &Probe::Residual))
    };
    let mut certificate = measure::iteration_certificate(state, iteration);
    if iteration.artifact_count() == 0 {
        certificate.kind = CertificateKind::None;
        certificate.lane = None;
        certificate.residual = None;
        certificate.why = "the iteration produced no artifacts".to_owned();
    }
    let number = iteration.number();
    // After a crash between the two only what is missing is decided.
    let mut events = Vec::new();
    if iteration.residual.is_none() {
        events.push(residual_event(Some(number), measured));
    }
    if iteration.certificate.is_none() {
        events.push(CertificateIssued { iteration: number, certificate }.into());
    }
    events
}

fn decide_check(state: &RunState) -> Vec<Event> {
    let Some(iteration) = &state.current else { return Vec::new() };
    if let Some(asked) = ask_about_learnings(state, iteration).or_else(|| ask_about_tampering(state, iteration)) {
        return vec![asked];
    }
    let mut events = certify_iteration(state, iteration);
    events.extend(enter(state, State::AccumulateLearnings, "the certificate is issued"));
    events
}

/// Where nothing keeps agents from AGENTS.md, a change of the owner's words may be anybody's: the owner says.
fn ask_about_learnings(state: &RunState, iteration: &Iteration) -> Option<Event> {
    let aside = iteration.artifacts.as_ref()?.learnings_aside?;
    let operator = &state.operator;
    let request = Request::Refinement { path: learnings::FILE.into(), before: aside.put_back, after: aside.found };
    let asked = operator.decisions.iter().any(|decision| decision.request == request);
    if operator.patience.mode == Mode::Stop || asked || operator.decisions.len() >= MAX_DECISIONS {
        return None;
    }
    let why = "AGENTS.md was changed outside of the generated blocks while agents ran, and nothing kept them from it: \
               the change is set aside until its owner approves it";
    Some(DecisionAsked { id: operator.next_id(), request, why: why.to_owned(), asked_by: None }.into())
}

/// Where people are waited for, one may say that a changed guard is as it should be.
fn ask_about_tampering(state: &RunState, iteration: &Iteration) -> Option<Event> {
    let operator = &state.operator;
    let number = iteration.number();
    let asked = operator
        .decisions
        .iter()
        .any(|decision| matches!(decision.request, Request::Tampering { iteration, .. } if iteration == number));
    if operator.patience.mode == Mode::Stop || asked || operator.decisions.len() >= MAX_DECISIONS {
        return None;
    }
    let findings = measure::gate_tampering(state, iteration);
    if findings.is_empty() {
        return None;
    }
    let files = measure::tampered_files(state, iteration);
    let (diff, trials) = (None, Vec::new());
    Some(
        DecisionAsked {
            id: operator.next_id(),
            request: Request::Tampering { iteration: number, findings, files, diff, trials },
            why: "the iteration that turned a criterion green also changed what its check depends on".to_owned(),
            asked_by: None,
        }
        .into(),
    )
}

fn decide_glow(state: &RunState) -> Vec<Event> {
    let Some(iteration) = &state.current else { return Vec::new() };
    if iteration.glow.is_none() {
        let detail = "GLOW_NOT_COMPUTED: null is not zero";
        return vec![halt(state, ExitStatus::ExitBlocked, StopReason::InvariantViolation, detail).into()];
    }
    if distance_drifts(state) {
        return vec![drifted(state, "the distance to the Northstar grew in three iterations in a row")];
    }
    enter(state, State::BudgetCheck, "the Northstar gate holds")
}

/// The last `window` distances strictly increase.
pub fn distance_drifts(state: &RunState) -> bool {
    let window = usize::try_from(state.limits.northstar_drift_window).unwrap_or(usize::MAX);
    let measured = state.iterations().filter(|it| it.certificate.is_some());
    let distances: Vec<_> = measured.map(|it| progress::distance(state, &state.metrics_at(it))).collect();
    distances.len() >= window
        && distances[distances.len() - window..]
            .windows(2)
            .all(|pair| matches!(pair, [Some(earlier), Some(later)] if later > earlier))
}

/// The checks at the end of an iteration, in the order of resolution D1.
fn decide_budget(state: &RunState) -> Vec<Event> {
    let Some(iteration) = &state.current else { return Vec::new() };
    let kind = iteration.certificate.as_ref().map_or(CertificateKind::None, |certificate| certificate.kind);
    let tampering = measure::gate_tampering(state, iteration);
    if !tampering.is_empty() {
        let detail = format!("GATE_TAMPERING: {}; a person has to look before this counts", tampering.join("; "));
        return vec![halt(state, ExitStatus::ExitBlocked, StopReason::InvariantViolation, detail).into()];
    }
    if kind == CertificateKind::Diverged {
        let detail = iteration.certificate.as_ref().map(|c| c.why.clone()).unwrap_or_default();
        return vec![halt(state, ExitStatus::ExitDiverged, StopReason::SilentDivergenceDetected, detail).into()];
    }
    if kind.is_success() && !iteration.taken_back {
        return decide_claim(state, iteration, kind);
    }
    if let Some(seen) = claim::pressing(state) {
        return vec![stopped_by(state, &seen)];
    }
    if trailing_nulls(state) >= MAX_NULL_RESIDUALS {
        let why = iteration.residual_why_null.clone().unwrap_or_default();
        let detail = format!("the residual was null {MAX_NULL_RESIDUALS} times in a row: {why}");
        return vec![halt(state, ExitStatus::ExitBlocked, StopReason::EvidenceIncomplete, detail).into()];
    }
    if let Some(exhausted) = exhausted(state) {
        return vec![over_budget(state, exhausted).into()];
    }
    if let Some(by) = &state.operator.stop_after_iteration {
        return vec![stopped_by(state, &BackpressureSeen { signal: Signal::AfterIteration, detail: by.clone() })];
    }
    enter(state, State::SpawnSubagent, "no reason to stop, budget is left")
}

/// The limit that ends the run: one that cut an agent, or one that is used up.
fn exhausted(state: &RunState) -> Option<budget::Exhausted> {
    let cut = state.cut.as_ref().map(|cut| &cut.exhausted).filter(|exhausted| exhausted.dimension.ends_run());
    cut.cloned().or_else(|| budget::run_exhausted(&state.limits, &state.spent))
}

fn decide_claim(state: &RunState, iteration: &Iteration, kind: CertificateKind) -> Vec<Event> {
    let Some(gate) = &iteration.gate else {
        if let Some(taken_back) = state.playbook().takes_back(state, iteration) {
            return vec![taken_back];
        }
        if let Some(asked) = guards::ask(state, iteration, &replayed(state)) {
            return vec![asked];
        }
        // A sweep that the budget cut says nothing about the claim.
        if super::next::paraphrases_missing(state, iteration)
            && let Some(exhausted) = exhausted(state)
        {
            return vec![over_budget(state, exhausted).into()];
        }
        let report = gate::judge(state, iteration);
        return vec![GateJudged { iteration: iteration.number(), report }.into()];
    };
    match gate.failure() {
        None => {
            let detail = iteration.certificate.as_ref().map(|c| c.why.clone()).unwrap_or_default();
            vec![halt(state, ExitStatus::ExitConverged, StopReason::Pass, format!("{kind}: {detail}")).into()]
        }
        Some(failure) => vec![
            RunHalted {
                forbidden_state: failure.forbidden_state,
                ..halt(
                    state,
                    ExitStatus::ExitBlocked,
                    failure.stop_reason.unwrap_or(StopReason::VerificationRungFailed),
                    format!("the pass-gate refused {kind}: {} ({})", failure.name, failure.detail),
                )
            }
            .into(),
        ],
    }
}

fn trailing_nulls(state: &RunState) -> usize {
    state.residual_history().iter().rev().take_while(|residual| residual.is_none()).count()
}

/// The events of ACCUMULATE_LEARNINGS, given what writing AGENTS.md showed.
pub fn accumulate(state: &RunState) -> Option<entry::Accumulated> {
    let iteration = state.current.as_ref()?;
    let certificate = iteration.certificate.as_ref()?;
    Some(entry::accumulate(state, iteration, certificate))
}

#[cfg(test)]
mod tests;
