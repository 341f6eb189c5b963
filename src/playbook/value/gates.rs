//! The gates before the first iteration: which one is next, and the script of each.
//!
//! Role: order, and what a gate that is not passed means. Not its role: effects, texts of prompts.
//! Invariants: a script says one thing at a time, and state alone says which, so that a crash between any two events
//! comes back at the same place. Every script is bounded: calls by its tries, questions by `MAX_DECISIONS`.

pub mod again;
mod blockers;
mod classify;
mod discover;
mod inputs;
mod plan;
mod prd;
mod preflight;
pub mod quality;
mod refine;
mod value_check;
mod vision;

use crate::machine::event::{DecisionAsked, Event};
use crate::machine::halt;
use crate::machine::run::RunState;
use crate::machine::todo::Todo;
use crate::model::decision::{Answer, DecisionId, MAX_DECISIONS, Request};
use crate::model::purpose::Purpose;
use crate::model::stop::{ExitStatus, StopReason};
use crate::model::value::tools::Structured;
use crate::model::value::{Action, Gate, Outcome};
use crate::playbook::value::state::OpenStep;

use super::{Choice, finished};

/// Calls for one report, then it counts as missing.
const TRIES: usize = 2;
/// Steps of one gate, each gone on with by the next, before a limit of a step ends the run.
const MAX_CONTINUED: usize = 3;
/// The longest text a script makes of others: a question's reason, the detail of a step.
const MAX_TEXT: usize = 4_000;

/// Where a script stands: an effect is missing, or one event follows from what is there.
#[derive(Debug, Clone, PartialEq)]
enum Move {
    Need(Todo),
    Say(Box<Event>),
    /// It is not passed, and why.
    Fail(String),
}

/// The first gate that is not passed.
pub fn choose(run: &RunState) -> Choice {
    let Some(gate) = Gate::ALL.into_iter().find(|gate| !run.value().gates.contains(gate)) else {
        return Choice::Close;
    };
    let action = Action::Gate { gate };
    let before = run.began_before_continuations();
    let of_gate = || run.value().log.iter().rev().filter(|record| record.action == action);
    if let Some(cut) = &run.cut {
        // A limit of each step ends this step; the next one goes on where its calls stopped.
        let again = of_gate().take_while(|record| record.cut).count() <= MAX_CONTINUED;
        if before || !again || cut.exhausted.dimension.ends_run() {
            return Choice::Halt(Box::new(halt::over_budget(run, cut.exhausted.clone())));
        }
    }
    match of_gate().next() {
        Some(record) if record.cut && !before => {
            Choice::Begin(action, format!("{}: a limit cut it, and it goes on", gate.title()))
        }
        // Else a person was asked, and said to try again.
        Some(record)
            if record.outcome == Outcome::Failed
                && (again::is_final(run, gate) || run.operator.decisions.len() >= MAX_DECISIONS) =>
        {
            let reason = if gate == Gate::Inputs { StopReason::NullInput } else { StopReason::Escalated };
            let detail = format!("before the first iteration, {} ({gate}) failed. {}", gate.title(), record.detail);
            Choice::Halt(Box::new(halt::halt(run, ExitStatus::ExitNeedInfo, reason, detail)))
        }
        Some(_) | None => Choice::Begin(action, gate.title().to_owned()),
    }
}

/// The effect that this gate misses.
pub fn next(run: &RunState, step: &OpenStep, gate: Gate) -> Option<Todo> {
    match script(run, step, gate) {
        Move::Need(todo) => Some(todo),
        Move::Say(_) | Move::Fail(_) => None,
    }
}

/// What follows once no effect is missing.
pub fn decide(run: &RunState, step: &OpenStep, gate: Gate) -> Vec<Event> {
    match script(run, step, gate) {
        Move::Need(_) => Vec::new(),
        Move::Say(event) => vec![*event],
        Move::Fail(why) => vec![finished(step, Outcome::Failed, why)],
    }
}

fn script(run: &RunState, step: &OpenStep, gate: Gate) -> Move {
    if again::asked(run, step).is_some_and(|decision| decision.closed_with().is_none()) {
        return need(Todo::AwaitPerson);
    }
    match own_script(run, step, gate) {
        Move::Fail(why) if !again::is_final(run, gate) => {
            again::instead(run, step, gate, &why).unwrap_or(Move::Fail(why))
        }
        other => other,
    }
}

