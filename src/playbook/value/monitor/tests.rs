//! What the monitor notices, and what it does not.

use super::*;
use crate::model::digest::Digest;
use crate::model::purpose::Tool;
use crate::model::value::{Failure, Outcome, Recommendation, VrcMode};
use crate::playbook::value::testing::{Sim, report};

fn level_of(sim: &Sim, pattern: Pattern) -> Level {
    let found = status(&sim.run).triggers.into_iter().find(|trigger| trigger.pattern == pattern);
    found.map_or(Level::Green, |trigger| trigger.level)
}

fn work(sim: &mut Sim) {
    sim.step(Action::Execute { task: "T1".into() }, Outcome::Progress);
}

/// A step and a value check for each of these scores.
fn scores(sim: &mut Sim, scores: &[&str]) {
    for score in scores {
        work(sim);
        sim.value(VrcMode::Quick, score, Recommendation::Continue);
    }
}

#[test]
fn a_quiet_run_is_green() {
    assert_eq!(status(&Sim::working().run), Status { level: Level::Green, triggers: Vec::new() });
}

#[test]
fn a_steady_run_is_no_plateau_however_small_its_steps() {
    let mut sim = Sim::working();
    for thousandths in 1..=60 {
        work(&mut sim);
        sim.value(VrcMode::Quick, &format!("0.{thousandths:03}"), Recommendation::Continue);
        assert_eq!(level_of(&sim, Pattern::Plateau), Level::Green, "after {thousandths} checks");
    }
    // Nor one that gains something every third time.
    let mut sim = Sim::working();
    for hundredths in 1..=40 {
        let score = format!("0.{:02}", hundredths / 3 * 3);
        scores(&mut sim, &[&score]);
        assert_eq!(level_of(&sim, Pattern::Plateau), Level::Green, "after {hundredths} checks");
    }
}

#[test]
fn a_value_that_stopped_moving_is_a_plateau_after_some_patience() {
    let mut sim = Sim::working();
    scores(&mut sim, &["0.1", "0.3", "0.5"]);
    let mut fired = None;
    for count in 1..=15 {
        scores(&mut sim, &["0.5"]);
        if fired.is_none() && level_of(&sim, Pattern::Plateau) == Level::Red {
            fired = Some(count);
        }
    }
    assert_eq!(fired, Some(10), "five changes of nothing, and five steps of patience");
    scores(&mut sim, &["0.6"]);
    assert_eq!(level_of(&sim, Pattern::Plateau), Level::Green, "it moves again");
}

#[test]
fn no_value_at_all_is_a_plateau_too_and_a_finished_one_is_not() {
    let mut sim = Sim::working();
    scores(&mut sim, &["0", "0", "0", "0", "0", "0"]);
    assert_eq!(level_of(&sim, Pattern::Plateau), Level::Green, "four steps");
    scores(&mut sim, &["0"]);
    assert_eq!(level_of(&sim, Pattern::Plateau), Level::Red);
    let mut sim = Sim::working();
    scores(&mut sim, &["0.9"; 20]);
    assert_eq!(level_of(&sim, Pattern::Plateau), Level::Green);
}

#[test]
fn a_value_that_sinks_does_not_move_towards_the_goal() {
    let mut sim = Sim::working();
    scores(&mut sim, &["0.8", "0.7", "0.6", "0.5", "0.4", "0.3", "0.2", "0.1"]);
    assert_eq!(level_of(&sim, Pattern::Plateau), Level::Red);
}

#[test]
fn checks_that_were_carried_forward_say_nothing() {
    let mut sim = Sim::working();
    scores(&mut sim, &["0"; 9]);
    sim.run.value_mut().vrcs.iter_mut().for_each(|vrc| vrc.carried = true);
    assert_eq!(level_of(&sim, Pattern::Plateau), Level::Green);
}

#[test]
fn long_scores_are_no_trouble() {
    let mut sim = Sim::working();
    let long = format!("0.{}", "7".repeat(28));
    scores(&mut sim, &[long.as_str(); 20]);
    assert_eq!(level_of(&sim, Pattern::Plateau), Level::Red);
}

#[test]
fn churn_counts_open_tasks_that_failed_twice() {
    let mut sim = Sim::working();
    for (id, level) in [("T1", Level::Green), ("T2", Level::Yellow), ("T3", Level::Red)] {
        sim.task(id, TaskStatus::Pending, &[]);
        sim.run.value_mut().tasks.last_mut().unwrap().retries = 2;
        assert_eq!(level_of(&sim, Pattern::Churn), level);
    }
    sim.run.value_mut().tasks[0].status = TaskStatus::Done;
    sim.run.value_mut().tasks[1].retries = 1;
    assert_eq!(level_of(&sim, Pattern::Churn), Level::Green);
}

