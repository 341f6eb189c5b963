//! The JSON documents of the evidence, as values. Pure: the same state gives the same bytes.
//!
//! Where they are put and how they are written is `evidence`'s business. They stand here because capsules
//! link to them by digest.

use serde_json::{Value, json};

use crate::model::canonical;
use crate::model::digest::Digest;
use crate::model::learnings::Link;
use crate::model::learnings::{self, SpecVersion};
use crate::model::report::Report;

use super::event::{ArtifactsPartial, ChangeKind, Phase, Probe, Unlisted};
use super::iteration::Iteration;
use super::run::RunState;

/// The directory of the rendered evidence, relative to the workspace.
pub const EVIDENCE_ROOT: &str = "evidence/loop";

/// The directory of one iteration.
pub fn iteration_dir(iteration: u32) -> String {
    format!("{EVIDENCE_ROOT}/iter_{iteration}")
}

/// The workspace path of a check's kept output.
pub fn check_output_path(iteration: u32, criterion: &str) -> String {
    format!("evidence/loop/iter_{iteration}/checks/{criterion}.txt")
}

/// The workspace path of a probe's kept output; `None`: it is not kept there.
pub fn probe_output_path(iteration: u32, phase: Phase, probe: &Probe) -> Option<String> {
    let name = match (phase, probe) {
        (Phase::Iteration, Probe::Criterion(id)) => return Some(check_output_path(iteration, id)),
        (Phase::Step(step), probe) => return Some(step_output_path(iteration, step, probe)),
        (Phase::Iteration, Probe::Item(id)) => format!("item_{id}"),
        (Phase::Detour, Probe::Detour(name)) => format!("detour_{name}"),
        _ => return None,
    };
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    // Two ids may look alike once they are plain.
    let digest = Digest::of(probe.name().as_bytes());
    Some(format!("{}/checks/{name}.{}.txt", iteration_dir(iteration), digest.short()))
}

/// A document as the bytes that are written. No document holds a float, so this cannot fail; if it ever
/// did, the text says so instead of hiding it.
pub fn text(document: &Value) -> String {
    canonical::pretty(document).unwrap_or_else(|e| format!("{{\"unwritable\": \"{e}\"}}\n"))
}

pub fn digest(document: &Value) -> Digest {
    Digest::of(text(document).as_bytes())
}

/// plan.json: the contract, written before iteration 0.
pub fn plan(state: &RunState) -> Value {
    let declared = state.loop_file();
    let (r_p, from_file) = declared.r_p();
    let mut plan = json!({
        "schema_version": state.spec(),
        "loop_id": state.run(),
        "goal": declared.goal,
        "acceptance_criteria": state.criteria.iter().map(|criterion| json!({
            "id": criterion.id,
            "text": criterion.text,
            "proof": criterion.proof,
            "protects": criterion.protects,
        })).collect::<Vec<_>>(),
        "halting_certificates_applicable": state.certificates,
        "R_p": r_p,
        "R_p_source": if from_file { "declared" } else { "default" },
        "residual_metric": declared.residual_metric(),
        "residual_at_start": state.baseline.residual.as_ref().and_then(|r| r.as_ref()).map(|r| r.value),
        "max_iterations": state.budget().limits.max_iterations,
        "budget": state.budget(),
        "rung_target": state.rung_target(),
        "non_goals": ["anything that no acceptance criterion names", "weakening a check so that it passes"],
        "stop_rules": [
            "a success certificate that passes every gate",
            "three residuals in a row that strictly increase",
            "a limit of the budget",
            "scratch/STOP or another stop signal",
        ],
        "workspace_at_start_sha256": state.baseline.tree,
    });
    if state.spec() == SpecVersion::V2
        && let Some(object) = plan.as_object_mut()
    {
        let links = state.criteria.iter().map(|c| (c.id.clone(), json!(metric_links(state, &c.id)))).collect();
        object.insert("northstar_metrics".into(), json!(state.metrics_at_baseline()));
        object.insert("northstar_sha256".into(), json!(state.northstar.as_ref().and_then(|n| n.sha256)));
        object.insert("northstar_link".into(), Value::Object(links));
    }
    plan
}

fn metric_links(state: &RunState, criterion: &str) -> Value {
    let declared = state.loop_file().northstar.as_ref().and_then(|n| n.links.get(criterion));
    match declared {
        Some(metrics) => json!({"metrics": metrics, "source": "declared"}),
        None => json!({"metrics": state.linked_metric(criterion), "source": "default: the first metric"}),
    }
}

