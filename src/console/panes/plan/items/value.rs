//! The value playbook's plan: gates, tasks, verifications, the value and its history, refinement.

use crate::console::panes::plan::items::{Item, Since, Status};
use crate::machine::event::{Probe, Target};
use crate::machine::run::RunState;
use crate::machine::value::Round;
use crate::model::safe::Safe;
use crate::model::value::{Action, Gate, Outcome, Task, TaskStatus, Verification, VerificationStatus};

/// Everything this run works off: first what is open in the preparation, then the work, then what it is worth.
pub(super) fn items(run: &RunState) -> Vec<Item> {
    let gates = Gate::ALL.into_iter().map(|gate| gate_item(run, gate));
    let tasks = run.value.tasks.iter().map(|task| task_item(run, task));
    let checks = run.value.verifications.values().map(|one| verification_item(run, one));
    let rounds = [Target::Vision, Target::Prd].into_iter().flat_map(|target| {
        let rounds = run.value.refinement(target).rounds.iter();
        rounds.map(move |round| round_item(target, round))
    });
    // While the run prepares itself, the checklist is what an operator looks for.
    let preparing = run.value.gates.len() < Gate::ALL.len();
    let worth = value_item(run).into_iter();
    if preparing {
        gates.chain(rounds).chain(tasks).collect()
    } else {
        worth.chain(tasks).chain(checks).chain(rounds).chain(gates).collect()
    }
}

/// One line that says how far it is.
pub(super) fn title(run: &RunState) -> String {
    let value = &run.value;
    if value.gates.len() < Gate::ALL.len() {
        return format!("Plan  {} of {} gates passed", value.gates.len(), Gate::ALL.len());
    }
    let done = value.tasks.iter().filter(|task| task.status.is_settled()).count();
    let score = value.latest_vrc().map_or_else(|| "not checked".to_owned(), |vrc| vrc.value_score.to_string());
    format!(
        "Plan  {done} of {} tasks done, {} of {} checks pass, value {score}",
        value.tasks.len(),
        value.count(VerificationStatus::Passed),
        value.verifications.len(),
    )
}

fn plain(kind: &'static str, id: &str, text: &str, status: Status) -> Item {
    Item {
        kind,
        id: Safe::line(id),
        text: Safe::line(text),
        status,
        since: None,
        proof: None,
        why: Safe::line(""),
        how: Safe::line(""),
        guards: Safe::line(""),
        running: false,
        story: Vec::new(),
    }
}

fn gate_item(run: &RunState, gate: Gate) -> Item {
    let action = Action::Gate { gate };
    let open = run.value.step.as_ref().is_some_and(|step| step.action == action);
    let last = run.value.log.iter().rev().find(|record| record.action == action);
    let status = match (run.value.gates.contains(&gate), open, last.map(|record| record.outcome)) {
        (true, _, _) => Status::Met,
        (false, true, _) => Status::Working,
        (false, false, Some(Outcome::Failed)) => Status::NotMet,
        (false, false, _) => Status::Waiting,
    };
    let mut item = plain("gate", gate.name(), gate.title(), status);
    item.why = Safe::line(last.map_or("", |record| record.detail.as_str()));
    item
}

fn task_item(run: &RunState, task: &Task) -> Item {
    let status = match task.status {
        TaskStatus::Done => Status::Met,
        TaskStatus::Pending => Status::Waiting,
        TaskStatus::InProgress => Status::Working,
        TaskStatus::Blocked => Status::Blocked,
        TaskStatus::Descoped => Status::Dropped,
    };
    let mut item = plain("task", &task.id, &task.description, status);
    let mut why = vec![task.acceptance.clone()];
    why.extend(task.blocked_reason.clone());
    if task.retries > 0 {
        why.push(format!("{} failed attempt(s)", task.retries));
    }
    if !task.notes.is_empty() {
        why.push(task.notes.clone());
    }
    item.why = Safe::line(&why.join("; "));
    let mut how = Vec::new();
    if let Some(check) = &task.check {
        how.push(format!("$ {}", check.join(" ")));
    }
    if !task.dependencies.is_empty() {
        how.push(format!("after {}", task.dependencies.join(", ")));
    }
    if let Some(phase) = &task.phase {
        how.push(format!("phase {phase}"));
    }
    if !task.source.is_planned() {
        how.push(format!("from {}", task.source.name()));
    }
    item.how = Safe::line(&how.join("; "));
    item.guards = Safe::line(&task.files_expected.join(", "));
    item.since = task.done_in.and_then(|step| iteration_of(run, step)).map(Since::Iteration);
    item.running = is_running(run, &Probe::Task(task.id.clone()));
    item
}

