//! Every kind of decision, asked by a run without a screen and answered from the command line.

use serde_json::{Value, json};

use crate::case::{Case, sh, solver_report, write};
use crate::stage::{Stage, asking, question};

/// Starts the loop and waits for its first decision.
fn waiting(case: Case) -> Stage {
    let stage = Stage::of(case);
    stage.nightloop(&["run", "--detach"]).expect(0);
    stage.wait_for("decision.asked", 1);
    stage
}

#[track_caller]
fn ends(stage: &Stage, status: &str, reason: &str) {
    stage.wait_for_end();
    stage.ended_as(status, reason);
    stage.verify(0);
}

#[track_caller]
fn ends_well(stage: &Stage) {
    ends(stage, "EXIT_CONVERGED", "PASS");
}

fn answer(stage: &Stage, words: &[&str]) {
    let arguments: Vec<&str> = ["answer", "d1"].into_iter().chain(words.iter().copied()).collect();
    stage.nightloop(&arguments).expect(0);
}

/// The kind of the first decision, as the inbox names it.
fn kind(stage: &Stage) -> Value {
    let listed = stage.nightloop(&["inbox", "--json"]).expect(0).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    listed["decisions"][0]["request"]["kind"].clone()
}

#[test]
fn a_question_with_choices() {
    let stage = waiting(asking(question()));
    assert_eq!(kind(&stage), "question");
    let listed = stage.nightloop(&["inbox"]).expect(0).stdout;
    assert!(listed.contains("blue") && listed.contains("green"), "{listed}");
    answer(&stage, &["blue", "--note", "as the sea"]);
    ends_well(&stage);
    let told = stage.told_agents();
    assert!(told.contains("The operator answers: blue Note: as the sea"), "{told}");
}

#[test]
fn an_escalation() {
    let request = json!({"kind": "escalation", "text": "Two ways are left.", "choices": ["rewrite it"]});
    let stage = waiting(asking(request));
    assert_eq!(kind(&stage), "escalation");
    answer(&stage, &["rewrite", "it"]);
    ends_well(&stage);
    assert!(stage.told_agents().contains("The operator answers: rewrite it"), "{}", stage.told_agents());
}

fn vision(severity: &str) -> Case {
    let issue = json!({"severity": severity, "text": "It is vague.", "alternatives": ["Say how much."]});
    asking(json!({"kind": "vision", "text": "The goal is hard to measure.", "issues": [issue]}))
}

#[test]
fn a_soft_doubt_about_the_vision_may_be_acknowledged() {
    let stage = waiting(vision("SOFT"));
    assert_eq!(kind(&stage), "vision");
    answer(&stage, &["acknowledge"]);
    ends_well(&stage);
    assert!(stage.told_agents().contains("Acknowledged"), "{}", stage.told_agents());
}

#[test]
fn a_hard_doubt_about_the_vision_must_be_met() {
    let stage = waiting(vision("HARD"));
    let refused = stage.nightloop(&["answer", "d1", "acknowledge"]);
    assert!(refused.code == 64 && refused.stderr.contains("HARD"), "{}", refused.stderr);
    assert_eq!(stage.count("decision.answered"), 0);
    answer(&stage, &["revise", "at", "most", "ten"]);
    ends_well(&stage);
    assert!(stage.told_agents().contains("The operator revises: at most ten"), "{}", stage.told_agents());
}

/// Two commands that a rule puts before a person.
fn careful() -> Case {
    let case = Case::new().check("a", "test -f a").check("b", "test -f b");
    let case = case.declare("permissions", json!({"ask": ["bash(touch *)"]}));
    // In two messages: what follows a denied call in the same one is not executed.
    let first = json!({"calls": [write("src/metric", "1\n"), write("b", "1\n"), sh("touch a")]});
    let second = json!({"calls": [sh("touch a"), solver_report("Attempt 0.")]});
    case.turns("solver", 0, json!([first, second])).solver(1, [write("a", "1\n")])
}

#[test]
fn a_permission_for_once() {
    let stage = waiting(careful());
    assert_eq!(kind(&stage), "permission");
    let listed = stage.nightloop(&["inbox"]).expect(0).stdout;
    assert!(listed.contains("touch a") && listed.contains("bash(touch *)"), "{listed}");
    assert!(!stage.path("a").exists(), "it ran before it was allowed");
    answer(&stage, &["allow"]);
    stage.wait_for("decision.asked", 2);
    assert!(stage.path("a").exists());
    stage.nightloop(&["answer", "d2", "allow"]).expect(0);
    ends_well(&stage);
}

#[test]
fn a_permission_for_the_whole_run() {
    let stage = waiting(careful());
    answer(&stage, &["always"]);
    ends_well(&stage);
    assert_eq!(stage.count("decision.asked"), 1);
}

#[test]
fn a_permission_that_is_denied() {
    let stage = waiting(careful());
    answer(&stage, &["deny"]);
    stage.wait_for("decision.asked", 2);
    assert!(!stage.path("a").exists(), "it ran although it was denied");
    stage.nightloop(&["answer", "d2", "deny"]).expect(0);
    ends_well(&stage);
    assert_eq!(stage.count("iteration.began"), 2, "the second iteration had to make up for it");
}

/// The solver edits the script that judges it, and the criterion turns green.
fn tampered() -> Stage {
    let case = Case::new().check_argv("a", &["sh", "check.sh"]).file("check.sh", "exit 1\n");
    waiting(case.solver(0, [sh("echo 'exit 0' > check.sh")]))
}

#[test]
fn a_changed_guard_that_is_accepted() {
    let stage = tampered();
    assert_eq!(kind(&stage), "tampering");
    let listed = stage.nightloop(&["inbox"]).expect(0).stdout;
    assert!(listed.contains("check.sh"), "{listed}");
    answer(&stage, &["accept"]);
    ends_well(&stage);
}

#[test]
fn a_changed_guard_that_is_rejected() {
    let stage = tampered();
    answer(&stage, &["reject"]);
    ends(&stage, "EXIT_BLOCKED", "INVARIANT_VIOLATION");
}

fn broke() -> Stage {
    let fault = json!([{"http": 429, "code": "enforced_spend_limit_reached", "message": "No money left."}]);
    waiting(Case::two_steps().faults("solver", 0, fault))
}

#[test]
fn a_spend_limit_that_was_raised() {
    let stage = broke();
    assert_eq!(kind(&stage), "spend_limit");
    // The scout's, and the one that was refused: nothing is tried while a person is waited for.
    assert_eq!(stage.count("llm.requested"), 2);
    answer(&stage, &["retry"]);
    ends_well(&stage);
    assert_eq!(stage.count("llm.failed"), 1);
}

#[test]
fn to_quit_is_an_answer_to_everything() {
    for stage in [waiting(asking(question())), broke(), tampered()] {
        answer(&stage, &["quit"]);
        ends(&stage, "EXIT_BLOCKED", "HUMAN_QUIT");
        let again = stage.nightloop(&["resume", "--headless"]);
        assert_eq!(again.code, 1, "{}", again.stdout);
        stage.verify(0);
    }
}
