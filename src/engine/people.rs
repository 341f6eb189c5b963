//! Where the run meets people: it waits for them, takes their orders, carries out their answers.
//!
//! Orders come at any moment, also while a model writes or a check runs; each becomes an event or is refused
//! with a reason. Nothing here decides what an answer means: the machine does.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::evidence::permit;
use crate::evidence::render;
use crate::journal::JournalError;
use crate::machine::event::{
    BudgetRaised, DecisionAnswered, DecisionSettled, Event, PauseBegan, PauseLifted, PauseRequested, Probe,
    RetryRequested, RunEvent, Signal, SteerQueued, StopScheduled, UndoRequested, ViewerAttached, ViewerDetached,
};
use crate::machine::operator::{Decision, DecisionStatus};
use crate::machine::step::{self, Input};
use crate::model::decision::{Answer, DecisionId, MAX_PROPOSAL, Mode, Request};
use crate::model::digest::Digest;
use crate::model::learnings::flatten;
use crate::tool::process::{self, Access, CommandSpec};
use crate::workspace::document;
use crate::workspace::plain::Durability;

use super::command::{Command, Order, Receipt};
use super::driver::{Cutoff, Driver, Guarded, stop_comes};
use super::error::EngineError;
use super::remembered;
use super::signals::{self, STOP_FILE};
use super::tools::PROTECTED;

/// Orders that are taken between two steps.
const ORDERS_PER_STEP: usize = 16;
/// The longest number of a limit.
const MAX_NUMBER: usize = 40;
/// The longest name of whoever sent an order.
const MAX_NAME: usize = 80;

