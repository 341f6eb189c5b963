//! COURSE_CORRECT.

use super::*;
use crate::model::decision::{Answer, Patience, Request};
use crate::model::digest::Digest;
use crate::model::purpose::Purpose;
use crate::model::value::tools::Discovery;
use crate::model::value::{Outcome, VerificationStatus as Status};
use crate::playbook::value::event::VerificationsFound;
use crate::playbook::value::event::{StepFinished, ValueEvent};
use crate::playbook::value::testing::{LOOP, verification};

fn correction(action: &str) -> Structured {
    let input = json!({ "action": action, "reason": "it goes nowhere", "rollback_to_checkpoint": "qc-1" });
    report(Tool::ReportCourseCorrection, input)
}

/// One check passes, one is at its limit.
fn stuck() -> Sim {
    let mut sim = Sim::working();
    sim.task("T1", TaskStatus::Done, &[]);
    sim.task("T2", TaskStatus::Pending, &[]);
    sim.verification("unit/good", Status::Passed);
    exhaust(&mut sim, "unit/bad");
    sim
}

fn exhaust(sim: &mut Sim, id: &str) {
    let bad = Verification { fix_attempts: 5, researched: true, ..verification(id, Status::Failed) };
    sim.run.value_mut().verifications.insert(id.to_owned(), bad);
}

fn correct(sim: &mut Sim, reports: Vec<Structured>) -> StepFinished {
    begin(sim, Action::CourseCorrect);
    sim.agent(Purpose::CourseCorrect, reports);
    finish(sim)
}

#[test]
fn a_changed_plan_gives_a_failing_check_one_new_chance_and_keeps_what_passes() {
    for kind in ["restructure", "descope", "new_tasks"] {
        let mut sim = stuck();
        let reports = vec![add("CC-1", "Write the greeting to a file instead."), correction(kind)];
        assert_eq!(correct(&mut sim, reports).outcome, Outcome::Progress, "{kind}");
        let bad = check(&sim, "unit/bad");
        assert_eq!((bad.status, bad.fix_attempts, bad.corrected), (Status::Pending, 0, true), "{kind}");
        assert_eq!(*check(&sim, "unit/good"), verification("unit/good", Status::Passed));
        assert_eq!(status(&sim, "T1"), TaskStatus::Done);
    }
}

#[test]
fn a_second_correction_gives_the_check_up() {
    let mut sim = stuck();
    correct(&mut sim, vec![add("CC-1", "Write the greeting to a file instead."), correction("restructure")]);
    let mut again = check(&sim, "unit/bad").clone();
    (again.status, again.fix_attempts) = (Status::Failed, 5);
    sim.run.value_mut().verifications.insert(again.id.clone(), again);
    correct(&mut sim, vec![add("CC-2", "Read names from the environment."), correction("new_tasks")]);
    assert_eq!(check(&sim, "unit/bad").status, Status::Blocked);
}

#[test]
fn a_correction_that_changes_nothing_is_no_progress_and_still_counts_for_the_check() {
    let mut sim = stuck();
    assert_eq!(correct(&mut sim, vec![correction("restructure")]).outcome, Outcome::NoProgress);
    let bad = check(&sim, "unit/bad");
    assert_eq!((bad.status, bad.fix_attempts, bad.corrected), (Status::Failed, 5, true));
}

#[test]
fn a_reasoner_that_fails_does_not_make_correcting_endless() {
    let mut sim = stuck();
    for wanted in [Status::Failed, Status::Blocked] {
        begin(&mut sim, Action::CourseCorrect);
        sim.agent_ends(Purpose::CourseCorrect, Vec::new(), failed());
        assert_eq!(finish(&mut sim).outcome, Outcome::NoProgress);
        assert_eq!((check(&sim, "unit/bad").status, check(&sim, "unit/bad").corrected), (wanted, true));
    }
}

#[test]
fn a_check_with_fixes_left_is_left_alone_when_nothing_changed() {
    let mut sim = stuck();
    sim.verification("unit/new", Status::Failed);
    correct(&mut sim, vec![correction("restructure")]);
    assert_eq!(*check(&sim, "unit/new"), verification("unit/new", Status::Failed));
}

#[test]
fn done_tasks_are_not_touched() {
    let mut sim = stuck();
    begin(&mut sim, Action::CourseCorrect);
    let wish = report(Tool::ManageTask, json!({ "action": "modify", "task_id": "T1", "status": "pending" }));
    let rejected = sim.agent(Purpose::CourseCorrect, vec![wish, correction("restructure")]);
    assert_eq!(rejected.len(), 1);
    assert_eq!(finish(&mut sim).outcome, Outcome::NoProgress);
    assert_eq!(status(&sim, "T1"), TaskStatus::Done);
}

