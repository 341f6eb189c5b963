//! Value checks, plan health, strategy, coherence.

use super::*;
use crate::model::decision::Answer;
use crate::model::purpose::Purpose;
use crate::model::value::{Outcome, Recommendation, TaskSource, VrcMode};
use crate::playbook::value::event::{StepFinished, ValueEvent};
use crate::playbook::value::testing::task;

const FULL: Action = Action::Vrc { mode: VrcMode::Full };

fn value_check(sim: &mut Sim, mode: VrcMode, report: Option<Structured>) -> StepFinished {
    begin(sim, Action::Vrc { mode });
    let purpose = if mode == VrcMode::Full { Purpose::VrcFull } else { Purpose::VrcQuick };
    match report {
        Some(report) => sim.agent(purpose, vec![report]),
        None => sim.agent_ends(purpose, Vec::new(), failed()),
    };
    finish(sim)
}

fn grave_gaps(count: usize) -> Value {
    let tasks =
        ["Write a help page.", "Read the name from a file.", "Greet in German, too.", "Log every greeting made."];
    let gap =
        |task: &&str| json!({ "id": task[..5], "description": "d", "severity": "critical", "suggested_task": task });
    tasks.iter().take(count).map(gap).collect()
}

#[test]
fn a_reported_check_is_kept_as_it_is() {
    let mut sim = Sim::working();
    let finished = value_check(&mut sim, VrcMode::Quick, Some(vrc("0.4", "COURSE_CORRECT", json!([]))));
    assert_eq!(finished.outcome, Outcome::Neutral);
    let taken = sim.run.value().latest_vrc().unwrap();
    assert_eq!((taken.mode, taken.carried, taken.deliverables_verified), (VrcMode::Quick, false, 1));
    assert_eq!((taken.value_score.to_string().as_str(), taken.recommendation), ("0.4", Recommendation::CourseCorrect));
}

#[test]
fn without_a_report_the_numbers_stand_and_the_advice_does_not() {
    let mut sim = Sim::working();
    value_check(&mut sim, VrcMode::Full, None);
    let first = sim.run.value().latest_vrc().unwrap();
    assert!(first.carried && first.value_score.is_zero() && first.deliverables_total == 0);
    value_check(&mut sim, VrcMode::Full, Some(vrc("0.4", "COURSE_CORRECT", grave_gaps(1))));
    let tasks = sim.run.value().tasks.len();
    let finished = value_check(&mut sim, VrcMode::Full, None);
    assert!(finished.detail.contains("carried forward") && finished.detail.contains("no answer"));
    let carried = sim.run.value().latest_vrc().unwrap();
    assert_eq!((carried.step, carried.carried, carried.value_score.to_string().as_str()), (finished.step, true, "0.4"));
    assert_eq!(carried.recommendation, Recommendation::Continue);
    assert_eq!(sim.run.value().tasks.len(), tasks, "a carried check makes no tasks");
}

#[test]
fn a_full_check_makes_a_few_tasks_of_grave_gaps() {
    let mut sim = Sim::working();
    sim.task("T1", TaskStatus::Done, &[]);
    let mut gaps = grave_gaps(4);
    gaps[0]["severity"] = json!("degraded");
    value_check(&mut sim, VrcMode::Full, Some(vrc("0.4", "CONTINUE", gaps.clone())));
    let made = tasks_like(&sim, "VRC-16-");
    assert_eq!(made.len(), 3);
    assert!(made.iter().all(|task| task.source == TaskSource::Vrc && !task.description.contains("help")));
    value_check(&mut sim, VrcMode::Full, Some(vrc("0.4", "CONTINUE", grave_gaps(4))));
    assert_eq!(tasks_like(&sim, "VRC-17-").len(), 1, "what is in the plan already is not made again");
}

#[test]
fn at_most_three_tasks_come_of_one_check() {
    let mut sim = Sim::working();
    value_check(&mut sim, VrcMode::Full, Some(vrc("0.4", "CONTINUE", grave_gaps(4))));
    assert_eq!(sim.run.value().tasks.len(), 3);
}

#[test]
fn gap_tasks_do_not_compete_with_planned_ones_and_quick_checks_make_none() {
    let mut sim = Sim::working();
    value_check(&mut sim, VrcMode::Quick, Some(vrc("0.4", "CONTINUE", grave_gaps(2))));
    assert!(sim.run.value().tasks.is_empty());
    sim.task("T1", TaskStatus::Pending, &[]);
    value_check(&mut sim, VrcMode::Full, Some(vrc("0.4", "CONTINUE", grave_gaps(2))));
    assert_eq!(sim.run.value().tasks.len(), 1);
}

