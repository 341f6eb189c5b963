//! The priority table: the first row that applies says what comes next.
//!
//! Each row is a function of the folded run. What bounds it stands at the row.

use crate::machine::run::RunState;
use crate::model::fraction::Fraction;
use crate::model::value::{
    Action, Outcome, Recommendation, Task, TaskStatus, Verification, VerificationStatus, VrcMode,
};
use crate::playbook::value::event::EpicStatus;
use crate::playbook::value::state::StepRecord;

use super::history::{self, is_correction};
use super::{NextStep, pick};
use crate::playbook::value::{monitor, services};

/// Service fixes in a row that moved nothing else; then the course is looked at.
const MAX_SERVICE_FIXES: usize = 3;
/// Pauses of a run: a task that asks for a person again and again is not unblocked by asking.
const MAX_PAUSES: u32 = 20;
/// Attempts at the boundary of one epic.
const MAX_BOUNDARIES: u32 = 3;
/// Below this there is nothing that could not fit together.
const MIN_DONE_FOR_COHERENCE: u32 = 3;
/// A value from here on needs no further evaluation before the exit gate.
const GOOD_VALUE: (i128, i128) = (9, 10);

type Row = fn(&RunState) -> Option<NextStep>;

/// The rows in their order, with the names they have in the design.
const ROWS: [(&str, Row); 17] = [
    ("P0", interrupted_pause),
    ("P1", services_down),
    ("P2", stuck),
    ("P2b", advised),
    ("P2c", disputed),
    ("P3", generation),
    ("P4", failing),
    ("P5", person),
    ("P6", task),
    ("P7", pending_checks),
    ("P7b", blocked_tasks),
    ("P8", evaluation),
    ("P8b", coherence),
    ("P8c", whole),
    ("P9", way_out),
    ("given up", given_up),
    ("else", nothing_applies),
];

/// The row that applies, and what it says.
pub fn choose(run: &RunState) -> (&'static str, NextStep) {
    let found = ROWS.iter().find_map(|(name, row)| row(run).map(|verdict| (*name, verdict)));
    // The last row always applies.
    found.unwrap_or_else(|| ("else", correct(run, "nothing applies".to_owned())))
}

pub fn corrections_left(run: &RunState) -> bool {
    history::count(run, is_correction) < run.value_settings().max_course_corrections
}

/// Every way to a course correction goes through here, so that all of them together are bounded.
fn correct(run: &RunState, why: String) -> NextStep {
    if corrections_left(run) {
        return NextStep::Step(Action::CourseCorrect, why);
    }
    let most = run.value_settings().max_course_corrections;
    NextStep::GiveUp(format!("{why}, and all {most} course corrections are used (max_course_corrections)"))
}

/// Every way to the exit gate. A gate that nothing was done for is not tried again while something keeps it shut.
pub fn gate(run: &RunState, why: String) -> NextStep {
    let (attempts, most) = (run.value().exit_gate_attempts, run.value_settings().max_exit_gate_attempts);
    let last = history::last(run, |action| *action == Action::ExitGate);
    let moved = history::decisions_after(run, last).any(|record| history::moved(record.outcome));
    if let Some(verdict) = idle_gate(run, last) {
        return verdict;
    }
    match keeps_shut(run) {
        Some(shut) if last.is_some() && !moved => {
            NextStep::GiveUp(format!("the exit gate failed in attempt {attempts} of {most}, and {shut}"))
        }
        Some(_) | None => NextStep::Step(Action::ExitGate, format!("{why}; attempt {} of {most}", attempts + 1)),
    }
}

/// Nothing was done since a judge said what he misses, and nothing he named became work: once the course is corrected
/// for it, then the run ends. A gate whose judges broke off says nothing of the work, and is tried again.
fn idle_gate(run: &RunState, last: Option<u32>) -> Option<NextStep> {
    let last = last.filter(|_| !run.began_before_recovery() && !run.value().gate_unjudged)?;
    // One that was passed and not certified has to be shown again.
    let failed = |record: &&StepRecord| record.step == last && record.outcome != Outcome::Passed;
    run.value().log.iter().rev().find(failed)?;
    // What a person said is for the next agents, too.
    let worked = |record: &StepRecord| history::moved(record.outcome) || record.action == Action::InteractivePause;
    if keeps_shut(run).is_some() || history::decisions_after(run, Some(last)).any(worked) {
        return None;
    }
    let corrected = history::decisions_after(run, Some(last)).any(|record| is_correction(&record.action));
    let attempts = run.value().exit_gate_attempts;
    let why = format!("the exit gate failed in attempt {attempts}, and nothing was done since");
    Some(if corrected || super::nearly_spent(run) { NextStep::GiveUp(why) } else { correct(run, why) })
}

