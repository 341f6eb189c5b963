//! Waits for a model server: what it asked this run for, and what it told the other runs of the same key.
//!
//! Not here: how long (`agent::retry`, `agent::gate`), the file that runs share (`rate`). Invariants: a wait is recorded
//! before it begins; a stop, a limit or an operator ends it.

use std::time::Duration;

use crate::agent::gate::{GateAnswer, Why};
use crate::machine::event::Signal;
use crate::model::failure::FailureClass;

use super::attempt::{Attempt, Failure, Owed, jitter};
use super::context::Context;
use super::error::EngineError;
use super::rate::{self, RateGate, Ticket};

/// A wait at the gate that is shorter is not worth a record.
const SHORTEST_RECORDED_MS: u64 = 1_000;
/// Short looks at the gate before the wait is recorded all the same.
const SHORT_LOOKS: u32 = 50;

/// A run that was killed in a wait waits for the rest of it. `true`: what comes next is decided anew.
pub(super) async fn goes_on(cx: &mut Context<'_>) -> Result<bool, EngineError> {
    let Some((since, millis)) = cx.call()?.wait.clone() else { return Ok(false) };
    let Ok(since) = since.parse::<jiff::Timestamp>() else { return Ok(false) };
    let waited = u64::try_from(jiff::Timestamp::now().as_millisecond() - since.as_millisecond()).unwrap_or(0);
    let left = Duration::from_millis(millis.saturating_sub(waited));
    if left.is_zero() || cx.skip_waits {
        return Ok(false);
    }
    if left >= cx.recorder.total_time_left() {
        cx.signals.raise(Signal::RateLimit, "the wait that a server asked for does not fit the time left");
        return Ok(true);
    }
    cx.wait_out(left).await?;
    Ok(true)
}

/// Waits until this run may call. `None`: it waited, was stopped, or there is no time left to wait; what comes
/// next is decided anew.
pub(super) async fn pass_gate(
    cx: &mut Context<'_>,
    gate: &RateGate,
    attempt: &Attempt,
) -> Result<Option<Ticket>, EngineError> {
    // The operator's "retry now" goes past what other runs were told.
    for _ in 0..SHORT_LOOKS {
        let insist = std::mem::take(&mut cx.server_wait.retry_now);
        let (verdict, ticket) = gate.ask(rate::now_ms(), jitter(), insist);
        let GateAnswer::Wait { millis, why } = verdict else { return Ok(Some(ticket)) };
        if millis >= SHORTEST_RECORDED_MS {
            let message = match why {
                Why::Told => "another run of yours was told to wait",
                Why::UsedUp => "your runs together have used up what the server allows for now",
                Why::Asking => "another run of yours is finding out how much is left",
            };
            wait_at_gate(cx, attempt, message, millis).await?;
            return Ok(None);
        }
        if cx.recorder.total_time_left().is_zero() {
            return Ok(None);
        }
        cx.wait_out(Duration::from_millis(millis)).await?;
        if cx.signals.seen().is_some() {
            return Ok(None);
        }
    }
    // Whoever asks has asked for long: it is a wait like any other now.
    let message = "another run of yours is finding out how much is left";
    wait_at_gate(cx, attempt, message, SHORTEST_RECORDED_MS).await?;
    Ok(None)
}

/// No call was made, but the run waits for the server all the same, and says so.
async fn wait_at_gate(cx: &mut Context<'_>, attempt: &Attempt, message: &str, millis: u64) -> Result<(), EngineError> {
    let (class, retry_after) = (FailureClass::RateLimited, Some(Duration::from_millis(millis)));
    attempt.fail(cx, Failure { class, message: message.to_owned(), retry_after }, Owed::default()).await
}
