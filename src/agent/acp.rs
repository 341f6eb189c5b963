//! One turn of an agent program that speaks the Agent Client Protocol, version 1.
//!
//! Role: the client's end of the conversation over a pair of streams: initialize, a session, one prompt; what
//! the program tells meanwhile becomes [`Act`]s, what it wants allowed becomes [`Ask`]s.
//! Not its role: starting or ending the process, journaling, deciding. Files and terminals are not offered:
//! the program uses its own tools inside its sandbox.
//!
//! Invariants: a turn is [`Finished`] only when the program said `end_turn`; what a loaded session replays is
//! no new act; we never start a sign-in; everything the program sends is bounded (`lines`, `hearing`).

mod calls;
mod fault;
mod hearing;
mod lines;
mod permission;
pub mod profile;
mod session;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{CancelNotification, ContentBlock, PromptRequest, TextContent};
use agent_client_protocol::v1::schema::{RequestPermissionRequest, StopReason};
use agent_client_protocol::{Agent, Client, Error, Lines, UntypedMessage};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::model::act::Act;

use super::error::{CallError, ProgramFault};
use super::message::Usage;
use super::program::{Ask, Finished, Task};
use hearing::Hearing;
use permission::Desk;

/// How long a program has to start, and to open a session with our tools.
const SETUP_TIME: Duration = Duration::from_secs(120);
/// How long we wait for the end of a turn that we cancelled, and for our last words to be read.
const GRACE: Duration = Duration::from_secs(2);

