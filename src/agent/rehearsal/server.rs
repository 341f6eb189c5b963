//! The rehearsal server: sockets, attempts, faults, pace.
//!
//! Role: accept connections on loopback, pick the turn a request is at, play its next fault or
//! its reply, and remember requests for tests.
//! Not its role: the bytes of a reply ([`super::mouth`]) or of HTTP ([`super::http`]).
//!
//! Invariants: the only memory that changes an answer is the count of attempts per position; at
//! most [`MAX_CONNECTIONS`] are served at once; dropping the [`Server`] ends them all.

use super::http::{self, HttpRequest, ReadError};
use super::inject::{self, FaultKind, Injector};
use super::mouth::Mouth;
use super::play;
use super::script::{Fault, Script, Turn};
use super::select::{self, Position};
use super::tape::{self, Tape};
use crate::agent::cassette::{End, Line};
use crate::agent::envelope::default_kind;
use crate::model::call_place::CallPlace;
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};

/// Connections served at once; more wait in the listener's queue.
pub const MAX_CONNECTIONS: usize = 128;
/// Requests remembered for tests, by count and by bytes; the oldest go first.
const MAX_RECORDED: usize = 64;
const MAX_RECORDED_BYTES: usize = 4 * 1024 * 1024;
/// A peer that does not finish its request loses its place.
const READ_LIMIT: Duration = Duration::from_secs(60);

/// How fast the script's delays pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Speed {
    /// No delays at all.
    Instant,
    /// This many times as fast as written; 1 is as written.
    Times(f64),
}

impl Speed {
    pub fn scale(self, ms: u64) -> Duration {
        match self {
            Speed::Instant => Duration::ZERO,
            Speed::Times(factor) => {
                let factor = if factor.is_finite() && factor > 0.0 { factor } else { 1.0 };
                // A day is more than any rehearsal waits, and far from overflow.
                Duration::from_secs_f64((ms as f64 / 1000.0 / factor).min(86_400.0))
            }
        }
    }
}

/// A request as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedRequest {
    pub role: String,
    pub call: Option<CallPlace>,
    pub iteration: Option<u64>,
    pub turn: usize,
    /// From 0: how often this position had been asked for before.
    pub attempt: usize,
    pub body: Bytes,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
}

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

/// What is played.
#[derive(Debug)]
pub enum Played {
    Script(Script),
    Tape(Tape),
}

impl Played {
    pub fn model(&self) -> &str {
        match self {
            Played::Script(script) => &script.model,
            Played::Tape(tape) => &tape.model,
        }
    }
}

impl From<Script> for Played {
    fn from(script: Script) -> Self {
        Played::Script(script)
    }
}

#[derive(Debug)]
struct Shared {
    played: Played,
    speed: Speed,
    faults: Option<Arc<Injector>>,
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    attempts: HashMap<Position, usize>,
    recorded: VecDeque<RecordedRequest>,
    recorded_bytes: usize,
}

impl Server {
    /// Listens on a free port of 127.0.0.1 and serves from the current tokio runtime.
    pub async fn start(played: impl Into<Played>, speed: Speed) -> io::Result<Server> {
        Self::start_with(played, speed, None).await
    }

    /// The same, with faults that the script does not know of.
    pub async fn start_with(
        played: impl Into<Played>,
        speed: Speed,
        faults: Option<Arc<Injector>>,
    ) -> io::Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { played: played.into(), speed, faults, memory: Mutex::default() });
        let accepting = tokio::spawn(accept(listener, shared.clone())).abort_handle();
        Ok(Server { address, shared, accepting })
    }

    /// What to give a client as its base URL; a chat-completions client wants `/v1` behind it.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests received so far, oldest first.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.memory().recorded.iter().cloned().collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Ends the task, and with its set the connections.
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(place) = places.clone().acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let shared = shared.clone();
                connections.spawn(async move {
                    // A peer that went away is no concern of the server.
                    let _ = shared.serve(stream).await;
                    drop(place);
                });
            }
            // Out of descriptors, most likely: give the others time to end.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

