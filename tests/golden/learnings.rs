//! AGENTS.md over many iterations, and the profiles.

use nightloop::model::digest::Digest;
use serde_json::{Value, json};

use crate::case::{Case, Ran, sh};
use crate::sealed::{Expect, check, check_evidence};

#[test]
fn scores_of_a_benchmark_profile_are_kept_apart() {
    let ran = Case::two_steps().declare("profile", json!("benchmark_adapt")).run();
    let apart = json!({
        "must_separate_scores": true,
        "scores_of": "benchmark_adapt",
        "comparable_with": ["benchmark_adapt"],
    });
    assert_eq!(ran.report()["scores"], apart);
    assert_eq!(ran.exit()["scores"], apart);
    assert!(Case::two_steps().run().report()["scores"].is_null());
}

#[test]
fn a_fast_profile_says_what_it_reduced() {
    let ran = Case::two_steps().declare("profile", json!("fast")).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let log = ran.text("evidence/loop/budget_reduction.log");
    let fact = |name: &str| -> Value {
        let line = log.lines().find_map(|line| line.strip_prefix(&format!("{name}: "))).unwrap();
        serde_json::from_str(line).unwrap()
    };
    assert_eq!(fact("profile"), "fast");
    assert_eq!(
        (&fact("base_budgets")["max_iterations"], &fact("effective_budgets")["max_iterations"]),
        (&json!(10), &json!(5))
    );
    assert_eq!(fact("clamp_events"), json!([]));
}

/// A skeptic with much to say: one fact, and many observations that nothing backs.
fn talkative(iteration: u32) -> Value {
    let long = "and what else was seen on the way there ".repeat(8);
    let observed = (0..14).map(|n| json!({"lane": "B", "text": format!("Observation {iteration}.{n}: {long}")}));
    let fact = json!({"lane": "A", "text": format!("Fact {iteration}."), "artifact": "src/metric"});
    let claims: Vec<Value> = std::iter::once(fact).chain(observed).collect();
    json!({"succeeded": claims})
}

#[test]
fn old_iterations_shrink_to_their_facts() {
    let mut case = Case::new().check("never", "false").declare("budget", json!({"max_iterations": 6}));
    for iteration in 0..6 {
        case = case.skeptic(iteration, talkative(iteration));
    }
    let ran = case.run();
    check(&ran, &Expect::budget("iterations", &["1"; 6]));
    let text = ran.agents_md();
    assert!(text.contains("[COMPACTION] Distilled iterations 0-2 to 3 witness lines."), "{text}");
    assert!(ran.text("evidence/loop/compaction.log").contains("0-2"));
    for iteration in 0..6 {
        let entry = ran.text(&format!("evidence/loop/iter_{iteration}/agents_md_entry.md"));
        let facts: Vec<&str> = entry.lines().filter(|line| line.starts_with("- [A] ")).collect();
        assert!(facts.iter().any(|line| line.contains(&format!("Fact {iteration}."))), "{entry}");
        for fact in facts {
            assert!(text.lines().any(|line| line == fact), "{fact}");
        }
        assert_eq!(text.contains(&format!("Observation {iteration}.0:")), iteration > 2, "iteration {iteration}");
        let heading = text.matches(&format!("## Iteration {iteration}\n")).count();
        let witness = format!("- iter {iteration}: ");
        let witness: Vec<&str> = text.lines().filter(|line| line.starts_with(&witness)).collect();
        assert_eq!((heading, witness.len()), if iteration > 2 { (1, 0) } else { (0, 1) }, "iteration {iteration}");
        let link = format!("(evidence/loop/iter_{iteration}/agents_md_entry.md#{})", Digest::of(entry.as_bytes()));
        assert!(witness.iter().all(|line| line.ends_with(&link)), "{witness:?}");
    }
}

/// Another run in the same workspace, whose work is to be done again.
fn again(ran: Ran) -> Ran {
    std::fs::remove_file(ran.bench.workspace.join("b")).unwrap();
    let ended = ran.bench.nightloop(&["run", "--headless"]);
    Ran { ended, bench: ran.bench }
}

#[test]
fn earlier_runs_are_kept() {
    let first = Case::two_steps().stale().declare("northstar", json!({})).run();
    check(&first, &Expect::exact(&["0.5", "0"]));
    let (run, learned, report) = (first.bench.run_dir(), first.agents_md(), first.report());
    let name = run.file_name().unwrap().to_str().unwrap().to_owned();
    let second = again(first);
    check(&second, &Expect::exact(&["0.5", "0"]));
    let text = second.agents_md();
    assert!(text.starts_with(&learned) && text.len() > learned.len(), "{text}");
    let archived = second.text(&format!("evidence/archive/{name}/halting_report.json"));
    assert_eq!(serde_json::from_str::<Value>(&archived).unwrap(), report);
    second.bench.nightloop(&["verify", &name]).expect(0);
}

#[test]
fn a_lost_state_directory_loses_nothing_that_the_next_run_needs() {
    let ran = Case::two_steps().run();
    let first = ran.bench.evidence("manifest.json")["loop_id"].as_str().unwrap().to_owned();
    std::fs::remove_dir_all(&ran.bench.state).unwrap();
    std::fs::remove_file(ran.bench.workspace.join("b")).unwrap();
    ran.bench.nightloop(&["run"]);
    let capsule = ran.bench.evidence("iter_0/cnf_capsule.json");
    let learnings = capsule["accumulated_learnings"].as_str().unwrap();
    assert!(learnings.contains("criterion `b` is met"), "{learnings}");
    assert!(learnings.contains(&first), "the earlier block names its run: {learnings}");
    let archived = ran.bench.workspace.join("evidence/archive").join(&first);
    for name in ["manifest.json", "plan.json", "halting_report.json", "iter_1/certificate.json"] {
        assert!(archived.join(name).is_file(), "{name}");
    }
}

