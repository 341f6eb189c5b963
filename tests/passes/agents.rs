//! Agents that write what only the engine writes.

use serde_json::{Value, json};

use crate::case::{Case, Ran, concern, content, critique, judging, report, sh, write};

const FLIP_ALL: &str = "sed -i 's/\"passes\": false/\"passes\": true/' prd.json";

/// The readings that were not believed: what was touched, and the text that was found.
fn disbelieved(ran: &Ran) -> Vec<(Vec<String>, String)> {
    let read = ran.events("prd.read");
    let theirs = read.iter().filter(|data| data.get("theirs").is_some());
    theirs
        .map(|data| {
            let touched = data["touched"].as_array().cloned().unwrap_or_default();
            (touched.iter().map(|id| id.as_str().unwrap().to_owned()).collect(), ran.blob(&data["theirs"]))
        })
        .collect()
}

/// An author of `A` without a cage who does this beside a wrong word; then all goes well.
fn meddling(command: &str) -> Ran {
    let first = [write("a.txt", "wrong\n"), sh(command), report(None)];
    let second = [write("a.txt", "A\n"), report(Some("the word"))];
    let case = Case::prd(&["A", "B"]).unconfined().author("A", Some(1), &first).author("A", Some(2), &second);
    let ran = case.run().converged();
    assert_eq!(ran.chosen(), ["A 1", "A 2", "B 1"]);
    assert_eq!(ran.flipped(), ["A", "B"], "one at a time, by the engine");
    assert_eq!(ran.events("prd.read").iter().filter(|data| data["when"] == "restored").count(), 1);
    ran
}

#[test]
fn verdicts_of_an_author_are_put_back_and_recorded() {
    let ran = meddling(FLIP_ALL);
    let found = disbelieved(&ran);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, ["A", "B"]);
    assert_eq!(found[0].1.matches("\"passes\": true").count(), 2);
    assert!(ran.text("AGENTS.md").contains("the PRD was changed while an agent worked (A, B): not believed, put back"));
}

#[test]
fn a_flipped_item_of_a_good_author_is_put_back_too() {
    // A passes by its checks; B, which the same author flipped, does not.
    let case = Case::prd(&["A", "B"]).unconfined();
    let ran = case.author("A", None, &[write("a.txt", "A\n"), sh(FLIP_ALL), report(None)]).run().converged();
    assert_eq!(ran.chosen(), ["A 1", "B 1"]);
    assert_eq!(disbelieved(&ran)[0].0, ["A", "B"]);
    assert_eq!(ran.flipped(), ["A", "B"]);
    assert!(ran.path("b.txt").exists());
}

#[test]
fn a_file_that_an_author_deleted_comes_back() {
    let ran = meddling("rm prd.json");
    assert_eq!(disbelieved(&ran), [(vec!["the file itself".to_owned()], String::new())]);
    assert_eq!(ran.prd()["project"], "small");
}

#[test]
fn nonsense_in_the_place_of_the_file_is_put_away() {
    let ran = meddling("echo 'no items here' > prd.json");
    assert_eq!(disbelieved(&ran), [(vec!["the file itself".to_owned()], "no items here\n".to_owned())]);
    assert_eq!(ran.prd()["userStories"][1]["title"], "Item B");
}

#[test]
fn an_item_that_an_author_took_away_comes_back() {
    let without_b = r#"{"userStories":[{"id":"A","title":"Item A","acceptanceCriteria":["x"],"passes":false}]}"#;
    let ran = meddling(&format!("echo '{without_b}' > prd.json"));
    assert_eq!(disbelieved(&ran)[0].0, ["A", "B"]);
    assert_eq!(ran.passing(), ["A", "B"]);
}

