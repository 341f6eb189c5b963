//! EXIT_GATE: sweep, a fresh judge, a last evaluation. Passing it is the only way out with success.
//!
//! Role: the four parts in their order, the first that fails ends it. Not its role: what follows a gate that stays
//! shut (the decision engine: more work, or a partial end).
//!
//! Invariants: nothing is carried forward here; every verification runs, those that were given up too; a judge that
//! does not report, or reports debt, keeps the gate shut; gaps become tasks on each of its attempts, and those are
//! bounded; a check that passed before and fails in the sweep is run again before it counts as broken (`flaky`).

use crate::machine::event::{AgentEnd, Event, GitOperation, Phase, Probe, ProbeEnd, ProbeResult};
use crate::machine::run::RunState;
use crate::machine::todo::{Effect, Todo};
use crate::model::certificate::CertificateKind;
use crate::model::criterion::Proof;
use crate::model::decimal::Exact;
use crate::model::purpose::{Purpose, Tool};
use crate::model::value::tools::{Structured, VrcReport};
use crate::model::value::{
    Gap, GapSeverity, Outcome, Recommendation, TaskSource, Verification, VerificationStatus, Vrc, VrcMode,
};
use crate::playbook::value::event::{EpicPut, EpicStatus, VerificationPut, VrcTaken};
use crate::playbook::value::flaky;
use crate::playbook::value::state::OpenStep;

use crate::playbook::value::finished;

use super::ask::{MAX_DETAIL, cut, list};
use super::evaluate::{Evaluation, describe};
use super::follow_up::{self, FollowUp, Wanted};
use super::qc;

/// The name of the place the delivered state can be found at.
const LABEL: &str = "exit-gate";

pub fn next(run: &RunState, step: &OpenStep) -> Option<Todo> {
    if unfinished(run).is_some() {
        return None;
    }
    if let Some(todo) = qc::services_once(run, step) {
        return Some(todo);
    }
    if down(step).is_some() {
        return None;
    }
    let missing = missing_probes(run, step);
    if !missing.is_empty() {
        return Some(Todo::Effect(Effect::RunProbes(missing)));
    }
    if let Some((nth, doubted)) = doubted(run, step) {
        return Some(Todo::Effect(Effect::RunProbesAgain(nth, doubted)));
    }
    if swept(run, step).is_err() {
        return None;
    }
    if step.calls_for(Purpose::ExitGate) == 0 {
        return Some(Todo::call(Purpose::ExitGate));
    }
    if judged(run, step).is_err() {
        return None;
    }
    if step.calls_for(Purpose::CriticalEval) == 0 {
        return Some(Todo::call(Purpose::CriticalEval));
    }
    let evaluated = evaluated(step, &Evaluation::of(run, step)).is_ok();
    let branch = run.git.facts.as_ref().is_some_and(|facts| facts.branch.is_some());
    (evaluated && branch && step.git.is_empty())
        .then(|| Todo::Effect(Effect::Git(GitOperation::Checkpoint { label: LABEL.to_owned() })))
}

pub fn decide(run: &RunState, step: &OpenStep) -> Vec<Event> {
    if let Some(why) = unfinished(run) {
        return vec![shut(step, &why)];
    }
    if let Some(why) = down(step) {
        return vec![shut(step, &why)];
    }
    let mut events = sweep_results(run, step);
    if let Err(why) = swept(run, step) {
        events.extend(qc::reopened(run, step, LABEL).into_iter().map(|(_, event)| event));
        events.push(shut(step, &why));
        return events;
    }
    events.extend(value_check(run, step));
    if let Err(why) = judged(run, step) {
        let tasks = gap_tasks(run, step);
        let detail = format!("{why}{}", tasks.words());
        events.extend(tasks.events);
        events.push(shut(step, &detail));
        return events;
    }
    let evaluation = Evaluation::of(run, step);
    if let Err(why) = evaluated(step, &evaluation) {
        events.extend(evaluation.tasks.events);
        events.push(shut(step, &why));
        return events;
    }
    events.extend(run.value().current_epic().map(|epic| {
        let done = EpicPut { status: EpicStatus::Completed, ..epic.clone() };
        Event::from(done)
    }));
    events.push(finished(step, Outcome::Passed, passed_words(run, step)));
    events
}

fn shut(step: &OpenStep, why: &str) -> Event {
    finished(step, Outcome::Failed, cut(why, MAX_DETAIL))
}

/// What is known to be missing before anything runs.
fn unfinished(run: &RunState) -> Option<String> {
    let open = list(run.value().tasks.iter().filter(|task| task.is_open()).map(|task| task.id.as_str()));
    if !open.is_empty() {
        return Some(format!("tasks are not finished: {open}"));
    }
    let waiting = run.value().epics.iter().filter(|epic| epic.status == EpicStatus::Pending).count();
    if waiting > 0 {
        return Some(format!("{waiting} epic(s) are not begun"));
    }
    let tries = run.value().steps_of("GENERATE_QC");
    let most = run.value_settings().max_qc_generations;
    if run.value().verifications.is_empty() && u32::try_from(tries).unwrap_or(u32::MAX) < most {
        return Some(format!("there is no check at all, and only {tries} of {most} tries to write some were made"));
    }
    let declared = run.criteria.iter().any(|criterion| matches!(criterion.proof, Proof::Check { .. }));
    // No certificate is issued for words alone, so nobody need be asked for theirs.
    (run.value().verifications.is_empty() && !declared)
        .then(|| format!("no check exists after {tries} tries to write some, and no criterion has one"))
}

