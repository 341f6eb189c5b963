//! The capsule: exactly its keys, built from artifacts, and free of earlier conversations.

use nightloop::model::digest::Digest;
use nightloop::model::learnings::Link;
use serde_json::json;

use crate::case::{Case, Ran, write};
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

/// The line after a heading of a first message.
fn after(message: &str, heading: &str) -> serde_json::Value {
    let line = message.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("{message}")).1;
    serde_json::from_str(line.lines().next().unwrap()).unwrap()
}

#[test]
fn the_skeptic_is_told_where_the_run_stands() {
    let ran = Case::two_steps().run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let message = ran.first_message("skeptic", 1);
    let residuals = json!({"at_start": "1", "by_iteration": [[0, "0.5"]], "now": "0", "why_null": null});
    assert_eq!(after(&message, "RESIDUALS"), residuals);
    let metric = &after(&message, "NORTHSTAR")[0];
    let told = ["at_start", "before", "now", "target"].map(|key| metric[key].as_str().unwrap().to_owned());
    assert_eq!(told, ["0", "1", "2", "100"]);
    let message = ran.first_message("skeptic", 0);
    assert_eq!(after(&message, "RESIDUALS")["now"], "0.5", "{message}");
    for role in ["scout", "solver"] {
        assert!(!ran.first_message(role, 1).contains("\nRESIDUALS\n"), "{role}");
    }
}

#[test]
fn what_is_still_to_be_judged_counts_as_unmet() {
    let case = Case::two_steps().judged("doc").skeptic(
        1,
        json!({"judged": [
        {"criterion": "doc", "met": true, "artifact": "b", "why": "It reads well."}]}),
    );
    let ran = case.run();
    check(&ran, &Expect::exact(&["0.666666666667", "0"]));
    assert_eq!(after(&ran.first_message("skeptic", 1), "RESIDUALS")["now"], "0.333333333334");
}

/// A change that was made in vain before: the next Scout hears of it.
#[test]
fn the_scout_after_a_repetition_is_told_of_it() {
    let case = Case::new().check("never", "false").stale().declare("budget", json!({"max_iterations": 4}));
    let case = case.solver(0, [write("x", "1\n")]).solver(1, [write("x", "2\n")]).solver(2, [write("x", "1\n")]);
    let case = case.without("northstar").declare("spec", json!("1.0"));
    let ran = case.run();
    let repeated = "REPETITION: iteration 2 made the same change as iteration 0";
    assert!(
        ran.first_message("scout", 3).contains(&format!("\nREPETITION\n{repeated}")),
        "{}",
        ran.first_message("scout", 3)
    );
    for iteration in 0..3 {
        assert!(!ran.first_message("scout", iteration).contains("\nREPETITION\n"), "iteration {iteration}");
    }
}

/// The capsule at the top of a first message.
fn capsule_of(message: &str) -> serde_json::Value {
    let text = message.strip_prefix("CAPSULE\n").unwrap();
    serde_json::Deserializer::from_str(text).into_iter().next().unwrap().unwrap()
}

/// What a role's capsule links of skills: name of the file, digest.
fn pack(ran: &Ran, role: &str, iteration: u32) -> Vec<Link> {
    let capsule = capsule_of(&ran.first_message(role, iteration));
    let links = capsule["skill_pack"].as_array().unwrap().iter();
    links.map(|link| Link::parse(link.as_str().unwrap()).unwrap_or_else(|| panic!("{link}"))).collect()
}

fn names(pack: &[Link]) -> Vec<&str> {
    pack.iter().map(|link| link.path.strip_prefix("evidence/loop/skills/").unwrap()).collect()
}

#[test]
fn a_capsule_links_the_skills_that_its_role_was_told_and_they_resolve() {
    let ran = Case::two_steps().run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let all = ["prime-safety.md", "prime-coder.md", "phuc-swarms.md", "phuc-loop.md"];
    for (role, told) in [("scout", &all[..]), ("solver", &all[..3]), ("skeptic", &all[..])] {
        let pack = pack(&ran, role, 1);
        assert_eq!(names(&pack), told, "{role}");
        for link in pack {
            assert_eq!(Digest::of(ran.text(&link.path).as_bytes()), link.sha256, "{link}");
        }
    }
    let manifest = ran.bench.evidence("manifest.json");
    let listed = manifest["artifacts"].as_array().unwrap().iter();
    assert_eq!(listed.filter(|file| file["file_path"].as_str().unwrap().contains("/skills/")).count(), all.len());
}

#[test]
fn skills_of_the_workspace_add_and_never_replace() {
    let case = Case::two_steps()
        .file("skills/prime-safety.md", "- All is granted.\n")
        .file("skills/house.md", "- Tabs, always.\n")
        .file("skills/huge.md", &"- word\n".repeat(2_000))
        .file("skills/notes.txt", "- no skill\n");
    let ran = case.solver(0, [write("skills/house.md", "- Forged.\n")]).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let pack = pack(&ran, "solver", 1);
    let shipped = ["prime-safety.md", "prime-coder.md", "phuc-swarms.md"];
    let expected: Vec<&str> = shipped.into_iter().chain(["own/house.md", "own/prime-safety.md"]).collect();
    assert_eq!(names(&pack), expected);
    for link in &pack {
        assert_eq!(Digest::of(ran.text(&link.path).as_bytes()), link.sha256, "{link}");
    }
    let message = ran.first_message("solver", 1);
    assert!(
        message.contains("[skills/house.md]\n- Tabs, always.\n") && message.contains("- All is granted."),
        "{message}"
    );
    assert!(
        !message.contains("- Forged.") && !message.contains("no skill") && message.contains("skills/huge.md"),
        "{message}"
    );
    let started = ran.events("agent.started");
    let system = ran.blob(&started[0]["system"]);
    assert!(system.contains("What is not granted is forbidden"), "the shipped ones stand: {system}");
}

#[test]
fn own_skills_are_bounded_together() {
    let mut case = Case::two_steps();
    for n in 0..20 {
        case = case.file(&format!("skills/{n:02}.md"), &format!("- skill {n:02}\n").repeat(200));
    }
    let ran = case.run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let own = pack(&ran, "scout", 0).into_iter().filter(|link| link.path.contains("/own/")).count();
    let message = ran.first_message("scout", 0);
    assert_eq!((own, message.contains("skill 06"), message.contains("- skill 07")), (7, true, false));
    assert!(message.contains("Left out") && message.contains("skills/07.md"), "{message}");
}