#[test]
fn an_invented_item_that_passes_passes_nothing() {
    let add = r#"sed -i 's/"userStories": \[/"userStories": [{"id":"Z","title":"z","acceptanceCriteria":["z"],"passes":true},/' prd.json"#;
    let case = Case::prd(&["A"]).unconfined().author("A", None, &[write("a.txt", "A\n"), sh(add), report(None)]);
    let ran = case.run().converged();
    assert_eq!(disbelieved(&ran)[0].0, ["Z"]);
    assert_eq!((ran.flipped(), ran.passing()), (vec!["A".to_owned()], vec!["A".to_owned()]));
    assert!(ran.text("loop/prd.theirs.json").contains("\"Z\""), "what was put away is still there to read");
}

#[test]
fn an_item_that_an_author_made_easier_asks_for_what_it_asked() {
    let ran = meddling("sed -i 's/Item B/Anything/' prd.json");
    assert_eq!(disbelieved(&ran)[0].0, ["B"]);
    assert_eq!(ran.prd()["userStories"][1]["title"], "Item B");
}

/// The engine's own checks run what an author wrote.
#[test]
fn a_check_that_runs_an_authors_script_flips_nothing() {
    let author = [write("a.txt", "A\n"), write("x.hook", &format!("{FLIP_ALL}\n")), report(None)];
    let case = Case::prd(&["A", "B"])
        .check("tool", "for hook in *.hook; do [ ! -f $hook ] || sh $hook; done; true")
        .author("A", None, &author);
    let caged = case.run().converged();
    assert_eq!((caged.chosen(), caged.flipped()), (vec!["A 1".to_owned(), "B 1".into()], vec!["A".into(), "B".into()]));
    assert!(disbelieved(&caged).is_empty(), "it could not even write");
    let case = Case::prd(&["A", "B"])
        .check("tool", "for hook in *.hook; do [ ! -f $hook ] || sh $hook; done; true")
        .author("A", None, &author);
    let free = case.unconfined().run().converged();
    assert_eq!((free.chosen(), free.flipped()), (vec!["A 1".to_owned(), "B 1".into()], vec!["A".into(), "B".into()]));
    assert!(!disbelieved(&free).is_empty(), "it was seen");
}

#[test]
fn in_its_cage_an_author_cannot_write_the_file_at_all() {
    let log = sh("mkdir -p loop; echo x >> loop/log.txt");
    let tries = [write("prd.json", "{}"), write("progress.txt", "x"), sh(FLIP_ALL), sh("echo x >> progress.txt"), log];
    // After a call that fails the rest of a reply is left out.
    let mut turns: Vec<Value> = tries.iter().map(|one| json!({"calls": [one]})).collect();
    turns.push(json!({"calls": [write("a.txt", "A\n"), report(None)]}));
    let case = Case::prd(&["A", "B"]).file("progress.txt", "# mine\n");
    let ran = case.turns("author", Some("A"), None, json!(turns)).run().converged();
    assert!(disbelieved(&ran).is_empty());
    assert_eq!(ran.flipped(), ["A", "B"]);
    assert!(ran.text("progress.txt").starts_with("# mine\n\n##"), "{}", ran.text("progress.txt"));
    assert!(ran.text("loop/log.txt").starts_with("[OK] "), "{}", ran.text("loop/log.txt"));
}

/// A critic without a cage does this once, while it judges `A`.
fn meddling_critic(command: &str, critique: &Value) -> Ran {
    Case::prd(&["A", "B"]).program_critic(&format!("[ -f b.txt ] || {{ {command}; }}"), critique).run()
}

#[test]
fn verdicts_of_a_critic_are_not_believed_either() {
    let ran = meddling_critic(FLIP_ALL, &content("a.txt")).converged();
    assert_eq!(ran.chosen(), ["A 1", "B 1"]);
    assert_eq!(ran.flipped(), ["A", "B"]);
    assert_eq!(disbelieved(&ran)[0].0, ["A", "B"]);
    assert!(ran.text("AGENTS.md").contains("the PRD was changed while an agent worked (A, B): not believed, put back"));
}

