//! Which item comes next, and what is done where none can be worked on.
//!
//! Invariants: one item an iteration; an item whose attempts are used up is worked on again only after a person said
//! so; nothing is skipped but by a person's word.

use crate::machine::event::{DecisionAsked, Event, GitOperation, RunHalted};
use crate::machine::halt::halt;
use crate::machine::run::RunState;
use crate::machine::todo::{Effect, Todo};
use crate::model::criterion::Proof;
use crate::model::decision::{DEFAULT_VERIFY_SECONDS, MAX_DECISIONS, Request};
use crate::model::prd::ReadWhen;
use crate::model::stop::{ExitStatus, StopReason};
use crate::model::value::settings::GitMode;
use crate::playbook::micro::Next;
use crate::playbook::passes::event::{ItemChosen, ItemSeen, Route};
use crate::playbook::passes::state::{self as passes, Standing, counted, standing};

use super::route;

/// Why the run cannot begin with this declaration and these items.
pub fn not_ready(run: &RunState) -> Option<RunHalted> {
    let prd = &run.passes().prd;
    let has_items = super::has_items(run);
    let stop = |detail: String| Some(halt(run, ExitStatus::ExitNeedInfo, StopReason::NullInput, detail));
    let file = &run.loop_file().prd().file;
    if let Some(problem) = &prd.problem {
        return stop(format!("{file}: {problem}"));
    }
    if has_items && prd.text.is_none() {
        return None;
    }
    let has_check = run.criteria.iter().any(|criterion| matches!(criterion.proof, Proof::Check { .. }));
    if !has_check {
        return stop(
            "no check is declared: give acceptance_criteria one command that shows whether the project is sound".into(),
        );
    }
    let named = &run.loop_file().prd().only;
    if let Some(unknown) = named.iter().find(|id| prd.item(id).is_none()).filter(|_| has_items) {
        return stop(format!("`prd.only` names `{unknown}`, and {file} has no such item"));
    }
    if has_items && counted(run).all(|item| item.passes) {
        return stop(format!(
            "every item of {file} says that it passes already: set `passes` to false for what is to be done"
        ));
    }
    None
}

/// What is needed before the next iteration; `None`: it may begin.
pub fn between(run: &RunState) -> Option<Todo> {
    let prd = &run.passes().prd;
    if prd.restore {
        return Some(Todo::Effect(Effect::RestorePrd));
    }
    if run.playbook().git_settings(run.loop_file()).mode != GitMode::Off && run.git.facts.is_none() {
        return Some(Todo::Effect(Effect::Git(GitOperation::Prepare)));
    }
    let number = run.iteration_number();
    let unguarded = run.done.last().is_some_and(|done| prd.guarded != Some(done.number()));
    if unguarded {
        return Some(Todo::Effect(Effect::ReadPrd(ReadWhen::AfterWork)));
    }
    if prd.read_before != Some(number) {
        return Some(Todo::Effect(Effect::ReadPrd(ReadWhen::Between)));
    }
    if run.passes().chosen_in(number).is_some() {
        return None;
    }
    // Nothing can be worked on, but a person was asked about something: that is what is waited for.
    match next(run) {
        Step::Wait => Some(Todo::AwaitPerson),
        Step::Choose(..) | Step::Ask(_) | Step::Halt(_) => Some(Todo::Proceed),
    }
}

pub fn decide(run: &RunState) -> Vec<Event> {
    if run.passes().chosen_in(run.iteration_number()).is_some() {
        return Vec::new();
    }
    match next(run) {
        Step::Choose(item, pass, why) => {
            let iteration = run.iteration_number();
            vec![ItemChosen { iteration, item: item.id.clone(), pass, why }.into()]
        }
        Step::Ask(event) => vec![*event],
        Step::Halt(halted) => vec![(*halted).into()],
        Step::Wait => Vec::new(),
    }
}

/// Is the item of the last iteration neither done nor given up?
pub fn is_at_one(run: &RunState) -> bool {
    let chosen = run.done.last().and_then(|done| run.passes().chosen_in(done.number()));
    let item = chosen.and_then(|chosen| run.passes().prd.item(&chosen.item));
    item.is_some_and(|item| !item.passes && matches!(standing(run, Some(&item.id)), Standing::Open { .. }))
}

