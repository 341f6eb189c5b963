//! Items of a prd.json: all pass, in order; what stops a run before or after its first item.

use serde_json::{Value, json};

use crate::case::{Case, concern, content, critique, file_of, item, judging, report, sh, write};

#[test]
fn every_item_passes_in_the_order_of_priority() {
    let mut case = Case::prd(&["A", "B", "C"]);
    let mut items = ["A", "B", "C"].map(item);
    for (item, priority) in items.iter_mut().zip([3, 1, 2]) {
        item["priority"] = json!(priority);
    }
    case = case.file("prd.json", &format!("{}\n", json!({"userStories": items})));
    let ran = case.run().converged();
    assert_eq!(ran.chosen(), ["B 1", "C 1", "A 1"]);
    assert_eq!(ran.flipped(), ["B", "C", "A"]);
    assert_eq!(ran.passing(), ["A", "B", "C"]);
    assert_eq!(ran.routes(), ["CONTINUE", "CONTINUE", "CONTINUE"]);
    assert_eq!(ran.called(), ["author B", "critic B", "author C", "critic C", "author A", "critic A"]);
    assert_eq!(ran.prd()["userStories"][0]["notes"], "It is in its file.");
    let residuals = ran.bench.evidence("exit.json")["residual_history_decimal_strings"].clone();
    assert_eq!(residuals, json!(["0.666666666667", "0.333333333334", "0"]));
    assert_eq!(ran.text("loop/last_error.txt"), "", "nothing failed");
}

#[test]
fn without_priorities_the_order_of_the_file_counts() {
    let ran = Case::prd(&["B", "A"]).run().converged();
    assert_eq!(ran.chosen(), ["B 1", "A 1"]);
}

#[test]
fn one_line_of_the_file_changes_for_one_item() {
    let text = "{\"items\":[\n  {\"id\":\"A\",  \"acceptance\":[\"x\"],\"passes\" : false, \"owner\":\"ada\"},\n  {\"id\":\"B\",\"acceptance\":[\"y\"],\"passes\":true}\n]}";
    let ran = Case::prd(&["A", "B"]).file("prd.json", text).file("b.txt", "B\n").run().converged();
    let now = ran.text("prd.json");
    let wanted = text.replace("\"passes\" : false", "\"passes\" : true");
    assert_eq!(now.lines().count(), 4);
    assert_eq!((now.lines().next(), now.lines().nth(2), now.lines().nth(3)), {
        let mut lines = wanted.lines();
        (lines.next(), lines.nth(1), lines.next())
    });
    assert!(now.contains("\"passes\" : true,") && now.contains("\"owner\":\"ada\""), "{now}");
    assert_eq!(ran.chosen(), ["A 1"]);
}

#[test]
fn a_missing_sensor_stops_the_run() {
    let ran = Case::prd(&["A", "B"]).prd_item("A", json!({"check": ["no-such-program"]})).run();
    let ran = ran.ends(1).is("EXIT_BLOCKED", "ESCALATED");
    assert!(ran.detail().contains("MISSING_SENSOR") && ran.detail().contains("item A"), "{}", ran.detail());
    assert_eq!((ran.flipped().len(), ran.passing().len()), (0, 0));
    assert!(ran.called().is_empty(), "nobody is paid before the check can run: {:?}", ran.called());
}

#[test]
fn a_missing_project_check_stops_the_run_before_any_work() {
    let mut case = Case::prd(&["A"]);
    case.declared["acceptance_criteria"][0]["check"] = json!(["no-such-program"]);
    let ran = case.run().ends(1).is("EXIT_BLOCKED", "ESCALATED");
    assert!(ran.detail().contains("MISSING_SENSOR") && ran.detail().contains("sound"), "{}", ran.detail());
    assert!(ran.called().is_empty(), "{:?}", ran.called());
}

#[test]
fn what_is_no_verdict_is_asked_for_and_never_guessed() {
    for verdict in [None, Some(json!(null)), Some(json!("maybe"))] {
        let mut odd = item("B");
        match verdict.clone() {
            Some(value) => odd["passes"] = value,
            None => drop(odd.as_object_mut().unwrap().remove("passes")),
        }
        let text = json!({"userStories": [item("A"), odd]}).to_string();
        let ran = Case::prd(&["A", "B"]).file("prd.json", &text).run().ends(3).is("EXIT_NEED_INFO", "NULL_INPUT");
        assert!(ran.detail().contains("prd.json") && ran.detail().contains('B'), "{verdict:?}: {}", ran.detail());
        assert!(ran.called().is_empty());
        assert_eq!(ran.text("prd.json"), text);
    }
}

