//! The demo of the value playbook by keys, from the vision to a passed exit gate.

use std::fs;
use std::path::Path;

use crate::screen::Screen;
use crate::stage::{SMALL, Stage, WIDE};

fn asset(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/demo/value").join(name)).unwrap()
}

const DEMO: &[&str] = &["demo", "value", "--into", ".", "--speed", "20"];

/// Acknowledges what is known about the vision.
fn acknowledge(stage: &Stage, screen: &mut Screen) {
    let waiting = screen.sees("waiting for you: d1 [gate 2 of 16");
    assert!(waiting.text.lines().next().is_some_and(|header| header.contains("gate 2 of 16")), "{}", waiting.text);
    screen.press("i");
    screen.sees("SOFT");
    screen.press("a");
    stage.wait_for("decision.asked", 2);
    screen.press("esc");
    screen.sees("waiting for you: d2 [gate 5 of 16");
}

/// Does what only a person can do, after saying so too early.
fn keep_notes_in_a_file(stage: &Stage, screen: &mut Screen) {
    screen.sees("waiting for you: d3 [INTERACTIVE_PAUSE]");
    screen.press("i");
    screen.sees("Say where notes are kept.");
    screen.press("a");
    screen.sees("not yet");
    stage.write("notes.conf", "NOTES_FILE=my-notes.txt\n");
    screen.press("a");
    stage.wait_for("decision.settled", 3);
    screen.press("esc");
}

fn ends_well(stage: &Stage, mut screen: Screen) {
    screen.sees_end("CONVERGED");
    let plan = screen.show_pane("4");
    assert!(plan.has("6 of 6 tasks done") && plan.has("value 1"), "{}", plan.text);
    screen.press("q");
    let end = screen.ends_with(0);
    assert!(end.restored() && end.has("verified: chain, decisions and files agree"), "{}", end.text);
    stage.ended_as("EXIT_CONVERGED", "PASS");
    // The first judge finds a gap, the second none.
    let gates = stage.all("step.began").into_iter().filter(|step| step["action"] == "exit_gate");
    assert_eq!(gates.count(), 2);
    let answers = stage.all("decision.answered");
    assert!(answers.iter().all(|answered| answered["by"] == "maria (console)"), "{answers:?}");
    stage.verify(0);
}

#[test]
fn the_value_demo_goes_by_keys_from_the_vision_to_the_exit_gate() {
    let stage = Stage::empty();
    let mut screen = stage.open(DEMO, WIDE, &[]);
    acknowledge(&stage, &mut screen);
    screen.press("i");
    screen.sees("2 changes, 2 taken");
    screen.press("a");
    stage.wait_for("decision.settled", 1);
    assert_ne!(stage.read("PRD.md"), asset("PRD.md"));
    screen.press("esc");
    keep_notes_in_a_file(&stage, &mut screen);
    ends_well(&stage, screen);
    assert!(stage.read("PRD.md").contains("Out of scope"), "{}", stage.read("PRD.md"));
}

#[test]
fn only_the_changes_of_the_prd_that_were_taken_are_written() {
    let stage = Stage::empty();
    let mut screen = stage.open(DEMO, SMALL, &[]);
    acknowledge(&stage, &mut screen);
    screen.press("i");
    screen.sees("2 changes, 2 taken");
    screen.press("down space");
    // The count above has scrolled away at this height; the key says it, too.
    screen.sees("approve 1 of 2");
    screen.press("a");
    stage.wait_for("decision.settled", 1);
    let written = stage.read("PRD.md");
    assert!(written.contains("a plain file on this machine") && !written.contains("Out of scope"), "{written}");
    screen.press("esc");
    keep_notes_in_a_file(&stage, &mut screen);
    ends_well(&stage, screen);
}
