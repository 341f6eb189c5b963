//! The loop of the engine: ask the machine what to do, let it be done, until the run has ended.
//!
//! The driver decides nothing and does nothing itself: it routes what the machine wants to whoever does it. It holds
//! what cannot be folded (connections, caches, the watch for stop signals); losing all of it loses no truth.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::journal::{self, JournalError};
use crate::machine::claim;
use crate::machine::event::{BackpressureSeen, Event, PauseBegan, Signal};
use crate::machine::next;
use crate::machine::run::RunState;
use crate::machine::step::{self, Input};
use crate::machine::todo::{Effect, Todo};
use crate::tool::permit;

use super::backends::Agents;
use super::calls::Calls;
use super::command::Order;
use super::context::Context;
use super::ends;
use super::error::EngineError;
use super::evidence_files::EvidenceFiles;
use super::hub::Hub;
use super::network::{Network, course};
use super::observer::Observer;
use super::orders::ServerWait;
use super::recorder::Recorder;
use super::rounds::Rounds;
use super::session::Session;
use super::signals::Signals;
use super::trees::Trees;
use super::value::services::Running;
use super::{downstream, git, guards, items, iteration, learn, northstar, people, probes, value};

/// How a run is heard and told: where viewers listen, and where orders arrive.
pub struct Ports {
    pub hub: Hub,
    pub orders: mpsc::Receiver<Order>,
}

/// Runs one session to its end.
pub struct Driver<'a> {
    cx: Context<'a>,
    calls: Calls,
    trees: Trees,
    evidence: EvidenceFiles,
    /// Looks at the clock.
    ends: ends::Watch,
    /// Since when a person is waited for, in this process.
    waiting_since: Option<Instant>,
}

impl<'a> Driver<'a> {
    pub fn new(
        session: Session,
        agents: Agents,
        signals: Signals,
        ports: Ports,
        observer: &'a mut dyn Observer,
    ) -> Result<Self, EngineError> {
        let rules = permit::rules(&session.state)
            .map_err(|e| EngineError::usage(e.to_string(), "rules look like `shell(cargo *)`"))?;
        let ends = ends::Watch::begin(&session.state, signals.raiser(), ports.hub.clone());
        Ok(Self {
            ends,
            cx: Context {
                recorder: Recorder::new(session, ports.hub, observer),
                signals,
                orders: ports.orders,
                rules,
                secrets: Arc::clone(agents.secrets()),
                server_wait: ServerWait::default(),
                checks: Rounds::default(),
                network: Network::default(),
                services: Running::default(),
                skip_waits: agents.skips_waits(),
                learnings_exposed: AtomicBool::new(false),
            },
            calls: Calls::new(agents),
            trees: Trees::default(),
            evidence: EvidenceFiles::default(),
            waiting_since: None,
        })
    }

    /// Runs until the run has ended, then renders and seals. Returns the final state.
    pub async fn run(mut self) -> Result<RunState, EngineError> {
        // Before anything is spent: a place that cannot be used then cannot be used later.
        learn::find(&mut self.cx).await?;
        self.evidence = EvidenceFiles::begin(self.cx.workspace(), self.cx.state(), self.cx.blobs())?;
        course::begin(&mut self.cx).await?;
        let watch = downstream::Watch::begin(&self.cx)?;
        let worked = self.work().await;
        watch.end().await;
        let stopped = self.cx.state().halt.as_ref().is_none_or(|halt| halt.signal.is_some());
        self.cx.services.end_all(!stopped).await;
        // Whatever else went wrong is what is told.
        let worked = worked.and(course::end(&mut self.cx).await);
        match worked {
            Ok(()) => self.cx.recorder.session.finish().await,
            Err(EngineError::Journal(JournalError::DiskFull { path })) => {
                self.halt_on_full_disk().await?;
                Err(JournalError::DiskFull { path }.into())
            }
            Err(error) => Err(error),
        }
    }

    async fn work(&mut self) -> Result<(), EngineError> {
        loop {
            self.cx.take_orders().await?;
            course::settle(&mut self.cx).await?;
            self.watch_signals().await?;
            while let Some(slept) = self.ends.nap() {
                self.cx.record(slept).await?;
            }
            journal::failpoint("step");
            let todo = next::next(self.cx.state());
            if todo == Todo::Finished {
                return Ok(());
            }
            self.perform(todo).await?;
        }
    }

