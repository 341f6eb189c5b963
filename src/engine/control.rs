//! The run's control socket: others may watch, and the same user may give orders.
//!
//! It lives on a thread of its own and reads events from the journal, so that no viewer, slow or dead, can
//! hold the engine up. The socket is private to its user.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};

use crate::journal::{Record, RunDir, SEGMENT_END};
use crate::model::learnings::flatten;
use crate::tool::process;

use super::command::{Command, Orders, Receipt};
use super::hub::{Heard, Hub};
use super::wire::{FromRun, FromViewer, Hello, MAX_LINE, PROTOCOL};

/// The socket's name in the run directory.
pub const SOCKET: &str = "control.sock";
/// The kernel's limit for a socket's path, with room for its end.
const MAX_SOCKET_PATH: usize = 100;
const MAX_VIEWERS: usize = 16;
/// Orders of one connection that may be refused; a person does not ask in vain this often.
const MAX_REFUSALS: u32 = 200;
/// Processes between a tool and the engine, at most.
const MAX_ANCESTORS: usize = 64;
/// A viewer that takes nothing for this long is let go.
const PATIENCE: Duration = Duration::from_secs(20);
/// A hello must come at once.
const HELLO_TIME: Duration = Duration::from_secs(5);

/// A listening control socket. Dropping it tells the viewers that the run is over here, and waits a moment.
pub struct Control {
    hub: Hub,
    thread: Option<JoinHandle<()>>,
    path: PathBuf,
}

impl Control {
    /// Listens in the run directory. The caller owns the run, so what lies there is a dead socket.
    pub fn listen(run_dir: &RunDir, run: &str, hub: &Hub, orders: &Orders) -> io::Result<Self> {
        let path = run_dir.path().join(SOCKET);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let listener = reachable(run_dir.path(), std::os::unix::net::UnixListener::bind)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        let server = ControlServer {
            run: run.to_owned(),
            run_dir: run_dir.clone(),
            hub: hub.clone(),
            orders: orders.clone(),
            room: Arc::new(Semaphore::new(MAX_VIEWERS)),
            viewers: Arc::new(AtomicU32::new(0)),
        };
        let thread = std::thread::Builder::new().name("control".to_owned()).spawn(move || {
            // Made here: where the thread is refused, it would be dropped inside another one.
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
            runtime.block_on(server.receive(listener));
            // Viewers that have not read the end by now are not waited for.
            runtime.shutdown_timeout(Duration::from_millis(100));
        })?;
        Ok(Self { hub: hub.clone(), thread: Some(thread), path })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.hub.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Binds or connects in a directory whose path may be longer than a socket's may be.
fn reachable<T>(dir: &Path, open: impl Fn(PathBuf) -> io::Result<T>) -> io::Result<T> {
    let path = dir.join(SOCKET);
    if path.as_os_str().len() <= MAX_SOCKET_PATH {
        return open(path);
    }
    use std::os::fd::AsRawFd as _;
    let held = std::fs::File::open(dir)?;
    open(PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd())).join(SOCKET))
}

/// Did this run start that process, directly or not? Its tools are the same user as the operator, but no
/// operator. Linux only; elsewhere a sandbox has to keep them away.
fn belongs_to_run(pid: i32, run: &str) -> bool {
    let ours = i32::try_from(std::process::id()).ok();
    if Some(pid) == ours {
        return false;
    }
    let mut at = pid;
    for _ in 0..MAX_ANCESTORS {
        let marker = format!("{}={run}", process::RUN_VAR);
        let environment = std::fs::read(format!("/proc/{at}/environ")).unwrap_or_default();
        if Some(at) == ours || environment.split(|byte| *byte == 0).any(|entry| entry == marker.as_bytes()) {
            return true;
        }
        match parent_of(at) {
            Some(parent) if parent > 1 => at = parent,
            _ => return false,
        }
    }
    false
}

