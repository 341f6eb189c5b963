//! `nightloop run --goal … --check …`: a run without a loop.yaml, with a shell script as its agent.

use serde_json::json;

use crate::support::Bench;
use crate::support::case::Ran;

/// Takes one step in each of its turns as solver, and reports in words, as programs without a stream do.
const AGENT: &str = r#"#!/bin/sh
prompt=$(cat)
case $prompt in
*'You are the Scout'*) report='{"plan": ["One more step."]}' ;;
*'You are the Solver'*)
    left=$(cat src/left.c); echo $((left - 1)) > src/left.c
    report='{"intent": "One step.", "actions": ["Took step '"$left"'."]}' ;;
*) report='{"status": "PASS", "succeeded": [], "failed": [], "open_questions": ["What is left of '"$(cat src/left.c)"'?"]}' ;;
esac
printf '```json\n%s\n```\n' "$report"
"#;
const SUITE: &str = "n=$(cat src/left.c); for i in $(seq $n); do echo \"test $i FAILED\"; done; exit $n\n";

fn bench(steps: u32) -> Bench {
    use std::os::unix::fs::PermissionsExt as _;
    let bench =
        Bench::in_memory().file("src/left.c", format!("{steps}\n")).file("suite.sh", SUITE).file("agent.sh", AGENT);
    let agent = bench.workspace.join("agent.sh");
    std::fs::set_permissions(agent, std::fs::Permissions::from_mode(0o755)).unwrap();
    bench
}

const GOAL: [&str; 8] =
    ["run", "--headless", "--goal", "Nothing is left.", "--check", "sh suite.sh", "--agent", "./agent.sh"];

fn text(ran: &Ran, file: &str) -> String {
    std::fs::read_to_string(ran.bench.workspace.join(file)).unwrap_or_default()
}

/// Four steps, one an iteration: the shrinking residual is progress, so that it is no drift.
#[test]
fn a_goal_and_a_check_are_a_loop() {
    let ran = Ran::of(bench(4), &[&GOAL[..], &["--check", "test $(cat src/left.c) = 0"]].concat()).expect(0);
    let report = ran.report();
    assert_eq!(report["halting_certificate"]["type"], "EXACT");
    assert_eq!((&report["iterations_completed"], &report["goal"]), (&json!(4), &json!("Nothing is left.")));
    assert!(ran.ended.stdout.contains("there is no NORTHSTAR.md: one is written"), "{}", ran.ended.stdout);
    assert!(text(&ran, "NORTHSTAR.md").contains("Nothing is left."));
    assert!(!ran.bench.workspace.join("loop.yaml").exists(), "it is written beside the evidence");
    let declared = text(&ran, "evidence/loop/loop.yaml");
    assert!(declared.contains(r#"check: ["sh", "suite.sh"]"#), "{declared}");
    assert!(declared.contains(r#"check: ["sh", "-c", "test $(cat src/left.c) = 0"]"#), "{declared}");
    let ran = ran.verified();
    std::fs::write(ran.bench.workspace.join("evidence/loop/loop.yaml"), declared.replace("suite", "other")).unwrap();
    ran.bench.nightloop(&["verify"]).expect(1);
}

#[test]
fn a_northstar_that_is_there_is_used() {
    let own = "# N\n\n| id | Metric | Current | Target |\n|---|---|---|---|\n| mine | steps left | 2 | 0 |\n";
    let ran = Ran::of(bench(2).file("NORTHSTAR.md", own), &[&GOAL[..], &["--fast"]].concat()).expect(0);
    assert_eq!(text(&ran, "NORTHSTAR.md"), own);
    assert!(!ran.ended.stdout.contains("one is written"), "{}", ran.ended.stdout);
    let report = ran.report();
    assert_eq!(report["northstar_metrics_before"][0]["id"], "mine", "{report}");
    assert!(ran.bench.workspace.join("evidence/loop/budget_reduction.log").exists(), "the fast profile");
    ran.verified();
}

#[test]
fn strict_converges() {
    let ran = Ran::of(bench(2), &[&GOAL[..], &["--strict"]].concat()).expect(0);
    assert_eq!(ran.report()["halting_certificate"]["type"], "CONVERGED");
    ran.verified();
}

/// A scan and an interface make the highest rung; without them nothing starts.
#[test]
fn security_needs_what_its_rung_needs() {
    let security = [&GOAL[..], &["--security"]].concat();
    for (more, said) in [
        (&[] as &[&str], "--security needs a scanner"),
        (&["--scan", "true"], "--security needs a command that prints the public interface"),
    ] {
        let ran = Ran::of(bench(1), &[&security[..], more].concat()).expect(64);
        assert!(ran.ended.stderr.contains(said), "{}", ran.ended.stderr);
        assert!(!ran.bench.workspace.join("evidence").exists() && !ran.bench.workspace.join("NORTHSTAR.md").exists());
    }
    let ran = Ran::of(bench(1), &[&security[..], &["--scan", "echo clean", "--api", "echo fn"]].concat()).expect(0);
    assert_eq!(ran.report()["verification_rung_achieved"], 65537);
    ran.verified();
}

#[test]
fn what_cannot_be_meant_starts_nothing() {
    let refused = |bench: Bench, arguments: &[&str], said: &str| {
        let ran = Ran::of(bench, arguments).expect(64);
        assert!(ran.ended.stderr.contains(said), "{said}: {}", ran.ended.stderr);
        assert!(!ran.bench.workspace.join("evidence").exists());
    };
    refused(bench(1).file("loop.yaml", "goal: x\n"), &GOAL, "loop.yaml exists");
    refused(bench(1), &GOAL[..4], "--check");
    refused(bench(1), &["run", "--headless", "--check", "true"], "--goal");
    refused(bench(1), &[&GOAL[..6], &["--agent", "./no-such"]].concat(), "./no-such: cannot be run");
    refused(bench(1), &[&GOAL[..5], &["echo 'open", "--agent", "./agent.sh"]].concat(), "a quote is not closed");
}
