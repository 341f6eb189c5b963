//! Orders of people: each becomes an event, or is refused with a reason.
//!
//! Role: what an order means as an event, and whether it can be one now. Not its role: what follows from it (the machine
//! decides), or where orders come from (`command`, `control`). Invariant: whoever gave an order is told what became of
//! it, after it is durable.

use std::path::Path;

use crate::journal::JournalError;
use crate::machine::event::{
    BudgetRaised, DecisionAnswered, Event, PauseLifted, PauseRequested, RetryRequested, Signal, SteerQueued,
    StopScheduled, UndoRequested, ViewerAttached, ViewerDetached,
};
use crate::machine::operator::DecisionStatus;
use crate::machine::step::{self, Input};
use crate::model::decision::{Answer, DecisionId, MAX_PROPOSAL, Request};
use crate::model::digest::Digest;
use crate::model::learnings::flatten;
use crate::workspace::document;

use super::command::{Command, Order, Receipt};
use super::error::EngineError;
use super::recorder::{self, Recorder};
use super::remembered;
use super::signals::{self, STOP_FILE, Signals};

/// The longest number of a limit.
const MAX_NUMBER: usize = 40;
/// The longest name of whoever sent an order.
const MAX_NAME: usize = 80;

/// A wait for the model server, and whether an operator cut it short.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ServerWait {
    pub going_on: bool,
    pub retry_now: bool,
}

/// Records an order, or says why not.
pub(super) async fn take(
    run: &mut Recorder<'_>,
    signals: &Signals,
    wait: &mut ServerWait,
    order: Order,
) -> Result<(), EngineError> {
    let Order { command, by, receipt } = order;
    let by: String = flatten(&by).chars().take(MAX_NAME).collect();
    let answer = match command {
        Command::Stop => stop(run, signals, &by),
        other => match consider(run, wait, other, by) {
            Ok((event, said)) => record(run, event, said).await?,
            Err(why) => Err(why),
        },
    };
    // Whoever asked may be gone.
    let _ = receipt.send(answer);
    Ok(())
}

async fn record(run: &mut Recorder<'_>, event: Event, said: String) -> Result<Receipt, EngineError> {
    let events = step::step(run.state(), Input::Record(Box::new(event)));
    let refused = recorder::rejection(&events).map(|(_, why)| why.to_owned());
    let first = events.first().cloned().filter(|_| refused.is_none());
    match run.append(events).await {
        Ok(()) => {
            // "Always" is remembered for later runs in this workspace, too.
            let session = &run.session;
            let kept =
                first.and_then(|event| remembered::keep(&session.root, &session.workspace, &session.state, &event));
            let said = kept.map(|kept| format!("{said}, {kept}")).unwrap_or(said);
            Ok(refused.map_or(Ok(said), Err))
        }
        // Nothing was written; the run has nothing to do with it.
        Err(EngineError::Journal(JournalError::TooLarge { .. })) => Ok(Err("that is too long".to_owned())),
        Err(error) => Err(error),
    }
}

/// The event that an order becomes, and what the operator is told.
fn consider(
    run: &Recorder<'_>,
    wait: &mut ServerWait,
    command: Command,
    by: String,
) -> Result<(Event, String), String> {
    let operator = &run.state().operator;
    Ok(match command {
        Command::Pause => (PauseRequested { by }.into(), "the run will pause after this step".to_owned()),
        Command::Resume => (PauseLifted { by }.into(), "the run continues".to_owned()),
        Command::Stop => return Err("a stop is a file, not an event".to_owned()),
        Command::StopAfterIteration(scheduled) => {
            let said = if scheduled { "the run will stop after this iteration" } else { "the run will not stop early" };
            (StopScheduled { by, scheduled }.into(), said.to_owned())
        }
        Command::RetryNow => {
            if !wait.going_on {
                return Err("the run is not waiting for a model server".to_owned());
            }
            wait.retry_now = true;
            (RetryRequested { by }.into(), "retrying now".to_owned())
        }
        Command::Steer(text) => {
            let number = operator.next_steer();
            let said = format!("message {number} is queued for the next agent call");
            (SteerQueued { number, text, by }.into(), said)
        }
        Command::Undo(iteration) => {
            let said = format!("iteration {iteration} will be undone before the next step");
            (UndoRequested { iteration, by }.into(), said)
        }
        Command::RaiseBudget { to, .. } if to.len() > MAX_NUMBER => return Err("that is not a number".to_owned()),
        Command::RaiseBudget { dimension, to } => {
            let from = run.state().limits.of(dimension).ok_or_else(|| format!("{dimension} is not limited"))?;
            let said = format!("{dimension}: {from} → {to}, recorded as an override");
            (BudgetRaised { dimension, from, to, by }.into(), said)
        }
        Command::Answer { id, answer, note, document } => {
            check_answer(run, id, &answer, document)?;
            let said = format!("{id} answered: {}", answer.name());
            (DecisionAnswered { id, answer, note, by }.into(), said)
        }
        Command::Attached { may_act } => (ViewerAttached { viewer: by, may_act }.into(), String::new()),
        Command::Detached { why } => (ViewerDetached { viewer: by, why: flatten(&why) }.into(), String::new()),
    })
}

/// Writes scratch/STOP with the name of who wants it; the watch sees it like any other.
fn stop(run: &Recorder<'_>, signals: &Signals, by: &str) -> Receipt {
    signals::write_stop(&run.session.workspace, by).map_err(|e| format!("{STOP_FILE} cannot be written: {e}"))?;
    signals.raise(Signal::StopFile, by);
    Ok(format!("the run is stopping ({STOP_FILE} is written); `nightloop resume` continues it"))
}

/// Keeps the document of an approval, and sees that nobody changed the original meanwhile.
fn check_answer(run: &Recorder<'_>, id: DecisionId, answer: &Answer, document: Option<String>) -> Result<(), String> {
    let Answer::Approve { result } = answer else { return Ok(()) };
    let decision = run.state().operator.decision(id).ok_or_else(|| format!("there is no decision {id}"))?;
    if decision.status != DecisionStatus::Open {
        return Err(format!("{id} is already answered"));
    }
    let Request::Refinement { path, before, .. } = &decision.request else { return Ok(()) };
    if let Some(text) = document {
        if text.len() > MAX_PROPOSAL {
            return Err(format!("the document has more than {MAX_PROPOSAL} bytes"));
        }
        let kept = run.session.blobs.put(text.as_bytes()).map_err(|e| e.to_string())?;
        if kept != *result {
            return Err("the document is not the one that was approved".to_owned());
        }
    } else if !run.session.blobs.path(result).exists() {
        return Err("the approved document is missing".to_owned());
    }
    if document_now(&run.session.workspace, path)? == *before {
        Ok(())
    } else {
        Err(format!("{path} has changed since: the proposal no longer applies"))
    }
}

pub(super) fn document_now(workspace: &Path, path: &str) -> Result<Digest, String> {
    let bytes = document::read(workspace, path, MAX_PROPOSAL)?;
    Ok(Digest::of(&bytes.unwrap_or_default()))
}
