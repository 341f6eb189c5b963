//! The capsule: exactly its keys, built from artifacts, and free of earlier conversations.

use serde_json::json;

use crate::case::Case;
use crate::sealed::{Expect, check};

#[test]
fn it_has_exactly_eleven_keys_and_carries_the_last_questions() {
    let ran = Case::two_steps().run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let capsule = ran.bench.evidence("iter_1/cnf_capsule.json");
    let keys: Vec<&str> = capsule.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected = [
        "goal_statement",
        "acceptance_criteria",
        "halting_certificates_applicable",
        "northstar_metrics",
        "current_state_summary",
        "accumulated_learnings",
        "remaining_budget",
        "artifact_links",
        "skill_pack",
        "subagent_role",
        "rung_target",
    ];
    expected.sort_unstable();
    assert_eq!(keys, expected);
    let summary = &capsule["current_state_summary"];
    assert_eq!(summary["open_questions_from_last_iteration"], json!(["What is left after iteration 0?"]));
    assert_eq!((&summary["residual_current"], &summary["criteria_met_so_far"]), (&json!("0.5"), &json!(["a"])));
    let text = ran.text("evidence/loop/iter_1/cnf_capsule.json");
    assert!(!text.contains(ran.bench.workspace.to_str().unwrap()) && !text.contains("started:"), "{text}");
}

#[test]
fn a_northstar_that_leans_on_a_conversation_blocks() {
    let northstar = "- vc-1: remember that we want steps | 0 | 100\n";
    let ran = Case::two_steps().file("NORTHSTAR.md", northstar).run();
    let blocked = Expect::blocked("INVARIANT_VIOLATION", &[]);
    check(&ran, &blocked.forbidden("CONTEXT_BLEED_BETWEEN_ITERATIONS"));
    assert!(ran.events("llm.requested").is_empty());
}

#[test]
fn a_foreign_agents_md_that_leans_on_a_conversation_is_left_out() {
    let ran = Case::two_steps().file("AGENTS.md", "# Rules\nRemember that tabs win.\nUse LF.\n").run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    assert!(ran.events("iteration.began").iter().all(|data| data["rebuilt"] == true && data["bleeds"] == false));
    let learnings = ran.bench.evidence("iter_0/cnf_capsule.json")["accumulated_learnings"].clone();
    let learnings = learnings.as_str().unwrap();
    assert!(!learnings.contains("tabs win") && learnings.contains("Use LF."), "{learnings}");
    assert!(ran.agents_md().starts_with("# Rules\nRemember that tabs win.\nUse LF.\n"));
}

#[test]
fn an_agent_that_leans_on_a_conversation_is_not_quoted() {
    let report = json!({"open_questions": ["As we discussed, what about b?"]});
    let ran = Case::two_steps().skeptic(0, report).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    assert!(!ran.agents_md().to_lowercase().contains("as we discussed"), "{}", ran.agents_md());
    assert!(ran.events("iteration.began").iter().all(|data| data["rebuilt"] == false));
}
