//! What an iteration of the value playbook leaves in AGENTS.md: its steps, what its checks showed, what is open.
//!
//! Role: facts of the engine as claims. Not its role: resolving what agents claim; none of it enters here.

use crate::machine::document::step_output_path;
use crate::machine::event::{Phase, Probe, ProbeResult};
use crate::machine::iteration::Iteration;
use crate::machine::run::RunState;
use crate::model::lane::Lane;
use crate::model::learnings::{Claim, Link};
use crate::model::value::{Outcome, TaskStatus, VerificationStatus};

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
        link: None,
        demoted_from: None,
    }));
    claims
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
        link: None,
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

/// Did a check that stands for a part of the goal turn true in this iteration?
fn part_done(run: &RunState, iteration: &Iteration) -> bool {
    checks(iteration).any(|(step, probe, result)| result.end.passed() && is_new(run, step, probe))
}