/// Blocks of earlier runs with much in them, and the owner's words between.
fn much_learnt() -> (String, Vec<String>) {
    let names: Vec<String> = "BCDEFGHJ".chars().map(|last| format!("01ARZ3NDEKTSV4RRFFQ69G5FA{last}")).collect();
    let mut text = "# House\r\nUse tabs.\n".to_owned();
    for name in &names {
        let lines = format!("- [B] seen {}\n", "and more ".repeat(20)).repeat(15);
        let fact = format!("- [A] fact of {name} (evidence/loop/iter_0/a.txt#{})", "0".repeat(64));
        text.push_str(&format!(
            "<!-- nightloop:begin {name} -->\n- goal: Greet.\n{fact}\n{lines}<!-- nightloop:end {name} -->\nowner {name}\n"
        ));
    }
    (text, names)
}

#[test]
fn earlier_blocks_are_made_smaller_when_a_run_begins_and_that_is_recorded() {
    let (before, names) = much_learnt();
    let case = Case::two_steps().stale().declare("northstar", json!({}));
    let ran = case.file("AGENTS.md", &before).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let text = ran.agents_md();
    let generated: usize = text.len() - "# House\r\nUse tabs.\n".len() - names.len() * "owner  \n".len();
    assert!(generated <= 32_000 && text.len() < before.len(), "{generated}");
    assert!(
        text.starts_with("# House\r\nUse tabs.\n")
            && names.iter().all(|name| text.contains(&format!("\nowner {name}\n")))
    );
    let first = &names[0];
    assert!(text.contains(&format!("- [A] fact of {first} (evidence/archive/{first}/iter_0/a.txt#")), "{text}");
    let found = &ran.events("memory.found")[0];
    let log: Vec<&str> =
        found["distilled"]["log"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert!(!log.is_empty() && log.iter().all(|line| ran.text("evidence/loop/compaction.log").contains(line)));
    assert!(text.contains(log[0]), "{text}");
    // The same again is no change of anybody's.
    check(&again(ran), &Expect::exact(&["0.5", "0"]));
}

#[test]
fn earlier_blocks_are_made_smaller_also_if_the_engine_dies_meanwhile() {
    let (before, _) = much_learnt();
    let ran = Case::two_steps().file("AGENTS.md", &before).run_with("NIGHTLOOP_CRASH_AT", "distilled");
    assert_eq!(ran.agents_md(), before, "it died before it wrote");
    ran.bench.nightloop(&["resume", "--headless"]).expect(0);
    assert!(ran.agents_md().contains("[COMPACTION] Run ") && ran.agents_md().contains("## Iteration 1"));
    ran.bench.nightloop(&["verify"]).expect(0);
}

/// A distilled block is as much a generated one as a whole one.
#[test]
fn a_distilled_block_that_an_agent_edited_is_put_back() {
    let (before, names) = much_learnt();
    let forge = "sed 's/- .A. fact of/- [A] forged of/' AGENTS.md > copy && cat copy > AGENTS.md && rm copy";
    let case = Case::two_steps().declare("sandbox", json!({"mode": "off"})).file("AGENTS.md", &before);
    let ran = case.solver(1, [sh(forge)]).run();
    check_evidence(&ran, &Expect::blocked("INVARIANT_VIOLATION", &["0.5"]));
    assert!(ran.agents_md().contains(&format!("- [A] fact of {}", names[0])) && !ran.agents_md().contains("forged"));
}

#[test]
fn an_agents_md_that_is_too_large_is_said_to_be_and_the_run_goes_on_once_it_is_not() {
    let ran = Case::two_steps().file("AGENTS.md", &"word \n".repeat(3 << 20)).run();
    let told = &ran.ended.stderr;
    assert!(told.contains("AGENTS.md") && told.contains("16777216 bytes"), "{told}");
    assert!(told.contains("at most 16 MiB") && !told.contains("put a regular file"), "{told}");
    std::fs::write(ran.bench.workspace.join("AGENTS.md"), "Use tabs.\n").unwrap();
    ran.bench.nightloop(&["resume", "--headless"]).expect(0);
    assert!(ran.agents_md().starts_with("Use tabs.\n") && ran.agents_md().contains("## Iteration 1"));
}

#[test]
fn an_entry_that_is_too_long_is_shortened_and_that_is_told() {
    let long = "what was tried and came to nothing ".repeat(40);
    let failed: Vec<Value> = (0..40).map(|n| json!({"lane": "C", "text": format!("{n} {long}")})).collect();
    let ran = Case::two_steps().skeptic(0, json!({"failed": failed})).run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let log = ran.text("evidence/loop/compaction.log");
    assert!(log.starts_with("[COMPACTION] Shortened iteration 0: "), "{log}");
    assert!(ran.agents_md().contains(log.trim_end()), "{log}");
}

#[test]
fn an_installation_that_nothing_ignores_is_counted_and_told() {
    let install = "mkdir -p node_modules/a; i=0; while [ $i -lt 12000 ]; do echo $i > node_modules/a/$i.js; \
                   i=$((i+1)); done";
    let ran = Case::two_steps().solver(0, [sh(install)]).run().expect(0).verified();
    let collected = ran.events("artifacts.collected");
    assert_eq!(collected[0]["more"]["folder"], "node_modules", "{}", collected[0]["more"]);
    assert!(collected[1].get("more").is_none(), "they are nothing new in the next iteration");
    assert!(ran.text("AGENTS.md").contains("12000 new files below node_modules"));
}
