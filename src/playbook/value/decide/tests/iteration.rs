//! How an iteration is filled and closed, and what the budget changes.

use super::*;
use crate::model::purpose::Tool;
use crate::model::value::{Recommendation, TaskSource, VrcMode};
use crate::playbook::value::testing::report;

fn some_report() -> crate::model::value::tools::Structured {
    report(
        Tool::ReportTriage,
        serde_json::json!({ "root_causes": [{ "cause": "a typo", "affected_tests": ["unit/a"], "priority": 1, "fix_suggestion": "mend it" }] }),
    )
}

/// A run with work for a long time.
fn busy(more: &str) -> Sim {
    let mut sim = Sim::working_with(more);
    for number in 0..20 {
        sim.task(&format!("T{number}"), TaskStatus::Pending, &[]);
    }
    sim.hand_in(some_report());
    sim
}

#[test]
fn an_iteration_has_five_steps_quick_checks_between_them_and_a_full_one_at_the_end() {
    let mut sim = busy("");
    let mut seen = Vec::new();
    for _ in 0..20 {
        let next = chosen(&sim);
        seen.push(next.clone());
        match next.as_str() {
            "EXECUTE" => sim.step(execute("T0"), Outcome::Progress),
            "VRC_QUICK" => sim.value(VrcMode::Quick, "0.1", Recommendation::Continue),
            "VRC_FULL" => sim.value(VrcMode::Full, "0.1", Recommendation::Continue),
            _ => break,
        };
    }
    let pair = ["EXECUTE", "VRC_QUICK"];
    let expected: Vec<&str> =
        [pair, pair, pair, pair].concat().into_iter().chain(["EXECUTE", "VRC_FULL", "close"]).collect();
    assert_eq!(seen, expected);
    sim.next_iteration();
    assert_eq!(chosen(&sim), "EXECUTE", "the next one begins with work");
}

#[test]
fn a_quick_check_follows_progress_only_and_can_be_switched_off() {
    let mut sim = busy("");
    sim.step(execute("T0"), Outcome::NoProgress);
    assert_eq!(chosen(&sim), "EXECUTE");
    let mut sim = busy("value: { quick_vrc: false }");
    sim.step(execute("T0"), Outcome::Progress);
    assert_eq!(chosen(&sim), "EXECUTE");
}

#[test]
fn steps_that_close_an_iteration_close_it() {
    for (action, then) in [
        (Action::CriticalEval, "VRC_FULL"),
        (Action::CourseCorrect, "VRC_FULL"),
        (Action::EpicBoundary { epic: 0 }, "VRC_FULL"),
        (Action::ExitGate, "close"),
        (Action::InteractivePause, "close"),
    ] {
        let mut sim = busy("");
        sim.step(action.clone(), Outcome::Neutral);
        assert_eq!(chosen(&sim), then, "{action}");
    }
}

#[test]
fn an_iteration_with_nothing_to_show_has_its_value_to_show() {
    for action in [Action::ExitGate, Action::InteractivePause] {
        let mut sim = Sim::working();
        sim.task("T1", TaskStatus::Pending, &[]);
        sim.step(action, Outcome::Failed);
        assert_eq!(chosen(&sim), "VRC_FULL");
        sim.value(VrcMode::Full, "0.1", Recommendation::Continue);
        assert_eq!(chosen(&sim), "close", "once");
    }
}

#[test]
fn a_passed_gate_closes_its_own_iteration_and_no_other() {
    let mut sim = Sim::working();
    sim.verification("unit/a", VerificationStatus::Passed);
    done(&mut sim, "T1");
    sim.value(VrcMode::Full, "1", Recommendation::ShipReady);
    sim.next_iteration();
    assert_eq!(chosen(&sim), "EXIT_GATE");
    sim.step(Action::ExitGate, Outcome::Passed);
    assert_eq!(chosen(&sim), "close");
    sim.next_iteration();
    assert_eq!(chosen(&sim), "EXIT_GATE", "what was not certified has to be shown again");
}

