//! One case for each row of the table, and the order in which tasks are picked.

use super::*;
use crate::model::value::{Dispute, Recommendation, TaskSource, VrcMode};
use crate::playbook::value::decide::{pick, table};
use crate::playbook::value::event::{EpicPut, EpicStatus};

fn epics(sim: &mut Sim, statuses: &[EpicStatus]) {
    for (number, status) in statuses.iter().enumerate() {
        sim.run.value_mut().epics.push(EpicPut {
            epic: u32::try_from(number).unwrap(),
            title: format!("Epic {number}"),
            value_statement: String::new(),
            deliverables: Vec::new(),
            completion_criteria: Vec::new(),
            status: *status,
            feedback: None,
        });
    }
}

/// Rows in the order of the table: the state, the row that has to apply, what it has to say.
fn cases() -> Vec<(&'static str, &'static str, Sim)> {
    let mut cases = Vec::new();
    let mut case = |row, says, build: fn(&mut Sim), more: &str| {
        let mut sim = Sim::working_with(more);
        build(&mut sim);
        cases.push((row, says, sim));
    };
    let pause_cut: fn(&mut Sim) = |sim| {
        needs_person(sim, "T1");
        failing(sim, "unit/a", 0, false, false);
        sim.step(Action::InteractivePause, Outcome::NoProgress);
    };
    case("P0", "INTERACTIVE_PAUSE", pause_cut, "");
    let service_down: fn(&mut Sim) = |sim| {
        done(sim, "T1");
        failing(sim, "unit/a", 0, false, false);
        service(sim, false);
    };
    case("P1", "SERVICE_FIX", service_down, "");
    let no_progress: fn(&mut Sim) = |sim| {
        sim.task("T1", TaskStatus::Pending, &[]);
        failing(sim, "unit/a", 1, false, false);
        sim.step(execute("T1"), Outcome::NoProgress);
        sim.step(Action::Fix { verifications: vec!["unit/a".into()] }, Outcome::NoProgress);
    };
    case("P2", "COURSE_CORRECT", no_progress, "value: { max_no_progress: 2 }");
    let advised: fn(&mut Sim) = |sim| {
        done(sim, "T1");
        sim.task("T2", TaskStatus::Pending, &[]);
        sim.value(VrcMode::Full, "0.2", Recommendation::Descope);
    };
    case("P2b", "COURSE_CORRECT", advised, "");
    let disputed: fn(&mut Sim) = |sim| {
        failing(sim, "unit/a", 1, false, false);
        let dispute = Dispute { step: 1, reason: "it asks for the wrong thing".into(), settled: None };
        sim.run.value_mut().verifications.get_mut("unit/a").unwrap().dispute = Some(dispute);
    };
    case("P2c", "GENERATE_QC", disputed, "");
    let unproven: fn(&mut Sim) = |sim| {
        done(sim, "T1");
        sim.task("T2", TaskStatus::Pending, &[]);
    };
    case("P3", "GENERATE_QC", unproven, "");
    let fails: fn(&mut Sim) = |sim| {
        sim.task("T1", TaskStatus::Pending, &[]);
        failing(sim, "unit/a", 4, true, true);
    };
    case("P4", "FIX", fails, "");
    let fixed_in_vain: fn(&mut Sim) = |sim| {
        sim.task("T1", TaskStatus::Pending, &[]);
        failing(sim, "unit/a", 5, false, false);
    };
    case("P4", "RESEARCH", fixed_in_vain, "");
    let researched_in_vain: fn(&mut Sim) = |sim| {
        sim.task("T1", TaskStatus::Pending, &[]);
        failing(sim, "unit/a", 5, true, false);
    };
    case("P4", "COURSE_CORRECT", researched_in_vain, "");
    let person: fn(&mut Sim) = |sim| {
        sim.task("T1", TaskStatus::Pending, &[]);
        needs_person(sim, "T2");
    };
    case("P5", "INTERACTIVE_PAUSE", person, "");
    let ready: fn(&mut Sim) = |sim| {
        sim.task("T1", TaskStatus::Pending, &[]);
        sim.verification("unit/a", VerificationStatus::Pending);
    };
    case("P6", "EXECUTE", ready, "");
    let none_ready: fn(&mut Sim) = |sim| {
        sim.task("T1", TaskStatus::Blocked, &[]);
        sim.task("T2", TaskStatus::Pending, &["T1"]);
        sim.verification("unit/a", VerificationStatus::Pending);
    };
    case("P6", "COURSE_CORRECT", none_ready, "");
    let not_run: fn(&mut Sim) = |sim| {
        sim.task("T1", TaskStatus::Done, &[]);
        sim.task("T2", TaskStatus::Blocked, &[]);
        sim.verification("unit/a", VerificationStatus::Pending);
    };
    case("P7", "RUN_QC", not_run, "");
    let blocked: fn(&mut Sim) = |sim| {
        sim.task("T1", TaskStatus::Done, &[]);
        sim.task("T2", TaskStatus::Blocked, &[]);
        sim.verification("unit/a", VerificationStatus::Passed);
    };
    case("P7b", "COURSE_CORRECT", blocked, "");
    let three_done: fn(&mut Sim) = |sim| {
        sim.verification("unit/a", VerificationStatus::Passed);
        for id in ["T1", "T2", "T3"] {
            done(sim, id);
        }
        sim.value(VrcMode::Quick, "0.95", Recommendation::Continue);
    };
    case("P8", "CRITICAL_EVAL", three_done, "");
    let no_value: fn(&mut Sim) = |sim| {
        sim.verification("unit/a", VerificationStatus::Passed);
        done(sim, "T1");
        sim.value(VrcMode::Quick, "0.95", Recommendation::Continue);
        sim.value(VrcMode::Quick, "0.89", Recommendation::Continue);
    };
    case("P8", "CRITICAL_EVAL", no_value, "");
    let churned: fn(&mut Sim) = |sim| {
        sim.verification("unit/a", VerificationStatus::Passed);
        done(sim, "T1");
        sim.run.value_mut().tasks[0].retries = 3;
        sim.value(VrcMode::Quick, "0.95", Recommendation::Continue);
    };
    case("P8b", "COHERENCE_EVAL", churned, "value: { coherence_interval: 1 }");
    let all_built: fn(&mut Sim) = |sim| {
        for id in ["T1", "T2", "T3"] {
            done(sim, id);
        }
        sim.verification("unit/a", VerificationStatus::Passed);
        sim.step(Action::CriticalEval, Outcome::Neutral);
        sim.value(VrcMode::Quick, "0.95", Recommendation::Continue);
    };
    let all_there: fn(&mut Sim) = |sim| {
        sim.verification("unit/a", VerificationStatus::Passed);
        sim.verification("unit/b", VerificationStatus::Blocked);
        done(sim, "T1");
        sim.value(VrcMode::Quick, "0.9", Recommendation::Continue);
    };
    case("P9", "EXIT_GATE", all_there, "");
    case("P8c", "COHERENCE_EVAL", all_built, "");
    case("P9", "EXIT_GATE", all_built, "value: { coherence: false }");
    let no_checks_to_be_had: fn(&mut Sim) = |sim| {
        done(sim, "T1");
        sim.step(Action::GenerateQc, Outcome::NoProgress);
    };
    case("P9", "EXIT_GATE", no_checks_to_be_had, "value: { max_qc_generations: 1 }");
    let epic_done: fn(&mut Sim) = |sim| {
        sim.verification("unit/a", VerificationStatus::Passed);
        done(sim, "T1");
        sim.value(VrcMode::Quick, "0.9", Recommendation::Continue);
        sim.task("later", TaskStatus::Pending, &[]);
        sim.run.value_mut().tasks[1].epic = Some(1);
        epics(sim, &[EpicStatus::InProgress, EpicStatus::Pending]);
    };
    case("P9", "EPIC_BOUNDARY", epic_done, "");
    let hopeless: fn(&mut Sim) = |sim| {
        sim.task("T1", TaskStatus::Done, &[]);
        failing(sim, "unit/a", 5, true, true);
        sim.verification("value/b", VerificationStatus::Pending);
        sim.run.value_mut().verifications.get_mut("value/b").unwrap().requires = vec!["unit".into()];
    };
    case("given up", "give up", hopeless, "");
    case("else", "COURSE_CORRECT", |_| {}, "");
    cases
}

