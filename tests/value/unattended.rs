//! Nobody is there: every kind of question ends the run with exit code 3 and a written brief, and the answer goes on.

use serde_json::{Value, json};

use crate::case::{
    Case, call, complete, correction, critique, discovery, needs_revision, sh, turns, unattended, vrc, write,
};

/// Asked, written down, answered, delivered.
#[track_caller]
fn goes_on(case: Case, kind: &str, words: &str, answer: &[&str]) {
    let ran = case.run().expect(3).stands().asks(kind, words);
    let inbox = ran.bench.nightloop(&["inbox"]).expect(0);
    assert!(inbox.stdout.contains("d1"), "{}", inbox.stdout);
    // Without an answer it stays where it is.
    let again = unattended(ran.bench.command(&["resume", "--headless"]));
    assert_eq!(again.code, 3, "{}\n{}", again.stdout, again.stderr);
    assert_eq!(ran.events("decision.asked").len(), 1, "the same question is not asked twice");
    let mut arguments = vec!["d1"];
    arguments.extend(answer);
    ran.answer_and_go_on(&arguments).expect(0).verified();
}

#[test]
fn a_question_of_discovery() {
    let found = discovery(json!({"unresolved_questions": ["Which language is it in?"]}));
    let case = Case::new().on("discover_context", turns(&[&[found]]));
    goes_on(case, "question", "Which language is it in?", &["English"]);
}

#[test]
fn a_tool_that_is_missing() {
    let found = discovery(json!({"tools_required": ["tool-of-ours"]}));
    let report = json!({"status": "BLOCKED_EXTERNAL", "instructions": "Install the tool."});
    let case = Case::new()
        .on("discover_context", turns(&[&[found]]))
        .on("preflight", turns(&[&[call("report_preflight", report)]]));
    let ran = case.run().expect(3).stands().asks("human_action", "Install the tool.");
    // Saying so is not doing so: it is looked at again.
    let failed = ran.answer_and_go_on(&["d1", "done"]).expect(3).stands();
    assert!(failed.text("evidence/loop/value/preconditions.md").contains("tool-of-ours"));
}

