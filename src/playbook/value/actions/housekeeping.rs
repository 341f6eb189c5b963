//! What follows a step by itself: value checks, plan health, strategy, coherence.
//!
//! Role: ask a judge, keep what it says, make a few tasks of what is grave. Not its role: deciding what follows.
//!
//! Invariants: none of it is progress; an evaluator that does not report changes no number; tasks made here are few
//! and never compete with planned ones; no limit is raised.

use crate::machine::event::{AgentEnd, Event};
use crate::machine::run::RunState;
use crate::machine::todo::Todo;
use crate::model::decimal::Exact;
use crate::model::purpose::{Purpose, Tool};
use crate::model::value::tools::{Coherence, CoherenceReport, StrategyAction, StrategyChange, Structured};
use crate::model::value::{GapSeverity, Outcome, Recommendation, Task, TaskSource, TaskStatus, Vrc, VrcMode};
use crate::playbook::value::event::{TaskPut, VrcTaken};
use crate::playbook::value::state::OpenStep;

use crate::playbook::value::finished;
use crate::playbook::value::services;

use super::ask::{self, MAX_DETAIL, cut};
use super::evaluate::describe;
use super::follow_up::{self, FollowUp, Wanted};

/// Tasks that one check may make.
const MAX_TASKS: usize = 3;

// Value checks.

const fn vrc_purpose(mode: VrcMode) -> Purpose {
    match mode {
        VrcMode::Quick => Purpose::VrcQuick,
        VrcMode::Full => Purpose::VrcFull,
    }
}

pub fn next_vrc(run: &RunState, step: &OpenStep, mode: VrcMode) -> Option<Todo> {
    let call = once(step, vrc_purpose(mode))?;
    Some(services::once(run, step).filter(|_| mode == VrcMode::Full).unwrap_or(call))
}

pub fn decide_vrc(run: &RunState, step: &OpenStep, mode: VrcMode) -> Vec<Event> {
    let taken = run.value().latest_vrc().filter(|latest| latest.step == step.number);
    let vrc = taken.cloned().or_else(|| reported_vrc(step, mode)).unwrap_or_else(|| carried(run, step, mode));
    let tasks = gap_tasks(run, step, &vrc);
    let carried =
        if vrc.carried { format!(", carried forward: {}", ended(step, vrc_purpose(mode))) } else { String::new() };
    let detail = format!("value score {}, {}{carried}{}", vrc.value_score, vrc.recommendation.name(), tasks.words());
    let mut events = Vec::new();
    if taken.is_none() {
        events.push(VrcTaken { vrc }.into());
    }
    events.extend(tasks.events);
    events.push(neutral(step, &detail));
    events
}

fn reported_vrc(step: &OpenStep, mode: VrcMode) -> Option<Vrc> {
    match step.last_report(Tool::ReportVrc) {
        Some(Structured::ReportVrc(report)) => Vrc::reported(step.number, mode, report),
        _ => None,
    }
}

/// Without a report the numbers of the check before stand; its advice was for another moment.
fn carried(run: &RunState, step: &OpenStep, mode: VrcMode) -> Vrc {
    let nothing = Vrc {
        step: step.number,
        mode,
        value_score: Exact::ZERO,
        deliverables_total: 0,
        deliverables_verified: 0,
        deliverables_blocked: 0,
        gaps: Vec::new(),
        recommendation: Recommendation::Continue,
        summary: "no value check has been reported".to_owned(),
        carried: true,
    };
    match run.value().latest_vrc() {
        Some(latest) => Vrc {
            step: step.number,
            mode,
            recommendation: Recommendation::Continue,
            summary: format!("no report; the numbers of step {} stand", latest.step),
            carried: true,
            ..latest.clone()
        },
        None => nothing,
    }
}

/// Grave gaps of a full check, and only when the plan itself has nothing left to do.
fn gap_tasks(run: &RunState, step: &OpenStep, vrc: &Vrc) -> FollowUp {
    let planned =
        |task: &Task| task.source.is_planned() && matches!(task.status, TaskStatus::Pending | TaskStatus::InProgress);
    if vrc.mode != VrcMode::Full || vrc.carried || run.value().tasks.iter().any(planned) {
        return FollowUp::default();
    }
    let grave = vrc.gaps.iter().enumerate().filter(|(_, gap)| gap.severity >= GapSeverity::Blocking);
    let prefix = format!("VRC-{}", step.number);
    let wanted = grave.filter_map(|(number, gap)| Wanted::of_gap(&prefix, number + 1, gap));
    let wanted: Vec<Wanted> = wanted.take(MAX_TASKS).collect();
    follow_up::tasks(run, step, TaskSource::Vrc, &wanted, "a value check found a gap")
}

// Plan health: its changes come through the guardrails during the call.

pub fn next_plan_health(_run: &RunState, step: &OpenStep) -> Option<Todo> {
    once(step, Purpose::PlanHealth)
}