/// What no exit gate can be passed with.
fn keeps_shut(run: &RunState) -> Option<String> {
    let open = run.value().tasks.iter().find(|task| task.is_open());
    let down = services::down(run).map(|name| format!("service {name} is not healthy"));
    let shut = |one: &&Verification| {
        matches!(one.status, VerificationStatus::Failed | VerificationStatus::Blocked | VerificationStatus::Pending)
    };
    let check = run.value().verifications.values().find(shut);
    open.map(|task| format!("task {} is {}", task.id, task.status.name()))
        .or_else(|| check.map(|one| format!("check {} is {}", one.id, one.status.name())))
        .or(down)
}

// P0. A pause that a limit cut goes on. Once: after that the other rows have their say.
fn interrupted_pause(run: &RunState) -> Option<NextStep> {
    let mut latest = history::decisions(run).rev();
    let cut = |record: &StepRecord| record.action == Action::InteractivePause && record.outcome != Outcome::Neutral;
    let again = latest.next().is_some_and(cut) && !latest.next().is_some_and(cut);
    let task = waits_for_person(run).filter(|_| again)?;
    Some(NextStep::Step(Action::InteractivePause, format!("the pause for task {} was interrupted", task.id)))
}

// P1. Services that are known to be down. Neutral steps, so they are counted here: three in a row that moved nothing
// are looked at once by a course correction, then the other rows go on without the service.
fn services_down(run: &RunState) -> Option<NextStep> {
    let sick = run.value().services.iter().filter(|one| !one.healthy).map(|one| one.name.clone());
    let down: Vec<String> = sick.filter(|name| services::is_to_be_mended(run, name)).collect();
    if down.is_empty() || run.value().tasks_with(TaskStatus::Done).next().is_none() {
        return None;
    }
    let names = down.join(", ");
    let in_vain: Vec<_> = history::decisions(run).rev().take_while(|record| !history::moved(record.outcome)).collect();
    let fixes = in_vain.iter().filter(|record| matches!(record.action, Action::ServiceFix { .. })).count();
    if fixes < MAX_SERVICE_FIXES {
        let why = format!("not healthy: {names}; attempt {} of {MAX_SERVICE_FIXES} in a row", fixes + 1);
        return Some(NextStep::Step(Action::ServiceFix { services: down }, why));
    }
    let looked_at = in_vain.iter().any(|record| is_correction(&record.action));
    (!looked_at).then(|| correct(run, format!("{fixes} service fixes in a row did not help: {names}")))
}

// P2. Too many steps that moved nothing.
fn stuck(run: &RunState) -> Option<NextStep> {
    let (fruitless, most) = (history::fruitless_in_a_row(run), run.value_settings().max_no_progress);
    (fruitless >= most).then(|| correct(run, format!("{fruitless} steps in a row without progress")))
}

// P2b. The latest full value check advises it, and work was done between the latest correction and that check.
// Advice alone never ends a run: without corrections left it is only advice.
fn advised(run: &RunState) -> Option<NextStep> {
    let vrc = run.value().vrcs.iter().rev().find(|vrc| vrc.mode == VrcMode::Full && !vrc.carried)?;
    match vrc.recommendation {
        Recommendation::CourseCorrect | Recommendation::Descope => {}
        Recommendation::Continue | Recommendation::ShipReady => return None,
    }
    let corrected = history::last(run, is_correction);
    let worked = history::decisions_after(run, corrected)
        .any(|record| record.step <= vrc.step && record.action != Action::InteractivePause);
    (worked && corrections_left(run)).then(|| {
        let why = format!("the value check of step {} recommends {}", vrc.step, vrc.recommendation.name());
        NextStep::Step(Action::CourseCorrect, why)
    })
}

// P2c. A check is said to be wrong by whoever works against it: its author looks at it. Bounded: once for each check.
fn disputed(run: &RunState) -> Option<NextStep> {
    let disputed = run.value().disputed();
    let names = disputed.join(", ");
    (!disputed.is_empty()).then(|| NextStep::Step(Action::GenerateQc, format!("said to be wrong: {names}")))
}

