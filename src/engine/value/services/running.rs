//! The services that run now: each a supervised process with a log.
//!
//! Role: hold them, end them, say how they ended. Not its role: which should run, and what is recorded (`services`).
//! Invariants: what is held here dies with us, by the launcher or the reaper; an end is reported once; ending takes a
//! bounded time whatever a service does.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::model::secret::Secrets;
use crate::tool::process::{self, CommandSpec, End, ProcessOutcome, Wires};

use super::log::{Log, Place};

/// For a stop command.
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// Logs of services that ended, for whoever asks why.
const MAX_LAST: usize = 40;

/// How a service ended.
#[derive(Debug)]
pub(in crate::engine) struct Ended {
    pub name: String,
    pub how: String,
    /// The end of what it wrote.
    pub log: String,
}

/// One that runs, or did until just now.
#[derive(Debug)]
pub(in crate::engine) struct One {
    task: JoinHandle<ProcessOutcome>,
    token: CancellationToken,
    stop: Option<CommandSpec>,
    log: Log,
    since: Instant,
}

impl One {
    pub(super) fn start(spec: CommandSpec, stop: Option<CommandSpec>, place: Place, secrets: Arc<Secrets>) -> Self {
        let token = CancellationToken::new();
        let (wired, log) = match wired(spec, place, secrets) {
            Ok((spec, log)) => (Ok(spec), log),
            Err(error) => (Err(format!("it has no pipes: {error}")), Log::default()),
        };
        let cancel = token.clone();
        let task = tokio::spawn(async move {
            match wired {
                Ok(spec) => process::run(spec, &cancel).await,
                Err(why) => ProcessOutcome::without_output(End::NotStarted(why)),
            }
        });
        Self { task, token, stop, log, since: Instant::now() }
    }

    pub(super) fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// Has its process ended?
    pub(super) fn is_over(&self) -> bool {
        self.task.is_finished()
    }

    pub(super) fn log(&self) -> String {
        self.log.end()
    }

    /// Asks it to end and waits until nothing of it is left.
    async fn finish(mut self, name: String, orderly: bool) -> Ended {
        let asked = !self.is_over();
        if let Some(mut stop) = self.stop.take().filter(|_| asked && orderly) {
            stop.timeout = STOP_LIMIT;
            let _ = process::run(stop, &CancellationToken::new()).await;
        }
        let by_itself = self.is_over();
        self.token.cancel();
        let how = match (&mut self.task).await {
            Ok(outcome) if by_itself => told(&outcome),
            Ok(_) => "ended by the engine".to_owned(),
            Err(_) => "nobody knows how".to_owned(),
        };
        Ended { name, how, log: self.log.whole().await }
    }
}

impl Drop for One {
    fn drop(&mut self) {
        self.token.cancel();
    }
}

/// Its output goes to a log, its input is empty.
fn wired(mut spec: CommandSpec, place: Place, secrets: Arc<Secrets>) -> io::Result<(CommandSpec, Log)> {
    let (reader, writer) = io::pipe()?;
    let stdin = OwnedFd::from(File::open("/dev/null")?);
    spec.wires = Some(Wires { stdin, stdout: OwnedFd::from(writer) });
    Ok((spec, Log::begin(reader, place, secrets)?))
}

fn told(outcome: &ProcessOutcome) -> String {
    match &outcome.end {
        End::Exited(code) => format!("it ended with exit code {code}"),
        End::Signaled(signal) => format!("it was ended by signal {signal}"),
        End::TimedOut | End::Cancelled => "ended by the engine".to_owned(),
        End::NotStarted(why) | End::Exhausted(why) => format!("it did not start: {why}"),
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(in crate::engine) struct Running {
    all: BTreeMap<String, One>,
    /// What the latest one of a name wrote last.
    last: BTreeMap<String, String>,
}

impl Running {
    pub(super) fn begin(&mut self, name: &str, one: One) {
        self.all.insert(name.to_owned(), one);
    }

    pub(super) fn get(&self, name: &str) -> Option<&One> {
        self.all.get(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        self.all.keys().cloned()
    }

    pub(super) fn last_log(&self, name: &str) -> Option<String> {
        self.last.get(name).cloned()
    }

    /// Those that ended by themselves since the last time.
    pub(super) async fn take_ended(&mut self) -> Vec<Ended> {
        let over = self.all.iter().filter(|(_, one)| one.is_over()).map(|(name, _)| name.clone()).collect::<Vec<_>>();
        self.end(&over, false).await
    }

    /// Ends these, all at the same time.
    pub(super) async fn end(&mut self, names: &[String], orderly: bool) -> Vec<Ended> {
        let ending = names.iter().filter_map(|name| Some((name.clone(), self.all.remove(name)?)));
        let ended = join_all(ending.map(|(name, one)| one.finish(name, orderly))).await;
        for one in &ended {
            if self.last.len() < MAX_LAST || self.last.contains_key(&one.name) {
                self.last.insert(one.name.clone(), one.log.clone());
            }
        }
        ended
    }

    /// The run is over. A stop does not wait for stop commands.
    pub(in crate::engine) async fn end_all(&mut self, orderly: bool) {
        let names: Vec<String> = self.names().collect();
        self.end(&names, orderly).await;
    }
}
