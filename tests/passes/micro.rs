//! Microloops: every way out of one.

use serde_json::{Value, json};

use crate::case::{Case, concern, critique, judging, report, write};

fn unhappy(help: bool, words: &str) -> Value {
    critique("UNVERIFIED", help, json!([concern("MEDIUM", words)]))
}

fn happy() -> Value {
    critique("VERIFIED", false, json!([]))
}

/// So many passes of an author, each with words of its own, and a critic who wants something else each time.
fn restless(passes: u32) -> Case {
    let words = ["more", "less", "longer", "shorter", "louder", "softer", "wider"];
    let passes = (1..=passes).zip(words);
    passes.fold(Case::micro(), |case, (nth, word)| {
        case.writes(nth, &format!("A {word}\n")).says(nth, unhappy(true, &format!("It should be {word}.")))
    })
}

#[test]
fn verified_at_once() {
    let ran = Case::micro().writes(1, "A\n").says(1, happy()).run().converged();
    assert_eq!((ran.verdicts(), ran.routes()), (vec!["VERIFIED".to_owned()], vec!["CONTINUE".to_owned()]));
    assert_eq!(ran.called(), ["author", "critic"]);
    let route = &ran.events("route.decided")[0];
    assert_eq!((&route["offroad"], &route["pass"], &route["limit"]), (&json!(false), &json!(1), &json!(3)));
}

#[test]
fn the_critique_reaches_the_author_and_the_second_pass_is_verified() {
    let ran = restless(1).writes(2, "A better\n").says(2, happy()).run().converged();
    assert_eq!(ran.routes(), ["LOOP", "CONTINUE"]);
    let asked = ran.prompt_of("author", 2);
    assert!(asked.contains("- MEDIUM a.txt:1: It should be more. -> Write it better."), "{asked}");
    assert!(!ran.prompt_of("critic", 2).contains("LAST_PASS"), "a critic looks for itself");
}

#[test]
fn no_viable_fix_path() {
    let ran = Case::micro().writes(1, "A\n").says(1, unhappy(false, "It needs another design.")).run();
    let ran = ran.ends(1).is("EXIT_BLOCKED", "NO_VIABLE_FIX_PATH");
    assert_eq!((ran.verdicts(), ran.routes()), (vec!["UNVERIFIED".to_owned()], vec!["TERMINATE".to_owned()]));
    assert!(ran.detail().contains("1 MEDIUM"), "{}", ran.detail());
}

#[test]
fn the_limit_is_asked_about_and_left_as_it_is_no_success() {
    let ran = restless(3).run().waits();
    assert_eq!(ran.routes(), ["LOOP", "LOOP", "ADVANCE_WITH_WARNINGS"]);
    assert_eq!(ran.asked(), [(1, "stuck".to_owned(), String::new())]);
    let asked = ran.events("decision.asked");
    assert!(asked[0]["why"].as_str().unwrap().starts_with("ADVANCE_WITH_WARNINGS: "), "{}", asked[0]);
    assert!(ran.bench.nightloop(&["inbox"]).expect(0).stdout.contains("skip (leave it as it is)"));
    let ran = ran.answer("d1", "skip").resume().ends(2).is("EXIT_BUDGET_EXCEEDED", "MAX_ITERS");
    assert!(!ran.verdicts().contains(&"VERIFIED".to_owned()));
    assert!(ran.detail().contains("after 3 passes, and not verified"), "{}", ran.detail());
    assert!(ran.is_uncertified());
}

#[test]
fn after_the_limit_a_hint_gives_as_many_passes_again() {
    let ran = restless(3).writes(4, "A at last\n").says(4, happy()).run().waits();
    let ran = ran.answer("d1", "Say it louder.").resume().converged();
    assert!(ran.prompt_of("author", 4).contains("Say it louder."));
}

