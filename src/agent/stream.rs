//! One streamed reply: bytes in, a whole message or an error out. No IO.
//!
//! Role: the order of the Messages API events, the usage count, the size limit.
//! Not its role: HTTP, time-outs, headers.
//!
//! Invariants: nothing is given out before `message_stop` with every block closed; a stream cut
//! anywhere gives [`CallError::StreamCut`]; events of unknown kinds are ignored.

use super::assemble::BlockBuilder;
use super::envelope;
use super::error::{CallError, text, token};
use super::message::{Block, Delta, StopReason, Usage};
use super::sse::{Event, Parser};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Largest reply, counted as bytes of the stream.
pub const MAX_REPLY_BYTES: u64 = 32 * 1024 * 1024;

/// A whole message, as far as the stream tells.
#[derive(Debug)]
pub struct Assembled {
    pub message: Box<RawValue>,
    pub blocks: Vec<Block>,
    pub stop: StopReason,
    pub stop_details: Option<String>,
    pub usage: Usage,
}

/// Reads one stream.
#[derive(Default)]
pub struct StreamReader {
    parser: Parser,
    bytes: u64,
    progress: Progress,
    blocks: BTreeMap<u64, BlockBuilder>,
    stop: Option<String>,
    stop_details: Option<String>,
    usage: Usage,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Progress {
    #[default]
    Waiting,
    Started,
    Stopped,
}

#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct BlockStart<'a> {
    index: u64,
    #[serde(borrow)]
    content_block: &'a RawValue,
}

#[derive(Deserialize)]
struct BlockDelta<'a> {
    index: u64,
    #[serde(borrow)]
    delta: &'a RawValue,
}

#[derive(Deserialize)]
struct BlockStop {
    index: u64,
}