/// Services that are not healthy: what stands on them is not judged.
fn down(step: &OpenStep) -> Option<String> {
    let sick = step.services.iter().flatten().filter(|one| !one.healthy);
    let names = list(sick.map(|one| one.name.as_str()));
    (!names.is_empty()).then(|| format!("these services are not healthy: {names}"))
}

// 1: the sweep.

fn missing_probes(run: &RunState, step: &OpenStep) -> Vec<Probe> {
    let probes = run.value().verifications.keys().map(|id| Probe::Verification(id.clone()));
    probes.chain(qc::done_checks(run)).filter(|probe| !step.probes.contains_key(probe)).collect()
}

fn result<'a>(step: &'a OpenStep, id: &str) -> Option<&'a ProbeResult> {
    step.probes.get(&Probe::Verification(id.to_owned()))
}

/// Checks that had passed, fail in the sweep, and have to be run again: the same run for all that lack it.
fn doubted(run: &RunState, step: &OpenStep) -> Option<(u8, Vec<Probe>)> {
    let doubted = run.value().verifications.values().filter(|one| is_doubted(run, one)).filter_map(|one| {
        let probe = Probe::Verification(one.id.clone());
        match flaky::missing(run.current.as_ref()?, Phase::Step(step.number), &probe)? {
            Phase::StepAgain(_, nth) => Some((nth, probe)),
            _ => None,
        }
    });
    let doubted: Vec<(u8, Probe)> = doubted.collect();
    let nth = doubted.iter().map(|(nth, _)| *nth).min()?;
    Some((nth, doubted.into_iter().filter(|(run, _)| *run == nth).map(|(_, probe)| probe).collect()))
}

/// Only what has passed before may be flaky; older runs doubted nothing.
fn is_doubted(run: &RunState, one: &Verification) -> bool {
    !run.began_before_recovery() && one.status == VerificationStatus::Passed
}

/// All runs of a check in this sweep.
fn runs<'a>(run: &'a RunState, step: &OpenStep, one: &Verification) -> Option<flaky::Runs<'a>> {
    let iteration = run.current.as_ref().filter(|_| is_doubted(run, one))?;
    flaky::Runs::of(iteration, Phase::Step(step.number), &Probe::Verification(one.id.clone()))
}

fn passes(run: &RunState, step: &OpenStep, one: &Verification) -> bool {
    match runs(run, step, one) {
        Some(runs) => runs.verdict() == flaky::Verdict::Passed,
        None => result(step, &one.id).is_some_and(|result| result.end.passed()),
    }
}

fn swept(run: &RunState, step: &OpenStep) -> Result<(), String> {
    let failing = run.value().verifications.values().filter(|one| !passes(run, step, one));
    let failing: Vec<String> = failing
        .map(|one| {
            let given_up = if one.status == VerificationStatus::Blocked { " (given up)" } else { "" };
            format!("{}{given_up}", one.id)
        })
        .collect();
    let reopened = qc::reopened(run, step, LABEL).into_iter().map(|(id, _)| format!("check of task {id}"));
    let failing: Vec<String> = failing.into_iter().chain(reopened).collect();
    if failing.is_empty() {
        return Ok(());
    }
    Err(format!("these checks do not pass: {}", list(failing.iter().map(String::as_str))))
}

fn sweep_results(run: &RunState, step: &OpenStep) -> Vec<Event> {
    let verifications = run.value().verifications.values();
    let results = verifications.filter_map(|one| Some((one, result(step, &one.id)?)));
    results.filter_map(|(one, result)| after_sweep(run, step, one, result)).collect()
}

/// A verification after it ran in the sweep. One that was given up stays so unless it passes.
fn after_sweep(run: &RunState, step: &OpenStep, one: &Verification, result: &ProbeResult) -> Option<Event> {
    // A run that was called off says nothing about the script.
    if result.end == ProbeEnd::Cancelled {
        return None;
    }
    let mut after = qc::after_run(one, result, step.number);
    after.flaky = runs(run, step, one).and_then(|runs| runs.flaky(step.number));
    if after.flaky.is_some() && passes(run, step, one) {
        after = Verification { flaky: after.flaky, runs: after.runs, ..one.clone() };
    }
    qc::name_flaky(&mut after);
    if one.status == VerificationStatus::Blocked && after.status != VerificationStatus::Passed {
        after.status = VerificationStatus::Blocked;
    }
    Some(VerificationPut { verification: Box::new(after), why: "the sweep of the exit gate".to_owned() }.into())
}

// 2: the judge that knows nothing of what went before.

