//! The whole engine against any behaviour of the actions: it always comes to an end, within its own bounds.
//!
//! The actions are played by a small model of what their scripts may do to the folded run, at their worst. Each byte of
//! a stream decides what one step does; 0 is a step that a limit cut, which changes nothing.

use proptest::prelude::*;

use super::*;
use crate::machine::event::RunHalted;
use crate::model::value::tools::StrategyAction;
use crate::model::value::{Recommendation, Task, TaskSource, Verification, VrcMode};
use crate::playbook::value::event::{EpicPut, EpicStatus, StepBegan, StepFinished};
use crate::playbook::value::testing::{task, verification, vrc};

/// Small limits; the step limit is far away, so that it is not what ends a run.
const LIMITS: &str = "value: { max_steps: 1000, max_task_retries: 2, max_fix_attempts: 2, max_no_progress: 4, max_course_corrections: 3, max_exit_gate_attempts: 3, max_qc_generations: 2, max_fruitless_evals: 2, critical_eval_interval: 2, coherence_interval: 2, plan_health_after_tasks: 2 }";
/// Tasks that a run may come to have (`max_tasks` in earnest).
const MAX_TASKS: usize = 12;

#[derive(Debug)]
enum End {
    Passed,
    Halted(Box<RunHalted>),
    /// The machine's own limit on iterations.
    Budget,
}

struct Bytes<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        self.at += 1;
        self.bytes[(self.at - 1) % self.bytes.len()]
    }
}

/// Plays a run to its end.
fn play(sim: &mut Sim, bytes: &[u8]) -> End {
    let mut bytes = Bytes { bytes, at: 0 };
    let mut housekeeping = Vec::new();
    for _ in 0..20_000 {
        match choose(&sim.run) {
            Choice::Halt(halted) => return End::Halted(halted),
            Choice::Close if super::super::passed_here(&sim.run) => return End::Passed,
            Choice::Close => {
                assert!(!sim.run.value().in_iteration.is_empty(), "an iteration in which nothing happened");
                sim.next_iteration();
                if sim.run.spent.iterations >= sim.run.limits.max_iterations {
                    return End::Budget;
                }
            }
            Choice::Begin(action, why) => {
                if action.is_decision() {
                    housekeeping.clear();
                } else {
                    assert!(!housekeeping.contains(&action), "{action} twice in a row");
                    housekeeping.push(action.clone());
                }
                let step = sim.run.value().steps_begun;
                sim.record(StepBegan { step, action: action.clone(), why });
                let outcome = act(sim, &action, step, bytes.next());
                sim.record(StepFinished { step, outcome, detail: String::new() });
            }
        }
    }
    panic!("it goes on for ever");
}

fn act(sim: &mut Sim, action: &Action, step: u32, byte: u8) -> Outcome {
    if byte == 0 && *action != Action::ExitGate {
        return Outcome::NoProgress;
    }
    match action {
        Action::Gate { .. } => panic!("no gate is chosen here"),
        Action::Execute { task } => work_on(sim, task, step, byte),
        Action::GenerateQc => generate(sim, byte),
        Action::RunQc => run_checks(sim, byte),
        Action::Fix { verifications } => fix(sim, verifications, byte),
        Action::CriticalEval => {
            if byte.is_multiple_of(2) {
                add_task(sim, TaskSource::CriticalEval, step);
            }
            Outcome::Neutral
        }
        Action::CourseCorrect => correct(sim, step, byte),
        Action::Research { verifications } => {
            for id in verifications {
                let check = sim.run.value_mut().verifications.get_mut(id).unwrap();
                assert!(!check.researched, "research for the same failure twice");
                check.researched = true;
                if byte.is_multiple_of(2) {
                    check.fix_attempts = 0;
                }
            }
            Outcome::Neutral
        }
        Action::InteractivePause => {
            for task in sim.run.value_mut().tasks.iter_mut().filter(|task| task.needs_person()) {
                task.status = TaskStatus::Pending;
                task.blocked_reason = None;
            }
            Outcome::Neutral
        }
        Action::ServiceFix { .. } => {
            service(sim, byte.is_multiple_of(2));
            Outcome::Neutral
        }
        Action::CoherenceEval => {
            if byte.is_multiple_of(2) {
                add_task(sim, TaskSource::Coherence, step);
            }
            Outcome::Neutral
        }
        Action::ExitGate => leave(sim, step, byte),
        Action::EpicBoundary { epic } => cross(sim, *epic, step, byte),
        Action::Vrc { mode } => {
            let advice = match byte % 4 {
                0 => Recommendation::CourseCorrect,
                1 => Recommendation::Continue,
                2 => Recommendation::Descope,
                _ => Recommendation::ShipReady,
            };
            sim.run.value_mut().vrcs.push(vrc(step, *mode, &format!("0.{:02}", byte % 100), advice));
            if *mode == VrcMode::Full && byte.is_multiple_of(3) {
                add_task(sim, TaskSource::Vrc, step);
            }
            Outcome::Neutral
        }
        Action::PlanHealth => Outcome::Neutral,
        Action::Strategy => {
            let change = serde_json::json!({
                "pattern": "churn", "cause": "c", "action": "STRATEGY_CHANGE", "rationale": "r",
                "re_evaluate_after": byte, "changes": { "max_fix_attempts": (byte % 10).to_string() },
            });
            let change: crate::model::value::tools::StrategyChange = serde_json::from_value(change).unwrap();
            assert_eq!(change.action, StrategyAction::StrategyChange);
            sim.run.value_mut().strategy = Some(change.clone());
            sim.run.value_mut().strategies.push((step, change));
            Outcome::Neutral
        }
    }
}

