//! `nightloop demo value`: a whole run, offline, answered by itself.

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
