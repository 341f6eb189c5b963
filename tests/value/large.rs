//! An installation without a .gitignore: twenty thousand new files in one iteration.

use serde_json::json;

use crate::case::{Case, complete, sh, turns, write};

/// As `npm install` leaves it.
const INSTALL: &str = "mkdir -p web/node_modules/a web/node_modules/b; i=0; while [ $i -lt 10000 ]; do \
     echo $i > web/node_modules/a/$i.js; echo $i > web/node_modules/b/$i.js; i=$((i+1)); done";

pub fn installation() -> Case {
    let turns = turns(&[&[write("one.txt", "one\n"), sh(INSTALL)], &[complete("T1")]]);
    Case::new().on_subject("execute", "T1", turns)
}

#[test]
fn an_installation_that_nothing_ignores_is_counted_told_and_survives_a_crash() {
    let died = installation().run_with("NIGHTLOOP_CRASH_AT", "artifacts:1");
    assert_eq!(died.ended.code, -1, "{}", died.ended.stderr);
    let ran = died.resume().expect(0).verified();
    let collected = ran.events("artifacts.collected");
    let more = collected.iter().map(|data| &data["more"]).find(|more| !more.is_null()).unwrap();
    assert_eq!((&more["folder"], &more["below"]), (&json!("web/node_modules"), &json!(20_000)));
    let number = collected[0]["iteration"].as_u64().unwrap();
    assert!(collected[0]["changes"].to_string().contains("\"one.txt\""), "the work itself is listed");
    let artifacts = ran.bench.evidence(&format!("iter_{number}/artifacts.json"));
    assert!(artifacts["not_listed"]["files"].as_u64().unwrap() > 19_000, "{}", artifacts["not_listed"]);
    let advice = "20000 new files below web/node_modules";
    assert!(ran.text("AGENTS.md").contains(advice), "agents are told");
    assert!(ran.ended.stdout.contains(advice), "the operator is told: {}", ran.ended.stdout);
    assert!(ran.text("AGENTS.md").contains(".gitignore"));
}
