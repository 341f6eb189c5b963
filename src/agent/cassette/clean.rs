//! Takes secrets out of a recorded answer.
//!
//! A model writes a key in pieces, each in an event of its own: the pieces of one text are looked at together. An
//! answer without secrets stays as it came, byte for byte; in one with secrets the whole cleaned text stands in
//! the first of its events, and the chunks are the events.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::model::secret::{Scope, Secrets};

use super::{Chunk, Line};

/// The members of an event that hold a piece of a longer text.
const PIECES: [&str; 6] = ["text", "thinking", "partial_json", "content", "arguments", "reasoning_content"];

pub(super) fn clean(line: &mut Line, secrets: &Secrets) {
    for value in line.headers.values_mut() {
        if let Cow::Owned(clean) = secrets.redact(value) {
            *value = clean;
        }
    }
    let body = line.chunks.iter().map(|chunk| chunk.bytes.as_slice()).collect::<Vec<_>>().concat();
    let mut events: Vec<Event> = split(&body).into_iter().map(Event::read).collect();
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for event in &mut events {
        event.pieces(|place, piece| texts.entry(place).or_default().push_str(piece));
    }
    texts.retain(|_, text| match secrets.redact(text) {
        Cow::Borrowed(_) => false,
        Cow::Owned(clean) => {
            *text = clean;
            true
        }
    });
    if texts.is_empty() && !secrets.betrayed_by(&body, Scope::Everything) {
        return;
    }
    let first = line.chunks.first().map_or(0, |chunk| chunk.ms);
    let mut chunks = Vec::with_capacity(events.len());
    for mut event in events {
        event.pieces(|place, piece| {
            if let Some(whole) = texts.get_mut(&place) {
                // The first event takes all of it, the others nothing.
                *piece = std::mem::take(whole);
            }
        });
        let bytes = event.written();
        let ms = if chunks.is_empty() { first } else { 0 };
        chunks.push(Chunk { ms, bytes: secrets.redact_bytes(&bytes).into_owned() });
    }
    line.chunks = chunks;
}

/// One event of a stream: JSON between what stands before and after it, or anything else.
enum Event {
    Json { before: Vec<u8>, data: Value, after: Vec<u8> },
    Other(Vec<u8>),
}

impl Event {
    fn read(bytes: &[u8]) -> Self {
        let other = || Self::Other(bytes.to_vec());
        let Some(at) = bytes.windows(5).position(|five| five == b"data:") else { return other() };
        let from = at + 5;
        let to = bytes[from..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| from + end);
        match serde_json::from_slice(&bytes[from..to]) {
            Ok(data) => Self::Json { before: bytes[..from].to_vec(), data, after: bytes[to..].to_vec() },
            Err(_) => other(),
        }
    }

    fn written(self) -> Vec<u8> {
        match self {
            Self::Json { before, data, after } => [&before[..], b" ", data.to_string().as_bytes(), &after].concat(),
            Self::Other(bytes) => bytes,
        }
    }

    fn pieces(&mut self, mut see: impl FnMut(String, &mut String)) {
        if let Self::Json { data, .. } = self {
            let index = data["index"].to_string();
            walk(data, &index, &mut see);
        }
    }
}

fn walk(value: &mut Value, place: &str, see: &mut impl FnMut(String, &mut String)) {
    match value {
        Value::Object(members) => {
            let index = members.get("index").map(Value::to_string).unwrap_or_default();
            for (name, member) in members {
                let place = format!("{place}/{name}{index}");
                match member {
                    Value::String(text) if PIECES.contains(&name.as_str()) => see(place, text),
                    member => walk(member, &place, see),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, place, see)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The events of a body, each with the empty line that ends it.
fn split(body: &[u8]) -> Vec<&[u8]> {
    let mut events = Vec::new();
    let (mut from, mut at) = (0, 0);
    while at < body.len() {
        let rest = &body[at..];
        let end = [&b"\n\n"[..], b"\r\n\r\n"].iter().find(|end| rest.starts_with(end)).map(|end| end.len());
        at += end.unwrap_or(1);
        if end.is_some() {
            events.push(&body[from..at]);
            from = at;
        }
    }
    if from < body.len() {
        events.push(&body[from..]);
    }
    events
}
