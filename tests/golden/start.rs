//! Before the first iteration: what is met already, and a stop that is asked for already.

use std::os::unix::fs::symlink;

use serde_json::json;

use crate::case::{Case, overlays, write};
use crate::support::case::Ran;

#[test]
fn what_is_met_already_starts_nothing() {
    let green = || Case::new().check("a", "test -f a").check("b", "test -f b").file("a", "").file("b", "");
    let ran = green().run().expect(0);
    assert!(ran.ended.stdout.contains("Already met: 2 of 2 checks are green; nothing to do."), "{}", ran.ended.stdout);
    assert!(!ran.bench.workspace.join("evidence").exists() && !ran.bench.workspace.join("AGENTS.md").exists());
    let told = Ran::of(ran.bench, &["run", "--json"]).expect(0);
    let line: serde_json::Value = serde_json::from_str(&told.ended.stdout).unwrap();
    assert_eq!(line["type"], "already_met");
    let anyway = Ran::of(told.bench, &["run", "--headless", "--anyway"]);
    assert_eq!(anyway.report()["iterations_completed"], 1, "{}", anyway.ended.stdout);
}

#[test]
fn what_is_judged_or_measured_otherwise_is_not_met_already() {
    for case in [
        Case::new().check("a", "test -f a").file("a", "").judged("doc"),
        Case::new().check("a", "test -f a").file("a", "").residuals(&["0"]),
        Case::new().check("a", "test -f a").check("b", "test -f b").file("a", "").solver(0, [write("b", "1\n")]),
    ] {
        let ran = case.declare("budget", json!({"max_iterations": 3})).run();
        assert!(ran.bench.workspace.join("evidence").exists(), "{}", ran.ended.stdout);
    }
}

/// A stop from before the start is the run's end, with its report; a link to nothing says stop as well.
#[test]
fn a_stop_from_before_the_start_is_reported() {
    for dangling in [false, true] {
        let bench = Case::two_steps().written();
        std::fs::create_dir_all(bench.workspace.join("scratch")).unwrap();
        let stop = bench.workspace.join("scratch/STOP");
        if dangling {
            symlink("nowhere", &stop).unwrap()
        } else {
            std::fs::write(&stop, "").unwrap()
        }
        let ran = Ran::of(bench, &["run", "--headless"]).expect(4);
        let report = ran.report();
        assert_eq!((&report["status"], &report["iterations_completed"]), (&json!("EXIT_BLOCKED"), &json!(0)));
        assert_eq!(report["stop_reason"], "BACKPRESSURE_SIGNAL");
        assert!(ran.events("llm.requested").is_empty(), "something was spent");
        ran.verified();
    }
}

/// The looks before the start leave the workspace alone, where an overlay can be had.
#[test]
fn the_checks_before_the_start_write_nothing() {
    if !overlays() {
        return;
    }
    let case = Case::new().check("a", "echo x > written-by-check && test -f a").check("b", "test -f written-by-check");
    let ran = case.file("a", "").run().expect(0);
    assert!(ran.ended.stdout.contains("Already met: 2 of 2"), "checks share what they write: {}", ran.ended.stdout);
    assert!(!ran.bench.workspace.join("written-by-check").exists());
    let left = std::fs::read_dir(&ran.bench.state).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with("checks-")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A check that passes on nothing at all is named before the first iteration, and in the report.
#[test]
fn a_check_that_passes_in_an_empty_workspace_is_named() {
    if !overlays() {
        return;
    }
    let case = Case::new().check("idle", "true").check("a", "test -f a").solver(0, [write("a", "1\n")]);
    let ran = case.run().expect(0);
    let said = "check `idle` passes in an empty workspace: it proves nothing by itself";
    let out = &ran.ended.stdout;
    let (named, began) = (out.find(said).unwrap(), out.find("iteration 0 begins").unwrap());
    assert!(named < began, "{out}");
    assert_eq!(ran.report()["checks_that_prove_nothing"], json!(["idle"]));
    assert!(out[began..].contains(said), "not in the summary: {out}");
    assert!(!out.contains("`a` passes in an empty workspace"), "{out}");
    let ran = ran.verified();
    assert!(ran.bench.nightloop(&["verify"]).stdout.contains(said));
}

/// What does not stop a loop, but stands in its way, is a note at the start.
#[test]
fn an_obstacle_is_a_note() {
    let arrived = "# N\n\n| id | Metric | Current | Target |\n|---|---|---|---|\n| vc-1 | steps | 100 | 100 |\n";
    let ran = Case::two_steps().file("NORTHSTAR.md", arrived).run();
    let note = "`vc-1` is at its target already (100, target 100)";
    assert!(ran.ended.stdout.contains(&format!("note: {note}")), "{}", ran.ended.stdout);
    assert!(ran.events("run.started")[0]["warnings"].to_string().contains(note));
}
