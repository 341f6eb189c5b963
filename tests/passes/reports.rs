//! Reports that cannot be taken: asked for again once, with what was wrong; then the attempt has failed, and says so.

use serde_json::{Value, json};

use crate::case::{Case, Ran, concern, content, critique, report, write};

/// An agent program that hands in these reports one after the other, the last one again and again, and counts its starts.
fn program(case: Case, role: &str, work: &str, reports: &[Value]) -> Case {
    let arms: String = reports
        .iter()
        .enumerate()
        .map(|(index, report)| {
            let which = if index + 1 == reports.len() { "*".to_owned() } else { (index + 1).to_string() };
            let text = report.as_str().map_or_else(|| report["input"].to_string(), str::to_owned);
            format!("{which}) cat <<'END'\n```json\n{text}\n```\nEND\n;;\n")
        })
        .collect();
    let script = format!(
        "#!/bin/sh\ncat >> \"$PROMPTS\"\nn=$(cat \"$STARTS\" 2>/dev/null || echo 0); n=$((n+1)); echo $n > \"$STARTS\"\n\
         {work}\ncase $n in\n{arms}esac\n"
    );
    let place = case.bench.dir.path().to_owned();
    let script = script
        .replace("$STARTS", &place.join("starts").display().to_string())
        .replace("$PROMPTS", &place.join("prompts").display().to_string());
    std::fs::write(place.join("agent.sh"), script).unwrap();
    let mut agents = case.declared["agents"].clone();
    agents["other"] = json!({"backend": "command", "command": ["sh", place.join("agent.sh")]});
    case.unconfined().declare("agents", agents).declare("roles", json!({role: "other"}))
}

fn starts(ran: &Ran) -> u32 {
    std::fs::read_to_string(ran.bench.dir.path().join("starts")).unwrap().trim().parse().unwrap()
}

fn prompts(ran: &Ran) -> String {
    std::fs::read_to_string(ran.bench.dir.path().join("prompts")).unwrap()
}

/// A critique with one word of its own that leaves a field out.
fn without(field: &str, word: &str) -> Value {
    let mut bad = content("a.txt");
    bad["input"]["reason"] = json!(word);
    bad["input"].as_object_mut().unwrap().remove(field);
    bad
}

/// Its words vary each time, so that no two refusals are the same.
fn varying(field: &str) -> Vec<Value> {
    ["one", "two", "three", "four", "five", "six"].map(|word| without(field, word)).to_vec()
}

#[test]
fn a_critic_program_that_leaves_something_out_is_asked_again_once() {
    for (field, why) in [("can_further_iteration_help", "can_further_iteration_help"), ("judged", "criterion 1 of A")] {
        let ran = program(Case::prd(&["A"]), "critic", ":", &varying(field)).run().waits();
        assert_eq!(starts(&ran), 2, "{field}: one start and one more");
        assert_eq!((ran.verdicts(), ran.routes()), (vec!["BLOCKED".to_owned()], vec!["ESCALATE".to_owned()]));
        let problem = ran.events("decision.asked")[0]["request"]["problem"].as_str().unwrap().to_owned();
        assert!(problem.contains("could not be taken, 2 times") && problem.contains(why), "{field}: {problem}");
        assert!(prompts(&ran).contains("Your report was answered: ") && prompts(&ran).contains(why), "{field}");
        let lines = &ran.ended.stdout;
        assert!(
            lines.contains("ended: refused: ") && lines.contains("could not be taken, 2 times"),
            "{field}: {lines}"
        );
        let inbox = ran.bench.nightloop(&["inbox"]).expect(0).stdout;
        assert!(inbox.contains("could not be taken"), "{field}: {inbox}");
    }
    // The second one is mended: nobody is asked.
    let mended = [without("judged", "one"), content("a.txt")];
    let ran = program(Case::prd(&["A"]), "critic", ":", &mended).run().converged();
    assert_eq!(starts(&ran), 2);
}

#[test]
fn a_report_that_is_no_json_is_told_where_it_breaks() {
    let broken = [json!("{\"status\": \"VERIFIED\",\n oops"), content("a.txt")];
    let ran = program(Case::prd(&["A"]), "critic", ":", &broken).run().converged();
    assert_eq!(starts(&ran), 2);
    assert!(prompts(&ran).contains("the fenced json block cannot be read") && prompts(&ran).contains("line 2"));
}

#[test]
fn an_author_program_without_retry_fails_its_attempt_and_costs_two_starts() {
    let author = varied_authors();
    let ran = program(Case::prd(&["A"]), "author", "echo $n > a.txt", &author).run().waits();
    // The first attempt needs no `retry`; the second and the third are asked for it once each.
    assert_eq!(starts(&ran), 5);
    assert_eq!(ran.chosen(), ["A 1", "A 2", "A 3"]);
    assert_eq!(ran.verdicts(), ["UNVERIFIED", "REFUSED", "REFUSED"]);
    let problem = ran.events("decision.asked")[0]["request"]["problem"].as_str().unwrap().to_owned();
    assert!(problem.contains("say in `retry`"), "{problem}");
    assert!(ran.text("loop/log.txt").contains("say in `retry`"), "{}", ran.text("loop/log.txt"));
}

fn varied_authors() -> Vec<Value> {
    let say = |word: &str| {
        let mut author = report(None);
        author["input"]["intent"] = json!(word);
        author
    };
    ["one", "two", "three", "four", "five", "six", "seven"].map(say).to_vec()
}

