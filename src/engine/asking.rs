//! One request to a model server and what comes of it: reserve, send, take the reply or the failure.
//!
//! Not here: what the conversation says (`calls`, `conversation`), waiting (`waiting`), agent programs (`program`).
//! Invariants: a request is durable before it is sent; a reply that broke off, was cut or stopped is void, and what it
//! had cost by then is charged.

use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::agent::{self, Block, CallError, Delta, RateLimits, RateWindow, Reply, Request, ToolInput};
use crate::machine::event::{LlmRequested, LlmResponded, RateLeft, ToolUse};
use crate::model::budget::{Dimension, Exhausted, Limits};
use crate::model::digest::Digest;
use crate::model::failure::FailureClass;

use super::attempt::{Attempt, Failure, Owed};
use super::backends::Agent;
use super::context::{Context, Cutoff, Guarded};
use super::conversation::{self, Messages};
use super::error::EngineError;
use super::rate::{self, RateGate, Ticket};
use super::secrecy::{self, Speaker};
use super::setup::Setup;
use super::spend::{self, Fit, Left, Meter, Size};
use super::waiting;

/// How a request came out; `None`: it was cancelled.
type Outcome = Guarded<Option<Result<Reply, CallError>>>;

/// Asks the model for the next reply of the open call.
pub(super) async fn ask(cx: &mut Context<'_>, agent: &Agent, messages: &mut Messages) -> Result<(), EngineError> {
    let attempt = Attempt::next(cx.call()?);
    let Some((request, fit, size)) = prepare(cx, agent, messages).await? else { return Ok(()) };
    let ticket = match &agent.gate {
        Some(gate) => match waiting::pass_gate(cx, gate, &attempt).await? {
            Some(ticket) => Some((gate, ticket)),
            None => return Ok(()),
        },
        None => None,
    };
    cx.server_wait.retry_now = false;
    cx.record(LlmRequested {
        call: attempt.call.clone(),
        turn: attempt.turn,
        attempt: attempt.number,
        request_sha256: Digest::of(&request.body()),
        reserved_tokens: size.tokens + u64::from(request.max_tokens),
        reserved_usd: fit.reserved_usd,
        drop_blocks: cx.call()?.drop_blocks,
    })
    .await?;
    // As they were when it was asked: one that is raised meanwhile cuts nothing.
    let limits = cx.state().limits.clone();
    let mut meter = Meter::new(&fit, &agent.setup, cx.state());
    let outcome = send(cx, agent, &request, &attempt, ticket, &mut meter).await?;
    if let Some((gate, ticket)) = ticket {
        match &outcome {
            Guarded::Done(Some(Err(error))) if agent::classify(error).asks_to_wait() => {
                gate.refused(ticket, error.retry_after(), rate::now_ms());
            }
            Guarded::Done(_) | Guarded::Stopped(_) | Guarded::Cut(_) => gate.close(ticket),
        }
    }
    take(cx, &attempt, outcome, &meter, &agent.setup, &limits).await
}

/// The request, made to fit what may be spent. `None`: a stop or a limit came first.
async fn prepare(
    cx: &mut Context<'_>,
    agent: &Agent,
    messages: &mut Messages,
) -> Result<Option<(Request, Fit, Size)>, EngineError> {
    let setup = &agent.setup;
    let mut request = conversation::request(cx.call()?, setup, cx.blobs(), messages)?;
    let mut size = Size::estimate(request.body().len());
    if Left::of(cx.state()).is_near(size, setup.context) {
        let token = CancellationToken::new();
        let counting = async {
            tokio::select! {
                tokens = agent.backend.count_tokens(&request) => tokens,
                () = token.cancelled() => None,
            }
        };
        match cx.guarded(&token, Cutoff::Agent, counting).await? {
            Guarded::Done(tokens) => size = tokens.map_or(size, Size::counted),
            // What came first is recorded next.
            Guarded::Stopped(_) | Guarded::Cut(_) => return Ok(None),
        }
    }
    let searches = conversation::searches(cx.call()?.role(), setup);
    match spend::fit(&request, size, searches, setup, cx.state()) {
        Ok(fit) => {
            request.max_tokens = fit.max_tokens;
            Ok(Some((request, fit, size)))
        }
        Err(exhausted) => {
            cx.recorder.cut(exhausted).await?;
            Ok(None)
        }
    }
}

