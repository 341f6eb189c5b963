//! What every effect works with: the record of the run, and the people and signals that may interrupt it.
//!
//! Role: run an effect while orders are taken and stop signals are watched. Not its role: what an order means
//! (`orders`), or what a stop means (the machine). Invariant: an effect that is interrupted has ended when it is told so.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::journal::{Blobs, RunDir};
use crate::machine::call::CallState;
use crate::machine::claim;
use crate::machine::event::{Event, Text};
use crate::machine::network;
use crate::machine::run::RunState;
use crate::model::secret::Secrets;
use crate::tool::permission::Rules;
use crate::tool::sandbox::Sandbox;

use super::command::Order;
use super::error::EngineError;
use super::network::Network;
use super::orders::{self, ServerWait};
use super::recorder::Recorder;
use super::rounds::Rounds;
use super::signals::{self, Signals};
use super::value::services::Running;

/// How long a wait is when nothing is real.
pub(super) const SKIPPED_WAIT: Duration = Duration::from_millis(20);
/// Orders that are taken between two steps.
const ORDERS_PER_STEP: usize = 16;

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
    /// What is left of the run's time, and a grace.
    Check,
}

/// How long checks may go on after the time budget is used up, at least; else a twentieth of it.
const GRACE: Duration = Duration::from_secs(10);

pub(super) struct Context<'a> {
    pub recorder: Recorder<'a>,
    pub signals: Signals,
    pub orders: mpsc::Receiver<Order>,
    pub rules: Rules,
    pub secrets: Arc<Secrets>,
    /// The wait for the model server that is going on.
    pub server_wait: ServerWait,
    /// What the checks see of the workspace.
    pub checks: Rounds,
    /// What its commands reach through us.
    pub network: Network,
    /// The services that run.
    pub services: Running,
    /// Nothing is real: a server's wait takes no time.
    pub skip_waits: bool,
    /// Since the last look at AGENTS.md, something ran while its name was no file of its own: no seal held it.
    pub learnings_exposed: AtomicBool,
}

impl Context<'_> {
    pub fn state(&self) -> &RunState {
        self.recorder.state()
    }

    pub fn blobs(&self) -> &Blobs {
        &self.recorder.session.blobs
    }

    pub fn workspace(&self) -> &Path {
        &self.recorder.session.workspace
    }

    pub fn sandbox(&self) -> &Sandbox {
        &self.recorder.session.sandbox
    }

    pub fn run_dir(&self) -> &RunDir {
        &self.recorder.session.run_dir
    }

    pub fn secrets(&self) -> &Arc<Secrets> {
        &self.secrets
    }

    pub fn call(&self) -> Result<&CallState, EngineError> {
        self.recorder.call()
    }

    pub fn text(&self, text: &str) -> Result<Text, EngineError> {
        self.recorder.text(text)
    }

    pub async fn record(&mut self, event: impl Into<Event>) -> Result<(), EngineError> {
        self.recorder.record(event).await
    }

    pub async fn record_all(&mut self, events: Vec<Event>) -> Result<(), EngineError> {
        self.recorder.record_all(events).await
    }

    /// Runs an effect that a stop signal or, if asked, a time limit may cut; orders are taken meanwhile. The
    /// effect must end soon after its token is cancelled.
    pub async fn guarded<T>(
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
                Cutoff::Agent => Some(self.recorder.time_left()),
                Cutoff::Check => Some(self.check_limit()),
            };
            tokio::select! {
                biased;
                value = &mut effect => return Ok(Guarded::Done(value)),
                () = stop_comes(&self.signals, self.recorder.state()) => {
                    token.cancel();
                    return Ok(Guarded::Stopped(effect.await));
                }
                () = sleep_for(limit) => {
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

    /// What is left of the time budget, and a grace in which the last state can still be measured.
    fn check_limit(&self) -> Duration {
        let limit = self.state().limits.max_total_seconds;
        let spent = self.recorder.spent_now().millis;
        let left = (limit * 1_000).saturating_sub(spent);
        let past = spent.saturating_sub(limit * 1_000);
        let grace = (GRACE.as_millis() as u64).max(limit / 20 * 1_000).saturating_sub(past);
        Duration::from_millis(left.saturating_add(grace))
    }

    /// Takes orders that are there, without waiting, and not so many that nothing else gets its turn.
    pub async fn take_orders(&mut self) -> Result<(), EngineError> {
        for _ in 0..ORDERS_PER_STEP {
            let Ok(order) = self.orders.try_recv() else { break };
            self.take_order(order).await?;
        }
        Ok(())
    }

    pub async fn take_order(&mut self, order: Order) -> Result<(), EngineError> {
        orders::take(&mut self.recorder, &self.signals, &mut self.server_wait, order).await?;
        self.network.follow(|| network::patterns(self.recorder.state()));
        Ok(())
    }

    /// Waits for the model server, unless a stop or an order to retry comes first.
    pub async fn wait_out(&mut self, wait: Duration) -> Result<(), EngineError> {
        let wait = if self.skip_waits { wait.min(SKIPPED_WAIT) } else { wait };
        let until = Instant::now() + wait;
        self.server_wait = ServerWait { going_on: true, retry_now: false };
        let mut result = Ok(());
        while result.is_ok() && !self.server_wait.retry_now {
            tokio::select! {
                biased;
                () = stop_comes(&self.signals, self.recorder.state()) => break,
                Some(order) = self.orders.recv() => result = self.take_order(order).await,
                () = tokio::time::sleep_until(until) => break,
            }
        }
        self.server_wait.going_on = false;
        result
    }
}

/// Forever where there is no limit.
pub(super) async fn sleep_for(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

/// Resolves when a signal has come that stops the run in its present state.
pub(super) async fn stop_comes(signals: &Signals, state: &RunState) {
    signals::wait_for(signals.waiter(), |signal| claim::stops(state, signal)).await;
}
