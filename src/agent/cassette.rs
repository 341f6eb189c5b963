//! Cassettes: conversations with a model server, recorded as the server sent them.
//!
//! Role: watch an HTTP answer go by and append it, with its pauses, to a file that the rehearsal server can play.
//! Not its role: playing ([`super::rehearsal`]); deciding what is recorded.
//!
//! Invariants: the key is never recorded (requests are kept as a digest, of the headers only those named here);
//! known secrets and whatever looks like a key are taken out, also where they are spread over many events;
//! a line is written whole or not at all; the file is the owner's alone and stops growing at its limit. A
//! recording that fails never fails the call it records.

mod clean;
mod line;

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use reqwest::Response;
use reqwest::header::HeaderMap;

use crate::model::digest::Digest;
use crate::model::secret::Secrets;

use super::rehearsal::{Position, tools_of};
pub use line::{Chunk, End, HEADER, Line, is_cassette};

/// A cassette does not grow beyond this.
pub const MAX_BYTES: u64 = 256 * 1024 * 1024;
/// What is kept of one answer.
const MAX_ANSWER: usize = 32 * 1024 * 1024;
/// The headers that change what a client does.
const KEPT_HEADERS: [&str; 6] =
    ["content-type", "request-id", "x-request-id", "retry-after", "retry-after-ms", "x-should-retry"];
const KEPT_PREFIXES: [&str; 2] = ["anthropic-ratelimit-", "x-ratelimit-"];

/// Something that keeps recorded calls.
pub trait Recorder: Send + Sync {
    fn keep(&self, line: Line);
}

/// One call under way. When it is dropped, what was seen of it is kept.
pub struct Take {
    recorder: Option<Arc<dyn Recorder>>,
    line: Line,
    bytes: usize,
    last: Instant,
}

impl Take {
    /// A call with this request body is about to be made. Without a recorder nothing is kept.
    pub fn begin(recorder: Option<&Arc<dyn Recorder>>, request: &[u8]) -> Self {
        let line = if recorder.is_some() { Line::of_request(request) } else { Line::default() };
        Self { recorder: recorder.cloned(), line, bytes: 0, last: Instant::now() }
    }

    fn pause(&mut self) -> u64 {
        let now = Instant::now();
        let pause = now.duration_since(self.last).as_millis();
        self.last = now;
        u64::try_from(pause).unwrap_or(u64::MAX)
    }

    fn answered(&mut self, status: u16, headers: &HeaderMap) {
        self.line.wait_ms = self.pause();
        self.line.status = Some(status);
        for (name, value) in headers {
            let name = name.as_str();
            let kept = KEPT_HEADERS.contains(&name) || KEPT_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
            if let (true, Ok(value)) = (kept, value.to_str()) {
                self.line.headers.insert(name.to_owned(), value.to_owned());
            }
        }
    }

    fn saw(&mut self, bytes: &[u8]) {
        if self.recorder.is_none() {
            return;
        }
        let ms = self.pause();
        let room = MAX_ANSWER - self.bytes;
        let kept = &bytes[..bytes.len().min(room)];
        self.bytes += kept.len();
        if !kept.is_empty() {
            self.line.chunks.push(Chunk { ms, bytes: kept.to_vec() });
        }
    }
}

impl Drop for Take {
    fn drop(&mut self) {
        if let Some(recorder) = &self.recorder {
            recorder.keep(std::mem::take(&mut self.line));
        }
    }
}

/// An answer that is recorded while it is read.
pub struct Recorded {
    response: Response,
    take: Take,
}

impl Recorded {
    pub fn new(response: Response, mut take: Take) -> Self {
        take.answered(response.status().as_u16(), response.headers());
        Self { response, take }
    }

    pub fn status(&self) -> reqwest::StatusCode {
        self.response.status()
    }

    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// The next bytes; `None` at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, reqwest::Error> {
        let chunk = self.response.chunk().await?;
        match &chunk {
            Some(bytes) => self.take.saw(bytes),
            None => self.finished(),
        }
        Ok(chunk)
    }

    /// The reader has all it wants; what follows does not matter.
    pub fn finished(&mut self) {
        self.take.line.end = End::Whole;
    }
}

/// A cassette in a file.
pub struct Cassette {
    secrets: Arc<Secrets>,
    inner: Mutex<Inner>,
}

struct Inner {
    file: File,
    written: u64,
    limit: u64,
    stopped: Option<String>,
}

impl Cassette {
    /// A new file, or with `append` the rest of one that is a cassette already.
    pub fn open(path: &Path, append: bool, secrets: Arc<Secrets>) -> io::Result<Self> {
        Self::open_within(path, append, secrets, MAX_BYTES)
    }

    fn open_within(path: &Path, append: bool, secrets: Arc<Secrets>, limit: u64) -> io::Result<Self> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let mut options = OpenOptions::new();
        options.append(true).read(true).mode(0o600).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
        let mut file =
            if append && path.exists() { options.open(path)? } else { options.create_new(true).open(path)? };
        let mut written = file.metadata()?.len();
        if written == 0 {
            file.write_all(HEADER.as_bytes())?;
            file.write_all(b"\n")?;
            written = HEADER.len() as u64 + 1;
        } else {
            let mut start = vec![0; HEADER.len()];
            file.read_exact(&mut start).map_err(|_| no_cassette())?;
            if !is_cassette(&start) {
                return Err(no_cassette());
            }
            // A line that a crash cut short must not swallow the next one.
            file.write_all(b"\n")?;
            written += 1;
        }
        Ok(Self { secrets, inner: Mutex::new(Inner { file, written, limit, stopped: None }) })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why nothing more is recorded, if so.
    pub fn stopped(&self) -> Option<String> {
        self.inner().stopped.clone()
    }
}

fn no_cassette() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the file exists and is not a cassette")
}

impl Recorder for Cassette {
    fn keep(&self, mut line: Line) {
        clean::clean(&mut line, &self.secrets);
        let mut inner = self.inner();
        if inner.stopped.is_some() {
            return;
        }
        let mut text = line.text();
        text.push('\n');
        let size = inner.written.saturating_add(text.len() as u64);
        if size > inner.limit {
            let why = format!("the cassette would be larger than {} bytes", inner.limit);
            let note = serde_json::json!({"stopped": why}).to_string() + "\n";
            // The reason is kept for the operator, too.
            let _ = inner.file.write_all(note.as_bytes());
            inner.stopped = Some(why);
            return;
        }
        match inner.file.write_all(text.as_bytes()) {
            Ok(()) => inner.written = size,
            Err(error) => inner.stopped = Some(format!("the cassette cannot be written: {error}")),
        }
    }
}

impl Line {
    fn of_request(request: &[u8]) -> Self {
        let body: serde_json::Value = serde_json::from_slice(request).unwrap_or_default();
        let at = Position::of(request).unwrap_or_default();
        Self {
            role: at.role,
            call: at.call,
            iteration: at.iteration,
            turn: at.turn,
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            request_sha256: Digest::of(request).to_string(),
            tools: tools_of(request),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests;