/// Times checks were asked for in this epic, without those that were written anew because somebody said they are wrong.
fn generations(run: &RunState) -> u32 {
    let boundary = history::last_boundary(run).map(|record| record.step);
    let here = |step: u32| boundary.is_none_or(|boundary| step > boundary);
    let log = run.value().log.iter().filter(|record| record.action == Action::GenerateQc);
    let anew = run.value().regenerations.iter().filter(|step| here(**step)).count();
    let count = log.filter(|record| here(record.step)).count().saturating_sub(anew);
    u32::try_from(count).unwrap_or(u32::MAX)
}

// P3. No checks to prove anything with. Bounded by `max_qc_generations` in each epic; an attempt that brought none is repeated only
// after another task is done, or when nothing else is left to do.
fn generation(run: &RunState) -> Option<NextStep> {
    let settings = run.value_settings();
    let made = |action: &Action| *action == Action::GenerateQc;
    let attempts = generations(run);
    if attempts >= settings.max_qc_generations || run.value().tasks_with(TaskStatus::Done).next().is_none() {
        return None;
    }
    // Looking at a check that is said to be wrong gives an epic no checks of its own.
    let anew = |step: u32| !run.began_before_reviews() && run.value().regenerations.contains(&step);
    let last = run.value().log.iter().rev().find(|record| made(&record.action) && !anew(record.step));
    let last = last.map(|record| record.step);
    let nothing_waits = pick::waiting(run).next().is_none();
    let why = if run.value().verifications.is_empty() {
        let done = history::done_after(run, None);
        let news = last.is_none() || history::done_after(run, last) > 0;
        ((done >= settings.generate_verifications_after && news) || nothing_waits)
            .then(|| format!("{done} tasks are done and there are no checks"))
    } else {
        // A later epic gets checks of its own once its tasks are done.
        let boundary = history::last(run, |action| matches!(action, Action::EpicBoundary { .. }));
        let unchecked = boundary.is_some() && last < boundary && history::done_after(run, boundary) > 0;
        (unchecked && nothing_waits).then(|| "this epic has no checks of its own".to_owned())
    }?;
    let why = format!("{why}; attempt {} of {}", attempts + 1, settings.max_qc_generations);
    Some(NextStep::Step(Action::GenerateQc, why))
}

/// What can still be done about a failing check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remedy {
    Fix,
    Research,
    Correct,
    /// Everything bounded was tried.
    Nothing,
}

fn remedy(run: &RunState, check: &Verification) -> Remedy {
    if check.fix_attempts < monitor::fix_limit(run) {
        Remedy::Fix
    } else if !check.researched {
        Remedy::Research
    } else if !check.corrected && corrections_left(run) {
        Remedy::Correct
    } else {
        Remedy::Nothing
    }
}

fn failed(run: &RunState) -> impl Iterator<Item = &Verification> {
    run.value().verifications.values().filter(|check| check.status == VerificationStatus::Failed)
}

// P4. Failing checks: fix, then research, then one correction, each bounded for each check by itself.
fn failing(run: &RunState) -> Option<NextStep> {
    let with = |wanted| failed(run).filter(|check| remedy(run, check) == wanted).collect::<Vec<_>>();
    let ids = |checks: &[&Verification]| checks.iter().map(|check| check.id.clone()).collect::<Vec<_>>();
    let counts = format!("{} of {} checks fail", failed(run).count(), run.value().verifications.len());
    let fixable = with(Remedy::Fix);
    if let Some(attempts) = fixable.iter().map(|check| check.fix_attempts).max() {
        let why = format!("{counts}; fix attempt {} of {}", attempts + 1, monitor::fix_limit(run));
        return Some(NextStep::Step(Action::Fix { verifications: ids(&fixable) }, why));
    }
    let unknown = with(Remedy::Research);
    if !unknown.is_empty() {
        let why = format!("{counts}; fixing did not help, so the cause is looked up");
        return Some(NextStep::Step(Action::Research { verifications: ids(&unknown) }, why));
    }
    let hopeless = with(Remedy::Correct);
    (!hopeless.is_empty()).then(|| correct(run, format!("{counts}; fixes and research did not help")))
}

fn waits_for_person(run: &RunState) -> Option<&Task> {
    let few = history::count(run, |action| *action == Action::InteractivePause) < MAX_PAUSES;
    pick::in_scope(run).find(|task| task.needs_person()).filter(|_| few)
}

