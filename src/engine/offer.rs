//! Our tools, offered to an agent program for one call: the engine's end of `nightloop mcp`.
//!
//! Role: a private socket on which the tools of exactly one call are listed and called. Each call becomes a
//! [`Call`] for the engine, which answers it or drops it.
//! Not its role: running tools, judging input, journaling. MCP itself is spoken by `cli::mcp`; what the two
//! say to each other is in [`wire`], and [`client`] is the other end.
//!
//! Invariants: who does not know the token learns nothing; a tool that is not listed is not called; ids are
//! ours; everything is bounded; when the [`ToolServer`] is dropped its socket is gone and nobody waits for an answer.

pub mod client;
pub mod wire;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::BufReader;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};

use crate::agent::program::Offer;

pub use wire::{Answer, ToolSpecJson};
use wire::{FromClient, FromServer, Hello, MAX_LINE, PROTOCOL, Received, read_line, write_line};

/// The variable that names the socket.
pub const SOCKET_VAR: &str = "NIGHTLOOP_TOOLS";
/// The variable that holds the token.
pub const TOKEN_VAR: &str = "NIGHTLOOP_TOOLS_TOKEN";
/// The name of our MCP server, as programs show it.
pub const SERVER_NAME: &str = "nightloop";

/// The kernel's limit for a socket's path is 108 bytes on Linux and 104 elsewhere, with its end.
const MAX_SOCKET_PATH: usize = 100;
const MAX_CONNECTIONS: usize = 4;
const MAX_CALLS: usize = 64;
/// A hello must come at once.
const HELLO_TIME: Duration = Duration::from_secs(5);
/// A peer that takes nothing for this long is let go.
const PATIENCE: Duration = Duration::from_secs(20);

/// A program wants one of our tools run.
#[derive(Debug)]
pub struct Call {
    /// Ours: `m1`, `m2` …
    pub id: String,
    pub name: String,
    /// As the program gave it: not checked against any schema.
    pub input: serde_json::Value,
    /// Dropped without an answer, the program is told that there was none.
    pub reply: oneshot::Sender<Answer>,
}

/// A listening socket for the tools of one call. Dropping it removes the socket and refuses who waits.
#[derive(Debug)]
pub struct ToolServer {
    socket: PathBuf,
    token: String,
    refused: Arc<AtomicU64>,
    listening: AbortHandle,
    /// Private to this user; removed with everything in it.
    _folder: tempfile::TempDir,
}

impl ToolServer {
    /// Listens in a fresh private folder under `dir`. Needs a tokio runtime, whichever kind.
    pub fn open(dir: &Path, tools: Vec<ToolSpecJson>, calls: mpsc::Sender<Call>) -> io::Result<Self> {
        let runtime = tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
        let names = tools.iter().map(|tool| tool.name.clone()).collect::<BTreeSet<_>>();
        if names.len() != tools.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "two tools have the same name"));
        }
        let welcome = wire::line(&FromServer::Tools(tools))?;
        if welcome.len() > MAX_LINE {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the list of tools is too long to be offered"));
        }
        let folder = private_folder(dir)?;
        let socket = socket_in(folder.path());
        let token = fresh_token()?;
        let _entered = runtime.enter();
        let listener = UnixListener::bind(&socket)?;
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600))?;
        let refused = Arc::new(AtomicU64::new(0));
        let shared = Arc::new(Shared {
            token: token.clone(),
            names,
            welcome,
            calls,
            refused: refused.clone(),
            numbers: AtomicU64::new(0),
            in_flight: Arc::new(Semaphore::new(MAX_CALLS)),
        });
        let listening = runtime.spawn(shared.receive(listener)).abort_handle();
        Ok(Self { socket, token, refused, listening, _folder: folder })
    }

    /// What an agent program is given to reach these tools.
    pub fn offer(&self, our_binary: &Path) -> Offer {
        Offer {
            name: SERVER_NAME.to_owned(),
            argv: vec![our_binary.to_string_lossy().into_owned(), "mcp".to_owned()],
            env: vec![
                (SOCKET_VAR.to_owned(), self.socket.to_string_lossy().into_owned()),
                (TOKEN_VAR.to_owned(), self.token.clone()),
            ],
        }
    }

    /// The socket, for a sandbox that must let it through.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// How many peers came with a wrong token, or as another user.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

impl Drop for ToolServer {
    fn drop(&mut self) {
        // The task owns the listener and every connection: they close with it.
        self.listening.abort();
    }
}

fn socket_in(folder: &Path) -> PathBuf {
    folder.join("tools.sock")
}

/// A new folder that only this user may enter, where a socket's path is short enough.
fn private_folder(dir: &Path) -> io::Result<tempfile::TempDir> {
    let temporary = std::env::temp_dir();
    for parent in [dir, &temporary, Path::new("/tmp")] {
        // A name is as long as any other.
        if socket_in(&parent.join("tools-12345678")).as_os_str().len() <= MAX_SOCKET_PATH {
            let private = std::fs::Permissions::from_mode(0o700);
            return tempfile::Builder::new().prefix("tools-").rand_bytes(8).permissions(private).tempdir_in(parent);
        }
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "every folder for the tools' socket has too long a path"))
}

