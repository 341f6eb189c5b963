//! Lays the evidence out as files. Pure but for reading blobs.

use serde_json::{Value, json};

use crate::journal::{Blobs, JournalError};
use crate::machine::alignment;
use crate::machine::document::{self, EVIDENCE_ROOT, iteration_dir, report_path};
use crate::machine::event::{Phase, Probe};
use crate::machine::iteration::Iteration;
use crate::machine::ledger::Used;
use crate::machine::run::RunState;
use crate::model::budget::Profile;
use crate::model::canonical;
use crate::model::digest::Digest;
use crate::model::learnings::{NorthstarDirection, SpecVersion};
use crate::model::rendered::Rendered;
use crate::model::skill;

use super::cumulative;
use super::people;
use super::report;
use super::rewritten;

/// The first version of the reducer whose runs have a usage file.
const KNOWS_USAGE: u32 = 3;

/// What waits for a person.
const INBOX: &str = "inbox.md";

/// Files that a run may have for a while and not at its end: below the root of the evidence.
pub const PASSING: [&str; 7] = [
    "agents_md_final.md",
    "exit.json",
    "halting_report.json",
    INBOX,
    "northstar_drift.log",
    "value/DELIVERY_REPORT.md",
    "value/preconditions.md",
];

/// A file as the manifest lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub path: String,
    pub sha256: Digest,
    pub role: &'static str,
    pub iteration: Option<u32>,
}

impl Listed {
    pub fn of(file: &Rendered) -> Self {
        Self { path: file.path.clone(), sha256: Digest::of(&file.bytes), role: file.role, iteration: file.iteration }
    }
}

/// Everything that must be there for this state of the run.
pub fn everything(state: &RunState, blobs: &Blobs) -> Result<Vec<Rendered>, JournalError> {
    let mut files = Vec::new();
    for iteration in state.iterations() {
        files.extend(of_iteration(state, iteration, blobs)?);
    }
    files.extend(of_run(state, blobs)?);
    files.push(manifest(state, files.iter().map(Listed::of).collect()));
    Ok(files)
}

/// The files of one iteration.
pub fn of_iteration(state: &RunState, iteration: &Iteration, blobs: &Blobs) -> Result<Vec<Rendered>, JournalError> {
    let number = iteration.number();
    let dir = iteration_dir(number);
    let mut files = Vec::new();
    let mut add =
        |path: String, bytes: Vec<u8>, role| files.push(Rendered { path, bytes, role, iteration: Some(number) });

    add(format!("{dir}/cnf_capsule.json"), blobs.get(&iteration.began.capsule)?, "snapshot");
    for (path, text) in skills(state, number) {
        add(path, blobs.get(&text)?, "snapshot");
    }
    for (call, accepted) in &iteration.reports {
        add(report_path(number, call), document::report(&accepted.report).into_bytes(), "proof");
    }
    if let Some(artifacts) = &iteration.artifacts {
        add(format!("{dir}/diff.patch"), blobs.get(&artifacts.diff)?, "artifact");
        add(format!("{dir}/artifacts.json"), document::text(&document::artifacts(iteration)).into_bytes(), "artifact");
    }
    if let Some(partial) = &iteration.partial {
        if let Some(diff) = &partial.diff {
            add(format!("{dir}/partial.patch"), blobs.get(diff)?, "log");
        }
        add(format!("{dir}/partial_artifacts.json"), document::text(&document::partial(partial)).into_bytes(), "log");
    }
    for ((phase, probe), result) in &iteration.probes {
        let Some(path) = document::probe_output_path(number, *phase, probe) else { continue };
        add(path, blobs.get(&result.output)?, "test");
    }
    for (name, output) in promoted(state, iteration) {
        add(format!("{EVIDENCE_ROOT}/{name}"), blobs.get(&output)?, "proof");
    }
    if let Some(certificate) = document::certificate(iteration) {
        add(format!("{dir}/certificate.json"), document::text(&certificate).into_bytes(), "proof");
    }
    if let Some(glow) = document::glow(iteration)
        && state.spec() == SpecVersion::V2
    {
        add(format!("{dir}/glow.json"), document::text(&glow).into_bytes(), "proof");
    }
    if let Some(entry) = document::entry(state, iteration) {
        add(format!("{dir}/agents_md_entry.md"), entry.into_bytes(), "log");
    }
    if let Some(review) = document::review(iteration) {
        add(format!("{dir}/review.json"), document::text(&review).into_bytes(), "proof");
    }
    for (name, value, role) in state.playbook().iteration_views(state, iteration) {
        add(format!("{dir}/{name}"), document::text(&value).into_bytes(), role);
    }
    if let Some(gate) = &iteration.gate {
        let value = json!({"iteration": number, "gate": gate});
        add(format!("{dir}/gate.json"), document::text(&value).into_bytes(), "proof");
    }
    Ok(files)
}