#[test]
fn the_limit_follows_the_flow_or_the_declaration() {
    let ran = restless(5).set("flow", json!("build")).run().waits();
    assert_eq!(ran.verdicts().len(), 5);
    let ran = restless(2).set("limit", json!(2)).run().waits();
    assert_eq!(ran.verdicts().len(), 2);
    let ran = restless(2).writes(3, "A at last\n").says(3, happy()).run().converged();
    assert_eq!(ran.routes(), ["LOOP", "LOOP", "CONTINUE"], "verified at the limit is verified");
}

/// An author who fails the same check twice; `phrase` says of which kind the failure is.
fn repeated(phrase: &str, passes: u32) -> Case {
    let check = format!("test -f fixed || {{ echo '{phrase}'; exit 1; }}");
    let words = ["one", "two", "three", "four", "five", "six"];
    let passes = (1..=passes).zip(words);
    passes.fold(Case::micro().check("kind", &check), |case, (nth, word)| {
        case.writes(nth, &format!("A {word}\n")).says(nth, unhappy(true, &format!("Not {word}.")))
    })
}

#[test]
fn the_same_failure_twice_takes_a_declared_command() {
    let case = repeated("lint error: would reformat", 2).says(3, happy());
    let detours = json!([{"for": "lint_errors", "command": ["touch", "fixed"]}]);
    let ran = case.set("detours", detours).run().converged();
    assert_eq!(ran.routes(), ["LOOP", "DETOUR auto-linter", "CONTINUE"]);
    assert_eq!(ran.called(), ["author", "critic", "author", "critic", "critic"]);
    assert_eq!(ran.events("pass.judged")[2]["by"], json!({"detour": "auto-linter"}));
    let limits: Vec<Value> = ran.events("route.decided").iter().map(|route| route["pass"].clone()).collect();
    assert_eq!(limits, [1, 2, 3], "a detour is a retry");
}

#[test]
fn the_same_failure_twice_takes_an_agent_of_the_catalogue() {
    let case = repeated("ModuleNotFoundError: no module named x", 2).says(3, happy());
    let fix = json!([{"text": "I add it.", "calls": [write("fixed", "")]}, {"text": "Done."}]);
    let ran = case.turns("detour", Some("import-fixer"), None, fix).run().converged();
    assert_eq!(ran.routes(), ["LOOP", "DETOUR import-fixer", "CONTINUE"]);
    assert_eq!(ran.called(), ["author", "critic", "author", "critic", "fixer import-fixer", "critic"]);
    assert!(ran.prompt_of("fixer", 1).contains("import-fixer"), "{}", ran.prompt_of("fixer", 1));
}

#[test]
fn the_same_failure_without_a_known_fix_gets_the_tries_that_remain_and_then_a_person() {
    let case = repeated("nobody knows this", 3);
    let case =
        case.turns("author", None, Some(4), json!([{"calls": [write("fixed", ""), report(None)]}])).says(4, happy());
    let ran = case.run().waits();
    assert_eq!(ran.routes(), ["LOOP", "LOOP", "ADVANCE_WITH_WARNINGS"]);
    assert_eq!(ran.asked(), [(1, "stuck".to_owned(), String::new())]);
    let refused = ran.bench.nightloop(&["answer", "d1", ""]);
    assert_ne!(refused.code, 0, "there is nothing to skip");
    let ran = ran.answer("d1", "Look at the file named fixed.").resume().converged();
    assert!(ran.prompt_of("author", 4).contains("HINT OF THE OPERATOR\nLook at the file named fixed.\n"));
}

#[test]
fn a_person_may_quit() {
    let ran = repeated("nobody knows this", 3).run().waits();
    ran.answer("d1", "quit").resume().ends(1).is("EXIT_BLOCKED", "HUMAN_QUIT");
}

