//! The seven end-to-end scenarios: each ends with proof, or with a recorded reason.

use serde_json::{Value, json};

use crate::case::{
    Case, Ran, add_task, call, complete, correction, discovery, done, finding, research, script, sh, turns, vrc, write,
};

#[test]
fn simple_greenfield() {
    let ran = Case::new().run().expect(0).verified();
    assert_eq!(ran.halted()["status"], "EXIT_CONVERGED");
    assert_eq!(ran.events("vrc.taken").last().unwrap()["vrc"]["value_score"], "1");
    let report = ran.text("DELIVERY_REPORT.md");
    assert!(report.contains("Delivered") && report.contains("unit/one: passed"), "{report}");
    assert!(!report.contains("Epics"), "it is one slice: {report}");
    assert!(ran.text("IMPLEMENTATION_PLAN.md").contains("- [x] **T2**"));
    assert!(ran.work().contains(&"exit_gate".to_owned()), "{:?}", ran.work());
}

/// A workspace with something in it that people rely on; loop.yaml says how to see that it is still there.
fn brownfield() -> Case {
    let kept = json!([{"id": "old", "text": "old.txt is as it was", "check": ["grep", "-qx", "old", "old.txt"]}]);
    Case::new()
        .file("old.txt", "old\n")
        .declare("acceptance_criteria", kept)
        .on("discover_context", turns(&[&[discovery(json!({"codebase_state": "brownfield"}))]]))
}

#[test]
fn brownfield_feature() {
    let ran = brownfield().run().expect(0).verified();
    assert_eq!(ran.text("old.txt"), "old\n");
    assert_eq!(ran.halted()["status"], "EXIT_CONVERGED");
}

#[test]
fn brownfield_feature_that_breaks_what_passed_is_mended_at_once() {
    let scripts = [script("unit/old", "old.txt", "old"), script("value/one", "one.txt", "one")];
    let mut case = brownfield()
        .on("generate_verifications", json!([{"text": "Checks.", "calls": scripts}, done()]))
        .on_nth("critical_eval", 1, json!([{"calls": [finding("blocking", "A reader wants more.")]}, done()]))
        .on("fix", json!([{"calls": [write("old.txt", "old\n")]}, done()]));
    for step in 0..100 {
        let task = format!("CE-{step}-1");
        case = case.on_subject("execute", &task, turns(&[&[write("old.txt", "new\n")], &[complete(&task)]]));
    }
    let ran = case.run().expect(0).verified();
    assert_eq!(ran.text("old.txt"), "old\n");
    let work = ran.work();
    let fixed = work.iter().position(|action| action == "fix").unwrap();
    assert_eq!(work[fixed - 1], "execute", "{:#?}", ran.log());
}

#[test]
fn brownfield_feature_that_breaks_a_check_of_loop_yaml_is_no_success() {
    let ran = brownfield()
        .on_subject("execute", "T2", turns(&[&[sh("echo new > old.txt; echo two > two.txt")], &[complete("T2")]]))
        .run();
    // No certificate over a red check, whatever the exit gate thinks: what was built is partial.
    let ran = ran.expect(2).verified();
    assert_eq!(ran.halted()["stop_reason"], "MAX_ITERS");
    assert!(ran.ended.stdout.contains("unmet: old.txt is as it was"), "{}", ran.ended.stdout);
}

#[test]
fn a_person_is_needed_in_the_middle() {
    let ask = call(
        "request_human_action",
        json!({
            "action": "Get the key.",
            "instructions": "Put the key into key.txt.",
            "blocked_task_id": "T2",
            "verification_command": ["test", "-s", "key.txt"],
        }),
    );
    let ran = Case::new()
        .on_subject_nth("execute", "T2", 1, turns(&[&[ask]]))
        .on_subject_nth("execute", "T2", 2, turns(&[&[write("two.txt", "two\n")], &[complete("T2")]]))
        .run()
        .expect(3);
    assert!(ran.bench.nightloop(&["inbox"]).stdout.contains("Put the key into key.txt."));
    // Saying so is not doing so.
    let ran = ran.answer_and_go_on(&["d1", "done"]).expect(3);
    ran.put("key.txt", "k\n");
    let ran = ran.answer_and_go_on(&["d1", "done"]).expect(0).verified();
    assert_eq!(ran.events("decision.asked").len(), 1);
}