/// 128 random bits as hexadecimal.
fn fresh_token() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().fold(String::new(), |mut token, byte| {
        // Writing into a string cannot fail.
        let _ = write!(token, "{byte:02x}");
        token
    }))
}

/// Takes as long for every wrong token of the right length.
fn same(ours: &str, theirs: &str) -> bool {
    ours.len() == theirs.len() && ours.bytes().zip(theirs.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// What every connection shares.
struct Shared {
    token: String,
    names: BTreeSet<String>,
    welcome: Vec<u8>,
    calls: mpsc::Sender<Call>,
    refused: Arc<AtomicU64>,
    numbers: AtomicU64,
    in_flight: Arc<Semaphore>,
}

impl Shared {
    async fn receive(self: Arc<Self>, listener: UnixListener) {
        let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        let (listener, place) = (self.clone(), room.clone().try_acquire_owned());
                        match place {
                            Ok(place) => {
                                connections.spawn(async move {
                                    listener.host(stream).await;
                                    drop(place);
                                });
                            }
                            // Said without waiting: a fresh socket has room for a line.
                            Err(_) => {
                                let why = wire::line(&FromServer::Refused("too many connections".to_owned()));
                                let _ = why.and_then(|line| stream.try_write(&line));
                            }
                        }
                    }
                    // Out of file descriptors, most likely: later is better than never.
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                },
                Some(_) = connections.join_next() => {}
            }
        }
    }

    /// One connection, from hello to its end.
    async fn host(self: Arc<Self>, stream: UnixStream) {
        let us = rustix::process::geteuid().as_raw();
        let ours = stream.peer_cred().is_ok_and(|peer| peer.uid() == us);
        let (reader, mut writer) = stream.into_split();
        let mut reader = BufReader::new(reader);
        let hello = tokio::time::timeout(HELLO_TIME, read_line(&mut reader)).await;
        let Ok(Ok(Received::Line(hello))) = hello else { return };
        if let Err(why) = self.admit(ours, &hello) {
            let _ = say(&mut writer, &FromServer::Refused(why.to_owned())).await;
            return;
        }
        if send(&mut writer, &self.welcome).await.is_ok() {
            self.serve(reader, writer).await;
        }
    }

    fn admit(&self, same_user: bool, hello: &[u8]) -> Result<(), &'static str> {
        let hello = serde_json::from_slice::<Hello>(hello).map_err(|_| "this is no hello")?;
        if !same_user || !same(&self.token, &hello.token) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err("the token is not the one of this call");
        }
        if hello.protocol != PROTOCOL {
            return Err("another version of nightloop runs this loop: use the same program for both");
        }
        Ok(())
    }

    async fn serve(self: Arc<Self>, mut reader: BufReader<OwnedReadHalf>, mut writer: OwnedWriteHalf) {
        let (answers, mut answered) = mpsc::channel::<FromServer>(MAX_CALLS);
        let telling = async {
            while let Some(answer) = answered.recv().await {
                if say(&mut writer, &answer).await.is_err() {
                    break;
                }
            }
        };
        let hearing = async {
            // Dropped with the connection: nobody answers to who is gone.
            let mut calls = JoinSet::new();
            while let Ok(Received::Line(line)) = read_line(&mut reader).await {
                while calls.try_join_next().is_some() {}
                let Ok(FromClient::Call { n, name, input }) = serde_json::from_slice(&line) else { break };
                let (listener, answers) = (self.clone(), answers.clone());
                match self.in_flight.clone().try_acquire_owned() {
                    Ok(place) => {
                        calls.spawn(async move {
                            let answer = listener.call(name, input).await;
                            drop(place);
                            let _ = answers.send(FromServer::Answer { n, answer }).await;
                        });
                    }
                    Err(_) => {
                        let why = format!("refused: {MAX_CALLS} calls are being run; wait for one to end");
                        let _ = answers.send(FromServer::Answer { n, answer: Answer::error(why) }).await;
                    }
                }
            }
        };
        tokio::select! {
            () = telling => {}
            () = hearing => {}
        }
    }

    async fn call(&self, name: String, input: serde_json::Value) -> Answer {
        if !self.names.contains(&name) {
            return Answer::error("there is no such tool; tools/list names those there are");
        }
        let (reply, answer) = oneshot::channel();
        let id = format!("m{}", self.numbers.fetch_add(1, Ordering::Relaxed) + 1);
        if self.calls.send(Call { id, name, input, reply }).await.is_err() {
            return Answer::error("the engine takes no more calls of this turn");
        }
        let answer = answer.await.unwrap_or_else(|_| Answer::error("the engine did not answer this call"));
        answer.bounded()
    }
}

async fn say(writer: &mut OwnedWriteHalf, said: &FromServer) -> io::Result<()> {
    send(writer, &wire::line(said)?).await
}

async fn send(writer: &mut OwnedWriteHalf, line: &[u8]) -> io::Result<()> {
    tokio::time::timeout(PATIENCE, write_line(writer, line))
        .await
        .unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut)))
}

#[cfg(test)]
mod tests;
