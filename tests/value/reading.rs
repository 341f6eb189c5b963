//! What people and agents read: the text that is to be approved, notes, pre-conditions, the place where agents work.

use serde_json::{Value, json};

use crate::case::{Case, PRD, Ran, call, complete, critique, done, research, turns, write};

const BETTER: &str = "# PRD\n\n1. one.txt contains the word one.\n2. two.txt contains the word two.\n3. Nothing else is needed by anybody at all.\n4. Somebody reads it.\n";

fn amended() -> Case {
    let proposal = call("propose_prd", json!({"text": BETTER, "note": "It says who reads it."}));
    Case::new()
        .on_nth("prd_critique", 1, turns(&[&[critique("AMEND", json!({"amendments": ["Say who reads it."]}))]]))
        .on("prd_amend", turns(&[&[proposal]]))
}

fn inbox(ran: &Ran, arguments: &[&str]) -> String {
    let words: Vec<&str> = ["inbox"].iter().chain(arguments).copied().collect();
    ran.bench.nightloop(&words).expect(0).stdout
}

#[test]
fn a_new_prd_is_shown_before_it_is_approved_and_the_note_reaches_the_next_agents() {
    assert!(BETTER.starts_with(PRD));
    let ran = amended().run().expect(3).stands();
    let added = "+4. Somebody reads it.";
    let shown = inbox(&ran, &[]);
    assert!(shown.contains(added) && shown.contains("+++ b/PRD.md"), "{shown}");
    let listed: Value = serde_json::from_str(&inbox(&ran, &["--json"])).unwrap();
    assert!(listed["decisions"][0]["diff"].as_str().unwrap().contains(added), "{listed}");
    assert!(ran.text("evidence/loop/inbox.md").contains(added));
    assert!(ran.text("evidence/loop/value/prd_round_1_proposed.patch").contains(added));
    let note = "Readers are in a hurry.";
    let ran = ran.answer_and_go_on(&["d1", "approve", "--note", note]).expect(0).verified();
    assert!(ran.messages("prd_critique")[1].contains(note), "{}", ran.messages("prd_critique")[1]);
    assert!(ran.messages("plan")[0].contains(note));
    assert!(!ran.messages("vision_validate")[0].contains(note), "it was said later");
}

#[test]
fn researched_alternatives_stand_in_the_inbox_and_a_revision_is_shown_as_a_diff() {
    let ran = Case::new()
        .on_nth("prd_critique", 1, turns(&[&[critique("REJECT", json!({}))]]))
        .on("prd_research", turns(&[&[research("Nobody can do that.", &["Only write one file."])]]))
        .run()
        .expect(3);
    let shown = inbox(&ran, &[]);
    assert!(shown.contains("· Only write one file."), "{shown}");
    ran.put("PRD.md", BETTER);
    let ran = ran.answer_and_go_on(&["d1", "revise"]).expect(0).verified();
    let patch = ran.text("evidence/loop/value/prd_round_2_changed.patch");
    assert!(patch.contains("+4. Somebody reads it."), "{patch}");
}

#[test]
fn a_gate_that_failed_is_tried_again_and_nothing_before_it() {
    let block = json!({"action": "modify", "task_id": "T2", "blocked_reason": "nobody knows what two means"});
    let free = call("manage_task", json!({"action": "unblock", "task_id": "T2", "reason": "A person said it."}));
    let ran = Case::new()
        .on_nth("craap", 1, json!([{"calls": [call("manage_task", block)]}, done()]))
        .on("verify_blockers", json!([{"calls": [free]}, done()]))
        .run()
        .expect(3)
        .stands();
    let text = ran.text("evidence/loop/value/preconditions.md");
    assert!(text.contains("What can be done") && text.contains("`nightloop answer d1 retry`"), "{text}");
    let said = "Two means the file two.txt.";
    let ran = ran.answer_and_go_on(&["d1", said]).expect(0).verified();
    assert_eq!((ran.calls("vision_extract"), ran.calls("plan"), ran.calls("craap")), (1, 1, 4));
    assert!(ran.messages("craap")[3].contains(said), "what a person said reaches the next agent");
    assert!(!ran.path("evidence/loop/value/preconditions.md").exists(), "it is no pre-condition any more");
    assert!(ran.text("DELIVERY_REPORT.md").contains("**Delivered"));
}

#[test]
fn the_delivery_report_says_what_it_took() {
    let ran = Case::new().run().expect(0).verified();
    let report = ran.text("DELIVERY_REPORT.md");
    assert!(report.contains(" tokens (") && report.contains("tool call(s)"), "{report}");
}

#[test]
fn agents_are_told_where_they_work_in_a_few_hundred_bytes() {
    let ran = Case::new()
        .on_subject("execute", "T1", turns(&[&[write("one.txt", "one\n")], &[complete("T1")]]))
        .run()
        .expect(0);
    let of = |purpose: &str| -> String {
        let message = ran.messages(purpose).remove(0);
        message.split("=== ENVIRONMENT ===").nth(1).unwrap().to_owned()
    };
    let (judge, builder) = (of("vrc"), of("execute"));
    assert!(judge.contains("read-only for you") && judge.contains("Browser: none"), "{judge}");
    assert!(builder.contains("you may write in the workspace, but not") && builder.contains("PRD.md"), "{builder}");
    for text in [&judge, &builder] {
        assert!(text.len() < 1_024 && text.contains("tool calls are left"), "{} {text}", text.len());
    }
}