fn add_task(sim: &mut Sim, source: TaskSource, step: u32) -> bool {
    let number = sim.run.value().tasks.len();
    if number >= MAX_TASKS {
        return false;
    }
    sim.run.value_mut().tasks.push(Task { source, created_in: step, ..task(&format!("N{number}")) });
    true
}

/// Done, done and something broke, not done, or a person is needed.
fn work_on(sim: &mut Sim, id: &str, step: u32, byte: u8) -> Outcome {
    let most = sim.run.value_settings().max_task_retries;
    let value = sim.run.value_mut();
    let task = value.tasks.iter_mut().find(|task| task.id == id).unwrap();
    assert!(matches!(task.status, TaskStatus::Pending | TaskStatus::InProgress));
    match byte % 5 {
        0 => {
            task.retries += 1;
            let gone = task.retries >= most;
            task.status = if gone { TaskStatus::Blocked } else { TaskStatus::Pending };
            Outcome::NoProgress
        }
        1 => {
            task.status = TaskStatus::Blocked;
            task.blocked_reason = Some(format!("{HUMAN_ACTION} do it"));
            Outcome::NoProgress
        }
        rest => {
            task.status = TaskStatus::Done;
            task.done_in = Some(step);
            if byte.is_multiple_of(7) {
                service(sim, false);
            }
            let value = sim.run.value_mut();
            let passing = value.verifications.values_mut().find(|check| check.status == VerificationStatus::Passed);
            match passing {
                Some(check) if rest == 2 => {
                    check.status = VerificationStatus::Failed;
                    Outcome::NoProgress
                }
                Some(_) | None => Outcome::Progress,
            }
        }
    }
}

fn generate(sim: &mut Sim, byte: u8) -> Outcome {
    let count = usize::from(byte % 4);
    for id in ["unit/a", "unit/b", "value/c"].into_iter().take(count) {
        let mut check = verification(id, VerificationStatus::Pending);
        if id == "value/c" {
            check.requires = vec!["unit".into()];
        }
        sim.run.value_mut().verifications.entry(id.to_owned()).or_insert(check);
    }
    if count > 0 { Outcome::Progress } else { Outcome::NoProgress }
}

fn passes(check: &mut Verification) {
    check.status = VerificationStatus::Passed;
    (check.fix_attempts, check.researched, check.corrected) = (0, false, false);
}

