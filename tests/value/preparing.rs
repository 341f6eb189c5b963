//! Before the first iteration: documents that are refined with a person, gates that stop, inputs that are not there.

use serde_json::{Value, json};

use crate::case::{Case, PRD, VISION, call, critique, done, needs_revision, research, turns};

const BETTER: &str = "# PRD\n\n1. one.txt contains the word one.\n2. two.txt contains the word two.\n3. Both are readable by anybody at all.\n";

fn proposal(text: &str) -> Value {
    call("propose_prd", json!({"text": text, "note": "It says who reads it."}))
}

fn amended() -> Case {
    Case::new()
        .on_nth("prd_critique", 1, turns(&[&[critique("AMEND", json!({"amendments": ["Say who reads it."]}))]]))
        .on("prd_amend", turns(&[&[proposal(BETTER)]]))
}

#[test]
fn a_prd_that_is_rejected_is_revised_by_a_person() {
    let ran = Case::new()
        .on_nth("prd_critique", 1, turns(&[&[critique("REJECT", json!({}))]]))
        .on("prd_research", turns(&[&[research("Nobody can do that.", &["Only write one file."])]]))
        .run()
        .expect(3)
        .stands()
        .asks("vision", "infeasible: My word is REJECT.");
    assert!(ran.text("evidence/loop/inbox.md").contains("Only write one file."), "researched alternatives are shown");
    // What is infeasible cannot be waved through, and an unchanged text is no revision.
    ran.bench.nightloop(&["answer", "d1", "acknowledge"]).expect(64);
    let ran = ran.answer_and_go_on(&["d1", "revise"]).expect(3).asks("vision", "has not changed");
    ran.put("PRD.md", BETTER);
    let ran = ran.answer_and_go_on(&["d2", "revise"]).expect(0).verified();
    assert_eq!(ran.calls("prd_critique"), 2);
    assert_eq!(ran.text("PRD.md"), BETTER);
}

#[test]
fn an_amendment_is_approved_by_a_person() {
    let ran = amended().run().expect(3).stands().asks("refinement", "a new text for PRD.md");
    assert_eq!(ran.text("PRD.md"), PRD, "nothing is written before the answer");
    let ran = ran.answer_and_go_on(&["d1", "approve"]).expect(0).verified();
    assert_eq!(ran.text("PRD.md"), BETTER);
}

#[test]
fn an_amendment_passes_by_itself_where_loop_yaml_says_so() {
    let ran = amended().set("auto_approve_prd", json!(2)).run().expect(0).verified();
    assert!(ran.events("decision.asked").is_empty());
    assert_eq!(ran.text("PRD.md"), BETTER);
    assert_eq!(ran.events("round.closed")[1]["how"], "auto_amend");
}

#[test]
fn automatic_amendments_are_counted() {
    let again = format!("{BETTER}4. And so on.\n");
    let more = format!("{again}5. And on.\n");
    let ran = amended()
        .set("auto_approve_prd", json!(2))
        .on("prd_critique", turns(&[&[critique("AMEND", json!({"amendments": ["More."]}))]]))
        .on_nth("prd_amend", 2, turns(&[&[proposal(&again)]]))
        .on_nth("prd_amend", 3, turns(&[&[proposal(&more)]]))
        .run()
        .expect(3)
        .stands()
        .asks("refinement", "round 3");
    assert_eq!(ran.text("PRD.md"), again, "two rounds by itself, the third waits");
    ran.answer_and_go_on(&["d1", "reject"]).expect(0).verified();
}

#[test]
fn an_amendment_that_a_person_rejects_leaves_the_prd_as_it_is() {
    let ran = amended().run().expect(3).answer_and_go_on(&["d1", "reject"]).expect(0).verified();
    assert_eq!(ran.text("PRD.md"), PRD);
    assert_eq!(ran.calls("prd_critique"), 1, "the person's word is the last");
}

fn hard() -> Case {
    Case::new()
        .on_nth(
            "vision_validate",
            1,
            turns(&[&[needs_revision(&[("V1", "HARD", "no_problem"), ("V2", "SOFT", "adoption_risk")])]]),
        )
        .on("vision_research", turns(&[&[research("There are readers.", &["V1: name the readers."])]]))
}