/// iter_N/artifacts.json.
pub fn artifacts(iteration: &Iteration) -> Value {
    let collected = iteration.artifacts.as_ref();
    let files = collected.map(|c| c.changes.as_slice()).unwrap_or_default().iter().map(|change| {
        json!({
            "path": change.path,
            "sha256": change.sha256,
            "change": change.kind,
            "role": if change.kind == ChangeKind::Deleted { "log" } else { "artifact" },
        })
    });
    let reports = iteration.reports.iter().map(|(call, accepted)| {
        json!({
            "path": report_path(iteration.number(), call),
            "sha256": accepted.sha256,
            "role": "proof",
        })
    });
    let mut document = json!({
        "iteration": iteration.number(),
        "artifacts": files.chain(reports).collect::<Vec<_>>(),
        "workspace_sha256": collected.map(|c| c.tree),
        "diff_sha256": collected.map(|c| c.diff),
    });
    if let Some(more) = collected.and_then(|c| c.more.as_ref()) {
        document["not_listed"] = not_listed(more);
    }
    if let Some(mended) = collected.map(|c| &c.mended).filter(|mended| !mended.is_empty()) {
        document["places_mended"] = json!(mended);
    }
    document
}

fn not_listed(more: &Unlisted) -> Value {
    json!({"files": more.files, "most_below": more.folder, "new_below": more.below, "all_sha256": more.all})
}

/// iter_N/partial_artifacts.json: what was changed when a stop came in the middle of the iteration.
pub fn partial(partial: &ArtifactsPartial) -> Value {
    let files = partial
        .changes
        .iter()
        .map(|change| json!({"path": change.path, "sha256": change.sha256, "change": change.kind, "role": "log"}));
    let mut document = json!({
        "iteration": partial.iteration,
        "partial": true,
        "resumes_before": partial.resumes,
        "artifacts": files.collect::<Vec<_>>(),
        "diff_sha256": partial.diff,
        "unread": partial.unread,
    });
    if let Some(more) = &partial.more {
        document["not_listed"] = not_listed(more);
    }
    document
}

/// A link to the iteration's list of artifacts.
pub fn artifacts_link(iteration: &Iteration) -> Link {
    let path = format!("{}/artifacts.json", iteration_dir(iteration.number()));
    Link { path, sha256: digest(&artifacts(iteration)) }
}

/// reports/ROLE.json.
pub fn report(report: &Report) -> String {
    text(&json!(report))
}

/// Where an accepted report is kept.
pub fn report_path(iteration: u32, call: &str) -> String {
    let name = call.split_once('.').map_or(call, |(_, rest)| rest);
    format!("{}/reports/{name}.json", iteration_dir(iteration))
}

/// Where the output of a check that ran in a step is kept.
pub fn step_output_path(iteration: u32, step: u32, probe: &Probe) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '_' };
    let name: String = probe.name().chars().map(plain).collect();
    format!("{}/steps/{step}_{name}.txt", iteration_dir(iteration))
}

/// iter_N/certificate.json.
pub fn certificate(iteration: &Iteration) -> Option<Value> {
    let certificate = iteration.certificate.as_ref()?;
    let mut value = serde_json::to_value(certificate).ok()?;
    if let Some(object) = value.as_object_mut() {
        object.insert("iteration".into(), json!(iteration.number()));
        object.insert("residual_null_because".into(), json!(iteration.residual_why_null));
        let ratio = iteration.residual.as_ref().and_then(|r| r.as_ref()).and_then(|r| r.unmet_of);
        object.insert("residual_unmet_of".into(), json!(ratio));
    }
    Some(value)
}

/// iter_N/glow.json.
pub fn glow(iteration: &Iteration) -> Option<Value> {
    let glow = iteration.glow.as_ref()?;
    let mut value = serde_json::to_value(glow).ok()?;
    if let Some(object) = value.as_object_mut() {
        object.insert("iteration".into(), json!(iteration.number()));
    }
    Some(value)
}

/// iter_N/review.json: the Socratic questions, answered from facts.
pub fn review(iteration: &Iteration) -> Option<Value> {
    (!iteration.review.is_empty()).then(|| json!({"iteration": iteration.number(), "answers": iteration.review}))
}

/// iter_N/agents_md_entry.md.
pub fn entry(state: &RunState, iteration: &Iteration) -> Option<String> {
    iteration.entry.as_ref().map(|entry| learnings::render_entry(entry, state.spec()))
}
