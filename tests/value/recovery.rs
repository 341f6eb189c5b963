//! Recovery that can finish, with the shipped template: a stuck task, a shut gate, a flaky or a wrong check, a wrong
//! verification of a pause. The value rises in no check, so that only what is done keeps a run from drifting.

use serde_json::{Value, json};

use crate::case::{
    Case, Ran, add_task, call, complete, correction, done, research, script, sh, turns, vrc, write, wrong_check,
};

fn has(ran: &Ran, words: &str) -> bool {
    ran.log().iter().any(|line| line.contains(words))
}

#[track_caller]
fn delivered(case: Case) -> Ran {
    let ran = case.run().expect(0).verified();
    assert!(ran.text("DELIVERY_REPORT.md").contains("Delivered"), "{:#?}", ran.log());
    ran
}

/// Fixes, research and more fixes do not help; a correction brings a task that does.
pub fn chain() -> Case {
    let scripts = [script("unit/one", "one.txt", "uno"), script("value/two", "two.txt", "two")];
    let another = add_task("T3", json!({"description": "Translate the first file.", "dependencies": ["T2"]}));
    let fixer = json!([{"calls": [sh("true")]}, {"text": "No cause in the product can be seen."}]);
    Case::shipped()
        .on("generate_verifications", json!([{"text": "Checks.", "calls": scripts}, done()]))
        .on("fix", fixer)
        .on("research", turns(&[&[research("uno is Spanish.", &[])]]))
        .on("course_correct", turns(&[&[another, correction("new_tasks", json!({}))]]))
        .on_subject("execute", "T3", turns(&[&[write("one.txt", "one uno\n")], &[complete("T3")]]))
}

#[test]
fn the_whole_chain_of_recovery_comes_to_its_end() {
    let ran = delivered(chain());
    // Five fixes, research, fixes until ten steps moved nothing, one correction.
    assert_eq!((ran.calls("fix"), ran.calls("research"), ran.steps("course_correct")), (9, 1, 1), "{:#?}", ran.log());
    let told = &ran.messages("fix")[1];
    assert!(told.contains("No cause in the product can be seen."), "the last words of the fixer before: {told}");
}

/// The builder of T2 comes to nothing three times; then the course is corrected like this.
fn stuck_task(calls: &[Value]) -> Case {
    let mut case = Case::shipped().on("course_correct", turns(&[calls]));
    for nth in 1..=3 {
        let said = json!({"text": format!("Attempt {nth} led nowhere.")});
        case = case.on_subject_nth("execute", "T2", nth, json!(vec![said; 6]));
    }
    case
}

pub fn restructured() -> Case {
    let wish =
        json!({"action": "modify", "task_id": "T2", "status": "pending", "description": "Write two.txt, simply."});
    stuck_task(&[call("manage_task", wish), correction("restructure", json!({}))])
}

pub fn descoped() -> Case {
    let wish = json!({"action": "modify", "task_id": "T2", "status": "descoped"});
    let scripts = [script("unit/one", "one.txt", "one")];
    let case = stuck_task(&[call("manage_task", wish), correction("descope", json!({}))]);
    case.on("generate_verifications", json!([{"text": "One.", "calls": scripts}, done()]))
}

pub fn replaced() -> Case {
    let away = json!({"action": "modify", "task_id": "T2", "status": "descoped"});
    let instead = add_task("T3", json!({"description": "Copy the first file and change its word."}));
    let case = stuck_task(&[instead, call("manage_task", away), correction("new_tasks", json!({}))]);
    case.on_subject("execute", "T3", turns(&[&[write("two.txt", "two\n")], &[complete("T3")]]))
}

#[test]
fn a_stuck_task_is_restructured() {
    let ran = delivered(restructured());
    assert_eq!(ran.task("T2")["status"], "done");
    let told = &ran.messages("execute")[2];
    assert!(told.contains("Attempt 1 led nowhere."), "{told}");
}