/// Category by category: what stands on a failed one stays pending, what stands on a blocked one is blocked.
fn run_checks(sim: &mut Sim, byte: u8) -> Outcome {
    let before = sim.run.value().count(VerificationStatus::Passed);
    let checks = &mut sim.run.value_mut().verifications;
    for (bit, id) in ["unit/a", "unit/b"].into_iter().enumerate() {
        let Some(check) = checks.get_mut(id).filter(|check| check.status == VerificationStatus::Pending) else {
            continue;
        };
        if byte >> bit & 1 == 1 { passes(check) } else { check.status = VerificationStatus::Failed }
    }
    let unit = |status| checks.values().any(|check| check.category == "unit" && check.status == status);
    let (fails, blocked) = (unit(VerificationStatus::Failed), unit(VerificationStatus::Blocked));
    if let Some(check) = checks.get_mut("value/c").filter(|check| check.status == VerificationStatus::Pending) {
        if blocked {
            check.status = VerificationStatus::Blocked;
        } else if !fails {
            if byte & 4 == 4 { passes(check) } else { check.status = VerificationStatus::Failed }
        }
    }
    if sim.run.value().count(VerificationStatus::Passed) > before { Outcome::Progress } else { Outcome::NoProgress }
}

/// Some of the checks pass, another one may break; what would lower the number of passing ones is undone.
fn fix(sim: &mut Sim, ids: &[String], byte: u8) -> Outcome {
    let before = sim.run.value().count(VerificationStatus::Passed);
    let other = sim.run.value().verifications.values().find(|check| check.status == VerificationStatus::Passed);
    let other = other.map(|check| check.id.clone());
    let checks = &mut sim.run.value_mut().verifications;
    let mut passed = 0;
    for (bit, id) in ids.iter().enumerate() {
        let check = checks.get_mut(id).unwrap();
        assert_eq!(check.status, VerificationStatus::Failed);
        if byte >> (bit + 1) & 1 == 1 {
            passes(check);
            passed += 1;
        } else {
            check.fix_attempts += 1;
        }
    }
    if let Some(other) = other.filter(|_| byte & 1 == 1 && passed > 0) {
        checks.get_mut(&other).unwrap().status = VerificationStatus::Failed;
    }
    if sim.run.value().count(VerificationStatus::Passed) > before { Outcome::Progress } else { Outcome::NoProgress }
}

/// Any correction marks the failing checks; a second one gives them up. Besides, the plan may change.
fn correct(sim: &mut Sim, step: u32, byte: u8) -> Outcome {
    let restructured = byte.is_multiple_of(3);
    for check in sim.run.value_mut().verifications.values_mut() {
        if check.status != VerificationStatus::Failed || check.fix_attempts < 2 {
            continue;
        }
        if check.corrected {
            check.status = VerificationStatus::Blocked;
        } else if restructured {
            check.status = VerificationStatus::Pending;
            check.fix_attempts = 0;
        }
        check.corrected = true;
    }
    let changed = match byte % 4 {
        0 => false,
        1 => add_task(sim, TaskSource::CourseCorrection, step),
        2 => {
            let open = sim.run.value_mut().tasks.iter_mut().find(|task| task.is_open());
            open.map(|task| task.status = TaskStatus::Descoped).is_some()
        }
        _ => {
            let blocked = sim.run.value_mut().tasks.iter_mut().filter(|task| task.status == TaskStatus::Blocked);
            blocked.map(|task| task.status = TaskStatus::Pending).count() > 0
        }
    };
    if restructured || changed { Outcome::Progress } else { Outcome::NoProgress }
}

/// Fails at anything that is open; else by chance, with new tasks on the first attempt only.
fn leave(sim: &mut Sim, step: u32, byte: u8) -> Outcome {
    let value = sim.run.value_mut();
    let open = value.tasks.iter().any(Task::is_open);
    if byte.is_multiple_of(3)
        && let Some(check) = value.verifications.values_mut().find(|check| check.status == VerificationStatus::Passed)
    {
        check.status = VerificationStatus::Failed;
    }
    let unproven = value.verifications.values().any(|check| check.status != VerificationStatus::Passed);
    if open || unproven || byte.is_multiple_of(2) {
        if value.exit_gate_attempts == 1 {
            add_task(sim, TaskSource::ExitGate, step);
        }
        return Outcome::Failed;
    }
    Outcome::Passed
}

fn cross(sim: &mut Sim, epic: u32, step: u32, byte: u8) -> Outcome {
    if byte.is_multiple_of(4) {
        return Outcome::Neutral;
    }
    for one in &mut sim.run.value_mut().epics {
        if one.epic == epic {
            one.status = EpicStatus::Completed;
        } else if one.epic == epic + 1 {
            one.status = EpicStatus::InProgress;
        }
    }
    for _ in 0..byte % 3 {
        if add_task(sim, TaskSource::Plan, step) {
            sim.run.value_mut().tasks.last_mut().unwrap().epic = Some(epic + 1);
        }
    }
    Outcome::Neutral
}