#[test]
fn after_two_detours_a_person_has_to_look() {
    let case = repeated("lint error: would reformat", 6).set("limit", json!(9));
    let ran = case.set("detours", json!([{"for": "lint_errors", "command": ["touch", "useless"]}])).run().waits();
    assert_eq!(ran.routes(), ["LOOP", "DETOUR auto-linter", "LOOP", "DETOUR auto-linter", "LOOP", "ESCALATE"]);
    assert_eq!(ran.asked(), [(1, "stuck".to_owned(), String::new())]);
    let why = ran.events("route.decided")[5]["why"].as_str().unwrap().to_owned();
    assert!(why.contains("after every detour that is allowed"), "{why}");
}

#[test]
fn a_detour_is_a_retry_and_after_the_last_one_a_person_is_asked() {
    let detours = || json!([{"for": "lint_errors", "command": ["touch", "useless"]}]);
    let ran = repeated("lint error: would reformat", 3).set("detours", detours()).run().waits();
    assert_eq!(ran.routes(), ["LOOP", "DETOUR auto-linter", "ADVANCE_WITH_WARNINGS"]);
    assert_eq!(ran.asked(), [(1, "stuck".to_owned(), String::new())]);
    // A flow that builds has room for the second one.
    let case = repeated("lint error: would reformat", 4).set("flow", json!("build"));
    let ran = case.set("detours", detours()).run().waits();
    let routes = ["LOOP", "DETOUR auto-linter", "LOOP", "DETOUR auto-linter", "ADVANCE_WITH_WARNINGS"];
    assert_eq!(ran.routes(), routes);
}

#[test]
fn a_critic_that_edits_files_blocks_the_run() {
    let ran = Case::micro().writes(1, "A\n").program_critic("echo better >> a.txt", &happy()).run();
    let ran = ran.waits();
    assert_eq!(ran.verdicts(), ["DISCARDED"]);
    assert!(ran.detail().contains("a.txt changed while the critic read"), "{}", ran.detail());
    assert!(ran.is_uncertified());
    ran.answer("d1", "quit").resume().ends(1).is("EXIT_BLOCKED", "HUMAN_QUIT");
}

#[test]
fn a_critique_without_its_judgement_goes_back_to_the_critic() {
    let mut without = happy();
    without["input"].as_object_mut().unwrap().remove("can_further_iteration_help");
    let turns = json!([{"calls": [without.clone()]}, {"calls": [happy()]}]);
    let ran = Case::micro().writes(1, "A\n").turns("critic", None, Some(1), turns).run().converged();
    let told = ran.told("submit_critique");
    assert!(told[0].contains("can_further_iteration_help"), "{told:?}");

    // One that never complies is no critic: a person has to look.
    let turns: Vec<Value> =
        (0..12).map(|_| json!({"calls": [without]})).chain([json!({"text": "I am done."})]).collect();
    let ran = Case::micro().writes(1, "A\n").turns("critic", None, Some(1), json!(turns)).run().waits();
    assert_eq!((ran.verdicts(), ran.routes()), (vec!["BLOCKED".to_owned()], vec!["ESCALATE".to_owned()]));
    assert_eq!(ran.asked(), [(1, "stuck".to_owned(), String::new())]);
    assert!(ran.events("report.accepted").iter().all(|data| data["report"]["role"] != "critic"));
}

#[test]
fn verified_with_a_grave_concern_contradicts_itself() {
    for severity in ["HIGH", "MEDIUM"] {
        let torn = critique("VERIFIED", false, json!([concern(severity, "It is wrong.")]));
        let turns = json!([{"calls": [torn]}, {"calls": [happy()]}]);
        let ran = Case::micro().writes(1, "A\n").turns("critic", None, Some(1), turns).run().converged();
        assert!(ran.told("submit_critique")[0].contains("contradicts itself"), "{severity}");
    }
    let polish = critique("VERIFIED", false, json!([concern("LOW", "It could be nicer.")]));
    Case::micro().writes(1, "A\n").says(1, polish).run().converged();
}

#[test]
fn a_concern_needs_a_place() {
    let mut nowhere = unhappy(true, "Something is wrong.");
    nowhere["input"]["concerns"][0]["location"] = json!("somewhere");
    let turns = json!([{"calls": [nowhere]}, {"calls": [happy()]}]);
    let ran = Case::micro().writes(1, "A\n").turns("critic", None, Some(1), turns).run().converged();
    assert!(ran.told("submit_critique")[0].contains("path:line"));
}