/// Sends it, and passes on what comes while it comes.
async fn send(
    cx: &mut Context<'_>,
    agent: &Agent,
    request: &Request,
    attempt: &Attempt,
    ticket: Option<(&RateGate, Ticket)>,
    meter: &mut Meter,
) -> Result<Outcome, EngineError> {
    let token = CancellationToken::new();
    let hub = cx.recorder.hub.clone();
    let mut speaker = Speaker::new(hub, attempt.call.clone(), attempt.turn, Arc::clone(cx.secrets()));
    let (cancelled, passed) = (token.clone(), token.clone());
    let effect = async {
        let mut on_delta = |delta: Delta<'_>| {
            if let (Delta::Limits(limits), Some((gate, ticket))) = (&delta, ticket) {
                gate.heard(ticket, limits, rate::now_ms());
            }
            if meter.take(&delta) {
                passed.cancel();
            }
            speaker.on_delta(delta);
        };
        let result = tokio::select! {
            biased;
            () = cancelled.cancelled() => None,
            result = agent.backend.complete(request, &mut on_delta) => Some(result),
        };
        speaker.finish();
        result
    };
    cx.guarded(&token, Cutoff::Agent, effect).await
}

/// Records what came of it.
async fn take(
    cx: &mut Context<'_>,
    attempt: &Attempt,
    outcome: Outcome,
    meter: &Meter,
    setup: &Setup,
    limits: &Limits,
) -> Result<(), EngineError> {
    let usage = meter.owed();
    let owed = Owed { cost_usd: usage.as_ref().and_then(|usage| setup.cost(usage)), usage };
    match (outcome, meter.passed()) {
        (Guarded::Done(Some(Ok(reply))), _) => take_reply(cx, attempt, reply, setup).await,
        (Guarded::Done(Some(Err(error))), None) => {
            let failure = Failure {
                class: class_of(cx, &error, setup)?,
                message: secrecy::clean_error(cx.secrets(), &error),
                retry_after: error.retry_after(),
            };
            attempt.fail(cx, failure, owed).await
        }
        (Guarded::Done(_), Some(dimension)) => {
            attempt.void(cx, "a limit was passed in the middle of the reply", owed).await?;
            cut_for(cx, dimension, limits).await
        }
        // Stopped: the signal is recorded next. Cut: the limit is recorded next. Either way the reply is void.
        (Guarded::Done(None) | Guarded::Stopped(_), _) => {
            attempt.void(cx, "the run was stopped in the middle of the reply", owed).await
        }
        (Guarded::Cut(_), _) => {
            attempt.void(cx, "the time was up in the middle of the reply", owed).await?;
            cx.recorder.cut_if_exhausted().await.map(|_| ())
        }
    }
}

/// Once, the server may leave out the thinking block that no longer fits. A second refusal is final.
fn class_of(cx: &Context<'_>, error: &CallError, setup: &Setup) -> Result<FailureClass, EngineError> {
    let can_drop = setup.thinking.is_some_and(|thinking| thinking.dropping().is_some());
    let mismatch = agent::retry::is_prefix_mismatch(error) && can_drop && !cx.call()?.drop_blocks;
    Ok(if mismatch { FailureClass::PrefixMismatch } else { agent::classify(error) })
}

/// A limit that the stream passed.
async fn cut_for(cx: &mut Context<'_>, dimension: Dimension, limits: &Limits) -> Result<(), EngineError> {
    if cx.recorder.cut_if_exhausted().await? {
        return Ok(());
    }
    // What we counted ourselves says so, though the server had not said it yet.
    let observed = match dimension {
        Dimension::CostUsd => cx.state().spent.cost_usd.map(|cost| cost.to_string()),
        _ => Some(cx.state().spent.tokens().to_string()),
    };
    let limit = limits.of(dimension).unwrap_or_default();
    cx.recorder.cut(Exhausted { dimension, observed: observed.unwrap_or_else(|| "unknown".to_owned()), limit }).await
}

async fn take_reply(cx: &mut Context<'_>, attempt: &Attempt, reply: Reply, setup: &Setup) -> Result<(), EngineError> {
    let reply = secrecy::clean_reply(cx.secrets(), reply);
    let mut tool_uses: Vec<ToolUse> = Vec::new();
    for block in &reply.blocks {
        if let Block::ToolUse { id, name, input } = block {
            let malformed = !matches!(input, ToolInput::Json(Value::Object(_)));
            // Repeated ids as well: the fold sees them, and ends the agent's part.
            tool_uses.push(ToolUse { id: id.clone(), name: name.clone(), malformed });
        }
    }
    let responded = LlmResponded {
        call: attempt.call.clone(),
        turn: attempt.turn,
        message: cx.blobs().put(reply.message.get().as_bytes())?,
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
    cx.record(responded).await
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
