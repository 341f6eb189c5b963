//! One reply of a chat-completions server: bytes in, a whole message or an error out. No IO.
//!
//! Role: the events of the stream, its end, the size limit; and the answer of a server that does not stream.
//! Not its role: HTTP, time-outs, headers; what the pieces mean ([`super::collect`]).
//!
//! Invariants: nothing is given out before the server has named a reason to finish; a stream cut anywhere before
//! that gives [`CallError::StreamCut`], also when it ends with `[DONE]`, which gateways write after a broken reply
//! too; an error object is an error wherever it stands.

use super::collect::{Asked, Collector};
use super::fault;
use super::wire::Chunk;
use crate::agent::error::{CallError, text};
use crate::agent::message::Delta;
use crate::agent::sse::{Event, Parser};
use crate::agent::stream::{Assembled, MAX_REPLY_BYTES};
use serde_json::Value;

/// Reads one stream.
#[derive(Default)]
pub struct Reader {
    parser: Parser,
    bytes: u64,
    done: bool,
    collector: Collector,
}

impl Reader {
    pub fn new(asked: Asked) -> Self {
        Reader { collector: Collector::new(asked), ..Reader::default() }
    }

    /// Reads more bytes. True after `[DONE]`; what follows is not looked at.
    pub fn push(&mut self, bytes: &[u8], on_delta: &mut (dyn FnMut(Delta<'_>) + Send)) -> Result<bool, CallError> {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        if self.bytes > MAX_REPLY_BYTES {
            return Err(too_large());
        }
        let mut events = Vec::new();
        let pushed = self.parser.push(bytes, &mut events);
        for event in &events {
            self.event(event, on_delta)?;
            if self.done {
                return Ok(true);
            }
        }
        pushed.map_err(|e| CallError::TooLarge(e.to_string()))?;
        Ok(false)
    }

    /// Bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn event(&mut self, event: &Event, on_delta: &mut (dyn FnMut(Delta<'_>) + Send)) -> Result<(), CallError> {
        match event.data.trim() {
            "" => Ok(()),
            "[DONE]" => {
                self.done = true;
                Ok(())
            }
            data if event.event == "error" => Err(reported(data)),
            data => take(&mut self.collector, data, on_delta),
        }
    }

    /// The message, if it is whole. To be called when the stream has ended in good order.
    pub fn finish(self) -> Result<Assembled, CallError> {
        match self.collector.is_finished() {
            true => self.collector.assemble(),
            false => Err(CallError::StreamCut { after_bytes: self.bytes }),
        }
    }
}

/// The answer of a server that gave the whole reply at once.
pub fn whole(body: &[u8], asked: Asked, on_delta: &mut (dyn FnMut(Delta<'_>) + Send)) -> Result<Assembled, CallError> {
    let mut collector = Collector::new(asked);
    take(&mut collector, &String::from_utf8_lossy(body), on_delta)?;
    match collector.is_finished() {
        true => collector.assemble(),
        false => Err(CallError::BadReply("the reply names no reason why it ended".to_owned())),
    }
}

pub fn too_large() -> CallError {
    CallError::TooLarge(format!("the reply is larger than {MAX_REPLY_BYTES} bytes"))
}

fn take(collector: &mut Collector, data: &str, on_delta: &mut (dyn FnMut(Delta<'_>) + Send)) -> Result<(), CallError> {
    let chunk: Chunk<'_> =
        serde_json::from_str(data).map_err(|e| CallError::BadReply(text(&format!("a chunk of the reply: {e}"))))?;
    if chunk.error.is_some() || chunk.object.as_ref().is_some_and(|object| object == "error") {
        return Err(reported(data));
    }
    for choice in chunk.choices.iter().flatten().filter(|choice| choice.is_ours()) {
        if let Some(piece) = choice.piece() {
            collector.add(piece, on_delta)?;
        }
        match choice.finish_reason() {
            Some("error") => {
                let kind = "api_error".to_owned();
                return Err(CallError::StreamError { kind, message: "the reply ended with an error".to_owned() });
            }
            Some(reason) => collector.finish_reason(reason),
            None => {}
        }
    }
    if let Some(usage) = chunk.usage {
        collector.count(usage);
    }
    if let Some(timings) = chunk.timings {
        collector.time(timings);
    }
    Ok(())
}

fn reported(data: &str) -> CallError {
    let value = serde_json::from_str::<Value>(data).unwrap_or_else(|_| Value::String(data.to_owned()));
    fault::reported(value.get("error").filter(|error| !error.is_null()).unwrap_or(&value))
}

#[cfg(test)]
mod tests;
