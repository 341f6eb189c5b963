//! Waits for a model server: what it asked this run for, and what it told the other runs of the same key.
//!
//! Not here: how long (`agent::retry`, `agent::gate`), the file that runs share (`rate`). Invariants: a wait is recorded
//! before it begins; a stop, a limit or an operator ends it.

use std::time::Duration;

use crate::agent::gate::{Verdict, Why};
use crate::machine::event::{LlmFailed, Signal};

use super::driver::Driver;
use super::error::EngineError;
use super::rate::{self, RateGate, Ticket};

/// A wait at the gate that is shorter is not worth a record.
const SHORTEST_RECORDED_MS: u64 = 1_000;
/// Short looks at the gate before the wait is recorded all the same.
const SHORT_LOOKS: u32 = 50;

impl Driver<'_> {
    /// A run that was killed in a wait waits for the rest of it. `true`: what comes next is decided anew.
    pub(super) async fn waits_on(&mut self) -> Result<bool, EngineError> {
        let Some((since, millis)) = self.call()?.wait.clone() else { return Ok(false) };
        let Ok(since) = since.parse::<jiff::Timestamp>() else { return Ok(false) };
        let waited = u64::try_from(jiff::Timestamp::now().as_millisecond() - since.as_millisecond()).unwrap_or(0);
        let left = Duration::from_millis(millis.saturating_sub(waited));
        if left.is_zero() || self.agents.hurries() {
            return Ok(false);
        }
        if left >= self.total_time_left() {
            self.signals.raise(Signal::RateLimit, "the wait that a server asked for does not fit the time left");
            return Ok(true);
        }
        self.wait_out(left).await?;
        Ok(true)
    }

    /// Waits until this run may call. `None`: it waited, was stopped, or there is no time left to wait; what comes
    /// next is decided anew.
    pub(super) async fn pass_gate(
        &mut self,
        gate: &RateGate,
        key: &str,
        turn: u32,
        attempt: u32,
    ) -> Result<Option<Ticket>, EngineError> {
        // The operator's "retry now" goes past what other runs were told.
        for _ in 0..SHORT_LOOKS {
            let insist = std::mem::take(&mut self.retry_now);
            let (verdict, ticket) = gate.ask(rate::now_ms(), jitter(), insist);
            let Verdict::Wait { millis, why } = verdict else { return Ok(Some(ticket)) };
            if millis >= SHORTEST_RECORDED_MS {
                let message = match why {
                    Why::Told => "another run of yours was told to wait",
                    Why::UsedUp => "your runs together have used up what the server allows for now",
                    Why::Asking => "another run of yours is finding out how much is left",
                };
                return self
                    .wait_at_gate(key, turn, attempt, message, Duration::from_millis(millis))
                    .await
                    .map(|()| None);
            }
            if self.total_time_left().is_zero() {
                return Ok(None);
            }
            self.wait_out(Duration::from_millis(millis)).await?;
            if self.signals.seen().is_some() {
                return Ok(None);
            }
        }
        // Whoever asks has asked for long: it is a wait like any other now.
        let wait = Duration::from_millis(SHORTEST_RECORDED_MS);
        self.wait_at_gate(key, turn, attempt, "another run of yours is finding out how much is left", wait).await?;
        Ok(None)
    }

    /// No call was made, but the run waits for the server all the same, and says so.
    async fn wait_at_gate(
        &mut self,
        key: &str,
        turn: u32,
        attempt: u32,
        message: &str,
        wait: Duration,
    ) -> Result<(), EngineError> {
        let fits = wait < self.total_time_left();
        self.record(LlmFailed {
            call: key.to_owned(),
            turn,
            attempt,
            class: LlmFailed::RATE_LIMITED.to_owned(),
            message: message.to_owned(),
            wait_millis: fits.then(|| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            usage: None,
            cost_usd: None,
        })
        .await?;
        if fits {
            return self.wait_out(wait).await;
        }
        self.signals.raise(Signal::RateLimit, message.to_owned());
        Ok(())
    }
}

/// Random bits for the back-off. The hasher's keys are seeded by the system.
pub(super) fn jitter() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