#[test]
fn a_stuck_task_is_descoped() {
    let ran = delivered(descoped());
    assert!(!ran.bench.workspace.join("two.txt").exists());
}

#[test]
fn a_stuck_task_is_replaced_by_new_ones() {
    let ran = delivered(replaced());
    assert_eq!((&ran.task("T3")["status"], ran.steps("course_correct")), (&json!("done"), 1));
}

pub fn shut_twice() -> Case {
    let gap = |id: &str, task: Option<&str>| json!([{"id": id, "description": format!("{id} is missing."), "severity": "degraded", "suggested_task": task}]);
    // The second judge does not say how to close the gap; it becomes work all the same.
    let mut case = Case::shipped()
        .on_nth("exit_gate", 1, turns(&[&[vrc("0.9", "CONTINUE", gap("help", Some("Write help.txt.")))]]))
        .on_nth("exit_gate", 2, turns(&[&[vrc("0.9", "CONTINUE", gap("index", None))]]));
    for (task, file) in [("EG-1-help", "help.txt"), ("EG-2-index", "index.txt")] {
        case = case.on_subject("execute", task, turns(&[&[write(file, "here\n")], &[complete(task)]]));
    }
    case
}

#[test]
fn a_gate_that_fails_twice_is_then_passed() {
    let ran = delivered(shut_twice());
    assert_eq!((ran.steps("exit_gate"), ran.steps("execute")), (3, 4), "{:#?}", ran.log());
    assert!(ran.bench.workspace.join("help.txt").exists() && ran.bench.workspace.join("index.txt").exists());
}

#[test]
fn a_gate_that_names_nothing_to_do_is_not_tried_again_without_work() {
    let case = Case::shipped()
        .on("exit_gate", turns(&[&[vrc("0.9", "CONTINUE", json!([]))]]))
        .on("course_correct", turns(&[&[correction("restructure", json!({}))]]));
    let ran = case.run().expect(2).verified();
    assert_eq!((ran.steps("exit_gate"), ran.steps("course_correct")), (1, 1), "{:#?}", ran.log());
}

/// `unit/one` counts its runs where no tree looks, and fails in these.
pub fn flaky(fails: &str) -> Case {
    let text = format!(
        "#!/bin/sh\ntest -e fixed.txt && exit 0\nmkdir -p build\nn=$(($(cat build/runs 2>/dev/null || echo 0) + 1))\n\
         echo $n > build/runs\ncase $n in {fails}) echo \"lost in run $n\"; exit 1;; esac\n"
    );
    let scripts = [write(".loop/verifications/unit/one.sh", &text), script("value/two", "two.txt", "two")];
    Case::shipped()
        .file(".gitignore", "build/\n")
        .on("generate_verifications", json!([{"text": "Checks.", "calls": scripts}, done()]))
        .on("fix", json!([{"calls": [write("fixed.txt", "steady\n")]}, done()]))
}

fn flaky_words(ran: &Ran) -> bool {
    ran.text("DELIVERY_REPORT.md").contains("flaky:")
}

#[test]
fn a_check_that_fails_once_at_the_gate_is_run_again_and_named() {
    // Run 1 is RUN_QC, run 2 the sweep of the gate; of four runs three pass.
    let ran = delivered(flaky("2"));
    assert!(has(&ran, "flaky: 3 of 4 runs passed"), "{:#?}", ran.log());
    assert!(flaky_words(&ran) && ran.steps("fix") == 0 && ran.steps("exit_gate") == 1);
}

#[test]
fn a_check_that_is_too_flaky_at_the_gate_goes_to_the_fixer() {
    let ran = delivered(flaky("2|4|5"));
    assert_eq!((ran.steps("fix"), ran.steps("exit_gate")), (1, 2), "{:#?}", ran.log());
    let told = &ran.messages("fix")[0];
    assert!(told.contains("flaky: 1 of 4 runs passed"), "{told}");
}

#[test]
fn a_check_that_fails_once_in_a_replay_costs_no_certificate() {
    let ran = delivered(flaky("3"));
    assert!(flaky_words(&ran) && ran.steps("fix") == 0 && ran.steps("exit_gate") == 1, "{:#?}", ran.log());
}

