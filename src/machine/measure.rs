//! From facts to findings, residual and certificate.
//!
//! The same code serves the iteration, its replays and `verify`; only the source of probe results differs.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::certificate::{self, Against, Certificate, CertificateKind, Facts, Residual, certify};
use crate::model::criterion::{Criterion, Finding, Proof};
use crate::model::decimal::Exact;
use crate::model::decision::{Answer, GuardFile, Request};
use crate::model::fraction::Fraction;
use crate::model::ids::Role;
use crate::model::learnings::Link;
use crate::model::self_running::runs_by_itself;

use super::backing;
use super::document::check_output_path;
use super::event::{ChangeKind, Phase, Probe, ProbeResult};
use super::iteration::Iteration;
use super::run::RunState;

/// Digits kept of a ratio that does not terminate; it is rounded up, so a success is never rounded into being.
const RATIO_PLACES: u32 = 12;

/// What was found for every criterion, in declared order.
pub fn findings(state: &RunState, iteration: &Iteration, phase: Phase, paraphrase: Option<u8>) -> Vec<Finding> {
    state.criteria.iter().map(|criterion| finding(state, iteration, criterion, phase, paraphrase)).collect()
}

fn finding(
    state: &RunState,
    iteration: &Iteration,
    criterion: &Criterion,
    phase: Phase,
    paraphrase: Option<u8>,
) -> Finding {
    let (met, evidence_link, why) = match &criterion.proof {
        Proof::Check { .. } => match iteration.probe(phase, &Probe::Criterion(criterion.id.clone())) {
            None => (false, None, "its check did not run".to_owned()),
            Some(result) => {
                // Replays prove the same output file; the link always names the iteration's own run.
                let output = iteration.probe(Phase::Iteration, &Probe::Criterion(criterion.id.clone()));
                let link = output.map(|output| Link {
                    path: check_output_path(iteration.number(), &criterion.id),
                    sha256: output.output,
                });
                (result.end.passed(), link, result.end.describe())
            }
        },
        Proof::Judged => judged(state, iteration, &criterion.id, paraphrase),
        Proof::ExitGate | Proof::Items | Proof::Verified => state.playbook().way_out(state, iteration, phase),
    };
    let (met, why) = match tampered(state, iteration, &criterion.id) {
        Some(files) if met => (false, format!("not accepted: {} changed, which guards it", files.join(", "))),
        Some(_) | None => (met, why),
    };
    Finding { id: criterion.id.clone(), criterion: criterion.text.clone(), met, evidence_link, why }
}

fn judged(state: &RunState, iteration: &Iteration, id: &str, paraphrase: Option<u8>) -> (bool, Option<Link>, String) {
    let by_skeptic = iteration.skeptic(paraphrase).map(|(report, links)| (Role::Skeptic, &report.judged, links));
    let by_critic = || iteration.critique().map(|(report, accepted)| (Role::Critic, &report.judged, &accepted.links));
    let Some((judge, judged, links)) = by_skeptic.or_else(by_critic) else {
        return (false, None, "nobody judged it".to_owned());
    };
    let Some(judgement) = judged.iter().find(|judgement| judgement.criterion == id) else {
        return (false, None, format!("the {judge} did not judge it"));
    };
    let link = judgement
        .artifact
        .as_ref()
        .filter(|path| state.began_before_replays() || backing::is_of_run(state, path))
        .and_then(|path| links.get(path).map(|sha256| Link { path: path.clone(), sha256: *sha256 }));
    match (judgement.met, &link) {
        (true, None) => (false, None, "judged met, but no artifact backs it".to_owned()),
        (met, _) => (met, link, format!("the {judge}: {}", judgement.why)),
    }
}

/// Guards that were changed so that this criterion's green does not count.
/// Only for runs from before guards were judged by replays (`guards`).
fn tampered(state: &RunState, iteration: &Iteration, criterion: &str) -> Option<Vec<String>> {
    if !state.began_before_replays() {
        return None;
    }
    let touched = iteration.artifacts.as_ref()?.guards_touched.get(criterion)?;
    let mut files = touched.script.clone();
    // Once green with its guards intact, a criterion may see its tests grow.
    if !was_met_before(state, criterion) {
        let bring = state.playbook().brings_tests();
        let changed = changed_since_green(state, iteration, criterion);
        let counts = |file: &&String| !bring || changed.contains(file.as_str());
        files.extend(touched.others.iter().filter(counts).cloned());
    }
    files.retain(|file| !approved(state, iteration, file));
    (!files.is_empty()).then_some(files)
}

