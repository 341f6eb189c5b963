//! GENERATE_QC and RUN_QC: scripts of the QC role, run by the engine. And what one run of a script comes to, for
//! every action that runs them.
//!
//! Role: order the categories, keep results, mark a green place. Not its role: running (`engine`), mending (`fix`).
//!
//! Invariants: only pending scripts run here, and each is no longer pending after its result is kept, so RUN_QC ends
//! after at most as many rounds as there are scripts; only a script that ran can pass.

use std::collections::BTreeSet;

use crate::machine::event::{Event, GitOperation, Probe, ProbeEnd, ProbeResult};
use crate::machine::run::RunState;
use crate::machine::todo::{Effect, Todo};
use crate::model::purpose::Purpose;
use crate::model::signature::Signature;
use crate::model::value::tools::Structured;
use crate::model::value::verification::{MAX_EXCERPT, MAX_FAILURES};
use crate::model::value::{Dispute, Failure, Outcome, Settled, Task, TaskStatus, Verification, VerificationStatus};
use crate::playbook::value::event::{TaskPut, ValueEvent, VerificationPut};
use crate::playbook::value::state::OpenStep;

use crate::playbook::value::finished;
use crate::playbook::value::services;

/// Names in a line; the others are counted.
const MAX_NAMED: usize = 5;

// GENERATE_QC

pub fn next_generate(run: &RunState, step: &OpenStep) -> Option<Todo> {
    if step.calls_for(Purpose::GenerateVerifications) == 0 {
        if let Some(todo) = services::once(run, step) {
            return Some(todo);
        }
        // What is said to be wrong is looked at by itself.
        let disputed = run.value().disputed();
        let subject = (!disputed.is_empty()).then(|| disputed.join(","));
        return Some(Todo::StartAgent { purpose: Purpose::GenerateVerifications, paraphrase: None, subject });
    }
    // Also after a call that failed: whatever it wrote is there.
    (!step.scripts_found).then_some(Todo::Effect(Effect::FindVerifications))
}

pub fn decide_generate(run: &RunState, step: &OpenStep) -> Vec<Event> {
    let call = step.last_call(Purpose::GenerateVerifications);
    if let Some(subject) = call.and_then(|call| call.subject.as_deref()) {
        return settle(run, step, subject);
    }
    let total = run.value().verifications.len();
    let pending = run.value().count(VerificationStatus::Pending);
    let (outcome, detail) = match (total, pending) {
        (0, _) => (Outcome::NoProgress, "no script was written".to_owned()),
        (_, 0) => (Outcome::NoProgress, format!("{total} script(s), none of them new")),
        _ => (Outcome::Progress, format!("{total} script(s), {pending} to run")),
    };
    vec![finished(step, outcome, detail)]
}

/// The author has looked at what was said to be wrong: it is written anew, or it stands. Either is the last word.
fn settle(run: &RunState, step: &OpenStep, subject: &str) -> Vec<Event> {
    let ids: Vec<&str> = subject.split(',').collect();
    let asked = |dispute: &&Dispute| dispute.is_open();
    let (mut events, mut anew, mut stand) = (Vec::new(), Vec::new(), Vec::new());
    for one in run.value().verifications.values().filter(|one| ids.contains(&one.id.as_str())) {
        let Some(dispute) = one.dispute.as_ref().filter(asked) else { continue };
        let is_anew = one.status == VerificationStatus::Pending;
        let (settled, why) = settled(is_anew);
        if is_anew {
            anew.push(one.id.as_str())
        } else {
            stand.push(one.id.as_str())
        }
        let dispute = Some(Dispute { settled: Some(settled), ..dispute.clone() });
        let verification = Box::new(Verification { dispute, ..one.clone() });
        events.push(VerificationPut { verification, why: why.to_owned() }.into());
    }
    for task in run.value().tasks.iter().filter(|task| ids.contains(&task.id.as_str())) {
        let Some(dispute) = task.dispute.as_ref().filter(asked) else { continue };
        let is_anew = step.reports.iter().any(
            |(_, report)| matches!(report, Structured::ManageTask(wish) if wish.task_id == task.id && wish.check.is_some()),
        );
        let (settled, why) = settled(is_anew);
        if is_anew {
            anew.push(task.id.as_str())
        } else {
            stand.push(task.id.as_str())
        }
        let dispute = Some(Dispute { settled: Some(settled), ..dispute.clone() });
        events.push(TaskPut { task: Box::new(Task { dispute, ..task.clone() }), why: why.to_owned() }.into());
    }
    let outcome = if anew.is_empty() { Outcome::NoProgress } else { Outcome::Progress };
    let words = |what: &str, names: &[&str]| match names {
        [] => String::new(),
        names => format!("; {what}: {}", named(names)),
    };
    let detail = format!("checks said to be wrong{}{}", words("written anew", &anew), words("as they were", &stand));
    events.push(finished(step, outcome, detail));
    events
}

