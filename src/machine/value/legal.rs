//! Which events of this playbook may follow.
//!
//! Role: refuse what no run of ours could have recorded, so that a forged journal does not fold. Not its role: whether
//! a decision is the right one (`verify` makes each of them again).

use std::collections::BTreeMap;

use crate::machine::event::Event;
use crate::machine::run::RunState;
use crate::machine::state::State;
use crate::model::value::{Verification, VerificationStatus};

use super::ValueState;

/// May this event follow?
pub(in crate::machine) fn legal(run: &RunState, event: &Event) -> Result<(), String> {
    let value = &run.value;
    match event {
        Event::StepBegan(began) => {
            if !matches!(run.state, State::DreamGoal | State::SpawnSubagent) {
                return Err(format!("{} does not begin in {}", began.action, run.state));
            }
            if value.step.is_some() {
                return Err("another step is open".to_owned());
            }
            if began.step != value.steps_begun {
                return Err("steps are numbered without gaps".to_owned());
            }
            Ok(())
        }
        Event::UndoRequested(undo) => may_undo(run, undo.iteration),
        Event::IterationUndone(undone) => {
            if value.undo == Some(undone.iteration) {
                Ok(())
            } else {
                Err("nobody asked for that".to_owned())
            }
        }
        // Undoing works between steps, too.
        Event::GitIntended(_) | Event::GitFinished(_) => Ok(()),
        _ if value.step.is_none() => Err("no step is open".to_owned()),
        Event::StepFinished(_) if run.call.is_some() => Err("an agent is still at work".to_owned()),
        Event::VerificationsFound(found) => legal_scripts(value, &found.verifications),
        Event::VerificationPut(put) => {
            let same = |known: &Verification| known.script == put.verification.script;
            match value.verifications.get(&put.verification.id) {
                Some(known) if same(known) => Ok(()),
                Some(_) => Err(format!("{} has another script", put.verification.id)),
                None => Err(format!("{} was never found", put.verification.id)),
            }
        }
        Event::StepFinished(_)
        | Event::TaskPut(_)
        | Event::DocumentsRead(_)
        | Event::VrcTaken(_)
        | Event::ServicesChecked(_)
        | Event::PreflightChecked(_)
        | Event::RoundKept(_)
        | Event::RoundClosed(_)
        | Event::ResearchKept(_)
        | Event::EpicPut(_) => Ok(()),
        _ => Err("it is no event of the value playbook".to_owned()),
    }
}

/// The set of scripts grows, and only what does not pass is written anew.
fn legal_scripts(value: &ValueState, found: &[Verification]) -> Result<(), String> {
    let by_id: BTreeMap<&String, &Verification> = found.iter().map(|one| (&one.id, one)).collect();
    if by_id.len() != found.len() {
        return Err("an id is used twice".to_owned());
    }
    for known in value.verifications.values() {
        match by_id.get(&known.id) {
            None => return Err(format!("{} is gone", known.id)),
            Some(now) if known.status == VerificationStatus::Passed && now.script != known.script => {
                return Err(format!("{} passes and has another script", known.id));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// May a person take this iteration back?
fn may_undo(run: &RunState, iteration: u32) -> Result<(), String> {
    let value = &run.value;
    if run.halt.is_some() {
        return Err("the run has ended".to_owned());
    }
    // What is being certified stands on its files; a success would not wait for the undo.
    if value.exit_gate_passed.is_some() && run.state != State::SpawnSubagent {
        return Err("the exit gate is passed and the result is being certified".to_owned());
    }
    if let Some(other) = value.undo {
        return Err(format!("iteration {other} is being taken back already"));
    }
    if !run.done.iter().any(|done| done.number() == iteration) {
        return Err(format!("iteration {iteration} is not finished"));
    }
    if value.undone.contains(&iteration) {
        return Err(format!("iteration {iteration} was taken back already"));
    }
    if value.git.facts.as_ref().is_none_or(|facts| facts.branch.is_none()) {
        return Err("the run has no branch of its own in a git repository".to_owned());
    }
    if !value.git.starts.contains_key(&iteration) {
        return Err(format!("where iteration {iteration} began is not on the run's branch"));
    }
    Ok(())
}
