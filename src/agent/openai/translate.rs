//! Our request, written as a chat-completions request.
//!
//! Role: turn system text, tools and messages into the body of `POST …/chat/completions`.
//! Not its role: sending it, or reading the answer ([`super::collect`]).
//!
//! Invariants: equal requests give equal bytes; the messages come last and each is translated by itself, so
//! appending one changes no byte before it (local servers keep the prefix in memory); arguments and schemas are
//! taken over byte for byte; thinking is not sent back, because no two servers agree on how.

use crate::agent::error::{CallError, text, token};
use crate::agent::request::{Request, push_json};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Put before the result of a tool that failed: the format has no field for it.
const ERROR_PREFIX: &str = "ERROR: ";

/// What differs between servers that call themselves compatible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    pub limit: LimitField,
    /// Whether to ask for token counts at the end of the stream.
    pub ask_usage: bool,
}

/// The name of the field that bounds the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LimitField {
    /// What nearly every server knows.
    #[default]
    MaxTokens,
    /// What some models insist on.
    MaxCompletionTokens,
}

impl LimitField {
    pub const fn name(self) -> &'static str {
        match self {
            LimitField::MaxTokens => "max_tokens",
            LimitField::MaxCompletionTokens => "max_completion_tokens",
        }
    }

    pub const fn other(self) -> Self {
        match self {
            LimitField::MaxTokens => LimitField::MaxCompletionTokens,
            LimitField::MaxCompletionTokens => LimitField::MaxTokens,
        }
    }
}

#[derive(Deserialize)]
struct Tool<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    description: Option<Cow<'a, str>>,
    /// Absent for tools that only the Messages API runs by itself.
    #[serde(borrow, default)]
    input_schema: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow)]
    content: &'a RawValue,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_use_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(default)]
    is_error: Option<bool>,
}

