//! The facts of each section, as JSON values: one for each line.
//!
//! Invariant: only what the folded run holds, in an order that follows from it.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::machine::run::RunState;
use crate::model::decision::{Answer, Request, Severity};
use crate::model::ids::Role;
use crate::model::purpose::{Purpose, Tool};
use crate::model::value::tools::{ResearchReport, Structured};
use crate::model::value::verification::MAX_EXCERPT;
use crate::model::value::{Action, Task, Verification, VerificationStatus};
use crate::playbook::value::event::EpicPut;
use crate::playbook::value::state::{OpenStep, StepRecord, ValueState};

use crate::playbook::value::{monitor, services};

use super::section::Section;
use super::{Texts, attempts};

/// How many of a history are shown: value checks, log lines, answers, briefs, attempts of one verification, ...
const VALUE_CHECKS: usize = 5;
const LOG_LINES: usize = 10;
const ANSWERS: usize = 20;
const BRIEFS: usize = 3;
const ATTEMPTS: usize = 3;
/// Of a finished task's notes this much stands in the plan.
const NOTES: usize = 300;
const STRATEGIES: usize = 5;
const CHECKPOINTS: usize = 10;

/// What a section has to say; nothing where there is nothing.
pub fn lines(
    run: &RunState,
    section: Section,
    purpose: Purpose,
    subject: Option<&str>,
    texts: &dyn Texts,
) -> Vec<Value> {
    let value = run.value();
    let step = value.step.as_ref();
    match section {
        Section::Vision | Section::Prd => Vec::new(),
        Section::Context => value.context.iter().map(as_json).chain(kill_criteria(value, purpose)).collect(),
        Section::Answers => answers(run),
        Section::Passes => step.map_or_else(Vec::new, |step| passes(step, purpose)),
        Section::Issues => issues(value, subject),
        Section::Critique => critique(value),
        Section::Epics => value.epics.iter().map(epic).collect(),
        Section::Plan => plan(&value.tasks, hears_builders(purpose)),
        Section::Limits => vec![limits(run)],
        Section::Review => review(&value.tasks),
        Section::Task => in_question(value, subject).map(whole_task).collect(),
        Section::LastAttempt => {
            in_question(value, subject).filter_map(|task| attempts::of_task(value, task, texts)).collect()
        }
        Section::Disputed => attempts::disputed(value, subject, texts),
        Section::NotFound => step.and_then(|step| step.preflight.as_ref()).map(as_json).into_iter().collect(),
        Section::Services => services(run),
        Section::Verifications => value.verifications.values().map(verification).collect(),
        Section::Causes => step.map_or_else(Vec::new, |step| causes(step, subject)),
        Section::Failures => failing(value, subject).map(|one| failure(value, one, texts)).collect(),
        Section::Research => research(value, subject),
        Section::Tried => attempts::tried(value, subject, texts),
        Section::ValueHistory => value_history(value),
        Section::Progress => last(&value.log, LOG_LINES).iter().map(log_line).collect(),
        Section::Monitor => vec![how_it_goes(run)],
        Section::Strategy => strategies(value),
        Section::Checkpoints => checkpoints(value),
    }
}

fn as_json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

pub(super) fn last<T>(list: &[T], count: usize) -> &[T] {
    &list[list.len().saturating_sub(count)..]
}

/// The ids of a subject.
pub(super) fn ids(subject: &str) -> BTreeSet<&str> {
    subject.split(',').map(str::trim).filter(|id| !id.is_empty()).collect()
}

/// An object of those entries that say something.
pub(super) fn object(entries: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    let says = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => true,
    };
    let said = entries.into_iter().filter(|(_, value)| says(value));
    Value::Object(said.map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
}

/// What people were asked and said. Answers that are no text (an approval, "done") change no requirement by themselves;
/// a note given with one may.
fn answers(run: &RunState) -> Vec<Value> {
    let said = run.operator.decisions.iter().filter_map(|decision| {
        let note = decision.answer.as_ref().and_then(|answer| answer.note.as_deref());
        let note = note.filter(|note| !note.trim().is_empty());
        let is_asked = matches!(decision.request, Request::Question { .. } | Request::Vision { .. });
        let text = match decision.closed_with()? {
            Answer::Text(text) | Answer::Revise(text) if is_asked => text.as_str(),
            // Whether a command may run is no agent's affair.
            _ if matches!(decision.request, Request::Permission { .. }) => return None,
            other if note.is_some() => other.name(),
            _ => return None,
        };
        let question = decision.request.gist();
        Some(object([("question", json!(question)), ("answer", json!(text)), ("note", json!(note))]))
    });
    last(&said.collect::<Vec<_>>(), ANSWERS).to_vec()
}