#[test]
fn plan_health_is_looked_at_when_many_tasks_came_in_and_after_a_correction() {
    let unplanned = |sim: &mut Sim, count: usize| {
        for number in 0..count {
            sim.task(&format!("U{number}"), TaskStatus::Pending, &[]);
            sim.run.value_mut().tasks.last_mut().unwrap().source = TaskSource::Vrc;
        }
    };
    let mut sim = busy("");
    unplanned(&mut sim, 4);
    sim.step(Action::CriticalEval, Outcome::Neutral);
    assert_eq!(chosen(&sim), "VRC_FULL");
    unplanned(&mut sim, 1);
    assert_eq!(chosen(&sim), "PLAN_HEALTH");
    sim.step(Action::PlanHealth, Outcome::Neutral);
    assert_eq!(chosen(&sim), "VRC_FULL", "once, although nothing was marked");
    let mut sim = busy("");
    unplanned(&mut sim, 1);
    sim.step(Action::CourseCorrect, Outcome::Progress);
    assert_eq!(chosen(&sim), "PLAN_HEALTH");
    let mut sim = busy("value: { plan_health: false }");
    unplanned(&mut sim, 9);
    sim.step(Action::CourseCorrect, Outcome::Progress);
    assert_eq!(chosen(&sim), "VRC_FULL");
}

#[test]
fn red_asks_for_a_strategy_first_and_once() {
    let mut sim = busy("");
    for number in 0..3 {
        sim.run.value_mut().tasks[number].retries = 2;
    }
    for _ in 0..5 {
        sim.step(execute("T0"), Outcome::NoProgress);
    }
    assert_eq!(chosen(&sim), "STRATEGY");
    sim.step(Action::Strategy, Outcome::Neutral);
    assert_eq!(chosen(&sim), "VRC_FULL");
}

#[test]
fn past_four_fifths_of_the_budget_full_checks_are_quick_unless_forced() {
    let mut sim = busy("value: { process_monitor: false }");
    sim.run.limits.max_total_tokens = Some(1_000);
    sim.run.spent.input_tokens = 799;
    for _ in 0..5 {
        sim.step(execute("T0"), Outcome::NoProgress);
    }
    assert_eq!(chosen(&sim), "VRC_FULL");
    sim.run.spent.output_tokens = 1;
    assert_eq!(chosen(&sim), "VRC_QUICK");
    sim.value(VrcMode::Quick, "0.1", Recommendation::Continue);
    assert_eq!(chosen(&sim), "close");
    sim.next_iteration();
    sim.step(Action::CourseCorrect, Outcome::NoProgress);
    assert_eq!(chosen(&sim), "VRC_FULL");
}

#[test]
fn at_the_end_of_the_budget_only_what_leads_out_is_done() {
    let mut sim = busy("");
    sim.run.limits.max_total_seconds = 100;
    sim.run.spent.millis = 94_999;
    assert_eq!(chosen(&sim), "EXECUTE");
    sim.run.spent.millis = 95_000;
    assert_eq!(chosen(&sim), "INTERACTIVE_PAUSE", "nothing is done: a person is asked");
    assert!(why(&sim).contains("95 %"), "{}", why(&sim));
    sim.run.operator.patience = Patience::STOP;
    assert_eq!(chosen(&sim), "halt");
    sim.task("done", TaskStatus::Done, &[]);
    assert_eq!(chosen(&sim), "EXIT_GATE");
    failing(&mut sim, "unit/a", 0, false, false);
    assert_eq!(chosen(&sim), "FIX");
    // The gate failed and nothing was done for it: no second attempt.
    sim.run.value_mut().verifications.clear();
    sim.step(Action::ExitGate, Outcome::Failed);
    sim.next_iteration();
    assert_eq!(chosen(&sim), "halt");
}

#[test]
fn every_limit_of_the_run_counts_towards_the_share() {
    use crate::model::budget::Dimension;
    use crate::model::decimal::Exact;
    use crate::playbook::value::decide::spent_share;
    let mut sim = Sim::working();
    sim.run.limits.max_total_tokens = Some(100);
    sim.run.limits.max_cost_usd = Exact::parse("0.3").ok();
    sim.run.limits.max_iterations = 10;
    sim.run.limits.max_total_tool_calls = 50;
    sim.run.spent.iterations = 1;
    assert_eq!(spent_share(&sim.run).1, Dimension::Iterations);
    sim.run.spent.tool_calls = 10;
    assert_eq!(spent_share(&sim.run).1, Dimension::TotalToolCalls);
    sim.run.spent.input_tokens = 21;
    assert_eq!(spent_share(&sim.run).1, Dimension::TotalTokens);
    sim.run.spent.cost_usd = Exact::parse("0.1").ok();
    let (share, dimension) = spent_share(&sim.run);
    assert_eq!((share.numerator(), share.denominator(), dimension), (1, 3, Dimension::CostUsd));
    sim.run.limits.max_total_seconds = 0;
    assert_eq!(spent_share(&sim.run).1, Dimension::TotalSeconds, "a limit of nothing is used up");
}