impl Shared {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let request = match tokio::time::timeout(READ_LIMIT, http::read_request(&mut stream)).await {
            Ok(Ok(request)) => request,
            Ok(Err(ReadError::Refused(status, why))) => {
                answer_error(&mut stream, status, &Mouth::Messages.error(default_kind(status), None, why)).await?;
                return drain(&mut stream).await;
            }
            Ok(Err(ReadError::Io(e))) => return Err(e),
            Ok(Err(ReadError::Closed)) | Err(_) => return Ok(()),
        };
        let Some(mouth) = Mouth::of(&request.method, &request.path) else {
            let why = format!("the rehearsal server has no {} {}", request.method, request.path);
            return answer_error(&mut stream, 404, &Mouth::Messages.error("not_found_error", None, &why)).await;
        };
        match Position::of(&request.body) {
            Err(why) => answer_error(&mut stream, 400, &mouth.error("invalid_request_error", None, &why)).await,
            Ok(at) => self.answer(&mut stream, request, mouth, at).await,
        }
    }

    async fn answer(&self, stream: &mut TcpStream, request: HttpRequest, mouth: Mouth, at: Position) -> io::Result<()> {
        let size = request.body.len();
        let tools = select::tools_of(&request.body);
        let struck = self.faults.as_ref().and_then(|faults| faults.strike(&at));
        let attempt = self.memory().record(&at, request, struck.is_some());
        if let Some(kind) = struck {
            return self.inject(stream, kind, &at, &tools, size).await;
        }
        let script = match &self.played {
            Played::Script(script) => script,
            Played::Tape(tape) => return self.play_tape(stream, tape, &at, attempt, &tools).await,
        };
        let Some(step) = script.step(&at) else {
            let why = format!("the rehearsal script has no step for {}", at.place());
            return answer_error(stream, 400, &mouth.error("invalid_request_error", None, &why)).await;
        };
        let ended = Turn { text: Some("(script ended)".to_owned()), ..Turn::default() };
        let turn = step.turns.get(at.turn).unwrap_or(&ended);
        let play = Play { shared: self, mouth, turn, at: &at, size, request_id: play::id("req", &at, attempt) };
        match turn.faults.get(attempt) {
            Some(fault) => play.fault(stream, fault).await,
            None => play.reply(stream).await,
        }
    }

    /// Plays a fault that no script knows of.
    async fn inject(
        &self,
        stream: &mut TcpStream,
        kind: FaultKind,
        at: &Position,
        tools: &[String],
        size: usize,
    ) -> io::Result<()> {
        let (turn, at) = (kind.turn(tools), inject::marked(at));
        let request_id = play::id("req", &at, 0);
        // Faults are injected into loops whose agents all speak the Messages API.
        let mouth = Mouth::Messages;
        let play = Play { shared: self, mouth, turn: &turn, at: &at, size, request_id };
        match kind.wire() {
            Some(Fault::Stall { ms }) => {
                play.start(stream).await?;
                http::write_chunk(stream, &play::message_start(&at, self.played.model(), 1)).await?;
                // In real time: it is the reader's patience that is rehearsed.
                tokio::time::sleep(Duration::from_millis(ms)).await;
                Ok(())
            }
            Some(fault) => play.fault(stream, &fault).await,
            None => play.reply(stream).await,
        }
    }

    async fn play_tape(
        &self,
        stream: &mut TcpStream,
        tape: &Tape,
        at: &Position,
        attempt: usize,
        tools: &[String],
    ) -> io::Result<()> {
        let place = at.place();
        let refuse = |why: String| Mouth::Messages.error("invalid_request_error", None, &why);
        let Some(line) = tape.call(at, attempt) else {
            let stopped =
                tape.stopped.as_ref().map(|why| format!("; its recording stopped: {why}")).unwrap_or_default();
            return answer_error(stream, 400, &refuse(format!("the cassette has no call for {place}{stopped}"))).await;
        };
        if let Some(tool) = tape::missing_tool(line, tools) {
            let why = format!("the cassette does not fit: at {place} it calls `{tool}`, which is not offered");
            return answer_error(stream, 400, &refuse(why)).await;
        }
        self.play_line(stream, line).await
    }

    async fn play_line(&self, stream: &mut TcpStream, line: &Line) -> io::Result<()> {
        tokio::time::sleep(self.speed.scale(line.wait_ms)).await;
        // There was no answer then, and there is none now.
        let Some(status) = line.status else { return Ok(()) };
        let headers: Vec<(&str, String)> =
            line.headers.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        if status != 200 {
            let body = line.chunks.iter().map(|chunk| chunk.bytes.as_slice()).collect::<Vec<_>>().concat();
            return http::write_answer(stream, status, &headers, &body).await;
        }
        http::start_chunks(stream, &headers).await?;
        for chunk in &line.chunks {
            tokio::time::sleep(self.speed.scale(chunk.ms)).await;
            http::write_chunk(stream, &chunk.bytes).await?;
        }
        match line.end {
            End::Whole => http::end_chunks(stream).await,
            End::Cut => Ok(()),
        }
    }
}

impl Memory {
    /// Keeps the request and gives the number of earlier attempts at its position.
    fn record(&mut self, at: &Position, request: HttpRequest, struck: bool) -> usize {
        let count = self.attempts.entry(at.clone()).or_default();
        let attempt = *count;
        // What an injected fault struck, the script has not been asked for.
        *count += usize::from(!struck);
        self.recorded_bytes += request.body.len();
        self.recorded.push_back(RecordedRequest {
            role: at.role.clone(),
            call: at.call.clone(),
            iteration: at.iteration,
            turn: at.turn,
            attempt,
            body: request.body,
            headers: request.headers,
        });
        while self.recorded.len() > MAX_RECORDED || self.recorded_bytes > MAX_RECORDED_BYTES {
            match self.recorded.pop_front() {
                Some(oldest) => self.recorded_bytes -= oldest.body.len(),
                None => break,
            }
        }
        attempt
    }
}