/// What should stop the work, as the vision's judge said: for whoever may stop it.
fn kill_criteria(value: &ValueState, purpose: Purpose) -> Option<Value> {
    let judged = value.vision.rounds.iter().rev().find_map(|round| round.kept.validation.as_ref());
    let criteria = judged.map(|validation| validation.kill_criteria.as_slice()).filter(|criteria| !criteria.is_empty());
    criteria.filter(|_| purpose == Purpose::CourseCorrect).map(|criteria| json!({"kill_criteria": criteria}))
}

/// What the passes of this round before this one noted. A round begins with the extraction; earlier rounds of the
/// same step are about a vision that was revised since.
fn passes(step: &OpenStep, purpose: Purpose) -> Vec<Value> {
    let begins = step.reports.iter().rposition(|(of, _)| *of == Purpose::VisionExtract);
    let round = begins.map_or(&[][..], |at| &step.reports[at..]);
    let notes = round.iter().filter_map(|(of, report)| match report {
        Structured::ReportVisionPass(pass) if *of != purpose => Some(json!({"notes": pass.notes, "pass": of.name()})),
        _ => None,
    });
    notes.collect()
}

fn issues(value: &ValueState, subject: Option<&str>) -> Vec<Value> {
    let reported = value.step.as_ref().and_then(|step| step.last_report(Tool::ReportVisionValidation));
    let validation = match reported {
        Some(Structured::ReportVisionValidation(validation)) => Some(validation),
        _ => value.vision.rounds.last().and_then(|round| round.kept.validation.as_ref()),
    };
    let Some(validation) = validation else { return Vec::new() };
    let asked = subject.map(ids);
    let wanted = |id: &str| asked.as_ref().is_none_or(|ids| ids.contains(id));
    let hard = validation.issues.iter().filter(|issue| issue.severity == Severity::Hard && wanted(&issue.id));
    hard.map(as_json).collect()
}

fn critique(value: &ValueState) -> Vec<Value> {
    let reported = value.step.as_ref().and_then(|step| step.last_report(Tool::ReportCritique));
    let critique = match reported {
        Some(Structured::ReportCritique(critique)) => Some(critique),
        _ => value.prd.rounds.last().and_then(|round| round.kept.critique.as_ref()),
    };
    critique.map(as_json).into_iter().collect()
}

/// Epics are counted from 1 wherever someone reads of them.
const fn number(epic: u32) -> u32 {
    epic.saturating_add(1)
}

fn epic(put: &EpicPut) -> Value {
    object([
        ("epic", json!(number(put.epic))),
        ("title", json!(put.title)),
        ("value_statement", json!(put.value_statement)),
        ("deliverables", json!(put.deliverables)),
        ("completion_criteria", json!(put.completion_criteria)),
        ("status", as_json(&put.status)),
        ("feedback", json!(put.feedback)),
    ])
}

/// Who checks and judges goes by what was promised and what is there, not by what the builder says of it.
fn hears_builders(purpose: Purpose) -> bool {
    matches!(purpose.role(), Role::Builder | Role::Reasoner)
}

/// Open tasks first: they are what is worked on, and the last to be left out.
fn plan(tasks: &[Task], with_notes: bool) -> Vec<Value> {
    let open = tasks.iter().filter(|task| task.is_open()).map(|task| {
        object([
            ("id", json!(task.id)),
            ("status", as_json(&task.status)),
            ("source", as_json(&task.source)),
            ("dependencies", json!(task.dependencies)),
            ("description", json!(task.description)),
            ("acceptance", json!(task.acceptance)),
            ("check", json!(task.check)),
            ("prd_section", json!(task.prd_section)),
            ("phase", json!(task.phase)),
            ("epic", json!(task.epic.map(number))),
            ("blocked_reason", json!(task.blocked_reason)),
        ])
    });
    let settled = tasks.iter().filter(|task| !task.is_open()).map(|task| {
        object([
            ("id", json!(task.id)),
            ("status", as_json(&task.status)),
            ("source", as_json(&task.source)),
            ("dependencies", json!(task.dependencies)),
            ("description", json!(task.description)),
            ("acceptance", json!(task.acceptance)),
            ("epic", json!(task.epic.map(number))),
            ("completion_notes", json!(with_notes.then(|| super::middle(&task.notes, NOTES)))),
        ])
    });
    open.chain(settled).collect()
}

