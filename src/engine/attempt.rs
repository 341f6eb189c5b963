//! One attempt at a turn of an agent call, and how it is recorded where no reply came of it.
//!
//! Not here: what follows a failure (`machine::failure` decides), sending (`asking`, `program`). Invariant: whatever ends
//! an attempt, what it had cost by then is recorded once.

use std::time::Duration;

use crate::agent;
use crate::machine::call::CallState;
use crate::machine::event::AfterFailure;
use crate::machine::event::LlmFailed;
use crate::machine::failure;
use crate::model::decimal::Exact;
use crate::model::failure::{FailureClass, FailureFacts};

use super::context::Context;
use super::error::EngineError;
use super::spend;

/// Which attempt it is.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    pub call: String,
    pub turn: u32,
    pub number: u32,
}

/// What an attempt had used, as far as it is known, and what that costs.
#[derive(Debug, Clone, Default)]
pub(super) struct Owed {
    pub usage: Option<agent::Usage>,
    pub cost_usd: Option<Exact>,
}

/// Why no reply came.
pub(super) struct Failure {
    pub class: FailureClass,
    /// For people; nothing in it must stay secret.
    pub message: String,
    /// How long the server asks to wait.
    pub retry_after: Option<Duration>,
}

impl Attempt {
    /// The next attempt of the open call.
    pub fn next(call: &CallState) -> Self {
        Self { call: call.started.call.clone(), turn: call.turn, number: call.attempts }
    }

    /// We ended it ourselves. Nothing counted, nothing recorded: the ledger then counts the request as lost.
    pub async fn void(&self, cx: &mut Context<'_>, message: &str, owed: Owed) -> Result<(), EngineError> {
        if owed.usage.is_none() {
            return Ok(());
        }
        let failure = Failure { class: FailureClass::Cancelled, message: message.to_owned(), retry_after: None };
        cx.record(self.failed(failure, owed, Some(0), None)).await
    }

    /// Records the failure with what follows from it, and waits where that is to wait.
    pub async fn fail(&self, cx: &mut Context<'_>, failure: Failure, owed: Owed) -> Result<(), EngineError> {
        let facts = FailureFacts {
            retry_after_ms: failure.retry_after.map(|after| millis(after.as_nanos().div_ceil(1_000_000))),
            jitter: jitter() as u32,
            left_ms: millis(cx.recorder.total_time_left().as_millis()),
        };
        let after = failure::decide(cx.state(), failure.class, &facts);
        cx.record(self.failed(failure, owed, after.wait_millis(), Some(facts))).await?;
        match after {
            AfterFailure::Retry { after_ms } if after_ms > 0 => cx.wait_out(Duration::from_millis(after_ms)).await,
            AfterFailure::Retry { .. } | AfterFailure::Ask | AfterFailure::Stop(_) => Ok(()),
            AfterFailure::HandOver | AfterFailure::GiveUp => Ok(()),
        }
    }

    fn failed(&self, failure: Failure, owed: Owed, wait_millis: Option<u64>, facts: Option<FailureFacts>) -> LlmFailed {
        LlmFailed {
            call: self.call.clone(),
            turn: self.turn,
            attempt: self.number,
            class: failure.class,
            message: failure.message,
            wait_millis,
            usage: owed.usage.as_ref().map(spend::recorded),
            cost_usd: owed.cost_usd,
            facts,
        }
    }
}

fn millis(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// Random bits for the back-off. The hasher's keys are seeded by the system.
pub(super) fn jitter() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