    /// Hands what is to be done to whoever does it.
    async fn perform(&mut self, todo: Todo) -> Result<(), EngineError> {
        if todo != Todo::AwaitPerson {
            self.waiting_since = None;
        }
        let cx = &mut self.cx;
        match todo {
            Todo::Finished => Ok(()),
            Todo::Proceed => proceed(cx).await,
            Todo::ReadNorthstar => northstar::read(cx).await,
            Todo::TakeTree(purpose) => self.trees.take(cx, purpose).await,
            Todo::RunProbe(phase, probe) => probes::run_probe(cx, phase, probe).await,
            Todo::WritePlan => iteration::write_plan(cx, &mut self.evidence).await,
            Todo::BeginIteration => iteration::begin(cx, &mut self.evidence).await,
            Todo::StartAgent { purpose, paraphrase, subject } => {
                // Nothing is spent on an agent that lacks what its work needs.
                match downstream::all_there(cx).await? {
                    true => self.calls.start(cx, purpose, paraphrase, subject).await,
                    false => Ok(()),
                }
            }
            Todo::Effect(effect) => self.make(effect).await,
            Todo::Call(todo) => self.calls.go_on(cx, &mut self.trees, todo).await,
            Todo::CompareGuards => guards::compare(cx, &mut self.trees).await,
            Todo::CollectArtifacts => self.trees.collect(cx, &mut self.evidence.mended).await,
            Todo::CollectPartial => self.trees.collect_partial(cx).await,
            Todo::WriteLearnings => learn::write(cx, &mut self.evidence).await,
            Todo::Settle(id) => people::settle(cx, id).await,
            Todo::BeginPause => cx.record(PauseBegan {}).await,
            Todo::AwaitPerson => people::await_person(cx, &mut self.evidence, &mut self.waiting_since).await,
        }
    }

    /// Makes an effect that a playbook asks for; what came of it is recorded.
    async fn make(&mut self, effect: Effect) -> Result<(), EngineError> {
        let cx = &mut self.cx;
        match effect {
            Effect::ReadDocuments => value::read_documents(cx).await,
            Effect::WriteDocument { path, text } => value::write_document(cx, &path, &text).await,
            Effect::RunProbes(probes) => probes::run_probes(cx, probes, 0).await,
            Effect::RunProbesAgain(nth, probes) => probes::run_probes(cx, probes, nth).await,
            Effect::LookAtWork => value::changes::look(cx, &mut self.trees).await,
            Effect::FindVerifications => value::find_verifications(cx).await,
            Effect::CheckServices => value::check_services(cx).await,
            Effect::CheckPreflight => value::check_preflight(cx).await,
            Effect::Git(operation) => git::perform(cx, operation).await,
            Effect::Undo(iteration) => git::undo(cx, &mut self.evidence, iteration).await,
            Effect::ReadPrd(when) => items::read_prd(cx, when).await,
            Effect::RestorePrd => items::restore_prd(cx).await,
            Effect::SettleItem => items::settle_item(cx).await,
        }
    }

    /// A stop signal is recorded once; what it means is the machine's decision.
    async fn watch_signals(&mut self) -> Result<(), EngineError> {
        let cx = &mut self.cx;
        cx.signals.poll();
        let Some((signal, detail)) = cx.signals.seen() else { return Ok(()) };
        // Answered at the last moment: there is nothing left to stop for.
        if signal == Signal::DecisionNeeded && cx.state().operator.open().next().is_none() {
            cx.signals.take_back(signal);
            return Ok(());
        }
        let known = cx.state().backpressure.as_ref().is_some_and(|seen| seen.signal == signal);
        // What stops the run already is the reason; only to be told to go outweighs it.
        let stops = claim::must_stop(cx.state()) && !matches!(signal, Signal::UserInterrupt | Signal::Terminated);
        if known || stops || cx.state().halt.is_some() {
            return Ok(());
        }
        cx.record(BackpressureSeen { signal, detail }).await
    }

    /// Uses the journal's reserve to say why the run stops.
    async fn halt_on_full_disk(&mut self) -> Result<(), EngineError> {
        let state = self.cx.state();
        if state.halt.is_some() {
            return Ok(());
        }
        let seen = BackpressureSeen { signal: Signal::DiskUsage, detail: "the journal's disk is full".to_owned() };
        let mut after = state.clone();
        after.backpressure = Some(seen.clone());
        // Where a full disk does not stop the run, there is nothing to decide before its effects are done.
        if !claim::must_stop(&after) {
            return Ok(());
        }
        let mut events = vec![Event::from(seen)];
        events.extend(step::step(&after, Input::Proceed));
        self.cx.recorder.append(events).await
    }
}

async fn proceed(cx: &mut Context<'_>) -> Result<(), EngineError> {
    let events = step::step(cx.state(), Input::Proceed);
    if events.is_empty() {
        return Err(EngineError::Internal(format!("no way on from {}", cx.state().state)));
    }
    cx.recorder.append(events).await
}
