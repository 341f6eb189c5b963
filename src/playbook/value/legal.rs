//! Which events of this playbook may follow, which reports are taken, what may be taken back.
//!
//! Role: refuse what no run of ours could have recorded, so that a forged journal does not fold. Not its role: whether
//! a decision is the right one (`verify` makes each of them again).

use std::collections::BTreeMap;

use crate::machine::run::RunState;
use crate::machine::state::State;
use crate::model::value::guard;
use crate::model::value::tools::Structured;
use crate::model::value::{Action, Verification, VerificationStatus};

use super::event::ValueEvent;
use super::services;
use super::state::{ValueState, source_of};

/// May this event follow?
pub fn legal(run: &RunState, event: &ValueEvent) -> Result<(), String> {
    let value = run.value();
    match event {
        ValueEvent::StepBegan(began) => {
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
        ValueEvent::ClaimTakenBack(taken) => {
            if run.state != State::BudgetCheck || value.exit_gate_passed.is_none() {
                return Err("no passed exit gate is being certified".to_owned());
            }
            let same =
                |one: &Verification| value.verifications.get(&one.id).is_some_and(|now| now.script == one.script);
            let known = !taken.verifications.is_empty() && taken.verifications.iter().all(same);
            if known { Ok(()) } else { Err("it names a script that was never found".to_owned()) }
        }
        ValueEvent::ServiceStarted(started) => {
            services::legal_place(run).and_then(|()| services::legal_start(run, started))
        }
        ValueEvent::ServiceEnded(ended) => services::legal_place(run).and_then(|()| services::legal_end(run, ended)),
        ValueEvent::ServicesChecked(_) => services::legal_place(run),
        _ if value.step.is_none() => Err("no step is open".to_owned()),
        ValueEvent::StepFinished(_) if run.call.is_some() => Err("an agent is still at work".to_owned()),
        ValueEvent::VerificationsFound(found) => legal_scripts(value, &found.verifications),
        ValueEvent::VerificationPut(put) => {
            let same = |known: &Verification| known.script == put.verification.script;
            match value.verifications.get(&put.verification.id) {
                Some(known) if same(known) => Ok(()),
                Some(_) => Err(format!("{} has another script", put.verification.id)),
                None => Err(format!("{} was never found", put.verification.id)),
            }
        }
        ValueEvent::StepFinished(_)
        | ValueEvent::TaskPut(_)
        | ValueEvent::DocumentsRead(_)
        | ValueEvent::VrcTaken(_)
        | ValueEvent::PreflightChecked(_)
        | ValueEvent::RoundKept(_)
        | ValueEvent::RoundClosed(_)
        | ValueEvent::ResearchKept(_)
        | ValueEvent::WorkSeen(_)
        | ValueEvent::EpicPut(_) => Ok(()),
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

/// May this structured report be taken now? The error goes back to the agent.
pub fn admit(run: &RunState, report: &Structured) -> Result<(), String> {
    let value = run.value();
    let step = value.step.as_ref().ok_or("no step is open")?;
    match report {
        Structured::ManageTask(wish) => {
            guard::judge(&value.tasks, run.value_settings(), source_of(&step.action), step.number, wish).map(|_| ())
        }
        Structured::ReportTaskComplete(complete) => match &step.action {
            Action::Execute { task } if *task == complete.task_id => Ok(()),
            Action::Execute { task } => Err(format!("this call is for task {task}, not {}", complete.task_id)),
            _ => Err("no task is being worked on".to_owned()),
        },
        Structured::RequestHumanAction(request) => {
            let id = &request.blocked_task_id;
            let known = id.is_empty() || value.task(id).is_some();
            if known { Ok(()) } else { Err(format!("there is no task `{id}`")) }
        }
        Structured::ReportWrongCheck(wrong) => disputable(run, &step.action, &wrong.check),
        Structured::ManageService(wish) => services::admit(run, wish),
        Structured::ReportStrategyChange(change) => change.within(run.value_settings()),
        _ => Ok(()),
    }
}

/// May this check be said to be wrong here? Each is looked at once.
fn disputable(run: &RunState, action: &Action, check: &str) -> Result<(), String> {
    let value = run.value();
    let of_task = |task: &str| value.task(task).filter(|one| one.id == check && one.check.is_some());
    let task = match action {
        Action::Execute { task } => of_task(task),
        _ => None,
    };
    let script = value.verifications.get(check);
    let Some(earlier) = task.map(|one| &one.dispute).or_else(|| script.map(|one| &one.dispute)) else {
        return Err(format!("`{check}` is no check of this call: name a verification, or the task you were given"));
    };
    match (earlier, script.filter(|_| task.is_none())) {
        (Some(_), _) => Err(format!("the check `{check}` was looked at once and is settled: work towards it")),
        (None, Some(one)) if one.status == VerificationStatus::Passed => Err(format!("`{check}` passes")),
        (None, _) => Ok(()),
    }
}

/// May a person take an iteration back here?
pub fn may_undo(run: &RunState) -> Result<(), String> {
    if run.halt.is_some() {
        return Err("the run has ended".to_owned());
    }
    // What is being certified stands on its files; a success would not wait for the undo.
    if run.value().exit_gate_passed.is_some() && run.state != State::SpawnSubagent {
        return Err("the exit gate is passed and the result is being certified".to_owned());
    }
    Ok(())
}