/// Those that the engine starts, with their address and state; the others as they were last seen.
fn services(run: &RunState) -> Vec<Value> {
    let seen = &run.value().services;
    let ours = services::started(run).map(|service| {
        let health = seen.iter().find(|one| one.name == service.name);
        let state = match health {
            Some(health) if health.healthy => "healthy",
            Some(_) => "not healthy",
            None => "not started yet",
        };
        let life = run.value().lives.get(&service.name);
        object([
            ("name", json!(service.name)),
            ("state", json!(state)),
            ("url", json!(service.url())),
            ("detail", json!(health.map(|one| &one.detail))),
            ("start", json!(service.start)),
            ("started_by", json!("the engine")),
            ("starts", json!(life.map(|life| life.starts))),
            ("last_end", json!(life.and_then(|life| life.last_end.as_ref()))),
            ("log", json!(health.map(|one| &one.log))),
        ])
    });
    let others = seen.iter().filter(|one| !services::is_started(run, &one.name)).map(as_json);
    ours.chain(others).collect()
}

/// The limits of the plan and of fixes that a call can run into.
fn limits(run: &RunState) -> Value {
    let settings = run.value_settings();
    json!({
        "max_files_per_task": settings.max_files_per_task,
        "max_fix_attempts": settings.max_fix_attempts,
        "max_task_description_chars": settings.max_task_description_chars,
        "max_tasks": settings.max_tasks,
        "max_unplanned_tasks": settings.max_unplanned_tasks,
    })
}

/// The tasks that nobody has looked at since they came into the plan.
fn review(tasks: &[Task]) -> Vec<Value> {
    let fresh = tasks.iter().filter(|task| !task.source.is_planned() && !task.health_checked);
    fresh.map(|task| json!({"id": task.id, "source": task.source})).collect()
}

/// The tasks that the call is about: the subject, the one being worked on, or those that wait for a person.
fn in_question<'a>(value: &'a ValueState, subject: Option<&'a str>) -> impl Iterator<Item = &'a Task> {
    let worked_on = value.step.as_ref().and_then(|step| match &step.action {
        Action::Execute { task } => Some(task.as_str()),
        _ => None,
    });
    let named = subject.or(worked_on).map(ids);
    value.tasks.iter().filter(move |task| match &named {
        Some(ids) => ids.contains(task.id.as_str()),
        None => task.needs_person(),
    })
}

fn whole_task(task: &Task) -> Value {
    object([
        ("id", json!(task.id)),
        ("source", as_json(&task.source)),
        ("description", json!(task.description)),
        ("value", json!(task.value)),
        ("acceptance", json!(task.acceptance)),
        ("check", json!(task.check)),
        ("prd_section", json!(task.prd_section)),
        ("dependencies", json!(task.dependencies)),
        ("phase", json!(task.phase)),
        ("epic", json!(task.epic.map(number))),
        ("files_expected", json!(task.files_expected)),
        ("blocked_reason", json!(task.blocked_reason)),
    ])
}

fn verification(one: &Verification) -> Value {
    json!({
        "category": one.category,
        "fix_attempts": one.fix_attempts,
        "id": one.id,
        "path": one.path,
        "requires": one.requires,
        "runs": one.runs,
        "status": one.status,
    })
}

/// The causes a triage found for these verifications, the first to mend first.
fn causes(step: &OpenStep, subject: Option<&str>) -> Vec<Value> {
    let Some(Structured::ReportTriage(triage)) = step.last_report(Tool::ReportTriage) else { return Vec::new() };
    let asked = subject.map(ids);
    let touches =
        |affected: &[String]| asked.as_ref().is_none_or(|ids| affected.iter().any(|id| ids.contains(id.as_str())));
    let mut causes: Vec<_> = triage.root_causes.iter().filter(|cause| touches(&cause.affected_tests)).collect();
    causes.sort_by_key(|cause| cause.priority);
    causes.into_iter().map(as_json).collect()
}

/// The verifications that the call is about: the subject's, else all that do not pass.
fn failing<'a>(value: &'a ValueState, subject: Option<&'a str>) -> impl Iterator<Item = &'a Verification> {
    let asked = subject.map(ids);
    value.verifications.values().filter(move |one| match &asked {
        Some(ids) => ids.contains(one.id.as_str()),
        None => matches!(one.status, VerificationStatus::Failed | VerificationStatus::Blocked),
    })
}

