//! How a run tells its viewers that something is new, without ever waiting for one of them.
//!
//! Events are not sent: viewers read them from the journal, each at its own pace. The hub only says how
//! far the journal goes, and passes on text while a model writes it. That text is no event: a viewer that
//! misses some loses nothing, because the finished reply follows.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::sync::{broadcast, watch};

use crate::journal::{Follower, JournalError, Record, RunDir};

/// Pieces of live text a slow viewer may lag behind before it misses some.
const LIVE_BACKLOG: usize = 1_024;
/// Live text that is handed over in one piece at most.
const MOST_TOGETHER: usize = 64 * 1024;
/// Events that are read in one go.
const BATCH: usize = 2_000;

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

/// How far a journal goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    /// Every event before this one is there.
    pub next_seq: u64,
    /// Nothing more will come.
    pub ended: bool,
}

/// Where viewers listen. Cheap to clone; works from any thread.
#[derive(Debug, Clone)]
pub struct Hub {
    head: Arc<watch::Sender<Head>>,
    live: broadcast::Sender<LiveText>,
}

impl Default for Hub {
    fn default() -> Self {
        Self { head: Arc::new(watch::Sender::new(Head::default())), live: broadcast::Sender::new(LIVE_BACKLOG) }
    }
}

impl Hub {
    /// The journal now holds every event before `next_seq`.
    pub fn grown(&self, next_seq: u64) {
        self.head.send_if_modified(|head| {
            let news = head.next_seq != next_seq;
            head.next_seq = next_seq;
            news
        });
    }

    /// The run is over for this process: its end, or its engine's.
    pub fn close(&self) {
        self.head.send_modify(|head| head.ended = true);
    }

    pub fn say(&self, live: LiveText) {
        // Nobody listening is the usual case.
        let _ = self.live.send(live);
    }

    /// How far the journal goes now.
    pub fn head(&self) -> Head {
        *self.head.borrow()
    }

    /// Everything from the first event on, then whatever comes.
    pub fn listen(&self, run_dir: &RunDir) -> Listener {
        Listener {
            follower: Follower::new(run_dir),
            head: self.head.subscribe(),
            live: self.live.subscribe(),
            held: None,
        }
    }
}

/// What a listener hears.
#[derive(Debug)]
pub enum Heard {
    Events(Vec<Record>),
    Live(LiveText),
    /// Nothing more will come.
    Ended,
}

/// One viewer's feed.
#[derive(Debug)]
pub struct Listener {
    follower: Follower,
    head: watch::Receiver<Head>,
    live: broadcast::Receiver<LiveText>,
    /// A piece that came while others were gathered.
    held: Option<LiveText>,
}

impl Listener {
    /// The number of the next event it will hear.
    pub fn next_seq(&self) -> u64 {
        self.follower.next_seq()
    }

    pub fn head(&self) -> Head {
        *self.head.borrow()
    }

    /// Takes along what else is there of the same text: a fast writer makes few pieces, not many.
    fn gather(&mut self, mut live: LiveText) -> LiveText {
        while live.text.len() < MOST_TOGETHER && self.held.is_none() {
            match self.live.try_recv() {
                Ok(next) if next.call == live.call && next.turn == live.turn && next.kind == live.kind => {
                    live.text.push_str(&next.text);
                }
                Ok(next) => self.held = Some(next),
                // What was missed cannot be made up for; the finished reply follows.
                Err(broadcast::error::TryRecvError::Lagged(_)) => {}
                Err(_) => break,
            }
        }
        live
    }

    /// Waits for the end.
    pub async fn ended(&mut self) {
        // A sender that is gone says the same.
        let _ = self.head.wait_for(|head| head.ended).await;
    }

    /// Waits for the next piece. Events come before live text, so that a reply never precedes its request.
    /// May be dropped while it waits; nothing is lost.
    pub async fn next(&mut self) -> Result<Heard, JournalError> {
        loop {
            let ended = self.head.borrow_and_update().ended;
            let records = self.follower.take(BATCH)?;
            if !records.is_empty() {
                return Ok(Heard::Events(records));
            }
            if let Some(held) = self.held.take() {
                return Ok(Heard::Live(self.gather(held)));
            }
            if ended {
                return Ok(Heard::Ended);
            }
            tokio::select! {
                changed = self.head.changed() => if changed.is_err() {
                    return Ok(Heard::Ended);
                },
                live = self.live.recv() => match live {
                    Ok(live) => return Ok(Heard::Live(self.gather(live))),
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return Ok(Heard::Ended),
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(turn: u32, text: &str) -> LiveText {
        LiveText { call: "it0.solver".into(), turn, kind: LiveKind::Text, text: text.into() }
    }

    #[tokio::test]
    async fn pieces_of_one_text_come_together_and_others_apart() {
        let dir = tempfile::tempdir().unwrap();
        let run_dir = RunDir::create(&dir.path().join("RUN"), b"{}").unwrap();
        let hub = Hub::default();
        let mut feed = hub.listen(&run_dir);
        for text in ["a", "b", "c"] {
            hub.say(piece(0, text));
        }
        hub.say(piece(1, "d"));
        for expected in [(0, "abc"), (1, "d")] {
            let Heard::Live(live) = feed.next().await.unwrap() else { panic!("live text") };
            assert_eq!((live.turn, live.text.as_str()), expected);
        }
        hub.close();
        assert!(matches!(feed.next().await.unwrap(), Heard::Ended));
    }

    #[tokio::test]
    async fn a_listener_that_lags_misses_text_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let run_dir = RunDir::create(&dir.path().join("RUN"), b"{}").unwrap();
        let hub = Hub::default();
        let mut feed = hub.listen(&run_dir);
        for number in 0..10 * LIVE_BACKLOG {
            hub.say(piece(0, &format!("{number} ")));
        }
        let Heard::Live(live) = feed.next().await.unwrap() else { panic!("live text") };
        assert!(live.text.ends_with(&format!("{} ", 10 * LIVE_BACKLOG - 1)), "the newest is there");
        hub.close();
        assert!(matches!(feed.next().await.unwrap(), Heard::Ended));
    }
}
