//! The script: YAML in, checked steps out.
//!
//! Role: the strict format, its errors with line and column, and which step fits a request.
//! Not its role: serving it.
//!
//! Invariants: an unknown key is an error; a fault names exactly one kind; a call has exactly one
//! form of input; no two steps answer the same calls; of the steps that fit, the most specific one answers.

use super::select::Position;
use crate::model::diagnose;
use crate::model::purpose::Purpose;
use serde::Deserialize;
use std::collections::HashMap;

/// Largest script file.
pub const MAX_SCRIPT_BYTES: usize = 4 * 1024 * 1024;

/// A whole script.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Version of the format: 1.
    #[serde(deserialize_with = "version_one")]
    pub rehearsal: u32,
    #[serde(default = "default_model")]
    pub model: String,
    pub steps: Vec<ScriptStep>,
}

/// The turns of one role or of one purpose, in one iteration or in all that no other step names.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptStep {
    /// Needed where no purpose is given.
    #[serde(default)]
    pub role: Option<String>,
    /// What the call is for, by the name of its prompt.
    #[serde(default, deserialize_with = "known_purpose")]
    pub purpose: Option<Purpose>,
    /// The task or verification it is about.
    #[serde(default)]
    pub subject: Option<String>,
    /// From 1: which call for this purpose and its subject.
    #[serde(default)]
    pub nth: Option<u64>,
    #[serde(default)]
    pub iteration: Option<u64>,
    /// From 0: which conversation of the call; a handover begins the next one. In each the turns are counted anew.
    #[serde(default)]
    pub part: Option<u64>,
    pub turns: Vec<Turn>,
}

/// One reply of the model, and what goes wrong before it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Turn {
    pub thinking: Option<String>,
    pub text: Option<String>,
    /// Whole content blocks, sent as they are: what a server's own tools leave in a reply.
    pub blocks: Vec<serde_json::Value>,
    pub calls: Vec<Call>,
    /// Overrides the stop reason; any text.
    pub stop: Option<String>,
    pub delay_ms: u64,
    pub chunk_delay_ms: u64,
    pub usage: TurnUsage,
    pub faults: Vec<Fault>,
}

/// Token counts; what is absent is derived from sizes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TurnUsage {
    pub input: Option<u64>,
    pub output: Option<u64>,
    pub cache_read: u64,
    pub cache_write: u64,
    pub searches: u64,
}

/// One tool call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "CallText")]
pub struct Call {
    pub tool: String,
    pub input: CallInput,
}