// P5. Something only a person can do.
fn person(run: &RunState) -> Option<NextStep> {
    let task = waits_for_person(run)?;
    Some(NextStep::Step(Action::InteractivePause, format!("task {} needs a person", task.id)))
}

// P6. The next task. Bounded by the retries of each task; tasks that wait for one another need another plan.
fn task(run: &RunState) -> Option<NextStep> {
    if let Some(task) = pick::next(run) {
        let most = run.value_settings().max_task_retries;
        let again = if task.retries > 0 { format!("; attempt {} of {most}", task.retries + 1) } else { String::new() };
        let why = format!("task {} ({}) is ready{again}", task.id, task.source.name());
        return Some(NextStep::Step(Action::Execute { task: task.id.clone() }, why));
    }
    let waiting = pick::waiting(run).count();
    (waiting > 0).then(|| correct(run, format!("{waiting} tasks wait and none of them is ready")))
}

// P7. Checks that were not run yet and can be: what they stand on has not failed.
fn pending_checks(run: &RunState) -> Option<NextStep> {
    let pending = run.value().verifications.values().filter(|check| check.status == VerificationStatus::Pending);
    let count = pending.filter(|check| can_run(run, check, &mut Vec::new())).count();
    (count > 0).then(|| NextStep::Step(Action::RunQc, format!("{count} checks were not run yet")))
}

/// Could this pending check run now? A required category with a failed check, or one that waits in a circle, says no.
fn can_run<'a>(run: &'a RunState, check: &'a Verification, through: &mut Vec<&'a str>) -> bool {
    if through.contains(&check.id.as_str()) {
        return false;
    }
    through.push(&check.id);
    let required = |one: &&Verification| one.id != check.id && check.requires.contains(&one.category);
    run.value().verifications.values().filter(required).all(|one| match one.status {
        VerificationStatus::Passed | VerificationStatus::Blocked => true,
        VerificationStatus::Failed => false,
        VerificationStatus::Pending => can_run(run, one, through),
    })
}

// P7b. A task that is blocked and waits for nobody keeps the exit gate shut: one correction after the latest work may
// find another way; if it does not, the end is partial.
fn blocked_tasks(run: &RunState) -> Option<NextStep> {
    let blocked = pick::in_scope(run).find(|task| task.status == TaskStatus::Blocked)?;
    let reason = blocked.blocked_reason.as_deref().unwrap_or("no reason is recorded");
    let reason: String = reason.chars().take(200).collect();
    let why = format!("task {} is blocked ({reason})", blocked.id);
    let worked = history::last(run, |action| matches!(action, Action::Execute { .. } | Action::InteractivePause));
    let corrected = history::last(run, is_correction);
    Some(if corrected.is_none() || corrected < worked { correct(run, why) } else { NextStep::GiveUp(why) })
}

// P8. A critical look at what there is, when enough was built since the last one, or when all checks pass and the value
// is not there all the same. Evaluations without a task done in between are bounded.
fn evaluation(run: &RunState) -> Option<NextStep> {
    let settings = run.value_settings();
    let is_evaluation = |action: &Action| *action == Action::CriticalEval;
    let done = history::done_after(run, history::last(run, is_evaluation));
    let last_done = run.value().tasks_with(TaskStatus::Done).filter_map(|task| task.done_in).max();
    let fruitless = history::decisions_after(run, last_done).filter(|record| is_evaluation(&record.action)).count();
    if u32::try_from(fruitless).unwrap_or(u32::MAX) >= settings.max_fruitless_evals {
        return None;
    }
    if found_nothing(run) {
        return None;
    }
    let why = if done > 0 && done >= settings.critical_eval_interval {
        format!("{done} tasks were done since the last evaluation")
    } else if all_pass(run) && !value_is_good(run) {
        "all checks pass, but the value is not there yet".to_owned()
    } else {
        return None;
    };
    Some(NextStep::Step(Action::CriticalEval, why))
}

/// Did the latest evaluation bring nothing, and did nothing move since? Looking again would see the same.
fn found_nothing(run: &RunState) -> bool {
    let Some(last) = run.value().log.iter().rev().find(|record| record.action == Action::CriticalEval) else {
        return false;
    };
    let moved = history::decisions_after(run, Some(last.step)).any(|record| history::moved(record.outcome))
        || history::done_after(run, Some(last.step)) > 0;
    last.outcome == Outcome::Neutral && !moved && !run.began_before_recovery()
}

