//! prd.json edited by hand while the run goes on: nothing of it is lost, and nothing is taken that cannot be read.

use std::fs;

use serde_json::{Value, json};

use crate::case::{Case, content, edit, held, item, passing, report, write};
use crate::support::Bench;

/// The author of `A` waits for the test.
fn held_at_a() -> Case {
    let case = Case::prd(&["A", "B"]).author("A", None, &[held(), write("a.txt", "A\n"), report(None)]);
    let case = case.author("C", None, &[write("c.txt", "C\n"), report(None)]);
    case.critic(Some("C"), None, &[content("c.txt")])
}

fn items(prd: &mut Value) -> &mut Vec<Value> {
    prd["userStories"].as_array_mut().unwrap()
}

#[test]
fn an_item_added_while_an_author_works_is_worked_on() {
    let add = |bench: &Bench| edit(bench, |prd| items(prd).insert(1, item("C")));
    let ran = held_at_a().start().meanwhile(add).wait().converged();
    assert_eq!(ran.chosen(), ["A 1", "C 1", "B 1"]);
    assert_eq!(ran.passing(), ["A", "C", "B"]);
}

#[test]
fn other_words_are_kept_beside_the_flip() {
    let reword = |bench: &Bench| {
        edit(bench, |prd| {
            items(prd)[1]["title"] = json!("B, said better");
            items(prd)[1]["acceptanceCriteria"] = json!(["b.txt has the word B", "it is short"]);
            prd["owner"] = json!("ada");
        });
    };
    let mut both = content("b.txt");
    both["input"]["judged"]
        .as_array_mut()
        .unwrap()
        .push(json!({"criterion": "2", "met": true, "artifact": "b.txt", "why": "One line."}));
    let ran = held_at_a().critic(Some("B"), None, &[both]).start().meanwhile(reword).wait().converged();
    let prd = ran.prd();
    assert_eq!((&prd["owner"], &prd["userStories"][1]["title"]), (&json!("ada"), &json!("B, said better")));
    assert_eq!(ran.passing(), ["A", "B"]);
    assert!(ran.prompt_of("author", 2).contains("2. it is short"), "the author of B sees the new words");
}

#[test]
fn an_item_that_asks_for_something_else_meanwhile_is_judged_by_its_new_words() {
    let reword = |bench: &Bench| edit(bench, |prd| items(prd)[0]["acceptanceCriteria"] = json!(["A", "and more"]));
    let mut both = content("a.txt");
    both["input"]["judged"]
        .as_array_mut()
        .unwrap()
        .push(json!({"criterion": "2", "met": true, "artifact": "a.txt", "why": "More."}));
    let case = held_at_a().turns("critic", Some("A"), None, json!([{"calls": [content("a.txt")]}, {"calls": [both]}]));
    let ran = case.start().meanwhile(reword).wait().converged();
    assert!(ran.told("submit_critique").iter().any(|text| text.contains("criterion 2 of A is not judged")));
    assert_eq!(ran.prd()["userStories"][0]["acceptanceCriteria"], json!(["A", "and more"]));
}

/// The verdict of somebody who cannot be told from the agent is not believed, and not lost either.
#[test]
fn a_verdict_set_while_an_author_works_is_kept_in_the_record() {
    let flip = |bench: &Bench| {
        edit(bench, |prd| {
            items(prd)[1]["passes"] = json!(true);
            items(prd)[1]["title"] = json!("B by hand");
        });
    };
    let ran = held_at_a().start().meanwhile(flip).wait().converged();
    let read = ran.events("prd.read");
    let found = read.iter().find(|data| data.get("theirs").is_some()).expect("the reading is recorded");
    assert_eq!(found["touched"], json!(["B"]));
    let theirs: Value = serde_json::from_str(&ran.blob(&found["theirs"])).unwrap();
    assert_eq!(passing(&theirs), ["B"]);
    assert_eq!(ran.prd()["userStories"][1]["title"], "B by hand", "the words stay");
    assert_eq!(ran.chosen(), ["A 1", "B 1"], "it has to be shown");
}

#[test]
fn a_verdict_set_between_two_iterations_is_a_persons_word() {
    // A run that waits for a person is between two iterations.
    let ran = Case::prd(&["A", "B"]).failing("A", 3).set("park_and_continue", json!(false)).run().waits();
    edit(&ran.bench, |prd| items(prd)[0]["passes"] = json!(true));
    ran.put("a.txt", "A\n");
    let ran = ran.answer("d1", "retry").resume().converged();
    assert_eq!(ran.chosen()[3..], ["B 1"]);
    assert_eq!((ran.passing(), ran.flipped()), (vec!["A".into(), "B".into()], vec!["B".into()]));
}

#[test]
fn a_verdict_by_hand_that_its_check_denies_is_no_success() {
    let ran = Case::prd(&["A", "B"]).failing("A", 3).failing("B", 3).run().waits();
    edit(&ran.bench, |prd| items(prd)[0]["passes"] = json!(true));
    let ran = ran.answer("d1", "retry").resume();
    assert_ne!(ran.ended.code, 0, "{}", ran.ended.stdout);
    assert!(ran.flipped().is_empty(), "the check of A fails");
}

