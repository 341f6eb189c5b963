//! The pass-gate: what stands between a success certificate and EXIT_CONVERGED.
//!
//! The gate reads facts that are already in the run. It never lowers a claim: an unmet target blocks.

use serde::{Deserialize, Serialize};

use crate::model::certificate::{self, Certificate, CertificateKind, Facts, certify};
use crate::model::decimal::Exact;
use crate::model::learnings::SpecVersion;
use crate::model::northstar;
use crate::model::rung::{self, Rung};
use crate::model::stop::{ForbiddenState, StopReason};

use super::compose::DISTANCE_PLACES;
use super::event::{Phase, Probe};
use super::iteration::Iteration;
use super::measure;
use super::run::RunState;

/// How often the certificate is computed again on the frozen artifacts.
pub const REPLAYS: u8 = 2;
/// Restatements of the goal on which judged criteria are judged again for rung 65537.
pub const PARAPHRASES: u8 = 5;

/// One thing the gate looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateCheck {
    pub name: String,
    /// The lowest rung that needs it; `None`: needed at every rung.
    pub rung: Option<Rung>,
    pub ok: bool,
    pub detail: String,
    /// Why the run must stop; `None` while this holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forbidden_state: Option<ForbiddenState>,
}

impl GateCheck {
    /// Names the forbidden state that a failure of this check means.
    fn forbids(self, forbidden: ForbiddenState) -> Self {
        Self { forbidden_state: (!self.ok).then_some(forbidden), ..self }
    }
}

/// The five conditions of the Phuc Test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhucTest {
    pub condition_1_history: bool,
    pub condition_2_reflection: bool,
    pub condition_3_care: bool,
    pub condition_4_adaptation: bool,
    pub condition_5_growth: bool,
    pub pass: bool,
}

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum AlignmentStatus {
    Aligned,
    Neutral,
    Drifting,
}

/// Did the run as a whole advance the Northstar?
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alignment {
    pub status: AlignmentStatus,
    pub metrics_advanced: Vec<String>,
    pub northstar_distance_start: Option<String>,
    pub northstar_distance_end: Option<String>,
    pub reason: Option<String>,
}

/// The gate's verdict, with everything it looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateReport {
    pub passed: bool,
    pub rung_achieved: Option<Rung>,
    pub checks: Vec<GateCheck>,
}

