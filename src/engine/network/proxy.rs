//! The proxy of a run: it listens in the run's network, and connects to what is on the list.
//!
//! Role: take a connection, judge whom it wants, connect, pass bytes on, count them. Not its role: what is on the list
//! (`machine::network`), recording (the parent). Invariants: an address is judged after the name was looked up, and that
//! very address is connected to; connections, heads and times are bounded; dropped, every connection is cut.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::machine::network::{self, Denied};
use crate::model::hosts::{self, Pattern};

use super::head::{self, MAX_HEAD, Wanted};
use super::registries::Finder;

/// At one time.
const MAX_CONNECTIONS: usize = 128;
const HEAD_TIME: Duration = Duration::from_secs(15);
const CONNECT_TIME: Duration = Duration::from_secs(20);
/// Without a byte either way.
const IDLE_TIME: Duration = Duration::from_secs(300);
const LIFE_TIME: Duration = Duration::from_secs(3_600);
/// Kinds of connections that are told apart until somebody takes them.
const MAX_KINDS: usize = 64;
const PIECE: usize = 32 * 1024;

/// Connections of one kind: to whom, and why not.
pub(super) type Kind = (String, u16, Option<Refusal>);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Refusal {
    pub why: String,
    pub unlisted: bool,
}

impl Refusal {
    fn because(why: impl Into<String>) -> Self {
        Self { why: why.into(), unlisted: false }
    }
}

/// How many, and bytes from commands and to them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub times: u64,
    pub sent: u64,
    pub received: u64,
}

/// What has happened since somebody last asked.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Lists that were opened, each with its reason.
    pub opened: Vec<(Vec<Pattern>, String)>,
    pub connections: BTreeMap<Kind, Count>,
}

pub(super) struct Shared {
    patterns: Mutex<Vec<Pattern>>,
    seen: Mutex<Seen>,
    finder: Option<Finder>,
    /// In place of looking a name up.
    resolved: BTreeMap<String, SocketAddr>,
    /// What a refused client is told besides.
    hint: &'static str,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) struct Proxy {
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Proxy {
    pub(super) fn start(
        listener: TcpListener,
        patterns: Vec<Pattern>,
        finder: Option<Finder>,
        resolved: BTreeMap<String, SocketAddr>,
        hint: &'static str,
    ) -> Self {
        let (patterns, seen) = (Mutex::new(patterns), Mutex::default());
        let shared = Arc::new(Shared { patterns, seen, finder, resolved, hint });
        Self { accepting: tokio::spawn(accept(listener, shared.clone())), shared }
    }

    pub(super) fn allow_only(&self, patterns: Vec<Pattern>) {
        *held(&self.shared.patterns) = patterns;
    }

    pub(super) fn take_seen(&self) -> Seen {
        std::mem::take(&mut *held(&self.shared.seen))
    }

    /// Cuts what is still connected, so that it can be taken, too.
    pub(super) async fn stop(&mut self) {
        self.accepting.abort();
        let _ = (&mut self.accepting).await;
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                Ok((client, _)) => {
                    connections.spawn(serve(client, shared.clone()));
                }
                // Too many open files, for instance: it may pass.
                Err(_) => sleep(Duration::from_millis(100)).await,
            },
        }
    }
}

/// One connection, noted when it ends, however it ends.
struct Note<'a> {
    shared: &'a Shared,
    kind: Kind,
    sent: AtomicU64,
    received: AtomicU64,
}

impl Drop for Note<'_> {
    fn drop(&mut self) {
        let mut seen = held(&self.shared.seen);
        if !seen.connections.contains_key(&self.kind) && seen.connections.len() >= MAX_KINDS {
            self.kind = (network::OTHERS.to_owned(), 0, Some(Refusal::because("further hosts are not told apart")));
        }
        let count = seen.connections.entry(self.kind.clone()).or_default();
        count.times += 1;
        count.sent += self.sent.load(Ordering::Relaxed);
        count.received += self.received.load(Ordering::Relaxed);
    }
}

async fn serve(mut client: TcpStream, shared: Arc<Shared>) {
    let mut came = Vec::new();
    let wanted = match timeout(HEAD_TIME, read_head(&mut client, &mut came)).await {
        Ok(Ok(wanted)) => wanted,
        Ok(Err(why)) => return answer(&mut client, "400 Bad Request", why).await,
        Err(_) => return,
    };
    let kind = (wanted.host.clone(), wanted.port, None);
    let mut note = Note { shared: &shared, kind, sent: AtomicU64::new(0), received: AtomicU64::new(0) };
    match shared.reach(&wanted).await {
        Ok(server) => pass(client, server, wanted.head, &came, &note).await,
        Err(refusal) => {
            let text = format!("{}:{}: {}", wanted.host, wanted.port, refusal.why);
            let hint = if refusal.unlisted { shared.hint } else { "" };
            note.kind.2 = Some(refusal);
            // Noted before it is told: whoever reads the answer finds it noted.
            drop(note);
            answer(&mut client, "403 Forbidden", &format!("{text}. {hint}")).await;
        }
    }
}

