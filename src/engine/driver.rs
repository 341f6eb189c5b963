//! The loop of the engine: ask the machine what to do, do it, record it.
//!
//! The driver decides nothing. It holds what cannot be folded (connections, caches, the watch for stop
//! signals); losing all of it loses no truth.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::evidence::permit;
use crate::evidence::render;
use crate::evidence::store;
use crate::journal::{self, JournalError};
use crate::machine::claim;
use crate::machine::event::{BackpressureSeen, BudgetCut, Event, Phase, RunEvent, Signal};
use crate::machine::fold;
use crate::machine::next;
use crate::machine::run::RunState;
use crate::machine::step::{self, Input};
use crate::machine::todo::Todo;
use crate::model::budget::{self, Exhausted, Spent};
use crate::model::decision::DecisionId;
use crate::model::rendered::Rendered;
use crate::tool::permission::Rules;
use crate::workspace::plain::Durability;
use crate::workspace::tree::{FileState, TreeCache};

use super::backends::Agents;
use super::command::Order;
use super::conversation::Messages;
use super::error::EngineError;
use super::git::effective::Effective;
use super::hub::Hub;
use super::observer::Observer;
use super::session::{self, Session};
use super::signals::{self, Signals};

/// How a guarded effect came out.
pub(super) enum Guarded<T> {
    Done(T),
    /// A stop signal came first; the effect was cancelled and has ended.
    Stopped(T),
    /// A limit was reached first; the effect was cancelled and has ended.
    Cut(T),
}

/// What limits the time of an effect.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cutoff {
    Never,
    /// The time of the iteration and of the run.
    Agent,
    /// What a check of this phase may take.
    Probe(Phase),
}

/// How a run is heard and told: where viewers listen, and where orders arrive.
pub struct Ports {
    pub hub: Hub,
    pub orders: mpsc::Receiver<Order>,
}

