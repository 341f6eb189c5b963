//! A run that starts without a screen, and two that look at it.

use crate::stage::{Stage, asking, question};

#[test]
fn a_detached_run_is_watched_by_two_and_only_one_may_act() {
    let stage = Stage::of(asking(question()));
    let mut shell = stage.screen(&["run", "--detach"]);
    let end = shell.ends_with(0);
    assert!(end.restored() && end.has("without a screen") && end.has("nightloop attach"), "{}", end.text);
    stage.wait_for("decision.asked", 1);

    let mut looker = stage.screen(&["attach", "--read-only"]);
    looker.wait_for("a console that only looks", |view| view.has("1 waiting") && view.has("read-only"));
    let mut actor = stage.screen(&["attach"]);
    actor.sees("1 waiting");

    for key in ["p", "S", "s", "b"] {
        looker.press(key);
        looker.sees("this console is read-only");
        looker.press("lone-esc");
        looker.wait_for("the message to go", |view| !view.has("this console is read-only"));
    }
    looker.press("i");
    looker.sees("Which colour?");
    looker.press("enter");
    looker.sees("this console is read-only");
    looker.press("esc");
    assert_eq!(stage.count("decision.answered") + stage.count("pause.requested") + stage.count("steer.queued"), 0);
    assert!(!stage.path("scratch/STOP").exists());

    actor.press("i");
    actor.sees("Which colour?");
    // A choice by its number is read once more before it is sent.
    actor.press("2");
    actor.wait_for("the choice in the answer", |view| view.text.matches("green").count() > 1);
    actor.press("enter");
    actor.sees_end("CONVERGED");
    looker.sees_end("CONVERGED");
    for screen in [&mut actor, &mut looker] {
        screen.press("esc q");
        assert!(screen.ends_with(0).restored());
    }
    stage.wait_for_end();
    assert_eq!(stage.all("decision.answered")[0]["answer"]["text"], "green");
    let mut viewers: Vec<bool> =
        stage.all("viewer.attached").iter().map(|viewer| viewer["may_act"].as_bool().unwrap()).collect();
    viewers.sort_unstable();
    assert_eq!(viewers, [false, true]);
    stage.verify(0);
}

#[test]
fn the_bare_command_finds_the_run_of_its_directory() {
    let stage = Stage::of(asking(question()));
    stage.nightloop(&["run", "--detach"]).expect(0);
    stage.wait_for("decision.asked", 1);
    let mut screen = stage.screen(&[]);
    screen.wait_for("the console over that run", |view| view.has("1 waiting") && view.has("attached"));
    // Leaving an attached console leaves the run.
    screen.press("d");
    let end = screen.ends_with(0);
    assert!(end.restored() && end.has("is still running"), "{}", end.text);
    stage.verify(2);
    stage.nightloop(&["answer", "d1", "blue"]).expect(0);
    stage.wait_for_end();
    stage.ended_as("EXIT_CONVERGED", "PASS");
    stage.verify(0);
}