fn parent_of(pid: i32) -> Option<i32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok()
}

/// What every viewer needs to know.
#[derive(Clone)]
struct ControlServer {
    run: String,
    run_dir: RunDir,
    hub: Hub,
    orders: Orders,
    room: Arc<Semaphore>,
    viewers: Arc<AtomicU32>,
}

impl ControlServer {
    async fn receive(self, listener: std::os::unix::net::UnixListener) {
        let Ok(listener) = UnixListener::from_std(listener) else { return };
        let mut feed = self.hub.listen(&self.run_dir);
        let mut viewers = tokio::task::JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        // A place from the start: who never says hello takes one as well.
                        if let Ok(place) = self.room.clone().try_acquire_owned() {
                            let server = self.clone();
                            viewers.spawn(async move {
                                server.host(stream).await;
                                drop(place);
                            });
                        }
                    }
                    // Out of file descriptors, most likely: later is better than never.
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                },
                Some(_) = viewers.join_next() => {}
                () = feed.ended() => break,
            }
        }
        let farewell = async { while viewers.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(Duration::from_secs(1), farewell).await;
    }

    /// One viewer, from hello to goodbye.
    async fn host(self, stream: UnixStream) {
        let peer = stream.peer_cred().ok().and_then(|peer| peer.pid());
        let (reader, mut writer) = stream.into_split();
        if peer.is_some_and(|pid| belongs_to_run(pid, &self.run)) {
            let why = "processes that a run started cannot control it".to_owned();
            let _ = say(&mut writer, &FromRun::Refused(why)).await;
            return;
        }
        let mut reader = BufReader::new(reader);
        let Ok(Some(line)) = tokio::time::timeout(HELLO_TIME, read_line(&mut reader)).await.unwrap_or(Ok(None)) else {
            return;
        };
        let hello = match serde_json::from_slice::<Hello>(&line) {
            Ok(hello) if hello.protocol == PROTOCOL => hello,
            Ok(hello) => {
                let (ours, theirs) = (env!("CARGO_PKG_VERSION"), flatten(&hello.version));
                let why = format!("the run uses nightloop {ours}, this is {theirs}: use the same version");
                let _ = say(&mut writer, &FromRun::Refused(why)).await;
                return;
            }
            Err(e) => {
                let _ = say(&mut writer, &FromRun::Refused(format!("no hello: {e}"))).await;
                return;
            }
        };
        let welcome = FromRun::Welcome {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            run: self.run.clone(),
            next_seq: self.hub.head().next_seq,
        };
        if say(&mut writer, &welcome).await.is_err() {
            return;
        }
        let viewer = self.viewers.fetch_add(1, Ordering::Relaxed) + 1;
        let pid = peer.map(|pid| format!(", pid {pid}")).unwrap_or_default();
        let name = format!("{} #{viewer}{pid}", flatten(&hello.name).chars().take(50).collect::<String>());
        if hello.from.is_some() {
            self.orders.send(Command::Attached { may_act: hello.may_act }, &name);
        }
        let why = self.attend(&hello, &name, reader, writer).await;
        if hello.from.is_some() {
            self.orders.send(Command::Detached { why: why.to_owned() }, &name);
        }
    }

    async fn attend(
        &self,
        hello: &Hello,
        name: &str,
        mut reader: BufReader<OwnedReadHalf>,
        mut writer: OwnedWriteHalf,
    ) -> &'static str {
        let (receipts, mut received) = mpsc::channel::<Receipt>(16);
        let telling = async {
            match hello.from {
                Some(from) => self.tell(from, &mut received, &mut writer).await,
                None => tell_receipts(&mut received, &mut writer).await,
            }
        };
        let hearing = async {
            let mut refused = 0;
            loop {
                match read_line(&mut reader).await {
                    Ok(Some(line)) => {
                        let receipt = self.obey(hello, name, &line).await;
                        refused += u32::from(receipt.is_err());
                        if refused > MAX_REFUSALS {
                            return "too many of its requests were refused";
                        }
                        if receipts.send(receipt).await.is_err() {
                            return "it disconnected";
                        }
                    }
                    Ok(None) => return "it disconnected",
                    Err(_) => return "it sent something unreadable",
                }
            }
        };
        tokio::select! {
            why = telling => why,
            why = hearing => why,
        }
    }

    async fn obey(&self, hello: &Hello, name: &str, line: &[u8]) -> Receipt {
        let FromViewer::Order(command) = serde_json::from_slice(line).map_err(|e| format!("not understood: {e}"))?;
        if !hello.may_act {
            return Err("this viewer is read-only".to_owned());
        }
        if matches!(command, Command::Attached { .. } | Command::Detached { .. }) {
            return Err("not understood".to_owned());
        }
        self.orders.send(command, name).await.unwrap_or_else(|_| Err("the run has ended".to_owned()))
    }

    /// Events from the journal, live text, receipts: until the end, or until the viewer takes nothing more.
    async fn tell(
        &self,
        from: u64,
        receipts: &mut mpsc::Receiver<Receipt>,
        writer: &mut OwnedWriteHalf,
    ) -> &'static str {
        let mut feed = self.hub.listen(&self.run_dir);
        let backlog = feed.head().next_seq;
        let mut caught_up = false;
        loop {
            if !caught_up && feed.next_seq() >= backlog {
                caught_up = true;
                if say(writer, &FromRun::CaughtUp).await.is_err() {
                    return "it disconnected";
                }
            }
            let said = tokio::select! {
                heard = feed.next() => match heard {
                    Ok(Heard::Events(records)) => {
                        let mut lines = Vec::new();
                        let wanted = |record: &Record| record.seq >= from && record.kind != SEGMENT_END;
                        for record in records.into_iter().filter(wanted) {
                            add_line(&mut lines, &FromRun::Event(record.into()));
                        }
                        write(writer, &lines).await
                    }
                    Ok(Heard::Live(live)) => say(writer, &FromRun::Live(live)).await,
                    Ok(Heard::Ended) => {
                        let _ = say(writer, &FromRun::Ended).await;
                        return "the run ended";
                    }
                    Err(_) => return "the journal cannot be read",
                },
                Some(receipt) = receipts.recv() => say(writer, &FromRun::Receipt(receipt)).await,
            };
            if said.is_err() {
                return "it stopped reading";
            }
        }
    }
}

