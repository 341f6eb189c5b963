//! Every limit, enforced inside an iteration, named in the report and in AGENTS.md.

use serde_json::{Value, json};

use crate::case::{Case, Ran, call, no_survivor, sh, write};
use crate::sealed::{Expect, check};

fn unmet(budget: Value) -> Case {
    Case::new().check("never", "false").declare("budget", budget)
}

/// The limit is named in AGENTS.md together with who was cut.
#[track_caller]
fn cut_is_told(ran: &Ran, fact: &str) {
    let text = ran.agents_md();
    assert!(text.contains(&format!("[A] budget reached: {fact}")), "{text}");
    assert!(text.contains("[A] solver cut: "), "{text}");
}

#[test]
fn the_last_iteration_is_a_timeout_and_three_are_the_least() {
    let ran = unmet(json!({"max_iterations": 1})).run();
    check(&ran, &Expect::budget("iterations", &["1", "1", "1"]));
    assert!(ran.text("evidence/loop/iter_2/agents_md_entry.md").contains("- certificate: TIMEOUT\n"));
    assert_eq!(ran.bench.evidence("iter_1/certificate.json")["type"], "NONE");
    let clamps = &ran.bench.evidence("budget_log.json")["clamps"];
    assert_eq!(clamps, &json!([{"limit": "max_iterations", "requested": 1, "used": 3}]));
    assert_eq!(ran.exit()["best_result_achieved"]["residual"], "1");
}

#[test]
fn the_time_of_the_run_cuts_a_tool_and_leaves_no_process() {
    let ran = unmet(json!({"max_total_seconds": 4})).solver(0, [sh("sleep 300 & sleep 301")]).run();
    check(&ran, &Expect::budget("total_seconds", &["1"]));
    cut_is_told(&ran, "total_seconds ");
    assert_eq!(ran.report()["budget_limit"], "4");
    no_survivor(&ran);
    let finished = ran.events("tool.finished");
    assert_eq!(finished.iter().filter(|data| data["outcome"] == "cancelled").count(), 1);
}

#[test]
fn tool_calls_of_the_run_are_counted_one_by_one() {
    let ran =
        unmet(json!({"max_total_tool_calls": 5})).solver(0, [sh("true"), sh("true"), sh("true"), sh("true")]).run();
    check(&ran, &Expect::budget("total_tool_calls", &["1"]));
    cut_is_told(&ran, "total_tool_calls 5 of 5");
    assert_eq!(ran.events("tool.intended").len(), 5);
}

/// A solver that spends in its first turn and would go on in a second one.
fn spender(case: Case, usage: Value) -> Case {
    let turns = json!([
        {"calls": [write("src/metric", "1\n")], "usage": usage},
        {"calls": [write("src/metric", "2\n")]},
    ]);
    let mut scout = case.default_turns("scout", 0);
    scout[0]["usage"] = json!({"input": 1_000, "output": 100});
    case.turns("scout", 0, scout).turns("solver", 0, turns)
}

#[test]
fn tokens_are_reserved_before_they_are_spent() {
    let case = spender(unmet(json!({"max_total_tokens": 50_000})), json!({"input": 48_000, "output": 900}));
    let ran = case.run();
    check(&ran, &Expect::budget("total_tokens", &["1"]));
    cut_is_told(&ran, "total_tokens ");
    // 1,100 and 48,900: the limit is exactly reached, and nothing that the last reply asked for is done.
    assert_eq!(ran.report()["budget_observed"], "50000");
    assert_eq!((ran.intended("write_file"), ran.events("llm.requested").len()), (0, 2));
}

#[test]
fn a_call_that_cannot_fit_the_tokens_left_is_not_made() {
    let case = spender(unmet(json!({"max_total_tokens": 50_000})), json!({"input": 48_000, "output": 800}));
    let ran = case.run();
    check(&ran, &Expect::budget("total_tokens", &["1"]));
    cut_is_told(&ran, "total_tokens ");
    assert_eq!((ran.text("src/metric").as_str(), ran.events("llm.requested").len()), ("1\n", 2));
}

#[test]
fn cost_is_counted_in_exact_decimals() {
    let price = json!({"backend": "rehearsal", "script": "rehearsal.yaml", "price": {"input": "3", "output": "15"}});
    let case = unmet(json!({"max_cost_usd": "0.60"})).declare("agents", json!({"model": price}));
    let ran = spender(case, json!({"input": 100_000, "output": 20_000})).run();
    check(&ran, &Expect::budget("cost_usd", &["1"]));
    cut_is_told(&ran, "cost_usd 0.6045 of 0.6");
    let report = ran.report();
    assert_eq!((&report["budget_observed"], &report["budget_limit"]), (&json!("0.6045"), &json!("0.6")));
    assert_eq!(ran.bench.evidence("budget_log.json")["total"]["cost_usd"], "0.6045");
}

#[test]
fn a_money_limit_without_a_price_is_refused() {
    let ran = unmet(json!({"max_cost_usd": "1"})).run();
    assert_eq!(ran.ended.code, 64);
    assert!(ran.ended.stderr.contains("price"), "{}", ran.ended.stderr);
    assert!(!ran.bench.workspace.join("evidence").exists());
}

#[test]
fn a_goal_that_is_reached_with_the_last_call_is_reached() {
    let case = Case::new().check("a", "test -f a").solver(0, [write("a", "1\n")]);
    let ran = case.declare("budget", json!({"max_total_tool_calls": 5})).run();
    check(&ran, &Expect::exact(&["0"]));
    assert_eq!(ran.events("tool.intended").len(), 5);
}

#[test]
fn tool_calls_of_an_iteration_end_the_agent_and_not_the_run() {
    let look = || call("glob_search", json!({"pattern": "*.md"}));
    let case = Case::two_steps().declare("budget", json!({"max_tool_calls_per_iteration": 1}));
    let ran = case.solver(0, [(); 45].map(|()| look())).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    cut_is_told(&ran, "iteration_tool_calls 40 of 40");
    let intended = ran.events("tool.intended");
    let first = intended.iter().filter(|data| data["call"].as_str().unwrap().starts_with("it0."));
    assert_eq!(first.count(), 40);
}

#[test]
fn the_time_of_the_run_bounds_its_checks() {
    let case = Case::new().check("slow", "test -f src/metric || exit 1; sleep 20");
    let ran = case.declare("budget", json!({"max_total_seconds": 3})).run();
    check(&ran, &Expect::budget("total_seconds", &["1"]));
}
