//! The pass-gate: what stands between a success certificate and EXIT_CONVERGED.
//!
//! The gate reads facts that are already in the run. It never lowers a claim: an unmet target blocks.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::model::certificate::{self, Certificate, CertificateKind, Facts, certify};
use crate::model::decimal::Exact;
use crate::model::gate_report::{GateCheck, GateReport, check};
use crate::model::learnings::SpecVersion;
use crate::model::rung::{self, Rung};
use crate::model::stop::{ForbiddenState, StopReason};

use super::alignment;
use super::event::{Phase, Probe};
use super::guards;
use super::iteration::Iteration;
use super::measure;
use super::phuc;
use super::replay::replayed;
use super::run::RunState;

/// How often the certificate is computed again on the frozen artifacts.
pub const REPLAYS: u8 = 2;
/// Restatements of the goal on which judged criteria are judged again for rung 65537.
pub const PARAPHRASES: u8 = 5;
/// How many of those must be in words of their own.
const LEAST_RESTATED: usize = 3;

/// The three vertices of the triangle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Triangle {
    #[serde(rename = "REMIND_plan_json_present")]
    pub remind: bool,
    #[serde(rename = "VERIFY_certificates_all_present")]
    pub verify: bool,
    #[serde(rename = "ACKNOWLEDGE_agents_md_all_entries_present")]
    pub acknowledge: bool,
}

/// Judges the claim of the current iteration.
pub fn judge(state: &RunState, iteration: &Iteration) -> GateReport {
    let mut checks = Vec::new();
    checks.extend(claim_checks(state, iteration));
    checks.extend(local_checks(state, iteration));
    checks.extend(stable_checks(state, iteration));
    if state.rung_target() == Rung::Promoted {
        checks.extend(promoted_checks(state, iteration));
    }
    let rung_achieved = achieved(&checks, state.rung_target());
    if state.spec() == SpecVersion::V2 {
        checks.extend(phuc::checks(state, rung_achieved));
        checks.push(alignment::as_check(state));
    }
    // Below the target only what the target needs may fail the claim.
    let target = state.rung_target();
    checks.retain(|check| check.rung.is_none_or(|rung| rung <= target));
    let passed = checks.iter().all(|check| check.ok);
    GateReport { passed, rung_achieved, checks }
}

/// The highest rung, up to the target, whose checks all hold.
fn achieved(checks: &[GateCheck], target: Rung) -> Option<Rung> {
    let holds = |rung: Rung| checks.iter().filter(|check| check.rung.is_none_or(|needed| needed <= rung)).all(|c| c.ok);
    Rung::ALL.into_iter().filter(|rung| *rung <= target).take_while(|rung| holds(*rung)).last()
}

fn claim_checks(state: &RunState, iteration: &Iteration) -> Vec<GateCheck> {
    let certificate = iteration.certificate.as_ref();
    let valid = certificate.is_some_and(|c| c.kind.is_success() && c.residual.is_some());
    let declared = certificate.is_some_and(|c| state.certificates.contains(&c.kind));
    let tampering = measure::gate_tampering(state, iteration);
    let mut checks = vec![
        check(
            "a success certificate with a decimal residual",
            None,
            valid,
            certificate.map_or_else(|| "no certificate".to_owned(), |c| c.why.clone()),
            StopReason::ConvergenceClaimWithoutRpCertificate,
        )
        .forbids(ForbiddenState::ConvergenceClaimWithoutCertificate),
        check(
            "the certificate type was declared",
            None,
            declared,
            certificate.map_or("none", |c| c.kind.name()),
            StopReason::ConvergenceClaimWithoutRpCertificate,
        ),
        check(
            "no gate was tampered with",
            None,
            tampering.is_empty(),
            if tampering.is_empty() { "none".to_owned() } else { format!("GATE_TAMPERING: {}", tampering.join("; ")) },
            StopReason::InvariantViolation,
        ),
    ];
    if !state.began_before_replays() {
        checks.extend(guards::checks(state, iteration, &replayed(state)));
    }
    checks
}

