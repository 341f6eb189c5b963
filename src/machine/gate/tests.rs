//! The pass-gate and alignment (SPEC section 4): what each thing that is not as it should be means for a claim.

use super::judge;
use crate::machine::alignment::{AlignmentStatus, alignment};
use crate::machine::event::{Phase, Probe};
use crate::machine::iteration::Iteration;
use crate::machine::run::RunState;
use crate::machine::testing::{GREEN, Sim, World, printed, result};
use crate::model::certificate::CertificateKind;
use crate::model::gate_report::GateReport;
use crate::model::rung::Rung;
use crate::model::stop::StopReason::{self, *};

/// A claim of EXACT in iteration 1, with everything that the gate wants to see.
fn claim(line: &str) -> Sim {
    let mut sim = Sim::plain(line);
    let world = World { green_from: Some(1), ..GREEN };
    sim.until(&world, |run| run.current.as_ref().is_some_and(|iteration| iteration.frozen.is_some()));
    sim
}

fn current(run: &mut RunState) -> &mut Iteration {
    run.current.as_mut().unwrap()
}

fn judged(run: &RunState) -> GateReport {
    judge(run, run.current.as_ref().unwrap())
}

fn failures(run: &RunState) -> Vec<StopReason> {
    judged(run).checks.into_iter().filter_map(|check| check.stop_reason).collect()
}

fn check() -> Probe {
    Probe::Criterion("a".into())
}

#[test]
fn a_claim_that_holds_passes() {
    let report = judged(&claim("").run);
    assert!(report.passed && report.failure().is_none(), "{report:?}");
    assert_eq!(report.rung_achieved, Some(Rung::Stable));
    assert_eq!(judged(&claim("spec: \"1.0\"").run).failure(), None, "spec 1.0 has no Northstar to be aligned with");
}

type Row = (&'static str, fn(&mut RunState), &'static [StopReason]);

/// What is broken, and why the run must stop; the first reason is the one that is reported.
#[rustfmt::skip]
const TABLE: &[Row] = &[
    ("no certificate", |run| current(run).certificate = None,
        &[ConvergenceClaimWithoutRpCertificate, ConvergenceClaimWithoutRpCertificate, EvidenceIncomplete, VerifySkipped,
          InvariantViolation, NonReproducible, PhucTestFailure5]),
    ("a certificate without a residual", |run| current(run).certificate.as_mut().unwrap().residual = None,
        &[ConvergenceClaimWithoutRpCertificate, NonReproducible, PhucTestFailure5]),
    ("a type that was not declared", |run| run.certificates = vec![CertificateKind::Converged],
        &[ConvergenceClaimWithoutRpCertificate, NonReproducible, PhucTestFailure5]),
    ("green at the start, and red", |run| {
            run.baseline.probes.insert(check(), result(true));
            current(run).certificate.as_mut().unwrap().acceptance_criteria_checklist[0].met = false;
        },
        &[VerificationRungFailed, NonReproducible, PhucTestFailure5]),
    ("no plan", |run| run.plan = None,
        &[EvidenceIncomplete, InvariantViolation, PhucTestFailure5]),
    ("an earlier iteration without artifacts", |run| run.done[0].artifacts = None,
        &[EvidenceIncomplete, PhucTestFailure5]),
    ("an entry that cites another certificate",
        |run| current(run).entry.as_mut().unwrap().measures.certificate = "NONE".into(),
        &[InvariantViolation, PhucTestFailure5]),
    ("one replay", |run| { current(run).probes.remove(&(Phase::Replay(2), check())); },
        &[NonReproducible, PhucTestFailure5]),
    ("a replay with another result",
        |run| { current(run).probes.insert((Phase::Replay(1), check()), result(false)); },
        &[NonReproducible, PhucTestFailure5]),
    ("artifacts that changed", |run| current(run).frozen = Some(vec!["file1".into()]),
        &[NonReproducible, PhucTestFailure5]),
    ("artifacts that nobody looked at again", |run| current(run).frozen = None,
        &[NonReproducible, PhucTestFailure5]),
    ("Phuc Test 1: an iteration without a memory", |run| run.done[0].entry = None,
        &[EvidenceIncomplete, InvariantViolation, PhucTestFailure1, PhucTestFailure5]),
    ("Phuc Test 2: an entry without GLOW", |run| current(run).entry.as_mut().unwrap().measures.glow = None,
        &[PhucTestFailure2]),
    ("Phuc Test 3: context that bleeds", |run| current(run).began.bleeds = true,
        &[PhucTestFailure3]),
    ("Phuc Test 4: questions that were dropped", |run| current(run).began.carries_questions = false,
        &[PhucTestFailure4]),
    ("Phuc Test 4: the same change, told, and twice more", |run| run.done = vec![run.done[0].clone(); 4],
        &[PhucTestFailure4]),
    ("Phuc Test 4 of older runs: the same words again", |run| {
            run.started.reducer_version = 5;
            let report = run.done[0].reports.values().next().unwrap().clone();
            let key = current(run).reports.keys().next().unwrap().clone();
            current(run).reports.insert(key, report);
            let tried = run.done[0].entry.as_ref().unwrap().tried.clone();
            current(run).entry.as_mut().unwrap().tried = tried;
        },
        &[PhucTestFailure4]),
    ("no metric advanced", |run| for iteration in run.done.iter_mut().chain(&mut run.current) {
            iteration.probes.retain(|(_, probe), _| !matches!(probe, Probe::Metric(_)));
        },
        &[StopReason::GlowWithoutNorthstarAlignment]),
];