/// A checkpoint with T1 and unit/good, then T3 is done and unit/good broke.
fn with_checkpoint() -> Sim {
    let mut sim = stuck();
    with_git(&mut sim);
    git(&mut sim, GitOperation::Checkpoint { label: "qc-1".into() }, None);
    sim.task("T3", TaskStatus::Done, &[]);
    let late = sim.run.value_mut().tasks.last_mut().unwrap();
    (late.retries, late.notes, late.done_in) = (2, "Took long.".into(), Some(9));
    late.files_created = vec!["late.txt".into()];
    sim.verification("unit/good", Status::Failed);
    sim.verification("unit/late", Status::Passed);
    sim.verification("unit/lost", Status::Blocked);
    sim
}

#[test]
fn a_rollback_goes_back_to_what_was_true_at_the_checkpoint() {
    let mut sim = with_checkpoint();
    begin(&mut sim, Action::CourseCorrect);
    sim.agent(Purpose::CourseCorrect, vec![correction("rollback")]);
    let GitOperation::Restore { commit, why } = do_git(&mut sim, None) else { panic!("no restore") };
    assert_eq!(commit, "commit-of-qc-1");
    assert!(why.contains("it goes nowhere"), "{why}");
    assert_eq!(finish(&mut sim).outcome, Outcome::Progress);
    assert_eq!(status(&sim, "T1"), TaskStatus::Done);
    let late = sim.run.value().task("T3").unwrap();
    assert_eq!((late.status, late.retries, late.done_in), (TaskStatus::Pending, 2, None));
    assert!(late.files_created.is_empty() && late.notes.contains("rolled back to qc-1"), "{late:?}");
    assert_eq!(check(&sim, "unit/good").status, Status::Passed);
    assert_eq!(check(&sim, "unit/late").status, Status::Pending);
    assert_eq!(check(&sim, "unit/lost").status, Status::Blocked);
    let bad = check(&sim, "unit/bad");
    assert_eq!((bad.status, bad.fix_attempts, bad.corrected), (Status::Pending, 0, true));
}

#[test]
fn rollbacks_are_bounded_and_need_a_place_to_go_to() {
    let no_place = |prepare: fn(&mut Sim), label: &str| {
        let mut sim = with_checkpoint();
        prepare(&mut sim);
        let input = json!({ "action": "rollback", "reason": "r", "rollback_to_checkpoint": label });
        // Past the tool's own check: a label that is left out means the newest.
        let correction = Structured::ReportCourseCorrection(serde_json::from_value(input).unwrap());
        let finished = correct(&mut sim, vec![correction]);
        assert_eq!(finished.outcome, Outcome::NoProgress);
        assert_eq!(status(&sim, "T3"), TaskStatus::Done);
        finished.detail
    };
    assert!(no_place(|_| {}, "qc-7").contains("`qc-7`"));
    assert!(no_place(|sim| sim.run.value_mut().checkpoints.clear(), "").contains("no checkpoint"));
    assert!(no_place(|sim| sim.run.value_mut().restores = 3, "qc-1").contains("3 rollback(s)"));
    assert!(no_place(|sim| sim.run.git.facts = None, "qc-1").contains("no branch"));
    let boundary = |sim: &mut Sim| {
        begin(sim, Action::CriticalEval);
        sim.agent(Purpose::CriticalEval, Vec::new());
        finish(sim);
        let record = sim.run.value_mut().log.last_mut().unwrap();
        (record.action, record.step) = (Action::EpicBoundary { epic: 0 }, 1);
    };
    assert!(no_place(boundary, "").contains("no checkpoint"), "a finished epic is not rolled back");
}

#[test]
fn a_rollback_that_fails_changes_nothing() {
    let mut sim = with_checkpoint();
    begin(&mut sim, Action::CourseCorrect);
    sim.agent(Purpose::CourseCorrect, vec![correction("rollback")]);
    do_git(&mut sim, Some("a merge is in progress"));
    let finished = finish(&mut sim);
    assert_eq!(finished.outcome, Outcome::NoProgress);
    assert!(finished.detail.contains("a merge is in progress"));
    assert_eq!(status(&sim, "T3"), TaskStatus::Done);
}