#[test]
fn every_row_applies_where_it_should() {
    let cases = cases();
    for (row, verdict, sim) in &cases {
        let (name, found) = table::choose(&sim.run);
        assert_eq!((name, says(&found)), (*row, *verdict), "{found:?}");
    }
    for row in table::row_names() {
        assert!(cases.iter().any(|(name, ..)| *name == row), "no case for {row}");
    }
}

#[test]
fn reasons_say_what_and_how_often() {
    let mut sim = Sim::working();
    sim.verification("unit/c", VerificationStatus::Passed);
    failing(&mut sim, "unit/a", 1, false, false);
    failing(&mut sim, "unit/b", 0, false, false);
    assert_eq!(why(&sim), "2 of 3 checks fail; fix attempt 2 of 5");
    let Choice::Begin(Action::Fix { verifications }, _) = choose(&sim.run) else { panic!() };
    assert_eq!(verifications, ["unit/a", "unit/b"]);
}

#[test]
fn only_the_checks_that_can_be_fixed_are_fixed() {
    let mut sim = Sim::working();
    failing(&mut sim, "unit/a", 5, true, true);
    failing(&mut sim, "unit/b", 2, false, false);
    let Choice::Begin(Action::Fix { verifications }, _) = choose(&sim.run) else { panic!() };
    assert_eq!(verifications, ["unit/b"]);
}