impl GateReport {
    /// The first failure decides the stop reason.
    pub fn failure(&self) -> Option<&GateCheck> {
        self.checks.iter().find(|check| !check.ok)
    }
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
        checks.extend(phuc_checks(state, rung_achieved));
        checks.push(alignment_check(state));
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

fn check(name: &str, rung: Option<Rung>, ok: bool, detail: impl Into<String>, stop_reason: StopReason) -> GateCheck {
    let stop_reason = (!ok).then_some(stop_reason);
    GateCheck { name: name.to_owned(), rung, ok, detail: detail.into(), stop_reason, forbidden_state: None }
}

fn claim_checks(state: &RunState, iteration: &Iteration) -> Vec<GateCheck> {
    let certificate = iteration.certificate.as_ref();
    let valid = certificate.is_some_and(|c| c.kind.is_success() && c.residual.is_some());
    let declared = certificate.is_some_and(|c| state.certificates.contains(&c.kind));
    let tampering = measure::gate_tampering(state, iteration);
    vec![
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
    ]
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
                |d| if d.is_empty() { "frozen".into() } else { d.join(", ") },
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
        })
        .kind
    };
    let both = [CertificateKind::Exact, CertificateKind::Converged];
    let null =
        certify(Facts { declared: &both, findings: &findings, residual: None, r_p: state.r_p(), verifiers_passed: 1 });
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
    let (removed, surface_detail) = removed_surface(state, iteration);
    let paraphrases = paraphrase_agreement(state, iteration);
    let unexplained = unexplained_drift(state, iteration);
    vec![
        check(
            "the security command ran and exited 0",
            rung,
            security.is_some_and(|result| result.end.passed()),
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
    let same = (1..=PARAPHRASES)
        .filter(|number| {
            measure::certificate_of(state, iteration, Phase::Iteration, Some(*number)).kind == original.kind
        })
        .count();
    (same == usize::from(PARAPHRASES), format!("{same} of {PARAPHRASES} agree"))
}

/// Checks whose output changed since the start although no file did.
fn unexplained_drift(state: &RunState, iteration: &Iteration) -> Vec<String> {
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

/// The Phuc Test over the whole run.
pub fn phuc_test(state: &RunState, rung_achieved: Option<Rung>) -> PhucTest {
    let mut iterations: Vec<_> = state.iterations().collect();
    iterations.retain(|iteration| iteration.entry.is_some());
    let any = !iterations.is_empty();
    let condition_1_history = any && state.iterations().all(|iteration| iteration.entry.is_some());
    let condition_2_reflection = any && iterations.iter().all(|iteration| reflects(iteration));
    let condition_3_care = any && iterations.iter().all(|iteration| !iteration.began.bleeds);
    let condition_4_adaptation = any
        && iterations.iter().all(|iteration| iteration.began.carries_questions)
        && repeated_failure(state).is_none();
    let condition_5_growth = rung_achieved.is_some_and(|rung| rung >= state.rung_target());
    PhucTest {
        condition_1_history,
        condition_2_reflection,
        condition_3_care,
        condition_4_adaptation,
        condition_5_growth,
        pass: condition_1_history
            && condition_2_reflection
            && condition_3_care
            && condition_4_adaptation
            && condition_5_growth,
    }
}

fn reflects(iteration: &Iteration) -> bool {
    iteration.entry.as_ref().is_some_and(|entry| {
        entry.measures.glow.is_some() && entry.measures.northstar_direction.is_some() && entry.operators.is_some()
    })
}

/// An iteration that tried again, word for word, what had not helped before.
fn repeated_failure(state: &RunState) -> Option<(u32, u32)> {
    let normal = |tried: &[String]| -> Vec<String> {
        let mut lines: Vec<_> =
            tried.iter().map(|t| t.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()).collect();
        lines.sort();
        lines
    };
    let entries: Vec<_> = state.recorded().filter_map(|iteration| iteration.entry.as_ref()).collect();
    let improved = |index: usize| {
        entries[index].measures.residual_direction == crate::model::learnings::ResidualDirection::Improving
    };
    for later in 1..entries.len() {
        for earlier in 0..later {
            let same = normal(&entries[earlier].tried) == normal(&entries[later].tried);
            if same && !entries[later].tried.is_empty() && !improved(earlier) {
                return Some((entries[earlier].iteration, entries[later].iteration));
            }
        }
    }
    None
}

fn phuc_checks(state: &RunState, rung_achieved: Option<Rung>) -> Vec<GateCheck> {
    let test = phuc_test(state, rung_achieved);
    let repeated = repeated_failure(state).map_or_else(
        || "learnings reach the next capsule".to_owned(),
        |(a, b)| format!("iteration {b} repeats iteration {a}"),
    );
    let target = state.rung_target();
    let rung = rung_achieved.map_or_else(|| "none".to_owned(), |rung| rung.to_string());
    [
        (
            "Phuc Test 1: remembers history",
            test.condition_1_history,
            "a capsule per iteration".to_owned(),
            StopReason::PhucTestFailure1,
        ),
        (
            "Phuc Test 2: reflects",
            test.condition_2_reflection,
            "residual, GLOW and distance per entry".to_owned(),
            StopReason::PhucTestFailure2,
        ),
        (
            "Phuc Test 3: cares about context",
            test.condition_3_care,
            "no context bleed".to_owned(),
            StopReason::PhucTestFailure3,
        ),
        ("Phuc Test 4: adapts", test.condition_4_adaptation, repeated, StopReason::PhucTestFailure4),
        (
            "Phuc Test 5: chooses growth",
            test.condition_5_growth,
            format!("VERIFICATION_RUNG: achieved {rung}, target {target}"),
            StopReason::PhucTestFailure5,
        ),
    ]
    .into_iter()
    .map(|(name, ok, detail, reason)| check(name, None, ok, detail, reason).forbids(ForbiddenState::PhucTestFailure))
    .collect()
}

/// Start and end of the run compared.
pub fn alignment(state: &RunState) -> Alignment {
    let before = state.metrics_at_baseline();
    let last = state.iterations().rfind(|iteration| iteration.certificate.is_some());
    let now = last.map_or_else(|| before.clone(), |last| state.metrics_at(last));
    let (start, end) = (northstar::distance(&before).total, northstar::distance(&now).total);
    let mut advanced: Vec<String> =
        state.iterations().filter_map(|it| it.glow.as_ref()?.northstar_metric_advanced.clone()).collect();
    advanced.sort();
    advanced.dedup();
    let drifts = matches!((start, end), (Some(start), Some(end)) if end > start);
    let all_met_at_start = !state.criteria.is_empty()
        && state.criteria.iter().all(|criterion| measure::was_met_at_baseline(state, &criterion.id));
    let declared = state.loop_file().northstar.as_ref().and_then(|n| n.neutral_reason.clone());
    let (status, reason) = if drifts {
        (AlignmentStatus::Drifting, Some("the distance to the Northstar grew".to_owned()))
    } else if !advanced.is_empty() {
        (AlignmentStatus::Aligned, None)
    } else {
        let known = all_met_at_start.then(|| "every criterion was already met when the run began".to_owned());
        (AlignmentStatus::Neutral, declared.filter(|reason| !reason.trim().is_empty()).or(known))
    };
    let text =
        |distance: Option<crate::model::fraction::Fraction>| distance.map(|d| d.to_decimal_text(DISTANCE_PLACES));
    Alignment {
        status,
        metrics_advanced: advanced,
        northstar_distance_start: text(start),
        northstar_distance_end: text(end),
        reason,
    }
}

fn alignment_check(state: &RunState) -> GateCheck {
    let alignment = alignment(state);
    let (ok, detail, reason) = match (alignment.status, &alignment.reason) {
        (AlignmentStatus::Aligned, _) => {
            (true, format!("ALIGNED: {}", alignment.metrics_advanced.join(", ")), StopReason::NorthstarDrift)
        }
        (AlignmentStatus::Neutral, Some(reason)) => {
            (true, format!("NEUTRAL: {reason}"), StopReason::GlowWithoutNorthstarAlignment)
        }
        (AlignmentStatus::Neutral, None) => (
            false,
            "NEUTRAL without a reason: declare northstar.neutral_reason, or link and measure a metric".to_owned(),
            StopReason::GlowWithoutNorthstarAlignment,
        ),
        (AlignmentStatus::Drifting, _) => (false, "DRIFTING".to_owned(), StopReason::NorthstarDrift),
    };
    check("Northstar alignment", None, ok, detail, reason).forbids(ForbiddenState::GlowWithoutNorthstarAlignment)
}
