//! A run in another process, over its control socket.

use std::path::PathBuf;

use tokio::sync::mpsc;

use crate::console::feed::Update;
use crate::console::scene::Link;
use crate::engine::control::client::{self, Ear};
use crate::engine::error::EngineError;
use crate::engine::genesis;
use crate::engine::wire::{FromRun, WireEvent};
use crate::journal::{Blobs, RunDir};
use crate::machine::fold::Stamped;
use crate::model::ids::RunId;

use super::{OrderSink, QUEUE, Source, with_body};

/// Events that are handed over in one go at most.
const BATCH: usize = 500;

/// Attaches to the run in this directory.
pub fn attach(run: RunId, dir: PathBuf, name: &str, may_act: bool) -> Result<Source, EngineError> {
    let run_dir = RunDir::open(&dir)?;
    let workspace = genesis::workspace_of(&run_dir)?;
    let connection = client::connect(&dir, name, may_act, Some(0))?;
    let head = connection.next_seq;
    let (ear, mouth) = connection.split();
    let (sender, updates) = mpsc::channel(QUEUE);
    let blobs = run_dir.blobs();
    std::thread::Builder::new()
        .name("feed".to_owned())
        .spawn(move || listen(ear, &blobs, head, &sender))
        .map_err(|e| EngineError::Internal(format!("the feed cannot start: {e}")))?;
    Ok(Source { run, run_dir, workspace, updates, orders: OrderSink::Remote { mouth, may_act } })
}

fn listen(mut ear: Ear, blobs: &Blobs, mut head: u64, sender: &mpsc::Sender<Vec<Update>>) {
    let mut batch = Vec::new();
    loop {
        let heard = ear.hear();
        let (update, more) = match heard {
            Ok(Some(FromRun::Event(event))) => {
                head = head.max(event.seq + 1);
                // While the backlog comes, many events make one batch.
                (Some(read(event, blobs, head)), ear.has_more())
            }
            Ok(Some(FromRun::Live(live))) => (Some(Update::Live(live)), ear.has_more()),
            Ok(Some(FromRun::CaughtUp)) => (Some(Update::CaughtUp), false),
            Ok(Some(FromRun::Receipt(receipt))) => (Some(Update::Receipt(receipt)), false),
            Ok(Some(FromRun::Ended)) => (Some(Update::Ended), false),
            Ok(Some(FromRun::Welcome { .. } | FromRun::Refused(_))) => (None, false),
            Ok(None) => (Some(Update::Linked(Link::Lost("the run's process closed the connection".to_owned()))), false),
            Err(error) => (Some(Update::Linked(Link::Lost(error.to_string()))), false),
        };
        let lost = matches!(update, Some(Update::Linked(Link::Lost(_))));
        batch.extend(update);
        if !more || batch.len() >= BATCH {
            if sender.blocking_send(std::mem::take(&mut batch)).is_err() {
                return;
            }
            if lost {
                return;
            }
        }
    }
}

fn read(event: WireEvent, blobs: &Blobs, head: u64) -> Update {
    let WireEvent { seq, ts, mono_ms, boot, kind, data } = event;
    match crate::playbook::parse(&kind, data.get()) {
        Some(Ok(event)) => with_body(Stamped { seq, ts, mono_ms, boot, event }, blobs, head),
        Some(Err(e)) => Update::Linked(Link::Lost(format!("event {seq} cannot be read: {e}"))),
        None => Update::Linked(Link::Lost(format!("event {seq} (`{kind}`) was written by a newer version"))),
    }
}
