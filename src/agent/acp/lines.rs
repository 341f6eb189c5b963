//! Lines of JSON over a program's pipes, bounded.
//!
//! Role: what a program writes, line by line, up to the limits; what is no message is left out and counted
//! (programs print banners and logs where they should not). Not its role: what a message means.

use std::io;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use agent_client_protocol::TransportFrame;
use futures_util::{Sink, Stream};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};

const MAX_LINE: usize = 8 * 1024 * 1024;
/// Messages and bytes of one turn. A long turn of a talkative program stays far below.
const MAX_LINES: u64 = 1_000_000;
const MAX_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// Lines that are no messages.
const MAX_IGNORED: u64 = 10_000;

/// What became of the incoming line.
#[derive(Debug, Default)]
pub(super) struct Line {
    cut: OnceLock<String>,
    ignored: AtomicU64,
}

impl Line {
    /// Why we stopped listening, if we did.
    pub(super) fn cut(&self) -> Option<String> {
        self.cut.get().cloned()
    }

    /// How many lines were no messages.
    pub(super) fn ignored(&self) -> u64 {
        self.ignored.load(Ordering::Relaxed)
    }
}

/// The messages of a program, each a line, until it ends or goes beyond a limit.
pub(super) fn incoming(
    reader: impl AsyncRead + Send + Unpin + 'static,
    line: Arc<Line>,
) -> impl Stream<Item = io::Result<String>> + Send + 'static {
    let reader = Reader { from: BufReader::new(reader), line, lines: 0, bytes: 0 };
    futures_util::stream::unfold(reader, async |mut reader| {
        let next = reader.next().await?;
        Some((next, reader))
    })
}

/// Writes each line and sends it off.
pub(super) fn outgoing(
    writer: impl AsyncWrite + Send + Unpin + 'static,
) -> impl Sink<String, Error = io::Error> + Send + 'static {
    futures_util::sink::unfold(writer, async |mut writer, mut line: String| {
        line.push('\n');
        writer.write_all(line.as_bytes()).await?;
        writer.flush().await?;
        Ok(writer)
    })
}

struct Reader<R> {
    from: BufReader<R>,
    line: Arc<Line>,
    lines: u64,
    bytes: u64,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    async fn next(&mut self) -> Option<io::Result<String>> {
        loop {
            let mut line = Vec::new();
            let limit = MAX_LINE as u64 + 1;
            match (&mut self.from).take(limit).read_until(b'\n', &mut line).await {
                Ok(0) => return None,
                Ok(_) if line.len() > MAX_LINE => return self.stop("a line of the agent program is longer than 8 MiB"),
                Ok(read) => {
                    self.lines += 1;
                    self.bytes += read as u64;
                }
                Err(e) => return Some(Err(e)),
            }
            if self.lines > MAX_LINES || self.bytes > MAX_BYTES {
                return self.stop("the agent program sent more than a turn may: a million lines, or 2 GiB");
            }
            if let Some(message) = message(line) {
                return Some(Ok(message));
            }
            if self.line.ignored.fetch_add(1, Ordering::Relaxed) >= MAX_IGNORED {
                return self.stop("too many lines of the agent program are no ACP messages");
            }
        }
    }

    fn stop(&self, why: &str) -> Option<io::Result<String>> {
        let _ = self.line.cut.set(why.to_owned());
        None
    }
}

/// The line, if it is a message. Checked here, because the library would send what it cannot read back whole.
fn message(line: Vec<u8>) -> Option<String> {
    let line = String::from_utf8(line).ok()?;
    let line = line.trim();
    matches!(TransportFrame::parse_json(line), TransportFrame::Single(_)).then(|| line.to_owned())
}
