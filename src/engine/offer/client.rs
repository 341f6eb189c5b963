//! The other end of a [`ToolServer`](super::ToolServer): how `nightloop mcp` reaches the engine.
//!
//! Not its role: MCP. Invariant: a call always comes back: with the engine's answer, or with an error that
//! says that the engine is gone.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::oneshot;

use crate::agent::error::text;
use crate::engine::error::EngineError;

use super::wire::{Answer, FromClient, FromServer, Hello, MAX_LINE, PROTOCOL, Received, ToolSpecJson};
use super::wire::{line, read_line, write_line};

/// The engine answers a hello at once, or not at all.
const WELCOME_TIME: Duration = Duration::from_secs(10);

/// Who waits for which answer; `None` once the engine is gone.
type Waiting = Arc<Mutex<Option<HashMap<u64, oneshot::Sender<Answer>>>>>;

/// A connection to the engine, after the welcome.
#[derive(Debug)]
pub struct Caller {
    writer: tokio::sync::Mutex<OwnedWriteHalf>,
    waiting: Waiting,
    numbers: AtomicU64,
}

impl Caller {
    /// Connects, shows the token, and hears which tools there are.
    pub async fn connect(socket: &Path, token: &str) -> Result<(Self, Vec<ToolSpecJson>), EngineError> {
        let broken = |e| EngineError::io("the engine that offered these tools does not answer", socket, e);
        let reaching = async {
            let (reader, mut writer) = UnixStream::connect(socket).await?.into_split();
            write_line(&mut writer, &line(&Hello { protocol: PROTOCOL, token: token.to_owned() })?).await?;
            let mut reader = BufReader::new(reader);
            let welcome = match read_line(&mut reader).await? {
                Received::Line(line) => serde_json::from_slice(&line)?,
                Received::End => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            };
            Ok((reader, writer, welcome))
        };
        let reached = tokio::time::timeout(WELCOME_TIME, reaching).await;
        let (reader, writer, welcome) =
            reached.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut))).map_err(broken)?;
        match welcome {
            FromServer::Tools(tools) => {
                let waiting: Waiting = Arc::new(Mutex::new(Some(HashMap::new())));
                tokio::spawn(hear(reader, waiting.clone()));
                let caller = Self { writer: tokio::sync::Mutex::new(writer), waiting, numbers: AtomicU64::new(0) };
                Ok((caller, tools))
            }
            FromServer::Refused(why) => Err(EngineError::usage(
                format!("the engine refused: {}", text(&why)),
                "`nightloop mcp` is started by an agent program during its turn, with that turn's own variables",
            )),
            FromServer::Answer { .. } => Err(EngineError::Internal("the engine's answer cannot be read".to_owned())),
        }
    }

    /// Runs one tool. Always comes back.
    pub async fn call(&self, name: String, input: serde_json::Value) -> Answer {
        let n = self.numbers.fetch_add(1, Ordering::Relaxed);
        let said = match line(&FromClient::Call { n, name, input }) {
            Ok(said) if said.len() <= MAX_LINE => said,
            Ok(_) => return Answer::error(format!("the input is too long: at most {MAX_LINE} bytes in all")),
            Err(e) => return Answer::error(format!("the input cannot be passed on: {e}")),
        };
        let (sender, answer) = oneshot::channel();
        match &mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(waiting) => waiting.insert(n, sender),
            None => return gone(),
        };
        if write_line(&mut *self.writer.lock().await, &said).await.is_err() {
            return gone();
        }
        answer.await.unwrap_or_else(|_| gone())
    }
}

fn gone() -> Answer {
    Answer::error("the engine has gone, or has ended this turn: the tool was not run, or its result is lost")
}

/// Hands answers to who waits for them, until the engine goes.
async fn hear(mut reader: BufReader<OwnedReadHalf>, waiting: Waiting) {
    while let Ok(Received::Line(line)) = read_line(&mut reader).await {
        let Ok(FromServer::Answer { n, answer }) = serde_json::from_slice(&line) else { break };
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = waiting.as_mut().and_then(|waiting| waiting.remove(&n)) {
            let _ = sender.send(answer);
        }
    }
    // Dropping the senders wakes everyone who waits.
    waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
}
