//! `nightloop report` over whole runs: each form says the same, and numbers are those of the record.

use std::fs;

use serde_json::{Value, json};

use crate::case::{Case, Ran, sh, write};
use crate::support::Ended;

fn report(ran: &Ran, more: &[&str]) -> Ended {
    let arguments: Vec<&str> = ["report"].into_iter().chain(more.iter().copied()).collect();
    ran.bench.nightloop(&arguments)
}

#[test]
fn a_proven_night_in_four_forms() {
    let ran = Case::two_steps().run();
    let json: Value = serde_json::from_str(&report(&ran, &["--json"]).expect(0).stdout).unwrap();
    assert_eq!(json["verdict"]["status"], "EXIT_CONVERGED");
    assert_eq!(json["verdict"]["good"], true);
    assert_eq!(json["verdict"]["certificate"], "EXACT");
    assert_eq!(json["newly"]["passing"], json!(["a", "b"]));
    assert_eq!(json["changes"]["added"].as_u64().unwrap() as usize, json["changes"]["files"].as_array().unwrap().len());
    let status: Value = serde_json::from_str(&ran.bench.nightloop(&["status", "--json"]).expect(0).stdout).unwrap();
    let spent = &status["spent"];
    assert_eq!(json["money"]["requests"], spent["requests"]);
    assert_eq!(json["iterations"], spent["iterations"]);

    let shown = report(&ran, &[]).expect(0).stdout;
    assert!(shown.contains("Proven. 2 of 2 criteria met."), "{shown}");
    assert!(shown.contains("now green, red at the start: a, b"), "{shown}");
    for line in shown.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    report(&ran, &["--md", "night.md", "--html", "night.html"]).expect(0);
    let page = fs::read_to_string(ran.bench.workspace.join("night.html")).unwrap();
    assert!(page.contains("Proven. 2 of 2 criteria met.") && page.ends_with("</html>\n"), "{page}");
    let page = fs::read_to_string(ran.bench.workspace.join("night.md")).unwrap();
    assert!(page.contains("**Proven. 2 of 2 criteria met.**"), "{page}");
    let refused = report(&ran, &["--md", "night.md"]).expect(64);
    assert!(refused.stderr.contains("not overwritten"), "{}", refused.stderr);
}

/// A night that came to nothing reads honestly, and one's own STOP is no failure.
#[test]
fn bad_nights_are_told_plainly() {
    let spent = Case::new()
        .check("never", "false")
        .solver(0, [write("x", "1\n")])
        .declare("budget", json!({"max_iterations": 1}))
        .run();
    let json: Value = serde_json::from_str(&report(&spent, &["--json"]).expect(0).stdout).unwrap();
    assert_eq!(json["verdict"]["good"], Value::Null, "{}", json["verdict"]);
    assert!(json["verdict"]["words"].as_str().unwrap().starts_with("Not finished:"), "{}", json["verdict"]);
    assert_eq!(json["criteria"][0]["met"], false);

    let stop = Case::new().check("never", "false").solver(0, [sh("mkdir -p scratch && touch scratch/STOP")]).run();
    let shown = report(&stop, &[]).expect(0).stdout;
    assert!(shown.contains("Stopped as you asked. Nothing is lost; `nightloop resume`"), "{shown}");
}

#[test]
fn the_run_before_is_compared_with() {
    let first = Case::two_steps().run();
    let bench = first.bench;
    fs::remove_file(bench.workspace.join("a")).unwrap();
    let again = bench.nightloop(&["run", "--headless"]);
    assert_ne!(again.code, 64, "{}", again.stderr);
    let json: Value = serde_json::from_str(&bench.nightloop(&["report", "--json"]).expect(0).stdout).unwrap();
    assert!(json["newly"]["failing_since_last_run"].is_array(), "{}", json["newly"]);
}