#[test]
fn stuck_state_recovery() {
    // The check wants what no fix brings; research gives new attempts; then another task brings it.
    let scripts = [script("unit/one", "one.txt", "uno"), script("value/two", "two.txt", "two")];
    let another = add_task("T3", json!({"description": "Translate the first file.", "dependencies": ["T2"]}));
    let ran = Case::new()
        .set("max_fix_attempts", json!(2))
        .on("generate_verifications", json!([{"text": "Checks.", "calls": scripts}, done()]))
        .on("fix", json!([done()]))
        .on("research", turns(&[&[research("uno is Spanish.", &[])]]))
        .on("course_correct", turns(&[&[another, correction("new_tasks", json!({}))]]))
        .on_subject("execute", "T3", turns(&[&[write("one.txt", "one uno\n")], &[complete("T3")]]))
        .run()
        .expect(0)
        .verified();
    let order: Vec<String> =
        ran.work().into_iter().filter(|action| action != "vrc" && action != "plan_health").collect();
    let way = ["fix", "fix", "research", "fix", "fix", "course_correct", "execute", "run_qc"];
    assert!(order.windows(way.len()).any(|part| part == way), "{order:?}");
    assert_eq!(ran.calls("research"), 1);
    assert!(ran.text("DELIVERY_REPORT.md").contains("Delivered"));
}

#[test]
fn a_budget_that_runs_out_is_partial() {
    // The exit gate never gets enough, so the safety valve ends the run: partial, never success.
    let gap = json!([{"id": "g", "description": "Not good enough.", "severity": "degraded"}]);
    let never = Case::new().on("exit_gate", turns(&[&[vrc("0.9", "SHIP_READY", gap)]])).follow_ups("EG", "g");
    partial(never.run());
}

/// Ended by a limit: not a success, and the report says so.
#[track_caller]
fn partial(ran: Ran) -> Ran {
    let ran = ran.expect(2).verified();
    assert_eq!(ran.halted()["status"], "EXIT_BUDGET_EXCEEDED");
    let report = ran.text("DELIVERY_REPORT.md");
    assert!(report.contains("Partial") && !report.contains("Delivered"), "{report}");
    ran
}

#[test]
fn a_token_budget_that_runs_out_in_a_task_is_partial() {
    // Far more tokens than everything else together.
    let dear = json!([{"text": "I think long.", "calls": [write("two.txt", "tw")], "usage": {"output": 9_000_000}}]);
    let ran =
        Case::new().declare("budget", json!({"max_total_tokens": 8_000_000})).on_subject("execute", "T2", dear).run();
    let ran = partial(ran);
    assert!(ran.halted()["detail"].as_str().unwrap().contains("tokens"), "{}", ran.halted());
    // What was in progress is claimed by nobody.
    assert_eq!(ran.task("T2")["status"], "pending");
    assert_eq!(ran.task("T1")["status"], "done");
}

#[test]
fn a_token_budget_that_is_nearly_spent_leads_straight_to_the_exit_gate() {
    let dear = json!([
        {"text": "I think long.", "calls": [write("one.txt", "one\n")], "usage": {"output": 7_700_000}},
        {"text": "Done.", "calls": [complete("T1")]},
    ]);
    // So much fits into no window that we know.
    let wide = json!({"builder": {"context": 100_000_000}});
    let case = Case::new().declare("budget", json!({"max_total_tokens": 8_000_000})).declare("limits", wide);
    let ran = partial(case.on_subject("execute", "T1", dear).run());
    assert_eq!(ran.steps("execute"), 1, "{:#?}", ran.log());
    assert_eq!(ran.steps("exit_gate"), 1, "{:#?}", ran.log());
    assert!(ran.text("DELIVERY_REPORT.md").contains("T2"));
}

