//! What the pieces of a reply add up to: a message in the shape the engine knows.
//!
//! Role: gather text, thinking, calls and token counts; decide which call a piece belongs to; write the message.
//! Not its role: the stream and its end ([`super::reader`]).
//!
//! Invariants: no two calls of a conversation have the same id; ids that are missing or taken are made up from the
//! conversation alone, so the same reply to the same request gives the same bytes; whether there are calls decides
//! what the end of a reply means, not the word the server has for it.

use super::wire::{FunctionPiece, Piece};
use crate::agent::assemble::BlockBuilder;
use crate::agent::error::{CallError, text, token};
use crate::agent::message::{Block, Delta, StopReason, Usage};
use crate::agent::request::push_json;
use crate::agent::stream::Assembled;
use crate::model::learnings::estimate_tokens;
use serde_json::Value;
use serde_json::value::RawValue;

/// Calls in one reply.
pub const MAX_CALLS: usize = 128;
/// Longest id that is kept.
const MAX_ID_BYTES: usize = 128;

/// What the request says about the reply to come.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Ids of the calls that the conversation already holds.
    pub ids: Vec<String>,
    /// Bytes of the body.
    pub bytes: usize,
}

/// A reply that is arriving.
#[derive(Default)]
pub struct Collector {
    asked: Asked,
    text: String,
    thinking: String,
    refusal: String,
    calls: Vec<Call>,
    usage: Option<Value>,
    timings: Option<Value>,
    finish: Option<String>,
}

#[derive(Default)]
struct Call {
    index: u64,
    id: Option<String>,
    name: String,
    arguments: String,
    braces: Braces,
}

/// Follows an object that is arriving, so that its end is known without reading it again from the start.
#[derive(Default)]
struct Braces {
    depth: usize,
    in_string: bool,
    escaped: bool,
    closed: bool,
}

impl Braces {
    fn follow(&mut self, piece: &str) {
        for byte in piece.bytes() {
            match byte {
                _ if std::mem::take(&mut self.escaped) => {}
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' => self.depth += 1,
                b'}' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.closed |= self.depth == 0;
                }
                _ => {}
            }
        }
    }
}

/// One piece of a call, as far as it says what it belongs to.
struct CallPart {
    index: u64,
    /// Whether the server said the index itself.
    indexed: bool,
    id: Option<String>,
    name: Option<String>,
    arguments: String,
}

impl Collector {
    pub fn new(asked: Asked) -> Self {
        Collector { asked, ..Collector::default() }
    }

