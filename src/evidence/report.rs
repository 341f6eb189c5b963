//! The halting report and the output contract of each exit.

use serde_json::{Map, Value, json};

use crate::machine::alignment;
use crate::machine::document::EVIDENCE_ROOT;
use crate::machine::event::{RunHalted, Signal};
use crate::machine::gate;
use crate::machine::guards;
use crate::machine::integrity;
use crate::machine::iteration::Iteration;
use crate::machine::phuc;
use crate::machine::progress;
use crate::machine::run::RunState;
use crate::model::certificate::{Certificate, CertificateKind};
use crate::model::fraction::Fraction;
use crate::model::gate_report::GateReport;
use crate::model::learnings::SpecVersion;
use crate::model::rung;
use crate::model::stop::{ExitStatus, StopReason};

use super::cumulative;

/// Digits of an average that does not terminate.
const AVERAGE_PLACES: u32 = 12;

/// The first version of the reducer that knows orders of an operator.
const KNOWS_ORDERS: u32 = 2;

/// halting_report.json; `None` while the run goes on.
pub fn halting_report(state: &RunState) -> Option<Value> {
    let halted = state.halt.as_ref()?;
    let mut report = json!({
        "schema_version": state.spec(),
        "goal": state.loop_file().goal,
        "status": halted.status,
        "contract_status": halted.status.contract_name(),
        "stop_reason": halted.stop_reason,
        "forbidden_state": halted.forbidden_state,
        "detail": halted.detail,
        "budget_dimension": halted.exhausted.as_ref().map(|e| e.dimension),
        "budget_observed": halted.exhausted.as_ref().map(|e| e.observed.clone()),
        "budget_limit": halted.exhausted.as_ref().map(|e| e.limit.clone()),
        "halting_certificate": halting_certificate(state, halted),
        "iterations_completed": state.spent.iterations,
        "total_seconds_elapsed": state.spent.millis / 1_000,
        "verification_rung_target": state.rung_target(),
        "verification_rung_achieved": rung_achieved(state),
        "gate": last_gate(state),
        "resumes": state.resumes,
        "sandbox": state.started.sandbox,
    });
    // Runs of before had no orders, and their reports were sealed without them.
    if state.started.reducer_version >= KNOWS_ORDERS
        && let Some(object) = report.as_object_mut()
    {
        object.insert("operator_overrides".into(), json!(state.operator.overrides));
    }
    if !state.began_before_replays()
        && let Some(object) = report.as_object_mut()
    {
        if let Some(shown) = guards::shown(state) {
            object.insert("proven".into(), json!(shown));
            object.insert("not_proven".into(), json!(guards::DOES_NOT_PROVE));
        }
        object.insert("integrity".into(), json!(integrity::of(state)));
        object.insert("checks_that_prove_nothing".into(), json!(integrity::proves_nothing(state)));
    }
    if let Some(scores) = cumulative::separate_scores(state) {
        report["scores"] = scores;
    }
    if state.spec() == SpecVersion::V2
        && let Some(object) = report.as_object_mut()
    {
        object.insert("skill".into(), json!("phuc-loop"));
        object.insert("version".into(), json!("2.0.0"));
        add_spec_two(state, object);
    }
    Some(report)
}

fn add_spec_two(state: &RunState, object: &mut Map<String, Value>) {
    let alignment = alignment::alignment(state);
    object.insert("northstar_distance_delta".into(), json!(distance_delta(state)));
    object.insert("northstar_metrics_before".into(), json!(state.metrics_at_baseline()));
    let last = state.iterations().rfind(|iteration| iteration.certificate.is_some());
    let after = last.map_or_else(|| state.metrics_at_baseline(), |last| state.metrics_at(last));
    object.insert("northstar_metrics_after".into(), json!(after));
    object.insert("northstar_alignment_certificate".into(), json!(alignment));
    object.insert("phuc_test_result".into(), json!(phuc::phuc_test(state, gate_rung(state))));
    object.insert("seed_checksum_verified".into(), json!(rung::seed_checksum() == rung::SEED_CHECKSUM));
    object.insert("triangle_law_vertices".into(), json!(gate::triangle(state)));
    object.insert("glow_history".into(), json!(glow_history(state)));
    object.insert("average_glow".into(), json!(average_glow(state)));
    object.insert("total_iterations".into(), json!(state.spent.iterations));
}

fn distance_delta(state: &RunState) -> Option<String> {
    let before = progress::distance(state, &state.metrics_at_baseline())?;
    let last = state.iterations().rfind(|iteration| iteration.certificate.is_some())?;
    let after = progress::distance(state, &state.metrics_at(last))?;
    Some(after.checked_sub(before)?.to_decimal_text(AVERAGE_PLACES))
}