fn verification_item(run: &RunState, one: &Verification) -> Item {
    let status = match one.status {
        VerificationStatus::Passed => Status::Met,
        VerificationStatus::Failed => Status::NotMet,
        VerificationStatus::Pending => Status::Waiting,
        VerificationStatus::Blocked => Status::Blocked,
    };
    let mut item = plain("check", &one.id, &one.path, status);
    let last = one.failures.last().filter(|_| one.status != VerificationStatus::Passed);
    let tried = format!("{} run(s), {} fix attempt(s)", one.runs, one.fix_attempts);
    item.why = Safe::line(
        &last.map_or_else(|| tried.clone(), |failure| format!("{}: {} ({tried})", failure.end, failure.excerpt)),
    );
    let requires = if one.requires.is_empty() { String::new() } else { format!(" after {}", one.requires.join(", ")) };
    item.how = Safe::line(&format!("a script of the category {}{requires}", one.category));
    item.since = one.first_passed_in.and_then(|step| iteration_of(run, step)).map(Since::Iteration);
    item.running = is_running(run, &Probe::Verification(one.id.clone()));
    item
}

fn value_item(run: &RunState) -> Option<Item> {
    let vrc = run.value.latest_vrc()?;
    let status = if run.value.exit_gate_passed.is_some() { Status::Met } else { Status::NotMet };
    let text = format!(
        "{} of {} deliverables verified, {}",
        vrc.deliverables_verified,
        vrc.deliverables_total,
        vrc.recommendation.name()
    );
    let mut item = plain("value", &format!("value {}", vrc.value_score), &text, status);
    let gaps = vrc.gaps.iter().map(|gap| format!("{}: {}", gap.severity.name(), gap.description));
    let words: Vec<String> = std::iter::once(vrc.summary.clone()).chain(gaps).collect();
    item.why = Safe::line(&words.join("; "));
    let scores: Vec<String> = run.value.vrcs.iter().map(|vrc| vrc.value_score.to_string()).collect();
    item.how = Safe::line(&format!("so far {}", scores.join(" → ")));
    Some(item)
}

fn round_item(target: Target, round: &Round) -> Item {
    let what = match target {
        Target::Vision => "vision",
        Target::Prd => "prd",
    };
    let status = match &round.closed {
        Some(closed) if closed.consensus => Status::Met,
        Some(_) => Status::NotMet,
        None => Status::Working,
    };
    let closed = round.closed.as_ref().map_or("open", |closed| closed.how.as_str());
    let text = format!("round {}: {closed}", round.kept.round);
    let mut item = plain("round", what, &text, status);
    let issues: Vec<String> = round.kept.issues.iter().map(|issue| issue.text.clone()).collect();
    let reason = round.kept.validation.as_ref().map(|validation| validation.reason.clone());
    let reason = reason.or_else(|| round.kept.critique.as_ref().map(|critique| critique.reason.clone()));
    item.why = Safe::line(&reason.into_iter().chain(issues).collect::<Vec<_>>().join("; "));
    item
}

fn iteration_of(run: &RunState, step: u32) -> Option<u32> {
    run.value.log.iter().find(|record| record.step == step).and_then(|record| record.iteration)
}

fn is_running(run: &RunState, wanted: &Probe) -> bool {
    run.open_probes.iter().any(|(_, probe)| probe == wanted)
}
