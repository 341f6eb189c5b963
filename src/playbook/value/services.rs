//! The services of a run: what is declared, what lives, and what has to be up for what comes next.
//!
//! Role: read it off the folded run, and say which declarations are taken. Not its role: starting, asking, ending
//! (`engine::value`).
//!
//! Invariants: what a person declared in loop.yaml no agent changes; a declaration never makes a health check show less;
//! a service that was started before files changed is not called healthy before it was started anew.

use crate::machine::event::Phase;
use crate::machine::run::RunState;
use crate::machine::state::State;
use crate::machine::todo::{Effect, Todo};
use crate::model::purpose::Purpose;
use crate::model::value::VerificationStatus;
use crate::model::value::tools::{MAX_SERVICES, ManageService, Service, ServiceAction};

use super::decide::pick;
use super::event::{ServiceEnded, ServiceStarted, ServicesChecked};
use super::state::{OpenStep, ValueState};

/// Starts of one service in a run: each is an event.
pub const MAX_STARTS: u32 = 500;

/// All declared services: those of loop.yaml first, then those of agents.
pub fn declared(run: &RunState) -> impl Iterator<Item = &Service> {
    let ours = &run.value_settings().services;
    let by_agents = run.value().declared.iter();
    ours.iter().chain(by_agents.filter(|service| !ours.iter().any(|one| one.name == service.name)))
}

/// Those that the engine starts.
pub fn started(run: &RunState) -> impl Iterator<Item = &Service> {
    declared(run).filter(|service| service.is_started())
}

pub fn is_started(run: &RunState, name: &str) -> bool {
    started(run).any(|service| service.name == name)
}

/// Does it run as it is declared now, with the files as they are now?
pub fn is_current(run: &RunState, service: &Service) -> bool {
    let life = run.value().lives.get(&service.name);
    life.is_some_and(|life| !life.stale && life.runs.as_deref() == Some(service))
}

/// Why services cannot be reached in this run; `None`: they can.
pub fn no_network(run: &RunState) -> Option<&'static str> {
    // The name of what is in force ends with its network.
    run.started.sandbox.ends_with("network off").then_some(
        "the run has no network (sandbox.network is off), so nothing could reach the service: it needs \
         `sandbox: { network: loopback }` in loop.yaml and a new run",
    )
}

/// A look at the services, once in a step and again after files changed; `None`: the engine starts none, or they were
/// looked at. For steps that looked at no service before the engine started any.
pub fn once(run: &RunState, step: &OpenStep) -> Option<Todo> {
    (step.services.is_none() && started(run).next().is_some()).then_some(Todo::Effect(Effect::CheckServices))
}

/// The same outside of steps, once for each round of checks.
pub fn before_checks(run: &RunState, phase: Phase) -> Option<Todo> {
    let place = (run.iteration_number(), phase);
    let wanted = started(run).next().is_some() && run.value().services_for != Some(place);
    wanted.then_some(Todo::Effect(Effect::CheckServices))
}

/// The round of checks that comes next here.
fn round(run: &RunState) -> Option<Phase> {
    match run.state {
        State::DreamGoal => Some(Phase::Baseline),
        State::CheckHalting => Some(Phase::Iteration),
        State::BudgetCheck => Some(Phase::Replay(1)),
        _ => None,
    }
}

/// Is a service that is down to be mended now? One that was never up may still have to be built: that comes first,
/// unless nothing is left to be built, or checks fail already.
pub fn is_to_be_mended(run: &RunState, name: &str) -> bool {
    let was_healthy = || run.value().lives.get(name).is_some_and(|life| life.was_healthy);
    let fails = || run.value().count(VerificationStatus::Failed) > 0;
    !is_started(run, name) || was_healthy() || fails() || pick::waiting(run).next().is_none()
}

/// A service that the engine starts and that was not healthy at the latest look.
pub fn down(run: &RunState) -> Option<&str> {
    let mut sick = run.value().services.iter().filter(|one| !one.healthy).map(|one| one.name.as_str());
    sick.find(|name| is_started(run, name))
}