fn own_script(run: &RunState, step: &OpenStep, gate: Gate) -> Move {
    match gate {
        Gate::Inputs => inputs::script(run, step),
        Gate::VisionValidated => vision::script(run, step),
        Gate::VisionClassified => classify::script(run, step),
        Gate::ContextDiscovered => discover::script(run, step),
        Gate::PrdCritique => prd::script(run, step),
        Gate::PlanGenerated => plan::script(run, step),
        Gate::Craap => quality::script(run, step, Purpose::Craap),
        Gate::Clarity => quality::script(run, step, Purpose::Clarity),
        Gate::Validate => quality::script(run, step, Purpose::Validate),
        Gate::Connect => quality::script(run, step, Purpose::Connect),
        Gate::Break => quality::script(run, step, Purpose::Break),
        Gate::Prune => quality::script(run, step, Purpose::Prune),
        Gate::Tidy => quality::script(run, step, Purpose::Tidy),
        Gate::Blockers => blockers::script(run, step),
        Gate::VrcInit => value_check::script(run, step),
        Gate::Preflight => preflight::script(run, step),
    }
}

fn need(todo: Todo) -> Move {
    Move::Need(todo)
}

fn say(event: impl Into<Event>) -> Move {
    Move::Say(Box::new(event.into()))
}

fn pass(step: &OpenStep, detail: impl AsRef<str>) -> Move {
    say(finished(step, Outcome::Passed, bounded(detail.as_ref(), MAX_TEXT)))
}

/// The gate is not passed; what has to be there before it can be, in order.
fn fail(preconditions: &[String]) -> Move {
    Move::Fail(bounded(&list(preconditions), MAX_TEXT))
}

/// Puts something before a person. Who was asked too often is not asked again.
fn ask(run: &RunState, request: Request, why: &str) -> Move {
    if run.operator.decisions.len() >= MAX_DECISIONS {
        let asked = format!("people were asked {MAX_DECISIONS} times: look at the answers, and start a new run");
        return fail(&[asked]);
    }
    say(DecisionAsked { id: run.operator.next_id(), request, why: bounded(why, MAX_TEXT), asked_by: None })
}

/// The answer that closed a decision.
fn answer(run: &RunState, id: DecisionId) -> Option<&Answer> {
    run.operator.decision(id).and_then(|decision| decision.closed_with())
}

/// What came of the calls for a report in the present round.
enum Attempt<'a> {
    Missing,
    Reported(&'a Structured),
    /// Every try ended without it; in words.
    Failed(String),
}

/// The report that ends a call for this purpose; the last one, if there are several.
fn attempt(step: &OpenStep, purpose: Purpose) -> Attempt<'_> {
    let wanted = purpose.closing();
    let mut reports = step.round_reports().iter().rev();
    if let Some((_, report)) = reports.find(|(of, report)| *of == purpose && Some(report.tool()) == wanted) {
        return Attempt::Reported(report);
    }
    let calls: Vec<_> = step.round_calls().iter().filter(|call| call.purpose == purpose).collect();
    match calls.last() {
        Some(last) if calls.len() >= TRIES => Attempt::Failed(format!("{purpose} {}", how_it_ended(&last.end))),
        Some(_) | None => Attempt::Missing,
    }
}

fn how_it_ended(end: &crate::machine::event::AgentEnd) -> String {
    use crate::machine::event::AgentEnd;
    match end {
        AgentEnd::Reported => "reported nothing that could be used".to_owned(),
        AgentEnd::NoReport => "ended without a report".to_owned(),
        AgentEnd::Cut(why) => format!("was cut: {why}"),
        AgentEnd::Refused(why) => format!("was refused: {why}"),
        AgentEnd::Failed { class, message } => format!("failed ({class}): {message}"),
        AgentEnd::Malformed => "sent only malformed calls".to_owned(),
        AgentEnd::Stuck => "repeated itself".to_owned(),
        AgentEnd::Denied(why) => format!("was denied too often: {why}"),
    }
}

/// `text`, at most `limit` bytes of it.
fn bounded(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut end = limit.saturating_sub('…'.len_utf8());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}

/// One point as it is; several numbered.
fn list(points: &[String]) -> String {
    match points {
        [only] => only.clone(),
        _ => points.iter().enumerate().map(|(n, point)| format!("{}) {point}", n + 1)).collect::<Vec<_>>().join("; "),
    }
}

#[cfg(test)]
mod tests;
