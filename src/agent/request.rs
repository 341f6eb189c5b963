//! The request: what is sent, byte for byte.
//!
//! Role: hold the parts of one Messages API request and write its body.
//! Not its role: building messages or tools; they come as finished JSON.
//!
//! Invariants: equal requests give equal bytes; messages and tools are spliced in verbatim; what may
//! change from turn to turn (the length of the reply) comes after the messages, so appending one changes
//! no byte before it. Thinking blocks are bound to everything before them, and so is the prompt cache.

use super::price::CacheTtl;
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
    /// How long the server keeps the prefix; `None`: not at all.
    pub cache: Option<CacheTtl>,
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

    /// The same, but the server may leave out thinking blocks that no longer fit. `None` where it cannot.
    pub fn dropping(self) -> Option<Self> {
        match self {
            Thinking::Adaptive { display, .. } => {
                Some(Thinking::Adaptive { display, on_mismatch: PrefixMismatch::DropBlock })
            }
            Thinking::BetweenTools | Thinking::Disabled | Thinking::Enabled { .. } => None,
        }
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
        let mut out = self.prefix();
        out.push_str(r#","max_tokens":"#);
        out.push_str(&self.max_tokens.to_string());
        out.push_str(r#","stream":true}"#);
        out.into_bytes()
    }

    /// The body that asks how many tokens this is.
    pub fn count_body(&self) -> Vec<u8> {
        let mut out = self.prefix();
        out.push('}');
        out.into_bytes()
    }

    /// Everything that the reply depends on, up to the end of the messages.
    fn prefix(&self) -> String {
        let messages: usize = self.messages.iter().map(|m| m.get().len() + 1).sum();
        let mut out = String::with_capacity(messages + self.tools.get().len() + self.system.len() * 2 + 256);
        out.push_str(r#"{"model":"#);
        push_json(&mut out, &self.model);
        if let Some(thinking) = &self.thinking {
            out.push_str(r#","thinking":"#);
            out.push_str(&thinking.json());
        }
        if let Some(effort) = &self.effort {
            out.push_str(r#","output_config":{"effort":"#);
            push_json(&mut out, effort);
            out.push('}');
        }
        let keep = self.cache.map(|ttl| format!(r#""cache_control":{{"type":"ephemeral","ttl":"{}"}}"#, ttl.name()));
        // The server moves this breakpoint to the end of each request by itself.
        if let Some(keep) = &keep {
            out.push(',');
            out.push_str(keep);
        }
        if !is_empty_array(self.tools.get()) {
            out.push_str(r#","tools":"#);
            out.push_str(self.tools.get());
        }
        // The API takes no empty text block.
        if !self.system.is_empty() {
            out.push_str(r#","system":[{"type":"text","text":"#);
            push_json(&mut out, &self.system);
            // The next agent of this role begins with the same tools and the same words.
            if let Some(keep) = &keep {
                out.push(',');
                out.push_str(keep);
            }
            out.push_str("}]");
        }
        out.push_str(r#","messages":["#);
        for (n, message) in self.messages.iter().enumerate() {
            if n > 0 {
                out.push(',');
            }
            out.push_str(message.get());
        }
        out.push(']');
        out
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
            cache: Some(CacheTtl::Hour),
        }
    }

    #[test]
    fn the_body_in_full() {
        let body = request("Be \"brief\".", &[r#"{ "role":"user", "content":"\u0061 1.0e0" }"#]).body();
        assert_eq!(
            String::from_utf8(body).unwrap(),
            r#"{"model":"claude-opus-5-5","thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"},"cache_control":{"type":"ephemeral","ttl":"1h"},"tools":[ {"name": "bash"} ],"system":[{"type":"text","text":"Be \"brief\".","cache_control":{"type":"ephemeral","ttl":"1h"}}],"messages":[{ "role":"user", "content":"\u0061 1.0e0" }],"max_tokens":64,"stream":true}"#
        );
    }

    #[test]
    fn what_is_not_set_is_not_sent() {
        let mut bare = request("", &[]);
        bare.tools = raw("[ ]");
        bare.thinking = None;
        bare.effort = None;
        bare.cache = None;
        assert_eq!(
            String::from_utf8(bare.body()).unwrap(),
            r#"{"model":"claude-opus-5-5","messages":[],"max_tokens":64,"stream":true}"#
        );
        bare.system = "Be brief.".into();
        assert!(!String::from_utf8(bare.body()).unwrap().contains("cache_control"));
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
            // A turn before, with another length for its reply: every byte up to the end of its messages stays.
            let mut shorter = request(&system, &messages[..messages.len() - 1]);
            shorter.max_tokens = 128_000;
            let shorter = shorter.body();
            let tail = br#"],"max_tokens":128000,"stream":true}"#;
            prop_assert!(shorter.ends_with(tail));
            prop_assert!(whole.starts_with(&shorter[..shorter.len() - tail.len()]));
        }
    }
}
