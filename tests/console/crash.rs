//! An engine that is killed while a person is asked, or between the answer and what it asks for.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::case::Case;
use crate::stage::{Stage, asking, eventually, kill, question};

#[test]
fn a_decision_outlives_its_engine() {
    let stage = Stage::of(asking(question()));
    stage.nightloop(&["run", "--detach"]).expect(0);
    stage.wait_for("decision.asked", 1);
    for round in 1..=2 {
        kill(stage.engine(), Signal::KILL);
        stage.wait_for_end();
        stage.verify(2);
        stage.nightloop(&["resume", "--detach"]).expect(0);
        stage.wait_for("run.resumed", round);
    }
    let inbox = stage.nightloop(&["inbox"]).expect(0).stdout;
    assert!(inbox.contains("d1 question (open)"), "{inbox}");
    let mut screen = stage.screen(&["attach"]);
    screen.sees("1 waiting");
    stage.nightloop(&["answer", "d1", "blue"]).expect(0);
    screen.sees_end("CONVERGED");
    screen.press("q");
    screen.ends_with(0);
    stage.wait_for_end();
    stage.ended_as("EXIT_CONVERGED", "PASS");
    assert_eq!(stage.count("decision.asked"), 1, "it was asked once and for all");
    stage.verify(0);
}

#[test]
fn an_answer_that_was_given_offline_counts() {
    let stage = Stage::of(asking(question()));
    stage.nightloop(&["run", "--detach"]).expect(0);
    stage.wait_for("decision.asked", 1);
    kill(stage.engine(), Signal::KILL);
    stage.wait_for_end();
    stage.nightloop(&["answer", "d1", "blue"]).expect(0);
    stage.verify(2);
    stage.nightloop(&["resume", "--detach"]).expect(0);
    stage.wait_for_end();
    stage.ended_as("EXIT_CONVERGED", "PASS");
    stage.verify(0);
}

fn proposing() -> Case {
    let request =
        json!({"kind": "document", "text": "It lacks a rule.", "path": "PRD.md", "content": "# PRD\n\nMore.\n"});
    asking(request).file("PRD.md", "# PRD\n")
}

/// The number of an event in the journal.
fn number(stage: &Stage, kind: &str) -> u64 {
    let journal = stage.bench.run_dir().join("journal");
    let mut found = None;
    for segment in std::fs::read_dir(journal).unwrap() {
        for line in std::fs::read_to_string(segment.unwrap().path()).unwrap_or_default().lines() {
            let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
            if event["type"] == kind {
                found = event["seq"].as_u64();
            }
        }
    }
    found.unwrap()
}

#[test]
fn an_engine_that_dies_between_an_answer_and_its_doing_does_it_afterwards() {
    // Once undisturbed, to learn which event is the answer.
    let model = Stage::of(proposing());
    model.nightloop(&["run", "--detach"]).expect(0);
    model.wait_for("decision.asked", 1);
    model.nightloop(&["answer", "d1", "approve"]).expect(0);
    model.wait_for_end();
    model.verify(0);
    let plan = format!("after_sync:{}", number(&model, "decision.answered"));

    let stage = Stage::of(proposing());
    stage.nightloop_with(&["run", "--detach"], &[("NIGHTLOOP_CRASH", &plan)]).expect(0);
    stage.wait_for("decision.asked", 1);
    // The receipt dies with the engine; the answer does not.
    let _ = stage.nightloop(&["answer", "d1", "approve"]);
    stage.wait_for_end();
    assert_eq!((stage.count("decision.answered"), stage.count("decision.settled")), (1, 0));
    assert_eq!(stage.read("PRD.md"), "# PRD\n");
    stage.verify(2);
    stage.nightloop(&["resume", "--detach"]).expect(0);
    eventually("the document to be written", || stage.read("PRD.md") == "# PRD\n\nMore.\n");
    stage.wait_for_end();
    stage.ended_as("EXIT_CONVERGED", "PASS");
    assert_eq!(stage.count("decision.settled"), 1);
    stage.verify(0);
}
