//! `nightloop demo PLAYBOOK`: whole runs, offline, answered by themselves.

use crate::support::Bench;

#[test]
fn the_demo_ends_with_the_exit_gate_passed() {
    let bench = Bench::new();
    let place = bench.workspace.join("demo");
    let ended = bench.nightloop(&["demo", "value", "--headless", "--into", place.to_str().unwrap()]).expect(0);
    assert!(ended.stdout.contains("EXIT_CONVERGED") && ended.stdout.contains("verified"), "{}", ended.stdout);
    let report = std::fs::read_to_string(place.join("DELIVERY_REPORT.md")).unwrap();
    assert!(report.contains("Delivered") && report.contains("exit gate tried 2 time(s)"), "{report}");
}

/// The author of this demo marks items as done by itself, and is not believed.
#[test]
fn the_prd_demo_ends_with_every_item_passed_by_the_engine() {
    let bench = Bench::new();
    let place = bench.workspace.join("demo");
    let ended = bench.nightloop(&["demo", "prd", "--headless", "--into", place.to_str().unwrap()]).expect(0);
    assert!(ended.stdout.contains("EXIT_CONVERGED") && ended.stdout.contains("verified: chain"), "{}", ended.stdout);
    let read = |name: &str| std::fs::read_to_string(place.join(name)).unwrap();
    assert_eq!(read("prd.json").matches("\"passes\": true").count(), 3);
    let settled: Vec<_> = bench.events().into_iter().filter(|(kind, _)| kind == "item.settled").collect();
    let order: Vec<_> =
        settled.iter().map(|(_, data)| (data["item"].as_str().unwrap(), data["passes"] == true)).collect();
    assert_eq!(order, [("US-001", true), ("US-002", false), ("US-002", true), ("US-003", true)]);
    assert!(read("loop/log.txt").contains("[ERROR]") && read("progress.txt").contains("US-003"));
}

#[test]
fn the_micro_demo_takes_a_detour_and_is_verified() {
    let bench = Bench::new();
    let place = bench.workspace.join("demo");
    let ended = bench.nightloop(&["demo", "micro", "--headless", "--into", place.to_str().unwrap()]).expect(0);
    assert!(ended.stdout.contains("EXIT_CONVERGED") && ended.stdout.contains("verified: chain"), "{}", ended.stdout);
    let routes: Vec<_> = bench.events().into_iter().filter(|(kind, _)| kind == "route.decided").collect();
    let names: Vec<String> = routes.iter().map(|(_, data)| data["route"].to_string()).collect();
    assert_eq!(names, [r#""LOOP""#, r#""LOOP""#, r#"{"DETOUR":"auto-linter"}"#, r#""CONTINUE""#]);
}