impl Driver<'_> {
    /// Nothing to do until a person acts, a stop comes, or patience ends.
    pub(super) async fn await_person(&mut self) -> Result<(), EngineError> {
        let patience = self.session.state.operator.patience;
        let asked = self.session.state.operator.open().next().map(describe);
        if let Some(asked) = asked.clone().filter(|_| patience.mode == Mode::Stop) {
            self.signals.raise(Signal::DecisionNeeded, asked);
            return Ok(());
        }
        let patience_ends = match (asked, patience.timeout_minutes) {
            (Some(asked), minutes) if minutes > 0 => Some((asked, Duration::from_secs(minutes.saturating_mul(60)))),
            _ => None,
        };
        if self.waiting_since.is_none() {
            // Whoever looks without a console finds what is asked.
            self.write_evidence(&render::of_run(&self.session.state), Durability::Replaceable)?;
        }
        let began = *self.waiting_since.get_or_insert_with(Instant::now);
        let deadline = async {
            match patience_ends {
                Some((asked, limit)) => {
                    tokio::time::sleep_until(began + limit).await;
                    asked
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            order = self.orders.recv() => match order {
                Some(order) => self.take_order(order).await,
                // Nobody can give orders any more; a stop can still come.
                None => {
                    stop_comes(&self.signals, &self.session.state).await;
                    Ok(())
                }
            },
            () = stop_comes(&self.signals, &self.session.state) => Ok(()),
            asked = deadline => {
                self.signals.raise(Signal::DecisionNeeded, format!("{asked} (nobody answered in time)"));
                Ok(())
            }
        }
    }

    pub(super) async fn begin_pause(&mut self) -> Result<(), EngineError> {
        self.record(PauseBegan {}).await
    }

    /// Takes orders that are there, without waiting, and not so many that nothing else gets its turn.
    pub(super) async fn take_orders(&mut self) -> Result<(), EngineError> {
        for _ in 0..ORDERS_PER_STEP {
            let Ok(order) = self.orders.try_recv() else { break };
            self.take_order(order).await?;
        }
        Ok(())
    }

    /// Records an order, or says why not.
    pub(super) async fn take_order(&mut self, order: Order) -> Result<(), EngineError> {
        let Order { command, by, receipt } = order;
        let by: String = flatten(&by).chars().take(MAX_NAME).collect();
        let answer = match command {
            Command::Stop => self.order_stop(&by),
            other => match self.consider_order(other, by) {
                Ok((event, said)) => self.record_order(event, said).await?,
                Err(why) => Err(why),
            },
        };
        // Whoever asked may be gone.
        let _ = receipt.send(answer);
        Ok(())
    }

    async fn record_order(&mut self, event: Event, said: String) -> Result<Receipt, EngineError> {
        let events = step::step(&self.session.state, Input::Record(Box::new(event)));
        let refused = events.iter().find_map(|event| match event {
            Event::Run(RunEvent::InputRejected(rejected)) => Some(rejected.why.clone()),
            _ => None,
        });
        let first = events.first().cloned().filter(|_| refused.is_none());
        match self.append(events).await {
            Ok(()) => {
                let kept = first.and_then(|event| self.keep_rule(&event));
                let said = kept.map(|kept| format!("{said}, {kept}")).unwrap_or(said);
                Ok(refused.map_or(Ok(said), Err))
            }
            // Nothing was written; the run has nothing to do with it.
            Err(EngineError::Journal(JournalError::TooLarge { .. })) => Ok(Err("that is too long".to_owned())),
            Err(error) => Err(error),
        }
    }

    /// "Always" is remembered for later runs in this workspace, too.
    fn keep_rule(&self, event: &Event) -> Option<String> {
        let session = &self.session;
        remembered::keep(&session.root, &session.workspace, &session.state, event)
    }

    /// The event that an order becomes, and what the operator is told.
    fn consider_order(&mut self, command: Command, by: String) -> Result<(Event, String), String> {
        let operator = &self.session.state.operator;
        Ok(match command {
            Command::Pause => (PauseRequested { by }.into(), "the run will pause after this step".to_owned()),
            Command::Resume => (PauseLifted { by }.into(), "the run continues".to_owned()),
            Command::Stop => return Err("a stop is a file, not an event".to_owned()),
            Command::StopAfterIteration(scheduled) => {
                let said =
                    if scheduled { "the run will stop after this iteration" } else { "the run will not stop early" };
                (StopScheduled { by, scheduled }.into(), said.to_owned())
            }
            Command::RetryNow => {
                if !self.waiting_for_server {
                    return Err("the run is not waiting for a model server".to_owned());
                }
                self.retry_now = true;
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
                let from =
                    self.session.state.limits.of(dimension).ok_or_else(|| format!("{dimension} is not limited"))?;
                let said = format!("{dimension}: {from} → {to}, recorded as an override");
                (BudgetRaised { dimension, from, to, by }.into(), said)
            }
            Command::Answer { id, answer, note, document } => {
                self.check_answer(id, &answer, document)?;
                let said = format!("{id} answered: {}", answer.name());
                (DecisionAnswered { id, answer, note, by }.into(), said)
            }
            Command::Attached { may_act } => (ViewerAttached { viewer: by, may_act }.into(), String::new()),
            Command::Detached { why } => (ViewerDetached { viewer: by, why: flatten(&why) }.into(), String::new()),
        })
    }

    /// Writes scratch/STOP with the name of who wants it; the watch sees it like any other.
    fn order_stop(&self, by: &str) -> Receipt {
        signals::write_stop(&self.session.workspace, by).map_err(|e| format!("{STOP_FILE} cannot be written: {e}"))?;
        self.signals.raise(Signal::StopFile, by);
        Ok(format!("the run is stopping ({STOP_FILE} is written); `nightloop resume` continues it"))
    }

    /// Keeps the document of an approval, and sees that nobody changed the original meanwhile.
    fn check_answer(&self, id: DecisionId, answer: &Answer, document: Option<String>) -> Result<(), String> {
        let Answer::Approve { result } = answer else { return Ok(()) };
        let decision = self.session.state.operator.decision(id).ok_or_else(|| format!("there is no decision {id}"))?;
        if decision.status != DecisionStatus::Open {
            return Err(format!("{id} is already answered"));
        }
        let Request::Refinement { path, before, .. } = &decision.request else { return Ok(()) };
        if let Some(text) = document {
            if text.len() > MAX_PROPOSAL {
                return Err(format!("the document has more than {MAX_PROPOSAL} bytes"));
            }
            let kept = self.session.blobs.put(text.as_bytes()).map_err(|e| e.to_string())?;
            if kept != *result {
                return Err("the document is not the one that was approved".to_owned());
            }
        } else if !self.session.blobs.path(result).exists() {
            return Err("the approved document is missing".to_owned());
        }
        if self.document_now(path)? == *before {
            Ok(())
        } else {
            Err(format!("{path} has changed since: the proposal no longer applies"))
        }
    }

    fn document_now(&self, path: &str) -> Result<Digest, String> {
        let bytes = document::read(&self.session.workspace, path, MAX_PROPOSAL)?;
        Ok(Digest::of(&bytes.unwrap_or_default()))
    }

    /// Carries out an answer. May be repeated after a crash.
    pub(super) async fn settle(&mut self, id: DecisionId) -> Result<(), EngineError> {
        let decision = self.session.state.operator.decision(id).cloned();
        let Some(Decision { request, answer: Some(answered), .. }) = decision else {
            return Err(EngineError::Internal(format!("{id} has no answer to carry out")));
        };
        let settled = match (request, answered.answer) {
            (Request::HumanAction { verify: Some(argv), timeout_seconds, .. }, Answer::Done) => {
                match self.verify_action(id, argv, timeout_seconds).await? {
                    Some(settled) => settled,
                    // A stop came first; the verification runs again on resume.
                    None => return Ok(()),
                }
            }
            (Request::Refinement { path, before, .. }, Answer::Approve { result }) => {
                self.write_document(id, &path, before, result)?
            }
            (request, answer) => {
                let what = format!("a {} answered `{}` needs nothing done", request.name(), answer.name());
                return Err(EngineError::Internal(what));
            }
        };
        self.record(settled).await
    }

    async fn verify_action(
        &mut self,
        id: DecisionId,
        argv: Vec<String>,
        seconds: u64,
    ) -> Result<Option<DecisionSettled>, EngineError> {
        let mut spec = CommandSpec::new(argv, &self.session.workspace, self.session.state.run().as_str());
        spec.timeout = Duration::from_secs(seconds);
        let token = CancellationToken::new();
        let access = self.call().map_or(Access::ReadOnly, |call| permit::access_of(call.role()));
        spec.confinement = self.confinement(access)?;
        let outcome = match self.guarded(&token, Cutoff::Never, process::run(spec, &token)).await? {
            Guarded::Done(outcome) | Guarded::Cut(outcome) => outcome,
            Guarded::Stopped(_) => return Ok(None),
        };
        let outcome = self.clean_process(outcome);
        let check = self.probe_result(&Probe::SubGoal, &outcome)?;
        let closed = check.end.passed();
        let detail = format!("the verification: {}", check.end.describe());
        Ok(Some(DecisionSettled { id, closed, check: Some(check), detail }))
    }

    fn write_document(
        &self,
        id: DecisionId,
        path: &str,
        before: Digest,
        result: Digest,
    ) -> Result<DecisionSettled, EngineError> {
        let text = self.session.blobs.get(&result)?;
        let settled = |closed, detail| DecisionSettled { id, closed, check: None, detail };
        let now = match self.document_now(path) {
            Ok(now) => now,
            Err(why) => return Ok(settled(false, why)),
        };
        if now != result {
            if now != before {
                return Ok(settled(false, format!("{path} was changed meanwhile; nothing was written")));
            }
            if let Err(why) = document::replace(&self.session.workspace, path, &text, &protected()) {
                return Ok(settled(false, why));
            }
        }
        Ok(settled(true, format!("{path} is written")))
    }

    /// Waits for the model server, unless a stop or an order to retry comes first.
    pub(super) async fn wait_out(&mut self, wait: Duration) -> Result<(), EngineError> {
        let until = Instant::now() + self.agents.wait(wait);
        self.waiting_for_server = true;
        self.retry_now = false;
        let mut result = Ok(());
        while result.is_ok() && !self.retry_now {
            tokio::select! {
                biased;
                () = stop_comes(&self.signals, &self.session.state) => break,
                Some(order) = self.orders.recv() => result = self.take_order(order).await,
                () = tokio::time::sleep_until(until) => break,
            }
        }
        self.waiting_for_server = false;
        result
    }

    /// Does the clock of the budget stand still?
    pub(super) fn holds(&self) -> bool {
        self.session.state.waits_for_people()
    }
}

/// Files that no approval may write either.
pub(super) fn protected() -> Vec<PathBuf> {
    PROTECTED.iter().map(PathBuf::from).collect()
}

fn describe(decision: &Decision) -> String {
    let gist: String = flatten(&decision.request.gist()).chars().take(200).collect();
    format!("{} ({}): {gist}", decision.id, decision.request.name())
}