#[test]
fn a_budget_of_steps_that_runs_out_is_partial() {
    let ran = partial(Case::new().set("max_steps", json!(2)).run());
    let decided = ran.work().into_iter().filter(|action| action != "vrc").count();
    assert_eq!(decided, 2, "{:#?}", ran.log());
    assert!(ran.halted()["detail"].as_str().unwrap().contains("max_steps"), "{}", ran.halted());
}

pub fn epics() -> Case {
    let epic = |title: &str| {
        json!({
            "title": title,
            "value_statement": format!("People have {title}."),
            "deliverables": [title],
            "completion_criteria": [format!("{title} can be read")],
        })
    };
    let decomposition = json!({
        "epics": [epic("the first files"), epic("the third file")],
        "rationale": "Two slices, each worth something.",
    });
    let summary = json!({
        "delivered": ["Two files."],
        "vision_progress": "Half of it.",
        "next_epic": "The third file.",
        "confidence": "HIGH",
        "confidence_rationale": "It can be read.",
    });
    let third = add_task("T3", json!({"description": "Write three.txt with the word three."}));
    let scripts = [script("value/three", "three.txt", "three")];
    let much = "The reader who opens a file finds a word in it. ".repeat(12);
    Case::new()
        .file("VISION.md", &format!("{}\n{much}\n", crate::case::VISION))
        .set("epics", json!({"mode": "auto"}))
        .on("epic_decompose", turns(&[&[call("report_epic_decomposition", decomposition)]]))
        .on("epic_feedback", turns(&[&[call("report_epic_summary", summary)]]))
        .on_subject("plan", "epic 2", json!([{"text": "The next slice.", "calls": [third]}, done()]))
        .on_nth("generate_verifications", 2, json!([{"text": "One more.", "calls": scripts}, done()]))
        .on_subject("execute", "T3", turns(&[&[write("three.txt", "three\n")], &[complete("T3")]]))
}

#[test]
fn multi_epic() {
    let ran = epics().run().expect(3).stands().asks("question", "Epic 1 of 2 is done");
    assert!(!ran.bench.workspace.join("three.txt").exists(), "nobody said that it goes on");
    let ran = ran.answer_and_go_on(&["d1", "proceed"]).expect(0).verified();
    assert_eq!(ran.text("three.txt"), "three\n");
    let put = ran.events("epic.put");
    assert!(put.iter().any(|epic| epic["epic"] == 0 && epic["feedback"][0] == "proceed"), "{put:?}");
    for review in ["craap", "clarity", "validate", "connect", "break", "prune", "tidy"] {
        assert_eq!(ran.calls(review), 2, "{review} of the second plan, too");
    }
    assert!(ran.messages("tidy")[1].contains("three.txt"), "{}", ran.messages("tidy")[1]);
    assert_eq!(ran.steps("exit_gate"), 1, "one gate for the whole: {:#?}", ran.log());
}

#[test]
fn multi_epic_that_a_person_stops_ships_what_is_there() {
    let ran = epics().run().expect(3).answer_and_go_on(&["d1", "stop"]).expect(0).verified();
    assert!(!ran.bench.workspace.join("three.txt").exists());
    let last = ran.events("epic.put").into_iter().rev().find(|epic| epic["epic"] == 1).unwrap();
    assert_eq!(last["status"], "skipped", "{last}");
    let report = ran.text("DELIVERY_REPORT.md");
    let epics = "## Epics\n\n- 1: the first files (completed); feedback: stop\n- 2: the third file (left out)\n";
    assert!(report.contains(epics), "what was left out is named: {report}");
}