const fn settled(anew: bool) -> (Settled, &'static str) {
    if anew {
        (Settled::WrittenAnew, "its author wrote the check anew")
    } else {
        (Settled::Stands, "its author looked again, and the check stands")
    }
}

/// What the agent of this step says against a check.
pub fn said_wrong(step: &OpenStep, check: &str) -> Option<Dispute> {
    let said = step.reports.iter().rev().find_map(|(_, report)| match report {
        Structured::ReportWrongCheck(wrong) if wrong.check == check => Some(wrong.reason.as_str()),
        _ => None,
    })?;
    Some(Dispute { step: step.number, reason: clipped(said, MAX_EXCERPT), settled: None })
}

/// Scripts that the agent of this step says are wrong; what `events` makes of them stays.
pub fn disputes(run: &RunState, step: &OpenStep, events: &mut Vec<Event>) {
    for one in run.value().verifications.values() {
        let Some(dispute) = said_wrong(step, &one.id).filter(|_| one.dispute.is_none()) else { continue };
        let at = events.iter().position(|event| put_of(event).is_some_and(|put| put.verification.id == one.id));
        let put = at.and_then(|at| put_of(&events[at])).map(|put| (*put.verification).clone());
        let verification = Verification { dispute: Some(dispute), ..put.unwrap_or_else(|| one.clone()) };
        let why = "whoever works against it says that it is wrong".to_owned();
        let disputed: Event = VerificationPut { verification: Box::new(verification), why }.into();
        match at {
            Some(at) => events[at] = disputed,
            None => events.push(disputed),
        }
    }
}

fn put_of(event: &Event) -> Option<&VerificationPut> {
    match event.work() {
        Some(ValueEvent::VerificationPut(put)) => Some(put),
        _ => None,
    }
}

// RUN_QC

pub fn next_run(run: &RunState, step: &OpenStep) -> Option<Todo> {
    if !unkept(run, step).is_empty() || !hopeless(run).is_empty() {
        return None;
    }
    if any_failed(step) {
        return None;
    }
    // What the scripts stand on is looked at first: a service that is down is mended before anything is mended for it.
    if let Some(todo) = services_once(run, step) {
        return Some(todo);
    }
    if let Some(category) = ready(run) {
        let scripts = members(run, category).filter(|one| one.status == VerificationStatus::Pending);
        return missing(step, scripts.map(|one| Probe::Verification(one.id.clone())).collect());
    }
    if step.probes.is_empty() || !all_green(run) {
        return None;
    }
    let checkpoint = GitOperation::Checkpoint { label: format!("qc-{}", step.number) };
    git_once(run, step, checkpoint).map(Effect::Git).map(Todo::Effect)
}

pub fn decide_run(run: &RunState, step: &OpenStep) -> Vec<Event> {
    // Kept before a checkpoint is taken, which remembers what passes.
    let unkept = unkept(run, step);
    if !unkept.is_empty() {
        return unkept.into_iter().flat_map(|one| verification_put(step, one, "it ran".to_owned())).collect();
    }
    let hopeless = hopeless(run);
    if !hopeless.is_empty() {
        return hopeless.into_iter().map(|(one, why)| block(one, why)).collect();
    }
    let passed = run.value().count(VerificationStatus::Passed);
    let failed: Vec<_> = failed_in(step).collect();
    let outcome = if passed > step.began.passed { Outcome::Progress } else { Outcome::NoProgress };
    let waiting = match run.value().count(VerificationStatus::Pending) {
        0 => String::new(),
        waiting => format!(", {waiting} still to run"),
    };
    let failing = if failed.is_empty() { String::new() } else { format!(", failing: {}", named(&failed)) };
    vec![finished(step, outcome, format!("{passed} of {} pass{failing}{waiting}", run.value().verifications.len()))]
}

/// Scripts that ran in this step and are still pending in the record.
fn unkept<'a>(run: &'a RunState, step: &OpenStep) -> Vec<&'a Verification> {
    let ran = |one: &&Verification| step.probes.contains_key(&Probe::Verification(one.id.clone()));
    pending(run).filter(ran).collect()
}

