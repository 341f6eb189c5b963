//! Permissions: refused, told, and the run goes on.

use serde_json::json;

use crate::case::{Case, Ran, call, no_survivor, sh, solver_report, write};
use crate::sealed::{Expect, check};

/// What the agents were told about refused calls.
fn told(ran: &Ran) -> Vec<String> {
    let refused = ran.events("tool.finished").into_iter().filter(|data| data["outcome"] == "refused");
    refused.map(|data| data["text"]["inline"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_denied_command_does_not_run_and_the_agent_hears_why() {
    let rules = json!({"deny": ["shell(rm *)"], "ask": ["shell(git push*)"], "allow": ["shell(*)"]});
    let case = Case::two_steps().declare("permissions", rules).file("keep", "1\n");
    // Each in a message of its own: what follows a refused call in the same message is not executed.
    let first = json!({"calls": [write("src/metric", "1\n"), write("a", "1\n"), sh("true && rm keep")]});
    let second = json!({"calls": [sh("git push origin main")]});
    let third = json!({"calls": [sh("touch fine"), solver_report("Attempt 0.")]});
    let ran = case.turns("solver", 0, json!([first, second, third])).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let told = told(&ran);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("Not permitted: deny shell(rm *)"), "{told:?}");
    assert!(told[1].contains("nobody is there to answer"), "{told:?}");
    assert!(ran.bench.workspace.join("keep").exists() && ran.bench.workspace.join("fine").exists());
}

#[test]
fn a_denied_file_is_not_written() {
    let case = Case::two_steps().declare("permissions", json!({"deny": ["write(secret/*)"]}));
    let ran = case.solver(0, [write("secret/key", "1\n")]).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    assert!(told(&ran)[0].contains("deny write(secret/*)"));
    assert!(!ran.bench.workspace.join("secret").exists());
}

#[test]
fn reading_roles_have_no_tool_that_writes() {
    let scout = json!([{"calls": [write("sneaky", "1\n"), call("submit_scout_report", json!({"plan": ["A."]}))]}]);
    let ran = Case::two_steps().turns("scout", 0, scout).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    assert!(!ran.bench.workspace.join("sneaky").exists());
}

#[test]
fn a_report_that_does_not_fit_is_sent_back() {
    let good = Case::two_steps().default_turns("solver", 0);
    let bad = json!({"calls": [call("submit_solver_report", json!({"intent": "x", "actions": []}))]});
    let ran = Case::two_steps().turns("solver", 0, json!([bad, good[0]])).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    assert!(told(&ran)[0].contains("`actions` is empty"), "{:?}", told(&ran));
}

#[test]
fn what_a_tool_leaves_running_does_not_outlive_the_run() {
    let ran = Case::two_steps().solver(0, [sh("setsid sleep 302 >/dev/null 2>&1 & echo started")]).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    no_survivor(&ran);
}
