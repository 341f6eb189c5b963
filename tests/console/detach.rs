//! Leaving the console while a call is in flight: the shell has its prompt back, and the run goes on.

use crate::stage::{Stage, asking_after, question};

#[test]
fn a_run_goes_on_without_its_screen_and_is_answered_from_another() {
    let stage = Stage::of(asking_after(1_500, question()));
    let mut screen = stage.screen(&["run", "--start"]);
    stage.wait_for("llm.requested", 1);
    screen.press("d");
    let end = screen.ends_with(0);
    assert!(end.restored() && screen.has_old_mode(), "{}", end.text);
    assert!(end.has("continues without a screen") && end.has("nightloop attach"), "{}", end.text);
    assert_eq!(stage.count("decision.asked"), 0, "it was meant to leave during the call");

    let mut second = stage.screen(&["attach"]);
    second.sees("1 waiting");
    second.press("i");
    second.sees("Which colour?");
    second.press("enter");
    second.sees("enter");
    second.enter_text("red, please");
    second.sees("red, please");
    second.press("enter");
    second.sees_end("CONVERGED");
    second.press("esc q");
    second.ends_with(0);
    stage.wait_for_end();
    let answered = &stage.all("decision.answered")[0];
    assert_eq!(answered["answer"]["text"], "red, please");
    assert!(answered["by"].as_str().unwrap().starts_with("maria (attached)"), "{answered}");
    assert!(stage.told_agents().contains("The operator answers: red, please"), "{}", stage.told_agents());
    stage.verify(0);
}