#[test]
fn a_model_is_asked_again_once_too_and_a_turn_with_two_reports_is_one() {
    let turns: Vec<Value> = varying("judged").into_iter().map(|bad| json!({"calls": [bad]})).collect();
    let ran = Case::prd(&["A"]).turns("critic", Some("A"), None, json!(turns)).run().waits();
    assert_eq!(ran.told("submit_critique").len(), 2);
    assert_eq!(ran.verdicts(), ["BLOCKED"]);

    let both = json!([{"calls": [without("judged", "one"), without("judged", "two")]}, {"calls": [content("a.txt")]}]);
    Case::prd(&["A"]).turns("critic", Some("A"), None, both).run().converged();
}

#[test]
fn a_silent_turn_after_a_refused_report_is_no_third_chance() {
    let turns = json!([{"calls": [without("judged", "one")]}, {"text": "I am done."}, {"text": "Really."}]);
    let ran = Case::prd(&["A"]).turns("critic", Some("A"), None, turns).run().waits();
    assert_eq!(ran.verdicts(), ["BLOCKED"]);
    assert!(ran.events("decision.asked")[0]["request"]["problem"].as_str().unwrap().contains("could not be taken"));
}

#[test]
fn a_micro_author_whose_report_cannot_be_taken_has_made_no_pass_that_counts_as_done() {
    let mut bad = report(None);
    bad["input"].as_object_mut().unwrap().remove("intent");
    let turns = json!([{"calls": [write("a.txt", "A\n"), bad]}, {"calls": [bad]}]);
    let case = Case::micro().turns("author", None, Some(1), turns).writes(2, "A better\n");
    let ran = case.says(1, critique("VERIFIED", false, json!([]))).run().converged();
    assert_eq!(ran.verdicts(), ["REFUSED", "VERIFIED"]);
    assert!(ran.prompt_of("author", 2).contains("intent"), "the next pass is told what was wrong");
}

/// Somebody saves a file while a critic in its cage reads.
fn while_the_critic_reads(save: &str) -> Ran {
    let waits = crate::case::sh("until test -e mark; do sleep 0.01; done");
    let case = Case::prd(&["A", "B"]).set("park_and_continue", json!(false));
    let case = case.critic(Some("A"), Some(1), &[waits, content("a.txt")]);
    let case = case.author("A", Some(2), &[write("a.txt", "A again\n"), report(Some("again"))]);
    let running = case.start();
    crate::harness::wait_until("the critic reads", || crate::harness::tool_is_running(&running.bench, "bash"));
    for name in [save, "mark"] {
        std::fs::write(running.bench.workspace.join(name), "A, saved by a person\n").unwrap();
    }
    running.wait()
}

#[test]
fn what_a_person_saves_while_a_critic_in_its_cage_reads_is_named_and_no_harm() {
    let ran = while_the_critic_reads("README.md").converged();
    assert_eq!(
        (ran.verdicts(), ran.flipped()),
        (vec!["VERIFIED".into(), "VERIFIED".into()], vec!["A".into(), "B".into()])
    );
    assert_eq!(ran.events("pass.judged")[0]["meanwhile"], json!(["README.md", "mark"]));
    let words = "changed by somebody else while the critic read: README.md, mark";
    assert!(ran.ended.stdout.matches(words).count() >= 2, "{}", ran.ended.stdout);
    assert!(ran.report()["remarks"].to_string().contains(words), "{}", ran.report());
}

#[test]
fn a_judged_file_that_a_person_saves_meanwhile_is_asked_about_and_can_be_gone_on_with() {
    let ran = while_the_critic_reads("a.txt").waits();
    assert_eq!((ran.verdicts(), ran.routes()), (vec!["DISCARDED".into()], vec!["ESCALATE".to_owned()]));
    let problem = ran.events("decision.asked")[0]["request"]["problem"].as_str().unwrap().to_owned();
    assert!(problem.contains("a.txt") && problem.contains("somebody else"), "{problem}");
    assert!(ran.flipped().is_empty());
    let ran = ran.answer("d1", "retry").resume().converged();
    assert_eq!(ran.flipped(), ["A", "B"]);
}

#[test]
fn our_own_output_in_the_workspace_is_nobodys_work() {
    let bench = Case::prd(&["A"]).written();
    let log = std::fs::File::create(bench.workspace.join("nightloop.log")).unwrap();
    let mut command = bench.command(&["run", "--headless"]);
    let status = command.stdout(log.try_clone().unwrap()).stderr(log).status().unwrap();
    let ran = Ran { ended: std::process::Output { status, stdout: Vec::new(), stderr: Vec::new() }.into(), bench };
    let ran = ran.converged();
    let changed = ran.events("artifacts.collected")[0]["changes"].to_string();
    assert!(changed.contains("a.txt") && !changed.contains("nightloop.log"), "{changed}");
    assert!(ran.text("nightloop.log").contains("EXIT_CONVERGED"));
}

#[test]
fn a_concern_keeps_its_second_chance() {
    let mut nowhere = critique("UNVERIFIED", true, json!([concern("MEDIUM", "Something is wrong.")]));
    nowhere["input"]["concerns"][0]["location"] = json!("somewhere");
    let turns = json!([{"calls": [nowhere]}, {"calls": [content("a.txt")]}]);
    let ran = Case::prd(&["A"]).turns("critic", Some("A"), Some(1), turns).run().converged();
    assert!(ran.told("submit_critique")[0].contains("Hand it in once more"), "{:?}", ran.told("submit_critique"));
}