fn glow_history(state: &RunState) -> Vec<Value> {
    let scored = state.iterations().filter_map(|iteration| Some((iteration.number(), iteration.glow.as_ref()?)));
    scored
        .map(|(number, glow)| {
            json!({"iteration": number, "total": glow.total, "G": glow.g, "L": glow.l, "O": glow.o, "W": glow.w})
        })
        .collect()
}

fn average_glow(state: &RunState) -> Option<String> {
    let totals: Vec<i128> =
        state.iterations().filter_map(|it| it.glow.as_ref()).map(|glow| i128::from(glow.total)).collect();
    let count = i128::try_from(totals.len()).ok()?;
    Fraction::new(totals.iter().sum(), count).map(|average| average.to_decimal_text(AVERAGE_PLACES))
}

/// The gate that was judged, if a success was ever claimed.
fn last_gate(state: &RunState) -> Option<&GateReport> {
    state.iterations().rev().find_map(|iteration| iteration.gate.as_ref())
}

fn gate_rung(state: &RunState) -> Option<rung::Rung> {
    last_gate(state).and_then(|gate| gate.rung_achieved)
}

/// Only a run that passed may claim a rung.
fn rung_achieved(state: &RunState) -> Option<rung::Rung> {
    let converged = state.halt.as_ref().is_some_and(|halted| halted.status == ExitStatus::ExitConverged);
    if converged { gate_rung(state) } else { None }
}

/// The certificate the run ends with; null for NEED_INFO and for a block without one.
fn halting_certificate(state: &RunState, halted: &RunHalted) -> Value {
    let kind = match halted.status {
        ExitStatus::ExitConverged => last_certificate(state).map(|certificate| certificate.kind),
        ExitStatus::ExitDiverged => Some(CertificateKind::Diverged),
        ExitStatus::ExitBudgetExceeded => Some(CertificateKind::Timeout),
        ExitStatus::ExitBlocked if halted.stop_reason == StopReason::BackpressureSignal => {
            Some(CertificateKind::Backpressure)
        }
        ExitStatus::ExitBlocked | ExitStatus::ExitNeedInfo => None,
    };
    let Some(kind) = kind else { return Value::Null };
    json!({
        "type": kind,
        "lane": kind.lane(),
        "final_residual_decimal_string": final_residual(state),
        "R_p_decimal_string": state.r_p(),
        "residual_history_decimal_strings": residual_texts(state),
        "acceptance_criteria_checklist": last_certificate(state).map(|c| &c.acceptance_criteria_checklist),
        "detail": halted.detail,
    })
}

fn last_certificate(state: &RunState) -> Option<&Certificate> {
    state.iterations().rev().find_map(|iteration| iteration.certificate.as_ref())
}

fn final_residual(state: &RunState) -> Option<String> {
    last_certificate(state)?.residual.map(|residual| residual.to_string())
}

fn residual_texts(state: &RunState) -> Vec<Option<String>> {
    state.residual_history().into_iter().map(|residual| residual.map(|value| value.to_string())).collect()
}

/// The iteration with the smallest residual.
pub fn best_iteration(state: &RunState) -> Option<&Iteration> {
    let measured = state.iterations().filter(|iteration| iteration.residual_value().is_some());
    measured.min_by_key(|iteration| iteration.residual_value())
}

/// exit.json: what this exit owes its reader.
pub fn exit_output(state: &RunState) -> Option<Value> {
    let halted = state.halt.as_ref()?;
    let mut output = match halted.status {
        ExitStatus::ExitConverged => converged(state),
        ExitStatus::ExitDiverged => diverged(state),
        ExitStatus::ExitBudgetExceeded => budget_exceeded(state, halted),
        ExitStatus::ExitBlocked => blocked(state, halted),
        ExitStatus::ExitNeedInfo => need_info(state),
    };
    if let Some(object) = output.as_object_mut() {
        object.insert("status".into(), json!(halted.status));
        object.insert("contract_status".into(), json!(halted.status.contract_name()));
        object.insert("stop_reason".into(), json!(halted.stop_reason));
        object.insert("detail".into(), json!(halted.detail));
        if let Some(scores) = cumulative::separate_scores(state) {
            object.insert("scores".into(), scores);
        }
    }
    Some(output)
}

fn learnings_path() -> String {
    format!("{EVIDENCE_ROOT}/agents_md_final.md")
}