#[test]
fn blocked_asks_a_person() {
    let ran = Case::micro().writes(1, "A\n").says(1, critique("BLOCKED", false, json!([]))).run().waits();
    assert_eq!((ran.verdicts(), ran.routes()), (vec!["BLOCKED".to_owned()], vec!["ESCALATE".to_owned()]));
    assert_eq!(ran.asked(), [(1, "stuck".to_owned(), String::new())]);
}

#[test]
fn a_judged_criterion_needs_the_critics_word() {
    let judged = || {
        let mut case = Case::micro().writes(1, "A\n");
        let clear = json!({"id": "clear", "text": "It is clear.", "judge": "skeptic"});
        case.declared["acceptance_criteria"].as_array_mut().unwrap().push(clear);
        case
    };
    let turns = json!([{"calls": [happy()]}, {"calls": [judging(happy(), "clear", true, "a.txt")]}]);
    let ran = judged().turns("critic", None, Some(1), turns).run().converged();
    assert!(ran.told("submit_critique")[0].contains("without a judgement of criterion `clear`"));

    let unclear = judging(unhappy(false, "It is not clear."), "clear", false, "a.txt");
    judged().says(1, unclear).run().ends(1).is("EXIT_BLOCKED", "NO_VIABLE_FIX_PATH");
}

#[test]
fn a_failing_check_outweighs_a_content_critic() {
    let case = Case::micro().writes(1, "wrong\n").says(1, critique("VERIFIED", true, json!([])));
    let ran = case.writes(2, "A\n").says(2, happy()).run().converged();
    assert_eq!(ran.verdicts(), ["UNVERIFIED", "VERIFIED"]);
    assert_eq!(ran.events("pass.judged")[0]["failed"], json!(["word"]));
}

#[test]
fn a_content_critic_does_not_take_the_next_pass_from_the_author() {
    // VERIFIED goes with "nothing more can help", which is no word about a check that fails.
    let ran = Case::micro().writes(1, "wrong\n").says(1, happy()).writes(2, "A\n").says(2, happy()).run().converged();
    assert_eq!((ran.verdicts(), ran.routes()[0].as_str()), (vec!["UNVERIFIED".into(), "VERIFIED".into()], "LOOP"));
}

#[test]
fn a_missing_check_stops_a_microloop() {
    let mut case = Case::micro();
    case.declared["acceptance_criteria"][1]["check"] = json!(["no-such-program"]);
    let ran = case.run().ends(1).is("EXIT_BLOCKED", "ESCALATED");
    assert!(ran.detail().contains("MISSING_SENSOR"), "{}", ran.detail());
}

#[test]
fn without_a_check_nothing_begins() {
    let ran = Case::micro().declare("acceptance_criteria", json!(["It is good."])).run();
    let ran = ran.ends(3).is("EXIT_NEED_INFO", "NULL_INPUT");
    assert!(ran.detail().contains("no check is declared"), "{}", ran.detail());
    assert!(ran.called().is_empty());
}

/// Verified, but something else is missing: no further pass can change that.
#[test]
fn a_verified_result_that_cannot_be_certified_ends_the_run() {
    let case = Case::micro().check("tests", "sh tests/a_test.sh").file("tests/a_test.sh", "false\n");
    let author = [write("a.txt", "A\n"), write("tests/a_test.sh", "true\n"), report(None)];
    let case = case.declare("budget", json!({"max_iterations": 9}));
    let case = case.turns("author", None, Some(1), json!([{"calls": author}]));
    let ran = case.says(1, critique("VERIFIED", false, json!([]))).run();
    // The check is green by a changed test alone: a person has to look, and nobody is there.
    let ran = ran.waits();
    assert_eq!(ran.verdicts().len(), 1, "{:?}", ran.verdicts());
}
