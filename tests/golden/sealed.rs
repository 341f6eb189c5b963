//! What every ended run owes its reader, whatever happened in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use nightloop::model::digest::Digest;
use serde_json::Value;

use crate::case::Ran;

/// How a run is expected to end. Every field is compared every time.
#[derive(Clone)]
pub struct Expect {
    pub code: i32,
    pub status: &'static str,
    pub reason: &'static str,
    pub forbidden: Option<&'static str>,
    pub dimension: Option<&'static str>,
    /// Type and lane in the halting report.
    pub certificate: Option<(&'static str, &'static str)>,
    /// One per completed iteration; `"null"` where none could be measured.
    pub residuals: Vec<&'static str>,
    pub spec: &'static str,
}

impl Expect {
    fn new(code: i32, status: &'static str, reason: &'static str, residuals: &[&'static str]) -> Self {
        Self {
            code,
            status,
            reason,
            forbidden: None,
            dimension: None,
            certificate: None,
            residuals: residuals.to_vec(),
            spec: "2.0",
        }
    }

    pub fn exact(residuals: &[&'static str]) -> Self {
        Self { certificate: Some(("EXACT", "A")), ..Self::new(0, "EXIT_CONVERGED", "PASS", residuals) }
    }

    pub fn converged(residuals: &[&'static str]) -> Self {
        Self { certificate: Some(("CONVERGED", "B")), ..Self::exact(residuals) }
    }

    pub fn diverged(residuals: &[&'static str]) -> Self {
        let certificate = Some(("DIVERGED", "A"));
        Self { certificate, ..Self::new(1, "EXIT_DIVERGED", "SILENT_DIVERGENCE_DETECTED", residuals) }
    }

    pub fn budget(dimension: &'static str, residuals: &[&'static str]) -> Self {
        let reason = if dimension == "iterations" { "MAX_ITERS" } else { "MAX_TOOL_CALLS" };
        Self {
            certificate: Some(("TIMEOUT", "C")),
            dimension: Some(dimension),
            ..Self::new(2, "EXIT_BUDGET_EXCEEDED", reason, residuals)
        }
    }

    pub fn blocked(reason: &'static str, residuals: &[&'static str]) -> Self {
        Self::new(1, "EXIT_BLOCKED", reason, residuals)
    }

    pub fn drifted(residuals: &[&'static str]) -> Self {
        Self::blocked("NORTHSTAR_DRIFT", residuals).forbidden("GLOW_WITHOUT_NORTHSTAR_ALIGNMENT")
    }

    pub fn stopped(code: i32, residuals: &[&'static str]) -> Self {
        let certificate = Some(("BACKPRESSURE", "A"));
        Self { code, certificate, ..Self::blocked("BACKPRESSURE_SIGNAL", residuals) }
    }

    pub fn need_info(reason: &'static str) -> Self {
        Self::new(3, "EXIT_NEED_INFO", reason, &[])
    }

    pub fn forbidden(self, forbidden: &'static str) -> Self {
        Self { forbidden: Some(forbidden), ..self }
    }

    pub fn spec_one(self) -> Self {
        Self { spec: "1.0", ..self }
    }
}

/// The run ended as expected, its evidence is complete, and `verify` believes it.
#[track_caller]
pub fn check(ran: &Ran, expect: &Expect) {
    check_evidence(ran, expect);
    ran.bench.nightloop(&["verify"]).expect(0);
}

/// The same without `verify`, for a workspace that was tampered with.
#[track_caller]
pub fn check_evidence(ran: &Ran, expect: &Expect) {
    let told = format!("stdout:\n{}\nstderr:\n{}", ran.ended.stdout, ran.ended.stderr);
    assert_eq!(ran.ended.code, expect.code, "{told}");
    check_report(ran, expect);
    check_exit(ran, expect);
    check_files(ran, expect);
    check_manifest(ran);
}

#[track_caller]
fn check_report(ran: &Ran, expect: &Expect) {
    let report = ran.report();
    let text = |key: &str| report[key].as_str();
    assert_eq!(text("status"), Some(expect.status), "{report:#}");
    assert_eq!(text("stop_reason"), Some(expect.reason), "{report:#}");
    assert_eq!(text("forbidden_state"), expect.forbidden, "{report:#}");
    assert_eq!(text("budget_dimension"), expect.dimension, "{report:#}");
    assert_eq!(text("schema_version"), Some(expect.spec));
    assert_eq!(report["iterations_completed"], expect.residuals.len(), "{report:#}");
    let certificate = &report["halting_certificate"];
    match expect.certificate {
        None => assert!(certificate.is_null(), "{certificate:#}"),
        Some((kind, lane)) => {
            assert_eq!((&certificate["type"], &certificate["lane"]), (&kind.into(), &lane.into()));
            let history = certificate["residual_history_decimal_strings"].as_array().unwrap();
            assert_eq!(texts(history), expect.residuals);
            let last = expect.residuals.last().copied().unwrap_or("null");
            assert_eq!(texts(&[certificate["final_residual_decimal_string"].clone()]), [last]);
        }
    }
    let spec_two = ["glow_history", "phuc_test_result", "triangle_law_vertices", "northstar_alignment_certificate"];
    for key in spec_two.iter().chain(&["seed_checksum_verified", "skill", "version"]) {
        assert_eq!(report.get(key).is_some(), expect.spec == "2.0", "{key}");
    }
}

fn texts(values: &[Value]) -> Vec<String> {
    values.iter().map(|value| value.as_str().unwrap_or("null").to_owned()).collect()
}

/// The keys of the output contract of each exit (seed 001 section 17, seed 000 section 16).
fn contract(expect: &Expect) -> (&'static str, &'static [&'static str], &'static [&'static str]) {
    match expect.status {
        "EXIT_CONVERGED" => (
            "EXIT_CONVERGED",
            &[
                "halting_certificate",
                "iterations_completed",
                "verification_rung_target",
                "verification_rung_achieved",
                "AGENTS_md_final_path",
                "loop_manifest_path",
                "best_artifacts",
                "residual_history_decimal_strings",
            ],
            &[
                "glow_history",
                "northstar_alignment_certificate",
                "phuc_test_result",
                "triangle_law_vertices",
                "seed_checksum_verified",
            ],
        ),
        "EXIT_DIVERGED" => (
            "EXIT_DIVERGED",
            &[
                "divergence_start_iteration",
                "residual_history_decimal_strings",
                "last_known_good_iteration",
                "diagnosis_attempt",
                "AGENTS_md_final_path",
                "recommended_next_actions",
            ],
            &["glow_at_last_good_iteration"],
        ),
        "EXIT_BUDGET_EXCEEDED" => (
            "EXIT_BUDGET_EXCEEDED",
            &[
                "iterations_completed",
                "best_result_achieved",
                "final_residual_decimal_string",
                "AGENTS_md_final_path",
                "recommended_next_actions",
            ],
            &["glow_history"],
        ),
        "EXIT_BLOCKED" => (
            "BLOCKED",
            &["last_known_state", "what_ran_and_failed", "AGENTS_md_path", "next_actions", "evidence_pointers"],
            &["glow_at_block", "triangle_vertex_missing"],
        ),
        "EXIT_NEED_INFO" => ("NEED_INFO", &["missing_fields", "safe_partials"], &[]),
        other => panic!("no contract for {other}"),
    }
}

#[track_caller]
fn check_exit(ran: &Ran, expect: &Expect) {
    let exit = ran.exit();
    let (contract_status, always, spec_two) = contract(expect);
    assert_eq!(exit["status"], expect.status);
    assert_eq!(exit["contract_status"], contract_status);
    assert_eq!(exit["stop_reason"], expect.reason);
    let two: &[&str] = if expect.spec == "2.0" { spec_two } else { &[] };
    for key in always.iter().chain(two) {
        assert!(exit.get(key).is_some(), "exit.json lacks {key}: {exit:#}");
    }
}

#[track_caller]
fn check_files(ran: &Ran, expect: &Expect) {
    let root = ran.bench.workspace.join("evidence/loop");
    let exists = |name: &str| root.join(name).is_file();
    for name in ["agents_md_final.md", "manifest.json", "halting_report.json", "budget_log.json", "exit.json"] {
        assert!(exists(name), "{name}");
    }
    // Nothing is planned before the inputs are there.
    assert_eq!(exists("plan.json"), expect.status != "EXIT_NEED_INFO");
    for (number, residual) in expect.residuals.iter().enumerate() {
        for name in ["cnf_capsule.json", "artifacts.json", "agents_md_entry.md", "certificate.json"] {
            assert!(exists(&format!("iter_{number}/{name}")), "iter_{number}/{name}");
        }
        assert_eq!(exists(&format!("iter_{number}/glow.json")), expect.spec == "2.0");
        let certificate = ran.bench.evidence(&format!("iter_{number}/certificate.json"));
        assert_eq!(texts(&[certificate["residual"].clone()]), [*residual], "iteration {number}");
        let entry = ran.text(&format!("evidence/loop/iter_{number}/agents_md_entry.md"));
        assert!(entry.contains(&format!("## Iteration {number}\n")), "{entry}");
    }
    let log = ran.bench.evidence("budget_log.json");
    assert_eq!(log["iterations"].as_array().unwrap().len(), expect.residuals.len());
    let declared = nightloop::model::loop_file::parse(&ran.text("loop.yaml"), "loop.yaml").unwrap();
    let strict = declared.profile == nightloop::model::budget::Profile::Strict;
    assert_eq!(exists("budget_reduction.log"), !strict);
    let log = if exists("compaction.log") { ran.text("evidence/loop/compaction.log") } else { String::new() };
    let of_this_run = log.lines().any(|line| line.contains(" iteration"));
    assert_eq!(of_this_run, ran.text("evidence/loop/agents_md_final.md").contains("[COMPACTION]"), "{log}");
    assert!(exists("northstar_drift.log") || expect.reason != "NORTHSTAR_DRIFT");
}

/// The manifest names every other file, with its digest, and nothing else.
#[track_caller]
fn check_manifest(ran: &Ran) {
    let manifest = ran.bench.evidence("manifest.json");
    let listed: BTreeMap<String, String> = manifest["artifacts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["file_path"].as_str().unwrap().to_owned(), one["sha256"].as_str().unwrap().to_owned()))
        .collect();
    let mut found = BTreeMap::new();
    walk(&ran.bench.workspace, "evidence/loop", &mut found);
    found.remove("evidence/loop/manifest.json");
    assert_eq!(found, listed);
}

fn walk(workspace: &Path, dir: &str, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(workspace.join(dir)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{dir}/{}", entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            walk(workspace, &path, found);
        } else {
            let digest = Digest::of(&fs::read(entry.path()).unwrap()).to_string();
            found.insert(path, digest);
        }
    }
}