/// Runs one session to its end.
pub struct Driver<'a> {
    pub(super) session: Session,
    pub(super) agents: Agents,
    pub(super) signals: Signals,
    pub(super) rules: Rules,
    pub(super) observer: &'a mut dyn Observer,
    pub(super) tree_cache: Option<TreeCache>,
    /// Git's configuration in force, as of these files of its own.
    pub(super) git_cache: Option<(BTreeMap<String, FileState>, Effective)>,
    /// Messages of the open conversation, so that blobs are read once.
    pub(super) messages: Messages,
    pub(super) hub: Hub,
    pub(super) orders: mpsc::Receiver<Order>,
    /// Is a wait for the model server going on, and has an operator cut it short?
    pub(super) waiting_for_server: bool,
    pub(super) retry_now: bool,
    /// Since when a person is waited for, in this process.
    pub(super) waiting_since: Option<Instant>,
    /// Decisions whose answer an agent program got from this engine: leave to act once is given once.
    pub(super) handed_out: BTreeSet<DecisionId>,
    /// The evidence of the iterations so far, so that the manifest need not be rendered from scratch.
    pub(super) manifest: Vec<render::Listed>,
    /// Places of ours that held something else and were put right; recorded with the next look at the workspace.
    pub(super) mended: Vec<String>,
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
        Ok(Self {
            session,
            agents,
            signals,
            rules,
            observer,
            tree_cache: None,
            git_cache: None,
            messages: Messages::new(),
            hub: ports.hub,
            orders: ports.orders,
            waiting_for_server: false,
            retry_now: false,
            waiting_since: None,
            handed_out: BTreeSet::new(),
            manifest: Vec::new(),
            mended: Vec::new(),
        })
    }

    /// Runs until the run has ended, then renders and seals. Returns the final state.
    pub async fn run(mut self) -> Result<RunState, EngineError> {
        let workspace = &self.session.workspace;
        // Before anything is spent: a place that cannot be used then cannot be used later.
        self.agents_md()?;
        self.mended = store::mend_folders(workspace)
            .map_err(|e| EngineError::io("cannot prepare the evidence directories", workspace, e))?;
        store::archive_foreign(workspace, self.session.state.run())
            .map_err(|e| EngineError::io("cannot archive earlier evidence", workspace, e))?;
        store::remove_leftovers(workspace)
            .map_err(|e| EngineError::io("cannot remove what a crash left behind", workspace, e))?;
        self.render_all()?;
        match self.work().await {
            Ok(()) => {}
            Err(EngineError::Journal(JournalError::DiskFull { path })) => {
                self.halt_on_full_disk().await?;
                return Err(JournalError::DiskFull { path }.into());
            }
            Err(error) => return Err(error),
        }
        self.finish().await
    }

    async fn work(&mut self) -> Result<(), EngineError> {
        loop {
            self.take_orders().await?;
            self.watch_signals().await?;
            journal::failpoint("step");
            let todo = next::next(&self.session.state);
            if todo != Todo::AwaitPerson {
                self.waiting_since = None;
            }
            match todo {
                Todo::Finished => return Ok(()),
                Todo::Proceed => self.proceed().await?,
                Todo::ReadNorthstar => self.read_northstar().await?,
                Todo::TakeTree(purpose) => self.take_tree(purpose).await?,
                Todo::RunProbe(phase, probe) => self.run_probe(phase, probe).await?,
                Todo::WritePlan => self.write_plan().await?,
                Todo::BeginIteration => self.begin_iteration().await?,
                Todo::StartAgent { purpose, paraphrase, subject } => {
                    self.start_agent(purpose, paraphrase, subject).await?;
                }
                Todo::Effect(effect) => self.make(effect).await?,
                Todo::Call(todo) => self.go_on_with_call(todo).await?,
                Todo::CollectArtifacts => self.collect_artifacts().await?,
                Todo::WriteLearnings => self.write_learnings().await?,
                Todo::Settle(id) => self.settle(id).await?,
                Todo::BeginPause => self.begin_pause().await?,
                Todo::AwaitPerson => self.await_person().await?,
            }
        }
    }

    async fn proceed(&mut self) -> Result<(), EngineError> {
        let events = step::step(&self.session.state, Input::Proceed);
        if events.is_empty() {
            return Err(EngineError::Internal(format!("no way on from {}", self.session.state.state)));
        }
        self.append(events).await
    }

    /// A stop signal is recorded once; what it means is the machine's decision.
    async fn watch_signals(&mut self) -> Result<(), EngineError> {
        self.signals.poll();
        let Some((signal, detail)) = self.signals.seen() else { return Ok(()) };
        // Answered at the last moment: there is nothing left to stop for.
        if signal == Signal::DecisionNeeded && self.session.state.operator.open().next().is_none() {
            self.signals.take_back(signal);
            return Ok(());
        }
        let known = self.session.state.backpressure.as_ref().is_some_and(|seen| seen.signal == signal);
        if known || self.session.state.halt.is_some() {
            return Ok(());
        }
        self.record(BackpressureSeen { signal, detail }).await
    }

    /// Passes one event through the machine and records what it says.
    pub(super) async fn record(&mut self, event: impl Into<Event>) -> Result<(), EngineError> {
        let events = step::step(&self.session.state, Input::Record(Box::new(event.into())));
        let rejected = events.iter().find_map(|event| match event {
            Event::Run(RunEvent::InputRejected(rejected)) => {
                Some(format!("{} was rejected: {}", rejected.input, rejected.why))
            }
            _ => None,
        });
        self.append(events).await?;
        // Going on would run the same effect again and again.
        rejected.map_or(Ok(()), |why| Err(EngineError::Internal(why)))
    }

    /// Makes events durable, folds them, shows them.
    pub(super) async fn append(&mut self, events: Vec<Event>) -> Result<(), EngineError> {
        let iteration = self.session.state.current.as_ref().map(|iteration| iteration.number());
        let drafts: Result<Vec<_>, _> = events.iter().map(|event| session::draft(iteration, event)).collect();
        let records = self.session.writer.append(drafts?).await?;
        for (record, event) in records.iter().zip(events) {
            let stamped = fold::Stamped {
                seq: record.seq,
                ts: record.ts.clone(),
                mono_ms: record.mono_ms,
                boot: record.boot.clone(),
                event,
            };
            fold::apply(&mut self.session.state, &stamped)?;
            self.observer.event(&self.session.state, &stamped);
        }
        self.hub.grown(self.session.state.next_seq);
        Ok(())
    }

    /// Spent so far, with the time since the last event.
    pub(super) fn spent_now(&self) -> Spent {
        let mut spent = self.session.state.spent.clone();
        if self.holds() {
            return spent;
        }
        let since = journal::mono_ms().saturating_sub(self.session.state.time.last_mono_ms);
        spent.millis += since;
        spent.iteration_millis += since.saturating_sub(self.session.state.time.waiting_ms);
        spent
    }

    /// Records a limit that has been reached; `true` if one has.
    pub(super) async fn cut_if_exhausted(&mut self) -> Result<bool, EngineError> {
        if self.session.state.cut.is_some() {
            return Ok(true);
        }
        match budget::iteration_exhausted(&self.session.state.limits, &self.spent_now()) {
            Some(exhausted) => {
                self.cut(exhausted).await?;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    pub(super) async fn cut(&mut self, exhausted: Exhausted) -> Result<(), EngineError> {
        if self.session.state.cut.is_none() {
            self.record(BudgetCut { exhausted }).await?;
        }
        Ok(())
    }

    /// What is left of the run's time.
    pub(super) fn total_time_left(&self) -> Duration {
        let limit = self.session.state.limits.max_total_seconds * 1_000;
        Duration::from_millis(limit.saturating_sub(self.spent_now().millis))
    }

    /// How long an agent may go on before a time limit is reached.
    pub(super) fn time_left(&self) -> Duration {
        let limits = &self.session.state.limits;
        let spent = self.spent_now();
        let total = (limits.max_total_seconds * 1_000).saturating_sub(spent.millis);
        let iteration = (limits.max_seconds_per_iteration * 1_000).saturating_sub(spent.iteration_millis);
        // A little past the limit, so that the clock agrees that it was reached.
        Duration::from_millis(total.min(iteration).saturating_add(5))
    }

    /// Runs an effect that a stop signal or, if asked, a time limit may cut; orders are taken meanwhile. The
    /// effect must end soon after its token is cancelled.
    pub(super) async fn guarded<T>(
        &mut self,
        token: &CancellationToken,
        cutoff: Cutoff,
        effect: impl Future<Output = T>,
    ) -> Result<Guarded<T>, EngineError> {
        tokio::pin!(effect);
        loop {
            // Anew after each order: it may have raised the limit.
            let limit = match cutoff {
                Cutoff::Never => None,
                Cutoff::Agent => Some(self.time_left()),
                Cutoff::Probe(phase) => self.probe_limit(phase),
            };
            let deadline = async {
                match limit {
                    Some(limit) => tokio::time::sleep(limit).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                value = &mut effect => return Ok(Guarded::Done(value)),
                () = stop_comes(&self.signals, &self.session.state) => {
                    token.cancel();
                    return Ok(Guarded::Stopped(effect.await));
                }
                () = deadline => {
                    token.cancel();
                    return Ok(Guarded::Cut(effect.await));
                }
                Some(order) = self.orders.recv() => {
                    if let Err(error) = self.take_order(order).await {
                        // The journal is gone; the effect must not outlive it.
                        token.cancel();
                        effect.await;
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Everything, from scratch: at the start and after a resume.
    fn render_all(&mut self) -> Result<(), EngineError> {
        let files = render::everything(&self.session.state, &self.session.blobs)?;
        self.manifest = files.iter().filter(|file| file.iteration.is_some()).map(render::Listed::of).collect();
        self.write_evidence(&files, Durability::Replaceable)
    }

    /// The files of the running iteration and of the run as a whole.
    pub(super) fn write_evidence(&mut self, files: &[Rendered], durability: Durability) -> Result<(), EngineError> {
        let workspace = &self.session.workspace;
        let failed = |e| EngineError::io("cannot write the evidence", workspace, e);
        self.mended.extend(store::write(workspace, files, durability).map_err(failed)?);
        self.mended.extend(store::write_copies(workspace, files).map_err(failed)?);
        Ok(())
    }

    /// Uses the journal's reserve to say why the run stops.
    async fn halt_on_full_disk(&mut self) -> Result<(), EngineError> {
        if self.session.state.halt.is_some() {
            return Ok(());
        }
        let seen = BackpressureSeen { signal: Signal::DiskUsage, detail: "the journal's disk is full".to_owned() };
        let mut after = self.session.state.clone();
        after.backpressure = Some(seen.clone());
        // Where a full disk does not stop the run, there is nothing to decide before its effects are done.
        if !claim::must_stop(&after) {
            return Ok(());
        }
        let mut events = vec![Event::from(seen)];
        events.extend(step::step(&after, Input::Proceed));
        self.append(events).await
    }
}

/// Resolves when a signal has come that stops the run in its present state.
pub(super) async fn stop_comes(signals: &Signals, state: &RunState) {
    signals::wait_for(signals.waiter(), |signal| claim::stops(state, signal)).await;
}
