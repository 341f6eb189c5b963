//! The keys, read on a thread of their own.
//!
//! Not here: what a key means. The library that reads them does not come back from a terminal that hung up: it
//! reads its end over and over. So the console never calls it itself, and can always hear that the line is lost.
//! Invariants: after `close` nobody here reads keys; a key that was read is never lost.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use crossterm::event::{Event, EventStream};
use futures_util::StreamExt as _;
use tokio::sync::{mpsc, oneshot};

use crate::engine::host::runtime;

/// A reader that does not stop within this time is caught in a terminal that is gone.
const PATIENCE: Duration = Duration::from_millis(500);

/// Keys that were read and not yet taken.
pub type Typed = VecDeque<io::Result<Event>>;

pub struct Input {
    early: Typed,
    events: mpsc::UnboundedReceiver<io::Result<Event>>,
    /// Dropping it stops the reader, too.
    stop: oneshot::Sender<()>,
    stopped: std::sync::mpsc::Receiver<()>,
}

impl Input {
    /// Begins to read. Without a thread for it no key ever comes, which is the same as nobody there.
    pub fn open(early: Typed) -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        let (stop, stop_wanted) = oneshot::channel();
        let (tell, stopped) = std::sync::mpsc::channel();
        let spawned = std::thread::Builder::new().name("keys".to_owned()).spawn(move || {
            if let Ok(runtime) = runtime() {
                runtime.block_on(read(&sender, stop_wanted));
            }
            // Nobody may wait for it.
            let _ = tell.send(());
        });
        drop(spawned);
        Self { early, events, stop, stopped }
    }

    /// The next key. May be dropped while it waits; nothing is lost.
    pub async fn next(&mut self) -> Option<io::Result<Event>> {
        match self.early.pop_front() {
            Some(event) => Some(event),
            None => self.events.recv().await,
        }
    }

    /// Stops reading, and waits until that is so. What was typed ahead is for whoever opens it again.
    pub fn close(mut self) -> Typed {
        let _ = self.stop.send(());
        let _ = self.stopped.recv_timeout(PATIENCE);
        while let Ok(event) = self.events.try_recv() {
            self.early.push_back(event);
        }
        self.early
    }
}

async fn read(sender: &mpsc::UnboundedSender<io::Result<Event>>, mut stop_wanted: oneshot::Receiver<()>) {
    let mut stream = EventStream::new();
    loop {
        let event = tokio::select! {
            biased;
            _ = &mut stop_wanted => return,
            event = stream.next() => event,
        };
        let Some(event) = event else { return };
        if sender.send(event).is_err() {
            return;
        }
    }
}