pub fn decide_plan_health(run: &RunState, step: &OpenStep) -> Vec<Event> {
    if !reported(step, Purpose::PlanHealth) {
        return vec![neutral(step, &format!("the plan was not reviewed: {}", ended(step, Purpose::PlanHealth)))];
    }
    let unseen = |task: &&Task| !task.source.is_planned() && !task.health_checked && task.created_in != step.number;
    let mut events: Vec<Event> = run
        .value()
        .tasks
        .iter()
        .filter(unseen)
        .map(|task| {
            let task = Task { health_checked: true, ..task.clone() };
            TaskPut { task: Box::new(task), why: "reviewed for plan health".to_owned() }.into()
        })
        .collect();
    let changes = step.reports.iter().filter(|(_, report)| report.tool() == Tool::ManageTask).count();
    let detail = format!("{} task(s) reviewed, {changes} change(s) of the plan", events.len());
    events.push(neutral(step, &detail));
    events
}

// Strategy: the fold keeps the change; here only a call for help is heard.

pub fn next_strategy(_run: &RunState, step: &OpenStep) -> Option<Todo> {
    once(step, Purpose::Strategy)
}

pub fn decide_strategy(run: &RunState, step: &OpenStep) -> Vec<Event> {
    let Some(change) = strategy(step) else {
        return vec![neutral(step, &format!("no change of strategy: {}", ended(step, Purpose::Strategy)))];
    };
    let (pattern, cause) = (change.pattern.trim(), change.cause.trim());
    match change.action {
        StrategyAction::Continue => vec![neutral(step, &format!("{pattern}: goes on as before; {cause}"))],
        StrategyAction::StrategyChange => {
            let changes: Vec<String> = change.changes.iter().map(|(what, to)| format!("{what} = {to}")).collect();
            vec![neutral(step, &format!("{pattern}: {}; {cause}", changes.join(", ")))]
        }
        StrategyAction::Escalate => {
            let problem = format!("{pattern}: {cause}\n{}", change.rationale.trim());
            let options = ["say what to do differently", "quit"];
            let asked = ask::escalate(run, &problem, &options, "the process monitor sees no way forward");
            match asked.filter(|_| step.decisions.is_empty()) {
                Some(asked) => vec![asked],
                None => vec![neutral(step, &format!("escalated: {pattern}; {cause}"))],
            }
        }
    }
}

fn strategy(step: &OpenStep) -> Option<&StrategyChange> {
    match step.last_report(Tool::ReportStrategyChange) {
        Some(Structured::ReportStrategyChange(change)) => Some(change),
        _ => None,
    }
}

// Coherence.

pub fn next_coherence(_run: &RunState, step: &OpenStep) -> Option<Todo> {
    once(step, Purpose::Coherence)
}

pub fn decide_coherence(run: &RunState, step: &OpenStep) -> Vec<Event> {
    let Some(report) = coherence(step) else {
        // The decision engine chose this step: that it brought nothing counts.
        let detail = format!("coherence was not judged: {}", ended(step, Purpose::Coherence));
        return vec![finished(step, Outcome::NoProgress, cut(&detail, MAX_DETAIL))];
    };
    let grave = report.findings.iter().filter(|finding| finding.severity == Coherence::Critical).take(MAX_TASKS);
    let wanted: Vec<Wanted> = grave
        .enumerate()
        .map(|(number, finding)| Wanted {
            id: format!("COH-{}-{}", step.number, number + 1),
            description: finding.suggested_action.clone().unwrap_or_else(|| finding.description.clone()),
            value: format!("What is built fits together: {}", finding.dimension.trim()),
            acceptance: format!("No longer so: {}", finding.description.trim()),
        })
        .collect();
    let tasks = follow_up::tasks(run, step, TaskSource::Coherence, &wanted, "parts do not fit together");
    let overall = match report.overall {
        Coherence::Healthy => "healthy",
        Coherence::Warning => "warning",
        Coherence::Critical => "critical",
    };
    let detail = format!("coherence: {overall}, {} finding(s){}", report.findings.len(), tasks.words());
    let mut events = tasks.events;
    events.push(neutral(step, &detail));
    events
}

fn coherence(step: &OpenStep) -> Option<&CoherenceReport> {
    match step.last_report(Tool::ReportCoherence) {
        Some(Structured::ReportCoherence(report)) => Some(report),
        _ => None,
    }
}

// What they share.

fn once(step: &OpenStep, purpose: Purpose) -> Option<Todo> {
    (step.calls_for(purpose) == 0).then(|| Todo::call(purpose))
}

fn reported(step: &OpenStep, purpose: Purpose) -> bool {
    step.last_call(purpose).is_some_and(|call| call.end == AgentEnd::Reported)
}

fn ended(step: &OpenStep, purpose: Purpose) -> String {
    step.last_call(purpose).map_or_else(String::new, |call| describe(&call.end))
}

fn neutral(step: &OpenStep, detail: &str) -> Event {
    finished(step, Outcome::Neutral, cut(detail, MAX_DETAIL))
}
