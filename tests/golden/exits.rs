//! The ways a run ends by its residuals and artifacts.

use serde_json::json;

use crate::case::{Case, Ran, argv, write};
use crate::sealed::{Expect, check};

#[test]
fn every_criterion_met_is_exact() {
    let ran = Case::two_steps().run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let report = ran.report();
    assert_eq!(report["verification_rung_achieved"], 274_177);
    assert_eq!(report["phuc_test_result"]["pass"], true);
    assert_eq!(report["northstar_alignment_certificate"]["status"], "ALIGNED");
    assert_eq!(report["seed_checksum_verified"], true);
    let vertices = report["triangle_law_vertices"].as_object().unwrap();
    assert!(vertices.len() == 3 && vertices.values().all(|held| held == true), "{vertices:?}");
    let checklist = &report["halting_certificate"]["acceptance_criteria_checklist"];
    for (criterion, id) in checklist.as_array().unwrap().iter().zip(["a", "b"]) {
        assert_eq!((&criterion["id"], &criterion["met"]), (&json!(id), &json!(true)));
        assert!(!criterion["evidence_link"].is_null());
    }
}

#[test]
fn a_residual_below_r_p_converges_although_a_judged_criterion_is_unmet() {
    let case = Case::new().check("here", "true").judged("never").residuals(&["0.5", "0.00009"]);
    let ran = case.declare("halting_certificates", json!(["EXACT", "CONVERGED"])).declare("R_p", json!("1e-4")).run();
    check(&ran, &Expect::converged(&["0.5", "0.00009"]));
    assert_eq!(ran.report()["halting_certificate"]["R_p_decimal_string"], "0.0001");
}

#[test]
fn a_residual_of_zero_does_not_converge_over_a_red_check() {
    let case = Case::new().check("a", "test -f a").check("b", "test -f b").residuals(&["0", "0", "0"]);
    let ran = case
        .declare("halting_certificates", json!(["CONVERGED"]))
        .declare("budget", json!({"max_iterations": 3}))
        .run();
    check(&ran, &Expect::budget("iterations", &["0", "0", "0"]));
    let why = ran.bench.evidence("iter_0/certificate.json")["why"].clone();
    assert!(why.as_str().unwrap().ends_with("but unmet by its check: a, b"), "{why}");
}

#[test]
fn a_residual_of_r_p_itself_does_not_converge() {
    let case = Case::new().check("never", "false").residuals(&["0.0001", "0.0001", "0.0001"]);
    let case = case.declare("halting_certificates", json!(["CONVERGED"])).declare("R_p", json!("1e-4"));
    let ran = case.declare("budget", json!({"max_iterations": 3})).run();
    check(&ran, &Expect::budget("iterations", &["0.0001", "0.0001", "0.0001"]));
}

#[test]
fn converged_alone_certifies_a_finished_goal() {
    let ran = Case::two_steps().declare("halting_certificates", json!(["CONVERGED"])).run();
    check(&ran, &Expect::converged(&["0.5", "0"]));
}

#[test]
fn residual_zero_with_an_unmet_criterion_is_inconsistent_and_goes_on() {
    let case = Case::new().check("a", "test -f a").residuals(&["0", "0"]).solver(1, [write("a", "1\n")]);
    let ran = case.run();
    check(&ran, &Expect::exact(&["0", "0"]));
    assert_eq!(ran.bench.evidence("iter_0/certificate.json")["type"], "NONE");
    assert!(ran.agents_md().contains("[A] the residual is 0 although criteria are unmet"), "{}", ran.agents_md());
}

#[test]
fn three_rising_residuals_diverge() {
    let ran = Case::new().check("never", "false").residuals(&["5", "4", "4.1", "4.11"]).run();
    check(&ran, &Expect::diverged(&["5", "4", "4.1", "4.11"]));
    let exit = ran.exit();
    assert_eq!(exit["divergence_start_iteration"], 2);
    assert_eq!(exit["last_known_good_iteration"], 1);
    assert_eq!(exit["glow_at_last_good_iteration"], ran.bench.evidence("iter_1/glow.json")["total"]);
    assert!(exit["diagnosis_attempt"].as_str().unwrap().contains("DIVERGENCE"), "{exit:#}");
    assert_eq!(ran.bench.evidence("iter_3/certificate.json")["type"], "DIVERGED");
}

#[test]
fn equal_residuals_do_not_diverge() {
    let case = Case::new().check("never", "false").residuals(&["1", "2", "2"]);
    let ran = case.declare("budget", json!({"max_iterations": 3})).run();
    check(&ran, &Expect::budget("iterations", &["1", "2", "2"]));
}

