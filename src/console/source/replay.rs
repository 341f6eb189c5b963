//! A journal played back: the same updates, at the pace of the night or faster.

use std::path::Path;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::console::cmd::ReplayMove;
use crate::console::feed::Update;
use crate::console::scene::{Link, millis_of};
use crate::engine::error::EngineError;
use crate::engine::genesis;
use crate::engine::host::runtime;
use crate::engine::recorded;
use crate::journal::{self, Blobs, JournalError, RunDir};
use crate::machine::fold::Stamped;
use crate::model::ids::RunId;

use super::{OrderSink, QUEUE, Source, with_body};

/// Waits in the journal longer than this are cut: nobody watches a rate limit twice.
const LONGEST_GAP: Duration = Duration::from_secs(5);
const FASTEST: u32 = 1_024;
/// A replay keeps its events in memory.
const MAX_EVENTS: usize = 500_000;

/// Where a replay begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At the first event, playing.
    Beginning,
    /// At the last event, holding: the way to look at a finished run.
    End,
}

/// Plays the journal in this directory, wherever it was copied to.
pub fn replay(dir: &Path, speed: u32, start: Start) -> Result<Source, EngineError> {
    let run_dir = RunDir::open(dir)?;
    let workspace = genesis::workspace_of(&run_dir)?;
    let events = read(&run_dir)?;
    let Some(first) = events.first() else {
        return Err(EngineError::usage("the journal is empty", "there is nothing to replay"));
    };
    let run = match &first.event {
        crate::machine::event::Event::Run(crate::machine::event::RunEvent::RunStarted(started)) => started.run.clone(),
        _ => RunId::parse("00000000000000000000000000").ok_or_else(|| EngineError::Internal("no run id".to_owned()))?,
    };
    let (sender, updates) = mpsc::channel(QUEUE);
    let (moves, moved) = mpsc::unbounded_channel();
    let blobs = run_dir.blobs();
    let (playing, speed) = (start == Start::Beginning, speed.clamp(1, FASTEST));
    let mut player = Player { events, blobs, at: 0, playing, speed, sender };
    let first = if playing { 1 } else { player.events.len() };
    std::thread::Builder::new()
        .name("feed".to_owned())
        .spawn(move || {
            if let Ok(runtime) = runtime() {
                runtime.block_on(player.play(first, moved));
            }
        })
        .map_err(|e| EngineError::Internal(format!("the replay cannot start: {e}")))?;
    Ok(Source { run, run_dir, workspace, updates, orders: OrderSink::Replay(moves) })
}

fn read(run_dir: &RunDir) -> Result<Vec<Stamped>, EngineError> {
    let mut events = Vec::new();
    for record in journal::read(run_dir) {
        match record {
            Ok(record) if record.kind == journal::SEGMENT_END => {}
            Ok(record) => events.push(recorded::stamped(&record)?),
            Err(JournalError::Torn { .. }) => break,
            Err(error) => return Err(error.into()),
        }
        if events.len() > MAX_EVENTS {
            return Err(EngineError::usage(
                format!("the journal has more than {MAX_EVENTS} events"),
                "attach to the run, and use its timeline",
            ));
        }
    }
    Ok(events)
}

struct Player {
    events: Vec<Stamped>,
    blobs: Blobs,
    /// How many events have been told.
    at: usize,
    playing: bool,
    speed: u32,
    sender: mpsc::Sender<Vec<Update>>,
}

impl Player {
    /// Tells the first events at once: without any there is nothing to show.
    async fn play(&mut self, first: usize, mut moves: mpsc::UnboundedReceiver<ReplayMove>) {
        if self.tell(0..first).await.is_err() {
            return;
        }
        loop {
            let due = self.playing.then(|| self.gap()).flatten().map(|gap| Instant::now() + gap);
            let wait = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            let told = tokio::select! {
                step = moves.recv() => match step {
                    Some(step) => self.obey(step).await,
                    None => return,
                },
                () = wait => self.tell(self.at..self.at + 1).await,
            };
            if told.is_err() {
                return;
            }
        }
    }

    /// Until the next event; `None` at the end.
    fn gap(&self) -> Option<Duration> {
        let next = self.events.get(self.at)?;
        let last = self.at.checked_sub(1).and_then(|index| self.events.get(index));
        let millis = match (last.and_then(|last| millis_of(&last.ts)), millis_of(&next.ts)) {
            (Some(last), Some(next)) => u64::try_from(next - last).unwrap_or(0),
            _ => 0,
        };
        Some(Duration::from_millis(millis).min(LONGEST_GAP) / self.speed)
    }

    async fn obey(&mut self, step: ReplayMove) -> Result<(), ()> {
        match step {
            ReplayMove::Toggle if self.at >= self.events.len() => {
                self.playing = true;
                return self.rewind(1).await;
            }
            ReplayMove::Toggle => self.playing = !self.playing,
            ReplayMove::Forward => {
                self.playing = false;
                return self.tell(self.at..self.at + 1).await;
            }
            ReplayMove::Back => {
                self.playing = false;
                return self.rewind(self.at.saturating_sub(1).max(1)).await;
            }
            ReplayMove::Faster => self.speed = (self.speed * 2).min(FASTEST),
            ReplayMove::Slower => self.speed = (self.speed / 2).max(1),
        }
        self.send(vec![self.link()]).await
    }

    async fn rewind(&mut self, to: usize) -> Result<(), ()> {
        self.send(vec![Update::Reset]).await?;
        self.at = 0;
        self.tell(0..to).await
    }

    async fn tell(&mut self, range: std::ops::Range<usize>) -> Result<(), ()> {
        let end = range.end.min(self.events.len());
        let head = end as u64;
        let told = self.events.get(range.start.min(end)..end).unwrap_or_default();
        let mut batch: Vec<Update> = told.iter().map(|stamped| with_body(stamped.clone(), &self.blobs, head)).collect();
        self.at = end;
        batch.push(self.link());
        self.send(batch).await
    }

    fn link(&self) -> Update {
        let of = self.events.len() as u64;
        let playing = self.playing && (self.at as u64) < of;
        Update::Linked(Link::Replay { playing, speed: self.speed, at: self.at as u64, of })
    }

    async fn send(&self, batch: Vec<Update>) -> Result<(), ()> {
        self.sender.send(batch).await.map_err(|_| ())
    }
}