fn report(step: &OpenStep) -> Option<&VrcReport> {
    match step.last_report(Tool::ReportVrc) {
        Some(Structured::ReportVrc(report)) => Some(report),
        _ => None,
    }
}

/// May the gate open on this judgement? The first thing that speaks against it.
fn judged(run: &RunState, step: &OpenStep) -> Result<(), String> {
    let Some(report) = report(step) else {
        let end = step.last_call(Purpose::ExitGate).map_or_else(String::new, |call| describe(&call.end));
        return Err(format!("no judgement: {end}"));
    };
    if report.recommendation != Recommendation::ShipReady {
        return Err(format!("the judge says {}: {}", report.recommendation.name(), report.summary.trim()));
    }
    let debt = report.gaps.iter().filter(|gap| is_debt(gap.severity));
    let debt: Vec<&str> = debt.map(|gap| gap.description.trim()).collect();
    if !debt.is_empty() {
        return Err(format!("the judge says SHIP_READY, but leaves {} gap(s): {}", debt.len(), debt.join("; ")));
    }
    near_enough(run, report.value_score)
}

/// Only polish may be left.
fn is_debt(severity: GapSeverity) -> bool {
    severity >= GapSeverity::Degraded
}

/// The value that is missing must be so little that the run can be certified.
fn near_enough(run: &RunState, score: Exact) -> Result<(), String> {
    let Some(residual) = Exact::from_u64(1).checked_sub(score) else {
        return Err(format!("a value score of {score} is more than 1"));
    };
    if run.certificates.contains(&CertificateKind::Converged) {
        let r_p = run.r_p();
        if residual < r_p { Ok(()) } else { Err(format!("the residual {residual} is not less than R_p {r_p}")) }
    } else if residual.is_zero() {
        Ok(())
    } else {
        Err(format!("the residual is {residual}, and EXACT needs 0"))
    }
}

/// The judgement as a full value check; one that cannot be read is none.
fn value_check(run: &RunState, step: &OpenStep) -> Option<Event> {
    let vrc = Vrc::reported(step.number, VrcMode::Full, report(step)?)?;
    let known = run.value().latest_vrc().is_some_and(|latest| latest.step == step.number);
    (!known).then(|| VrcTaken { vrc }.into())
}

/// The debt becomes work. Attempts are bounded, so it cannot feed itself; older runs did so on the first one alone.
fn gap_tasks(run: &RunState, step: &OpenStep) -> FollowUp {
    let (attempt, older) = (run.value().exit_gate_attempts, run.began_before_recovery());
    let Some(report) = report(step).filter(|_| attempt <= 1 || !older) else { return FollowUp::default() };
    let debt = report.gaps.iter().enumerate().filter(|(_, gap)| is_debt(gap.severity));
    let task = |(number, gap): (usize, &Gap)| match (gap.suggested_task.as_ref(), older) {
        // What keeps the gate shut is work, whether or not the judge said how to do it.
        (None, false) => {
            let suggested_task = Some(format!("Close this gap: {}", gap.description.trim()));
            Wanted::of_gap(&format!("EG-{attempt}"), number + 1, &Gap { suggested_task, ..gap.clone() })
        }
        _ => Wanted::of_gap(&format!("EG-{attempt}"), number + 1, gap),
    };
    let wanted = debt.filter_map(task);
    let wanted: Vec<Wanted> = wanted.collect();
    follow_up::tasks(run, step, TaskSource::ExitGate, &wanted, "the exit gate found a gap")
}

// 3: the last evaluation.

fn evaluated(step: &OpenStep, evaluation: &Evaluation) -> Result<(), String> {
    if let Some(why) = &evaluation.failed {
        return Err(format!("no last evaluation: {why}"));
    }
    if evaluation.grave() > 0 {
        return Err(format!("the last evaluation {}", evaluation.words()));
    }
    // What was not looked at any more may be grave.
    match step.last_call(Purpose::CriticalEval).map(|call| &call.end) {
        Some(AgentEnd::Reported) => Ok(()),
        end => Err(format!("the last evaluation broke off: {}", end.map_or_else(String::new, describe))),
    }
}

// 4: the end.

fn flaky_words(run: &RunState, step: &OpenStep) -> String {
    let flaky = run.value().verifications.values().filter_map(|one| {
        let flaky = runs(run, step, one)?.flaky(step.number)?;
        Some(format!("; {} is {}", one.id, flaky.words()))
    });
    flaky.collect()
}

fn passed_words(run: &RunState, step: &OpenStep) -> String {
    let checks = match run.value().verifications.len() {
        0 => format!("no check exists after {} tries to write some", run.value().steps_of("GENERATE_QC")),
        count => format!("{count} check(s) pass{}", flaky_words(run, step)),
    };
    let score = report(step).map_or_else(String::new, |report| format!("value score {}", report.value_score));
    let unkept = step.git.iter().find_map(|done| done.problem.as_ref());
    let unkept = unkept.map_or_else(String::new, |problem| format!("; no checkpoint: {problem}"));
    cut(&format!("{checks}, {score}, the last evaluation found nothing grave{unkept}"), MAX_DETAIL)
}