impl StreamReader {
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads more bytes. True once the message is whole; what follows is not looked at.
    pub fn push(&mut self, bytes: &[u8], on_delta: &mut (dyn FnMut(Delta<'_>) + Send)) -> Result<bool, CallError> {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        if self.bytes > MAX_REPLY_BYTES {
            return Err(CallError::TooLarge(format!("the reply is larger than {MAX_REPLY_BYTES} bytes")));
        }
        let mut events = Vec::new();
        let pushed = self.parser.push(bytes, &mut events);
        for event in &events {
            if self.progress == Progress::Stopped {
                break;
            }
            self.event(event, on_delta)?;
        }
        if self.progress == Progress::Stopped {
            return Ok(true);
        }
        pushed.map_err(|e| CallError::TooLarge(e.to_string()))?;
        Ok(false)
    }

    /// Bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn event(&mut self, event: &Event, on_delta: &mut (dyn FnMut(Delta<'_>) + Send)) -> Result<(), CallError> {
        let data = event.data.as_str();
        let kind = match serde_json::from_str::<Kind<'_>>(data) {
            Ok(Kind { kind: Some(kind) }) => kind,
            _ if event.event == "error" => Cow::Borrowed("error"),
            Ok(Kind { kind: None }) => Cow::Borrowed(event.event.as_str()),
            Err(_) if data == "[DONE]" || !is_known(&event.event) => return Ok(()),
            Err(e) => return Err(bad(format!("event {}: {e}", token(&event.event)))),
        };
        match kind.as_ref() {
            "message_start" => {
                self.message_start(data)?;
                on_delta(Delta::Usage { usage: self.usage, last: self.stop.is_some() });
                Ok(())
            }
            "content_block_start" => {
                self.must_have_started(&kind)?;
                let start: BlockStart<'_> = parse(data)?;
                let block = BlockBuilder::start(start.content_block.get(), on_delta).map_err(bad)?;
                match self.blocks.insert(start.index, block) {
                    None => Ok(()),
                    Some(_) => Err(bad(format!("block {} begins twice", start.index))),
                }
            }
            "content_block_delta" => {
                let delta: BlockDelta<'_> = parse(data)?;
                self.open_block(delta.index)?.add(delta.delta.get(), on_delta).map_err(bad)
            }
            "content_block_stop" => {
                let stop: BlockStop = parse(data)?;
                self.open_block(stop.index)?.closed = true;
                Ok(())
            }
            "message_delta" => {
                self.must_have_started(&kind)?;
                self.message_delta(&parse(data)?);
                on_delta(Delta::Usage { usage: self.usage, last: self.stop.is_some() });
                Ok(())
            }
            "message_stop" => {
                self.must_have_started(&kind)?;
                if let Some((index, _)) = self.blocks.iter().find(|(_, block)| !block.closed) {
                    return Err(bad(format!("the message ends while block {index} is open")));
                }
                self.progress = Progress::Stopped;
                Ok(())
            }
            "error" => {
                let error = envelope::read(data.as_bytes());
                let kind = error.kind.unwrap_or_else(|| "error".to_owned());
                Err(CallError::StreamError { kind, message: error.message })
            }
            // `ping`, and kinds to come.
            _ => Ok(()),
        }
    }

    fn message_start(&mut self, data: &str) -> Result<(), CallError> {
        if self.progress != Progress::Waiting {
            return Err(bad("the message begins twice".to_owned()));
        }
        let start: Value = parse(data)?;
        self.count(&start["message"]["usage"]);
        self.progress = Progress::Started;
        Ok(())
    }

    fn message_delta(&mut self, event: &Value) {
        let delta = &event["delta"];
        if let Some(reason) = delta["stop_reason"].as_str() {
            self.stop = Some(token(reason));
        }
        if let Some(details) = details(&delta["stop_details"]) {
            self.stop_details = Some(details);
        }
        self.count(&event["usage"]);
    }

    /// Takes over what `usage` names; counts in the stream are cumulative, not increments.
    fn count(&mut self, usage: &Value) {
        let take = |slot: &mut u64, value: &Value| {
            if let Some(count) = value.as_u64() {
                *slot = count;
            }
        };
        take(&mut self.usage.input_tokens, &usage["input_tokens"]);
        take(&mut self.usage.cache_creation_input_tokens, &usage["cache_creation_input_tokens"]);
        take(&mut self.usage.cache_read_input_tokens, &usage["cache_read_input_tokens"]);
        take(&mut self.usage.output_tokens, &usage["output_tokens"]);
        take(&mut self.usage.thinking_tokens, &usage["output_tokens_details"]["thinking_tokens"]);
        take(&mut self.usage.web_search_requests, &usage["server_tool_use"]["web_search_requests"]);
        if let Some(count) = usage["cache_creation"]["ephemeral_1h_input_tokens"].as_u64() {
            self.usage.cache_creation_1h_input_tokens = Some(count);
        }
    }

    fn must_have_started(&self, kind: &str) -> Result<(), CallError> {
        match self.progress {
            Progress::Waiting => Err(bad(format!("{kind} comes before message_start"))),
            Progress::Started | Progress::Stopped => Ok(()),
        }
    }

    fn open_block(&mut self, index: u64) -> Result<&mut BlockBuilder, CallError> {
        match self.blocks.get_mut(&index) {
            Some(block) if !block.closed => Ok(block),
            Some(_) => Err(bad(format!("block {index} goes on after its end"))),
            None => Err(bad(format!("block {index} goes on before its start"))),
        }
    }

    /// The message, if it is whole.
    pub fn finish(self) -> Result<Assembled, CallError> {
        if self.progress != Progress::Stopped {
            return Err(CallError::StreamCut { after_bytes: self.bytes });
        }
        let mut json = r#"{"role":"assistant","content":["#.to_owned();
        let mut blocks = Vec::with_capacity(self.blocks.len());
        for (n, block) in self.blocks.into_values().enumerate() {
            if n > 0 {
                json.push(',');
            }
            blocks.push(block.finish(&mut json));
        }
        json.push_str("]}");
        let message = RawValue::from_string(json).map_err(|e| bad(format!("assembled message: {e}")))?;
        Ok(Assembled {
            message,
            blocks,
            stop: StopReason::from(self.stop.unwrap_or_else(|| "null".to_owned())),
            stop_details: self.stop_details,
            usage: self.usage,
        })
    }
}

/// Events whose data must be JSON. `message` is the name of an event that has none.
fn is_known(event: &str) -> bool {
    matches!(
        event,
        "message"
            | "message_start"
            | "content_block_start"
            | "content_block_delta"
            | "content_block_stop"
            | "message_delta"
            | "message_stop"
    )
}

fn parse<'a, T: Deserialize<'a>>(data: &'a str) -> Result<T, CallError> {
    serde_json::from_str(data).map_err(|e| bad(e.to_string()))
}

fn bad(why: String) -> CallError {
    CallError::BadReply(text(&why))
}

/// `category: explanation`, or whatever else the server put there.
fn details(value: &Value) -> Option<String> {
    let part = |name: &str| value[name].as_str().filter(|text| !text.is_empty());
    match (part("category"), part("explanation")) {
        (Some(category), Some(explanation)) => Some(text(&format!("{category}: {explanation}"))),
        (Some(only), None) | (None, Some(only)) => Some(text(only)),
        (None, None) if value.is_null() => None,
        (None, None) => Some(text(&value.to_string())),
    }
}

#[cfg(test)]
mod tests;