fn local_checks(state: &RunState, iteration: &Iteration) -> Vec<GateCheck> {
    let rung = Some(Rung::Local);
    let regressions: Vec<_> = iteration
        .certificate
        .iter()
        .flat_map(|certificate| &certificate.acceptance_criteria_checklist)
        .filter(|finding| !finding.met && measure::was_met_at_baseline(state, &finding.id))
        .map(|finding| finding.id.clone())
        .collect();
    let mut checks = vec![
        check(
            "what was green at the start is green",
            rung,
            regressions.is_empty(),
            if regressions.is_empty() { "no regression".to_owned() } else { regressions.join(", ") },
            StopReason::VerificationRungFailed,
        ),
        check(
            "the evidence bundle is complete",
            rung,
            bundle_complete(state),
            format!("{} iteration(s)", state.recorded().count()),
            StopReason::EvidenceIncomplete,
        ),
    ];
    if state.spec() == SpecVersion::V2 {
        let triangle = triangle(state);
        checks.push(check(
            "triangle: REMIND (plan.json)",
            rung,
            triangle.remind,
            state.plan.map_or_else(|| "missing".to_owned(), |sha256| sha256.short()),
            StopReason::InvariantViolation,
        ));
        checks.push(
            check(
                "triangle: VERIFY (certificates)",
                rung,
                triangle.verify,
                "one per iteration",
                StopReason::VerifySkipped,
            )
            .forbids(ForbiddenState::VerifySkipped),
        );
        checks.push(
            check(
                "triangle: ACKNOWLEDGE (AGENTS.md)",
                rung,
                triangle.acknowledge,
                "one entry per iteration",
                StopReason::InvariantViolation,
            )
            .forbids(ForbiddenState::LearningsNotAccumulated),
        );
    }
    checks
}

fn bundle_complete(state: &RunState) -> bool {
    let complete = |iteration: &Iteration| {
        iteration.artifacts.is_some()
            && iteration.certificate.is_some()
            && iteration.entry.is_some()
            && iteration.glow.is_some()
    };
    state.plan.is_some() && state.iterations().all(complete)
}

/// The three vertices, from what is recorded.
pub fn triangle(state: &RunState) -> Triangle {
    let mut iterations = state.iterations().peekable();
    let any = iterations.peek().is_some();
    let rest: Vec<_> = iterations.collect();
    Triangle {
        remind: state.plan.is_some(),
        verify: any && rest.iter().all(|iteration| iteration.certificate.is_some()),
        acknowledge: any && rest.iter().all(|iteration| acknowledges(iteration)),
    }
}

/// The entry cites the certificate of its own iteration.
fn acknowledges(iteration: &Iteration) -> bool {
    match (&iteration.entry, &iteration.certificate) {
        (Some(entry), Some(certificate)) => entry.measures.certificate == certificate.kind.name(),
        _ => false,
    }
}

/// Which files are not as they were collected, and what to do about a check that writes them.
fn drifted_words(state: &RunState, files: &[String]) -> String {
    let files = files.join(", ");
    if state.began_before_tools() {
        return files;
    }
    format!(
        "{files}: changed by the checks after it was collected; a check that formats or generates must only look \
         (`--check`, without `--fix`), or say what it writes (`writes:`)"
    )
}

