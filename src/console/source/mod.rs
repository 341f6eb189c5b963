//! Where a console's news comes from: three sources, one stream.
//!
//! A source reads on a thread of its own and waits for the console where that is slow; the engine waits for
//! neither. Bodies of events are read here, so that nothing above touches a file.

mod attached;
mod local;
mod replay;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::engine::command::{Command, Orders};
use crate::engine::control::client::Mouth;
use crate::engine::recorded;
use crate::journal::{Blobs, Record, RunDir, SEGMENT_END};
use crate::machine::event::{CallEvent, Event, Text};
use crate::machine::fold::Stamped;
use crate::model::ids::RunId;

use super::cmd::ReplayMove;
use super::feed::Update;

pub use attached::attach;
pub use local::local;
pub use replay::{Start, replay};

/// Batches that may wait for the console.
const QUEUE: usize = 64;
/// Events this far back have no body: a transcript shows the recent past.
const BODIES: u64 = 5_000;
/// A body longer than this is shown in part; the evidence has the rest.
const MAX_BODY: usize = 1 << 20;

/// A run that can be watched.
pub struct Source {
    pub run: RunId,
    pub run_dir: RunDir,
    pub workspace: PathBuf,
    pub updates: mpsc::Receiver<Vec<Update>>,
    pub orders: OrderSink,
}

/// Where orders go.
pub enum OrderSink {
    Local { orders: Orders, name: String, updates: mpsc::Sender<Vec<Update>> },
    Remote { mouth: Mouth, may_act: bool },
    Replay(mpsc::UnboundedSender<ReplayMove>),
}

impl OrderSink {
    /// Sends an order; its receipt comes with the updates. The error is for the operator.
    pub fn order(&mut self, command: Command) -> Result<(), String> {
        match self {
            Self::Local { orders, name, updates } => {
                let receipt = orders.send(command, name.as_str());
                let updates = updates.clone();
                tokio::spawn(async move {
                    let receipt = receipt.await.unwrap_or_else(|_| Err("the run has ended".to_owned()));
                    let _ = updates.send(vec![Update::Receipt(receipt)]).await;
                });
                Ok(())
            }
            Self::Remote { may_act: false, .. } => Err("this console is read-only".to_owned()),
            Self::Remote { mouth, .. } => mouth.order(command).map_err(|e| format!("the run cannot be reached: {e}")),
            Self::Replay(_) => Err("a replay accepts no commands".to_owned()),
        }
    }

    pub fn replay(&self, step: ReplayMove) {
        if let Self::Replay(moves) = self {
            let _ = moves.send(step);
        }
    }

    /// Tells the other end that we go.
    pub fn close(&self) {
        match self {
            Self::Remote { mouth, .. } => mouth.close(),
            Self::Local { orders, name, .. } => {
                orders.send(Command::Detached { why: "the console was closed".to_owned() }, name.as_str());
            }
            Self::Replay(_) => {}
        }
    }
}

/// A record as an update; the journal's own bookkeeping is none.
fn update(record: &Record, blobs: &Blobs, head: u64) -> Result<Option<Update>, String> {
    if record.kind == SEGMENT_END {
        return Ok(None);
    }
    let stamped = recorded::stamped(record).map_err(|e| e.to_string())?;
    Ok(Some(with_body(stamped, blobs, head)))
}

fn with_body(stamped: Stamped, blobs: &Blobs, head: u64) -> Update {
    let near = head.saturating_sub(stamped.seq) <= BODIES;
    let digest = match &stamped.event {
        Event::Call(CallEvent::LlmResponded(reply)) if near => Some(reply.message),
        Event::Call(CallEvent::ToolFinished(finished)) if near => match &finished.text {
            Text::Blob(digest) => Some(*digest),
            Text::Inline(_) => None,
        },
        _ => None,
    };
    // A body that cannot be read is missing from the transcript, not from the run.
    let body = digest.and_then(|digest| blobs.get(&digest).ok()).map(|mut bytes| {
        bytes.truncate(MAX_BODY);
        Arc::from(bytes)
    });
    Update::Event { stamped: Box::new(stamped), body }
}