/// Leaves what came after the head.
async fn read_head(client: &mut TcpStream, came: &mut Vec<u8>) -> Result<Wanted, &'static str> {
    let mut piece = [0; 2048];
    loop {
        if let Some(end) = head::end(came) {
            let wanted = head::read(&came[..end]);
            came.drain(..end);
            return wanted;
        }
        if came.len() >= MAX_HEAD {
            return Err("the request is too long");
        }
        match client.read(&mut piece).await {
            Ok(0) | Err(_) => return Err("the request is cut"),
            Ok(count) => came.extend_from_slice(&piece[..count]),
        }
    }
}

async fn answer(client: &mut TcpStream, status: &str, why: &str) {
    let why = why.replace(char::is_control, " ");
    let text = format!("nightloop: {why}\n");
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nX-Nightloop: {why}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    let _ = timeout(HEAD_TIME, async {
        client.write_all(head.as_bytes()).await?;
        client.write_all(text.as_bytes()).await?;
        client.shutdown().await
    })
    .await;
}

impl Shared {
    /// Connects to whom is wanted, if that may be.
    async fn reach(&self, wanted: &Wanted) -> Result<TcpStream, Refusal> {
        let patterns = self.judge(wanted)?;
        let connected = timeout(CONNECT_TIME, async {
            let mut latest = None;
            for address in self.addresses(wanted, &patterns).await? {
                match TcpStream::connect(address).await {
                    Ok(stream) => return Ok(stream),
                    Err(error) => latest = Some(error),
                }
            }
            let why = latest.map_or_else(|| "no address".to_owned(), |error| error.to_string());
            Err(Refusal::because(format!("it cannot be connected to ({why})")))
        });
        connected.await.unwrap_or_else(|_| Err(Refusal::because("it does not answer")))
    }

    /// Is it on the list? What a tool of the workspace needs is put there when it is first wanted.
    fn judge(&self, wanted: &Wanted) -> Result<Vec<Pattern>, Refusal> {
        let mut patterns = held(&self.patterns);
        let mut verdict = network::allows(&patterns, &wanted.host, wanted.port);
        if verdict == Err(Denied::Unlisted)
            && let Some((more, why)) = self.finder.as_ref().and_then(|finder| finder.find(&wanted.host))
        {
            patterns.extend(more.iter().cloned());
            held(&self.seen).opened.push((more, why));
            verdict = network::allows(&patterns, &wanted.host, wanted.port);
        }
        match verdict {
            Ok(()) => Ok(patterns.clone()),
            Err(Denied::Unlisted) => {
                Err(Refusal { why: "not on the list of `sandbox.network`".to_owned(), unlisted: true })
            }
            Err(Denied::Port) => Err(Refusal::because("only the ports 443 and 80 can be reached")),
        }
    }

    /// Where it is, without what is this machine or its neighbours, unless such an address is listed itself.
    async fn addresses(&self, wanted: &Wanted, patterns: &[Pattern]) -> Result<Vec<SocketAddr>, Refusal> {
        if let Some(address) = self.resolved.get(&wanted.host) {
            return Ok(vec![*address]);
        }
        let found = match wanted.host.parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, wanted.port)],
            Err(_) => tokio::net::lookup_host((wanted.host.as_str(), wanted.port))
                .await
                .map_err(|error| Refusal::because(format!("the name is not known ({error})")))?
                .collect(),
        };
        let listed = |address: IpAddr| {
            let text = address.to_canonical().to_string();
            patterns.iter().any(|pattern| pattern.as_str() == text)
        };
        let open: Vec<SocketAddr> =
            found.into_iter().filter(|found| hosts::is_public(found.ip()) || listed(found.ip())).collect();
        if open.is_empty() {
            return Err(Refusal::because(
                "it is an address of this machine or of a private network, which is not listed",
            ));
        }
        Ok(open)
    }
}

/// Passes bytes on until both are done, nothing comes, or it has taken too long.
async fn pass(mut client: TcpStream, mut server: TcpStream, head: Option<Vec<u8>>, rest: &[u8], note: &Note<'_>) {
    let begun = async {
        match &head {
            Some(head) => server.write_all(head).await?,
            None => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
        }
        server.write_all(rest).await
    };
    if !matches!(timeout(CONNECT_TIME, begun).await, Ok(Ok(()))) {
        return;
    }
    let first = head.map_or(0, |head| head.len()) + rest.len();
    note.sent.fetch_add(first as u64, Ordering::Relaxed);
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    tokio::select! {
        _ = async { tokio::join!(pump(from_client, to_server, &note.sent), pump(from_server, to_client, &note.received)) } => {}
        () = idle(note) => {}
        () = sleep(LIFE_TIME) => {}
    }
}

async fn pump(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, count: &AtomicU64) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let length = from.read(&mut piece).await?;
        if length == 0 {
            return to.shutdown().await;
        }
        to.write_all(&piece[..length]).await?;
        count.fetch_add(length as u64, Ordering::Relaxed);
    }
}

/// Ends when nothing has come for a while.
async fn idle(note: &Note<'_>) {
    let all = || note.sent.load(Ordering::Relaxed).wrapping_add(note.received.load(Ordering::Relaxed));
    let mut before = all();
    loop {
        sleep(IDLE_TIME).await;
        let now = all();
        if now == before {
            return;
        }
        before = now;
    }
}

#[cfg(test)]
mod tests;
