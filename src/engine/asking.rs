//! One request to a model server and what comes of it: reserve, send, take the reply or the failure.
//!
//! Not here: what the conversation says (`agents`, `conversation`), waiting (`waiting`), agent programs (`program`).
//! Invariants: a request is durable before it is sent; a reply that broke off, was cut or stopped is void, and what it
//! had cost by then is charged.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::agent::{self, Block, CallError, Delta, RateLimits, RateWindow, Reply, RetryClass, ToolInput};
use crate::machine::call::PREFIX_MISMATCH;
use crate::machine::event::{DecisionAsked, LlmFailed, LlmRequested, LlmResponded, RateLeft, Signal, ToolUse};
use crate::model::budget::{Dimension, Exhausted};
use crate::model::decimal::Exact;
use crate::model::decision::{MAX_DECISIONS, Mode, Request as DecisionRequest};
use crate::model::digest::Digest;

use super::backends::Setup;
use super::conversation;
use super::driver::{Cutoff, Driver, Guarded};
use super::error::EngineError;
use super::rate;
use super::secrecy::Speaker;
use super::spend::{self, Left, Meter, Size};
use super::waiting::jitter;

impl Driver<'_> {
    pub(super) async fn ask(&mut self) -> Result<(), EngineError> {
        if self.cut_if_exhausted().await? {
            return Ok(());
        }
        if self.waits_on().await? {
            return Ok(());
        }
        if self.agents.program(&self.call()?.started.agent).is_some() {
            return self.ask_program().await;
        }
        let call = self.call()?.clone();
        let (key, turn, attempt) = (call.started.call.clone(), call.turn, call.attempts);
        let agent = self
            .agents
            .get(&call.started.agent)
            .ok_or_else(|| EngineError::Internal(format!("agent {} was not prepared", call.started.agent)))?;
        let (backend, setup, gate) = (Arc::clone(&agent.backend), agent.setup.clone(), agent.gate.clone());
        let mut request = conversation::request(&call, &setup, &self.session.blobs, &mut self.messages)?;
        let mut size = Size::estimate(request.body().len());
        if Left::of(&self.session.state).is_near(size, setup.context) {
            let token = CancellationToken::new();
            let counting = async {
                tokio::select! {
                    tokens = backend.count_tokens(&request) => tokens,
                    () = token.cancelled() => None,
                }
            };
            match self.guarded(&token, Cutoff::Agent, counting).await? {
                Guarded::Done(tokens) => size = tokens.map_or(size, Size::counted),
                // What came first is recorded next.
                Guarded::Stopped(_) | Guarded::Cut(_) => return Ok(()),
            }
        }
        let searches = conversation::searches(call.role(), &setup);
        let fit = match spend::fit(&request, size, searches, &setup, &self.session.state) {
            Ok(fit) => fit,
            Err(exhausted) => return self.cut(exhausted).await,
        };
        request.max_tokens = fit.max_tokens;
        let ticket = match &gate {
            Some(gate) => match self.pass_gate(gate, &key, turn, attempt).await? {
                Some(ticket) => Some((gate.clone(), ticket)),
                None => return Ok(()),
            },
            None => None,
        };
        self.retry_now = false;
        self.record(LlmRequested {
            call: key.clone(),
            turn,
            attempt,
            request_sha256: Digest::of(&request.body()),
            reserved_tokens: size.tokens + u64::from(request.max_tokens),
            reserved_usd: fit.reserved_usd,
            drop_blocks: call.drop_blocks,
        })
        .await?;
        let mut meter = Meter::new(&fit, &setup, &self.session.state);
        let outcome = {
            let token = CancellationToken::new();
            let mut speaker = Speaker::new(self.hub.clone(), key.clone(), turn, Arc::clone(self.secrets()));
            let (cancelled, passed) = (token.clone(), token.clone());
            let effect = async {
                let mut on_delta = |delta: Delta<'_>| {
                    if let (Delta::Limits(limits), Some((gate, ticket))) = (&delta, &ticket) {
                        gate.heard(*ticket, limits, rate::now_ms());
                    }
                    if meter.take(&delta) {
                        passed.cancel();
                    }
                    speaker.hear(delta);
                };
                let result = tokio::select! {
                    biased;
                    () = cancelled.cancelled() => None,
                    result = backend.complete(&request, &mut on_delta) => Some(result),
                };
                speaker.finish();
                result
            };
            self.guarded(&token, Cutoff::Agent, effect).await?
        };
        if let Some((gate, ticket)) = &ticket {
            match &outcome {
                Guarded::Done(Some(Err(error))) if asks_to_wait(error) => {
                    gate.refused(*ticket, error.retry_after(), rate::now_ms());
                }
                Guarded::Done(_) | Guarded::Stopped(_) | Guarded::Cut(_) => gate.close(*ticket),
            }
        }
        match (outcome, meter.passed()) {
            (Guarded::Done(Some(Ok(reply))), _) => self.take_reply(&key, turn, reply, &setup).await,
            (Guarded::Done(Some(Err(error))), None) => {
                let owed = meter.owed();
                let cost = owed.as_ref().and_then(|usage| setup.cost(usage));
                self.take_failure(&key, turn, attempt, &error, owed, cost).await
            }
            (Guarded::Done(_), Some(dimension)) => {
                self.void(&key, turn, attempt, "a limit was passed in the middle of the reply", &meter, &setup).await?;
                self.cut_for(dimension).await
            }
            // Stopped: the signal is recorded next. Cut: the limit is recorded next. Either way the reply is void.
            (Guarded::Done(None) | Guarded::Stopped(_), _) => {
                self.void(&key, turn, attempt, "the run was stopped in the middle of the reply", &meter, &setup).await
            }
            (Guarded::Cut(_), _) => {
                self.void(&key, turn, attempt, "the time was up in the middle of the reply", &meter, &setup).await?;
                self.cut_if_exhausted().await.map(|_| ())
            }
        }
    }

    /// A reply that will never end: what the server had counted is owed. Nothing counted, nothing recorded: the
    /// ledger then counts the request as lost.
    async fn void(
        &mut self,
        key: &str,
        turn: u32,
        attempt: u32,
        message: &str,
        meter: &Meter,
        setup: &Setup,
    ) -> Result<(), EngineError> {
        let Some(owed) = meter.owed() else { return Ok(()) };
        self.record(LlmFailed {
            call: key.to_owned(),
            turn,
            attempt,
            class: LlmFailed::CANCELLED.to_owned(),
            message: message.to_owned(),
            wait_millis: Some(0),
            usage: Some(spend::recorded(&owed)),
            cost_usd: setup.cost(&owed),
        })
        .await
    }

    /// A limit that the stream passed.
    async fn cut_for(&mut self, dimension: Dimension) -> Result<(), EngineError> {
        if self.cut_if_exhausted().await? {
            return Ok(());
        }
        // What we counted ourselves says so, though the server had not said it yet.
        let observed = match dimension {
            Dimension::CostUsd => self.session.state.spent.cost_usd.map(|cost| cost.to_string()),
            _ => Some(self.session.state.spent.tokens().to_string()),
        };
        let limit = self.session.state.limits.of(dimension).unwrap_or_default();
        self.cut(Exhausted { dimension, observed: observed.unwrap_or_else(|| "unknown".to_owned()), limit }).await
    }

    async fn take_reply(&mut self, key: &str, turn: u32, reply: Reply, setup: &Setup) -> Result<(), EngineError> {
        let reply = self.clean_reply(reply);
        let mut tool_uses: Vec<ToolUse> = Vec::new();
        for block in &reply.blocks {
            if let Block::ToolUse { id, name, input } = block {
                let malformed = !matches!(input, ToolInput::Json(Value::Object(_)));
                // Repeated ids as well: the fold sees them, and ends the agent's part.
                tool_uses.push(ToolUse { id: id.clone(), name: name.clone(), malformed });
            }
        }
        let responded = LlmResponded {
            call: key.to_owned(),
            turn,
            message: self.session.blobs.put(reply.message.get().as_bytes())?,
            stop: match &reply.stop_details {
                Some(details) => format!("{}: {details}", reply.stop),
                None => reply.stop.to_string(),
            },
            next: agent::next_move(&reply.stop, &reply.blocks),
            empty: reply.blocks.is_empty(),
            tool_uses,
            usage: spend::recorded(&reply.usage),
            cost_usd: setup.cost(&reply.usage),
            request_id: reply.request_id.clone(),
            rate: rate_left(&reply.limits),
            session: None,
        };
        self.record(responded).await
    }

    pub(super) async fn take_failure(
        &mut self,
        key: &str,
        turn: u32,
        attempt: u32,
        error: &CallError,
        owed: Option<agent::Usage>,
        cost_usd: Option<Exact>,
    ) -> Result<(), EngineError> {
        let usage = owed.as_ref().map(spend::recorded);
        // Once: the server may leave out the block that no longer fits. A second refusal is final.
        let setup = self.agents.get(&self.call()?.started.agent).map(|agent| &agent.setup);
        let thinking = setup.and_then(|setup| setup.thinking);
        let can_drop = thinking.is_some_and(|thinking| thinking.dropping().is_some());
        if agent::retry::is_prefix_mismatch(error) && can_drop && !self.call()?.drop_blocks {
            let class = PREFIX_MISMATCH.to_owned();
            let (call, message) = (key.to_owned(), self.clean_error(error));
            let failed = LlmFailed { call, turn, attempt, class, message, wait_millis: Some(0), usage, cost_usd };
            return self.record(failed).await;
        }
        let class = agent::classify(error);
        let words = self.clean_error(error);
        let jitter = jitter();
        // Waits that a server asked for do not use up the tries of what breaks down.
        let tries = match class {
            RetryClass::Crashed | RetryClass::Transient => self.call()?.faults + 1,
            _ => attempt + 1,
        };
        let wait = agent::delay(class, tries, error.retry_after(), jitter);
        let fits = wait.is_some_and(|wait| wait < self.total_time_left());
        // Where people are waited for, one can raise the account's limit.
        let operator = &self.session.state.operator;
        let asks = class == RetryClass::SpendLimit
            && operator.patience.mode == Mode::Wait
            && operator.decisions.len() < MAX_DECISIONS;
        let asked = asks.then(|| DecisionAsked {
            id: operator.next_id(),
            request: DecisionRequest::SpendLimit { detail: words.clone() },
            why: "the account's spend limit is reached; no retry helps before it is raised".to_owned(),
            asked_by: None,
        });
        let wait = if asks { Some(Duration::ZERO) } else { wait };
        let stop = match class {
            RetryClass::SpendLimit if asks => None,
            RetryClass::SpendLimit => Some(Signal::SpendLimit),
            RetryClass::Auth => Some(Signal::DownstreamUnavailable),
            RetryClass::RateLimited | RetryClass::Overloaded if !fits => Some(Signal::RateLimit),
            RetryClass::Transient | RetryClass::Crashed if wait.is_none() || !fits => {
                Some(Signal::DownstreamUnavailable)
            }
            RetryClass::RateLimited
            | RetryClass::Overloaded
            | RetryClass::Transient
            | RetryClass::Crashed
            | RetryClass::TooLarge
            | RetryClass::Fatal => None,
        };
        let wait = if stop.is_some() { None } else { wait };
        self.record(LlmFailed {
            call: key.to_owned(),
            turn,
            attempt,
            class: class_name(class).to_owned(),
            message: words.clone(),
            wait_millis: wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            usage,
            cost_usd,
        })
        .await?;
        if let Some(signal) = stop {
            self.signals.raise(signal, words);
        }
        match (wait, asked) {
            (_, Some(asked)) => self.record(asked).await,
            (Some(wait), None) => self.wait_out(wait).await,
            (None, None) => Ok(()),
        }
    }
}

