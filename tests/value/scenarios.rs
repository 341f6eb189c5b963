//! The seven end-to-end scenarios: each ends with proof, or with a recorded reason.

use serde_json::json;

use crate::case::{Case, call, complete, done, turns, write};

#[test]
fn simple_greenfield() {
    let ran = Case::new().run().expect(0).verified();
    assert_eq!(ran.halted()["status"], "EXIT_CONVERGED");
    assert_eq!(ran.events("vrc.taken").last().unwrap()["vrc"]["value_score"], "1");
    let report = ran.text("DELIVERY_REPORT.md");
    assert!(report.contains("Delivered") && report.contains("unit/one: passed"), "{report}");
    assert!(ran.text("IMPLEMENTATION_PLAN.md").contains("- [x] **T2**"));
    assert!(ran.work().contains(&"exit_gate".to_owned()), "{:?}", ran.work());
}

#[test]
fn a_person_is_needed_in_the_middle() {
    let ask = call(
        "request_human_action",
        json!({
            "action": "Get the key.",
            "instructions": "Put the key into key.txt.",
            "blocked_task_id": "T2",
            "verification_command": ["test", "-s", "key.txt"],
        }),
    );
    let ran = Case::new()
        .on_subject_nth("execute", "T2", 1, turns(&[&[ask]]))
        .on_subject_nth("execute", "T2", 2, turns(&[&[write("two.txt", "two\n")], &[complete("T2")]]))
        .run()
        .expect(3);
    assert!(ran.bench.nightloop(&["inbox"]).stdout.contains("Put the key into key.txt."));
    // Saying so is not doing so.
    let ran = ran.answer(&["d1", "done"]).expect(3);
    std::fs::write(ran.bench.workspace.join("key.txt"), "k\n").unwrap();
    let ran = ran.answer(&["d1", "done"]).expect(0).verified();
    assert_eq!(ran.events("decision.asked").len(), 1);
}

#[test]
fn a_budget_that_runs_out_is_partial() {
    // The exit gate never gets enough, so the safety valve ends the run: partial, never success.
    let gap = json!([{"id": "g", "description": "Not good enough.", "severity": "degraded"}]);
    let ran =
        Case::new().on("exit_gate", turns(&[&[crate::case::vrc("0.9", "SHIP_READY", gap)]])).run().expect(2).verified();
    assert_eq!(ran.halted()["status"], "EXIT_BUDGET_EXCEEDED");
    assert!(ran.text("DELIVERY_REPORT.md").contains("Partial"));
    let _ = done;
}