#[test]
fn a_check_that_is_too_flaky_in_a_replay_goes_to_the_fixer_and_the_run_goes_on() {
    let ran = delivered(flaky("3|5|6"));
    assert_eq!(ran.events("claim.taken_back").len(), 1);
    assert_eq!((ran.steps("fix"), ran.steps("exit_gate")), (1, 2), "{:#?}", ran.log());
}

pub fn wrongly_checked() -> Case {
    let wrong = [script("unit/one", "one.txt", "uno"), script("value/two", "two.txt", "two")];
    Case::shipped()
        .on("generate_verifications", json!([{"text": "Checks.", "calls": wrong}, done()]))
        .on("fix", json!([{"calls": [wrong_check("unit/one")]}, {"text": "The check is wrong."}]))
        .on_subject(
            "generate_verifications",
            "unit/one",
            json!([{"text": "Anew.", "calls": [script("unit/one", "one.txt", "one")]}, done()]),
        )
}

#[test]
fn a_wrong_check_is_written_anew_by_its_author() {
    let ran = delivered(wrongly_checked());
    assert_eq!((ran.calls("fix"), ran.steps("course_correct")), (1, 0), "{:#?}", ran.log());
    let told = &ran.messages("generate_verifications")[1];
    assert!(told.contains("The PRD promises the word one, in English."), "{told}");
}

#[test]
fn a_check_that_stands_is_not_argued_about_again() {
    let right = [script("unit/one", "one.txt", "uno"), script("value/two", "two.txt", "two")];
    let case = Case::shipped()
        .on("generate_verifications", json!([{"text": "Checks.", "calls": right}, done()]))
        .on_nth("fix", 1, json!([{"calls": [wrong_check("unit/one")]}, done()]))
        .on_nth("fix", 2, json!([{"calls": [wrong_check("unit/one"), write("one.txt", "one uno\n")]}, done()]))
        .on_subject("generate_verifications", "unit/one", json!([done()]));
    let ran = delivered(case);
    assert_eq!((ran.calls("fix"), ran.calls("generate_verifications")), (2, 2), "{:#?}", ran.log());
    assert!(ran.messages("fix")[1].contains("its author looked again: it stands"));
}

pub fn task_wrongly_checked() -> Case {
    let plan = [
        add_task("T1", json!({"description": "Write one.txt.", "check": ["grep", "-q", "uno", "one.txt"]})),
        add_task("T2", json!({"description": "Two people look for two.txt.", "dependencies": ["T1"]})),
    ];
    let anew = json!({"action": "modify", "task_id": "T1", "check": ["grep", "-q", "one", "one.txt"]});
    let more = json!({"action": "modify", "task_id": "T1", "acceptance": "Anything."});
    Case::shipped()
        .on("plan", json!([{"text": "A plan.", "calls": plan}, done()]))
        .on_subject_nth(
            "execute",
            "T1",
            1,
            turns(&[&[write("one.txt", "one\n"), wrong_check("T1")], &[complete("T1")]]),
        )
        .on_subject(
            "generate_verifications",
            "T1",
            json!([{"calls": [call("manage_task", more), call("manage_task", anew)]}, done()]),
        )
}

#[test]
fn a_wrong_check_of_a_task_is_written_anew_by_its_author() {
    let ran = delivered(task_wrongly_checked());
    let task = ran.task("T1");
    assert_eq!(task["check"], json!(["grep", "-q", "one", "one.txt"]), "{task}");
    assert_eq!(task["acceptance"], "T1 can be read.", "the author of checks changes nothing else");
    assert_eq!((&task["retries"], &task["dispute"]["settled"]), (&json!(0), &json!("written_anew")));
}