async fn tell_receipts(receipts: &mut mpsc::Receiver<Receipt>, writer: &mut OwnedWriteHalf) -> &'static str {
    while let Some(receipt) = receipts.recv().await {
        if say(writer, &FromRun::Receipt(receipt)).await.is_err() {
            break;
        }
    }
    "it disconnected"
}

/// One line of at most [`MAX_LINE`] bytes; `None` at the end.
async fn read_line(reader: &mut BufReader<OwnedReadHalf>) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let read = reader.take(MAX_LINE as u64).read_until(b'\n', &mut line).await?;
    match (read, line.last()) {
        (0, _) => Ok(None),
        (_, Some(b'\n')) => Ok(Some(line)),
        _ => Err(io::Error::other("the line is too long or has no end")),
    }
}

fn add_line(lines: &mut Vec<u8>, said: &FromRun) {
    // What we say is always JSON; a line that were not would only be missing.
    if serde_json::to_writer(&mut *lines, said).is_ok() {
        lines.push(b'\n');
    }
}

async fn say(writer: &mut OwnedWriteHalf, said: &FromRun) -> io::Result<()> {
    let mut line = Vec::new();
    add_line(&mut line, said);
    write(writer, &line).await
}

async fn write(writer: &mut OwnedWriteHalf, bytes: &[u8]) -> io::Result<()> {
    tokio::time::timeout(PATIENCE, writer.write_all(bytes))
        .await
        .unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut)))
}

