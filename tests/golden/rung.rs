//! Rung 65537: security, interface, paraphrases.

use serde_json::{Value, json};

use crate::case::{Case, Ran, argv, skeptic_report, write};
use crate::sealed::{Expect, check};

fn promoted() -> Case {
    Case::two_steps()
        .declare("rung_target", json!(65_537))
        .declare(
            "security",
            json!({"command": argv("test -f b && echo 0 findings"), "version_command": argv("echo scanner 1.0")}),
        )
        .declare("api_surface", json!({"command": argv("cat api")}))
        .file("api", "one\ntwo\n")
}

#[track_caller]
fn blocked(ran: &Ran, reason: &'static str) -> String {
    check(ran, &Expect::blocked(reason, &["0.5", "0"]));
    assert_eq!(ran.report()["verification_rung_achieved"], Value::Null);
    ran.detail()
}

#[test]
fn the_highest_rung_is_reached_with_its_evidence() {
    let ran = promoted().solver(1, [write("api", "one\ntwo\nthree\n")]).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let report = ran.report();
    assert_eq!(report["verification_rung_target"], 65_537);
    assert_eq!(report["verification_rung_achieved"], 65_537);
    let kept = |name: &str| std::fs::read_to_string(ran.bench.workspace.join("evidence/loop").join(name)).unwrap();
    assert_eq!(kept("security_version.txt").trim(), "scanner 1.0");
    assert_eq!(kept("api_surface_before.txt").trim(), "one\ntwo");
    assert_eq!(kept("api_surface_after.txt").trim(), "one\ntwo\nthree");
    let manifest = ran.bench.evidence("manifest.json");
    let listed = manifest["artifacts"].as_array().unwrap().iter();
    let scan = listed.clone().find(|file| file["file_path"] == "evidence/loop/security_scan.txt").unwrap();
    let digest = nightloop::model::digest::Digest::of(kept("security_scan.txt").as_bytes());
    assert_eq!(scan["sha256"], json!(digest));
    let version = ran.events("probe.finished");
    assert!(
        version.iter().any(|data| data["probe"] == "security_version" && data["result"]["last_line"] == "scanner 1.0")
    );
}

#[test]
fn a_touched_surface_raises_the_rung() {
    let ran = promoted().without("rung_target").declare("touches", json!(["security"])).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    assert_eq!(ran.report()["verification_rung_achieved"], 65_537);
}

#[test]
fn without_its_commands_the_highest_rung_is_refused_before_anything_is_spent() {
    for missing in ["security", "api_surface"] {
        let ran = promoted().without(missing).run().expect(3);
        let report = ran.report();
        assert_eq!((&report["status"], &report["stop_reason"]), (&json!("EXIT_NEED_INFO"), &json!("SECURITY_BLOCKED")));
        let detail = ran.detail();
        assert!(detail.contains(&format!("{missing}.command is not declared")), "{detail}");
        assert!(detail.contains("declare them, or leave out `touches`"), "no hint: {detail}");
        assert!(ran.events("llm.requested").is_empty() && ran.events("probe.started").is_empty());
        ran.verified();
    }
}

#[test]
fn a_failing_security_command_blocks() {
    let detail = blocked(&promoted().declare("security", json!({"command": argv("exit 7")})).run(), "SECURITY_BLOCKED");
    assert!(detail.contains("exit 7"), "{detail}");
}

#[test]
fn a_removed_interface_line_blocks() {
    let detail = blocked(&promoted().solver(1, [write("api", "two\n")]).run(), "VERIFICATION_RUNG_FAILED");
    assert!(detail.contains("removed: one"), "{detail}");
}

/// The skeptic that judges `doc`; further judgements say the goal in these words.
fn judging(met: bool, restated: Option<&str>) -> Value {
    let verdict = json!({"criterion": "doc", "met": met, "artifact": "b", "why": "It was read."});
    let fields = json!({"judged": [verdict], "restated": restated});
    json!([{"calls": [skeptic_report(1, Some(&fields))]}])
}

const WORDS: [&str; 5] = [
    "Nothing that was asked for is missing.",
    "All conditions are true at once.",
    "None of the criteria fails.",
    "Whatever is listed has been reached.",
    "One red criterion would show that it is not done.",
];

/// The judge says these words in turn, and judges so.
fn judged(said: [(&str, bool); 5]) -> Case {
    let case = promoted().judged("doc").turns("skeptic", 1, judging(true, None));
    (1..).zip(said).fold(case, |case, (nth, (words, met))| {
        case.step(json!({"purpose": "skeptic", "subject": "restated", "nth": nth, "turns": judging(met, Some(words))}))
    })
}

fn paraphrased(ran: &Ran) -> usize {
    ran.events("agent.started").iter().filter(|data| !data["paraphrase"].is_null()).count()
}

#[test]
fn paraphrases_that_agree_pass() {
    let ran = judged(WORDS.map(|words| (words, true))).run();
    check(&ran, &Expect::exact(&["0.666666666667", "0"]));
    assert_eq!(paraphrased(&ran), 5);
}

#[test]
fn a_phrase_that_is_said_again_refuses_nobody() {
    let [one, two, three, ..] = WORDS;
    let ran = judged([one, two, three, one, "nothing that was asked for is missing!"].map(|words| (words, true))).run();
    check(&ran, &Expect::exact(&["0.666666666667", "0"]));
}

#[test]
fn paraphrases_that_disagree_block() {
    let mut said = WORDS.map(|words| (words, true));
    said[3].1 = false;
    let ran = judged(said).run();
    check(&ran, &Expect::blocked("SEED_DISAGREEMENT", &["0.666666666667", "0"]));
    assert!(ran.detail().contains("4 of 5 agree"), "{}", ran.detail());
}

#[test]
fn a_goal_that_is_only_repeated_is_not_restated() {
    let goal = "Every criterion holds.";
    let ran = judged([WORDS[0], WORDS[1], goal, "every criterion: holds", ""].map(|words| (words, true))).run();
    check(&ran, &Expect::blocked("SEED_DISAGREEMENT", &["0.666666666667", "0"]));
    assert!(ran.detail().contains("5 of 5 agree; 2 restated in words of their own"), "{}", ran.detail());
}

#[test]
fn the_lowest_rung_is_enough_when_it_is_the_target() {
    let ran = Case::two_steps().declare("rung_target", json!(641)).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    assert_eq!(ran.report()["verification_rung_achieved"], 641);
}