#[test]
fn agents_that_only_talk_leave_no_evidence() {
    let talk = json!([{"text": "All done, the goal is reached."}, {"text": "Really."}, {"text": "Yes."}]);
    let ran = Case::two_steps().turns("scout", 0, talk.clone()).turns("solver", 0, talk).run();
    check(&ran, &Expect::blocked("EVIDENCE_INCOMPLETE", &["null"]));
    assert_eq!(ran.bench.evidence("iter_0/certificate.json")["type"], "NONE");
    assert_eq!(ran.bench.evidence("iter_0/glow.json")["O"], 0);
    assert!(ran.agents_md().contains("[A] the iteration produced no artifacts"), "{}", ran.agents_md());
}

#[test]
fn saying_done_is_not_being_done() {
    let solver = Case::two_steps().default_turns("solver", 0);
    let turns = json!([{"text": "Everything is complete. The goal is reached.", "calls": solver[0]["calls"]}]);
    let pass = json!({"status": "PASS", "succeeded": [{"lane": "B", "text": "Complete."}]});
    let ran = Case::two_steps().turns("solver", 0, turns).skeptic(0, pass).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
}

#[test]
fn three_unmeasurable_residuals_are_no_evidence() {
    let ran = Case::new().check("never", "false").residual("echo soon").run();
    check(&ran, &Expect::blocked("EVIDENCE_INCOMPLETE", &["null", "null", "null"]));
    assert!(ran.detail().contains("`soon`"), "{}", ran.detail());
    let failing = Case::new().check("never", "false").residual("echo 1; exit 3").run();
    check(&failing, &Expect::blocked("EVIDENCE_INCOMPLETE", &["null", "null", "null"]));
    assert!(failing.detail().contains("exit 3"), "{}", failing.detail());
    let told = "it0 no residual: the residual command failed: exit 3; rung 274177 is out of reach now";
    assert!(failing.ended.stdout.contains(told), "{}", failing.ended.stdout);
}

#[test]
fn a_null_breaks_the_row_of_a_divergence() {
    let case = Case::new().check("never", "false").residuals(&["1", "2", "soon", "3", "4", "5"]);
    check(&case.run(), &Expect::diverged(&["1", "2", "null", "3", "4", "5"]));
}

#[test]
fn spec_one_needs_no_northstar_and_scores_no_glow() {
    let case = Case::two_steps().declare("spec", json!("1.0")).without("northstar");
    std::fs::remove_file(case.bench.workspace.join("NORTHSTAR.md")).unwrap();
    let ran = case.run();
    check(&ran, &Expect::exact(&["0.5", "0"]).spec_one());
    let capsule = ran.bench.evidence("iter_1/cnf_capsule.json");
    let keys: Vec<&String> = capsule.as_object().unwrap().keys().collect();
    let nine = [
        "accumulated_learnings",
        "acceptance_criteria",
        "artifact_links",
        "current_state_summary",
        "goal_statement",
        "halting_certificates_applicable",
        "remaining_budget",
        "skill_pack",
        "subagent_role",
    ];
    let mut sorted = nine;
    sorted.sort_unstable();
    assert_eq!(keys, sorted);
    assert!(!ran.agents_md().contains("glow"), "{}", ran.agents_md());
}

#[test]
fn spec_one_has_no_northstar_gate() {
    let case = Case::new().stale().check("never", "false").declare("spec", json!("1.0")).without("northstar");
    let ran = case.declare("budget", json!({"max_iterations": 4})).run();
    check(&ran, &Expect::budget("iterations", &["1"; 4]).spec_one());
}

#[test]
fn spec_one_diverges_and_blocks_with_its_own_contracts() {
    let one = || Case::new().check("never", "false").declare("spec", json!("1.0")).without("northstar");
    check(&one().residuals(&["1", "2", "3"]).run(), &Expect::diverged(&["1", "2", "3"]).spec_one());
    let blocked = Expect::blocked("EVIDENCE_INCOMPLETE", &["null", "null", "null"]).spec_one();
    check(&one().residual("echo -1").run(), &blocked);
    check(&one().without("goal").run(), &Expect::need_info("NULL_INPUT").spec_one());
}

#[test]
fn a_goal_that_holds_from_the_start_is_neutral_and_exact() {
    let case = Case::new().stale().check("a", "true").declare("northstar", json!({}));
    let ran = Ran::of(case.written(), &["run", "--headless", "--anyway"]);
    check(&ran, &Expect::exact(&["0"]));
    assert_eq!(ran.report()["northstar_alignment_certificate"]["status"], "NEUTRAL");
}

#[test]
fn a_metric_that_advances_only_with_its_command_is_the_northstar_of_the_run() {
    let measure = json!({"links": {"a": ["vc-1"]}, "measure": {"vc-1": argv("ls a b 2>/dev/null | wc -l")}});
    let ran = Case::two_steps().stale().declare("northstar", measure).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    assert_eq!(ran.report()["northstar_alignment_certificate"]["metrics_advanced"], json!(["vc-1"]));
    assert_eq!(ran.report()["northstar_distance_delta"], "-0.02");
}
