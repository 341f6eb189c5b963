//! The shapes that come from the server, read with patience.
//!
//! Role: one chunk of a stream, or one whole answer, as far as we look at it.
//! Not its role: what the pieces add up to ([`super::collect`]).
//!
//! Invariant: a field of an unexpected type is an absent one wherever that is harmless; arguments keep their bytes.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// A chunk, or a whole answer: they differ only in `delta` and `message`.
#[derive(Deserialize)]
pub struct Chunk<'a> {
    #[serde(borrow, default)]
    pub choices: Option<Vec<Choice<'a>>>,
    #[serde(default)]
    pub usage: Option<Value>,
    /// What llama.cpp counts, also where `usage` is missing.
    #[serde(default)]
    pub timings: Option<Value>,
    #[serde(default)]
    pub error: Option<Value>,
    #[serde(default)]
    pub object: Option<Value>,
}

#[derive(Deserialize)]
pub struct Choice<'a> {
    #[serde(default)]
    index: Option<Value>,
    #[serde(borrow, default)]
    delta: Option<Piece<'a>>,
    #[serde(borrow, default)]
    message: Option<Piece<'a>>,
    #[serde(default)]
    finish_reason: Option<Value>,
}

impl<'a> Choice<'a> {
    /// We ask for one choice; what belongs to another is not ours.
    pub fn is_ours(&self) -> bool {
        self.index.as_ref().and_then(Value::as_u64).unwrap_or(0) == 0
    }

    pub fn piece(&self) -> Option<&Piece<'a>> {
        self.delta.as_ref().or(self.message.as_ref())
    }

    /// Some servers write an empty reason into every chunk.
    pub fn finish_reason(&self) -> Option<&str> {
        word(&self.finish_reason)
    }
}

#[derive(Deserialize)]
pub struct Piece<'a> {
    #[serde(default)]
    content: Option<Value>,
    #[serde(default)]
    reasoning: Option<Value>,
    #[serde(default)]
    reasoning_content: Option<Value>,
    #[serde(default)]
    refusal: Option<Value>,
    #[serde(borrow, default)]
    pub tool_calls: Option<Vec<CallPiece<'a>>>,
    /// The form before `tool_calls`.
    #[serde(borrow, default)]
    pub function_call: Option<FunctionPiece<'a>>,
}

impl Piece<'_> {
    pub fn text(&self) -> String {
        parts(&self.content, "text")
    }

    /// Servers call it by two names, and while they change from one to the other they send both; or it is a part
    /// of the content.
    pub fn thinking(&self) -> String {
        match word(&self.reasoning_content).or(word(&self.reasoning)) {
            Some(words) => words.to_owned(),
            None => parts(&self.content, "thinking"),
        }
    }

    pub fn refusal(&self) -> &str {
        word(&self.refusal).unwrap_or_default()
    }
}

#[derive(Deserialize)]
pub struct CallPiece<'a> {
    #[serde(default)]
    index: Option<Value>,
    #[serde(default)]
    id: Option<Value>,
    #[serde(borrow, default)]
    pub function: Option<FunctionPiece<'a>>,
}

impl CallPiece<'_> {
    pub fn index(&self) -> Option<u64> {
        self.index.as_ref().and_then(Value::as_u64)
    }

    pub fn id(&self) -> Option<String> {
        match &self.id {
            Some(Value::String(id)) if !id.is_empty() => Some(id.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        }
    }
}

#[derive(Deserialize)]
pub struct FunctionPiece<'a> {
    #[serde(default)]
    name: Option<Value>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

impl FunctionPiece<'_> {
    pub fn name(&self) -> Option<&str> {
        word(&self.name)
    }

    /// A string, as it should be; or the object itself, as its bytes.
    pub fn arguments(&self) -> String {
        let Some(raw) = self.arguments else { return String::new() };
        serde_json::from_str::<String>(raw.get()).unwrap_or_else(|_| raw.get().to_owned())
    }
}

fn word(value: &Option<Value>) -> Option<&str> {
    value.as_ref().and_then(Value::as_str).filter(|word| !word.is_empty())
}

/// The words of one kind in a content that is a string or a list of parts.
fn parts(content: &Option<Value>, kind: &str) -> String {
    match content {
        Some(Value::String(words)) if kind == "text" => words.clone(),
        Some(Value::Array(list)) => {
            let mut out = String::new();
            for part in list.iter().filter(|part| part["type"] == kind) {
                match &part[kind] {
                    Value::String(words) => out.push_str(words),
                    Value::Array(inner) => {
                        inner.iter().filter_map(|p| p["text"].as_str()).for_each(|w| out.push_str(w))
                    }
                    _ => {}
                }
            }
            out
        }
        _ => String::new(),
    }
}