#[test]
fn the_same_error_three_times_is_red_while_it_fails() {
    let mut sim = Sim::working();
    sim.verification("unit/a", VerificationStatus::Failed);
    let fail = |sim: &mut Sim, signature: &str| {
        let output = Digest::of(b"output");
        let (end, excerpt, signature) = (String::new(), String::new(), signature.to_owned());
        let failure = Failure { step: 0, end, excerpt, output, signature };
        sim.run.value_mut().verifications.get_mut("unit/a").unwrap().failures.push(failure);
    };
    for signature in ["x", "y", "x", "y", "x"] {
        assert_eq!(level_of(&sim, Pattern::ErrorRecurrence), Level::Green);
        fail(&mut sim, signature);
    }
    assert_eq!(level_of(&sim, Pattern::ErrorRecurrence), Level::Red);
    sim.run.value_mut().verifications.get_mut("unit/a").unwrap().status = VerificationStatus::Passed;
    assert_eq!(level_of(&sim, Pattern::ErrorRecurrence), Level::Green);
}

#[test]
fn budget_without_value_is_red_and_without_a_measure_yellow() {
    let mut sim = Sim::working();
    sim.run.limits.max_total_tokens = Some(100);
    sim.run.spent.input_tokens = 30;
    assert_eq!(level_of(&sim, Pattern::BudgetDivergence), Level::Green, "not more than 30 %");
    sim.run.spent.input_tokens = 40;
    assert_eq!(level_of(&sim, Pattern::BudgetDivergence), Level::Yellow);
    sim.value(VrcMode::Full, "0.21", Recommendation::Continue);
    assert_eq!(level_of(&sim, Pattern::BudgetDivergence), Level::Green);
    sim.value(VrcMode::Full, "0.2", Recommendation::Continue);
    assert_eq!(level_of(&sim, Pattern::BudgetDivergence), Level::Red);
}

#[test]
fn tokens_that_bring_less_and_less_are_noticed() {
    let mut sim = Sim::working();
    scores(&mut sim, &["0.1", "0.2", "0.3", "0.4", "0.5"]);
    sim.run.value_mut().log.iter_mut().for_each(|record| record.tokens = 1_000);
    assert_eq!(level_of(&sim, Pattern::EfficiencyCollapse), Level::Green);
    scores(&mut sim, &["0.6", "0.7", "0.8", "0.85", "0.88"]);
    for record in sim.run.value_mut().log.iter_mut().skip(10) {
        record.tokens = 100_000;
    }
    assert_eq!(level_of(&sim, Pattern::EfficiencyCollapse), Level::Yellow);
}

#[test]
fn a_file_that_most_tasks_change_is_a_hotspot() {
    let mut sim = Sim::working();
    for number in 0..4 {
        assert_eq!(level_of(&sim, Pattern::FileHotspot), Level::Green);
        sim.task(&format!("T{number}"), TaskStatus::Done, &[]);
        let task = sim.run.value_mut().tasks.last_mut().unwrap();
        task.files_modified = vec![if number < 3 { "main.rs" } else { "other.rs" }.into()];
        task.files_created = task.files_modified.clone();
    }
    assert_eq!(level_of(&sim, Pattern::FileHotspot), Level::Yellow);
    sim.run.value_mut().tasks[0].files_modified.clear();
    sim.run.value_mut().tasks[0].files_created.clear();
    assert_eq!(level_of(&sim, Pattern::FileHotspot), Level::Green, "half is not more than half");
}

#[test]
fn one_cause_behind_most_failures_is_a_cluster() {
    let triage = |cause: &str, tests: usize| {
        let tests = vec!["unit/a"; tests];
        let cause =
            serde_json::json!({ "cause": cause, "affected_tests": tests, "priority": 1, "fix_suggestion": "mend it" });
        report(Tool::ReportTriage, serde_json::json!({ "root_causes": [cause] }))
    };
    let mut sim = Sim::working();
    sim.hand_in(triage("No  such table", 3));
    sim.hand_in(triage("typo", 2));
    assert_eq!(level_of(&sim, Pattern::CategoryClustering), Level::Green, "60 % is not more than 60 %");
    sim.next_iteration();
    sim.hand_in(triage("no such TABLE", 1));
    assert_eq!(level_of(&sim, Pattern::CategoryClustering), Level::Yellow);
}

