//! What went wrong elsewhere, and must not go wrong here: a test for each lesson that concerns deciding.

use super::*;
use crate::model::value::{Recommendation, VrcMode};
use crate::playbook::value::decide::table;

fn fix(id: &str) -> Action {
    Action::Fix { verifications: vec![id.into()] }
}

fn service_fix() -> Action {
    Action::ServiceFix { services: vec!["db".into()] }
}

#[test]
fn fixes_and_service_fixes_do_not_alternate_for_ever() {
    let mut sim = unattended("");
    done(&mut sim, "T1");
    failing(&mut sim, "unit/a", 0, false, false);
    service(&mut sim, false);
    // The service comes up for the fix and is down again after it.
    for _ in 0..3 {
        assert_eq!(table::choose(&sim.run).0, "P1");
        sim.step(service_fix(), Outcome::Neutral);
        service(&mut sim, true);
        assert_eq!(table::choose(&sim.run).0, "P4");
        sim.step(fix("unit/a"), Outcome::NoProgress);
        service(&mut sim, false);
    }
    let (row, verdict) = table::choose(&sim.run);
    assert_eq!((row, says(&verdict)), ("P1", "COURSE_CORRECT"));
    sim.step(Action::CourseCorrect, Outcome::NoProgress);
    assert_eq!(table::choose(&sim.run).0, "P4", "looked at once, the rest goes on without the service");
}

#[test]
fn neutral_steps_neither_hide_nor_cause_being_stuck() {
    let mut sim = unattended("value: { max_no_progress: 2 }");
    sim.task("T1", TaskStatus::Pending, &[]);
    sim.step(execute("T1"), Outcome::NoProgress);
    for _ in 0..5 {
        sim.step(Action::InteractivePause, Outcome::Neutral);
    }
    assert_eq!(table::choose(&sim.run).0, "P6");
    sim.step(execute("T1"), Outcome::NoProgress);
    assert_eq!(table::choose(&sim.run).0, "P2");
    sim.step(Action::CourseCorrect, Outcome::NoProgress);
    assert_eq!(table::choose(&sim.run).0, "P6", "the correction gets its chance");
}

#[test]
fn research_is_kept_by_check_and_another_failure_resets_nothing() {
    let mut sim = unattended("");
    failing(&mut sim, "unit/a", 5, true, true);
    failing(&mut sim, "unit/b", 5, false, false);
    let (_, verdict) = table::choose(&sim.run);
    let NextStep::Step(Action::Research { verifications }, _) = verdict else { panic!("{verdict:?}") };
    assert_eq!(verifications, ["unit/b"]);
}

#[test]
fn generating_checks_without_result_comes_to_an_end() {
    let mut sim = unattended("");
    done(&mut sim, "T1");
    sim.task("T2", TaskStatus::Pending, &[]);
    assert_eq!(table::choose(&sim.run).0, "P3");
    sim.step(Action::GenerateQc, Outcome::NoProgress);
    assert_eq!(table::choose(&sim.run).0, "P6", "not again before something else is done");
    sim.run.value_mut().tasks[1].status = TaskStatus::Done;
    sim.run.value_mut().tasks[1].done_in = Some(sim.step(execute("T2"), Outcome::Progress));
    for _ in 0..2 {
        assert_eq!(table::choose(&sim.run).0, "P3");
        sim.step(Action::GenerateQc, Outcome::NoProgress);
    }
    assert_eq!(table::choose(&sim.run).0, "P9");
}

#[test]
fn checks_that_wait_for_failed_ones_are_not_run_again_and_again() {
    let mut sim = unattended("");
    done(&mut sim, "T1");
    failing(&mut sim, "unit/a", 5, true, true);
    for (id, requires) in [("value/b", "unit"), ("value2/c", "value"), ("round/d", "round2"), ("round2/e", "round")] {
        sim.verification(id, VerificationStatus::Pending);
        sim.run.value_mut().verifications.get_mut(id).unwrap().requires = vec![requires.into()];
    }
    assert_eq!(table::choose(&sim.run).0, "given up");
    sim.run.value_mut().verifications.get_mut("unit/a").unwrap().status = VerificationStatus::Passed;
    assert_eq!(table::choose(&sim.run).0, "P7");
}

