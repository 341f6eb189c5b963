//! The demo, from the ready screen to a verified end, by keys.

use std::fs;
use std::path::Path;

use crate::screen::Screen;
use crate::stage::{SMALL, Stage, WIDE};
use crate::support::copy_tree;

const TITLES: &str = "Hello, World!\nTen  Things\n";
const RULES: &str = "4. Blanks at the ends leave no dash.\n5. A title with nothing in it is an error: exit code 2.\n";

fn asset(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/demo/swarm").join(name)).unwrap()
}

/// The demo's own loop, with a model that hardly thinks.
fn quick_demo() -> Stage {
    let stage = Stage::empty();
    copy_tree(&Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/demo/swarm"), &stage.bench.workspace);
    let mut script = String::new();
    for line in stage.read("rehearsal.yaml").lines() {
        let quicker = match line.split_once("delay_ms: ") {
            Some((before, millis)) => format!("{before}delay_ms: {}", millis.parse::<u64>().unwrap() / 20),
            None => line.replace("retry_after: 4", "retry_after: 1"),
        };
        script.push_str(&quicker);
        script.push('\n');
    }
    stage.write("rehearsal.yaml", &script);
    stage
}

#[test]
fn the_demo_goes_by_keys_from_ready_to_a_verified_end() {
    let stage = quick_demo();
    let mut screen = stage.screen(&["run"]);
    screen.sees("Nothing has been spent.");
    assert!(!stage.bench.state.join("runs").exists(), "a run before the start");
    screen.press("enter");
    screen.sees("d1 waits for you");
    screen.press("i");
    screen.sees("2 changes, 2 taken");
    screen.press("a");
    stage.wait_for("decision.settled", 1);
    screen.wait_for("the proposal to be closed", |view| !view.has("waiting for you,"));
    screen.press("esc");
    screen.sees("d2 waits for you");
    screen.press("i");
    screen.sees("Put at least two real titles into titles.txt");
    screen.press("a");
    screen.sees("not yet");
    assert_eq!(stage.all("decision.settled")[1]["closed"], false);
    stage.write("titles.txt", TITLES);
    screen.press("a");
    screen.sees_end("CONVERGED");
    screen.press("esc q");
    let end = screen.ends_with(0);
    assert!(end.restored() && end.has("EXIT_CONVERGED (PASS)"), "{}", end.text);
    assert!(end.has("check it: nightloop verify"), "{}", end.text);
    stage.verify(0);
    stage.nightloop(&["verify", "--replay"]).expect(0);
    let expected =
        asset("PRD.md").replace("3. Punctuation disappears.\n", &format!("3. Punctuation disappears.\n{RULES}"));
    assert_eq!(stage.read("PRD.md"), format!("{expected}- Emoji.\n"));
    let answers = stage.all("decision.answered");
    assert!(answers.iter().all(|answered| answered["by"] == "maria (console)"), "{answers:?}");
}

/// From the second decision to the end, without the console.
fn finish(stage: &Stage, mut screen: Screen) {
    stage.wait_for("decision.asked", 2);
    stage.write("titles.txt", TITLES);
    stage.nightloop(&["answer", "d2", "done"]).expect(0);
    screen.sees_end("CONVERGED");
    screen.press("esc q");
    screen.ends_with(0);
    stage.verify(0);
}

fn demo_at_the_proposal(stage: &Stage) -> Screen {
    let mut screen = stage.screen(&["demo", "--into", ".", "--speed", "20"]);
    screen.sees("d1 waits for you");
    screen.press("i");
    screen.sees("2 changes, 2 taken");
    screen
}

#[test]
fn only_the_changes_that_were_taken_are_written() {
    let stage = Stage::empty();
    let mut screen = demo_at_the_proposal(&stage);
    screen.press("space");
    screen.sees("2 changes, 1 taken");
    screen.press("a");
    stage.wait_for("decision.settled", 1);
    assert_eq!(stage.read("PRD.md"), format!("{}- Emoji.\n", asset("PRD.md")));
    finish(&stage, screen);
    // The agent hears of it after the file is written; at the end it has.
    assert!(stage.told_agents().contains("Approved with changes: read PRD.md"), "{}", stage.told_agents());
}

#[test]
fn taking_no_change_is_a_rejection_and_the_agent_hears_of_it() {
    let stage = Stage::empty();
    let mut screen = demo_at_the_proposal(&stage);
    screen.press("space down space");
    screen.sees("reject (nothing is taken)");
    screen.press("a");
    stage.wait_for("decision.answered", 1);
    assert_eq!(stage.all("decision.answered")[0]["answer"], "reject");
    finish(&stage, screen);
    assert_eq!(stage.read("PRD.md"), asset("PRD.md"));
    assert!(stage.told_agents().contains("Rejected."), "{}", stage.told_agents());
}

fn ends_by_itself(playbook: &str, size: (u16, u16), questions: usize) {
    let stage = Stage::empty();
    let mut screen = stage.open(&["demo", playbook, "--auto", "--into", ".", "--speed", "20"], size, &[]);
    screen.sees_end("CONVERGED");
    screen.press("q");
    let end = screen.ends_with(0);
    assert!(end.restored() && end.has("verified: chain, decisions and files agree"), "{}", end.text);
    let answers = stage.all("decision.answered");
    assert!(
        answers.len() == questions && answers.iter().all(|answered| answered["by"] == "demo --auto"),
        "{answers:?}"
    );
    stage.verify(0);
}

#[test]
fn the_automatic_demo_ends_by_itself_on_a_small_terminal() {
    ends_by_itself("swarm", SMALL, 2);
}

#[test]
fn the_automatic_demo_ends_by_itself_on_a_wide_terminal() {
    ends_by_itself("swarm", WIDE, 2);
}

#[test]
fn the_automatic_value_demo_ends_by_itself() {
    ends_by_itself("value", SMALL, 3);
}