fn stable_checks(state: &RunState, iteration: &Iteration) -> Vec<GateCheck> {
    let rung = Some(Rung::Stable);
    let original = iteration.certificate.as_ref();
    let drifted = iteration.frozen.clone();
    let equal_replays = (1..=REPLAYS)
        .filter(|k| {
            let replayed = measure::certificate_of(state, iteration, Phase::Replay(*k), None);
            original.is_some_and(|original| same_claim(original, &replayed))
        })
        .count();
    let mut checks = vec![
        // Replays guard every rung: a claim that cannot be repeated is no claim.
        check(
            "two replays give the same certificate",
            None,
            equal_replays == usize::from(REPLAYS),
            format!("{equal_replays} of {REPLAYS} equal"),
            StopReason::NonReproducible,
        ),
        check(
            "the artifacts did not change under the replays",
            None,
            drifted.as_ref().is_some_and(Vec::is_empty),
            drifted.map_or_else(
                || "not compared".to_owned(),
                |files| if files.is_empty() { "frozen".into() } else { drifted_words(state, &files) },
            ),
            StopReason::NonReproducible,
        ),
        check(
            "the checker certifies nothing on null, empty and zero input",
            rung,
            null_edge_sweep(state, iteration),
            "null residual, no criteria, unmet at zero",
            StopReason::NullZeroConfusion,
        ),
        check(
            "the divergence detector finds a synthetic divergence",
            rung,
            divergence_self_test(state),
            "a rising row is found, a flat one and one with a null are not",
            StopReason::VerificationRungFailed,
        ),
    ];
    if !state.began_before_replays() {
        let history = state.residual_history();
        let nulls = history.iter().filter(|residual| residual.is_none()).count();
        checks.push(check(
            "every residual of the run is a decimal",
            rung,
            nulls == 0,
            format!("{nulls} of {} null", history.len()),
            StopReason::NullZeroConfusion,
        ));
    }
    if state.spec() == SpecVersion::V2 {
        checks.push(
            check(
                "GLOW of every iteration",
                rung,
                state.iterations().all(|iteration| iteration.glow.is_some()),
                format!("{} score(s)", state.iterations().filter(|it| it.glow.is_some()).count()),
                StopReason::GlowWithoutNorthstarAlignment,
            )
            .forbids(ForbiddenState::GlowWithoutNorthstarAlignment),
        );
        checks.push(check(
            "seed checksum 641 x 274177 x 65537",
            rung,
            rung::seed_checksum() == rung::SEED_CHECKSUM,
            rung::seed_checksum().to_string(),
            StopReason::InvariantViolation,
        ));
    }
    checks
}

/// Equal after normalisation: what is claimed, not how it was worded or timed.
fn same_claim(a: &Certificate, b: &Certificate) -> bool {
    let met = |c: &Certificate| -> Vec<(String, bool)> {
        c.acceptance_criteria_checklist.iter().map(|f| (f.id.clone(), f.met)).collect()
    };
    a.kind == b.kind && a.residual == b.residual && a.r_p == b.r_p && met(a) == met(b)
}

/// Feeds the real checker with nothing: it must certify nothing.
fn null_edge_sweep(state: &RunState, iteration: &Iteration) -> bool {
    let findings = measure::findings(state, iteration, Phase::Iteration, None);
    let mut unmet = findings.clone();
    for finding in &mut unmet {
        finding.met = false;
    }
    let kind = |findings, residual| {
        certify(Facts {
            declared: &[CertificateKind::Exact],
            findings,
            residual,
            r_p: state.r_p(),
            verifiers_passed: 1,
            against: None,
        })
        .kind
    };
    let both = [CertificateKind::Exact, CertificateKind::Converged];
    let null = certify(Facts {
        declared: &both,
        findings: &findings,
        residual: None,
        r_p: state.r_p(),
        verifiers_passed: 1,
        against: None,
    });
    null.kind == CertificateKind::None
        && kind(&[], Some(Exact::ZERO)) == CertificateKind::None
        && kind(&unmet, Some(Exact::ZERO)) == CertificateKind::None
}

fn divergence_self_test(state: &RunState) -> bool {
    let window = usize::try_from(state.limits.divergence_window).unwrap_or(usize::MAX).min(8);
    let rising: Vec<_> = (0..window).map(|i| Some(Exact::from_u64(i as u64))).collect();
    let flat = vec![Some(Exact::from_u64(1)); window];
    let mut broken = rising.clone();
    if let Some(value) = broken.first_mut() {
        *value = None;
    }
    certificate::diverges(&rising, window)
        && !certificate::diverges(&flat, window)
        && !certificate::diverges(&broken, window)
}

fn promoted_checks(state: &RunState, iteration: &Iteration) -> Vec<GateCheck> {
    let rung = Some(Rung::Promoted);
    let security = iteration.probe(Phase::Gate, &Probe::Security);
    let version_asked = state.loop_file().security.as_ref().is_some_and(|security| security.version_command.is_some());
    let version = iteration.probe(Phase::Gate, &Probe::SecurityVersion);
    let version_known = !version_asked || version.is_some_and(|result| result.end.passed());
    let (removed, surface_detail) = removed_surface(state, iteration);
    let paraphrases = paraphrase_agreement(state, iteration);
    let unexplained = unexplained_drift(state, iteration);
    vec![
        check(
            "the security command ran and exited 0",
            rung,
            security.is_some_and(|result| result.end.passed()) && version_known,
            security.map_or_else(|| "security.command is not declared or did not run".to_owned(), |r| r.end.describe()),
            StopReason::SecurityBlocked,
        ),
        check(
            "no item of the public interface was removed",
            rung,
            !removed,
            surface_detail,
            StopReason::VerificationRungFailed,
        ),
        check(
            "restated goals give the same certificate type",
            rung,
            paraphrases.0,
            paraphrases.1,
            StopReason::SeedDisagreement,
        ),
        check(
            "every change of a check's output is explained by an artifact",
            rung,
            unexplained.is_empty(),
            if unexplained.is_empty() { "explained".to_owned() } else { unexplained.join(", ") },
            StopReason::VerificationRungFailed,
        ),
    ]
}