#[test]
fn services_wait_until_something_is_there_to_serve() {
    let mut sim = Sim::working();
    service(&mut sim, false);
    sim.task("T1", TaskStatus::Pending, &[]);
    assert_eq!(chosen(&sim), "EXECUTE");
}

fn picked(sim: &Sim) -> &str {
    &pick::next(&sim.run).unwrap().id
}

#[test]
fn tasks_are_picked_by_source_then_what_they_unblock_then_phase_then_age() {
    let mut sim = Sim::working();
    sim.task("oldest", TaskStatus::Pending, &[]);
    assert_eq!(picked(&sim), "oldest");
    sim.task("second", TaskStatus::Pending, &[]);
    assert_eq!(picked(&sim), "oldest", "the older of equals");
    sim.run.value_mut().tasks[1].phase = Some("Phase 10".into());
    assert_eq!(picked(&sim), "second", "no phase comes last");
    sim.task("third", TaskStatus::Pending, &[]);
    sim.run.value_mut().tasks[2].phase = Some("Phase 9".into());
    assert_eq!(picked(&sim), "third", "nine is before ten");
    sim.task("root", TaskStatus::Pending, &[]);
    sim.task("middle", TaskStatus::Pending, &["root"]);
    sim.task("leaf", TaskStatus::Pending, &["middle"]);
    assert_eq!(picked(&sim), "root", "two tasks stand on it");
    sim.task("free", TaskStatus::Pending, &[]);
    sim.task("on free", TaskStatus::Pending, &["free"]);
    assert_eq!(picked(&sim), "root", "one is fewer than two");
    for source in [TaskSource::CourseCorrection, TaskSource::Vrc, TaskSource::CriticalEval, TaskSource::ExitGate] {
        sim.task(source.name(), TaskStatus::Pending, &[]);
        sim.run.value_mut().tasks.last_mut().unwrap().source = source;
        assert_eq!(picked(&sim), source.name());
    }
    sim.task("late", TaskStatus::Pending, &["nobody knows this"]);
    sim.run.value_mut().tasks.last_mut().unwrap().source = TaskSource::ExitGate;
    assert_eq!(picked(&sim), "exit gate", "what it stands on is not there");
}

#[test]
fn a_task_stands_on_done_or_descoped_ones() {
    let mut sim = Sim::working();
    sim.task("T1", TaskStatus::Descoped, &[]);
    sim.task("T2", TaskStatus::Pending, &["T1"]);
    assert_eq!(picked(&sim), "T2");
}