/// Files that were there when the criterion was last met and were changed or removed since. What was added since then
/// can weaken nothing that was proven: items bring their tests, attempt by attempt.
fn changed_since_green<'a>(state: &'a RunState, iteration: &'a Iteration, criterion: &str) -> BTreeSet<&'a str> {
    let met = |done: &Iteration| {
        let checklist = done.certificate.iter().flat_map(|certificate| &certificate.acceptance_criteria_checklist);
        checklist.into_iter().any(|finding| finding.id == criterion && finding.met)
    };
    let since = state.done.iter().rposition(met).map_or(0, |index| index + 1);
    let window = state.done.iter().skip(since).chain([iteration]);
    let mut first: BTreeMap<&str, ChangeKind> = BTreeMap::new();
    for change in window.flat_map(|done| done.artifacts.iter().flat_map(|artifacts| &artifacts.changes)) {
        first.entry(&change.path).or_insert(change.kind);
    }
    first.into_iter().filter(|(_, kind)| *kind != ChangeKind::Added).map(|(path, _)| path).collect()
}

/// Did a person look at this file as it is now, and say that it is right?
fn approved(state: &RunState, iteration: &Iteration, file: &str) -> bool {
    let Some(now) = iteration.artifacts.as_ref().and_then(|artifacts| artifacts.touched_now.get(file)) else {
        return false;
    };
    state.operator.decisions.iter().any(|decision| match (&decision.request, decision.closed_with()) {
        (Request::Refinement { path, .. }, Some(Answer::Approve { result })) => path == file && *now == Some(*result),
        (Request::Tampering { files, .. }, Some(Answer::Accept)) => {
            files.iter().any(|shown| shown.path == file && shown.sha256 == *now)
        }
        _ => false,
    })
}

/// The files behind what [`gate_tampering`] finds, as they are now.
pub fn tampered_files(state: &RunState, iteration: &Iteration) -> Vec<GuardFile> {
    let green = state.criteria.iter().filter(|criterion| is_green(state, iteration, criterion));
    let criteria = green.filter_map(|criterion| tampered(state, iteration, &criterion.id));
    let mut paths: Vec<String> = criteria.flatten().chain(touched_instruments(state, iteration)).collect();
    paths.sort();
    paths.dedup();
    let now = |path: &String| iteration.artifacts.as_ref().and_then(|a| a.touched_now.get(path).copied().flatten());
    paths.into_iter().map(|path| GuardFile { sha256: now(&path), path }).collect()
}

/// Scripts that measure the run and were changed.
fn touched_instruments(state: &RunState, iteration: &Iteration) -> Vec<String> {
    let touched = iteration.artifacts.as_ref().map(|a| a.instruments_touched.as_slice()).unwrap_or_default();
    touched.iter().filter(|file| !approved(state, iteration, file)).cloned().collect()
}

/// Does its check pass, or its judge say so?
fn is_green(state: &RunState, iteration: &Iteration, criterion: &Criterion) -> bool {
    let probe = Probe::Criterion(criterion.id.clone());
    iteration.probe(Phase::Iteration, &probe).is_some_and(|result| result.end.passed())
        || judged(state, iteration, &criterion.id, None).0
}

/// Criteria that are green although what guards them was changed, and instruments that were changed.
pub fn gate_tampering(state: &RunState, iteration: &Iteration) -> Vec<String> {
    let mut found: Vec<String> = state
        .criteria
        .iter()
        .filter(|criterion| is_green(state, iteration, criterion))
        .filter_map(|criterion| {
            tampered(state, iteration, &criterion.id).map(|files| format!("{} ({})", criterion.id, files.join(", ")))
        })
        .collect();
    let instruments = touched_instruments(state, iteration);
    found.extend(instruments.iter().map(|file| {
        let what = if runs_by_itself(file) { "what runs by itself" } else { "what measures the run" };
        format!("{what} ({file})")
    }));
    found
}

/// Was this criterion met before the running iteration?
pub fn was_met_before(state: &RunState, criterion: &str) -> bool {
    match state.done.last().and_then(|last| last.certificate.as_ref()) {
        Some(certificate) => {
            certificate.acceptance_criteria_checklist.iter().any(|finding| finding.id == criterion && finding.met)
        }
        None => was_met_at_baseline(state, criterion),
    }
}

pub fn was_met_at_baseline(state: &RunState, criterion: &str) -> bool {
    let probe = Probe::Criterion(criterion.to_owned());
    state.baseline.probes.get(&probe).is_some_and(|result| result.end.passed())
}

/// The ids of criteria that are met now and were not before.
pub fn newly_true(state: &RunState, findings: &[Finding]) -> Vec<String> {
    let new = findings.iter().filter(|finding| finding.met && !was_met_before(state, &finding.id));
    new.map(|finding| finding.id.clone()).collect()
}

/// The residual, or why it is null.
pub fn residual(
    state: &RunState,
    findings: &[Finding],
    command_result: Option<&ProbeResult>,
) -> Result<Residual, String> {
    if let Some(own) = state.playbook().residual(state) {
        return own;
    }
    let by_command = state.loop_file().residual.as_ref().is_some_and(|decl| decl.command.is_some());
    if by_command {
        return residual_from_command(command_result);
    }
    if findings.is_empty() {
        return Err("there are no criteria to count".to_owned());
    }
    let all = u32::try_from(findings.len()).unwrap_or(u32::MAX);
    let unmet = u32::try_from(findings.iter().filter(|finding| !finding.met).count()).unwrap_or(u32::MAX);
    let ratio = Fraction::new(i128::from(unmet), i128::from(all)).and_then(|f| f.to_exact_rounded_up(RATIO_PLACES));
    let value = ratio.ok_or("unmet / all cannot be written as a decimal")?;
    Ok(Residual { value, unmet_of: Some((unmet, all)) })
}

