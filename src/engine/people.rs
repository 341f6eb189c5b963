//! Where the run meets people: it waits for them, and carries out their answers.
//!
//! Not here: their orders (`orders`), the questions that agents ask (`ask`). Nothing here decides what an answer means:
//! the machine does. Invariant: carrying out an answer may be repeated after a crash.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::machine::event::{DecisionSettled, Signal};
use crate::machine::operator::Decision;
use crate::model::decision::{Answer, DecisionId, Mode, Request};
use crate::model::digest::Digest;
use crate::model::learnings::flatten;
use crate::tool::permit;
use crate::tool::process::{self, Access, CommandSpec};
use crate::workspace::document;

use super::confine::{self, protected};
use super::context::{Context, Cutoff, Guarded, sleep_for, stop_comes};
use super::error::EngineError;
use super::evidence_files::EvidenceFiles;
use super::orders::document_now;
use super::probes::{self, Streams};
use super::secrecy;

/// Nothing to do until a person acts, a stop comes, or patience ends.
pub(super) async fn await_person(
    cx: &mut Context<'_>,
    evidence: &mut EvidenceFiles,
    waiting_since: &mut Option<Instant>,
) -> Result<(), EngineError> {
    let patience = cx.state().operator.patience;
    let operator = &cx.state().operator;
    // What holds the run up is what is told.
    let blocks = operator.open().find(|decision| !decision.request.is_parked());
    let more = match operator.open().count().saturating_sub(1) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let asked = blocks.or_else(|| operator.open().next()).map(|decision| format!("{}{more}", describe(decision)));
    if let Some(asked) = asked.clone().filter(|_| patience.mode == Mode::Stop) {
        cx.signals.raise(Signal::DecisionNeeded, asked);
        return Ok(());
    }
    let limit = Duration::from_secs(patience.timeout_minutes.saturating_mul(60));
    let limited = asked.is_some() && !limit.is_zero();
    if waiting_since.is_none() {
        // Whoever looks without a console finds what is asked.
        evidence.write_run(cx.workspace(), cx.state(), cx.blobs())?;
    }
    let began = *waiting_since.get_or_insert_with(Instant::now);
    let left = limited.then(|| limit.saturating_sub(began.elapsed()));
    tokio::select! {
        biased;
        order = cx.orders.recv() => match order {
            Some(order) => cx.take_order(order).await,
            // Nobody can give orders any more; a stop can still come.
            None => {
                stop_comes(&cx.signals, cx.recorder.state()).await;
                Ok(())
            }
        },
        () = stop_comes(&cx.signals, cx.recorder.state()) => Ok(()),
        () = sleep_for(left) => {
            let asked = asked.unwrap_or_default();
            cx.signals.raise(Signal::DecisionNeeded, format!("{asked} (nobody answered in time)"));
            Ok(())
        }
    }
}

/// Carries out an answer. May be repeated after a crash.
pub(super) async fn settle(cx: &mut Context<'_>, id: DecisionId) -> Result<(), EngineError> {
    let decision = cx.state().operator.decision(id).cloned();
    let Some(Decision { request, answer: Some(answered), .. }) = decision else {
        return Err(EngineError::Internal(format!("{id} has no answer to carry out")));
    };
    let settled = match (request, answered.answer) {
        (Request::HumanAction { verify: Some(argv), timeout_seconds, .. }, Answer::Done) => {
            match verify_action(cx, id, argv, timeout_seconds).await? {
                Some(settled) => settled,
                // A stop came first; the verification runs again on resume.
                None => return Ok(()),
            }
        }
        (Request::HumanAction { timeout_seconds, .. }, Answer::DoneBy { command }) => {
            match verify_action(cx, id, command, timeout_seconds).await? {
                Some(settled) => settled,
                None => return Ok(()),
            }
        }
        (Request::Refinement { path, before, .. }, Answer::Approve { result }) => {
            write_document(cx, id, &path, before, result)?
        }
        (request, answer) => {
            let what = format!("a {} answered `{}` needs nothing done", request.name(), answer.name());
            return Err(EngineError::Internal(what));
        }
    };
    cx.record(settled).await
}

async fn verify_action(
    cx: &mut Context<'_>,
    id: DecisionId,
    argv: Vec<String>,
    seconds: u64,
) -> Result<Option<DecisionSettled>, EngineError> {
    let mut spec = CommandSpec::new(argv, cx.workspace(), cx.state().run().as_str());
    spec.timeout = Duration::from_secs(seconds);
    let token = CancellationToken::new();
    let access = cx.call().map_or(Access::ReadOnly, |call| permit::access_of(call.role()));
    spec.confinement = confine::of_access(cx, access)?;
    let outcome = match cx.guarded(&token, Cutoff::Never, process::run(spec, &token)).await? {
        Guarded::Done(outcome) | Guarded::Cut(outcome) => outcome,
        Guarded::Stopped(_) => return Ok(None),
    };
    let check = probes::shown(cx, &secrecy::clean_process(cx.secrets(), outcome), Streams::Both)?;
    let closed = check.end.passed();
    let detail = format!("the verification: {}", check.end.describe());
    Ok(Some(DecisionSettled { id, closed, check: Some(check), detail }))
}

fn write_document(
    cx: &Context<'_>,
    id: DecisionId,
    path: &str,
    before: Digest,
    result: Digest,
) -> Result<DecisionSettled, EngineError> {
    let text = cx.blobs().get(&result)?;
    let settled = |closed, detail| DecisionSettled { id, closed, check: None, detail };
    let now = match document_now(cx.workspace(), path) {
        Ok(now) => now,
        Err(why) => return Ok(settled(false, why)),
    };
    if now != result {
        if now != before {
            return Ok(settled(false, format!("{path} was changed meanwhile; nothing was written")));
        }
        if let Err(why) = document::replace(cx.workspace(), path, &text, &protected()) {
            return Ok(settled(false, why));
        }
    }
    Ok(settled(true, format!("{path} is written")))
}

fn describe(decision: &Decision) -> String {
    let gist: String = flatten(&decision.request.gist()).chars().take(200).collect();
    format!("{} ({}): {gist}", decision.id, decision.request.name())
}