#[test]
fn multi_epic_that_a_person_adjusts_tells_the_planner() {
    let ran = epics().run().expect(3).answer_and_go_on(&["d1", "the third file in Latin, please"]).expect(0).verified();
    let put = ran.events("epic.put");
    let feedback = put.iter().find(|epic| epic["epic"] == 0 && epic["feedback"][0] == "adjust");
    assert_eq!(feedback.unwrap()["feedback"][1], "the third file in Latin, please", "{put:?}");
    let [first, second] = &ran.messages("plan")[..] else { panic!("{:#?}", ran.messages("plan")) };
    assert!(second.contains("the third file in Latin, please"), "{second}");
    assert!(!first.contains("Latin"), "nobody had said it yet");
    let report = ran.text("DELIVERY_REPORT.md");
    assert!(report.contains("feedback: adjust: the third file in Latin, please"), "{report}");
}

#[test]
fn the_whole_is_looked_at_before_the_exit_gate() {
    let grave = json!([{
        "dimension": "conceptual_integrity",
        "severity": "CRITICAL",
        "description": "One thing has two names.",
        "suggested_action": "Let one.txt and three.txt say the same word for it.",
    }]);
    let report = json!({"overall": "CRITICAL", "findings": grave});
    let ran = Case::new()
        .on_nth("critical_eval", 1, json!([{"calls": [finding("blocking", "There is no three.txt.")]}, done()]))
        .on_nth("coherence_eval", 1, turns(&[&[call("report_coherence", report)]]))
        .follow_ups("CE", "1")
        .follow_ups("COH", "1")
        .run()
        .expect(0)
        .verified();
    let work: Vec<String> = ran.work().into_iter().filter(|action| !action.starts_with("vrc")).collect();
    let looked = work.iter().position(|action| action == "coherence_eval").unwrap();
    assert!(!work[..looked].contains(&"exit_gate".to_owned()), "{work:?}");
    assert_eq!((work[looked + 1].as_str(), ran.steps("coherence_eval")), ("execute", 1), "{:#?}", ran.log());
}

#[test]
fn coherence_degradation() {
    // A task that fails three times is a sign that the parts do not fit; the full look makes one task of it.
    let report = |overall: &str, findings: Value| {
        turns(&[&[call("report_coherence", json!({"overall": overall, "findings": findings}))]])
    };
    let grave = json!([{
        "dimension": "interaction_coherence",
        "severity": "CRITICAL",
        "description": "The two files speak different languages.",
        "suggested_action": "Let both files use the same language.",
    }]);
    let mut case = Case::new()
        .set("max_task_retries", json!(5))
        .set("coherence_interval", json!(1))
        .on_nth("coherence_eval", 1, report("CRITICAL", grave))
        .on("coherence_eval", report("HEALTHY", json!([])))
        .follow_ups("COH", "1");
    for nth in 1..=3 {
        case = case.on_subject_nth("execute", "T1", nth, json!([done()]));
    }
    let ran = case.run().expect(0).verified();
    assert_eq!(ran.steps("coherence_eval"), 2, "looked at again after its task: {:#?}", ran.log());
    let put = ran.events("task.put");
    let made = put.iter().find(|put| put["task"]["source"] == "coherence" && put["task"]["status"] == "done");
    assert_eq!(made.unwrap()["task"]["description"], "Let both files use the same language.");
}

#[test]
fn coherence_that_is_switched_off_looks_at_nothing() {
    let mut case = Case::new().set("max_task_retries", json!(5)).set("coherence", json!(false));
    for nth in 1..=3 {
        case = case.on_subject_nth("execute", "T1", nth, json!([done()]));
    }
    let ran = case.set("coherence_interval", json!(1)).run().expect(0).verified();
    assert_eq!(ran.steps("coherence_eval"), 0, "{:#?}", ran.log());
}