/// What passes is committed by itself, where the run has a branch.
pub fn commit(run: &RunState, iteration: u32) -> Option<Todo> {
    let settled = run.passes().settled_in(iteration).filter(|settled| settled.passes)?;
    run.git.facts.as_ref()?.branch.as_ref()?;
    if run.passes().prd.committed == Some(iteration) {
        return None;
    }
    let title = run.passes().prd.item(&settled.item).map(|item| item.title.as_str()).unwrap_or_default();
    let what = format!("{} - {title}", settled.item);
    Some(Todo::Effect(Effect::Git(GitOperation::Commit { what })))
}

enum Step<'a> {
    Choose(&'a ItemSeen, u32, String),
    Ask(Box<Event>),
    Wait,
    Halt(Box<RunHalted>),
}

fn next(run: &RunState) -> Step<'_> {
    let stop = |reason, detail: String| Step::Halt(Box::new(halt(run, ExitStatus::ExitBlocked, reason, detail)));
    let prd = &run.passes().prd;
    if let Some(problem) = &prd.problem {
        return mend(run, problem)
            .map_or_else(|| stop(StopReason::Escalated, problem.clone()), |event| Step::Ask(Box::new(event)));
    }
    if let Some(problem) = &run.git.problem {
        return stop(StopReason::EnvironmentMismatch, format!("git: {problem}"));
    }
    if let Some(halted) = run.passes().judged.last().and_then(|judged| super::discarded(run, judged)) {
        return Step::Halt(Box::new(halted));
    }
    let parks = passes::parks(run);
    let mut left: Vec<&ItemSeen> = counted(run).filter(|item| !item.passes).collect();
    left.sort_by_key(|item| item.order);
    let (mut waits, mut skipped) = (Vec::new(), Vec::new());
    for item in &left {
        match standing(run, Some(&item.id)) {
            Standing::Asked => waits.push(item.id.as_str()),
            Standing::Skipped => skipped.push(item.id.as_str()),
            Standing::Open { .. } => {
                let kernel = route::kernel(run, Some(&item.id));
                let attempts = u32::try_from(kernel.passes.len()).unwrap_or(u32::MAX);
                let why = match kernel.next() {
                    Next::Author if attempts == 0 => "the first in order that does not pass".to_owned(),
                    Next::Author => "it does not pass yet".to_owned(),
                    Next::Detour(class) if route_is_detour(run, &item.id) => {
                        format!("a known fix for {} is tried", class.name())
                    }
                    // Verified, but not flipped: somebody else changed the file meanwhile.
                    Next::Verified if attempts < run.loop_file().pass_limit() => {
                        "it was verified, and the file could not be changed".to_owned()
                    }
                    Next::Verified
                    | Next::AdvanceWithConcerns
                    | Next::NoViablePath
                    | Next::Detour(_)
                    | Next::Escalate => {
                        let judged = run.passes().of(Some(&item.id)).next_back();
                        return match judged.and_then(|judged| route::ask(run, judged, parks)) {
                            Some(event) => Step::Ask(Box::new(event)),
                            None => stop(StopReason::Escalated, format!("{} needs a person", item.id)),
                        };
                    }
                };
                return Step::Choose(item, attempts.saturating_add(1), why);
            }
        }
    }
    if !waits.is_empty() {
        return Step::Wait;
    }
    if !skipped.is_empty() {
        let (all, others) = passes::score(run);
        return stop(
            StopReason::Escalated,
            format!("{others} of {all} items pass; skipped by a person: {}", skipped.join(", ")),
        );
    }
    let unmet = run.done.last().and_then(|done| done.certificate.as_ref());
    let why = unmet.map_or_else(|| "nothing certifies it".to_owned(), |certificate| certificate.why.clone());
    stop(StopReason::VerificationRungFailed, format!("every item passes, but the run cannot be certified: {why}"))
}

fn route_is_detour(run: &RunState, item: &str) -> bool {
    let last = run.passes().routes.iter().rev().find(|route| route.subject.as_deref() == Some(item));
    last.is_some_and(|route| matches!(route.route, Route::Detour(_)))
}

/// Asks a person to mend the file; whoever says `done` too early is asked again.
fn mend(run: &RunState, problem: &str) -> Option<Event> {
    let file = &run.loop_file().prd().file;
    let request = Request::HumanAction {
        instructions: format!("Mend {file}, then answer `done`: {problem}"),
        verify: None,
        timeout_seconds: DEFAULT_VERIFY_SECONDS,
    };
    let may = run.operator.decisions.len() < MAX_DECISIONS;
    let why = format!("{file} cannot be read any more");
    may.then(|| DecisionAsked { id: run.operator.next_id(), request, why, asked_by: None }.into())
}
