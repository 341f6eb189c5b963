//! The pass-gate: a green check is not enough when the way there was not clean.

use serde_json::json;

use crate::case::{Case, sh, solver_report, write};
use crate::sealed::{Expect, check, check_evidence};

#[test]
fn a_check_that_was_edited_in_the_iteration_that_turned_it_green_counts_for_nothing() {
    let case = Case::new().check_argv("a", &["sh", "check.sh"]).file("check.sh", "exit 1\n");
    let ran = case.solver(1, [sh("echo 'exit 0' > check.sh")]).run();
    check(&ran, &Expect::blocked("INVARIANT_VIOLATION", &["1", "1"]));
    assert!(ran.detail().starts_with("GATE_TAMPERING: a (check.sh)"), "{}", ran.detail());
    let finding = &ran.bench.evidence("iter_1/certificate.json")["acceptance_criteria_checklist"][0];
    assert_eq!(finding["met"], false);
    assert!(ran.agents_md().contains("[A] GATE TAMPERING: a (check.sh)"), "{}", ran.agents_md());
}

#[test]
fn declared_guards_are_watched_too() {
    let guarded = json!([{"id": "a", "text": "a", "check": ["sh", "-c", "test -f a"], "protects": ["data/**"]}]);
    let case = Case::new().declare("acceptance_criteria", guarded).file("data/in", "1\n");
    let ran = case.solver(0, [write("a", "1\n"), write("data/in", "2\n")]).run();
    check(&ran, &Expect::blocked("INVARIANT_VIOLATION", &["1"]));
    assert!(ran.detail().contains("GATE_TAMPERING: a (data/in)"), "{}", ran.detail());
}

/// Where nothing keeps an agent from writing AGENTS.md.
fn unsealed(case: Case) -> Case {
    case.declare("sandbox", json!({"mode": "off"}))
}

/// Where the sandbox holds, AGENTS.md is not an agent's to write.
#[test]
fn in_the_sandbox_an_agent_cannot_write_agents_md() {
    let tries = ["echo mine >> AGENTS.md", "rm AGENTS.md", "mv AGENTS.md x", "cp loop.yaml AGENTS.md"];
    let ran = Case::two_steps().solver(1, tries.map(sh)).run();
    let failed = ran.events("tool.finished").iter().filter(|data| data["is_error"] == true).count();
    if nightloop::tool::sandbox::level().mounts {
        check(&ran, &Expect::exact(&["0.5", "0"]));
        assert_eq!(failed, tries.len());
    } else {
        eprintln!("skipped: this machine gives no mounts, so nothing can be sealed");
    }
}

#[test]
fn a_generated_block_that_an_agent_edited_is_an_invariant_violation() {
    let edit = "sed 's/Attempt/Triumph/' AGENTS.md > copy && cat copy > AGENTS.md && rm copy";
    let ran = unsealed(Case::two_steps()).solver(1, [sh(edit)]).run();
    check_evidence(&ran, &Expect::blocked("INVARIANT_VIOLATION", &["0.5"]));
    assert!(ran.detail().contains("generated block of AGENTS.md"), "{}", ran.detail());
    // The file still differs from the journal, and `verify` says so.
    let verified = ran.bench.nightloop(&["verify"]).expect(1);
    assert!(verified.stdout.contains("AGENTS.md: the generated block differs"), "{}", verified.stdout);
}

#[test]
fn a_generated_block_that_an_agent_deleted_is_an_invariant_violation() {
    let ran = unsealed(Case::two_steps()).solver(1, [sh("rm AGENTS.md")]).run();
    check_evidence(&ran, &Expect::blocked("INVARIANT_VIOLATION", &["0.5"]));
    ran.bench.nightloop(&["verify"]).expect(1);
}

#[test]
fn evidence_that_an_agent_deleted_is_written_again() {
    check(&Case::two_steps().solver(1, [sh("rm -r evidence")]).run(), &Expect::exact(&["0.5", "0"]));
}

#[test]
fn text_around_the_generated_block_belongs_to_people() {
    let case = Case::two_steps().file("AGENTS.md", "# House rules\r\n\r\nUse tabs.");
    let ran = unsealed(case).solver(1, [sh("printf 'More rules.\\n' >> AGENTS.md")]).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let text = ran.agents_md();
    assert!(text.starts_with("# House rules\r\n\r\nUse tabs.") && text.ends_with("More rules.\n"), "{text}");
}