/// How it failed the last time, whole, and before that, in short.
fn failure(value: &ValueState, one: &Verification, texts: &dyn Texts) -> Value {
    let recent = last(&one.failures, ATTEMPTS);
    let earlier = recent.iter().rev().skip(1).rev();
    let earlier: Vec<Value> =
        earlier.map(|failure| json!({"end": failure.end, "excerpt": failure.excerpt, "step": failure.step})).collect();
    let newest = recent.last();
    let output = newest.map(|failure| {
        let text = super::middle(&texts.text(&failure.output, MAX_EXCERPT), MAX_EXCERPT);
        if text.trim().is_empty() { failure.excerpt.clone() } else { text }
    });
    object([
        ("id", json!(one.id)),
        ("path", json!(one.path)),
        ("fix_attempts", json!(one.fix_attempts)),
        ("end", json!(newest.map(|failure| &failure.end))),
        ("output", json!(output)),
        ("broke_after", json!(one.broken_by)),
        ("diff_of_what_broke_it", json!(attempts::diff_of(value, one.broken_by.as_ref(), texts))),
        ("dispute", json!(one.dispute.as_ref().map(attempts::dispute))),
        ("earlier", json!(earlier)),
    ])
}

/// What was found out about these verifications. A brief that names none may be about any of them.
fn research(value: &ValueState, subject: Option<&str>) -> Vec<Value> {
    let asked = subject.map(ids);
    let of_use = |brief: &&ResearchReport| {
        let affected = &brief.affected_verifications;
        affected.is_empty() || asked.as_ref().is_none_or(|ids| affected.iter().any(|id| ids.contains(id.as_str())))
    };
    let briefs: Vec<_> = value.research.iter().filter(of_use).collect();
    last(&briefs, BRIEFS).iter().map(|brief| as_json(*brief)).collect()
}

fn value_history(value: &ValueState) -> Vec<Value> {
    let lines = last(&value.vrcs, VALUE_CHECKS).iter().map(|vrc| {
        json!({
            "blocked": vrc.deliverables_blocked,
            "carried": vrc.carried,
            "gaps": vrc.gaps.iter().map(as_json).collect::<Vec<_>>(),
            "mode": vrc.mode,
            "recommendation": vrc.recommendation,
            "step": vrc.step,
            "total": vrc.deliverables_total,
            "value_score": vrc.value_score.to_string(),
            "verified": vrc.deliverables_verified,
        })
    });
    lines.collect()
}

pub(super) fn log_line(record: &StepRecord) -> Value {
    json!({
        "action": record.action.to_string(),
        "detail": record.detail,
        "outcome": record.outcome,
        "step": record.step,
        "tokens": record.tokens,
    })
}

/// How the work goes, in counts.
/// Counts, and what the process monitor noticed.
fn how_it_goes(run: &RunState) -> Value {
    let value = run.value();
    let status = monitor::status(run);
    let noticed: Vec<Value> = status
        .triggers
        .iter()
        .map(|one| json!({"detail": one.detail, "level": one.level.name(), "pattern": one.pattern.name()}))
        .collect();
    json!({
        "level": status.level.name(),
        "noticed": noticed,
        "course_corrections": value.steps_of(Action::CourseCorrect.name()),
        "exit_gate_attempts": value.exit_gate_attempts,
        "passing": value.count(VerificationStatus::Passed),
        "rollbacks": value.restores,
        "steps": value.decision_steps(),
        "steps_without_progress": value.no_progress,
        "verifications": value.verifications.len(),
    })
}

/// The changes of how the work is done; the last one is in force.
fn strategies(value: &ValueState) -> Vec<Value> {
    let lines = last(&value.strategies, STRATEGIES).iter().map(|(step, change)| {
        json!({
            "action": change.action,
            "changes": change.changes,
            "pattern": change.pattern,
            "re_evaluate_after": change.re_evaluate_after,
            "step": step,
        })
    });
    lines.collect()
}

fn checkpoints(value: &ValueState) -> Vec<Value> {
    let lines = last(&value.checkpoints, CHECKPOINTS).iter().map(|checkpoint| {
        json!({
            "label": checkpoint.label,
            "passing": checkpoint.passing.len(),
            "step": checkpoint.step,
            "tasks_done": checkpoint.tasks_done,
        })
    });
    lines.collect()
}