fn converged(state: &RunState) -> Value {
    let certificate = last_certificate(state);
    let last = state.iterations().next_back();
    let best: Vec<Value> = last
        .and_then(|iteration| iteration.artifacts.as_ref())
        .map(|artifacts| {
            let files = artifacts.changes.iter().filter(|change| change.sha256.is_some());
            files.map(|c| json!({"path": c.path, "sha256": c.sha256, "role": "artifact"})).collect()
        })
        .unwrap_or_default();
    let mut output = json!({
        "halting_certificate": {
            "type": certificate.map(|c| c.kind),
            "lane": certificate.and_then(|c| c.lane),
            "final_residual": certificate.and_then(|c| c.residual),
            "R_p": state.r_p(),
            "acceptance_criteria_checklist": certificate.map(|c| &c.acceptance_criteria_checklist),
        },
        "iterations_completed": state.spent.iterations,
        "verification_rung_target": state.rung_target(),
        "verification_rung_achieved": rung_achieved(state),
        "AGENTS_md_final_path": learnings_path(),
        "loop_manifest_path": format!("{EVIDENCE_ROOT}/manifest.json"),
        "best_artifacts": best,
        "residual_history_decimal_strings": residual_texts(state),
        "lessons_for_next_run": lessons(state),
    });
    if state.spec() == SpecVersion::V2
        && let Some(object) = output.as_object_mut()
    {
        let alignment = alignment::alignment(state);
        object.insert(
            "northstar_alignment_certificate".into(),
            json!({
                "status": alignment.status,
                "metrics_advanced": alignment.metrics_advanced,
                "distance_delta": distance_delta(state),
                "reason": alignment.reason,
            }),
        );
        object.insert("glow_history".into(), json!(glow_history(state)));
        object.insert("phuc_test_result".into(), json!(phuc::phuc_test(state, gate_rung(state))));
        object.insert("triangle_law_vertices".into(), json!(gate::triangle(state)));
        object.insert("seed_checksum_verified".into(), json!(rung::seed_checksum() == rung::SEED_CHECKSUM));
    }
    output
}

/// Lane C of the last entry: hints, not facts.
fn lessons(state: &RunState) -> Vec<String> {
    let entry = state.recorded().next_back().and_then(|iteration| iteration.entry.as_ref());
    entry.map(|entry| entry.open_questions.clone()).unwrap_or_default()
}

fn diverged(state: &RunState) -> Value {
    let window = state.limits.divergence_window;
    let end = u64::try_from(state.residual_history().len()).unwrap_or(0);
    let start = end.saturating_sub(window);
    let good = state.iterations().nth(usize::try_from(start).unwrap_or(0));
    json!({
        "divergence_start_iteration": start + 1,
        "residual_history_decimal_strings": residual_texts(state),
        "last_known_good_iteration": start,
        "glow_at_last_good_iteration": good.and_then(|it| it.glow.as_ref()).map(|glow| glow.total),
        "diagnosis_attempt": diagnosis(state),
        "AGENTS_md_final_path": learnings_path(),
        "recommended_next_actions": [
            "Review Lane C learnings for divergence cause.",
            "Restart loop with different approach based on AGENTS.md failure modes.",
            "Consider reducing step size or changing residual metric.",
        ],
    })
}

/// What the last entries say failed.
fn diagnosis(state: &RunState) -> String {
    let failed: Vec<String> = state
        .recorded()
        .rev()
        .take(3)
        .filter_map(|iteration| iteration.entry.as_ref())
        .flat_map(|entry| {
            entry.failed.iter().map(move |claim| format!("iteration {}: {}", entry.iteration, claim.text))
        })
        .collect();
    if failed.is_empty() {
        "no failure was recorded; the residual rose all the same".to_owned()
    } else {
        failed.join("; ")
    }
}

fn budget_exceeded(state: &RunState, halted: &RunHalted) -> Value {
    let best = best_iteration(state);
    let mut output = json!({
        "iterations_completed": state.spent.iterations,
        "elapsed_seconds": state.spent.millis / 1_000,
        "budget_dimension": halted.exhausted.as_ref().map(|e| e.dimension),
        "budget_observed": halted.exhausted.as_ref().map(|e| e.observed.clone()),
        "budget_limit": halted.exhausted.as_ref().map(|e| e.limit.clone()),
        "best_result_achieved": best.map(|iteration| json!({
            "artifact_path": format!("{}/artifacts.json", crate::machine::document::iteration_dir(iteration.number())),
            "residual": iteration.residual_value(),
            "criteria_met": iteration.certificate.as_ref().map(|c| {
                c.acceptance_criteria_checklist.iter().filter(|f| f.met).map(|f| f.id.clone()).collect::<Vec<_>>()
            }),
        })),
        "final_residual_decimal_string": final_residual(state),
        "reason_for_non_convergence": last_certificate(state).map(|c| c.why.clone()),
        "AGENTS_md_final_path": learnings_path(),
        "recommended_next_actions": [
            "Increase max_iterations if convergence trend is positive.",
            "Accept partial result if residual is acceptable for use case.",
            "Switch to CONVERGED certificate with relaxed R_p.",
        ],
    });
    if state.spec() == SpecVersion::V2
        && let Some(object) = output.as_object_mut()
    {
        object.insert("glow_history".into(), json!(glow_history(state)));
    }
    output
}