const fn class_name(class: RetryClass) -> &'static str {
    match class {
        RetryClass::SpendLimit => "spend_limit",
        RetryClass::RateLimited => LlmFailed::RATE_LIMITED,
        RetryClass::Overloaded => LlmFailed::OVERLOADED,
        RetryClass::Transient => LlmFailed::TRANSIENT,
        RetryClass::Crashed => "crashed",
        RetryClass::Auth => "auth",
        RetryClass::TooLarge => "too_large",
        RetryClass::Fatal => "fatal",
    }
}

/// Does the server ask everybody with this key to wait?
fn asks_to_wait(error: &CallError) -> bool {
    matches!(agent::classify(error), RetryClass::RateLimited | RetryClass::Overloaded)
}

/// What is left, as the journal keeps it: the scarcest of the token limits, and the reset of what is scarcer.
fn rate_left(limits: &RateLimits) -> Option<RateLeft> {
    let tokens = [limits.tokens, limits.input_tokens, limits.output_tokens];
    let tokens = tokens.into_iter().filter(|window| window.remaining.is_some()).min_by_key(|w| w.remaining);
    let tokens = tokens.unwrap_or_default();
    if limits.requests.remaining.is_none() && tokens.remaining.is_none() {
        return None;
    }
    // Shares are compared by cross-multiplying: no floating point.
    let share = |window: &RateWindow| window.remaining.zip(window.limit.filter(|limit| *limit > 0));
    let tokens_scarcer = match (share(&limits.requests), share(&tokens)) {
        (Some((left, of)), Some((tokens_left, tokens_of))) => {
            u128::from(tokens_left) * u128::from(of) < u128::from(left) * u128::from(tokens_of)
        }
        (None, Some(_)) => true,
        (Some(_) | None, None) => false,
    };
    let reset = if tokens_scarcer { tokens.reset } else { limits.requests.reset.or(tokens.reset) };
    Some(RateLeft {
        requests: limits.requests.remaining,
        tokens: tokens.remaining,
        reset: reset.map(|at| at.to_string()),
    })
}