/// Red by churn, after so many steps.
fn red(steps: usize, more: &str) -> Sim {
    let mut sim = Sim::working_with(more);
    for id in ["T1", "T2", "T3"] {
        sim.task(id, TaskStatus::Pending, &[]);
        sim.run.value_mut().tasks.last_mut().unwrap().retries = 2;
    }
    (0..steps).for_each(|_| work(&mut sim));
    sim
}

#[test]
fn a_strategy_session_waits_for_steps_cools_down_and_can_be_switched_off() {
    assert_eq!(strategy_due(&red(4, "").run), None);
    let mut sim = red(5, "");
    assert!(strategy_due(&sim.run).unwrap().contains("T1, T2, T3"));
    assert_eq!(strategy_due(&red(5, "value: { process_monitor: false }").run), None);
    sim.run.limits.max_total_tokens = Some(100);
    sim.run.spent.input_tokens = 95;
    assert_eq!(strategy_due(&sim.run), None, "there is no budget left for it");
    sim.run.spent.input_tokens = 0;
    let step = sim.step(Action::Strategy, Outcome::Neutral);
    for _ in 0..4 {
        work(&mut sim);
        assert_eq!(strategy_due(&sim.run), None);
    }
    work(&mut sim);
    assert!(strategy_due(&sim.run).is_some());
    let change = serde_json::json!({
        "pattern": "churn", "cause": "c", "action": "CONTINUE", "rationale": "r", "re_evaluate_after": 6,
    });
    sim.run.value_mut().strategies.push((step, serde_json::from_value(change).unwrap()));
    assert_eq!(strategy_due(&sim.run), None, "it asked for one step more");
}

#[test]
fn a_strategy_lowers_the_fix_limit_only_when_it_changes_something() {
    let mut sim = Sim::working();
    assert_eq!(fix_limit(&sim.run), 5);
    let mut change = serde_json::json!({
        "pattern": "churn", "cause": "c", "action": "CONTINUE", "rationale": "r", "re_evaluate_after": 3,
        "changes": { "max_fix_attempts": "2" },
    });
    sim.run.value_mut().strategy = serde_json::from_value(change.clone()).ok();
    assert_eq!(fix_limit(&sim.run), 5);
    change["action"] = "STRATEGY_CHANGE".into();
    sim.run.value_mut().strategy = serde_json::from_value(change.clone()).ok();
    assert_eq!(fix_limit(&sim.run), 2);
    for (trigger, fixes) in [("proactive", 1), ("after_3_failures", 3), ("after_9_failures", 5), ("at_full_moon", 5)] {
        change["changes"] = serde_json::json!({ "research_trigger": trigger });
        sim.run.value_mut().strategy = serde_json::from_value(change.clone()).ok();
        assert_eq!(fix_limit(&sim.run), fixes, "research {trigger} comes after so many fixes");
    }
}

#[test]
fn coherence_is_looked_at_after_done_tasks_not_after_steps() {
    let mut sim = Sim::working_with("value: { coherence_interval: 2 }");
    sim.task("T1", TaskStatus::Pending, &[]);
    sim.run.value_mut().tasks[0].retries = 3;
    (0..9).for_each(|_| work(&mut sim));
    assert_eq!(coherence_due(&sim.run), None, "steps do not count");
    for id in ["T2", "T3"] {
        assert_eq!(coherence_due(&sim.run), None);
        sim.task(id, TaskStatus::Done, &[]);
        sim.run.value_mut().tasks.last_mut().unwrap().done_in = Some(sim.run.value().steps_begun - 1);
    }
    assert_eq!(coherence_due(&sim.run).unwrap(), "task T1 failed 3 times");
    sim.step(Action::CoherenceEval, Outcome::Neutral);
    assert_eq!(coherence_due(&sim.run), None, "once in two done tasks");
    sim.run.value_mut().log.pop();
    sim.run.value_mut().tasks[0].retries = 2;
    assert_eq!(coherence_due(&sim.run), None);
}

#[test]
fn coherence_can_be_switched_off() {
    let mut sim = Sim::working_with("value: { coherence_interval: 1, coherence: false }");
    sim.task("T1", TaskStatus::Done, &[]);
    sim.run.value_mut().tasks[0].retries = 3;
    assert_eq!(coherence_due(&sim.run), None);
}