#[test]
fn a_check_is_taken_once_also_after_a_crash() {
    let mut sim = Sim::working();
    begin(&mut sim, FULL);
    sim.agent(Purpose::VrcFull, vec![vrc("0.4", "CONTINUE", json!([]))]);
    let step = sim.run.value().step.clone().unwrap();
    let first = crate::playbook::value::actions::decide(&sim.run, &step).remove(0);
    assert!(matches!(first.work(), Some(ValueEvent::VrcTaken(_))));
    sim.record(first);
    finish(&mut sim);
    assert_eq!(sim.run.value().vrcs.len(), 1);
}

#[test]
fn plan_health_reviews_what_was_not_planned_once() {
    let mut sim = Sim::working();
    sim.task("T1", TaskStatus::Pending, &[]);
    for (id, created_in) in [("CE-7-1", 7), ("CE-7-2", 7)] {
        sim.run.value_mut().tasks.push(Task { source: TaskSource::CriticalEval, created_in, ..task(id) });
    }
    begin(&mut sim, Action::PlanHealth);
    sim.agent_ends(Purpose::PlanHealth, Vec::new(), failed());
    assert_eq!(finish(&mut sim).outcome, Outcome::Neutral);
    assert!(!sim.run.value().task("CE-7-1").unwrap().health_checked, "nobody looked at it");
    begin(&mut sim, Action::PlanHealth);
    let remove = report(Tool::ManageTask, json!({ "action": "remove", "task_id": "CE-7-2" }));
    sim.agent(Purpose::PlanHealth, vec![remove]);
    let finished = finish(&mut sim);
    assert_eq!(finished.detail, "1 task(s) reviewed, 1 change(s) of the plan");
    assert!(sim.run.value().task("CE-7-1").unwrap().health_checked);
    assert!(!sim.run.value().task("T1").unwrap().health_checked);
}

fn strategy(action: &str) -> Structured {
    let input = json!({
        "pattern": "churn", "cause": "the same files again and again", "action": action, "rationale": "why",
        "re_evaluate_after": 5, "changes": {},
    });
    Structured::ReportStrategyChange(serde_json::from_value(input).unwrap())
}

#[test]
fn a_strategy_is_kept_and_only_an_escalation_asks() {
    for action in ["CONTINUE", "STRATEGY_CHANGE"] {
        let mut sim = Sim::working();
        begin(&mut sim, Action::Strategy);
        sim.agent(Purpose::Strategy, vec![strategy(action)]);
        assert_eq!(finish(&mut sim).outcome, Outcome::Neutral);
        assert_eq!((sim.run.value().strategies.len(), sim.run.operator.decisions.len()), (1, 0));
    }
    let mut sim = Sim::working();
    begin(&mut sim, Action::Strategy);
    sim.agent(Purpose::Strategy, vec![strategy("ESCALATE")]);
    assert_eq!(sim.settle(), Todo::AwaitPerson);
    sim.answer(Answer::Text("leave that file".into()));
    assert_eq!(finish(&mut sim).outcome, Outcome::Neutral);
    assert_eq!((sim.run.operator.decisions.len(), sim.run.operator.queued().count()), (1, 1));
    begin(&mut sim, Action::Strategy);
    sim.agent_ends(Purpose::Strategy, Vec::new(), failed());
    assert_eq!(finish(&mut sim).outcome, Outcome::Neutral);
}

#[test]
fn critical_incoherence_becomes_at_most_three_tasks() {
    let mut sim = Sim::working();
    let finding = |n: usize, severity: &str| {
        let what =
            ["Merge both parsers.", "Rename the modules.", "Drop the cache.", "One error type.", "Sort imports."];
        json!({ "dimension": "structural_integrity", "severity": severity, "description": "d", "suggested_action": what[n] })
    };
    let findings: Vec<Value> = [(0, "WARNING"), (1, "CRITICAL"), (2, "CRITICAL"), (3, "CRITICAL"), (4, "CRITICAL")]
        .map(|(n, severity)| finding(n, severity))
        .to_vec();
    begin(&mut sim, Action::CoherenceEval);
    sim.agent(
        Purpose::Coherence,
        vec![report(Tool::ReportCoherence, json!({ "overall": "CRITICAL", "findings": findings }))],
    );
    assert_eq!(finish(&mut sim).outcome, Outcome::Neutral);
    let made: Vec<_> = sim.run.value().tasks.iter().map(|task| task.id.as_str()).collect();
    assert_eq!(made, ["COH-16-1", "COH-16-2", "COH-16-3"]);
    begin(&mut sim, Action::CoherenceEval);
    sim.agent_ends(Purpose::Coherence, Vec::new(), failed());
    assert_eq!(finish(&mut sim).outcome, Outcome::NoProgress);
}