/// What is streamed as the call's input.
#[derive(Debug, Clone, PartialEq)]
pub enum CallInput {
    Json(serde_json::Value),
    /// Streamed as it is, JSON or not.
    Raw(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallText {
    tool: String,
    input: Option<serde_json::Value>,
    raw_input: Option<String>,
}

impl TryFrom<CallText> for Call {
    type Error = String;
    fn try_from(given: CallText) -> Result<Self, String> {
        let input = match (given.input, given.raw_input) {
            (Some(_), Some(_)) => {
                return Err("a call has either `input` or `raw_input`, not both".to_owned());
            }
            (None, Some(raw)) => CallInput::Raw(raw),
            (Some(json), None) => CallInput::Json(json),
            (None, None) => CallInput::Json(serde_json::json!({})),
        };
        if given.tool.is_empty() {
            return Err("`tool` is empty".to_owned());
        }
        Ok(Call { tool: given.tool, input })
    }
}

/// Something that goes wrong once.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "FaultText")]
pub enum Fault {
    Http {
        status: u16,
        retry_after: Option<u64>,
        kind: Option<String>,
        code: Option<String>,
        message: Option<String>,
    },
    CutAfterBytes(u64),
    /// The connection closes before any byte.
    Reset,
    StreamError {
        kind: String,
        message: Option<String>,
    },
    Stall {
        ms: u64,
    },
    Html {
        status: u16,
    },
    MalformedSse,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FaultText {
    http: Option<u16>,
    retry_after: Option<u64>,
    kind: Option<String>,
    code: Option<String>,
    message: Option<String>,
    cut_after_bytes: Option<u64>,
    cut: Option<Cut>,
    stream_error: Option<String>,
    stall_ms: Option<u64>,
    html: Option<u16>,
    malformed_sse: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Cut {
    Reset,
}

impl TryFrom<FaultText> for Fault {
    type Error = String;
    fn try_from(given: FaultText) -> Result<Self, String> {
        let only_http = given.retry_after.is_some() || given.kind.is_some() || given.code.is_some();
        let message_fits = given.http.is_some() || given.stream_error.is_some();
        let has_message = given.message.is_some();
        let mut named = Vec::new();
        if let Some(status) = given.http {
            named.push(Fault::Http {
                status: error_status("http", status)?,
                retry_after: given.retry_after,
                kind: given.kind,
                code: given.code,
                message: given.message.clone(),
            });
        }
        if let Some(bytes) = given.cut_after_bytes {
            named.push(Fault::CutAfterBytes(bytes));
        }
        if let Some(Cut::Reset) = given.cut {
            named.push(Fault::Reset);
        }
        if let Some(kind) = given.stream_error {
            named.push(Fault::StreamError { kind, message: given.message });
        }
        if let Some(ms) = given.stall_ms {
            named.push(Fault::Stall { ms });
        }
        if let Some(status) = given.html {
            named.push(Fault::Html { status: error_status("html", status)? });
        }
        match given.malformed_sse {
            Some(true) => named.push(Fault::MalformedSse),
            Some(false) => {
                return Err("`malformed_sse: false` is not a fault; leave it out".to_owned());
            }
            None => {}
        }
        if only_http && given.http.is_none() {
            return Err("`retry_after`, `kind` and `code` belong to an `http` fault".to_owned());
        }
        if has_message && !message_fits {
            return Err("`message` belongs to an `http` or `stream_error` fault".to_owned());
        }
        match (named.pop(), named.is_empty()) {
            (Some(fault), true) => Ok(fault),
            (_, false) => Err("a fault names one kind only; make it two list entries".to_owned()),
            (None, true) => {
                Err("a fault names one of: http, cut_after_bytes, cut, stream_error, stall_ms, html, malformed_sse"
                    .to_owned())
            }
        }
    }
}

fn error_status(key: &str, status: u16) -> Result<u16, String> {
    match status {
        400..=599 => Ok(status),
        _ => Err(format!("`{key}` must be an error status from 400 to 599, not {status}")),
    }
}

fn known_purpose<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Purpose>, D::Error> {
    let word = String::deserialize(deserializer)?;
    let known = Purpose::of_name(&word);
    known.map(Some).ok_or_else(|| {
        let near = diagnose::nearest(&word, Purpose::ALL.map(Purpose::name));
        let hint = near.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        serde::de::Error::custom(format!("`{word}` is not a purpose{hint}"))
    })
}

fn version_one<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        1 => Ok(1),
        other => Err(serde::de::Error::custom(format!("this version reads `rehearsal: 1`, not {other}"))),
    }
}

fn default_model() -> String {
    "rehearsal-1".to_owned()
}

/// Why a script cannot be used, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}{}: {message}", place(*.line, *.column))]
pub struct ScriptError {
    /// The file name, as the caller gave it.
    pub name: String,
    /// From 1. Absent when the fault is not at one place.
    pub line: Option<usize>,
    /// From 1.
    pub column: Option<usize>,
    pub message: String,
}

fn place(line: Option<usize>, column: Option<usize>) -> String {
    match (line, column) {
        (Some(line), Some(column)) => format!(":{line}:{column}"),
        (Some(line), None) => format!(":{line}"),
        (None, _) => String::new(),
    }
}

impl Script {
    /// Reads a script. `name` is for errors only.
    pub fn parse(yaml: &str, name: &str) -> Result<Script, ScriptError> {
        let whole = |message: String| ScriptError { name: name.to_owned(), line: None, column: None, message };
        if yaml.len() > MAX_SCRIPT_BYTES {
            return Err(whole(format!("the script has {} bytes, the limit is {MAX_SCRIPT_BYTES}", yaml.len())));
        }
        let script: Script = serde_yaml::from_str(yaml).map_err(|e| ScriptError {
            name: name.to_owned(),
            line: e.location().map(|at| at.line()),
            column: e.location().map(|at| at.column()),
            message: e.to_string(),
        })?;
        script.check().map_err(whole)?;
        Ok(script)
    }

    fn check(&self) -> Result<(), String> {
        let mut seen = HashMap::new();
        for (n, step) in self.steps.iter().enumerate() {
            let number = n + 1;
            step.check().map_err(|why| format!("step {number} {why}"))?;
            if step.turns.is_empty() {
                return Err(format!("step {number} ({}) has no turns", step.whom()));
            }
            let answers = (&step.role, step.purpose, &step.subject, step.nth, step.iteration, step.part);
            if let Some(first) = seen.insert(answers, number) {
                let which = step.iteration.map_or("any iteration".to_owned(), |i| format!("iteration {i}"));
                return Err(format!("step {number} repeats step {first}: {}, {which}", step.whom()));
            }
        }
        Ok(())
    }

    /// The step for a request: of those that fit, the most specific one.
    pub fn step(&self, at: &Position) -> Option<&ScriptStep> {
        self.steps.iter().filter(|step| step.fits(at)).max_by_key(|step| step.rank())
    }
}

impl ScriptStep {
    fn check(&self) -> Result<(), &'static str> {
        match (self.role.as_deref(), self.purpose) {
            (Some(""), _) => return Err("has an empty role"),
            (None, None) => return Err("names neither a role nor a purpose"),
            (Some(_), _) | (None, Some(_)) => {}
        }
        if self.purpose.is_none() && (self.subject.is_some() || self.nth.is_some()) {
            return Err("has a `subject` or `nth`, which go with a `purpose`");
        }
        if self.nth == Some(0) {
            return Err("has `nth: 0`: calls are counted from 1");
        }
        Ok(())
    }

    fn fits(&self, at: &Position) -> bool {
        let call = at.call.as_ref();
        self.role.as_ref().is_none_or(|role| *role == at.role)
            && self.purpose.is_none_or(|purpose| call.is_some_and(|call| call.purpose == purpose))
            && (self.subject.is_none() || call.is_some_and(|call| call.subject == self.subject))
            && self.nth.is_none_or(|nth| call.is_some_and(|call| call.nth == nth))
            && (self.iteration.is_none() || self.iteration == at.iteration)
            && self.part.is_none_or(|part| part == at.part)
    }

    /// More of this is more specific; two steps that fit one request never rank alike, or they would be equal.
    fn rank(&self) -> [bool; 6] {
        [
            self.purpose.is_some(),
            self.subject.is_some(),
            self.nth.is_some(),
            self.iteration.is_some(),
            self.part.is_some(),
            self.role.is_some(),
        ]
    }

    /// For messages.
    fn whom(&self) -> String {
        let named = [
            self.role.as_ref().map(|role| format!("role {role}")),
            self.purpose.map(|purpose| format!("purpose {purpose}")),
            self.subject.as_ref().map(|subject| format!("subject {subject}")),
            self.nth.map(|nth| format!("nth {nth}")),
        ];
        named.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests;
