//! The value playbook's plan: the value and its history, the course, tasks, checks, refinement, gates.
//!
//! Role: say of each thing what it is, how far it is and why. Not its role: judging any of it. Invariant: text of
//! agents is made harmless here.

use crate::machine::event::Probe;
use crate::machine::run::RunState;
use crate::model::plan_row::{Row, RowKind, RowStatus, Since};
use crate::model::safe::Safe;
use crate::model::value::{Action, Gate, Outcome, Task, TaskStatus, Verification, VerificationStatus};
use crate::playbook::value::event::{EpicPut, EpicStatus, RoundClosed, ServiceHealth, Target};
use crate::playbook::value::monitor::{self, Level};
use crate::playbook::value::state::Round;

/// Everything this run works off: first what is open in the preparation, then the work, then what it is worth.
pub fn rows(run: &RunState) -> Vec<Row> {
    let value = run.value();
    let gates = Gate::ALL.into_iter().map(|gate| gate_item(run, gate));
    let epics = value.epics.iter().map(epic_item);
    let tasks = value.tasks.iter().map(|task| task_item(run, task));
    let checks = value.verifications.values().map(|one| verification_item(run, one));
    let services = value.services.iter().map(service_item);
    let rounds = [Target::Vision, Target::Prd].into_iter().flat_map(|target| {
        let rounds = value.refinement(target).rounds.iter();
        rounds.map(move |round| round_item(target, round))
    });
    // While the run prepares itself, the checklist is what an operator looks for.
    if is_preparing(run) {
        return gates.chain(rounds).chain(epics).chain(tasks).chain(services).collect();
    }
    let worth = value_item(run).into_iter().chain([course_item(run)]);
    worth.chain(epics).chain(tasks).chain(checks).chain(services).chain(rounds).chain(gates).collect()
}

/// One line that says how far it is.
pub fn title(run: &RunState) -> String {
    let value = run.value();
    if is_preparing(run) {
        return format!("Plan  {} of {} gates passed", value.gates.len(), Gate::ALL.len());
    }
    let done = value.tasks_with(TaskStatus::Done).count();
    // What was given up is not done, whoever gave it up.
    let descoped = match value.tasks_with(TaskStatus::Descoped).count() {
        0 => String::new(),
        count => format!(", {count} descoped"),
    };
    let score = value.latest_vrc().map_or_else(|| "not checked".to_owned(), |vrc| vrc.value_score.to_string());
    let course = match monitor::status(run).level {
        Level::Green => String::new(),
        level @ (Level::Yellow | Level::Red) => format!(", {}", level.name()),
    };
    format!(
        "Plan  {done} of {} tasks done{descoped}, {} of {} checks pass, value {score}{course}",
        value.tasks.len(),
        value.count(VerificationStatus::Passed),
        value.verifications.len(),
    )
}

fn is_preparing(run: &RunState) -> bool {
    run.value().gates.len() < Gate::ALL.len()
}

fn gate_item(run: &RunState, gate: Gate) -> Row {
    let action = Action::Gate { gate };
    let open = run.value().step.as_ref().is_some_and(|step| step.action == action);
    let last = run.value().log.iter().rev().find(|record| record.action == action);
    let status = match (run.value().gates.contains(&gate), open, last.map(|record| record.outcome)) {
        (true, _, _) => RowStatus::Met,
        (false, true, _) => RowStatus::Working,
        (false, false, Some(Outcome::Failed)) => RowStatus::NotMet,
        (false, false, _) => RowStatus::Waiting,
    };
    let mut item = Row::new(RowKind::Gate, gate.name(), gate.title(), status);
    item.why = Safe::line(last.map_or("", |record| record.detail.as_str()));
    item
}

fn epic_item(epic: &EpicPut) -> Row {
    let status = match epic.status {
        EpicStatus::Pending => RowStatus::Waiting,
        EpicStatus::InProgress => RowStatus::Working,
        EpicStatus::Completed => RowStatus::Met,
        EpicStatus::Skipped => RowStatus::Dropped,
    };
    let mut item = Row::new(RowKind::Epic, &(epic.epic + 1).to_string(), &epic.title, status);
    item.add("value", &epic.value_statement);
    item.add("brings", &epic.deliverables.join("; "));
    item.add("done if", &epic.completion_criteria.join("; "));
    if let Some((answer, words)) = &epic.feedback {
        item.add("you", &format!("{answer} {words}"));
    }
    item
}

fn task_item(run: &RunState, task: &Task) -> Row {
    let status = match task.status {
        TaskStatus::Done => RowStatus::Met,
        TaskStatus::Pending => RowStatus::Waiting,
        TaskStatus::InProgress => RowStatus::Working,
        TaskStatus::Blocked => RowStatus::Blocked,
        TaskStatus::Descoped => RowStatus::Dropped,
    };
    let mut item = Row::new(RowKind::Task, &task.id, &task.description, status);
    let failed = match task.retries {
        0 => None,
        1 => Some("1 failed attempt".to_owned()),
        count => Some(format!("{count} failed attempts")),
    };
    let notes = Some(task.notes.clone()).filter(|notes| !notes.is_empty());
    let why: Vec<String> = task.blocked_reason.clone().into_iter().chain(failed).chain(notes).collect();
    item.why = Safe::line(&why.join("; "));
    item.add("accept", &task.acceptance);
    item.add("value", &task.value);
    if let Some(check) = &task.check {
        item.add("check", &format!("$ {}", check.join(" ")));
    }
    item.add("after", &task.dependencies.join(", "));
    item.add("phase", task.phase.as_deref().unwrap_or_default());
    item.add("files", &task.files_expected.join(", "));
    if !task.source.is_planned() {
        item.add("from", task.source.name());
    }
    let phase = task.phase.as_ref().map(|phase| format!("phase {phase}"));
    let after = (!task.dependencies.is_empty()).then(|| format!("after {}", task.dependencies.join(", ")));
    item.aside = Safe::line(&phase.into_iter().chain(after).collect::<Vec<_>>().join(", "));
    item.since = task.done_in.and_then(|step| iteration_of(run, step)).map(Since::Iteration);
    item.running = is_running(run, &Probe::Task(task.id.clone()));
    item
}

