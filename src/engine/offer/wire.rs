//! What `nightloop mcp` and the engine say to each other: one JSON object per line, both ways.
//!
//! Invariant: no line is longer than [`MAX_LINE`]; a longer one ends the connection.

use std::io;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The version of this language. Both ends must speak the same.
pub const PROTOCOL: u32 = 1;
/// The longest line either end accepts, with its end.
pub const MAX_LINE: usize = 1024 * 1024;
/// The longest text of an answer that surely fits a line: one byte takes at most six in JSON.
const MAX_TEXT: usize = MAX_LINE / 6 - 1024;

/// A tool as MCP lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpecJson {
    pub name: String,
    pub description: String,
    /// A JSON schema of an object.
    pub input_schema: serde_json::Value,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub text: String,
    pub is_error: bool,
}

impl Answer {
    pub fn error(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: true }
    }

    /// The same answer, short enough for a line; a cut is said.
    #[must_use]
    pub(super) fn bounded(mut self) -> Self {
        if self.text.len() > MAX_TEXT {
            let at = self.text.floor_char_boundary(MAX_TEXT);
            let left_out = self.text.len() - at;
            self.text.truncate(at);
            self.text.push_str(&format!("\n[… {left_out} bytes left out]"));
        }
        self
    }
}

/// The first line of a client.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub protocol: u32,
    pub token: String,
}

/// What the MCP server says after its hello.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FromClient {
    /// `n` joins call and answer on this connection.
    Call { n: u64, name: String, input: serde_json::Value },
}

/// What the engine says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FromServer {
    Tools(Vec<ToolSpecJson>),
    Refused(String),
    Answer { n: u64, answer: Answer },
}

/// A read that ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Received {
    Line(Vec<u8>),
    /// The other end is gone.
    End,
}

/// The line of a message.
pub(super) fn line(said: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(said)?;
    line.push(b'\n');
    Ok(line)
}

/// One line of at most [`MAX_LINE`] bytes.
pub(super) async fn read_line(reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Received> {
    let mut line = Vec::new();
    reader.take(MAX_LINE as u64).read_until(b'\n', &mut line).await?;
    match line.last() {
        None => Ok(Received::End),
        Some(b'\n') => Ok(Received::Line(line)),
        Some(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "the line is too long or has no end")),
    }
}

/// Writes a line that [`line()`] made.
pub(super) async fn write_line(writer: &mut (impl AsyncWrite + Unpin), line: &[u8]) -> io::Result<()> {
    writer.write_all(line).await?;
    writer.flush().await
}