fn pending(run: &RunState) -> impl Iterator<Item = &Verification> {
    run.value().verifications.values().filter(|one| one.status == VerificationStatus::Pending)
}

fn members<'a>(run: &'a RunState, category: &'a str) -> impl Iterator<Item = &'a Verification> {
    run.value().verifications.values().filter(move |one| one.category == category)
}

/// What the scripts of a category require, itself left out.
fn required<'a>(run: &'a RunState, category: &'a str) -> BTreeSet<&'a str> {
    let all = members(run, category).flat_map(|one| one.requires.iter().map(String::as_str));
    all.filter(|required| *required != category).collect()
}

/// Where a required category stands.
enum Standing {
    Passed,
    /// It may still pass.
    Open,
    /// It is not there, or all of it was given up.
    Never,
}

fn standing(run: &RunState, category: &str) -> Standing {
    let mut standing = Standing::Never;
    for one in members(run, category) {
        match one.status {
            VerificationStatus::Pending | VerificationStatus::Failed => return Standing::Open,
            VerificationStatus::Passed => standing = Standing::Passed,
            VerificationStatus::Blocked => {}
        }
    }
    standing
}

/// The first category with something to run whose required categories have passed.
fn ready(run: &RunState) -> Option<&str> {
    let passed = |category: &&str| matches!(standing(run, category), Standing::Passed);
    pending(run).map(|one| one.category.as_str()).find(|category| required(run, category).iter().all(passed))
}

/// Pending scripts that can never run, and why.
fn hopeless(run: &RunState) -> Vec<(&Verification, String)> {
    let never = |one: &Verification| {
        let category = one.category.as_str();
        let required = required(run, category).into_iter().find(|name| matches!(standing(run, name), Standing::Never));
        required.map(|name| format!("it requires `{name}`, which is not there or was given up"))
    };
    let lost: Vec<_> = pending(run).filter_map(|one| Some((one, never(one)?))).collect();
    // Nothing can run and nothing is left to mend: what is pending waits for itself.
    if lost.is_empty() && ready(run).is_none() && run.value().count(VerificationStatus::Failed) == 0 {
        return pending(run).map(|one| (one, "what it requires requires it".to_owned())).collect();
    }
    lost
}

/// Everything that was not given up passes, and something does.
fn all_green(run: &RunState) -> bool {
    let open = run.value().count(VerificationStatus::Pending) + run.value().count(VerificationStatus::Failed);
    open == 0 && run.value().count(VerificationStatus::Passed) > 0
}

fn block(verification: &Verification, why: String) -> Event {
    let mut verification = verification.clone();
    verification.status = VerificationStatus::Blocked;
    VerificationPut { verification: Box::new(verification), why }.into()
}

// What all actions that run scripts share.

/// These probes, as far as the step has no result of them; `None`: it has them all.
pub fn missing(step: &OpenStep, probes: Vec<Probe>) -> Option<Todo> {
    let missing: Vec<_> = probes.into_iter().filter(|probe| !step.probes.contains_key(probe)).collect();
    (!missing.is_empty()).then_some(Todo::Effect(Effect::RunProbes(missing)))
}

/// A look at what the agent of this step changed, once, so that the next one can be told; older runs took none.
pub fn look_once(run: &RunState, step: &OpenStep) -> Option<Todo> {
    (step.work.is_none() && !run.began_before_recovery()).then_some(Todo::Effect(Effect::LookAtWork))
}

/// The checks of tasks that are done: what one task built, another may break. Older runs never looked again.
pub fn done_checks(run: &RunState) -> Vec<Probe> {
    let done = run.value().tasks_with(TaskStatus::Done).filter(|task| task.check.is_some());
    done.filter(|_| !run.began_before_recovery()).map(|task| Probe::Task(task.id.clone())).collect()
}

/// Tasks that were done and whose checks fail in this step: pending again, and told after which task that is. Each
/// break counts as an attempt, so that two tasks that break each other end.
pub fn reopened(run: &RunState, step: &OpenStep, by: &str) -> Vec<(String, Event)> {
    let fails = |task: &&Task| {
        let result = step.probes.get(&Probe::Task(task.id.clone()));
        result.is_some_and(|result| !result.end.passed() && result.end != ProbeEnd::Cancelled)
    };
    let known = done_checks(run);
    let is_known = |task: &&Task| known.contains(&Probe::Task(task.id.clone()));
    let broken = run.value().tasks_with(TaskStatus::Done).filter(is_known).filter(fails);
    broken.map(|task| (task.id.clone(), reopen(run, step, task, by))).collect()
}