fn removed_surface(state: &RunState, iteration: &Iteration) -> (bool, String) {
    let before = state.baseline.probes.get(&Probe::ApiSurface);
    let after = iteration.probe(Phase::Gate, &Probe::ApiSurface);
    match (before, after) {
        (Some(before), Some(after)) if before.end.passed() && after.end.passed() => match &after.removed_lines {
            Some(removed) if removed.is_empty() => (false, "nothing removed".to_owned()),
            Some(removed) => (true, format!("removed: {}", removed.join("; "))),
            None => (true, "before and after were not compared".to_owned()),
        },
        _ => (true, "api_surface.command is not declared, or did not run before and after".to_owned()),
    }
}

fn paraphrase_agreement(state: &RunState, iteration: &Iteration) -> (bool, String) {
    if !state.criteria.iter().any(|criterion| criterion.is_judged()) {
        return (true, "no criterion is judged: checks do not read the goal".to_owned());
    }
    let Some(original) = iteration.certificate.as_ref() else { return (false, "no certificate".to_owned()) };
    let agrees =
        |number: &u8| measure::certificate_of(state, iteration, Phase::Iteration, Some(*number)).kind == original.kind;
    if !state.began_before_replays() {
        return restated_agreement(state, iteration, agrees);
    }
    let same = (1..=PARAPHRASES).filter(agrees).count();
    (same == usize::from(PARAPHRASES), format!("{same} of {PARAPHRASES} agree"))
}

/// The judge says the goal in words of its own and judges by them. All its verdicts count; most of its words must be
/// new, so that one phrase said twice refuses nobody and five copies of the goal are no second look.
fn restated_agreement(state: &RunState, iteration: &Iteration, agrees: impl Fn(&u8) -> bool) -> (bool, String) {
    let goal = normal(state.loop_file().goal.as_deref().unwrap_or_default());
    let words = |number: u8| {
        let restated = iteration.skeptic(Some(number)).and_then(|(report, _)| report.restated.as_deref());
        normal(restated.unwrap_or_default())
    };
    let mut said = BTreeSet::from([String::new(), goal]);
    let own = (1..=PARAPHRASES).filter(|number| said.insert(words(*number))).count();
    let same = (1..=PARAPHRASES).filter(agrees).count();
    let enough = same == usize::from(PARAPHRASES) && own >= LEAST_RESTATED;
    (
        enough,
        format!("{same} of {PARAPHRASES} agree; {own} restated in words of their own, {LEAST_RESTATED} are needed"),
    )
}

/// Letters and digits only: other blanks and dots are not other words.
fn normal(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// Checks whose output changed since the start, and that not by the work.
fn unexplained_drift(state: &RunState, iteration: &Iteration) -> Vec<String> {
    if !state.began_before_replays() {
        let probes = state.criteria.iter().map(|criterion| Probe::Criterion(criterion.id.clone()));
        return probes.filter_map(|probe| guards::unexplained(state, iteration, &probe)).collect();
    }
    let any_artifact = state.iterations().filter_map(|it| it.artifacts.as_ref()).any(|a| !a.changes.is_empty());
    if any_artifact {
        return Vec::new();
    }
    let drifted = state.criteria.iter().filter(|criterion| {
        let probe = Probe::Criterion(criterion.id.clone());
        match (state.baseline.probes.get(&probe), iteration.probe(Phase::Iteration, &probe)) {
            (Some(before), Some(now)) => before.stdout_sha256 != now.stdout_sha256,
            _ => false,
        }
    });
    drifted.map(|criterion| criterion.id.clone()).collect()
}

#[cfg(test)]
mod tests;