fn verification_item(run: &RunState, one: &Verification) -> Row {
    let status = match one.status {
        VerificationStatus::Passed => RowStatus::Met,
        VerificationStatus::Failed => RowStatus::NotMet,
        VerificationStatus::Pending => RowStatus::Waiting,
        VerificationStatus::Blocked => RowStatus::Blocked,
    };
    // What it says is worth more in a list than where it is.
    let last = one.failures.last().filter(|_| one.status != VerificationStatus::Passed);
    let text = last.map_or_else(|| one.path.clone(), |failure| format!("{}: {}", failure.end, failure.excerpt));
    let mut item = Row::new(RowKind::Check, &one.id, &text, status);
    if last.is_some() {
        item.add("script", &one.path);
    }
    let runs = if one.runs == 1 { "1 run".to_owned() } else { format!("{} runs", one.runs) };
    item.add("tried", &format!("{runs}, {} of at most {} fixes", one.fix_attempts, monitor::fix_limit(run)));
    item.add("after", &one.requires.join(", "));
    if one.researched {
        item.add("help", "it was researched");
    }
    item.since = one.first_passed_in.and_then(|step| iteration_of(run, step)).map(Since::Iteration);
    item.since = item.since.filter(|_| status == RowStatus::Met);
    item.running = is_running(run, &Probe::Verification(one.id.clone()));
    item
}

fn service_item(service: &ServiceHealth) -> Row {
    let status = if service.healthy { RowStatus::Met } else { RowStatus::NotMet };
    Row::new(RowKind::Service, &service.name, &service.detail, status)
}

fn value_item(run: &RunState) -> Option<Row> {
    let vrc = run.value().latest_vrc()?;
    let status = if run.value().exit_gate_passed.is_some() { RowStatus::Met } else { RowStatus::NotMet };
    let (verified, total) = (vrc.deliverables_verified, vrc.deliverables_total);
    let text = format!("{verified} of {total} deliverables verified, {}", vrc.recommendation.name());
    let mut item = Row::new(RowKind::Value, &vrc.value_score.to_string(), &text, status);
    item.why = Safe::line(&vrc.summary);
    for gap in &vrc.gaps {
        item.add("gap", &format!("{}: {}", gap.severity.name(), gap.description));
    }
    item.trend = run.value().vrcs.iter().filter(|vrc| !vrc.carried).map(|vrc| vrc.value_score).collect();
    Some(item)
}

fn course_item(run: &RunState) -> Row {
    let found = monitor::status(run);
    let status = match found.level {
        Level::Green => RowStatus::Met,
        Level::Yellow => RowStatus::NotAccepted,
        Level::Red => RowStatus::NotMet,
    };
    let text = match found.triggers.iter().max_by_key(|trigger| trigger.level) {
        Some(worst) => worst.detail.clone(),
        None => "nothing stands out".to_owned(),
    };
    let mut item = Row::new(RowKind::Course, found.level.name(), &text, status);
    for trigger in &found.triggers {
        let name = trigger.pattern.name().replace('_', " ");
        item.add("sign", &format!("{}, {name}: {}", trigger.level.name(), trigger.detail));
    }
    if !run.value_settings().process_monitor {
        item.add("monitor", "is switched off: nothing follows from this");
    }
    item
}

fn round_item(target: Target, round: &Round) -> Row {
    let (status, closed) = match &round.closed {
        Some(closed) => how_closed(closed),
        None => (RowStatus::Working, "open"),
    };
    let reason = round.kept.validation.as_ref().map(|validation| validation.reason.as_str());
    let reason = reason.or_else(|| round.kept.critique.as_ref().map(|critique| critique.reason.as_str()));
    let id = format!("{} {}", target.name(), round.kept.round);
    let mut item = Row::new(RowKind::Round, &id, closed, status);
    item.why = Safe::line(reason.unwrap_or_default());
    for issue in &round.kept.issues {
        item.add("issue", &issue.text);
    }
    item
}

/// How a round ended. One that brought a new text did what it is for: the round after it judges that text.
fn how_closed(closed: &RoundClosed) -> (RowStatus, &str) {
    let text = match closed.how.as_str() {
        "revised" => "revised by a person",
        "amended" => "the amendment was approved",
        "auto_amend" => "amended by itself, as loop.yaml allows",
        "auto_descope" => "descoped by itself, as loop.yaml allows",
        "rejected" => "the amendment was rejected: it stays as it is",
        "auto_acknowledged" => "acknowledged beforehand in loop.yaml",
        other => other,
    };
    let status = match closed.how.as_str() {
        _ if closed.consensus => RowStatus::Met,
        "revised" | "amended" | "auto_amend" | "auto_descope" => RowStatus::Changed,
        _ => RowStatus::NotAccepted,
    };
    (status, text)
}

fn iteration_of(run: &RunState, step: u32) -> Option<u32> {
    run.value().log.iter().find(|record| record.step == step).and_then(|record| record.iteration)
}

fn is_running(run: &RunState, wanted: &Probe) -> bool {
    run.open_probes.iter().any(|(_, probe)| probe == wanted)
}
