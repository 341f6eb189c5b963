//! Agent programs: a turn of one is a single long effect, attended while it lasts.
//!
//! The program works with tools of its own, inside the sandbox. What it says it does is recorded as acts; our
//! own tools reach it through an MCP server, and what it asks for becomes a decision. A turn that ends without a
//! report is asked for one, as any model is.
//!
//! Invariants: nothing is decided from an act; a report counts only after the same checks as any other; while
//! a person is waited for, neither the budget nor the program's silence counts.

use std::collections::BTreeSet;

use crate::agent::program::Finished;
use crate::agent::{self, CallError, ProgramFault};
use crate::machine::event::LlmRequested;
use crate::model::decision::DecisionId;
use crate::model::digest::Digest;
use crate::model::learnings::estimate_tokens;

use super::attempt::{Attempt, Failure};
use super::context::Context;
use super::error::EngineError;
use super::secrecy;

mod attend;
mod close;
mod declared;
mod leave;
mod open_turn;
mod prompt;
mod serve;
mod sketch;
mod turn;

use attend::Ended;
pub use declared::Program;
use open_turn::OpenTurn;

/// One turn of the program behind the open call.
pub(super) async fn ask(
    cx: &mut Context<'_>,
    program: &Program,
    handed_out: &mut BTreeSet<DecisionId>,
) -> Result<(), EngineError> {
    let attempt = Attempt::next(cx.call()?);
    let task = prompt::task(cx, program)?;
    cx.server_wait.retry_now = false;
    cx.record(LlmRequested {
        call: attempt.call.clone(),
        turn: attempt.turn,
        attempt: attempt.number,
        request_sha256: Digest::of([task.system.as_bytes(), b"\0", task.prompt.as_bytes()].concat().as_slice()),
        reserved_tokens: estimate_tokens(task.system.len() + task.prompt.len()) as u64,
        reserved_usd: None,
        drop_blocks: false,
    })
    .await?;
    let mut open = OpenTurn::new(attempt, cx.call()?.role(), handed_out);
    let (result, ended) = attend::attend(cx, program, task, &mut open).await?;
    open.flush(cx).await?;
    take(cx, program, open, result, ended).await
}

/// Records what came of a turn.
async fn take(
    cx: &mut Context<'_>,
    program: &Program,
    open: OpenTurn<'_>,
    result: Result<Finished, CallError>,
    ended: Option<Ended>,
) -> Result<(), EngineError> {
    let (attempt, owed) = (&open.attempt, open.owed(program));
    let fault = |fault, message| CallError::Program { fault, message, retry_after: None };
    let error = match (ended, result) {
        // The signal is recorded next; the turn is void, but paid.
        (Some(Ended::Stopped), _) => return attempt.void(cx, "its turn was ended: stopped", owed).await,
        (Some(Ended::Cut), _) => {
            attempt.void(cx, "its turn was ended: a limit was reached", owed).await?;
            return match (cx.recorder.cut_if_exhausted().await?, open.passed) {
                (false, Some(exhausted)) => cx.recorder.cut(exhausted).await,
                _ => Ok(()),
            };
        }
        (None, Ok(finished)) => return close::reply(cx, program, attempt, finished).await,
        // Its report is in; how it left matters no more.
        (ended, _) if cx.call()?.report_accepted => {
            let how = if ended.is_some() { "ended" } else { "broke off" };
            let text = format!("({how} after its report was accepted)");
            let finished = open.cut_short(text);
            return close::reply(cx, program, attempt, finished).await;
        }
        (Some(Ended::Refused), _) => {
            let text = "(ended after its report could not be taken)".to_owned();
            let finished = open.cut_short(text);
            return close::reply(cx, program, attempt, finished).await;
        }
        (Some(Ended::Silent | Ended::Reported), _) => {
            fault(ProgramFault::Silent, format!("nothing for {} s", program.silence.as_secs()))
        }
        (Some(Ended::TooLong), _) => {
            fault(ProgramFault::TooLong, format!("its turn may take {} s", program.turn_limit.as_secs()))
        }
        (None, Err(error)) => error,
    };
    let failure = Failure {
        class: agent::classify(&error),
        message: named(program, &secrecy::clean_error(cx.secrets(), &error)),
        retry_after: error.retry_after(),
    };
    attempt.fail(cx, failure, owed).await
}

/// A failure says whose it is.
fn named(program: &Program, message: &str) -> String {
    message.replacen("the agent program ", &format!("the agent program {} ", program.name()), 1)
}
