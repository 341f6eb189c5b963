//! Rung 65537: security, interface, paraphrases.

use serde_json::{Value, json};

use crate::case::{Case, Ran, argv, call, skeptic_report, write};
use crate::sealed::{Expect, check};

fn promoted() -> Case {
    Case::two_steps()
        .declare("rung_target", json!(65_537))
        .declare("security", json!({"command": argv("test -f b"), "version_command": argv("echo scanner 1.0")}))
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
fn a_missing_security_command_blocks() {
    blocked(&promoted().without("security").run(), "SECURITY_BLOCKED");
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

#[test]
fn an_interface_that_is_not_declared_blocks() {
    blocked(&promoted().without("api_surface").run(), "VERIFICATION_RUNG_FAILED");
}

/// The skeptic that judges `doc`, after the same look at a file four times.
fn judging() -> Value {
    let met = json!({"judged": [{"criterion": "doc", "met": true, "artifact": "b", "why": "It reads well."}]});
    let look = || call("read_file", json!({"path": ".state/seen"}));
    let calls: Vec<Value> = [look(), look(), look(), look(), skeptic_report(1, Some(&met))].to_vec();
    json!([{"calls": calls}])
}

fn judged() -> Case {
    let case = promoted().judged("doc").file(".gitignore", ".state/\n").file(".state/seen", "yes\n");
    case.turns("skeptic", 1, judging())
}

fn paraphrased(ran: &Ran) -> usize {
    ran.events("agent.started").iter().filter(|data| !data["paraphrase"].is_null()).count()
}

#[test]
fn paraphrases_that_agree_pass() {
    let ran = judged().run();
    check(&ran, &Expect::exact(&["0.666666666667", "0"]));
    assert_eq!(paraphrased(&ran), 5);
}

#[test]
fn paraphrases_that_disagree_block() {
    // The script cannot tell a paraphrase from the first judgement, but the workspace can: the security
    // command takes away what the skeptic reads first, and a skeptic who only fails never reports.
    let ran = judged().declare("security", json!({"command": argv("rm .state/seen")})).run();
    check(&ran, &Expect::blocked("SEED_DISAGREEMENT", &["0.666666666667", "0"]));
    assert!(ran.detail().contains("0 of 5 agree"), "{}", ran.detail());
}

#[test]
fn the_lowest_rung_is_enough_when_it_is_the_target() {
    let ran = Case::two_steps().declare("rung_target", json!(641)).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    assert_eq!(ran.report()["verification_rung_achieved"], 641);
}