/// One answer to one attempt at one turn.
struct Play<'a> {
    shared: &'a Shared,
    mouth: Mouth,
    turn: &'a Turn,
    at: &'a Position,
    /// Bytes of the request body.
    size: usize,
    request_id: String,
}

impl Play<'_> {
    fn events(&self) -> Vec<Vec<u8>> {
        self.mouth.events(self.turn, self.at, self.shared.played.model(), self.size)
    }

    async fn pause(&self, ms: u64) {
        let wait = self.shared.speed.scale(ms);
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    async fn start(&self, stream: &mut TcpStream) -> io::Result<()> {
        let mut headers = vec![("content-type", "text/event-stream; charset=utf-8".to_owned())];
        headers.push(("cache-control", "no-cache".to_owned()));
        headers.push((self.mouth.request_id_header(), self.request_id.clone()));
        headers.extend(self.mouth.limit_headers());
        http::start_chunks(stream, &headers).await
    }

    async fn reply(&self, stream: &mut TcpStream) -> io::Result<()> {
        self.pause(self.turn.delay_ms).await;
        self.start(stream).await?;
        for event in self.events() {
            http::write_chunk(stream, &event).await?;
            if self.mouth.is_piece(&event) {
                self.pause(self.turn.chunk_delay_ms).await;
            }
        }
        http::end_chunks(stream).await
    }

    /// Plays a fault. Returning without [`http::end_chunks`] closes the connection in mid-stream.
    async fn fault(&self, stream: &mut TcpStream, fault: &Fault) -> io::Result<()> {
        let first = || self.mouth.first(self.at, self.shared.played.model());
        match fault {
            Fault::Http { status, retry_after, kind, code, message } => {
                let kind = kind.as_deref().unwrap_or(default_kind(*status));
                let message = message.as_deref().unwrap_or("scripted fault");
                let mut body = self.mouth.error(kind, code.as_deref(), message);
                body["request_id"] = self.request_id.as_str().into();
                let mut headers = vec![(self.mouth.request_id_header(), self.request_id.clone())];
                headers.extend(retry_after.map(|seconds| ("retry-after", seconds.to_string())));
                answer(stream, *status, headers, "application/json", body.to_string().as_bytes()).await
            }
            Fault::Html { status } => {
                let page = format!(
                    "<html>\n<head><title>{status} scripted fault</title></head>\n<body>no API here</body>\n</html>\n"
                );
                answer(stream, *status, Vec::new(), "text/html", page.as_bytes()).await
            }
            Fault::Reset => Ok(()),
            Fault::CutAfterBytes(wanted) => {
                let whole = self.events().concat();
                // The last byte ends the message: a cut must come before it.
                let most = whole.len().saturating_sub(1);
                let cut = usize::try_from(*wanted).map_or(most, |n| n.min(most));
                self.start(stream).await?;
                http::write_chunk(stream, &whole[..cut]).await
            }
            Fault::StreamError { kind, message } => {
                self.start(stream).await?;
                http::write_chunk(stream, &first()).await?;
                let message = message.as_deref().unwrap_or("scripted fault");
                http::write_chunk(stream, &self.mouth.error_event(kind, message, &self.request_id)).await?;
                http::end_chunks(stream).await
            }
            Fault::Stall { ms } => {
                self.start(stream).await?;
                http::write_chunk(stream, &first()).await?;
                self.pause(*ms).await;
                Ok(())
            }
            Fault::MalformedSse => {
                self.start(stream).await?;
                http::write_chunk(stream, &first()).await?;
                http::write_chunk(
                    stream,
                    b"\xFF\xFE\0garbage\r:\r\nevent: content_block_delta\ndata: {\"type\": \"cont\n\n",
                )
                .await
            }
        }
    }
}

async fn answer_error(stream: &mut TcpStream, status: u16, body: &serde_json::Value) -> io::Result<()> {
    answer(stream, status, Vec::new(), "application/json", body.to_string().as_bytes()).await
}

async fn answer(
    stream: &mut TcpStream,
    status: u16,
    mut headers: Vec<(&str, String)>,
    content_type: &str,
    body: &[u8],
) -> io::Result<()> {
    headers.push(("content-type", content_type.to_owned()));
    http::write_answer(stream, status, &headers, body).await
}

/// Reads over what a refused peer still sends; closing at once would make its system throw the
/// answer away.
async fn drain(stream: &mut TcpStream) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    let mut left = http::MAX_BODY_BYTES * 2;
    let read_all = async {
        while left > 0 {
            match stream.read(&mut buffer).await? {
                0 => break,
                n => left = left.saturating_sub(n),
            }
        }
        Ok(())
    };
    tokio::time::timeout(Duration::from_secs(5), read_all).await.unwrap_or(Ok(()))
}
