//! The request: what is sent, byte for byte.
//!
//! Role: hold the parts of one Messages API request and write its body.
//! Not its role: building messages or tools; they come as finished JSON.
//!
//! Invariants: equal requests give equal bytes; messages and tools are spliced in verbatim; the
//! messages come last, so appending one changes no byte before it. Thinking blocks are bound to
//! everything before them, and so is the prompt cache.

use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;

/// One request.
#[derive(Debug, Clone)]
pub struct Request {
    pub model: String,
    pub max_tokens: u32,
    pub system: String,
    /// A JSON array, frozen per conversation.
    pub tools: Box<RawValue>,
    /// Whole message objects, sent as they are.
    pub messages: Vec<Arc<RawValue>>,
    pub thinking: Option<Thinking>,
    pub effort: Option<String>,
}

/// The `thinking` setting. Which of these a model takes differs per model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Thinking {
    Adaptive {
        display: ThinkingDisplay,
        on_mismatch: PrefixMismatch,
    },
    BetweenTools,
    Disabled,
    /// Only for models older than adaptive thinking.
    Enabled {
        budget_tokens: u32,
    },
}

impl Thinking {
    /// Adaptive thinking whose summary is streamed: the choice for a console.
    pub fn summarized() -> Self {
        Thinking::Adaptive { display: ThinkingDisplay::Summarized, on_mismatch: PrefixMismatch::Fail }
    }

    /// The beta that this setting needs, if any.
    pub(super) fn beta(&self) -> Option<&'static str> {
        match self {
            Thinking::Adaptive { on_mismatch: PrefixMismatch::DropBlock, .. } => {
                Some("thinking-binding-controls-2026-08-01")
            }
            Thinking::Adaptive { .. } | Thinking::BetweenTools | Thinking::Disabled | Thinking::Enabled { .. } => None,
        }
    }

    fn json(&self) -> String {
        match self {
            Thinking::Adaptive { display, on_mismatch } => {
                let display = match display {
                    ThinkingDisplay::Summarized => "summarized",
                    ThinkingDisplay::Omitted => "omitted",
                };
                let binding = match on_mismatch {
                    PrefixMismatch::Fail => "",
                    PrefixMismatch::DropBlock => r#","block_binding":{"prefix_mismatch_behavior":"drop_block"}"#,
                };
                format!(r#"{{"type":"adaptive","display":"{display}"{binding}}}"#)
            }
            Thinking::BetweenTools => r#"{"type":"between_tools"}"#.to_owned(),
            Thinking::Disabled => r#"{"type":"disabled"}"#.to_owned(),
            Thinking::Enabled { budget_tokens } => {
                format!(r#"{{"type":"enabled","budget_tokens":{budget_tokens}}}"#)
            }
        }
    }
}

/// Whether thinking is streamed in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ThinkingDisplay {
    Summarized,
    Omitted,
}

/// What the server does with a thinking block that no longer fits what comes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PrefixMismatch {
    /// Refuse the request (the default of the API).
    Fail,
    /// Leave the block out. Needs a beta header, which the client adds.
    DropBlock,
}

