//! One line of a cassette: a call and its answer.
//!
//! Bytes that are no text are written in base64, so that a chunk that ends inside a character comes back the same.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::model::call_place::CallPlace;

/// The first line of every cassette.
pub const HEADER: &str = r#"{"cassette":1}"#;

/// Does a file that begins like this hold a cassette?
pub fn is_cassette(start: &[u8]) -> bool {
    start.starts_with(HEADER.as_bytes())
}

/// A recorded call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    pub role: String,
    /// What the call was for, where the request says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallPlace>,
    pub iteration: Option<u64>,
    /// How many replies the conversation had before.
    pub turn: usize,
    pub model: String,
    /// For people who compare; playing does not look at it.
    pub request_sha256: String,
    /// The tools that the model was offered.
    pub tools: Vec<String>,
    /// Until the answer began.
    pub wait_ms: u64,
    /// Absent when there was no answer.
    pub status: Option<u16>,
    pub headers: BTreeMap<String, String>,
    pub chunks: Vec<Chunk>,
    pub end: End,
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// Broken off, by whichever side.
    #[default]
    Cut,
    Whole,
}

/// Bytes that arrived together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ChunkText", into = "ChunkText")]
pub struct Chunk {
    /// Since what came before.
    pub ms: u64,
    pub bytes: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChunkText {
    ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

impl From<Chunk> for ChunkText {
    fn from(chunk: Chunk) -> Self {
        match String::from_utf8(chunk.bytes) {
            Ok(text) => Self { ms: chunk.ms, text: Some(text), base64: None },
            Err(error) => Self { ms: chunk.ms, text: None, base64: Some(STANDARD.encode(error.as_bytes())) },
        }
    }
}

impl TryFrom<ChunkText> for Chunk {
    type Error = &'static str;

    fn try_from(given: ChunkText) -> Result<Self, Self::Error> {
        let bytes = match (given.text, given.base64) {
            (Some(text), None) => text.into_bytes(),
            (None, Some(text)) => STANDARD.decode(text).map_err(|_| "a chunk is not base64")?,
            (Some(_), Some(_)) | (None, None) => return Err("a chunk has either `text` or `base64`"),
        };
        Ok(Self { ms: given.ms, bytes })
    }
}

impl Line {
    /// Without a line break.
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