/// What a run starts with.
#[derive(Debug, Clone)]
struct Start {
    /// For each task a number that says what it stands on and whether it is blocked.
    tasks: Vec<u8>,
    epics: u8,
    waits: bool,
    iterations: u64,
}

fn start(start: &Start) -> Sim {
    let mut sim = Sim::working_with(LIMITS);
    for (number, kind) in start.tasks.iter().enumerate() {
        let on = format!("T{}", kind % 8);
        let status = if kind.is_multiple_of(11) { TaskStatus::Blocked } else { TaskStatus::Pending };
        // Standing on an earlier task, on itself, or on a later one: also plans that nobody would let pass.
        let dependencies: &[&str] = if kind.is_multiple_of(3) { &[on.as_str()] } else { &[] };
        sim.task(&format!("T{number}"), status, dependencies);
    }
    for epic in 0..u32::from(start.epics) {
        sim.run.value_mut().epics.push(EpicPut {
            epic,
            title: String::new(),
            value_statement: String::new(),
            deliverables: Vec::new(),
            completion_criteria: Vec::new(),
            status: if epic == 0 { EpicStatus::InProgress } else { EpicStatus::Pending },
            feedback: None,
        });
    }
    if !start.waits {
        sim.run.operator.patience = Patience::STOP;
    }
    sim.run.limits.max_iterations = start.iterations;
    sim
}

/// Plays it and looks at the end.
fn ends_well(from: &Start, bytes: &[u8]) {
    let mut sim = start(from);
    let end = play(&mut sim, bytes);
    let value = sim.run.value();
    let used = |name: &str| u32::try_from(value.steps_of(name)).unwrap();
    let settings = sim.run.value_settings();
    assert!(used("COURSE_CORRECT") <= settings.max_course_corrections);
    assert!(used("EXIT_GATE") <= settings.max_exit_gate_attempts);
    // In each epic; an attempt at a boundary begins one.
    assert!(used("GENERATE_QC") <= settings.max_qc_generations * (1 + used("EPIC_BOUNDARY")));
    assert!(value.epics.len() > 1 || used("GENERATE_QC") <= settings.max_qc_generations);
    match &end {
        End::Passed => assert!(value.tasks.iter().all(|task| !task.is_open())),
        End::Halted(halted) => {
            assert_eq!(halted.status, crate::model::stop::ExitStatus::ExitBudgetExceeded);
            assert!(!halted.detail.contains("max_steps"), "only the last resort ended it: {}", halted.detail);
        }
        End::Budget => {}
    }
}

const FAR: u64 = 1_000_000;

/// Actions that always do the same, or two things in turn: the shape of every live-lock there was.
#[test]
fn no_habit_of_the_actions_keeps_a_run_going() {
    for waits in [false, true] {
        for first in 0..=32 {
            for second in 0..=32 {
                let from = Start { tasks: vec![1, 3, 4, 2], epics: 0, waits, iterations: FAR };
                ends_well(&from, &[first, second]);
            }
        }
        for all in 0..=255 {
            let from = Start { tasks: vec![1, 2, 3, 4, 5, 6, 7, 8, 22], epics: 3, waits, iterations: FAR };
            ends_well(&from, &[all]);
        }
    }
}

#[test]
fn a_run_that_goes_well_passes() {
    let mut sim = start(&Start { tasks: vec![1, 2, 4], epics: 0, waits: false, iterations: FAR });
    assert!(matches!(play(&mut sim, &[199]), End::Passed), "{:?}", sim.run.value().log);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn from_any_plan_a_run_comes_to_an_end_within_its_bounds(
        tasks in proptest::collection::vec(any::<u8>(), 0..9),
        epics in 0u8..4,
        waits in any::<bool>(),
        near in any::<bool>(),
        bytes in proptest::collection::vec(any::<u8>(), 1..80),
    ) {
        let iterations = if near { 20 } else { FAR };
        ends_well(&Start { tasks, epics, waits, iterations }, &bytes);
    }
}