#[test]
fn a_tool_that_is_installed_meanwhile() {
    let found = discovery(json!({"tools_required": ["tool-of-ours"]}));
    let report = json!({"status": "BLOCKED_EXTERNAL", "instructions": "Install the tool."});
    let ran = Case::new()
        .on("discover_context", turns(&[&[found]]))
        .on("preflight", turns(&[&[call("report_preflight", report)]]))
        .run()
        .expect(3)
        .asks("human_action", "Install the tool.");
    let tool = ran.bench.dir.path().join("tool-of-ours");
    std::fs::write(&tool, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    ran.bench.nightloop(&["answer", "d1", "done"]).expect(0);
    let path = format!("{}:{}", ran.bench.dir.path().display(), std::env::var("PATH").unwrap());
    let mut command = ran.bench.command(&["resume", "--headless"]);
    command.env("PATH", path);
    unattended(command).expect(0);
    ran.verified();
}

#[test]
fn a_variable_that_is_missing_and_one_that_only_holds_a_place() {
    // Only what tools get counts, so the names are ones that they get.
    let found = discovery(json!({"env_vars_required": ["LC_REGION", "LC_PLACE"]}));
    let report = json!({"status": "BLOCKED_EXTERNAL", "instructions": "Ask the office."});
    let bench = Case::new()
        .on("discover_context", turns(&[&[found]]))
        .on("preflight", turns(&[&[call("report_preflight", report)]]))
        .written();
    let mut command = bench.command(&["run", "--headless"]);
    command.env("LC_PLACE", "changeme");
    let ended = unattended(command);
    let ran = crate::case::Ran { bench, ended }.expect(3).stands();
    let ran = ran.asks("human_action", "set `LC_REGION`").asks("human_action", "give `LC_PLACE` its real value");
    ran.bench.nightloop(&["answer", "d1", "done"]).expect(0);
    let mut command = ran.bench.command(&["resume", "--headless"]);
    command.env("LC_PLACE", "Turin").env("LC_REGION", "north");
    unattended(command).expect(0);
    ran.verified();
}

#[test]
fn something_only_a_person_can_do() {
    let ask = json!({"action": "Buy paper.", "instructions": "Two sheets.", "blocked_task_id": "T2"});
    let case = Case::new().on_subject_nth("execute", "T2", 1, turns(&[&[call("request_human_action", ask)]]));
    goes_on(case, "human_action", "Two sheets.", &["done"]);
}

#[test]
fn a_permission() {
    let work = turns(&[&[sh("touch asked.txt")], &[write("one.txt", "one\n")], &[complete("T1")]]);
    let case = Case::new().declare("permissions", json!({"ask": ["bash(touch *)"]})).on_subject("execute", "T1", work);
    // Nobody can be asked in the middle of a reply: the agent is told no, and finds another way.
    let ran = case.run().expect(0).verified();
    assert!(!ran.bench.workspace.join("asked.txt").exists(), "nobody allowed it");
    assert!(ran.events("decision.asked").is_empty());
}

#[test]
fn a_new_text_of_the_prd() {
    let text = format!("{}4. It is in English.\n", crate::case::PRD);
    let case = Case::new()
        .on_nth("prd_critique", 1, turns(&[&[critique("DESCOPE", json!({"descope_suggestions": ["Less."]}))]]))
        .on("prd_amend", turns(&[&[call("propose_prd", json!({"text": text, "note": "Less."}))]]));
    goes_on(case, "refinement", "a new text for PRD.md", &["approve"]);
}

#[test]
fn a_vision_with_risks() {
    let case =
        Case::new().on_nth("vision_validate", 1, turns(&[&[needs_revision(&[("V1", "SOFT", "adoption_risk")])]]));
    goes_on(case, "vision", "V1 is in the way.", &["acknowledge"]);
}

#[test]
fn an_escalation() {
    let case = Case::new()
        .set("steps_per_iteration", json!(1))
        .on_nth("vrc", 2, turns(&[&[vrc("0.3", "COURSE_CORRECT", json!([]))]]))
        .on("course_correct", turns(&[&[correction("escalate", json!({}))]]));
    goes_on(case, "escalation", "The way so far leads nowhere.", &["go", "on"]);
}

#[test]
fn a_guard_that_was_changed() {
    // The task edits the script that judges a criterion of loop.yaml, and the criterion turns green.
    let judged = json!([{"id": "judged", "text": "It is judged.", "check": ["sh", "check.sh"]}]);
    let work = turns(&[&[sh("echo 'exit 0' > check.sh")], &[write("one.txt", "one\n")], &[complete("T1")]]);
    let case = Case::new()
        .file("check.sh", "exit 1\n")
        .declare("acceptance_criteria", judged)
        .on_subject("execute", "T1", work);
    // Nobody is there to look at it: it waits for an answer, and is never a success before.
    let ran = case.run().expect(3).verified();
    assert_eq!(ran.halted()["stop_reason"], "BACKPRESSURE_SIGNAL");
    assert!(ran.halted()["detail"].as_str().unwrap().contains("check.sh"), "{}", ran.halted());
}

#[test]
fn money_that_ran_out() {
    let fault = json!([{"http": 429, "code": "enforced_spend_limit_reached", "message": "No money left."}]);
    let case = |faults: Value| {
        let work = json!([{"calls": [write("one.txt", "one\n")], "faults": faults}, {"calls": [complete("T1")]}]);
        Case::new().on_subject("execute", "T1", work)
    };
    let ran = case(fault).run().expect(75).stands();
    assert!(ran.ended.stdout.contains("No money left.") || ran.ended.stderr.contains("No money left."));
    case(json!([])).write_script(&ran.bench);
    unattended(ran.bench.command(&["resume", "--headless"])).expect(0);
    ran.verified();
}

#[test]
fn to_quit_is_an_answer_to_everything() {
    let found = discovery(json!({"unresolved_questions": ["Which language is it in?"]}));
    let question = Case::new().on("discover_context", turns(&[&[found]]));
    let risky = Case::new().on("vision_validate", turns(&[&[needs_revision(&[("V1", "SOFT", "adoption_risk")])]]));
    for case in [question, risky] {
        let ran = case.run().expect(3).answer_and_go_on(&["d1", "quit"]).expect(1).verified();
        assert_eq!(ran.halted()["stop_reason"], "HUMAN_QUIT");
        assert_eq!(unattended_resume(&ran), 1, "it stays ended");
    }
}

fn unattended_resume(ran: &crate::case::Ran) -> i32 {
    unattended(ran.bench.command(&["resume", "--headless"])).code
}