#[test]
fn a_task_that_breaks_the_check_of_another_is_seen_at_once() {
    let case = Case::shipped().on_subject(
        "execute",
        "T2",
        turns(&[&[sh("echo two > two.txt; echo spoilt > one.txt")], &[complete("T2")]]),
    );
    let ran = delivered(case);
    assert!(has(&ran, "T2 is done, but broke T1"), "{:#?}", ran.log());
    let work: Vec<String> = ran.work().into_iter().filter(|action| !action.starts_with("vrc")).collect();
    let executed = work.iter().filter(|action| *action == "execute").count();
    assert_eq!(executed, 3, "{:#?}", ran.log());
    let messages = ran.messages("execute");
    let told = messages.last().unwrap();
    assert!(told.contains("Was done; its check fails since T2"), "{told}");
    assert!(told.contains("+spoilt"), "with the diff: {told}");
    assert_eq!(ran.text("one.txt"), "one\n");
}

#[test]
fn a_broken_verification_names_the_task_after_which_it_failed() {
    let plan = [
        add_task("T1", json!({"description": "Write one.txt."})),
        add_task("T2", json!({"description": "Two people look for two.txt.", "dependencies": ["T1"]})),
    ];
    let late =
        json!([{"id": "g", "description": "No footer.", "severity": "degraded", "suggested_task": "Add a footer."}]);
    let case = Case::shipped()
        .on("plan", json!([{"text": "A plan.", "calls": plan}, done()]))
        .on_nth("exit_gate", 1, turns(&[&[vrc("0.9", "CONTINUE", late)]]))
        .on_subject("execute", "EG-1-g", turns(&[&[write("one.txt", "spoilt\n")], &[complete("EG-1-g")]]))
        .on("fix", json!([{"calls": [write("one.txt", "one\n")]}, done()]));
    let ran = delivered(case);
    let told = &ran.messages("fix")[0];
    assert!(told.contains(r#"\"broke_after\":\"EG-1-g\""#), "{told}");
    assert!(told.contains("-one") && told.contains("+spoilt"), "with the diff of that task: {told}");
}

pub fn paused() -> Case {
    let ask = call(
        "request_human_action",
        json!({
            "action": "Get the key.",
            "instructions": "Put the key into key.txt.",
            "blocked_task_id": "T2",
            "verification_command": ["test", "-s", "kye.txt"],
        }),
    );
    Case::shipped()
        .set("max_pause_checks", json!(1))
        .on_subject_nth("execute", "T2", 1, turns(&[&[ask]]))
        .on_subject_nth("execute", "T2", 2, turns(&[&[write("two.txt", "two\n")], &[complete("T2")]]))
}

#[test]
fn a_wrong_verification_of_a_pause_is_replaced_by_the_operator() {
    let ran = paused().run().expect(3);
    ran.put("key.txt", "k\n");
    // The command that the agent gave looks for another file; it may fail once.
    let ran = ran.answer_and_go_on(&["d1", "done"]).expect(3);
    ran.bench.nightloop(&["answer", "d1", "done"]).expect(64);
    let ran = ran.answer_and_go_on(&["d1", "check", "test -s no.txt"]).expect(3);
    let ran = ran.answer_and_go_on(&["d1", "check", "test -s key.txt"]).expect(0).verified();
    let answers: Vec<Value> = ran.events("decision.answered").into_iter().map(|one| one["answer"].clone()).collect();
    assert_eq!(answers.last(), Some(&json!({"done_by": {"command": ["sh", "-c", "test -s key.txt"]}})));
}

#[test]
fn a_wrong_verification_of_a_pause_is_overridden_with_a_reason() {
    let ran = paused().run().expect(3).answer_and_go_on(&["d1", "done"]).expect(3);
    let refused = ran.bench.nightloop(&["answer", "d1", "override"]);
    assert!(refused.code != 0 && refused.stderr.contains("note"), "{}{}", refused.stdout, refused.stderr);
    let ran = ran.answer_and_go_on(&["d1", "override", "--note", "I saw the key."]).expect(0).verified();
    let report = ran.text("DELIVERY_REPORT.md");
    assert!(report.contains("override (I saw the key.)"), "{report}");
}
