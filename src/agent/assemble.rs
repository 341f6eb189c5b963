//! One content block, grown from its start event and its deltas.
//!
//! Role: keep every field of the block as the bytes that came, in their order, and replace only
//! the fields that deltas fill.
//! Not its role: the order of events and the end of the message ([`super::stream`]).
//!
//! Invariants: a block without deltas is written back exactly as it came; the result is always
//! valid JSON that the API takes back, whatever the model wrote as tool input.

use super::message::{Block, Delta, ToolInput};
use super::request::push_json;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// The fields of a JSON object, values untouched, in the order they came.
struct Fields(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Fields;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

impl Fields {
    fn raw(&self, name: &str) -> Option<&RawValue> {
        self.0.iter().rev().find(|(field, _)| field == name).map(|(_, value)| &**value)
    }

    fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.raw(name)?.get()).ok()
    }
}

/// A delta, as far as this version knows its kinds.
#[derive(Deserialize)]
#[serde(tag = "type")]
enum WireDelta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "input_json_delta")]
    Input { partial_json: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    #[serde(rename = "citations_delta")]
    Citation { citation: serde_json::Value },
    #[serde(other)]
    Unknown,
}

/// A block that is arriving, or has arrived.
pub struct BlockBuilder {
    fields: Fields,
    kind: String,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    citations: Option<Vec<serde_json::Value>>,
    input: Option<String>,
    pub closed: bool,
}

impl BlockBuilder {
    /// From the `content_block` of a start event.
    pub fn start(raw: &str, on_delta: &mut (dyn FnMut(Delta<'_>) + Send)) -> Result<Self, String> {
        let fields: Fields = serde_json::from_str(raw).map_err(|e| format!("content block: {e}"))?;
        let kind = fields.text("type").ok_or("a content block has no type")?;
        if kind == "tool_use" {
            for needed in ["id", "name"] {
                if fields.text(needed).is_none_or(|value| value.is_empty()) {
                    return Err(format!("a tool_use block has no {needed}"));
                }
            }
            on_delta(Delta::ToolStarted { name: &fields.text("name").unwrap_or_default() });
        }
        Ok(BlockBuilder {
            fields,
            kind,
            text: None,
            thinking: None,
            signature: None,
            citations: None,
            input: None,
            closed: false,
        })
    }

    /// Adds one `delta` object.
    pub fn add(&mut self, raw: &str, on_delta: &mut (dyn FnMut(Delta<'_>) + Send)) -> Result<(), String> {
        match serde_json::from_str(raw).map_err(|e| format!("content delta: {e}"))? {
            WireDelta::Text { text } => {
                on_delta(Delta::Text(&text));
                self.grow(|b| &mut b.text, "text", &text);
            }
            WireDelta::Thinking { thinking } => {
                on_delta(Delta::Thinking(&thinking));
                self.grow(|b| &mut b.thinking, "thinking", &thinking);
            }
            WireDelta::Signature { signature } => self.grow(|b| &mut b.signature, "signature", &signature),
            WireDelta::Input { partial_json } => {
                if self.kind == "tool_use" {
                    on_delta(Delta::ToolInput(&partial_json));
                }
                self.input.get_or_insert_default().push_str(&partial_json);
            }
            WireDelta::Citation { citation } => {
                if self.citations.is_none() {
                    let first = self.fields.raw("citations").and_then(|raw| serde_json::from_str(raw.get()).ok());
                    self.citations = Some(first.unwrap_or_default());
                }
                self.citations.get_or_insert_default().push(citation);
            }
            WireDelta::Unknown => {}
        }
        Ok(())
    }

    /// Appends to a text field, which begins with what the start event held.
    fn grow(&mut self, slot: fn(&mut Self) -> &mut Option<String>, name: &str, more: &str) {
        if slot(self).is_none() {
            let first = self.fields.text(name).unwrap_or_default();
            *slot(self) = Some(first);
        }
        slot(self).get_or_insert_default().push_str(more);
    }

    /// Writes the block's JSON to `out` and gives the parsed view of it.
    pub fn finish(self, out: &mut String) -> Block {
        let is_tool = self.kind == "tool_use";
        let input = (is_tool || self.input.is_some()).then(|| self.tool_input());
        let mut changed: Vec<(&str, String)> = Vec::new();
        for (name, value) in [("text", &self.text), ("thinking", &self.thinking), ("signature", &self.signature)] {
            if let Some(value) = value {
                changed.push((name, json_of(value)));
            }
        }
        if let Some(citations) = &self.citations {
            changed.push(("citations", json_of(citations)));
        }
        if let Some((raw, _)) = &input {
            changed.push(("input", raw.clone()));
        }
        self.write(out, &changed);
        let text_of = |grown: Option<String>, name: &str| grown.or_else(|| self.fields.text(name)).unwrap_or_default();
        match self.kind.as_str() {
            "text" => Block::Text { text: text_of(self.text, "text") },
            "thinking" => Block::Thinking { text: text_of(self.thinking, "thinking") },
            "tool_use" => Block::ToolUse {
                id: self.fields.text("id").unwrap_or_default(),
                name: self.fields.text("name").unwrap_or_default(),
                input: input.map_or_else(|| ToolInput::Malformed(String::new()), |(_, parsed)| parsed),
            },
            _ => Block::Other { kind: self.kind },
        }
    }

    /// The input as JSON text to send back, and as parsed. Only valid JSON is kept as it came.
    fn tool_input(&self) -> (String, ToolInput) {
        let streamed = self.input.as_deref().unwrap_or("").trim();
        let raw = match streamed {
            // No delta: some servers send the whole input with the start event.
            "" => self.fields.raw("input").map_or("{}", RawValue::get),
            streamed => streamed,
        };
        match serde_json::from_str::<serde_json::Value>(raw) {
            Ok(serde_json::Value::Null) if streamed.is_empty() => {
                ("{}".to_owned(), ToolInput::Json(serde_json::Value::Object(serde_json::Map::new())))
            }
            Ok(value @ serde_json::Value::Object(_)) => (raw.to_owned(), ToolInput::Json(value)),
            // The engine tells the model what is wrong; but the API takes only objects back.
            Ok(value) => (stand_in(raw), ToolInput::Json(value)),
            Err(_) => (stand_in(raw), ToolInput::Malformed(raw.to_owned())),
        }
    }

    fn write(&self, out: &mut String, changed: &[(&str, String)]) {
        let mut first = true;
        let mut field = |out: &mut String, name: &str, value: &str| {
            out.push(if first { '{' } else { ',' });
            first = false;
            push_json(out, name);
            out.push(':');
            out.push_str(value);
        };
        for (name, value) in &self.fields.0 {
            let new = changed.iter().find(|(changed, _)| changed == name).map(|(_, new)| new.as_str());
            field(out, name, new.unwrap_or(value.get()));
        }
        for (name, value) in changed {
            if self.fields.raw(name).is_none() {
                field(out, name, value);
            }
        }
        out.push('}');
    }
}

/// What is sent back in place of an input that the API would not take.
fn stand_in(raw: &str) -> String {
    let mut out = r#"{"INVALID_JSON":"#.to_owned();
    push_json(&mut out, raw);
    out.push('}');
    out
}

fn json_of<T: serde::Serialize>(value: &T) -> String {
    let mut out = String::new();
    push_json(&mut out, value);
    out
}

#[cfg(test)]
mod tests;