fn residual_from_command(result: Option<&ProbeResult>) -> Result<Residual, String> {
    residual_of(result).map(|value| Residual { value, unmet_of: None })
}

/// The number that a residual command printed, or why there is none.
pub fn residual_of(result: Option<&ProbeResult>) -> Result<Exact, String> {
    let result = result.ok_or("the residual command did not run")?;
    if !result.end.passed() {
        return Err(format!("the residual command failed: {}", result.end.describe()));
    }
    let line = result.last_line.as_deref().ok_or("the residual command printed nothing")?;
    Exact::parse(line).map_err(|e| format!("the residual command printed `{line}`: {e}"))
}

/// Executed verifiers that exited 0: checks, and the residual command.
fn verifiers_passed(state: &RunState, iteration: &Iteration, phase: Phase) -> u32 {
    let checks = state.criteria.iter().map(|criterion| (phase, Probe::Criterion(criterion.id.clone())));
    let own = state.playbook().verifiers(state, iteration, phase);
    let passed = checks
        .chain(own)
        .chain([(phase, Probe::Residual)])
        .filter(|(phase, probe)| iteration.probe(*phase, probe).is_some_and(|result| result.end.passed()));
    u32::try_from(passed.count()).unwrap_or(u32::MAX)
}

/// Has the playbook a way out of its own, and is it shut?
fn has_shut_gate(state: &RunState, findings: &[Finding]) -> bool {
    let is_gate = |id: &str| state.criteria.iter().any(|one| one.id == id && one.proof.is_the_way_out());
    findings.iter().any(|finding| !finding.met && is_gate(&finding.id))
}

/// The certificate of success (or NONE) that one phase's facts support.
pub fn certificate_of(state: &RunState, iteration: &Iteration, phase: Phase, paraphrase: Option<u8>) -> Certificate {
    let findings = findings(state, iteration, phase, paraphrase);
    let measured = residual(state, &findings, iteration.probe(phase, &Probe::Residual));
    // Where there is an exit gate it is the only way out: a value score, however high, is one judge's word.
    let declared = if has_shut_gate(state, &findings) { &[][..] } else { &state.certificates };
    let against = (!state.began_before_replays()).then(|| against(state, &findings));
    certify(Facts {
        declared,
        findings: &findings,
        residual: measured.ok().map(|residual| residual.value),
        r_p: state.r_p(),
        verifiers_passed: verifiers_passed(state, iteration, phase),
        against: against.as_ref(),
    })
}

/// What speaks against CONVERGED.
fn against(state: &RunState, findings: &[Finding]) -> Against {
    let is_judged = |id: &str| state.criteria.iter().any(|criterion| criterion.id == id && criterion.is_judged());
    let ids = |wanted: &dyn Fn(&str) -> bool| -> Vec<String> {
        let unmet = findings.iter().filter(|finding| !finding.met && wanted(&finding.id));
        unmet.map(|finding| finding.id.clone()).collect()
    };
    Against { unmet_checks: ids(&|id| !is_judged(id)), broken: ids(&|id| was_ever_met(state, id)) }
}

/// Was this criterion met at the start, or at the end of any earlier iteration?
fn was_ever_met(state: &RunState, criterion: &str) -> bool {
    let checklists = state.done.iter().filter_map(|done| done.certificate.as_ref());
    let mut findings = checklists.flat_map(|certificate| &certificate.acceptance_criteria_checklist);
    was_met_at_baseline(state, criterion) || findings.any(|finding| finding.met && finding.id == criterion)
}

/// The certificate of the iteration: divergence first, then success, then the last iteration's TIMEOUT.
pub fn iteration_certificate(state: &RunState, iteration: &Iteration) -> Certificate {
    let mut found = certificate_of(state, iteration, Phase::Iteration, None);
    let mut history: Vec<_> = state.done.iter().map(Iteration::residual_value).collect();
    history.push(found.residual);
    let window = usize::try_from(state.limits.divergence_window).unwrap_or(usize::MAX);
    if certificate::diverges(&history, window) {
        relabel(&mut found, CertificateKind::Diverged, format!("the last {window} residuals strictly increase"));
    } else if !found.kind.is_success() && u64::from(iteration.number()) + 1 >= state.limits.max_iterations {
        let why = format!("{}; this was the last iteration", found.why);
        relabel(&mut found, CertificateKind::Timeout, why);
    }
    found
}

fn relabel(certificate: &mut Certificate, kind: CertificateKind, why: String) {
    certificate.kind = kind;
    certificate.lane = kind.lane();
    certificate.why = why;
}