/// By the latest value check, whatever earlier ones said.
fn value_is_good(run: &RunState) -> bool {
    let good = Fraction::new(GOOD_VALUE.0, GOOD_VALUE.1);
    run.value().latest_vrc().is_some_and(|vrc| good.is_some_and(|good| Fraction::from_exact(vrc.value_score) >= good))
}

/// Are there checks, and have all passed that were not given up?
fn all_pass(run: &RunState) -> bool {
    let mut passed = 0;
    for check in run.value().verifications.values() {
        match check.status {
            VerificationStatus::Passed => passed += 1,
            VerificationStatus::Blocked => {}
            VerificationStatus::Pending | VerificationStatus::Failed => return false,
        }
    }
    passed > 0
}

// P8b. Signs that the parts do not fit together. Bounded by the tasks done between two looks.
fn coherence(run: &RunState) -> Option<NextStep> {
    let why = monitor::coherence_due(run)?;
    Some(NextStep::Step(Action::CoherenceEval, why))
}

// P8c. What was built is looked at as a whole before its epic is closed or the exit gate is tried. Bounded: once in each
// epic, whatever signs led to that look.
fn whole(run: &RunState) -> Option<NextStep> {
    let looked = history::last(run, |action| *action == Action::CoherenceEval);
    let boundary = history::last_boundary(run).map(|record| record.step);
    let done = history::done_after(run, boundary);
    let is_due = run.value_settings().coherence && looked <= boundary && done >= MIN_DONE_FOR_COHERENCE;
    if run.began_before_reviews() || !is_due {
        return None;
    }
    let built = built(run)?;
    Some(NextStep::Step(Action::CoherenceEval, format!("{built}: a look at the whole of {done} tasks")))
}

// P9. Nothing waits and nothing fails: the next epic, or the exit gate.
fn way_out(run: &RunState) -> Option<NextStep> {
    let why = built(run)?;
    Some(boundary(run).unwrap_or_else(|| gate(run, why.to_owned())))
}

/// Is everything in scope done and proven, as far as it can be? In words.
fn built(run: &RunState) -> Option<&'static str> {
    let nothing_waits = pick::waiting(run).next().is_none() && pick::in_scope(run).next().is_some();
    let checks = &run.value().verifications;
    let only_blocked = !checks.is_empty() && checks.len() == run.value().count(VerificationStatus::Blocked);
    // Without checks only after everything was tried to get some (row P3 comes before).
    let unprovable = checks.is_empty() && run.value().tasks_with(TaskStatus::Done).next().is_some();
    if !nothing_waits || !(all_pass(run) || only_blocked || unprovable) {
        return None;
    }
    Some(match (unprovable, only_blocked) {
        (true, _) => "no task waits, and no checks could be made",
        (false, true) => "no task waits, and all checks were given up",
        (false, false) => "no task waits and all checks pass",
    })
}

/// The feedback between two epics.
fn boundary(run: &RunState) -> Option<NextStep> {
    let current = run.value().current_epic()?;
    let next = run.value().epics.iter().find(|epic| epic.epic > current.epic && epic.status == EpicStatus::Pending)?;
    let epic = current.epic;
    let here = |action: &Action| *action == Action::EpicBoundary { epic };
    let attempts = run.value().log.iter().filter(|record| here(&record.action)).count();
    if u32::try_from(attempts).unwrap_or(u32::MAX) >= MAX_BOUNDARIES {
        let why = format!("the boundary of epic {} was not closed in {MAX_BOUNDARIES} attempts", epic + 1);
        return Some(NextStep::GiveUp(why));
    }
    let why = format!("epic {} is done, epic {} follows", epic + 1, next.epic + 1);
    Some(NextStep::Step(Action::EpicBoundary { epic }, why))
}

// Checks that fail although everything bounded was tried, and those that wait for them.
fn given_up(run: &RunState) -> Option<NextStep> {
    let names: Vec<&str> = failed(run).map(|check| check.id.as_str()).collect();
    if names.is_empty() {
        return None;
    }
    Some(NextStep::GiveUp(format!(
        "these checks fail, and fixes, research and corrections did not help: {}",
        names.join(", ")
    )))
}

fn nothing_applies(run: &RunState) -> Option<NextStep> {
    Some(correct(run, "there is nothing to do, and nothing is proven".to_owned()))
}

#[cfg(test)]
pub(super) fn row_names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|(name, _)| *name)
}