#[test]
fn corrections_are_bounded_on_every_way_and_the_end_is_partial() {
    type Way = (&'static str, fn(&mut Sim));
    let ways: [Way; 5] = [
        ("stuck", |sim| {
            sim.task("T1", TaskStatus::Pending, &[]);
            sim.step(execute("T1"), Outcome::NoProgress);
        }),
        ("none ready", |sim| sim.task("T1", TaskStatus::Pending, &["T1"])),
        ("blocked", |sim| {
            sim.task("T1", TaskStatus::Blocked, &[]);
            sim.step(Action::InteractivePause, Outcome::Neutral);
        }),
        ("services", |sim| {
            done(sim, "T1");
            service(sim, false);
            for _ in 0..3 {
                sim.step(service_fix(), Outcome::Neutral);
            }
        }),
        ("nothing applies", |_| {}),
    ];
    for (way, build) in ways {
        let mut sim = unattended("value: { max_course_corrections: 1, max_no_progress: 1 }");
        sim.step(Action::CourseCorrect, Outcome::NoProgress);
        build(&mut sim);
        sim.next_iteration();
        assert_eq!(chosen(&sim), "halt", "{way}");
        assert!(why(&sim).starts_with("partial: "), "{}", why(&sim));
        assert!(why(&sim).contains("max_course_corrections"), "{}", why(&sim));
    }
}

#[test]
fn a_person_is_asked_once_before_the_end() {
    let mut sim = Sim::working_with("value: { max_course_corrections: 1 }");
    sim.step(Action::CourseCorrect, Outcome::NoProgress);
    sim.next_iteration();
    assert_eq!(chosen(&sim), "INTERACTIVE_PAUSE");
    sim.step(Action::InteractivePause, Outcome::Neutral);
    sim.next_iteration();
    assert_eq!(chosen(&sim), "halt");
}

#[test]
fn what_an_iteration_did_is_measured_before_the_end() {
    let mut sim = unattended("value: { max_steps: 1 }");
    sim.task("T1", TaskStatus::Pending, &[]);
    sim.step(execute("T1"), Outcome::NoProgress);
    assert_eq!(chosen(&sim), "VRC_FULL");
    sim.value(VrcMode::Full, "0.6", Recommendation::Continue);
    assert_eq!(chosen(&sim), "close");
    sim.next_iteration();
    assert_eq!(chosen(&sim), "halt");
    let detail =
        "partial: 1 of 1 steps are used (max_steps); 0 of 1 tasks are done, 0 of 0 checks pass, the value score is 0.6";
    assert_eq!(why(&sim), detail);
}

#[test]
fn the_step_limit_is_not_passed_by_asking() {
    let mut sim = Sim::working_with("value: { max_steps: 1 }");
    sim.task("T1", TaskStatus::Pending, &[]);
    sim.step(execute("T1"), Outcome::NoProgress);
    sim.next_iteration();
    assert_eq!(chosen(&sim), "halt");
}

#[test]
fn an_evaluator_that_never_says_ready_has_a_limit_and_no_safety_valve_is_a_success() {
    let mut sim = unattended("");
    sim.verification("unit/a", VerificationStatus::Passed);
    done(&mut sim, "T1");
    for _ in 0..3 {
        sim.value(VrcMode::Full, "0.95", Recommendation::Continue);
        sim.next_iteration();
        assert_eq!(chosen(&sim), "EXIT_GATE");
        sim.step(Action::ExitGate, Outcome::Failed);
        sim.next_iteration();
        if sim.run.value().exit_gate_attempts < 3 {
            assert_eq!(chosen(&sim), "COURSE_CORRECT", "no second attempt without work in between");
            sim.step(Action::CourseCorrect, Outcome::Progress);
        }
    }
    assert_eq!(chosen(&sim), "halt");
    assert!(why(&sim).contains("max_exit_gate_attempts"));
    assert_eq!(sim.run.value().exit_gate_passed, None);
}

#[test]
fn evaluations_that_find_nothing_come_to_an_end() {
    let mut sim = unattended("value: { max_fruitless_evals: 2 }");
    sim.verification("unit/a", VerificationStatus::Passed);
    done(&mut sim, "T1");
    assert_eq!(table::choose(&sim.run).0, "P8");
    sim.step(Action::CriticalEval, Outcome::Neutral);
    assert_eq!(table::choose(&sim.run).0, "P9", "looking again would find the same");
    done(&mut sim, "T2");
    for _ in 0..2 {
        assert_eq!(table::choose(&sim.run).0, "P8", "there is something new to look at");
        sim.step(Action::CriticalEval, Outcome::NoProgress);
    }
    assert_eq!(table::choose(&sim.run).0, "P9", "an evaluator that never reports has a limit");
}

#[test]
fn a_gate_that_failed_is_not_tried_again_where_a_correction_changed_nothing() {
    let mut sim = unattended("");
    sim.verification("unit/a", VerificationStatus::Passed);
    done(&mut sim, "T1");
    sim.value(VrcMode::Full, "0.95", Recommendation::Continue);
    sim.step(Action::ExitGate, Outcome::Failed);
    sim.next_iteration();
    assert_eq!(chosen(&sim), "COURSE_CORRECT");
    sim.step(Action::CourseCorrect, Outcome::NoProgress);
    sim.next_iteration();
    assert_eq!(chosen(&sim), "halt");
    assert!(why(&sim).contains("nothing was done since"), "{}", why(&sim));
    // A judge that broke off said nothing of the work: the gate is tried again.
    sim.run.value_mut().gate_unjudged = true;
    assert_eq!(chosen(&sim), "EXIT_GATE");
}

#[test]
fn ship_ready_is_advice_and_the_gate_decides() {
    let mut sim = unattended("");
    sim.task("T1", TaskStatus::Pending, &[]);
    sim.step(Action::RunQc, Outcome::Neutral);
    sim.value(VrcMode::Full, "1", Recommendation::ShipReady);
    assert_eq!(table::choose(&sim.run).0, "P6");
}

#[test]
fn advice_to_correct_is_taken_once_for_each_piece_of_work_and_never_ends_a_run() {
    let advice = |sim: &mut Sim| sim.value(VrcMode::Full, "0.1", Recommendation::CourseCorrect);
    let mut sim = unattended("value: { max_course_corrections: 2 }");
    sim.task("T1", TaskStatus::Pending, &[]);
    advice(&mut sim);
    assert_eq!(table::choose(&sim.run).0, "P6", "nothing was done that could be corrected");
    sim.step(execute("T1"), Outcome::NoProgress);
    advice(&mut sim);
    assert_eq!(table::choose(&sim.run).0, "P2b");
    sim.step(Action::CourseCorrect, Outcome::Progress);
    advice(&mut sim);
    assert_eq!(table::choose(&sim.run).0, "P6", "the correction gets its chance");
    sim.step(execute("T1"), Outcome::NoProgress);
    sim.value(VrcMode::Quick, "0.1", Recommendation::CourseCorrect);
    assert_eq!(table::choose(&sim.run).0, "P6", "only a full check is listened to");
    sim.step(Action::CourseCorrect, Outcome::Progress);
    sim.step(execute("T1"), Outcome::NoProgress);
    advice(&mut sim);
    assert_eq!(table::choose(&sim.run).0, "P6", "no correction is left, and the task is ready");
}

#[test]
fn a_strategy_never_raises_a_limit() {
    let mut sim = unattended("value: { max_fix_attempts: 3 }");
    for (wish, limit) in [("10", 3), ("2", 2), ("0", 1), ("many", 3)] {
        let change = serde_json::json!({
            "pattern": "churn", "cause": "c", "action": "STRATEGY_CHANGE", "rationale": "r", "re_evaluate_after": 3,
            "changes": { "max_fix_attempts": wish },
        });
        sim.run.value_mut().strategy = serde_json::from_value(change).ok();
        assert!(sim.run.value().strategy.is_some());
        assert_eq!(crate::playbook::value::monitor::fix_limit(&sim.run), limit, "{wish}");
    }
}

#[test]
fn a_task_that_asks_for_a_person_again_and_again_is_given_up() {
    let mut sim = Sim::working();
    needs_person(&mut sim, "T1");
    for _ in 0..20 {
        assert_eq!(table::choose(&sim.run).0, "P5");
        sim.step(Action::InteractivePause, Outcome::Neutral);
    }
    assert_eq!(table::choose(&sim.run).0, "P7b");
}
