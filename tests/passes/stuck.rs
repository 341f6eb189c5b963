//! Items whose attempts are used up: a person is asked, and what they say is done.

use serde_json::json;

use crate::case::{Case, Ran, concern, critique, edit, file_of, item, judging, report, write};

/// `A` fails three times, each time differently; whoever goes on finds the word in the fourth attempt.
fn exhausted() -> Case {
    let fourth = [write("a.txt", "A\n"), report(None)];
    waiting(Case::prd(&["A", "B"]).failing("A", 3).author("A", Some(4), &fourth))
}

/// A run that works on nothing else while a person is asked.
fn waiting(case: Case) -> Case {
    case.set("park_and_continue", json!(false))
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
    let ran =
        stopped_at_a(waiting(Case::prd(&["A", "B"]).failing("A", 6)).run()).answer("d1", "retry").resume().waits();
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
    let ran = case.run().waits();
    assert_eq!(ran.chosen(), ["A 1", "A 2", "A 3", "B 1", "C 1"], "nobody has to say so");
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
    let ran = case.run().waits();
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
    let ran = case.set("detours", detours).set("park_and_continue", json!(false)).run().waits();
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
    let ran = waiting(case).run().waits();
    assert_eq!(ran.routes(), ["TERMINATE"]);
    assert_eq!(ran.asked(), [(1, "stuck".to_owned(), "A".to_owned())]);
    assert!(ran.passing().is_empty());
}

#[test]
fn the_morning_says_what_is_parked_why_and_how_to_go_on() {
    let case = Case::prd(&["A", "B", "C"]).failing("A", 3).failing("C", 3);
    let ran = case.run().waits();
    let status = ran.bench.nightloop(&["status"]).expect(0).stdout;
    for told in [&ran.ended.stdout, &status] {
        for (item, command) in [("A", "nightloop retry A --hint '…'"), ("C", "nightloop retry C --hint '…'")] {
            let parked = format!(
                "  parked: {item} Item {item} (3 attempts)\n    last: not passed: check of item {item} (exit 1, poor)\n"
            );
            assert!(told.contains(&parked), "{parked}\n{told}");
            assert!(told.contains(&format!("    next: {command}\n")), "{told}");
        }
    }
    assert!(ran.detail().contains("A") && ran.detail().contains("1 more"), "{}", ran.detail());
    let brief = ran.text("evidence/loop/inbox.md");
    assert!(
        brief.contains("(exit 1, poor)") && brief.contains("\nTry it again: `nightloop retry C --hint '…'`\n"),
        "{brief}"
    );
    let inbox = ran.bench.nightloop(&["inbox"]).expect(0).stdout;
    assert!(inbox.contains("or: nightloop retry A --hint"), "{inbox}");
}

#[test]
fn an_item_is_tried_again_by_its_name_with_a_hint() {
    let case = Case::prd(&["A", "B"]).failing("A", 3).author("A", Some(4), &[write("a.txt", "A\n"), report(None)]);
    let ran = case.run().waits();
    assert_eq!(ran.passing(), ["B"]);
    let said = ran.bench.nightloop(&["retry", "A", "--hint", "Write the letter A."]).expect(0).stdout;
    assert_eq!(said, "A is tried again, with your hint; `nightloop resume` continues the run\n");
    let ran = ran.resume().converged();
    assert!(ran.prompt_of("author", 5).contains("HINT OF THE OPERATOR\nWrite the letter A.\n"));
    assert_eq!(ran.passing(), ["A", "B"]);
}

#[test]
fn a_retry_may_resume_the_run_at_once() {
    let case = Case::prd(&["A"]).failing("A", 3).author("A", Some(4), &[write("a.txt", "A\n"), report(None)]);
    let ran = case.run().waits();
    let ran = Ran::of(ran.bench, &["retry", "A", "--resume"]).converged();
    assert!(ran.ended.stdout.starts_with("A is tried again\n"), "{}", ran.ended.stdout);
    assert_eq!(ran.chosen(), ["A 1", "A 2", "A 3", "A 1"]);
}

#[test]
fn a_stuck_item_is_skipped_by_its_name() {
    let ran = Case::prd(&["A", "B"]).failing("A", 3).run().waits();
    ran.bench.nightloop(&["skip", "A"]).expect(0);
    let ran = ran.resume().ends(1).is("EXIT_BLOCKED", "ESCALATED");
    assert!(ran.detail().contains("skipped by a person: A"), "{}", ran.detail());
}

/// Parts that replace `A`: each with its file.
fn parts() -> String {
    serde_json::to_string_pretty(&json!([item("A1"), item("A2")])).unwrap()
}

fn with_parts() -> Case {
    let mut case = Case::prd(&["A", "B"]).failing("A", 3);
    for part in ["A1", "A2"] {
        case = case.author(part, None, &[write(&file_of(part), &format!("{part}\n")), report(None)]);
        case = case.critic(Some(part), None, &[crate::case::content(&file_of(part))]);
    }
    case
}