#[test]
fn a_critic_that_flips_what_it_finds_wanting_flips_nothing() {
    let wanting = critique("UNVERIFIED", false, json!([concern("HIGH", "It is not there.")]));
    let ran = meddling_critic(FLIP_ALL, &judging(wanting, "1", false, "a.txt")).waits();
    assert_eq!(ran.asked(), [(1, "stuck".to_owned(), "A".to_owned()), (2, "stuck".to_owned(), "B".to_owned())]);
    assert!(ran.passing().is_empty() && ran.flipped().is_empty(), "{}", ran.text("prd.json"));
}

#[test]
fn a_file_that_a_critic_deleted_comes_back() {
    let ran = meddling_critic("rm prd.json", &content("a.txt")).converged();
    assert_eq!(disbelieved(&ran), [(vec!["the file itself".to_owned()], String::new())]);
    assert_eq!(ran.flipped(), ["A", "B"]);
}

#[test]
fn a_critic_of_an_item_that_changes_files_is_not_heard_and_stops_the_run() {
    let case = Case::prd(&["A", "B"]).set("park_and_continue", json!(false));
    let ran = case.program_critic("echo more >> a.txt", &content("a.txt")).run().waits();
    assert_eq!((ran.verdicts(), ran.routes()), (vec!["DISCARDED".to_owned()], vec!["ESCALATE".to_owned()]));
    assert_eq!(ran.asked(), [(1, "stuck".to_owned(), "A".to_owned())]);
    assert!(
        ran.events("pass.judged")[0]["detail"].as_str().unwrap().starts_with("a.txt changed while the critic read")
    );
    assert!(ran.passing().is_empty() && ran.flipped().is_empty());
}

#[test]
fn a_critic_in_its_cage_cannot_change_a_file() {
    let ran = Case::prd(&["A"]).critic(Some("A"), None, &[sh("echo more >> a.txt; rm -f prd.json"), content("a.txt")]);
    let ran = ran.run().converged();
    assert_eq!(ran.text("a.txt"), "A\n");
    assert_eq!(json!(ran.verdicts()), json!(["VERIFIED"]));
}

/// A program in the place of the author that ends like this.
fn dead(script: &str) -> Ran {
    let mut case = Case::prd(&["A", "B"]).unconfined().file("tools/dead-agent", &format!("#!/bin/sh\n{script}\n"));
    let mut agents = case.declared["agents"].clone();
    agents["dead"] = json!({"backend": "command", "command": ["./tools/dead-agent"]});
    case = case.declare("agents", agents).declare("roles", json!({"author": "dead"}));
    let bench = case.written();
    std::process::Command::new("chmod").arg("+x").arg(bench.workspace.join("tools/dead-agent")).status().unwrap();
    Ran::of(bench, &["run", "--headless"])
}

#[test]
fn a_dead_agent_program_is_named_with_its_exit_code_and_its_last_words() {
    let ran = dead(
        "cat >/dev/null\necho 'warming up' >&2\necho 'Error: cannot open the model socket' >&2\n\
         echo '    at connect (net.js:12:3)' >&2\necho 'Node.js v22.1.0' >&2\nexit 9",
    )
    .ends(4);
    let detail = ran.detail();
    let expected = "the agent program dead-agent ended before its turn was finished: it ended with code 9; it said: Error: \
                    cannot open the model socket";
    assert_eq!(detail, expected);
    assert!(!ran.ended.stdout.contains("model API"), "{}", ran.ended.stdout);
    assert_eq!(
        ran.report()["signal"].as_str().or(ran.events("run.halted")[0]["signal"].as_str()),
        Some("agent_failed")
    );
}

#[test]
fn a_discarded_critique_says_why_a_person_has_to_look() {
    let ran = Case::prd(&["A"]).program_critic("echo x >>a.txt", &content("a.txt")).run();
    let routes = ran.events("route.decided");
    let why = routes[0]["why"].as_str().unwrap();
    assert!(why.contains("a.txt") && why.ends_with("its critique is discarded"), "{why}");
    assert!(!ran.ended.stdout.contains("ESCALATE:  again"), "{}", ran.ended.stdout);
}