#[test]
fn a_file_that_is_missing_needs_a_person_and_one_that_is_done_nobody() {
    let case = Case::prd(&["A"]);
    std::fs::remove_file(case.bench.workspace.join("prd.json")).unwrap();
    let ran = case.run().ends(3).is("EXIT_NEED_INFO", "NULL_INPUT");
    assert!(ran.detail().contains("prd.json does not exist"), "{}", ran.detail());

    let mut done = item("A");
    done["passes"] = json!(true);
    let ran =
        Case::prd(&["A"]).file("a.txt", "A\n").file("prd.json", &json!({"userStories": [done]}).to_string()).run();
    assert_eq!(ran.ended.code, 0, "{}{}", ran.ended.stdout, ran.ended.stderr);
    assert!(ran.ended.stdout.contains("Already met"), "{}", ran.ended.stdout);
}

#[test]
fn a_retry_that_changes_nothing_is_refused_and_not_judged() {
    let case = Case::prd(&["A"]).failing("A", 1).author("A", Some(2), &[report(Some("nothing at all"))]);
    let ran = case.author("A", Some(3), &[write("a.txt", "A\n"), report(Some("the word"))]).run().converged();
    assert_eq!(ran.verdicts(), ["UNVERIFIED", "REFUSED", "VERIFIED"]);
    assert_eq!(ran.routes(), ["LOOP", "LOOP", "CONTINUE"]);
    assert_eq!(ran.called(), ["author A", "author A", "author A", "critic A"]);
    assert!(ran.text("loop/log.txt").contains("the same attempt again is refused"));
}

#[test]
fn a_retry_says_what_is_different_and_not_the_same_again() {
    // (what comes first and is not taken, a word of the reason)
    let same = call_with_same_ends();
    for (bad, why) in [(report(None), "not the first attempt"), (same, "are the same")] {
        let turns = json!([{"calls": [write("a.txt", "A\n"), bad]}, {"calls": [report(Some("the word"))]}]);
        let ran = Case::prd(&["A"]).failing("A", 1).turns("author", Some("A"), Some(2), turns).run().converged();
        assert_eq!(ran.chosen(), ["A 1", "A 2"]);
        assert!(ran.told("submit_author_report").iter().any(|text| text.contains(why)), "{why}");
        assert_eq!(ran.events("report.accepted").len(), 3, "two authors and a critic");
    }
    // The third attempt repeats the note of the second.
    let third = json!([{"calls": [write("a.txt", "A\n"), report(Some("bad"))]}, {"calls": [report(Some("the word"))]}]);
    let ran = Case::prd(&["A"]).failing("A", 2).turns("author", Some("A"), Some(3), third).run().converged();
    assert!(ran.told("submit_author_report").iter().any(|text| text.contains("what an earlier attempt said")));
}

fn call_with_same_ends() -> serde_json::Value {
    let mut same = report(Some("x"));
    same["input"]["retry"]["from"] = json!("x");
    same
}

#[test]
fn an_item_that_breaks_an_earlier_one_does_not_pass() {
    let breaking = [write("b.txt", "B\n"), write("a.txt", "broken\n"), report(None)];
    let mending = [write("a.txt", "A\n"), report(Some("a.txt stays"))];
    let case = Case::prd(&["A", "B"]).author("B", Some(1), &breaking).author("B", Some(2), &mending);
    let ran = case.run().converged();
    assert_eq!(ran.chosen(), ["A 1", "B 1", "B 2"]);
    let judged = &ran.events("pass.judged")[1];
    assert_eq!((&judged["verdict"], &judged["failed"]), (&json!("UNVERIFIED"), &json!(["check of item A"])));
    assert_eq!(ran.flipped(), ["A", "B"]);
}

#[test]
fn a_broken_project_fails_whatever_the_critic_says() {
    let breaking = [write("a.txt", "A\n"), write("broken", ""), report(None)];
    let mending = [sh("rm broken"), report(Some("nothing broken"))];
    let ran = Case::prd(&["A"]).author("A", Some(1), &breaking).author("A", Some(2), &mending).run().converged();
    assert_eq!(ran.verdicts(), ["UNVERIFIED", "VERIFIED"]);
    assert_eq!(ran.called(), ["author A", "author A", "critic A"], "what the checks say needs no critic");
}

#[test]
fn a_change_outside_the_scope_is_flagged() {
    let case = Case::prd(&["A", "B"]).prd_item("A", json!({"files": ["a.txt"]}));
    let ran = case.author("A", None, &[write("a.txt", "A\n"), write("far.txt", "x\n"), report(None)]).run().converged();
    let judged = ran.events("pass.judged");
    assert_eq!(judged[0]["out_of_scope"], json!(["far.txt"]));
    assert!(judged[1].get("out_of_scope").is_none(), "{}", judged[1]);
    let words = "changed outside the item's scope: far.txt";
    assert!(ran.text("AGENTS.md").contains(words));
    assert!(ran.ended.stdout.matches(words).count() >= 2, "in a line and at the end: {}", ran.ended.stdout);
    assert_eq!(ran.report()["remarks"], json!([format!("iteration 0, A: {words}")]));
}

