//! How a run tells its viewers that something is new, without ever waiting for one of them.
//!
//! Events are not sent: viewers read them from the journal, each at its own pace. The hub only says how
//! far the journal goes, and passes on text while a model writes it. That text is no event: a viewer that
//! misses some loses nothing, because the finished reply follows.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::{broadcast, watch};

/// Pieces of live text a slow viewer may lag behind before it misses some.
const LIVE_BACKLOG: usize = 1_024;

/// What kind of text a model is writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LiveKind {
    Text,
    Thinking,
    /// The input of a tool call, as it is spelled.
    ToolInput,
}

/// A piece of text that a model has just written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveText {
    pub call: String,
    pub turn: u32,
    pub kind: LiveKind,
    pub text: String,
}

/// Where viewers listen. Cheap to clone; works from any thread.
#[derive(Debug, Clone)]
pub struct Hub {
    head: Arc<watch::Sender<u64>>,
    live: broadcast::Sender<LiveText>,
}

impl Default for Hub {
    fn default() -> Self {
        Self { head: Arc::new(watch::Sender::new(0)), live: broadcast::Sender::new(LIVE_BACKLOG) }
    }
}

impl Hub {
    /// The journal now holds every event before `next_seq`.
    pub fn grown(&self, next_seq: u64) {
        self.head.send_if_modified(|head| {
            let news = *head != next_seq;
            *head = next_seq;
            news
        });
    }

    pub fn say(&self, live: LiveText) {
        // Nobody listening is the usual case.
        let _ = self.live.send(live);
    }

    pub fn head(&self) -> watch::Receiver<u64> {
        self.head.subscribe()
    }

    pub fn live(&self) -> broadcast::Receiver<LiveText> {
        self.live.subscribe()
    }
}