#[test]
fn only_the_current_epic_is_worked_on() {
    let mut sim = Sim::working();
    epics(&mut sim, &[EpicStatus::Completed, EpicStatus::InProgress, EpicStatus::Pending]);
    for (id, epic) in [("other", Some(2)), ("mine", Some(1)), ("any", None)] {
        sim.task(id, TaskStatus::Pending, &[]);
        sim.run.value_mut().tasks.last_mut().unwrap().epic = epic;
    }
    assert_eq!(pick::waiting(&sim.run).map(|task| task.id.as_str()).collect::<Vec<_>>(), ["mine", "any"]);
}

#[test]
fn a_later_epic_gets_checks_of_its_own() {
    let mut sim = Sim::working();
    epics(&mut sim, &[EpicStatus::Completed, EpicStatus::InProgress]);
    done(&mut sim, "T1");
    sim.step(Action::GenerateQc, Outcome::Progress);
    sim.verification("unit/a", VerificationStatus::Passed);
    sim.step(Action::EpicBoundary { epic: 0 }, Outcome::Neutral);
    assert_ne!(table::choose(&sim.run).0, "P3", "nothing is done in it yet");
    done(&mut sim, "T2");
    assert_eq!(table::choose(&sim.run).0, "P3");
}

#[test]
fn the_whole_is_looked_at_once_in_each_epic_before_it_is_closed() {
    let mut sim = Sim::working();
    epics(&mut sim, &[EpicStatus::InProgress, EpicStatus::Pending]);
    sim.verification("unit/a", VerificationStatus::Passed);
    let chosen = |sim: &Sim| says(&table::choose(&sim.run).1);
    for (number, ids) in [(0, ["T1", "T2", "T3"]), (1, ["T4", "T5", "T6"])] {
        ids.iter().for_each(|id| done(&mut sim, id));
        sim.step(Action::GenerateQc, Outcome::Progress);
        sim.step(Action::CriticalEval, Outcome::Neutral);
        sim.value(VrcMode::Quick, "0.95", Recommendation::Continue);
        assert_eq!(chosen(&sim), "COHERENCE_EVAL", "epic {number}");
        sim.step(Action::CoherenceEval, Outcome::NoProgress);
        assert_eq!(chosen(&sim), if number == 0 { "EPIC_BOUNDARY" } else { "EXIT_GATE" });
        sim.step(Action::EpicBoundary { epic: number }, Outcome::Neutral);
        sim.run.value_mut().epics.clear();
        epics(&mut sim, &[EpicStatus::Completed, EpicStatus::InProgress]);
    }
}

#[test]
fn every_epic_has_its_own_attempts_at_checks() {
    let mut sim = Sim::working_with("value: { max_qc_generations: 1 }");
    for number in 0..5_u32 {
        let mut statuses = [EpicStatus::Completed; 6];
        statuses[usize::try_from(number).unwrap()] = EpicStatus::InProgress;
        sim.run.value_mut().epics.clear();
        epics(&mut sim, &statuses);
        done(&mut sim, &format!("E{number}"));
        assert_eq!(table::choose(&sim.run).0, "P3", "epic {number}");
        // Looking at a check that is said to be wrong is none of them.
        let regenerated = sim.step(Action::GenerateQc, Outcome::NoProgress);
        sim.run.value_mut().regenerations.push(regenerated);
        assert_eq!(table::choose(&sim.run).0, "P3", "epic {number}");
        sim.step(Action::GenerateQc, Outcome::Progress);
        sim.verification(&format!("unit/{number}"), VerificationStatus::Passed);
        assert_ne!(table::choose(&sim.run).0, "P3", "epic {number}");
        sim.step(Action::EpicBoundary { epic: number }, Outcome::Neutral);
    }
    sim.run.started.reducer_version = crate::machine::event::FIRST_WITH_REVIEWS - 1;
    done(&mut sim, "E5");
    assert_ne!(table::choose(&sim.run).0, "P3", "an older engine counted over the whole run");
}