/// The viewer's end: a connection to a run that some process owns.
pub mod client {
    use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
    use std::os::unix::net::UnixStream;
    use std::path::Path;
    use std::time::Duration;

    use super::super::command::{Command, Receipt};
    use super::super::error::EngineError;
    use super::super::wire::{FromRun, FromViewer, Hello, MAX_LINE, PROTOCOL};

    /// An open connection, after the welcome.
    pub struct Connection {
        reader: BufReader<UnixStream>,
        writer: UnixStream,
        /// How far the journal went at the welcome.
        pub next_seq: u64,
    }

    /// Connects to the run in this directory.
    pub fn connect(dir: &Path, name: &str, may_act: bool, from: Option<u64>) -> Result<Connection, EngineError> {
        let path = dir.join(super::SOCKET);
        let stream = super::reachable(dir, UnixStream::connect).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => EngineError::usage(
                "the run is not running, or has no control socket",
                "`nightloop status` shows it; `nightloop resume` continues it",
            ),
            _ => EngineError::io("cannot reach the run", &path, e),
        })?;
        let broken = |e: io::Error| EngineError::io("the run does not answer", &path, e);
        stream.set_read_timeout(Some(Duration::from_secs(5))).map_err(broken)?;
        let mut writer = stream.try_clone().map_err(broken)?;
        let mut reader = BufReader::new(stream);
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let hello = Hello { protocol: PROTOCOL, version, name: name.to_owned(), may_act, from };
        send(&mut writer, &hello).map_err(broken)?;
        match hear(&mut reader).map_err(broken)? {
            Some(FromRun::Welcome { next_seq, .. }) => {
                reader.get_ref().set_read_timeout(None).map_err(broken)?;
                Ok(Connection { reader, writer, next_seq })
            }
            Some(FromRun::Refused(why)) => Err(EngineError::usage(
                format!("the run refused: {why}"),
                "`nightloop status` works without a connection",
            )),
            _ => Err(EngineError::Internal("the run's answer cannot be read".to_owned())),
        }
    }

    impl Connection {
        /// Two halves: one hears, one orders.
        pub fn split(self) -> (Ear, Mouth) {
            (Ear(self.reader), Mouth(self.writer))
        }

        /// Gives one order and waits for its receipt.
        pub fn order(self, command: Command) -> io::Result<Receipt> {
            let (mut feed, mut mouth) = self.split();
            mouth.order(command)?;
            loop {
                match feed.hear()? {
                    Some(FromRun::Receipt(receipt)) => return Ok(receipt),
                    Some(_) => {}
                    None => return Ok(Err("the run ended before it answered".to_owned())),
                }
            }
        }
    }

    /// Hears what the run says. Blocks.
    pub struct Ear(BufReader<UnixStream>);

    impl Ear {
        pub fn hear(&mut self) -> io::Result<Option<FromRun>> {
            hear(&mut self.0)
        }

        /// Is more of it here already?
        pub fn has_more(&self) -> bool {
            !self.0.buffer().is_empty()
        }
    }

    /// Gives orders.
    pub struct Mouth(UnixStream);

    impl Mouth {
        pub fn order(&mut self, command: Command) -> io::Result<()> {
            send(&mut self.0, &FromViewer::Order(command))
        }

        /// Ends the connection, also for the feed.
        pub fn close(&self) {
            let _ = self.0.shutdown(std::net::Shutdown::Both);
        }
    }

    fn send(writer: &mut UnixStream, said: &impl serde::Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(said)?;
        line.push(b'\n');
        writer.write_all(&line)
    }

    fn hear(reader: &mut BufReader<UnixStream>) -> io::Result<Option<FromRun>> {
        let mut line = Vec::new();
        if reader.by_ref().take(MAX_LINE as u64).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        Ok(Some(serde_json::from_slice(&line)?))
    }
}