/// Has one turn done. Dropping the future ends the conversation; `cancel` ends it politely.
pub async fn run(
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    task: &Task,
    on_act: &mut (dyn FnMut(Act) + Send),
    asks: mpsc::Sender<Ask>,
    cancel: &CancellationToken,
) -> Result<Finished, CallError> {
    let line = Arc::new(lines::Line::default());
    let transport = Lines::new(lines::outgoing(writer), lines::incoming(reader, line.clone()));
    let hearing = Mutex::new(Hearing::new(task, on_act));
    let desk = Desk::new(asks, cancel.clone());
    let (outcome, ended) = (Mutex::new(None), Notify::new());
    let connection = Client
        .v1()
        .name("nightloop")
        .on_receive_notification(
            async |told: UntypedMessage, _connection: ConnectionTo<Agent>| {
                // Other notifications are optional by the protocol, and mean nothing to us.
                if told.method() == "session/update" {
                    locked(&hearing).take(told.into_parts().1);
                }
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async |wanted: RequestPermissionRequest, responder, connection: ConnectionTo<Agent>| {
                let described = locked(&hearing).describe(&wanted);
                connection.spawn(desk.clone().attend(described, wanted.options, responder))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(transport, async |connection: ConnectionTo<Agent>| {
            let turn = turn(&connection, task, &hearing, cancel).await;
            *locked(&outcome) = Some(turn);
            ended.notify_one();
            Ok(())
        });
    let closed = tokio::select! {
        closed = connection => closed,
        // The turn is over, but the program does not read our last words.
        () = async { ended.notified().await; tokio::time::sleep(GRACE).await } => Ok(()),
    };
    let mut hearing = hearing.into_inner().unwrap_or_else(PoisonError::into_inner);
    hearing.end(line.ignored());
    let turn = outcome.into_inner().unwrap_or_else(PoisonError::into_inner).unwrap_or_else(|| {
        Err(match closed {
            Err(error) => fault::broken(&error),
            Ok(()) => fault::program(ProgramFault::Crash, "the conversation ended without an answer"),
        })
    });
    match (turn, line.cut()) {
        (Err(_), Some(why)) => Err(CallError::TooLarge(why)),
        (turn, _) => turn,
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The whole conversation, from hello to the end of the turn.
async fn turn(
    connection: &ConnectionTo<Agent>,
    task: &Task,
    hearing: &Mutex<Hearing<'_>>,
    cancel: &CancellationToken,
) -> Result<Finished, CallError> {
    let opened = tokio::select! {
        opened = session::open(connection, task, hearing) => opened?,
        () = cancel.cancelled() => return Err(cancelled()),
    };
    let mut texts = Vec::new();
    // A conversation that goes on knows its role.
    if !opened.goes_on && !task.system.is_empty() {
        texts.push(task.system.clone());
    }
    texts.push(task.prompt.clone());
    let prompt = texts.into_iter().map(|text| ContentBlock::Text(TextContent::new(text))).collect();
    let request = PromptRequest::new(opened.id.clone(), prompt);
    let what = "it was working";
    // Untyped, because its answer may hold a usage that the typed one would drop.
    let request = UntypedMessage::new("session/prompt", request).map_err(|e| fault::of(&e, what, &[]))?;
    locked(hearing).go_live(&opened.id, opened.goes_on);
    let mut answer = std::pin::pin!(connection.send_request(request).block_task());
    let answer = tokio::select! {
        answer = &mut answer => answer,
        () = cancel.cancelled() => {
            let _ = connection.send_notification(CancelNotification::new(opened.id.clone()));
            let _ = tokio::time::timeout(GRACE, answer).await;
            return Err(cancelled());
        }
    };
    let answer = answer.map_err(|e| fault::of(&e, what, &opened.sign_in))?;
    finished(&answer, opened, &mut locked(hearing))
}

fn finished(
    answer: &serde_json::Value,
    opened: session::Opened,
    hearing: &mut Hearing<'_>,
) -> Result<Finished, CallError> {
    let stop = answer.get("stopReason").and_then(|stop| serde_json::from_value(stop.clone()).ok());
    let early = |fault, words: &str| Err(fault::program(fault, words));
    match stop {
        Some(StopReason::EndTurn) => {
            let (text, cost_usd) = hearing.last_words();
            let usage = answer.get("usage").map(usage).unwrap_or_default();
            Ok(Finished { text, session: Some(opened.id), model: opened.model, usage, cost_usd })
        }
        Some(StopReason::MaxTokens) => early(ProgramFault::ContextFull, "its model reached its limit of tokens"),
        Some(StopReason::MaxTurnRequests) => {
            early(ProgramFault::TooLong, "it reached its own limit of model requests in one turn")
        }
        Some(StopReason::Refusal) => early(ProgramFault::Crash, "its model refused to go on"),
        Some(StopReason::Cancelled) => early(ProgramFault::Crash, "it says that the turn was cancelled; not by us"),
        // The enum may grow; an end we do not know is no success.
        Some(_) | None => early(ProgramFault::Crash, "it ended the turn without a reason that we know"),
    }
}

/// The tokens of a turn, where the program gives them. What it leaves out counts as nothing here.
fn usage(given: &serde_json::Value) -> Usage {
    let count = |name: &str| given.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0);
    let mut usage = Usage {
        input_tokens: count("inputTokens"),
        cache_creation_input_tokens: count("cachedWriteTokens"),
        cache_read_input_tokens: count("cachedReadTokens"),
        output_tokens: count("outputTokens"),
        thinking_tokens: count("thoughtTokens"),
        ..Default::default()
    };
    // Some count thoughts beside the output, some within it: the total tells.
    if count("totalTokens") >= usage.total().saturating_add(usage.thinking_tokens) {
        usage.output_tokens = usage.output_tokens.saturating_add(usage.thinking_tokens);
    }
    usage
}

fn cancelled() -> CallError {
    fault::program(ProgramFault::Crash, "we cancelled its turn")
}

/// Bounds the wait for an answer that must come before the turn begins. The outer error ends the conversation;
/// the inner one is the program's own answer.
async fn within<T>(what: &str, answer: impl Future<Output = Result<T, Error>>) -> Result<Result<T, Error>, CallError> {
    match tokio::time::timeout(SETUP_TIME, answer).await {
        Ok(Err(error)) if fault::is_end(&error) => Err(fault::of(&error, what, &[])),
        Ok(answer) => Ok(answer),
        Err(_) => {
            let words = format!("no answer for {} s while {what}", SETUP_TIME.as_secs());
            Err(fault::program(ProgramFault::Silent, &words))
        }
    }
}
