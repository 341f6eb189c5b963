//! The playbooks `prd` and `micro`: an author works, the engine runs the checks, a critic judges, and the kernel of
//! [`micro`](super::micro) says what follows. With items (`prd`) every pass is about one of them.
//!
//! Role: what is missing next, and what follows once nothing is. Not its role: effects (`engine::items`), the fold
//! (`machine::passes`), texts (`prompts/`).
//! Invariants: one pass an iteration; every route is a recorded decision; where nothing is to be done, something is
//! decided, or the next iteration begins.

mod items;
mod judge;
mod route;
pub mod words;

use crate::machine::event::{By, Event, Phase, Probe, ProbeEnd, ReadWhen, Route, RunHalted, TreePurpose};
use crate::machine::iteration::Iteration;
use crate::machine::next::{Effect, Playbook, Todo};
use crate::machine::passes::{self, Standing, standing};
use crate::machine::run::RunState;
use crate::machine::state::State;
use crate::machine::step::halt;
use crate::model::detour::{self, Detour};
use crate::model::ids::Role;
use crate::model::loop_file;
use crate::model::purpose::Purpose;
use crate::model::stop::{ExitStatus, StopReason};

/// An author and a critic, with items or without.
#[derive(Debug, Clone, Copy, Default)]
pub struct AuthorAndCritic;

impl Playbook for AuthorAndCritic {
    fn prepare(&self, run: &RunState) -> Option<Todo> {
        if run.baseline.tree.is_some() {
            return None;
        }
        let prd = &run.passes.prd;
        if has_items(run) && prd.text.is_none() && prd.problem.is_none() {
            return Some(Todo::Effect(Effect::ReadPrd(ReadWhen::Start)));
        }
        items::not_ready(run).map(|_| Todo::Proceed)
    }

    fn between(&self, run: &RunState) -> Option<Todo> {
        if missing_sensor(run).is_some() {
            return Some(Todo::Proceed);
        }
        if has_items(run) { items::between(run) } else { at_the_end(run).map(|_| Todo::Proceed) }
    }

    fn work(&self, run: &RunState, iteration: &Iteration) -> Option<Todo> {
        if run.passes.prd.restore {
            return Some(Todo::Effect(Effect::RestorePrd));
        }
        if let Some(todo) = work_of(run, iteration) {
            return Some(todo);
        }
        let unguarded = has_items(run) && run.passes.prd.guarded != Some(iteration.number());
        unguarded.then_some(Todo::Effect(Effect::ReadPrd(ReadWhen::AfterWork)))
    }

    fn review(&self, run: &RunState, iteration: &Iteration) -> Option<Todo> {
        let number = iteration.number();
        if run.passes.judged_in(number).is_none() {
            return Some(review_of(run, iteration).unwrap_or(Todo::Proceed));
        }
        if run.passes.route_of(number).is_none() {
            return Some(Todo::Proceed);
        }
        let unsettled = has_items(run) && run.passes.settled_in(number).is_none();
        if unsettled {
            return Some(Todo::Effect(Effect::SettleItem));
        }
        items::commit(run, number)
    }

    fn decide(&self, run: &RunState) -> Vec<Event> {
        match (run.state, &run.current) {
            (State::DreamGoal, _) if run.baseline.tree.is_none() => {
                items::not_ready(run).into_iter().map(Event::from).collect()
            }
            (State::SpawnSubagent, None) => decide_between(run),
            (State::CheckHalting, Some(iteration)) => decide_pass(run, iteration),
            _ => Vec::new(),
        }
    }
}

fn has_items(run: &RunState) -> bool {
    run.loop_file().playbook == loop_file::Playbook::Prd
}

fn subject(run: &RunState, iteration: &Iteration) -> Option<String> {
    run.passes.chosen_in(iteration.number()).map(|chosen| chosen.item.clone())
}

/// A pass is worked on by its author, or by the known fix that the last route named.
fn work_of(run: &RunState, iteration: &Iteration) -> Option<Todo> {
    let called = |role: Role| iteration.calls.contains_key(&iteration.call_key(role, None));
    match due_detour(run, iteration) {
        Some(Detour { name, command: Some(_), .. }) => {
            let probe = Probe::Detour(name);
            let missing = iteration.probe(Phase::Detour, &probe).is_none();
            missing.then_some(Todo::RunProbe(Phase::Detour, probe))
        }
        Some(Detour { name, command: None, .. }) => (!called(Role::Fixer)).then_some(Todo::StartAgent {
            purpose: Purpose::Detour,
            paraphrase: None,
            subject: Some(name),
        }),
        None => (!called(Role::Author)).then(|| Todo::StartAgent {
            purpose: Purpose::Author,
            paraphrase: None,
            subject: subject(run, iteration),
        }),
    }
}

/// The detour that this iteration is, if it is one.
pub fn due_detour(run: &RunState, iteration: &Iteration) -> Option<Detour> {
    let subject = subject(run, iteration);
    let last = run.passes.routes.iter().rev().find(|route| route.subject == subject)?;
    let Route::Detour(name) = &last.route else { return None };
    let class = last_signature(run, subject.as_deref())?.class;
    detour::known(run.loop_file().detours(), class).filter(|known| known.name == *name)
}

fn last_signature<'a>(run: &'a RunState, subject: Option<&'a str>) -> Option<&'a crate::model::signature::Signature> {
    run.passes.of(subject).next_back()?.signature.as_ref()
}

