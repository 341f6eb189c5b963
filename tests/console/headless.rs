//! A question that nobody is there to answer: the run stops, says what it needs, and goes on after an answer.

use crate::stage::{Stage, asking, question};

#[test]
fn a_question_stops_a_headless_run_until_it_is_answered() {
    let stage = Stage::of(asking(question()));
    let ended = stage.nightloop(&["run", "--headless"]).expect(3);
    assert!(ended.stdout.contains("d1 waits for you (question): Which colour?"), "{}", ended.stdout);
    let brief = stage.read("evidence/loop/inbox.md");
    assert!(brief.contains("## d1 question") && brief.contains("> Which colour?"), "{brief}");
    assert!(brief.contains("nightloop answer d1"), "{brief}");
    stage.verify(0);

    // Without an answer there is nothing new: it stops at the same place.
    stage.nightloop(&["resume"]).expect(3);
    stage.verify(0);

    let answered = stage.nightloop(&["answer", "d1", "text", "of", "mine"]).expect(0);
    assert!(answered.stdout.contains("`nightloop resume` continues the run"), "{}", answered.stdout);
    let verified = stage.nightloop(&["verify"]);
    assert!(matches!(verified.code, 0 | 2), "{}", verified.stdout);
    stage.nightloop(&["resume"]).expect(0);
    stage.ended_as("EXIT_CONVERGED", "PASS");
    assert!(stage.told_agents().contains("The operator answers: text of mine"), "{}", stage.told_agents());
    assert_eq!(stage.read("evidence/loop/inbox.md"), "# Nothing waits for a person\n");
    stage.verify(0);
}