/// May this change of the declarations be taken? The error goes back to the agent.
pub fn admit(run: &RunState, wish: &ManageService) -> Result<(), String> {
    let by_person = |name: &str| run.value_settings().services.iter().any(|one| one.name == name);
    let refused = |name: &str| {
        format!("the service `{name}` is declared in loop.yaml, which only a person changes: change the code instead")
    };
    match wish.action {
        ServiceAction::Remove => {
            let name = wish.name.as_deref().unwrap_or_default();
            if by_person(name) {
                return Err(refused(name));
            }
            if !declared(run).any(|service| service.name == name) {
                return Err(format!("there is no service `{name}`"));
            }
            let purpose = run.call.as_ref().map(|call| call.purpose());
            match purpose {
                Some(Purpose::Plan | Purpose::Preflight | Purpose::CourseCorrect) => Ok(()),
                Some(_) | None => Err("whoever builds or mends does not do without a service: make it work".to_owned()),
            }
        }
        ServiceAction::Put => {
            let service = wish.service.as_ref().ok_or("`service` is missing")?;
            if by_person(&service.name) {
                return Err(refused(&service.name));
            }
            let known = declared(run).find(|one| one.name == service.name);
            if known.is_none() && declared(run).count() >= MAX_SERVICES {
                return Err(format!("there are {MAX_SERVICES} services already"));
            }
            if known.is_some_and(|known| service.shows_less_than(known)) {
                return Err("the health check would show less than before: keep its kind".to_owned());
            }
            no_network(run).filter(|_| service.is_started()).map_or(Ok(()), |why| Err(why.to_owned()))
        }
    }
}

pub(super) fn legal_start(run: &RunState, event: &ServiceStarted) -> Result<(), String> {
    let name = &event.service.name;
    let life = run.value().lives.get(name);
    if started(run).find(|service| service.name == *name) != Some(&*event.service) {
        return Err(format!("the service {name} is not declared like this"));
    }
    if life.is_some_and(|life| life.runs.is_some()) {
        return Err(format!("the service {name} runs already"));
    }
    if event.start != life.map_or(0, |life| life.starts) || event.start >= MAX_STARTS {
        return Err(format!("it is not start {} of the service {name}", event.start));
    }
    Ok(())
}

pub(super) fn legal_end(run: &RunState, event: &ServiceEnded) -> Result<(), String> {
    let runs = run.value().lives.get(&event.name).is_some_and(|life| life.runs.is_some());
    if runs { Ok(()) } else { Err(format!("the service {} does not run", event.name)) }
}

/// Outside of steps, services are for the checks that come next.
pub(super) fn legal_place(run: &RunState) -> Result<(), String> {
    if run.value().step.is_some() {
        return Ok(());
    }
    match round(run).filter(|_| started(run).next().is_some()) {
        Some(_) => Ok(()),
        None => Err("no step is open".to_owned()),
    }
}

/// Agents declare, anew or for the first time.
pub(super) fn declare(value: &mut ValueState, service: &Service) {
    match value.declared.iter_mut().find(|one| one.name == service.name) {
        Some(known) => *known = service.clone(),
        None => value.declared.push(service.clone()),
    }
}

pub(super) fn manage(value: &mut ValueState, wish: &ManageService) {
    match (wish.action, &wish.service, &wish.name) {
        (ServiceAction::Put, Some(service), _) => declare(value, service),
        (ServiceAction::Remove, _, Some(name)) => {
            value.declared.retain(|service| service.name != *name);
            value.services.retain(|service| service.name != *name);
        }
        (ServiceAction::Put, None, _) | (ServiceAction::Remove, _, None) => {}
    }
}

pub(super) fn began(value: &mut ValueState, event: &ServiceStarted) {
    let life = value.lives.entry(event.service.name.clone()).or_default();
    life.starts = event.start.saturating_add(1);
    life.runs = Some(event.service.clone());
    life.stale = false;
}

pub(super) fn ended(value: &mut ValueState, event: &ServiceEnded) {
    if let Some(life) = value.lives.get_mut(&event.name) {
        life.runs = None;
        life.last_end = Some(event.how.clone());
    }
    // What was seen of it holds no longer for the checks that come.
    value.services_for = None;
}

pub(super) fn checked(run: &RunState, event: &ServicesChecked) -> Option<(u32, Phase)> {
    let outside = run.value().step.is_none() && !event.services.is_empty();
    round(run).filter(|_| outside).map(|phase| (run.iteration_number(), phase))
}

/// Files may be other ones now: what runs was started with the old ones, and what was seen of it does not count.
pub(super) fn files_changed(value: &mut ValueState) {
    for life in value.lives.values_mut() {
        life.stale = life.runs.is_some();
    }
    look_again(value);
}

/// The engine ended, and with it whatever it had started.
pub(super) fn engine_ended(value: &mut ValueState) {
    for life in value.lives.values_mut().filter(|life| life.runs.is_some()) {
        life.runs = None;
        life.last_end = Some("ended with the engine".to_owned());
    }
    look_again(value);
}

/// Where the engine started none yet, nothing was lost.
fn look_again(value: &mut ValueState) {
    if value.lives.is_empty() {
        return;
    }
    value.services_for = None;
    if let Some(step) = &mut value.step {
        step.services = None;
    }
}

#[cfg(test)]
mod tests;
