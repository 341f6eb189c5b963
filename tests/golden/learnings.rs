//! AGENTS.md over many iterations, and the profiles.

use serde_json::{Value, json};

use crate::case::{Case, Ran};
use crate::sealed::{Expect, check};

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

/// A skeptic with much to say: one fact, and twenty observations.
fn talkative(iteration: u32) -> Value {
    let long = "and what else was seen on the way there ".repeat(10);
    let observed = (0..20).map(|n| json!({"lane": "B", "text": format!("Observation {iteration}.{n}: {long}")}));
    let fact = json!({"lane": "A", "text": format!("Fact {iteration}."), "artifact": "metric"});
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
        assert_eq!(text.matches(&format!("## Iteration {iteration}\n")).count(), 1);
    }
}

#[test]
fn earlier_runs_are_kept() {
    let first = Case::two_steps().stale().declare("northstar", json!({})).run();
    check(&first, &Expect::exact(&["0.5", "0"]));
    let (run, learned, report) = (first.bench.run_dir(), first.agents_md(), first.report());
    let name = run.file_name().unwrap().to_str().unwrap().to_owned();
    let ended = first.bench.nightloop(&["run", "--headless"]);
    let second = Ran { ended, bench: first.bench };
    check(&second, &Expect::exact(&["0"]));
    let text = second.agents_md();
    assert!(text.starts_with(&learned) && text.len() > learned.len(), "{text}");
    let archived = second.text(&format!("evidence/archive/{name}/halting_report.json"));
    assert_eq!(serde_json::from_str::<Value>(&archived).unwrap(), report);
    second.bench.nightloop(&["verify", &name]).expect(0);
}
