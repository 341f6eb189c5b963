//! STOP by key: at once, in the middle of a call, and nothing is lost.

use std::fs;

use crate::case::Case;
use crate::stage::{Stage, slow};

#[test]
fn stop_in_the_middle_of_a_call_ends_the_run_and_resume_goes_on() {
    let stage = Stage::of(slow(120_000));
    let mut screen = stage.screen(&["run", "--start"]);
    stage.wait_for("llm.requested", 1);
    screen.press("S");
    screen.sees("Stop now?");
    // Enter is too easily pressed to mean yes.
    screen.press("enter");
    screen.press("y");
    screen.sees_end("BLOCKED");
    screen.press("q");
    let end = screen.ends_with(4);
    assert!(end.restored() && end.has("EXIT_BLOCKED (BACKPRESSURE_SIGNAL)"), "{}", end.text);
    assert_eq!(stage.read("scratch/STOP"), "maria (console)\n");
    stage.verify(0);

    // A stop of someone else is not the operator's to take back.
    fs::write(stage.path("scratch/STOP"), "").unwrap();
    let refused = stage.nightloop(&["resume", "--headless"]);
    assert_eq!(refused.code, 75, "{}", refused.stderr);
    fs::write(stage.path("scratch/STOP"), "maria (console)\n").unwrap();
    stage.play(&Case::two_steps());
    stage.nightloop(&["resume", "--headless"]).expect(0);
    assert!(!stage.path("scratch/STOP").exists());
    stage.ended_as("EXIT_CONVERGED", "PASS");
    stage.verify(0);
}