#[test]
fn a_hard_issue_is_revised_and_never_acknowledged() {
    let ran = hard().run().expect(3).stands().asks("vision", "V1 is in the way.");
    let brief = ran.text("evidence/loop/inbox.md");
    assert!(brief.contains("HARD") && brief.contains("V1: name the readers."), "{brief}");
    let refused = ran.bench.nightloop(&["answer", "d1", "acknowledge"]).expect(64);
    assert!(refused.stderr.contains("HARD") && !refused.stderr.contains("| acknowledge"), "{}", refused.stderr);
    let ran = ran.answer_and_go_on(&["d1", "revise"]).expect(3).asks("vision", "has not changed");
    assert_eq!(ran.calls("vision_extract"), 1, "an unchanged text is not analysed again");
    ran.put("VISION.md", &format!("{VISION}\nThe readers are my neighbours.\n"));
    let ran = ran.answer_and_go_on(&["d2", "revise"]).expect(0).verified();
    assert_eq!(ran.calls("vision_validate"), 2);
}

#[test]
fn a_hard_issue_is_not_acknowledged_beforehand_either() {
    hard().set("acknowledge_soft", json!(["V1", "V2"])).run().expect(3).stands();
}

#[test]
fn a_person_may_quit_instead() {
    let ran = hard().run().expect(3).answer_and_go_on(&["d1", "quit"]).expect(1).verified();
    assert_eq!(ran.halted()["stop_reason"], "HUMAN_QUIT");
    assert_eq!(ran.calls("plan"), 0);
}

fn soft() -> Case {
    let issues = [("V2", "SOFT", "adoption_risk"), ("V3", "SOFT", "weak_evidence")];
    Case::new().on_nth("vision_validate", 1, turns(&[&[needs_revision(&issues)]]))
}

#[test]
fn soft_issues_are_acknowledged_by_a_person() {
    let ran = soft().run().expect(3).stands().asks("vision", "V3 is in the way.");
    let ran = ran.answer_and_go_on(&["d1", "acknowledge"]).expect(0).verified();
    assert_eq!(ran.events("round.closed")[0]["how"], "acknowledged");
    assert_eq!(ran.calls("vision_validate"), 1);
}

#[test]
fn soft_issues_are_acknowledged_beforehand_by_their_ids() {
    let ran = soft().set("acknowledge_soft", json!(["V2", "V3"])).run().expect(0).verified();
    assert!(ran.events("decision.asked").is_empty());
    // Each of them: one that is not named is asked about.
    soft().set("acknowledge_soft", json!(["V2"])).run().expect(3).stands();
}

#[test]
fn an_analysis_that_does_not_report_is_no_pass() {
    let ran = Case::new().on("vision_validate", json!([done()])).run().expect(3).stands();
    ran.asks("vision", "could not be analysed");
}

fn blocking_gate() -> Case {
    let block = json!({"action": "modify", "task_id": "T2", "blocked_reason": "nobody knows what two means"});
    Case::new().on_nth("craap", 1, json!([{"calls": [call("manage_task", block)]}, done()]))
}

#[test]
fn a_strict_gate_that_fails_stops_before_the_first_iteration() {
    let ran = blocking_gate().run().expect(3).stands();
    let text = ran.text("evidence/loop/value/preconditions.md");
    assert!(text.contains("nobody knows what two means") && text.contains("- [x]"), "{text}");
    assert_eq!(ran.calls("craap"), 3, "it had its passes");
    assert_eq!(ran.calls("execute"), 0);
    ran.asks("question", "Answer `retry`");
}

#[test]
fn a_gate_that_is_not_strict_warns() {
    // The gate for blockers clears it up.
    let free = json!({"action": "modify", "task_id": "T2", "status": "pending"});
    let ran = blocking_gate()
        .set("strict_gates", json!(false))
        .on("verify_blockers", json!([{"calls": [call("manage_task", free)]}, done()]))
        .run()
        .expect(0)
        .verified();
    assert!(ran.log().iter().any(|line| line.contains("gates are not strict")), "{:#?}", ran.log());
}

#[test]
fn without_a_vision_nothing_begins() {
    let bench = Case::new().written();
    std::fs::remove_file(bench.workspace.join("VISION.md")).unwrap();
    let ended = crate::case::unattended(bench.command(&["run", "--headless"]));
    let ran = crate::case::Ran { bench, ended }.expect(3).stands();
    assert!(ran.text("evidence/loop/value/preconditions.md").contains("VISION.md"));
    assert_eq!(ran.events("llm.requested").len(), 0);
}

#[test]
fn a_plan_without_a_task_is_no_plan() {
    let ran = Case::new().on("plan", json!([done()])).run().expect(3).stands();
    assert!(ran.text("evidence/loop/value/preconditions.md").contains("too abstract"));
    assert_eq!(ran.calls("plan"), 2, "tried twice, not for ever");
}