/// The skills that the run's agents are told, once: a capsule links these texts.
fn skills(state: &RunState, iteration: u32) -> Vec<(String, Digest)> {
    let Some(found) = state.found.as_ref().filter(|_| iteration == 0) else { return Vec::new() };
    let own = found.skills.iter().map(|own| (skill::kept_own(&own.path), own.sha256));
    found.shipped_skills.iter().map(|shipped| (shipped.path.clone(), shipped.sha256)).chain(own).collect()
}

/// What rung 65537 rests on, word for word: the scanner's output and version, the interface before and after. A run has
/// one pass-gate that went this far, since a gate ends the run either way.
pub fn promoted(state: &RunState, iteration: &Iteration) -> Vec<(&'static str, Digest)> {
    if state.began_before_replays() {
        return Vec::new();
    }
    let at_gate = |probe: &Probe| iteration.probe(Phase::Gate, probe).map(|result| result.output);
    let after = at_gate(&Probe::ApiSurface);
    let before = after.and(state.baseline.probes.get(&Probe::ApiSurface)).map(|result| result.output);
    let files = [
        ("security_scan.txt", at_gate(&Probe::Security)),
        ("security_version.txt", at_gate(&Probe::SecurityVersion)),
        ("api_surface_before.txt", before),
        ("api_surface_after.txt", after),
    ];
    files.into_iter().filter_map(|(name, output)| Some((name, output?))).collect()
}

/// What was cut from AGENTS.md, line by line: of earlier runs when this one began, then of this one.
fn compactions(state: &RunState) -> String {
    let earlier = state.found.iter().filter_map(|found| found.distilled.as_ref()).flat_map(|cut| cut.log.clone());
    let shortened = state.shortened.iter().map(ToString::to_string);
    earlier
        .chain(state.compactions.iter().map(ToString::to_string))
        .chain(shortened)
        .map(|log| format!("{log}\n"))
        .collect()
}

/// The files of the run as a whole, but for the manifest.
pub fn of_run(state: &RunState, blobs: &Blobs) -> Result<Vec<Rendered>, JournalError> {
    let mut files = of_state(state);
    if let Some(inbox) = people::inbox(state, blobs)? {
        let path = format!("{EVIDENCE_ROOT}/{INBOX}");
        files.push(Rendered { path, bytes: inbox.into_bytes(), role: "log", iteration: None });
    }
    if !state.began_before_recovery() {
        files.extend(rewritten::files(state, blobs)?);
    }
    Ok(files)
}

/// The paths of these files.
pub fn paths_of_run(state: &RunState) -> Vec<String> {
    let mut paths: Vec<String> = of_state(state).into_iter().map(|file| file.path).collect();
    if !state.operator.decisions.is_empty() {
        paths.push(format!("{EVIDENCE_ROOT}/{INBOX}"));
    }
    if !state.began_before_recovery() {
        let rewritten = state.playbook().rewritten(state).into_iter();
        paths.extend(rewritten.map(|one| format!("{EVIDENCE_ROOT}/{}", one.name)));
    }
    paths
}

/// The files that follow from the state alone.
fn of_state(state: &RunState) -> Vec<Rendered> {
    let mut files = Vec::new();
    let mut add = |name: &str, text: String, role| {
        files.push(Rendered {
            path: format!("{EVIDENCE_ROOT}/{name}"),
            bytes: text.into_bytes(),
            role,
            iteration: None,
        });
    };
    if let Some(text) = &state.started.declared_text {
        add("loop.yaml", text.clone(), "plan");
    }
    if state.plan.is_some() {
        add("plan.json", document::text(&document::plan(state)), "plan");
    }
    add("budget_log.json", document::text(&budget_log(state)), "log");
    if state.started.reducer_version >= KNOWS_USAGE {
        add("usage.json", document::text(&usage(state)), "log");
    }
    if state.budget().profile != Profile::Strict {
        add("budget_reduction.log", budget_reduction(state), "log");
    }
    let compactions = compactions(state);
    if !compactions.is_empty() {
        add("compaction.log", compactions, "log");
    }
    if let Some(log) = drift_log(state) {
        add("northstar_drift.log", log, "log");
    }
    if let Some(delta) = cumulative::northstar_delta(state) {
        add("northstar_delta.json", document::text(&delta), "log");
    }
    if let Some(decisions) = people::decisions(state) {
        add("decisions.json", document::text(&decisions), "log");
    }
    if let Some(undone) = undone(state) {
        add("undone.json", document::text(&undone), "log");
    }
    if state.halt.is_some() {
        add("agents_md_final.md", state.learnings_document(), "snapshot");
    }
    if let Some(report) = report::halting_report(state) {
        add("halting_report.json", document::text(&report), "proof");
    }
    if let Some(output) = report::exit_output(state) {
        add("exit.json", document::text(&output), "proof");
    }
    files.extend(state.playbook().views(state));
    files
}

