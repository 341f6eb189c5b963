//! The typed inputs of the tools, the schemas made from them, and the words for a wrong one.
//!
//! One struct per tool is the only place where its fields are named: schema, parsing and error
//! text are all derived from it. Runs nothing. Invariant: an input that parses has no unknown
//! field, and the schema says so too.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Bash {
    /// The command line, run in the workspace folder.
    pub command: String,
    /// Seconds after which the command is ended.
    pub timeout_seconds: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadFile {
    /// Path in the workspace.
    pub path: String,
    /// First line to show, counted from 1.
    pub offset: Option<u64>,
    /// How many lines to show.
    pub limit: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadOutput {
    pub output: u32,
    /// First byte to show.
    pub offset: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteFile {
    /// Path in the workspace; missing folders are created.
    pub path: String,
    /// The whole new content.
    pub content: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EditFile {
    /// Path in the workspace.
    pub path: String,
    /// The exact text to replace, with its white space; must occur once unless replace_all.
    pub old_string: String,
    /// The text to put in its place.
    pub new_string: String,
    /// Replace every occurrence.
    pub replace_all: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GlobSearch {
    /// Glob such as src/**/*.rs; without a slash it matches file names at any depth.
    pub pattern: String,
    /// Folder to search in; the workspace if left out.
    pub path: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GrepSearch {
    /// Regular expression, matched line by line.
    pub pattern: String,
    /// File or folder to search in; the workspace if left out.
    pub path: Option<String>,
    /// Only files whose path matches this glob.
    pub glob: Option<String>,
    pub case_insensitive: Option<bool>,
    /// Lines to show around each match, 20 at most.
    pub context: Option<u64>,
}

/// The schema of an input, without what a model has no use for.
pub(super) fn schema<T: JsonSchema>() -> Value {
    let mut schema = schemars::schema_for!(T).to_value();
    if let Value::Object(root) = &mut schema {
        root.remove("$schema");
        root.remove("title");
        // The struct's own doc comment, should one be added, is not for the model.
        root.remove("description");
        if let Some(Value::Object(fields)) = root.get_mut("properties") {
            fields.values_mut().for_each(plain_field);
        }
    }
    schema
}

/// An optional field may be left out; that it may also be null is noise.
fn plain_field(field: &mut Value) {
    let Value::Object(field) = field else { return };
    field.remove("format");
    field.remove("default");
    if let Some(Value::Array(kinds)) = field.get("type")
        && let Some(kind) = kinds.iter().find(|kind| *kind != "null").cloned()
    {
        field.insert("type".to_owned(), kind);
    }
}

/// Parses an input, or says what is wrong and what was expected.
pub(super) fn parse<T: DeserializeOwned + JsonSchema>(tool: &str, input: &Value) -> Result<T, String> {
    let wrong = match input {
        Value::Object(_) => match T::deserialize(input) {
            Ok(parsed) => return Ok(parsed),
            Err(error) => bounded(&error.to_string()),
        },
        Value::Null => "the input is null, not an object".to_owned(),
        Value::Bool(_) => "the input is a boolean, not an object".to_owned(),
        Value::Number(_) => "the input is a number, not an object".to_owned(),
        Value::String(_) => "the input is a string, not an object".to_owned(),
        Value::Array(_) => "the input is an array, not an object".to_owned(),
    };
    Err(format!("Invalid input for {tool}: {wrong}. Expected {}", shape(&schema::<T>())))
}

/// A schema as one line: `{"path": string, "limit"?: integer}`.
fn shape(schema: &Value) -> String {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let fields = schema["properties"].as_object().into_iter().flatten().map(|(name, field)| {
        let mark = if required.contains(&name.as_str()) { "" } else { "?" };
        format!("\"{name}\"{mark}: {}", field["type"].as_str().unwrap_or("any"))
    });
    format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
}

/// Text that came from a model, made safe to show: no control characters, bounded.
pub(super) fn bounded(text: &str) -> String {
    const MAX: usize = 300;
    let mut safe: String = text.chars().take(MAX).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(MAX).is_some() {
        safe.push('…');
    }
    safe
}