#[test]
fn a_split_item_stays_in_the_file_linked_and_its_parts_are_worked_on() {
    let ran = with_parts().run().waits();
    let before = ran.text("prd.json");
    ran.put("parts.json", &parts());
    let said = ran.bench.nightloop(&["split", "A", "--with", "parts.json"]).expect(0).stdout;
    assert!(said.starts_with("prd.json: A is split into A1, A2\n"), "{said}");
    let after = ran.text("prd.json");
    let kept = after.lines().filter(|line| before.contains(line)).count();
    assert!(kept >= before.lines().count() - 1, "every other line is as it was: {after}");
    let ran = ran.resume().converged();
    assert_eq!(ran.chosen()[4..], ["A1 1", "A2 1"]);
    assert_eq!(ran.passing(), ["A1", "A2", "B"]);
    let stories = ran.prd()["userStories"].clone();
    assert_eq!((stories[0]["splitInto"].clone(), stories[0]["passes"].clone()), (json!(["A1", "A2"]), json!(false)));
    // What was split is no work for the next run either.
    let next = Ran::of(ran.bench, &["run", "--headless", "--anyway"]);
    assert!(!next.ended.stdout.contains("it0 works on A"), "{}", next.ended.stdout);
}

#[test]
fn the_parts_are_written_in_an_editor_from_a_draft() {
    let ran = with_parts().run().waits();
    // An editor that renames the parts of the draft.
    let editor = ran.path("editor.sh");
    std::fs::write(&editor, "#!/bin/sh\nsed -i -e 's/\"Aa\"/\"A1\"/' -e 's/\"Ab\"/\"A2\"/' \"$1\"\n").unwrap();
    let mut command = ran.bench.command(&["split", "A", "--resume"]);
    command.env("EDITOR", format!("sh {}", editor.display()));
    let ran = Ran { ended: crate::support::case::unattended(command), bench: ran.bench }.converged();
    assert_eq!(ran.passing(), ["A1", "A2", "B"]);
    assert_eq!(ran.prd()["userStories"][1]["title"], "Item A (part 1)");
}

#[test]
fn an_editor_that_fails_and_parts_that_are_none_change_nothing() {
    let ran = with_parts().run().waits();
    let before = ran.text("prd.json");
    let mut command = ran.bench.command(&["split", "A"]);
    command.env("EDITOR", "false");
    let ended = crate::support::case::unattended(command).expect(64);
    assert!(ended.stderr.contains("the editor ended with an error"), "{}", ended.stderr);
    ran.put("parts.json", &serde_json::to_string(&json!([item("A1")])).unwrap());
    let ended = ran.bench.nightloop(&["split", "A", "--with", "parts.json"]).expect(64);
    assert!(ended.stderr.contains("two parts or more"), "{}", ended.stderr);
    assert_eq!(ran.text("prd.json"), before);
    assert_eq!(ran.events("decision.answered").len(), 0);
}

#[test]
fn what_is_not_stuck_is_said_plainly() {
    let ran = Case::prd(&["A", "B", "C"]).failing("A", 3).run().waits();
    for (item, expected) in [("B", "B is not stuck: it passes"), ("Z", "has no item `Z`")] {
        for command in ["retry", "skip", "split"] {
            let told = ran.bench.nightloop(&[command, item]).expect(64).stderr;
            assert!(told.contains(expected), "{command} {item}: {told}");
        }
    }
    let told = ran.bench.nightloop(&["retry", "Z"]).stderr;
    assert!(told.contains("its items: A, B, C"), "{told}");
    assert!(ran.bench.nightloop(&["skip", "B"]).stderr.contains("stuck: A"));
    ran.bench.nightloop(&["retry", "A"]).expect(0);
    let told = ran.bench.nightloop(&["retry", "A"]).expect(64).stderr;
    assert!(told.contains("A is not stuck: d1 about it was answered with `retry`"), "{told}");
    let micro = Case::micro().writes(1, "A\n").says(1, critique("VERIFIED", false, json!([]))).run();
    assert!(micro.bench.nightloop(&["retry", "A"]).expect(64).stderr.contains("has no items"));
}

#[test]
fn a_stuck_item_of_a_run_at_work_is_answered_there() {
    let case = Case::prd(&["A", "B"]).failing("A", 3).author("A", Some(4), &[write("a.txt", "A\n"), report(None)]);
    let case = case.author("B", None, &[crate::case::held(), write("b.txt", "B\n"), report(None)]);
    let running = case.start().meanwhile(|bench| {
        let said = bench.nightloop(&["retry", "A", "--hint", "The letter."]).expect(0).stdout;
        assert!(said.contains("d1 answered"), "{said}");
    });
    let ran = running.wait().converged();
    assert_eq!(ran.chosen(), ["A 1", "A 2", "A 3", "B 1", "A 1"]);
}
