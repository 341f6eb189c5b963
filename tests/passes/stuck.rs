//! Items whose attempts are used up: a person is asked, and what they say is done.

use serde_json::json;

use crate::case::{Case, Ran, concern, critique, edit, file_of, item, judging, report, write};

/// `A` fails three times, each time differently; whoever goes on finds the word in the fourth attempt.
fn exhausted() -> Case {
    let fourth = [write("a.txt", "A\n"), report(None)];
    Case::prd(&["A", "B"]).failing("A", 3).author("A", Some(4), &fourth)
}

#[track_caller]
fn stopped_at_a(ran: Ran) -> Ran {
    let ran = ran.waits();
    assert_eq!(ran.chosen(), ["A 1", "A 2", "A 3"], "three loops, and no other item");
    assert_eq!(ran.routes(), ["LOOP", "LOOP", "ADVANCE_WITH_WARNINGS"]);
    assert_eq!(ran.asked(), [(1, "stuck".to_owned(), "A".to_owned())]);
    assert!(ran.passing().is_empty() && ran.flipped().is_empty());
    assert!(ran.text("loop/last_error.txt").starts_with("---- ERROR VECTOR (A, attempt 3, UNVERIFIED) ----\n"));
    assert!(ran.text("loop/last_error.txt").contains("---- check of item A ----\npoor\n"));
    ran
}

#[test]
fn a_hint_reaches_the_next_author() {
    let ran = stopped_at_a(exhausted().run());
    let inbox = ran.bench.nightloop(&["inbox"]).expect(0).stdout;
    assert!(inbox.contains("d1") && inbox.contains("split") && inbox.contains("skip"), "{inbox}");
    let ran = ran.answer("d1", "Write the letter A.").resume().converged();
    assert_eq!(ran.chosen()[3..], ["A 1", "B 1"]);
    assert!(ran.prompt_of("author", 4).contains("HINT OF THE OPERATOR\nWrite the letter A.\n"));
    assert!(!ran.prompt_of("author", 5).contains("HINT"), "it was about A");
    assert_eq!(ran.passing(), ["A", "B"]);
}

#[test]
fn retry_gives_three_more_loops_and_then_asks_again() {
    let ran = stopped_at_a(Case::prd(&["A", "B"]).failing("A", 6).run()).answer("d1", "retry").resume().waits();
    assert_eq!(ran.chosen()[3..], ["A 1", "A 2", "A 3"]);
    assert_eq!(ran.asked().len(), 2);
    assert_eq!(ran.asked()[1], (2, "stuck".to_owned(), "A".to_owned()));
    // To wait once more changes nothing.
    let ran = ran.resume().waits();
    assert_eq!((ran.chosen().len(), ran.asked().len()), (6, 2));
}

#[test]
fn a_skipped_item_is_left_alone_and_the_run_is_no_success() {
    let ran = stopped_at_a(exhausted().run()).answer("d1", "skip").resume().ends(1).is("EXIT_BLOCKED", "ESCALATED");
    assert_eq!(ran.chosen()[3..], ["B 1"]);
    assert_eq!(ran.passing(), ["B"]);
    assert!(ran.detail().contains("skipped by a person: A"), "{}", ran.detail());
}

#[test]
fn a_split_item_makes_room_for_its_parts() {
    let case = exhausted().author("A1", None, &[write("a1.txt", "A1\n"), report(None)]);
    let case = case.critic(Some("A1"), None, &[crate::case::content("a1.txt")]);
    let ran = stopped_at_a(case.run());
    edit(&ran.bench, |prd| prd["userStories"] = json!([item("A1"), item("B")]));
    let ran = ran.answer("d1", "split").resume().converged();
    assert_eq!(ran.chosen()[3..], ["A1 1", "B 1"]);
    assert_eq!(ran.passing(), ["A1", "B"]);
}

#[test]
fn a_split_that_keeps_the_old_item_is_no_success() {
    let ran = stopped_at_a(exhausted().run()).answer("d1", "split").resume().ends(1).is("EXIT_BLOCKED", "ESCALATED");
    assert_eq!(ran.passing(), ["B"]);
}

#[test]
fn quit_ends_the_run() {
    let ran = stopped_at_a(exhausted().run()).answer("d1", "quit").resume().ends(1).is("EXIT_BLOCKED", "HUMAN_QUIT");
    assert_eq!(ran.chosen().len(), 3);
}