fn by(run: &RunState, iteration: &Iteration) -> By {
    due_detour(run, iteration).map_or(By::Author, |detour| By::Detour(detour.name))
}

/// The critic's part: called once, between two looks at the workspace, and only where its word is needed.
fn review_of(run: &RunState, iteration: &Iteration) -> Option<Todo> {
    if run.passes.prd.restore {
        return Some(Todo::Effect(Effect::RestorePrd));
    }
    if let Some(todo) = critic_of(run, iteration) {
        return Some(todo);
    }
    // The checks ran what an agent wrote: only now is the file what people made of it.
    let unguarded = has_items(run) && run.passes.prd.guarded_again != Some(iteration.number());
    unguarded.then_some(Todo::Effect(Effect::ReadPrd(ReadWhen::AfterWork)))
}

fn critic_of(run: &RunState, iteration: &Iteration) -> Option<Todo> {
    if !judge::needs_critic(run, iteration) {
        return None;
    }
    if iteration.review_trees.0.is_none() {
        return Some(Todo::TakeTree(TreePurpose::BeforeReview));
    }
    if !iteration.calls.contains_key(&iteration.call_key(Role::Critic, None)) {
        return Some(Todo::StartAgent { purpose: Purpose::Critic, paraphrase: None, subject: subject(run, iteration) });
    }
    iteration.review_trees.1.is_none().then_some(Todo::TakeTree(TreePurpose::AfterReview))
}

fn decide_pass(run: &RunState, iteration: &Iteration) -> Vec<Event> {
    let number = iteration.number();
    let Some(judged) = run.passes.judged_in(number) else {
        return vec![judge::judge(run, iteration).into()];
    };
    if run.passes.route_of(number).is_none() {
        return vec![route::route(run, judged).into()];
    }
    Vec::new()
}

fn decide_between(run: &RunState) -> Vec<Event> {
    if let Some(halted) = missing_sensor(run) {
        return vec![halted.into()];
    }
    if has_items(run) { items::decide(run) } else { at_the_end(run).into_iter().collect() }
}

/// A microloop that does not go on by itself: halted, or a person asked.
fn at_the_end(run: &RunState) -> Option<Event> {
    if !matches!(standing(run, None), Standing::Open { .. }) {
        return None;
    }
    let judged = run.passes.of(None).next_back()?;
    if matches!(standing(run, None), Standing::Open { after: Some(after) } if judged.iteration <= after) {
        return None;
    }
    if let Some(halted) = discarded(run, judged) {
        return Some(halted.into());
    }
    let route = run.passes.route_of(judged.iteration)?;
    let concerns = route::told(judged);
    match &route.route {
        Route::Loop | Route::Detour(_) => None,
        // Verified, and still here: something else keeps it from being certified, which no further pass changes.
        Route::Continue => {
            let certificate = run.done.last().and_then(|done| done.certificate.as_ref());
            let why = certificate.map(|certificate| certificate.why.clone()).unwrap_or_default();
            let detail = format!("verified, but the run cannot be certified: {why}");
            Some(halt(run, ExitStatus::ExitBlocked, StopReason::VerificationRungFailed, detail).into())
        }
        Route::Terminate => {
            let detail = format!("no viable fix path: {}; {concerns}", route.why);
            Some(halt(run, ExitStatus::ExitBlocked, StopReason::NoViableFixPath, detail).into())
        }
        Route::AdvanceWithWarnings => {
            let detail = format!("{} of {} passes, and not verified: {concerns}", route.pass, route.limit);
            Some(halt(run, ExitStatus::ExitBudgetExceeded, StopReason::MaxIters, detail).into())
        }
        Route::Escalate => Some(route::ask(run, judged, false).unwrap_or_else(|| {
            let detail = format!("the same failure again, and nobody left to ask: {concerns}");
            halt(run, ExitStatus::ExitBlocked, StopReason::RepeatedFailure, detail).into()
        })),
    }
}

/// A critic that changed files has judged nothing, and a run that lets it pass is worth nothing.
fn discarded(run: &RunState, judged: &crate::machine::event::PassJudged) -> Option<RunHalted> {
    let discarded = judged.verdict == crate::machine::event::PassVerdict::Discarded;
    discarded.then(|| halt(run, ExitStatus::ExitBlocked, StopReason::InvariantViolation, judged.detail.clone()))
}

/// A check that cannot even start says nothing: the run stops rather than work blindly.
fn missing_sensor(run: &RunState) -> Option<RunHalted> {
    let latest = run.done.last();
    let probes = |probe: &Probe| match latest {
        Some(iteration) => iteration.probe(Phase::Iteration, probe),
        None => run.baseline.probes.get(probe),
    };
    let checks = match latest {
        Some(iteration) => passes::checks(run, iteration),
        None => run.baseline.probes.keys().map(|probe| (probe.name(), probe.clone())).collect(),
    };
    checks.iter().find_map(|(name, probe)| match probes(probe).map(|result| &result.end) {
        Some(ProbeEnd::NotStarted(why)) => {
            let detail = format!("MISSING_SENSOR: the check `{name}` did not start ({why}); install or correct it");
            Some(halt(run, ExitStatus::ExitBlocked, StopReason::Escalated, detail))
        }
        _ => None,
    })
}