#[test]
fn the_file_tools_do_not_write_what_the_engine_owns() {
    let owned = ["AGENTS.md", "evidence/loop/plan.json", "loop.yaml", "scratch/STOP"];
    let ran = Case::two_steps().solver(0, owned.map(|path| write(path, "mine\n"))).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let failed = ran.events("tool.finished").iter().filter(|data| data["is_error"] == true).count();
    assert_eq!(failed, owned.len());
}

#[test]
fn a_check_that_flaps_is_not_reproducible() {
    let flap =
        "mkdir -p .state; n=$(cat .state/n 2>/dev/null || echo 0); echo $((n + 1)) > .state/n; test $((n % 2)) -eq 1";
    let ran = Case::new().check("flap", flap).file(".gitignore", ".state/\n").run();
    check(&ran, &Expect::blocked("NON_REPRODUCIBLE", &["0"]));
    assert!(ran.detail().contains("1 of 2 equal"), "{}", ran.detail());
}

#[test]
fn a_replay_that_changes_its_own_artifact_is_not_reproducible() {
    let ran = Case::new().check("a", "test -f a && echo again >> a").solver(0, [write("a", "1\n")]).run();
    check(&ran, &Expect::blocked("NON_REPRODUCIBLE", &["0"]));
    assert!(ran.detail().contains("the artifacts did not change"), "{}", ran.detail());
}

#[test]
fn what_was_green_at_the_start_must_be_green_at_the_end() {
    let certificates = json!(["CONVERGED"]);
    let case = Case::new().check("old", "test -f old").residuals(&["0"]).declare("halting_certificates", certificates);
    let ran = case.file("old", "1\n").solver(0, [sh("rm old")]).run();
    check(&ran, &Expect::blocked("VERIFICATION_RUNG_FAILED", &["0"]));
    assert!(ran.agents_md().contains("[A] REGRESSION: criterion `old`"), "{}", ran.agents_md());
}

#[test]
fn trying_the_same_failed_way_again_fails_the_fourth_condition() {
    let turns = |action: &str, work: Vec<serde_json::Value>| {
        let calls: Vec<_> = work.into_iter().chain([solver_report(action)]).collect();
        json!([{"calls": calls}])
    };
    let case = Case::new().check("a", "test -f a").turns("solver", 0, turns("Turned the tap.", vec![]));
    let ran = case.turns("solver", 1, turns("turned  THE tap.", vec![write("a", "1\n")])).run();
    check(&ran, &Expect::blocked("PHUC_TEST_FAILURE_4", &["1", "0"]).forbidden("PHUC_TEST_FAILURE"));
    assert_eq!(ran.report()["phuc_test_result"]["condition_4_adaptation"], false);
    assert!(ran.detail().contains("iteration 1 repeats iteration 0"), "{}", ran.detail());
}

#[test]
fn a_residual_command_that_was_edited_counts_for_nothing() {
    let count = json!({"command": ["sh", "count.sh"]});
    let case = Case::new().check("a", "true").declare("residual", count).file("count.sh", "echo 5\n");
    let ran = case.solver(0, [sh("echo 'echo 0' > count.sh")]).run();
    check(&ran, &Expect::blocked("INVARIANT_VIOLATION", &["0"]));
    assert!(ran.detail().contains("GATE_TAMPERING"), "{}", ran.detail());
}

#[test]
fn a_check_that_was_weakened_while_red_counts_for_nothing() {
    let case = Case::new().check_argv("a", &["sh", "check.sh"]).file("check.sh", "exit 1\n");
    let ran = case.solver(0, [sh("echo 'test -f x' > check.sh")]).solver(1, [write("x", "1\n")]).run();
    check(&ran, &Expect::blocked("INVARIANT_VIOLATION", &["1", "1"]));
}

#[test]
fn the_product_that_a_check_names_is_not_its_script() {
    let case = Case::new().check_argv("a", &["test", "-f", "a"]).solver(0, [write("a", "1\n")]);
    check(&case.run(), &Expect::exact(&["0"]));
}