#[test]
fn a_parked_item_waits_while_the_others_go_on() {
    let case = Case::prd(&["A", "B", "C"]).failing("A", 3).author("A", Some(4), &[write("a.txt", "A\n"), report(None)]);
    let ran = case.set("park_and_continue", json!(true)).run().waits();
    assert_eq!(ran.chosen(), ["A 1", "A 2", "A 3", "B 1", "C 1"]);
    assert_eq!(ran.asked(), [(1, "stuck".to_owned(), "A".to_owned())]);
    assert_eq!(ran.events("decision.asked")[0]["request"]["parked"], true);
    assert_eq!(ran.passing(), ["B", "C"]);
    let kinds: Vec<String> = ran.bench.events().into_iter().map(|(kind, _)| kind).collect();
    let at = |kind: &str, nth: usize| kinds.iter().enumerate().filter(|(_, known)| *known == kind).nth(nth).unwrap().0;
    assert!(at("decision.asked", 0) < at("item.settled", 3), "it is open while B is worked on");
    let ran = ran.answer("d1", "retry").resume().converged();
    assert_eq!(ran.chosen()[5..], ["A 1"]);
    assert_eq!(ran.passing(), ["A", "B", "C"]);
}

#[test]
fn two_parked_items_wait_side_by_side() {
    let case = Case::prd(&["A", "B", "C"]).failing("A", 3).failing("B", 3);
    let ran = case.set("park_and_continue", json!(true)).run().waits();
    assert_eq!(ran.asked().iter().map(|(_, _, item)| item.as_str()).collect::<Vec<_>>(), ["A", "B"]);
    assert_eq!(ran.passing(), ["C"]);
    let ran = ran.answer("d2", "skip").resume().waits();
    let ran = ran.answer("d1", "skip").resume().ends(1).is("EXIT_BLOCKED", "ESCALATED");
    assert_eq!(ran.chosen().len(), 7);
}

#[test]
fn the_same_failure_without_a_known_fix_has_its_three_loops() {
    let mut case = Case::prd(&["A"]);
    for (nth, word) in (1..=3).zip(["one", "two", "three"]) {
        let calls = [write("a.txt", "wrong\n"), write("more.txt", word), report((nth > 1).then_some(word))];
        case = case.author("A", Some(nth), &calls);
    }
    let ran = case.run().waits();
    assert_eq!(ran.routes(), ["LOOP", "LOOP", "ADVANCE_WITH_WARNINGS"]);
    assert_eq!(ran.asked(), [(1, "stuck".to_owned(), "A".to_owned())]);
}

/// Three loops and no fourth: the detour is one of them.
#[test]
fn a_detour_that_does_not_help_is_one_of_the_three_loops() {
    let lint = "echo lint error: would reformat; exit 1";
    let case = Case::prd(&["A", "B"]).prd_item("A", json!({"check": ["sh", "-c", lint]})).failing("A", 5);
    let detours = json!([{"for": "lint_errors", "command": ["touch", "useless"]}]);
    let ran = case.set("detours", detours).run().waits();
    assert_eq!(ran.chosen(), ["A 1", "A 2", "A 3"]);
    assert_eq!(ran.routes(), ["LOOP", "DETOUR auto-linter", "ADVANCE_WITH_WARNINGS"]);
    assert_eq!(ran.asked(), [(1, "stuck".to_owned(), "A".to_owned())]);
}

#[test]
fn a_known_fix_is_tried_for_an_item() {
    let lint = "test -f formatted || { echo lint error: would reformat; exit 1; }";
    let case = Case::prd(&["A"]).prd_item("A", json!({"check": ["sh", "-c", lint]}));
    let case = case.failing("A", 2).set("detours", json!([{"for": "lint_errors", "command": ["touch", "formatted"]}]));
    let ran = case.run().converged();
    assert_eq!(ran.routes(), ["LOOP", "DETOUR auto-linter", "CONTINUE"]);
    assert_eq!(ran.called(), ["author A", "author A", "critic A"]);
    assert_eq!(ran.passing(), ["A"]);
}

#[test]
fn a_critic_who_sees_no_way_leaves_the_item_to_a_person() {
    let hopeless = critique("UNVERIFIED", false, json!([concern("HIGH", "It needs another design.")]));
    let case = Case::prd(&["A", "B"]).critic(Some("A"), None, &[judging(hopeless, "1", false, &file_of("A"))]);
    let ran = case.run().waits();
    assert_eq!(ran.routes(), ["TERMINATE"]);
    assert_eq!(ran.asked(), [(1, "stuck".to_owned(), "A".to_owned())]);
    assert!(ran.passing().is_empty());
}