/// Iterations that a person took back: their evidence no longer stands for the workspace.
fn undone(state: &RunState) -> Option<Value> {
    let rows: Vec<Value> = state
        .git
        .taken_back
        .iter()
        .map(|(iteration, undone)| {
            let evidence = iteration_dir(*iteration);
            json!({"iteration": iteration, "by": undone.by, "files": undone.files, "invalid_evidence": evidence})
        })
        .collect();
    (!rows.is_empty()).then(|| json!({"undone": rows}))
}

/// manifest.json: every other file with its digest, and what the run changed in the workspace.
pub fn manifest(state: &RunState, mut files: Vec<Listed>) -> Rendered {
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let artifacts: Vec<Value> = files
        .iter()
        .map(|file| {
            json!({
                "iteration": file.iteration,
                "file_path": file.path,
                "sha256": file.sha256,
                "role": file.role,
            })
        })
        .collect();
    let mut value = json!({"schema_version": state.spec(), "loop_id": state.run(), "artifacts": artifacts});
    if let Some(files) = cumulative::workspace_files(state) {
        value["workspace"] = files;
    }
    Rendered {
        path: format!("{EVIDENCE_ROOT}/manifest.json"),
        bytes: document::text(&value).into_bytes(),
        role: "proof",
        iteration: None,
    }
}

fn budget_log(state: &RunState) -> Value {
    let per_iteration: Vec<Value> = state
        .recorded()
        .map(|iteration| {
            let spend = &iteration.spend;
            json!({
                "iteration": iteration.number(),
                "millis": spend.millis,
                "tool_calls": spend.tool_calls,
                "requests": spend.requests,
                "input_tokens": spend.input_tokens,
                "output_tokens": spend.output_tokens,
                "waited_millis": spend.waited_millis,
            })
        })
        .collect();
    let spent = &state.spent;
    json!({
        "profile": state.budget().profile,
        "limits": state.limits,
        "clamps": state.budget().clamps,
        "iterations": per_iteration,
        "total": {
            "iterations": spent.iterations,
            "millis": spent.millis,
            "tool_calls": spent.tool_calls,
            "requests": spent.requests,
            "input_tokens": spent.input_tokens,
            "output_tokens": spent.output_tokens,
            "cost_usd": spent.cost_usd,
        },
    })
}

/// Tokens and money by iteration, role and model. A cost of null is unknown, not zero.
pub fn usage(state: &RunState) -> Value {
    let with = |mut row: Value, used: &Used| {
        if let (Value::Object(row), Ok(Value::Object(used))) = (&mut row, serde_json::to_value(used)) {
            row.extend(used);
        }
        row
    };
    let ledger = &state.ledger;
    let rows: Vec<Value> = ledger
        .rows
        .iter()
        .map(|(row, used)| with(json!({"iteration": row.iteration, "role": row.role, "model": row.model}), used))
        .collect();
    json!({
        "rows": rows,
        "total": with(json!({}), &ledger.total()),
        "lost": {"calls": ledger.lost, "at_most_usd": ledger.lost_usd},
    })
}

fn budget_reduction(state: &RunState) -> String {
    let budget = state.budget();
    let line = |name: &str, value: Value| format!("{name}: {}\n", canonical::compact(&value).unwrap_or_default());
    [
        line("profile", json!(budget.profile)),
        line("base_budgets", json!(crate::model::budget::Limits::BASE)),
        line("effective_budgets", json!(budget.limits)),
        line("clamp_events", json!(budget.clamps)),
    ]
    .concat()
}

/// Written as soon as the distance grew once or a streak of W=0 began.
fn drift_log(state: &RunState) -> Option<String> {
    if state.spec() == SpecVersion::V1 {
        return None;
    }
    let mut lines = String::new();
    for iteration in state.recorded() {
        let (Some(entry), Some(glow)) = (&iteration.entry, &iteration.glow) else { continue };
        let drifts = entry.measures.northstar_direction == Some(NorthstarDirection::Drifting);
        if drifts || glow.w == 0 {
            let distance = entry.measures.northstar_distance.as_deref().unwrap_or("null");
            lines.push_str(&format!(
                "iteration {}: W={} distance={distance} drifting={drifts}\n",
                iteration.number(),
                glow.w
            ));
        }
    }
    let halted =
        state.halt.as_ref().filter(|halted| halted.stop_reason == crate::model::stop::StopReason::NorthstarDrift);
    if let Some(halted) = halted {
        lines.push_str(&format!("{}: {}\n", halted.stop_reason, halted.detail));
    }
    (halted.is_some() || alignment::alignment(state).status == alignment::AlignmentStatus::Drifting).then_some(lines)
}