/// The body to send, and the ids of the calls in it.
pub fn body(request: &Request, dialect: Dialect) -> Result<(Vec<u8>, Vec<String>), CallError> {
    let messages: usize = request.messages.iter().map(|m| m.get().len() + 64).sum();
    let mut out = String::with_capacity(messages + request.tools.get().len() * 2 + request.system.len() * 2 + 256);
    out.push_str(r#"{"model":"#);
    push_json(&mut out, &request.model);
    out.push_str(r#","stream":true"#);
    if dialect.ask_usage {
        out.push_str(r#","stream_options":{"include_usage":true}"#);
    }
    out.push_str(&format!(r#","{}":{}"#, dialect.limit.name(), request.max_tokens));
    if let Some(effort) = &request.effort {
        out.push_str(r#","reasoning_effort":"#);
        push_json(&mut out, effort);
    }
    write_tools(&mut out, request.tools.get())?;
    out.push_str(r#","messages":["#);
    let mut list = List { out: &mut out, first: true, ids: Vec::new() };
    if !request.system.is_empty() {
        list.plain("system", &request.system);
    }
    for (n, message) in request.messages.iter().enumerate() {
        write_message(&mut list, message.get()).map_err(|why| {
            CallError::Config(text(&format!("message {} of the conversation cannot be translated: {why}", n + 1)))
        })?;
    }
    let ids = list.ids;
    out.push_str("]}");
    Ok((out.into_bytes(), ids))
}

fn write_tools(out: &mut String, raw: &str) -> Result<(), CallError> {
    let tools: Vec<Tool<'_>> = serde_json::from_str(raw)
        .map_err(|e| CallError::Config(text(&format!("the tools cannot be translated: {e}"))))?;
    let mut any = false;
    for tool in &tools {
        let Some(schema) = tool.input_schema else { continue };
        out.push_str(if any { "," } else { r#","tools":["# });
        any = true;
        out.push_str(r#"{"type":"function","function":{"name":"#);
        push_json(out, &tool.name);
        if let Some(description) = &tool.description {
            out.push_str(r#","description":"#);
            push_json(out, description);
        }
        out.push_str(r#","parameters":"#);
        out.push_str(schema.get());
        out.push_str("}}");
    }
    if any {
        out.push(']');
    }
    Ok(())
}

/// The list of messages, as far as it is written.
struct List<'a> {
    out: &'a mut String,
    first: bool,
    ids: Vec<String>,
}

impl List<'_> {
    fn begin(&mut self, role: &str) {
        if !std::mem::take(&mut self.first) {
            self.out.push(',');
        }
        self.out.push_str(r#"{"role":"#);
        push_json(self.out, role);
        self.out.push_str(r#","content":"#);
    }

    fn plain(&mut self, role: &str, text: &str) {
        self.begin(role);
        push_json(self.out, text);
        self.out.push('}');
    }

    fn result(&mut self, id: &str, text: &str) {
        self.begin("tool");
        push_json(self.out, text);
        self.out.push_str(r#","tool_call_id":"#);
        push_json(self.out, id);
        self.out.push('}');
    }
}

fn write_message(list: &mut List<'_>, raw: &str) -> Result<(), String> {
    let message: Message<'_> = serde_json::from_str(raw).map_err(|e| e.to_string())?;
    let role = message.role.as_ref();
    if !matches!(role, "user" | "assistant" | "system") {
        return Err(format!("it has the role `{}`", token(role)));
    }
    if let Ok(words) = serde_json::from_str::<String>(message.content.get()) {
        list.plain(role, &words);
        return Ok(());
    }
    let blocks: Vec<Block<'_>> = serde_json::from_str(message.content.get()).map_err(|e| e.to_string())?;
    match role {
        "assistant" => write_assistant(list, &blocks),
        _ => write_user(list, role, &blocks),
    }
}

/// One message, whatever it holds: servers want the roles to alternate.
fn write_assistant(list: &mut List<'_>, blocks: &[Block<'_>]) -> Result<(), String> {
    list.begin("assistant");
    // Not null: chat templates of local models print it as a word.
    push_json(list.out, &joined(blocks));
    let mut any = false;
    for block in blocks.iter().filter(|block| block.kind == "tool_use") {
        let (Some(id), Some(name)) = (&block.id, &block.name) else {
            return Err("a tool_use block has no id or no name".to_owned());
        };
        list.out.push_str(if any { "," } else { r#","tool_calls":["# });
        any = true;
        list.ids.push(id.to_string());
        list.out.push_str(r#"{"id":"#);
        push_json(list.out, id);
        list.out.push_str(r#","type":"function","function":{"name":"#);
        push_json(list.out, name);
        list.out.push_str(r#","arguments":"#);
        push_json(list.out, block.input.map_or("{}", RawValue::get));
        list.out.push_str("}}");
    }
    list.out.push_str(if any { "]}" } else { "}" });
    Ok(())
}

/// Results first, as the format wants them directly behind the calls; then what else is said.
fn write_user(list: &mut List<'_>, role: &str, blocks: &[Block<'_>]) -> Result<(), String> {
    let mut results = 0;
    for block in blocks.iter().filter(|block| block.kind == "tool_result") {
        let id = block.tool_use_id.as_deref().ok_or("a tool_result block names no call")?;
        let mut words = result_text(block.content)?;
        if block.is_error == Some(true) {
            words.insert_str(0, ERROR_PREFIX);
        }
        list.result(id, &words);
        results += 1;
    }
    if results == 0 || blocks.iter().any(|block| block.kind != "tool_result") {
        list.plain(role, &joined(blocks));
    }
    Ok(())
}

/// The text of the text blocks. A block of another kind is named where the model should know that it was there.
fn joined(blocks: &[Block<'_>]) -> String {
    let mut out = String::new();
    for block in blocks {
        let part: Cow<'_, str> = match block.kind.as_ref() {
            "text" => Cow::Borrowed(block.text.as_deref().unwrap_or_default()),
            "tool_use" | "tool_result" | "thinking" | "redacted_thinking" => continue,
            other => Cow::Owned(format!("[a block of the kind {} was here]", token(other))),
        };
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&part);
    }
    out
}

fn result_text(content: Option<&RawValue>) -> Result<String, String> {
    let Some(content) = content else { return Ok(String::new()) };
    if let Ok(words) = serde_json::from_str::<String>(content.get()) {
        return Ok(words);
    }
    let blocks: Vec<Block<'_>> = serde_json::from_str(content.get()).map_err(|e| format!("a tool result: {e}"))?;
    Ok(joined(&blocks))
}

#[cfg(test)]
mod tests;