fn regenerate(sim: &mut Sim) {
    begin(sim, Action::CourseCorrect);
    sim.agent(Purpose::CourseCorrect, vec![correction("regenerate_tests")]);
}

#[test]
fn checks_that_fail_are_written_anew_and_those_that_pass_are_kept() {
    let mut sim = stuck();
    sim.verification("unit/lost", Status::Blocked);
    regenerate(&mut sim);
    let Todo::StartAgent { subject, .. } = sim.todo() else { panic!("{:?}", sim.todo()) };
    assert_eq!(subject.as_deref(), Some("unit/bad,unit/lost"));
    sim.agent(Purpose::GenerateVerifications, Vec::new());
    assert_eq!(sim.settle(), Todo::Effect(Effect::FindVerifications));
    // The script of one is new, the other is as it was.
    let mut anew = verification("unit/bad", Status::Pending);
    anew.script = Digest::of(b"another");
    let same = check(&sim, "unit/lost").clone();
    let verifications = vec![anew, check(&sim, "unit/good").clone(), same];
    sim.record(VerificationsFound { verifications, passed_over: Vec::new() });
    assert_eq!(finish(&mut sim).outcome, Outcome::Progress);
    assert_eq!((check(&sim, "unit/bad").status, check(&sim, "unit/bad").corrected), (Status::Pending, true));
    assert_eq!(check(&sim, "unit/good").status, Status::Passed);
    assert_eq!(check(&sim, "unit/lost").status, Status::Blocked);
}

#[test]
fn writing_checks_anew_is_bounded() {
    let mut sim = stuck();
    for generation in 0..4 {
        exhaust(&mut sim, "unit/bad");
        regenerate(&mut sim);
        if generation == 3 {
            break;
        }
        sim.agent(Purpose::GenerateVerifications, Vec::new());
        let verifications = sim.run.value().verifications.values().cloned().collect();
        sim.record(VerificationsFound { verifications, passed_over: Vec::new() });
        assert_eq!(finish(&mut sim).outcome, Outcome::NoProgress, "the script is unchanged");
    }
    let finished = finish(&mut sim);
    assert_eq!(finished.outcome, Outcome::NoProgress);
    assert!(finished.detail.contains("at most 3 time(s)"), "{}", finished.detail);
}

#[test]
fn an_escalation_asks_and_the_answer_is_a_word_for_the_next_agent() {
    let mut sim = stuck();
    begin(&mut sim, Action::CourseCorrect);
    sim.agent(Purpose::CourseCorrect, vec![correction("escalate")]);
    assert_eq!(sim.settle(), Todo::AwaitPerson);
    let decision = sim.run.operator.open().next().unwrap();
    assert!(matches!(&decision.request, Request::Escalation { problem, .. } if problem == "it goes nowhere"));
    sim.answer(Answer::Text("use the other library".into()));
    assert_eq!(finish(&mut sim).outcome, Outcome::NoProgress);
    assert_eq!(sim.run.operator.queued().next().unwrap().text, "use the other library");
    assert!(check(&sim, "unit/bad").corrected);
    assert_eq!(sim.run.operator.decisions.len(), 1);
}

#[test]
fn without_a_person_an_escalation_is_asked_all_the_same() {
    let mut sim = Sim::working();
    let patient = Sim::declared(LOOP, Patience::STOP);
    sim.run.operator.patience = patient.run.operator.patience;
    begin(&mut sim, Action::CourseCorrect);
    sim.agent(Purpose::CourseCorrect, vec![correction("escalate")]);
    sim.proceed();
    assert_eq!(sim.run.operator.open().count(), 1);
    assert!(!sim.events.iter().any(|event| matches!(event.work(), Some(ValueEvent::StepFinished(_)))));
}

#[test]
fn services_are_looked_at_again_after_a_rollback() {
    let mut sim = with_checkpoint();
    let context = json!({
        "deliverable_type": "software", "project_type": "cli", "codebase_state": "greenfield", "value_proofs": [],
        "services": [{ "name": "db", "health_type": "tcp", "port": 5432 }],
    });
    let context: Discovery = serde_json::from_value(context).unwrap();
    sim.run.value_mut().declared.clone_from(&context.services);
    sim.run.value_mut().context = Some(context);
    begin(&mut sim, Action::CourseCorrect);
    sim.agent(Purpose::CourseCorrect, vec![correction("rollback")]);
    do_git(&mut sim, None);
    assert_eq!(sim.settle(), Todo::Effect(Effect::CheckServices));
}
