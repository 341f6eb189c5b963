//! SERVICE_FIX: bring services back to health. Never counts as progress.
//!
//! Role: look, let a fixer try once, look again. Invariant: neutral whatever comes of it, so that it neither hides
//! nor makes a standstill; how often it is tried in a row is the decision engine's business.

use crate::machine::event::Event;
use crate::machine::run::RunState;
use crate::machine::todo::{Effect, Todo};
use crate::model::purpose::{Purpose, Tool};
use crate::model::value::Outcome;
use crate::playbook::value::state::OpenStep;

use crate::playbook::value::finished;

use super::qc::named;

pub fn next(_run: &RunState, step: &OpenStep, services: &[String]) -> Option<Todo> {
    let tried = step.calls_for(Purpose::ServiceFix) > 0;
    match (step.service_checks, tried) {
        (0, _) | (1, true) => Some(Todo::Effect(Effect::CheckServices)),
        (_, false) if !sick(step, services).is_empty() => {
            let subject = Some(services.join(","));
            Some(Todo::StartAgent { purpose: Purpose::ServiceFix, paraphrase: None, subject })
        }
        _ => None,
    }
}

pub fn decide(_run: &RunState, step: &OpenStep, services: &[String]) -> Vec<Event> {
    let sick = sick(step, services);
    let tried = step.calls_for(Purpose::ServiceFix) > 0;
    let mut detail = match (sick.is_empty(), tried) {
        (true, true) => "the services are healthy again".to_owned(),
        (true, false) => "the services are healthy".to_owned(),
        (false, _) => format!("still not healthy: {}", named(&sick)),
    };
    if step.last_report(Tool::RequestHumanAction).is_some() {
        detail.push_str("; the fixer asks for a person");
    }
    vec![finished(step, Outcome::Neutral, detail)]
}

/// The services of this step that the latest look did not find healthy.
fn sick<'a>(step: &OpenStep, services: &'a [String]) -> Vec<&'a str> {
    let healthy = |name: &str| step.services.iter().flatten().any(|one| one.name == name && one.healthy);
    services.iter().map(String::as_str).filter(|name| !healthy(name)).collect()
}

#[cfg(test)]
mod tests;
