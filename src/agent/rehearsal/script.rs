//! The script: YAML in, checked steps out.
//!
//! Role: the strict format, its errors with line and column, and which step fits a request.
//! Not its role: serving it.
//!
//! Invariants: an unknown key is an error; a fault names exactly one kind; a call has exactly one
//! form of input; no two steps answer the same role and iteration.

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
    pub steps: Vec<Step>,
}

/// The turns of one role, in one iteration or in all that no other step names.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub role: String,
    #[serde(default)]
    pub iteration: Option<u64>,
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
                return Err("`malformed_sse: false` is no fault; leave it out".to_owned());
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
        let mut seen: HashMap<(&str, Option<u64>), usize> = HashMap::new();
        for (n, step) in self.steps.iter().enumerate() {
            let number = n + 1;
            if step.role.is_empty() {
                return Err(format!("step {number} has an empty role"));
            }
            if step.turns.is_empty() {
                return Err(format!("step {number} (role {}) has no turns", step.role));
            }
            if let Some(first) = seen.insert((&step.role, step.iteration), number) {
                let which = step.iteration.map_or("any iteration".to_owned(), |i| format!("iteration {i}"));
                return Err(format!("step {number} repeats step {first}: role {}, {which}", step.role));
            }
        }
        Ok(())
    }

    /// The step for a request: the one that names the iteration, else the one that names none.
    pub fn step(&self, role: &str, iteration: Option<u64>) -> Option<&Step> {
        let of_role = || self.steps.iter().filter(|step| step.role == role);
        of_role()
            .find(|step| step.iteration.is_some() && step.iteration == iteration)
            .or_else(|| of_role().find(|step| step.iteration.is_none()))
    }
}

#[cfg(test)]
mod tests;
