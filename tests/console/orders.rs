//! Orders from the command line to a run that a console shows.

use serde_json::json;

use crate::case::{solver_report, write};
use crate::stage::{Stage, asking, question};

#[test]
fn what_is_ordered_elsewhere_is_seen_in_the_console() {
    let work = json!([
        {"delay_ms": 1_500, "calls": [write("a", "1\n")]},
        {"calls": [write("src/metric", "1\n"), solver_report("Attempt 0.")]},
    ]);
    let stage = Stage::of(asking(question()).turns("solver", 0, work));
    let mut screen = stage.screen(&["run", "--start"]);
    screen.sees("1 waiting");

    let inbox = stage.nightloop(&["inbox"]).expect(0).stdout;
    assert!(inbox.contains("d1 question (open)") && inbox.contains("Which colour?"), "{inbox}");
    assert!(inbox.contains("nightloop answer d1"), "{inbox}");
    let wrong = stage.nightloop(&["answer", "d2", "blue"]);
    assert_eq!(wrong.code, 64, "{}", wrong.stderr);
    let answered = stage.nightloop(&["answer", "d1", "blue"]).expect(0).stdout;
    assert!(answered.contains("d1 answered: text"), "{answered}");
    screen.wait_for("nothing to wait any more", |view| !view.has("1 waiting"));
    assert_eq!(stage.nightloop(&["inbox"]).expect(0).stdout, "nothing is waiting for you\n");

    // In the middle of the solver's first reply.
    stage.wait_for("llm.requested", 3);
    let paused = stage.nightloop(&["pause"]).expect(0).stdout;
    assert!(paused.contains("the run will pause after this step"), "{paused}");
    screen.sees("pausing after this step");
    screen.sees("PAUSED");
    let again = stage.nightloop(&["pause"]);
    assert!(again.code == 64 && again.stderr.contains("already paused"), "{}", again.stderr);

    let queued = stage.nightloop(&["steer", "mind", "the", "gap"]).expect(0).stdout;
    assert!(queued.contains("message 1 is queued"), "{queued}");
    screen.press("s");
    screen.wait_for("the word to be queued", |view| view.has("queued  mind the gap"));
    let lifted = stage.nightloop(&["pause", "--off"]).expect(0).stdout;
    assert!(lifted.contains("the run continues"), "{lifted}");
    screen.sees("acknowledged by");
    screen.press("esc");
    screen.sees_end("CONVERGED");
    screen.press("q");
    screen.ends_with(0);
    stage.verify(0);
    let words = &stage.bench.evidence("decisions.json")["words"][0];
    assert_eq!((&words["text"], &words["status"]), (&json!("mind the gap"), &json!("acknowledged")));
    assert_eq!(words["by"].as_str().map(|by| by.starts_with("maria (command line)")), Some(true), "{words}");
}