fn blocked(state: &RunState, halted: &RunHalted) -> Value {
    let triangle = gate::triangle(state);
    let missing = match (triangle.remind, triangle.verify, triangle.acknowledge) {
        (false, _, _) => "REMIND",
        (_, false, _) => "VERIFY",
        (_, _, false) => "ACKNOWLEDGE",
        (true, true, true) => "none",
    };
    let last = state.iterations().next_back();
    let mut pointers = vec![json!({"path": format!("{EVIDENCE_ROOT}/plan.json"), "sha256": state.plan})];
    if let Some(iteration) = last {
        let dir = crate::machine::document::iteration_dir(iteration.number());
        pointers.push(json!({"path": format!("{dir}/cnf_capsule.json"), "sha256": iteration.began.capsule}));
    }
    let mut output = json!({
        "last_known_state": halted.last_state,
        "what_ran_and_failed": halted.detail,
        "forbidden_state": halted.forbidden_state,
        "AGENTS_md_path": "AGENTS.md",
        "next_actions": next_actions(halted),
        "evidence_pointers": pointers,
        "signal_detected": halted.signal,
        "iteration_at_detection": state.iteration_number(),
        "partial_results_path": EVIDENCE_ROOT,
    });
    if let Some(partial) = last.and_then(|iteration| iteration.partial.as_ref()).filter(|_| halted.signal.is_some()) {
        let dir = crate::machine::document::iteration_dir(partial.iteration);
        output["partial_artifacts"] = json!({
            "path": format!("{dir}/partial_artifacts.json"),
            "files_changed": partial.changes.len(),
            "unread": partial.unread,
        });
    }
    if state.spec() == SpecVersion::V2
        && let Some(object) = output.as_object_mut()
    {
        object.insert("triangle_vertex_missing".into(), json!(missing));
        object.insert(
            "glow_at_block".into(),
            json!(state.iterations().rev().find_map(|it| it.glow.as_ref()).map(|glow| glow.total)),
        );
    }
    output
}

/// What a person can do about a block.
pub fn next_actions(halted: &RunHalted) -> Vec<&'static str> {
    match halted.stop_reason {
        StopReason::BackpressureSignal if halted.signal == Some(Signal::DecisionNeeded) => {
            vec!["`nightloop inbox` shows what waits; `nightloop answer`, then `nightloop resume`."]
        }
        StopReason::BackpressureSignal
            if halted.signal.is_some_and(|signal| signal == Signal::AfterIteration || signal.is_as_asked()) =>
        {
            vec!["`nightloop resume` goes on."]
        }
        StopReason::HumanQuit => vec!["You ended it. Change what made you, and start a new run."],
        StopReason::BackpressureSignal if halted.signal == Some(Signal::StopFile) => {
            vec![
                "`nightloop resume` goes on. (A scratch/STOP that no operator of nightloop wrote is removed by hand first.)",
            ]
        }
        StopReason::BackpressureSignal if halted.signal == Some(Signal::DependencyDown) => {
            vec!["Bring back what `backpressure` in loop.yaml names, then run `nightloop resume`."]
        }
        StopReason::BackpressureSignal => vec!["Remove the cause of the stop, then run `nightloop resume`."],
        StopReason::NorthstarDrift => {
            vec![
                "Check NORTHSTAR.md and `northstar.links`: does this work advance a metric?",
                "Measure a metric with `northstar.measure`.",
            ]
        }
        StopReason::EvidenceIncomplete => {
            vec![
                "Read the agents' parts in the journal: `nightloop status`.",
                "Make the goal smaller, or give the agents the tools they lack.",
            ]
        }
        StopReason::InvariantViolation => {
            vec!["Look at the named files; restore or approve them, then start a new run."]
        }
        StopReason::SecurityBlocked => vec!["Declare `security.command`, or fix what it reports."],
        _ => vec!["Read evidence/loop/halting_report.json, fix what it names, and start a new run."],
    }
}

fn need_info(state: &RunState) -> Value {
    json!({
        "missing_fields": state.missing,
        "safe_partials": "Nothing was run. With the missing fields the loop can start as declared.",
    })
}