fn reopen(run: &RunState, step: &OpenStep, task: &Task, by: &str) -> Event {
    let said = step.probes.get(&Probe::Task(task.id.clone())).map_or_else(String::new, said);
    let retries = task.retries.saturating_add(1);
    let mut reopened = Task {
        status: TaskStatus::Pending,
        retries,
        done_in: None,
        notes: format!("Was done; its check fails since {by}: {said}"),
        broken_by: Some(by.to_owned()),
        ..task.clone()
    };
    let limit = run.value_settings().max_task_retries;
    if retries >= limit {
        reopened.status = TaskStatus::Blocked;
        reopened.blocked_reason = Some(format!("it was broken again after {retries} attempts, the last time by {by}"));
    }
    TaskPut { task: Box::new(reopened), why: format!("{by} broke its check") }.into()
}

/// A look at the services that the work needs, once in a step; `None`: there are none, or they were looked at.
pub fn services_once(run: &RunState, step: &OpenStep) -> Option<Todo> {
    let declared = services::declared(run).next().is_some();
    (declared && step.services.is_none()).then_some(Todo::Effect(Effect::CheckServices))
}

/// The operation, where there is a branch of the run's own and the step has not tried it.
pub fn git_once(run: &RunState, step: &OpenStep, operation: GitOperation) -> Option<GitOperation> {
    let branch = run.git.facts.as_ref().and_then(|facts| facts.branch.as_ref());
    let tried = step.git.iter().any(|done| done.operation == operation);
    branch.filter(|_| !tried).map(|_| operation)
}

/// Scripts that failed in this step, in order.
pub fn failed_in(step: &OpenStep) -> impl Iterator<Item = &str> {
    step.probes.iter().filter(|(_, result)| !result.end.passed()).filter_map(|(probe, _)| match probe {
        Probe::Verification(id) => Some(id.as_str()),
        _ => None,
    })
}

fn any_failed(step: &OpenStep) -> bool {
    failed_in(step).next().is_some()
}

pub fn fails_in(step: &OpenStep, id: &str) -> bool {
    failed_in(step).any(|failed| failed == id)
}

/// The record with what the script showed in this step; `None`: it did not run.
pub fn verification_put(step: &OpenStep, verification: &Verification, why: String) -> Option<Event> {
    let result = step.probes.get(&Probe::Verification(verification.id.clone()))?;
    let verification = Box::new(after_run(verification, result, step.number));
    Some(VerificationPut { verification, why }.into())
}

/// What a verification is after a run. A pass forgets what was tried to get there.
pub fn after_run(verification: &Verification, result: &ProbeResult, step: u32) -> Verification {
    let mut after = verification.clone();
    after.runs = after.runs.saturating_add(1);
    after.flaky = None;
    if result.end.passed() {
        after.broken_by = None;
        after.status = VerificationStatus::Passed;
        after.fix_attempts = 0;
        after.researched = false;
        after.corrected = false;
        after.first_passed_in = after.first_passed_in.or(Some(step));
        return after;
    }
    after.status = VerificationStatus::Failed;
    let excerpt = clipped(result.last_line.as_deref().unwrap_or_default(), MAX_EXCERPT);
    let signature = Signature::by_phrases(&format!("{} {excerpt}", result.end.describe()));
    let signature = signature.to_string();
    after.failures.push(Failure { step, end: result.end.describe(), excerpt, output: result.output, signature });
    let surplus = after.failures.len().saturating_sub(MAX_FAILURES);
    after.failures.drain(..surplus);
    after
}

/// Whoever mends it reads in its latest failure that it passes at times.
pub fn name_flaky(verification: &mut Verification) {
    if let (Some(flaky), Some(failure)) = (verification.flaky, verification.failures.last_mut()) {
        failure.end = format!("{}; {}", failure.end, flaky.words());
    }
}

/// How a command ended and what it said last.
pub fn said(result: &ProbeResult) -> String {
    match &result.last_line {
        Some(line) => format!("{}, {}", result.end.describe(), clipped(line, MAX_EXCERPT)),
        None => result.end.describe(),
    }
}

/// At most this many bytes, at a character's end.
pub fn clipped(text: &str, limit: usize) -> String {
    text[..text.floor_char_boundary(limit)].to_owned()
}

/// A few names, and how many more there are.
pub fn named(names: &[&str]) -> String {
    let shown = names[..names.len().min(MAX_NAMED)].join(", ");
    match names.len().saturating_sub(MAX_NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests;