impl Request {
    /// The body to send.
    pub fn body(&self) -> Vec<u8> {
        let messages: usize = self.messages.iter().map(|m| m.get().len() + 1).sum();
        let mut out = String::with_capacity(messages + self.tools.get().len() + self.system.len() * 2 + 256);
        out.push_str(r#"{"model":"#);
        push_json(&mut out, &self.model);
        out.push_str(r#","max_tokens":"#);
        out.push_str(&self.max_tokens.to_string());
        out.push_str(r#","stream":true"#);
        if let Some(thinking) = &self.thinking {
            out.push_str(r#","thinking":"#);
            out.push_str(&thinking.json());
        }
        if let Some(effort) = &self.effort {
            out.push_str(r#","output_config":{"effort":"#);
            push_json(&mut out, effort);
            out.push('}');
        }
        if !is_empty_array(self.tools.get()) {
            out.push_str(r#","tools":"#);
            out.push_str(self.tools.get());
        }
        // The API takes no empty text block.
        if !self.system.is_empty() {
            out.push_str(r#","system":[{"type":"text","text":"#);
            push_json(&mut out, &self.system);
            out.push_str(r#","cache_control":{"type":"ephemeral"}}]"#);
        }
        out.push_str(r#","messages":["#);
        for (n, message) in self.messages.iter().enumerate() {
            if n > 0 {
                out.push(',');
            }
            out.push_str(message.get());
        }
        out.push_str("]}");
        out.into_bytes()
    }
}

fn is_empty_array(raw: &str) -> bool {
    raw.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).is_some_and(|inner| inner.trim().is_empty())
}

/// Appends `value` as JSON. Strings and raw values, all that is written here, cannot fail.
pub(super) fn push_json<T: Serialize + ?Sized>(out: &mut String, value: &T) {
    out.push_str(&serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn request(system: &str, messages: &[&str]) -> Request {
        Request {
            model: "claude-opus-5-5".into(),
            max_tokens: 64,
            system: system.into(),
            tools: raw(r#"[ {"name": "bash"} ]"#),
            messages: messages.iter().map(|m| Arc::from(raw(m))).collect(),
            thinking: Some(Thinking::summarized()),
            effort: Some("high".into()),
        }
    }

    #[test]
    fn the_body_in_full() {
        let body = request("Be \"brief\".", &[r#"{ "role":"user", "content":"\u0061 1.0e0" }"#]).body();
        assert_eq!(
            String::from_utf8(body).unwrap(),
            r#"{"model":"claude-opus-5-5","max_tokens":64,"stream":true,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"},"tools":[ {"name": "bash"} ],"system":[{"type":"text","text":"Be \"brief\".","cache_control":{"type":"ephemeral"}}],"messages":[{ "role":"user", "content":"\u0061 1.0e0" }]}"#
        );
    }

    #[test]
    fn what_is_not_set_is_not_sent() {
        let mut bare = request("", &[]);
        bare.tools = raw("[ ]");
        bare.thinking = None;
        bare.effort = None;
        assert_eq!(
            String::from_utf8(bare.body()).unwrap(),
            r#"{"model":"claude-opus-5-5","max_tokens":64,"stream":true,"messages":[]}"#
        );
    }

    #[test]
    fn every_thinking_setting_is_json_and_names_its_beta() {
        let drop = Thinking::Adaptive { display: ThinkingDisplay::Omitted, on_mismatch: PrefixMismatch::DropBlock };
        for (thinking, wanted) in [
            (
                drop,
                serde_json::json!({"type":"adaptive","display":"omitted","block_binding":{"prefix_mismatch_behavior":"drop_block"}}),
            ),
            (Thinking::BetweenTools, serde_json::json!({"type":"between_tools"})),
            (Thinking::Disabled, serde_json::json!({"type":"disabled"})),
            (Thinking::Enabled { budget_tokens: 2048 }, serde_json::json!({"type":"enabled","budget_tokens":2048})),
        ] {
            assert_eq!(serde_json::from_str::<serde_json::Value>(&thinking.json()).unwrap(), wanted);
            assert_eq!(thinking.beta().is_some(), thinking == drop);
        }
    }

    proptest! {
        #[test]
        fn equal_requests_are_equal_bytes_and_appending_keeps_the_prefix(
            system in ".*",
            texts in proptest::collection::vec(".*", 1..6),
        ) {
            let messages: Vec<String> = texts
                .iter()
                .map(|text| serde_json::json!({"role": "user", "content": text}).to_string())
                .collect();
            let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
            let whole = request(&system, &messages).body();
            prop_assert_eq!(&whole, &request(&system, &messages).body());
            let parsed: serde_json::Value = serde_json::from_slice(&whole).unwrap();
            prop_assert_eq!(parsed["messages"].as_array().unwrap().len(), messages.len());
            let shorter = request(&system, &messages[..messages.len() - 1]).body();
            prop_assert!(whole.starts_with(&shorter[..shorter.len() - 2]));
        }
    }
}
