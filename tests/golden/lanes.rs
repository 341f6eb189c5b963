//! What a claim is worth: facts need artifacts, judgements need artifacts, and a verifier must have run.

use nightloop::model::digest::Digest;
use serde_json::{Value, json};

use crate::case::{Case, write};
use crate::sealed::{Expect, check};

#[test]
fn a_fact_or_an_observation_without_an_artifact_of_the_iteration_is_lane_c() {
    let claims = json!({"succeeded": [
        {"lane": "A", "text": "Proven by nothing."},
        {"lane": "A", "text": "Proven by a ghost.", "artifact": "ghost.txt"},
        {"lane": "A", "text": "Proven by the declaration.", "artifact": "loop.yaml"},
        {"lane": "A", "text": "Proven by a.", "artifact": "a"},
        {"lane": "A", "text": "Proven by a check.", "artifact": "evidence/loop/iter_0/checks/a.txt"},
        {"lane": "B", "text": "Seen in the output."},
        {"lane": "B", "text": "Seen in the declaration.", "artifact": "loop.yaml"},
        {"lane": "B", "text": "Seen in a.", "artifact": "a"},
        {"lane": "B", "text": "Seen in a check.", "artifact": "evidence/loop/iter_0/checks/a.txt"},
    ]});
    let ran = Case::two_steps().skeptic(0, claims).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let text = ran.agents_md();
    for line in [
        "- [C] Proven by nothing. (demoted from A: no artifact backs it)".to_owned(),
        "- [C] Proven by a ghost. (demoted from A: no artifact backs it)".to_owned(),
        "- [C] Proven by the declaration. (demoted from A: no artifact backs it)".to_owned(),
        format!("- [A] Proven by a. (a#{})", Digest::of(b"1\n")),
        format!("- [A] Proven by a check. (evidence/loop/iter_0/checks/a.txt#{})", Digest::of(b"")),
        "- [C] Seen in the output. (demoted from B: no artifact backs it)".to_owned(),
        "- [C] Seen in the declaration. (demoted from B: no artifact backs it)".to_owned(),
        format!("- [B] Seen in a. (a#{})", Digest::of(b"1\n")),
        format!("- [B] Seen in a check. (evidence/loop/iter_0/checks/a.txt#{})", Digest::of(b"")),
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}

fn judged(artifact: Value) -> Value {
    json!({"status": "PASS", "judged": [{"criterion": "doc", "met": true, "artifact": artifact, "why": "Fine."}]})
}

#[test]
fn a_judgement_counts_with_its_artifact_only() {
    let case = || Case::new().check("a", "test -f a").judged("doc").solver(0, [write("a", "1\n")]);
    let case =
        case().skeptic(0, judged(Value::Null)).skeptic(1, judged(json!("NORTHSTAR.md"))).skeptic(2, judged(json!("a")));
    let ran = case.run();
    check(&ran, &Expect::exact(&["0.5", "0.5", "0"]));
    for iteration in 0..2 {
        let certificate = ran.bench.evidence(&format!("iter_{iteration}/certificate.json"));
        let finding = &certificate["acceptance_criteria_checklist"][1];
        assert_eq!((&finding["met"], &finding["evidence_link"]), (&json!(false), &Value::Null));
        assert_eq!(finding["why"], "judged met, but no artifact backs it");
    }
}

#[test]
fn a_criterion_that_nobody_judged_is_unmet() {
    let case = Case::new().check("a", "test -f a").judged("doc").solver(0, [write("a", "1\n")]);
    let ran = case.declare("budget", json!({"max_iterations": 3})).run();
    check(&ran, &Expect::budget("iterations", &["0.5", "0.5", "0.5"]));
}

#[test]
fn judgements_alone_are_refused_before_anything_is_spent() {
    let ran = Case::new().judged("doc").solver(0, [write("doc.md", "text\n")]).run().expect(3);
    assert_eq!(ran.report()["status"], "EXIT_NEED_INFO");
    assert!(
        ran.detail().contains("no verifier can ever exit 0") && ran.detail().contains("`check:"),
        "{}",
        ran.detail()
    );
    assert!(ran.events("llm.requested").is_empty(), "something was spent");
}

#[test]
fn a_plain_list_of_criteria_is_judged() {
    let case = Case::new().declare("acceptance_criteria", json!(["It reads well."])).residual("cat src/residual");
    let case = case.file("src/residual", "1\n").solver(0, [write("src/residual", "0\n"), write("doc.md", "text\n")]);
    let met = json!({"judged": [{"criterion": "c1", "met": true, "artifact": "doc.md", "why": "It does."}]});
    let ran = case.skeptic(0, met).run();
    check(&ran, &Expect::exact(&["0"]));
}