#[test]
fn a_critic_who_is_not_content_sends_the_author_back() {
    let unhappy = critique("UNVERIFIED", true, json!([concern("MEDIUM", "It says nothing more.")]));
    let unhappy = judging(unhappy, "1", false, "a.txt");
    let retry = [write("a.txt", "A and more\n"), report(Some("more words"))];
    let case = Case::prd(&["A"]).critic(Some("A"), Some(1), &[unhappy]).author("A", Some(2), &retry);
    let ran = case.run().converged();
    assert_eq!(ran.verdicts(), ["UNVERIFIED", "VERIFIED"]);
    assert_eq!(ran.events("pass.judged")[0]["concerns"][0]["severity"], "MEDIUM");
    assert!(ran.text("loop/last_error.txt").contains("- MEDIUM a.txt:1: It says nothing more. -> Write it better."));
    let asked = ran.prompt_of("author", 2);
    assert!(asked.contains("LAST_PASS") && asked.contains("It says nothing more."), "{asked}");
}

#[test]
fn every_criterion_of_an_item_is_judged_with_a_file_that_exists() {
    // Not judged, judged met without a file: told to the critic. A file that does not exist: not verified.
    let bare = critique("VERIFIED", false, json!([]));
    let mut without = content("a.txt");
    without["input"]["judged"][0]["artifact"] = json!("");
    let first = json!([{"calls": [bare]}, {"calls": [content("nowhere.txt")]}]);
    let second = json!([{"calls": [without]}, {"calls": [content("a.txt")]}]);
    let retry = [write("a.txt", "A again\n"), report(Some("again"))];
    let case = Case::prd(&["A"]).turns("critic", Some("A"), Some(1), first).author("A", Some(2), &retry);
    let ran = case.turns("critic", Some("A"), Some(2), second).run().converged();
    let told = ran.told("submit_critique");
    assert!(told.iter().any(|text| text.contains("criterion 1 of A is not judged")), "{told:?}");
    assert!(told.iter().any(|text| text.contains("name the artifact")), "{told:?}");
    assert_eq!(ran.verdicts(), ["UNVERIFIED", "VERIFIED"]);
    assert!(ran.events("pass.judged")[0]["detail"].as_str().unwrap().contains("artifact does not exist"));
}

#[test]
fn the_budget_ends_a_run_with_items_left() {
    let case = Case::prd(&["A", "B", "C", "D"]).declare("budget", json!({"max_iterations": 3}));
    let ran = case.run().ends(2).is("EXIT_BUDGET_EXCEEDED", "MAX_ITERS");
    assert_eq!(ran.passing(), ["A", "B", "C"]);
    assert_eq!(file_of("D"), "d.txt");
    assert!(!ran.path("d.txt").exists());
}

/// An attempt that a limit of the iteration cut is an attempt.
#[test]
fn an_attempt_that_is_cut_counts() {
    let busy: Vec<Value> = (0..85).map(|n| json!({"calls": [sh(&format!("echo {n} >> a.txt"))]})).collect();
    let case = Case::prd(&["A"]).turns("author", Some("A"), None, json!(busy));
    let case = case.declare("budget", json!({"max_iterations": 9, "max_tool_calls_per_iteration": 80}));
    let ran = case.run().waits();
    assert_eq!(ran.verdicts(), ["UNVERIFIED", "UNVERIFIED", "UNVERIFIED"]);
    assert_eq!(ran.asked(), [(1, "stuck".to_owned(), "A".to_owned())]);
    assert!(ran.text("loop/log.txt").contains("cut: the budget for"), "{}", ran.text("loop/log.txt"));
}

/// Skills speak to a swarm: what an author was not told is not linked.
#[test]
fn a_capsule_of_a_pass_links_no_skill() {
    let ran = Case::prd(&["A"]).file("skills/house.md", "- Tabs.\n").run().converged();
    assert_eq!(ran.bench.evidence("iter_0/cnf_capsule.json")["skill_pack"], json!([]));
    for started in ran.events("agent.started") {
        let message = ran.blob(&started["message"]);
        assert!(message.contains("\\\"skill_pack\\\": []") && !message.contains("Tabs."), "{message}");
    }
}

const INSTALL: &str =
    "mkdir -p node_modules/a; i=0; while [ $i -lt 12000 ]; do echo $i > node_modules/a/$i.js; i=$((i+1)); done";

#[test]
fn an_installation_that_nothing_ignores_does_not_end_the_run() {
    let ran =
        Case::prd(&["A"]).author("A", None, &[write("a.txt", "A\n"), sh(INSTALL), report(None)]).run().converged();
    assert!(ran.text("AGENTS.md").contains("12000 new files below node_modules"));
}

#[test]
fn a_change_out_of_scope_cannot_hide_among_many() {
    let few = INSTALL.replace("12000", "1500");
    let case = Case::prd(&["A"]).prd_item("A", json!({"files": ["a.txt", "node_modules/**"]}));
    let calls = [write("a.txt", "A\n"), write("zz/other.txt", "x\n"), sh(&few), report(None)];
    let ran = case.author("A", None, &calls).run();
    let judged = ran.events("pass.judged");
    assert_eq!(judged[0]["out_of_scope"], json!(["zz/other.txt"]), "{}", judged[0]);
}