    pub fn add(&mut self, piece: &Piece<'_>, on_delta: &mut (dyn FnMut(Delta<'_>) + Send)) -> Result<(), CallError> {
        let thinking = piece.thinking();
        if !thinking.is_empty() {
            on_delta(Delta::Thinking(&thinking));
            self.thinking.push_str(&thinking);
        }
        let words = piece.text();
        if !words.is_empty() {
            on_delta(Delta::Text(&words));
            self.text.push_str(&words);
        }
        self.refusal.push_str(piece.refusal());
        for (position, call) in piece.tool_calls.iter().flatten().enumerate() {
            let given = call.index();
            let index = given.unwrap_or(position as u64);
            self.add_call(part(index, given.is_some(), call.id(), call.function.as_ref()), on_delta)?;
        }
        if let Some(function) = &piece.function_call {
            self.add_call(part(0, true, None, Some(function)), on_delta)?;
        }
        Ok(())
    }

    fn add_call(&mut self, part: CallPart, on_delta: &mut (dyn FnMut(Delta<'_>) + Send)) -> Result<(), CallError> {
        let at = match self.belongs_to(&part) {
            Some(at) => at,
            None if self.calls.len() == MAX_CALLS => {
                return Err(CallError::TooLarge(format!("the reply has more than {MAX_CALLS} tool calls")));
            }
            None => {
                self.calls.push(Call { index: part.index, ..Call::default() });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[at];
        if call.id.is_none() {
            call.id = part.id;
        }
        if let (true, Some(name)) = (call.name.is_empty(), part.name) {
            on_delta(Delta::ToolStarted { name: &name });
            call.name = name;
        }
        // Some servers end with the whole call once more.
        let repeated = call.braces.closed && call.arguments == part.arguments;
        if !repeated && !part.arguments.is_empty() {
            on_delta(Delta::ToolInput(&part.arguments));
            call.arguments.push_str(&part.arguments);
            call.braces.follow(&part.arguments);
        }
        Ok(())
    }

    /// The call that a piece goes on with; none when it begins another. By its id where it has one, else by its
    /// index, which some servers leave at 0 for every call.
    fn belongs_to(&self, part: &CallPart) -> Option<usize> {
        if let Some(id) = &part.id {
            let same_id = self.calls.iter().rposition(|call| call.id.as_ref() == Some(id));
            if let Some(at) = same_id {
                // Two calls under one id, told apart by their index.
                let another = part.indexed && part.name.is_some() && self.calls[at].index != part.index;
                return (!another).then_some(at);
            }
        }
        let at = self.calls.iter().rposition(|call| call.index == part.index)?;
        let call = &self.calls[at];
        let another = match (&part.id, &part.name) {
            // A fragment. Also with an id of its own: there are servers that make up a new one for each piece.
            (_, None) => false,
            (Some(_), Some(_)) => call.id.is_some(),
            (None, Some(name)) => {
                let named = !call.name.is_empty();
                named && (*name != call.name || (!part.arguments.is_empty() && call.braces.closed))
            }
        };
        (!another).then_some(at)
    }

    /// Counts in a stream are cumulative: the last one holds.
    pub fn count(&mut self, usage: Value) {
        if usage.is_object() {
            self.usage = Some(usage);
        }
    }

    /// llama.cpp counts here as well.
    pub fn time(&mut self, timings: Value) {
        self.timings = Some(timings);
    }

    pub fn finish_reason(&mut self, reason: &str) {
        self.finish = Some(token(reason));
    }

    pub fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// The message. Only to be called once the server has said that it is whole.
    pub fn assemble(self) -> Result<Assembled, CallError> {
        let usage = self.tokens();
        let refused = !self.refusal.is_empty() && self.text.is_empty() && self.calls.is_empty();
        let stop = if refused { StopReason::Refusal } else { stop_reason(self.finish, !self.calls.is_empty()) };
        let mut blocks: Vec<Block> = Vec::new();
        let mut json = r#"{"role":"assistant","content":["#.to_owned();
        if !self.thinking.is_empty() {
            json.push_str(r#"{"type":"thinking","thinking":"#);
            push_json(&mut json, &self.thinking);
            json.push_str(r#","signature":""}"#);
            blocks.push(Block::Thinking { text: self.thinking });
        }
        if !self.text.is_empty() {
            if !blocks.is_empty() {
                json.push(',');
            }
            json.push_str(r#"{"type":"text","text":"#);
            push_json(&mut json, &self.text);
            json.push('}');
            blocks.push(Block::Text { text: self.text });
        }
        let mut taken = self.asked.ids;
        for call in self.calls {
            if !blocks.is_empty() {
                json.push(',');
            }
            let id = unused_id(call.id, &taken);
            let block = tool_use(&id, &call.name, &call.arguments, &mut json).map_err(|why| bad(&why))?;
            taken.push(id);
            blocks.push(block);
        }
        json.push_str("]}");
        let message = RawValue::from_string(json).map_err(|e| bad(&format!("assembled message: {e}")))?;
        let stop_details = refused.then(|| text(&self.refusal));
        Ok(Assembled { message, blocks, stop, stop_details, usage })
    }

    /// What the server counted. Where it did not count, the bytes give an estimate: a limit that never bites because
    /// a server is silent would be worse than one that bites a little early or late.
    fn tokens(&self) -> Usage {
        let usage = self.usage.as_ref().unwrap_or(&Value::Null);
        let timings = self.timings.as_ref().unwrap_or(&Value::Null);
        let count = |name: &str| usage[name].as_u64().filter(|count| *count > 0);
        let cached = usage["prompt_tokens_details"]["cached_tokens"].as_u64();
        let cached = cached.or(usage["prompt_cache_hit_tokens"].as_u64()).or(timings["cache_n"].as_u64()).unwrap_or(0);
        let read = timings["prompt_n"].as_u64().map(|read| read.saturating_add(cached));
        let said = self.text.len() + self.thinking.len() + self.refusal.len();
        let called: usize = self.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
        let estimate = |bytes: usize| estimate_tokens(bytes) as u64;
        let prompt = count("prompt_tokens").or(read).unwrap_or_else(|| estimate(self.asked.bytes));
        let written = count("completion_tokens").or(timings["predicted_n"].as_u64());
        Usage {
            input_tokens: prompt.saturating_sub(cached),
            cache_creation_input_tokens: 0,
            cache_read_input_tokens: cached.min(prompt),
            output_tokens: written.unwrap_or_else(|| estimate(said + called)),
            thinking_tokens: usage["completion_tokens_details"]["reasoning_tokens"].as_u64().unwrap_or(0),
            ..Default::default()
        }
    }
}

fn part(index: u64, indexed: bool, id: Option<String>, function: Option<&FunctionPiece<'_>>) -> CallPart {
    CallPart {
        index,
        indexed,
        id,
        name: function.and_then(FunctionPiece::name).map(str::to_owned),
        arguments: function.map(FunctionPiece::arguments).unwrap_or_default(),
    }
}

fn stop_reason(finish: Option<String>, calls: bool) -> StopReason {
    match finish.as_deref() {
        Some("stop" | "tool_calls" | "function_call" | "eos_token" | "end_turn" | "tool_use") if calls => {
            StopReason::ToolUse
        }
        Some("stop" | "tool_calls" | "function_call" | "eos_token" | "tool_use") => StopReason::EndTurn,
        Some("length") => StopReason::MaxTokens,
        Some("content_filter") => StopReason::Refusal,
        Some(other) => StopReason::from(other.to_owned()),
        None => StopReason::Unknown("null".to_owned()),
    }
}

/// The server's id if it can be used, else `call_N`, where N counts the calls of the conversation.
fn unused_id(given: Option<String>, taken: &[String]) -> String {
    let usable = |id: &String| id.len() <= MAX_ID_BYTES && !id.chars().any(char::is_control) && !taken.contains(id);
    given.filter(usable).unwrap_or_else(|| {
        let mut number = taken.len();
        loop {
            let id = format!("call_{number}");
            if !taken.contains(&id) {
                return id;
            }
            number += 1;
        }
    })
}

/// Writes a call as the Messages API would; what is wrong with its input is dealt with there.
fn tool_use(id: &str, name: &str, arguments: &str, json: &mut String) -> Result<Block, String> {
    let mut start = r#"{"type":"tool_use","id":"#.to_owned();
    push_json(&mut start, id);
    start.push_str(r#","name":"#);
    push_json(&mut start, name);
    start.push_str(r#","input":{}}"#);
    let mut delta = r#"{"type":"input_json_delta","partial_json":"#.to_owned();
    push_json(&mut delta, arguments);
    delta.push('}');
    // The pieces were shown as they came.
    let mut block = BlockBuilder::start(&start, &mut |_| {})?;
    block.add(&delta, &mut |_| {})?;
    Ok(block.finish(json))
}

fn bad(why: &str) -> CallError {
    CallError::BadReply(text(why))
}

#[cfg(test)]
mod tests;