#[test]
fn an_item_taken_back_by_hand_is_worked_on_again() {
    let ran = Case::prd(&["A", "B"]).failing("B", 3).run().waits();
    assert_eq!(ran.passing(), ["A"]);
    edit(&ran.bench, |prd| items(prd)[0]["passes"] = json!(false));
    let ran = ran.answer("d1", "skip").resume();
    assert_eq!(ran.chosen()[4..5], ["A 2".to_owned()], "{:?}", ran.chosen());
}

/// The critic of `A` waits while the file changes; the cage keeps the critic itself from writing.
fn while_the_critic_reads(act: impl FnOnce(&Bench)) -> crate::case::Ran {
    let waits = crate::case::sh("until grep -q MARK prd.json 2>/dev/null; do sleep 0.01; done");
    let case = Case::prd(&["A", "B"]).critic(Some("A"), None, &[waits, content("a.txt")]);
    let case =
        case.author("C", None, &[write("c.txt", "C\n"), report(None)]).critic(Some("C"), None, &[content("c.txt")]);
    let running = case.start();
    crate::harness::wait_until("the critic reads", || crate::harness::tool_is_running(&running.bench, "bash"));
    act(&running.bench);
    running.wait()
}

#[test]
fn an_item_added_while_a_critic_reads_is_worked_on() {
    let ran = while_the_critic_reads(|bench| {
        edit(bench, |prd| {
            items(prd).push(item("C"));
            prd["by"] = json!("MARK");
        });
    });
    let ran = ran.converged();
    assert_eq!(ran.chosen(), ["A 1", "B 1", "C 1"]);
    assert_eq!((ran.passing(), &ran.prd()["by"]), (vec!["A".into(), "B".into(), "C".into()], &json!("MARK")));
}

#[test]
fn an_item_that_changes_while_a_critic_reads_is_not_flipped_for_its_old_words() {
    let ran = while_the_critic_reads(|bench| {
        edit(bench, |prd| items(prd)[0]["acceptanceCriteria"] = json!(["MARK: something else"]));
    });
    let settled = &ran.events("item.settled")[0];
    assert_eq!(settled["passes"], false);
    assert!(settled["problem"].as_str().unwrap().contains("was changed while it was worked on"), "{settled}");
    assert_eq!(ran.prd()["userStories"][0]["acceptanceCriteria"], json!(["MARK: something else"]));
    assert_eq!(ran.chosen()[..2], ["A 1", "A 2"]);
    // The second attempt finds that nothing is left to do: it is judged by the new words all the same.
    let ran = ran.converged();
    assert_eq!(ran.verdicts(), ["VERIFIED", "VERIFIED", "VERIFIED"]);
}

#[test]
fn a_verdict_set_while_a_critic_reads_is_kept_in_the_record() {
    let ran = while_the_critic_reads(|bench| {
        edit(bench, |prd| {
            items(prd)[1]["passes"] = json!(true);
            items(prd)[1]["title"] = json!("B by hand, MARK");
        });
    });
    let ran = ran.converged();
    let read = ran.events("prd.read");
    let found = read.iter().find(|data| data.get("theirs").is_some()).expect("the reading is recorded");
    assert_eq!((&found["when"], &found["touched"]), (&json!("after_work"), &json!(["B"])));
    assert_eq!(ran.prd()["userStories"][1]["title"], "B by hand, MARK", "the words stay");
    assert_eq!((ran.chosen(), ran.flipped()), (vec!["A 1".into(), "B 1".into()], vec!["A".into(), "B".into()]));
}

#[test]
fn a_file_broken_by_hand_is_mended_and_the_run_goes_on() {
    let ran = Case::prd(&["A", "B"]).failing("A", 3).author("A", Some(4), &[write("a.txt", "A\n"), report(None)]);
    let ran = ran.run().waits();
    let good = ran.text("prd.json");
    ran.put("prd.json", "{ \"userStories\": [ oops\n");
    let ran = ran.answer("d1", "retry").resume().waits();
    assert_eq!(ran.asked()[1].1, "human_action");
    let why = ran.events("decision.asked")[1]["request"]["instructions"].as_str().unwrap().to_owned();
    assert!(why.starts_with("Mend prd.json") && why.contains("1:"), "{why}");
    assert_eq!(ran.text("prd.json"), "{ \"userStories\": [ oops\n", "what a person wrote is left alone");
    // Still broken: asked again.
    let ran = ran.answer("d2", "done").resume().waits();
    assert_eq!(ran.asked().len(), 3);
    ran.put("prd.json", &good);
    let ran = ran.answer("d3", "done").resume().converged();
    assert_eq!(ran.passing(), ["A", "B"]);
}

#[test]
fn a_file_broken_while_an_author_works_is_left_to_the_person_who_writes_it() {
    let good = std::sync::Mutex::new(String::new());
    let broken = |bench: &Bench| {
        *good.lock().unwrap() = fs::read_to_string(bench.workspace.join("prd.json")).unwrap();
        fs::write(bench.workspace.join("prd.json"), "{").unwrap();
    };
    let ran = held_at_a().start().meanwhile(broken).wait().waits();
    assert_eq!(ran.text("prd.json"), "{", "in its cage an author cannot have written it");
    ran.put("prd.json", &good.lock().unwrap());
    let ran = ran.answer("d1", "done").resume().converged();
    assert_eq!(ran.passing(), ["A", "B"]);
}
