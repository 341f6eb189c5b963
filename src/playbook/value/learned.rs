//! What an iteration of the value playbook leaves in AGENTS.md: its steps, what its checks showed, what is open.
//!
//! Role: facts of the engine as claims. Not its role: resolving what agents claim; none of it enters here.

use crate::machine::document::{artifacts_link, step_output_path};
use crate::machine::event::{Phase, Probe, ProbeResult};
use crate::machine::iteration::Iteration;
use crate::machine::run::RunState;
use crate::model::lane::Lane;
use crate::model::learnings::{Claim, Link};
use crate::model::value::{Action, Gap, Outcome, Task, TaskSource, TaskStatus, VerificationStatus};

use crate::machine::playbook::Learned;

use super::state::StepRecord;

/// Open questions that are handed on.
const MAX_QUESTIONS: usize = 10;

/// What an iteration taught.
pub fn learned(run: &RunState, iteration: &Iteration) -> Learned {
    Learned {
        tried: Some(tried(run, iteration)),
        succeeded: succeeded(run, iteration),
        failed: failed(run, iteration),
        open_questions: open_questions(run),
        part_done: part_done(run, iteration),
    }
}

/// The finished steps of an iteration.
fn steps<'a>(run: &'a RunState, iteration: &'a Iteration) -> impl Iterator<Item = &'a StepRecord> {
    run.value().log.iter().filter(|record| record.iteration == Some(iteration.number()))
}

/// One line for each step that the decision engine chose.
fn tried(run: &RunState, iteration: &Iteration) -> Vec<String> {
    let decisions = steps(run, iteration).filter(|record| record.action.is_decision());
    decisions
        .map(|record| format!("step {}: {}, {} ({})", record.step, record.action, record.outcome.name(), record.detail))
        .collect()
}

/// The scripts and task checks that ran in the steps of an iteration, in order.
fn checks(iteration: &Iteration) -> impl Iterator<Item = (u32, &Probe, &ProbeResult)> {
    iteration.probes.iter().filter_map(|((phase, probe), result)| match phase {
        Phase::Step(step) => Some((*step, probe, result)),
        _ => None,
    })
}

fn claim(iteration: &Iteration, (step, probe, result): (u32, &Probe, &ProbeResult), text: String) -> Claim {
    let path = step_output_path(iteration.number(), step, probe);
    Claim { lane: Lane::A, text, link: Some(Link { path, sha256: result.output }), demoted_from: None }
}

/// What passed for the first time, and what the plan gained.
fn succeeded(run: &RunState, iteration: &Iteration) -> Vec<Claim> {
    let mut claims: Vec<Claim> = checks(iteration)
        .filter(|(step, probe, result)| result.end.passed() && is_new(run, *step, probe))
        .map(|found| claim(iteration, found, format!("{} passes", found.1.name())))
        .collect();
    let done = steps(run, iteration).map(|record| record.step).collect::<Vec<_>>();
    let tasks = run.value().tasks.iter().filter(|task| task.done_in.is_some_and(|step| done.contains(&step)));
    claims.extend(tasks.map(|task| Claim {
        lane: Lane::B,
        text: format!("task {} is done: {}", task.id, task.description),
        link: shown_by_its_check(run, iteration, &task.id),
        demoted_from: None,
    }));
    claims
}

/// The output of the task's own check in this iteration, if it passed. Older runs linked none.
fn shown_by_its_check(run: &RunState, iteration: &Iteration, task: &str) -> Option<Link> {
    let is_its = |probe: &Probe| matches!(probe, Probe::Task(id) if id == task);
    let passed = checks(iteration).filter(|(_, probe, result)| is_its(probe) && result.end.passed()).last();
    let (step, probe, result) = passed.filter(|_| !run.began_before_replays())?;
    Some(Link { path: step_output_path(iteration.number(), step, probe), sha256: result.output })
}

/// Did this check pass in this step for the first time?
fn is_new(run: &RunState, step: u32, probe: &Probe) -> bool {
    match probe {
        Probe::Verification(id) => {
            run.value().verifications.get(id).is_some_and(|one| one.first_passed_in == Some(step))
        }
        Probe::Task(id) => run.value().task(id).is_some_and(|task| task.done_in == Some(step)),
        Probe::Criterion(_)
        | Probe::Item(_)
        | Probe::Detour(_)
        | Probe::Residual
        | Probe::Metric(_)
        | Probe::SubGoal
        | Probe::Security
        | Probe::SecurityVersion
        | Probe::ApiSurface => false,
    }
}

