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
        self.0
            .iter()
            .rev()
            .find(|(field, _)| field == name)
            .map(|(_, value)| &**value)
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
        let fields: Fields =
            serde_json::from_str(raw).map_err(|e| format!("content block: {e}"))?;
        let kind = fields.text("type").ok_or("a content block has no type")?;
        if kind == "tool_use" {
            for needed in ["id", "name"] {
                if fields.text(needed).is_none_or(|value| value.is_empty()) {
                    return Err(format!("a tool_use block has no {needed}"));
                }
            }
            on_delta(Delta::ToolStarted {
                name: &fields.text("name").unwrap_or_default(),
            });
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
    pub fn add(
        &mut self,
        raw: &str,
        on_delta: &mut (dyn FnMut(Delta<'_>) + Send),
    ) -> Result<(), String> {
        match serde_json::from_str(raw).map_err(|e| format!("content delta: {e}"))? {
            WireDelta::Text { text } => {
                on_delta(Delta::Text(&text));
                self.grow(|b| &mut b.text, "text", &text);
            }
            WireDelta::Thinking { thinking } => {
                on_delta(Delta::Thinking(&thinking));
                self.grow(|b| &mut b.thinking, "thinking", &thinking);
            }
            WireDelta::Signature { signature } => {
                self.grow(|b| &mut b.signature, "signature", &signature)
            }
            WireDelta::Input { partial_json } => {
                if self.kind == "tool_use" {
                    on_delta(Delta::ToolInput(&partial_json));
                }
                self.input.get_or_insert_default().push_str(&partial_json);
            }
            WireDelta::Citation { citation } => {
                if self.citations.is_none() {
                    let first = self
                        .fields
                        .raw("citations")
                        .and_then(|raw| serde_json::from_str(raw.get()).ok());
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
        for (name, value) in [
            ("text", &self.text),
            ("thinking", &self.thinking),
            ("signature", &self.signature),
        ] {
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
        let text_of = |grown: Option<String>, name: &str| {
            grown.or_else(|| self.fields.text(name)).unwrap_or_default()
        };
        match self.kind.as_str() {
            "text" => Block::Text {
                text: text_of(self.text, "text"),
            },
            "thinking" => Block::Thinking {
                text: text_of(self.thinking, "thinking"),
            },
            "tool_use" => Block::ToolUse {
                id: self.fields.text("id").unwrap_or_default(),
                name: self.fields.text("name").unwrap_or_default(),
                input: input
                    .map_or_else(|| ToolInput::Malformed(String::new()), |(_, parsed)| parsed),
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
            Ok(serde_json::Value::Null) if streamed.is_empty() => (
                "{}".to_owned(),
                ToolInput::Json(serde_json::Value::Object(serde_json::Map::new())),
            ),
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
            let new = changed
                .iter()
                .find(|(changed, _)| changed == name)
                .map(|(_, new)| new.as_str());
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
mod tests {
    use super::*;
    use serde_json::json;

    fn build(start: &str, deltas: &[&str]) -> (String, Block) {
        let mut builder = BlockBuilder::start(start, &mut |_| {}).unwrap();
        for delta in deltas {
            builder.add(delta, &mut |_| {}).unwrap();
        }
        let mut out = String::new();
        let block = builder.finish(&mut out);
        (out, block)
    }

    fn input_delta(text: &str) -> String {
        json!({"type": "input_json_delta", "partial_json": text}).to_string()
    }

    #[test]
    fn unknown_blocks_come_back_byte_for_byte() {
        let odd =
            r#"{"type":"made_up","z":1.50,"a":{"deep": [1e3, 18446744073709551616]},"b":"\u00e9"}"#;
        assert_eq!(
            build(odd, &[]),
            (
                odd.to_owned(),
                Block::Other {
                    kind: "made_up".into()
                }
            )
        );
        assert_eq!(build(odd, &[r#"{"type":"made_up_delta","x":1}"#]).0, odd);
    }

    #[test]
    fn deltas_fill_only_their_field() {
        let (raw, block) = build(
            r#"{"type":"thinking","thinking":"","signature":""}"#,
            &[
                r#"{"type":"thinking_delta","thinking":"a\n"}"#,
                r#"{"type":"thinking_delta","thinking":"b"}"#,
                r#"{"type":"signature_delta","signature":"c2ln"}"#,
            ],
        );
        assert_eq!(
            raw,
            r#"{"type":"thinking","thinking":"a\nb","signature":"c2ln"}"#
        );
        assert_eq!(
            block,
            Block::Thinking {
                text: "a\nb".into()
            }
        );
    }

    #[test]
    fn a_silent_thinking_block_keeps_its_empty_text() {
        let (raw, block) = build(
            r#"{"type":"thinking","thinking":""}"#,
            &[r#"{"type":"signature_delta","signature":"x"}"#],
        );
        assert_eq!(raw, r#"{"type":"thinking","thinking":"","signature":"x"}"#);
        assert_eq!(
            block,
            Block::Thinking {
                text: String::new()
            }
        );
    }

    #[test]
    fn citations_are_collected() {
        let (raw, _) = build(
            r#"{"citations":null,"type":"text","text":""}"#,
            &[
                r#"{"type":"text_delta","text":"x"}"#,
                r#"{"type":"citations_delta","citation":{"n":1}}"#,
                r#"{"type":"citations_delta","citation":{"n":2}}"#,
            ],
        );
        assert_eq!(
            raw,
            r#"{"citations":[{"n":1},{"n":2}],"type":"text","text":"x"}"#
        );
    }

    #[test]
    fn tool_input_keeps_its_bytes_when_valid() {
        let start =
            r#"{"type":"tool_use","id":"t1","name":"bash","input":{},"caller":{"type":"direct"}}"#;
        let (raw, block) = build(
            start,
            &[&input_delta(r#"{"n": 1."#), &input_delta(r#"50, "b":"x"}"#)],
        );
        assert_eq!(
            raw,
            r#"{"type":"tool_use","id":"t1","name":"bash","input":{"n": 1.50, "b":"x"},"caller":{"type":"direct"}}"#
        );
        let input = ToolInput::Json(json!({"n": 1.5, "b": "x"}));
        assert_eq!(
            block,
            Block::ToolUse {
                id: "t1".into(),
                name: "bash".into(),
                input
            }
        );
    }

    #[test]
    fn tool_input_that_is_no_json_becomes_data() {
        let start = r#"{"type":"tool_use","id":"t1","name":"bash","input":{}}"#;
        let deep = "[".repeat(100_000);
        for bad in [
            r#"{"command": "rm -rf build"#,
            "{}{}",
            "\u{0}",
            "nope",
            r#"{"n":1e999}"#,
            &deep,
        ] {
            let (raw, block) = build(start, &[&input_delta(bad)]);
            let echoed: serde_json::Value = serde_json::from_str(&raw).unwrap();
            assert_eq!(echoed["input"], json!({"INVALID_JSON": bad}));
            let Block::ToolUse { input, .. } = block else {
                panic!("{block:?}")
            };
            assert_eq!(input, ToolInput::Malformed(bad.to_owned()));
        }
    }

    #[test]
    fn an_input_that_is_no_object_is_given_as_json_but_sent_back_as_an_object() {
        let start = r#"{"type":"tool_use","id":"t1","name":"bash","input":{}}"#;
        for odd in ["[1]", "null", "7", "\"x\""] {
            let (raw, block) = build(start, &[&input_delta(odd)]);
            let echoed: serde_json::Value = serde_json::from_str(&raw).unwrap();
            assert_eq!(echoed["input"], json!({"INVALID_JSON": odd}));
            let Block::ToolUse { input, .. } = block else {
                panic!("{block:?}")
            };
            assert_eq!(input, ToolInput::Json(serde_json::from_str(odd).unwrap()));
        }
    }

    #[test]
    fn tool_input_may_be_empty_or_whole() {
        let start = |input: &str| format!(r#"{{"type":"tool_use","id":"t","name":"n"{input}}}"#);
        for (given, deltas, wanted) in [
            (start(r#","input":{}"#), vec![], json!({})),
            (start(r#","input":{}"#), vec![input_delta("")], json!({})),
            (start(""), vec![], json!({})),
            (start(r#","input":null"#), vec![], json!({})),
            (start(r#","input":{"a":1}"#), vec![], json!({"a": 1})),
        ] {
            let deltas: Vec<&str> = deltas.iter().map(String::as_str).collect();
            let (raw, block) = build(&given, &deltas);
            let echoed: serde_json::Value = serde_json::from_str(&raw).unwrap();
            assert_eq!(echoed["input"], wanted, "{given} {deltas:?}");
            let Block::ToolUse { input, .. } = block else {
                panic!("{block:?}")
            };
            assert_eq!(input, ToolInput::Json(wanted));
        }
    }

    #[test]
    fn server_tools_stream_their_input_too() {
        let start = r#"{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}"#;
        let (raw, block) = build(start, &[&input_delta(r#"{"query":"x"}"#)]);
        assert_eq!(
            raw,
            r#"{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"x"}}"#
        );
        assert_eq!(
            block,
            Block::Other {
                kind: "server_tool_use".into()
            }
        );
    }

    #[test]
    fn a_block_without_type_or_a_call_without_name_is_refused() {
        for bad in [
            "[]",
            "{}",
            r#"{"type":7}"#,
            r#"{"type":"tool_use","id":"","name":"x"}"#,
            r#"{"type":"tool_use","id":"x"}"#,
        ] {
            assert!(BlockBuilder::start(bad, &mut |_| {}).is_err(), "{bad}");
        }
    }
}
