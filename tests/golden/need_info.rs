//! What is missing is asked for, by name, before anything runs.

use std::fs;

use serde_json::json;

use crate::case::Case;
use crate::sealed::{Expect, check};

#[track_caller]
fn missing(case: Case, reason: &'static str, fields: &[&str]) -> String {
    let ran = case.run();
    check(&ran, &Expect::need_info(reason));
    assert_eq!(ran.exit()["missing_fields"], json!(fields));
    assert!(ran.events("llm.requested").is_empty() && ran.events("probe.started").is_empty());
    assert!(!ran.bench.workspace.join("AGENTS.md").exists());
    ran.detail()
}

#[test]
fn a_goal() {
    missing(Case::two_steps().without("goal"), "NULL_INPUT", &["goal"]);
    missing(Case::two_steps().declare("goal", json!("  ")), "NULL_INPUT", &["goal"]);
}

#[test]
fn acceptance_criteria() {
    missing(Case::two_steps().without("acceptance_criteria"), "NULL_INPUT", &["acceptance_criteria"]);
}

#[test]
fn an_empty_list_of_criteria_is_refused_with_its_place() {
    let ran = Case::new().run();
    assert_eq!(ran.ended.code, 3);
    assert!(ran.ended.stderr.contains("acceptance_criteria is empty"), "{}", ran.ended.stderr);
    assert!(!ran.bench.workspace.join("AGENTS.md").exists());
}

#[test]
fn halting_certificates() {
    let reason = "HALTING_CRITERIA_MISSING";
    missing(Case::two_steps().without("halting_certificates"), reason, &["halting_certificates"]);
    let only_stops = json!(["TIMEOUT", "BACKPRESSURE", "DIVERGED"]);
    missing(Case::two_steps().declare("halting_certificates", only_stops), reason, &["halting_certificates"]);
}

#[test]
fn agents() {
    missing(Case::two_steps().without("agents"), "NULL_INPUT", &["agents"]);
}

#[test]
fn a_northstar_file() {
    let case = Case::two_steps();
    fs::remove_file(case.bench.workspace.join("NORTHSTAR.md")).unwrap();
    let detail = missing(case, "NORTHSTAR_MISSING", &["northstar"]);
    assert!(detail.contains("NORTHSTAR.md is not there"), "{detail}");
}

#[test]
fn a_northstar_that_can_be_read() {
    let case = Case::two_steps().file("NORTHSTAR.md", "# Northstar\n\nBe excellent.\n");
    let detail = missing(case, "NORTHSTAR_MISSING", &["northstar"]);
    assert!(detail.contains("no metric found"), "{detail}");
    let twice = "- vc-1: steps | 0 | 1\n- vc-1: steps | 0 | 1\n";
    missing(Case::two_steps().file("NORTHSTAR.md", twice), "NORTHSTAR_MISSING", &["northstar"]);
}

#[test]
fn a_northstar_with_numbers() {
    let case = Case::two_steps().declare("northstar", json!({})).file("NORTHSTAR.md", "- vc-1: joy | some | much\n");
    missing(case, "NORTHSTAR_MISSING", &["northstar"]);
}

#[test]
fn everything_at_once() {
    let case = Case::two_steps().without("goal").without("acceptance_criteria").without("halting_certificates");
    let case = case.without("agents").file("NORTHSTAR.md", "");
    let fields = ["goal", "acceptance_criteria", "halting_certificates", "agents", "northstar"];
    missing(case, "NULL_INPUT", &fields);
}