/// What the last run of each check left failing, and the steps that came to nothing.
fn failed(run: &RunState, iteration: &Iteration) -> Vec<Claim> {
    let mut last: std::collections::BTreeMap<&Probe, (u32, &ProbeResult)> = std::collections::BTreeMap::new();
    for (step, probe, result) in checks(iteration) {
        let entry = last.entry(probe).or_insert((step, result));
        if step >= entry.0 {
            *entry = (step, result);
        }
    }
    let failing = last.into_iter().filter(|(_, (_, result))| !result.end.passed());
    let mut claims: Vec<Claim> = failing
        .map(|(probe, (step, result))| {
            let said = result.last_line.as_deref().unwrap_or("no output");
            claim(iteration, (step, probe, result), format!("{}: {}, {said}", probe.name(), result.end.describe()))
        })
        .collect();
    let nothing = steps(run, iteration).filter(|record| record.outcome == Outcome::Failed);
    claims.extend(nothing.map(|record| Claim {
        lane: Lane::B,
        text: format!("{} failed: {}", record.action, record.detail),
        // The engine saw it itself.
        link: (!run.began_before_replays()).then(|| artifacts_link(iteration)),
        demoted_from: None,
    }));
    claims
}

/// The gaps of the latest value check, then what waits in the plan.
fn open_questions(run: &RunState) -> Vec<String> {
    let value = run.value();
    let gaps = value.latest_vrc().into_iter().flat_map(|vrc| &vrc.gaps);
    let gaps =
        gaps.map(|gap| format!("What closes the gap `{}` ({})? {}", gap.id, gap.severity.name(), gap.description));
    let blocked = value.tasks_with(TaskStatus::Blocked);
    let blocked = blocked.map(|task| {
        format!("What unblocks task {}? ({})", task.id, task.blocked_reason.as_deref().unwrap_or("no reason is given"))
    });
    let given_up = value.verifications.values().filter(|one| one.status == VerificationStatus::Blocked);
    let given_up = given_up.map(|one| format!("Why does `{}` still fail?", one.id));
    gaps.chain(blocked).chain(given_up).take(MAX_QUESTIONS).collect()
}

/// Is a part of the goal done that was not done before: a check that turned true, a task, a correction that changed the
/// plan, a gap that is closed, an obstacle that is gone? Recovery is work, and comes before drift.
fn part_done(run: &RunState, iteration: &Iteration) -> bool {
    let by_check = checks(iteration).any(|(step, probe, result)| result.end.passed() && is_new(run, step, probe));
    if by_check || run.began_before_replays() {
        return by_check;
    }
    let here: Vec<&StepRecord> = steps(run, iteration).collect();
    let in_here = |step: u32| here.iter().any(|record| record.step == step);
    let task_done = run.value().tasks.iter().any(|task| task.done_in.is_some_and(in_here));
    let corrected =
        here.iter().any(|record| record.action == Action::CourseCorrect && record.outcome == Outcome::Progress);
    task_done || corrected || gap_closed(run, iteration) || recovered(run, &here)
}

/// Did a step remove what stood in the way: more checks pass than before it, a person did what tasks waited for, a
/// service is up again, or a judge's finding became work? Each is measured or recorded, and bounded by the plan's caps.
fn recovered(run: &RunState, here: &[&StepRecord]) -> bool {
    if run.began_before_recovery() {
        return false;
    }
    let value = run.value();
    let greener = |record: &&StepRecord| {
        matches!(record.action, Action::Fix { .. } | Action::RunQc) && record.outcome == Outcome::Progress
    };
    let cleared = |record: &&StepRecord| value.cleared_in.contains(&record.step);
    let found_work = |record: &&StepRecord| {
        let judged = |task: &Task| task.created_in == record.step && is_finding(task.source);
        value.tasks.iter().any(judged)
    };
    here.iter().any(|record| greener(record) || cleared(record) || found_work(record))
}

/// Does a task of this kind stand for something that a judge found missing?
const fn is_finding(source: TaskSource) -> bool {
    match source {
        TaskSource::ExitGate | TaskSource::CriticalEval | TaskSource::Vrc | TaskSource::Coherence => true,
        TaskSource::CourseCorrection
        | TaskSource::Plan
        | TaskSource::Gate
        | TaskSource::PlanHealth
        | TaskSource::Qc => false,
    }
}

/// Does the latest value check miss a gap that the one before the iteration named? Only numbers that an evaluator
/// reported count.
fn gap_closed(run: &RunState, iteration: &Iteration) -> bool {
    let earlier = iteration.number().checked_sub(1);
    let (Some(before), Some(now)) =
        (run.value().vrc_at_end_of(earlier), run.value().vrc_at_end_of(Some(iteration.number())))
    else {
        return false;
    };
    let open = |gap: &Gap| now.gaps.iter().any(|other| other.id == gap.id);
    now.step != before.step
        && !now.carried
        && now.value_score >= before.value_score
        && now.gaps.len() < before.gaps.len()
        && before.gaps.iter().any(|gap| !open(gap))
}