#[test]
fn each_part_of_the_gate_can_refuse() {
    for (name, break_it, reasons) in TABLE {
        let mut run = claim("").run;
        break_it(&mut run);
        let report = judged(&run);
        assert!(!report.passed, "{name}");
        assert_eq!(
            failures(&run),
            *reasons,
            "{name}: {:#?}",
            report.checks.iter().filter(|c| !c.ok).collect::<Vec<_>>()
        );
    }
}

/// A lower target asks for less proof of the code, never for less of the claim.
#[test]
fn no_target_weakens_the_claim() {
    for target in ["rung_target: 641", "rung_target: 274177"] {
        for (name, break_it, _) in TABLE {
            let mut run = claim(target).run;
            break_it(&mut run);
            assert!(!judged(&run).passed, "{name}, {target}");
        }
    }
}

/// Null is not zero, and a row of residuals with a hole in it shows no convergence.
#[test]
fn a_null_in_the_history_fails_the_second_rung() {
    let mut run = claim("").run;
    run.done[0].residual = Some(None);
    assert_eq!(failures(&run), [NullZeroConfusion, PhucTestFailure5]);
    assert_eq!(judged(&run).rung_achieved, Some(Rung::Local));
}

/// Rung 65537: security, interface; judged criteria are not in this loop.
#[test]
fn the_highest_rung_needs_its_own_evidence() {
    const DECLARED: &str = "security: { command: [scan] }\napi_surface: { command: [list] }\nrung_target: 65537";
    assert!(failures(&claim(DECLARED).run).starts_with(&[SecurityBlocked, VerificationRungFailed]));

    let complete = || {
        let mut run = claim(DECLARED).run;
        let surface = |removed: Option<Vec<String>>| crate::machine::event::ProbeResult {
            removed_lines: removed,
            ..printed("f")
        };
        run.baseline.probes.insert(Probe::ApiSurface, surface(None));
        current(&mut run).probes.insert((Phase::Gate, Probe::Security), result(true));
        current(&mut run).probes.insert((Phase::Gate, Probe::ApiSurface), surface(Some(Vec::new())));
        run
    };
    assert_eq!(failures(&complete()), []);
    assert_eq!(judged(&complete()).rung_achieved, Some(Rung::Promoted));
    type Broken = (&'static str, fn(&mut RunState), StopReason);
    let rows: [Broken; 4] = [
        (
            "the scan fails",
            |run| drop(current(run).probes.insert((Phase::Gate, Probe::Security), result(false))),
            SecurityBlocked,
        ),
        (
            "the scan did not run",
            |run| drop(current(run).probes.remove(&(Phase::Gate, Probe::Security))),
            SecurityBlocked,
        ),
        (
            "something public is gone",
            |run| {
                let surface = current(run).probes.get_mut(&(Phase::Gate, Probe::ApiSurface)).unwrap();
                surface.removed_lines = Some(vec!["fn f()".into()]);
            },
            VerificationRungFailed,
        ),
        (
            "nobody knows what was public",
            |run| drop(run.baseline.probes.remove(&Probe::ApiSurface)),
            VerificationRungFailed,
        ),
    ];
    for (name, break_it, reason) in rows {
        let mut run = complete();
        break_it(&mut run);
        let report = judged(&run);
        assert_eq!(failures(&run)[0], reason, "{name}");
        assert_eq!(report.rung_achieved, Some(Rung::Stable), "{name}: what holds below it still does");
    }
}

/// ALIGNED needs a metric that moved towards its target; NEUTRAL needs a reason; DRIFTING is never taken.
#[test]
fn alignment_compares_start_and_end() {
    use AlignmentStatus::{Aligned, Drifting, Neutral};
    const REASON: &str = "northstar: { measure: { vc-1: [x] }, neutral_reason: It only tidies. }";
    for (line, metric, status, taken) in [
        ("", &["0", "1"][..], Aligned, true),
        // A criterion that became true has won W = 25, and moved no metric that is measured.
        ("", &["0", "0"], Neutral, false),
        (REASON, &["0", "0"], Neutral, true),
        // As far beyond the target as it was before it.
        ("", &["0", "200"], Neutral, false),
        ("", &["5", "4"], Drifting, false),
        (REASON, &["5", "4"], Drifting, false),
    ] {
        let mut sim = Sim::plain(line);
        let world = World { metric, ..GREEN };
        sim.until(&world, |run| run.current.as_ref().is_some_and(|iteration| iteration.frozen.is_some()));
        assert_eq!(alignment(&sim.run).status, status, "{line} {metric:?}");
        assert_eq!(judged(&sim.run).passed, taken, "{line} {metric:?}");
    }
}

/// A metric that nothing measures follows the residual: it moved if the residual fell.
#[test]
fn a_metric_that_is_not_measured_follows_the_residual() {
    let mut sim = Sim::plain("northstar: {}");
    sim.until(&GREEN, |run| run.current.as_ref().is_some_and(|iteration| iteration.frozen.is_some()));
    let aligned = alignment(&sim.run);
    assert_eq!((aligned.status, aligned.metrics_advanced), (AlignmentStatus::Aligned, vec!["vc-1".to_owned()]));
    assert_eq!(aligned.northstar_distance_start, aligned.northstar_distance_end, "no number is invented");
    sim.run.baseline.residual = Some(current(&mut sim.run).residual.clone().unwrap());
    assert_eq!(alignment(&sim.run).status, AlignmentStatus::Neutral, "an equal residual moved nothing");
}
