//! The tool through which an agent asks a person: its input, and what it is told afterwards.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::machine::operator::Decision;
use crate::model::decision::{
    ASK_TOOL, Answer, DEFAULT_VERIFY_SECONDS, MAX_PROPOSAL, MAX_TEXT, Request, Severity, VisionIssue,
};
use crate::model::digest::Digest;
use crate::tool::permission::Ruling;
use crate::workspace::document;

use super::confine::protected;
use super::context::Context;

const MAX_CHOICES: usize = 9;
const MAX_VERIFY_SECONDS: u64 = 3_600;
/// A verification command: words, and bytes in all.
const MAX_VERIFY_WORDS: usize = 64;
const MAX_VERIFY_BYTES: usize = 8 * 1024;
const MAX_PATH: usize = 1_024;
const MAX_ISSUE: usize = 2_000;

/// What an agent may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// Something only a person can do; `verify` proves that it is done.
    Action,
    Question,
    /// A new text of a document such as PRD.md, given in `content`.
    Document,
    Vision,
    Escalation,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Issue {
    /// HARD must be revised, SOFT may be acknowledged.
    severity: String,
    text: String,
    #[serde(default)]
    alternatives: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    kind: Kind,
    /// The question, the instructions, the problem, or why the document should change.
    text: String,
    #[serde(default)]
    choices: Vec<String>,
    /// A command whose exit 0 proves the action.
    verify: Option<Vec<String>>,
    timeout_seconds: Option<u64>,
    path: Option<String>,
    content: Option<String>,
    #[serde(default)]
    issues: Vec<Issue>,
}

/// The tool as a model sees it.
pub fn specification() -> Value {
    let mut schema = schemars::schema_for!(Input).to_value();
    if let Some(object) = schema.as_object_mut() {
        object.remove("$schema");
        object.remove("title");
    }
    json!({
        "name": ASK_TOOL,
        "description": "Ask the operator and wait for the answer. Only for what nobody else can do or decide.",
        "input_schema": schema,
    })
}

/// The request an input means, with its reason. The error is for the agent.
pub(super) fn request_of(cx: &Context<'_>, input: &Value) -> Result<(Request, String), String> {
    let input: Input = serde_json::from_value(input.clone()).map_err(|e| e.to_string())?;
    if input.text.trim().is_empty() || input.text.len() > MAX_TEXT {
        return Err(format!("`text` has 1 to {MAX_TEXT} bytes"));
    }
    if input.choices.len() > MAX_CHOICES || input.choices.iter().any(|choice| choice.len() > 200) {
        return Err(format!("at most {MAX_CHOICES} choices of 200 bytes"));
    }
    let why = match input.kind {
        Kind::Document | Kind::Vision => input.text.clone(),
        Kind::Action | Kind::Question | Kind::Escalation => "an agent asks".to_owned(),
    };
    let request = match input.kind {
        Kind::Action => {
            if let Some(argv) = &input.verify {
                check_verification(cx, argv)?;
            }
            let seconds = input.timeout_seconds.unwrap_or(DEFAULT_VERIFY_SECONDS);
            Request::HumanAction {
                instructions: input.text,
                verify: input.verify,
                timeout_seconds: seconds.clamp(1, MAX_VERIFY_SECONDS),
            }
        }
        Kind::Question => Request::Question { question: input.text, choices: input.choices },
        Kind::Document => refinement(cx, input.path, input.content)?,
        Kind::Vision => Request::Vision { issues: vision_issues(input.issues)? },
        Kind::Escalation => Request::Escalation { problem: input.text, options: input.choices },
    };
    Ok((request, why))
}

/// The rules hold for what is run on an agent's word, too.
fn check_verification(cx: &Context<'_>, argv: &[String]) -> Result<(), String> {
    let bytes: usize = argv.iter().map(String::len).sum();
    if argv.is_empty() || argv.len() > MAX_VERIFY_WORDS || bytes > MAX_VERIFY_BYTES {
        return Err(format!("`verify` is a command of 1 to {MAX_VERIFY_WORDS} words, {MAX_VERIFY_BYTES} bytes in all"));
    }
    match cx.rules.decide("bash", &json!({"command": argv.join(" ")})) {
        Ruling::Denied { rule } => Err(format!("`verify` is not permitted: deny {rule}")),
        Ruling::Allowed { .. } | Ruling::Ask { .. } => Ok(()),
    }
}

fn refinement(cx: &Context<'_>, path: Option<String>, content: Option<String>) -> Result<Request, String> {
    let path = path.ok_or("`path` is missing")?;
    let content = content.ok_or("`content` is missing: give the whole new text")?;
    if path.len() > MAX_PATH {
        return Err(format!("`path` has more than {MAX_PATH} bytes"));
    }
    if content.len() > MAX_PROPOSAL {
        return Err(format!("`content` has more than {MAX_PROPOSAL} bytes"));
    }
    let workspace = cx.workspace();
    document::check(workspace, &path, &protected())?;
    let before = document::read(workspace, &path, MAX_PROPOSAL)?.unwrap_or_default();
    if before == content.as_bytes() {
        return Err(format!("{path} already reads like this"));
    }
    let keep = |bytes: &[u8]| -> Result<Digest, String> { cx.blobs().put(bytes).map_err(|e| e.to_string()) };
    Ok(Request::Refinement { path, before: keep(&before)?, after: keep(content.as_bytes())? })
}

fn vision_issues(issues: Vec<Issue>) -> Result<Vec<VisionIssue>, String> {
    if issues.is_empty() || issues.len() > 20 {
        return Err("`issues` has 1 to 20 entries".to_owned());
    }
    let issues = issues.into_iter().map(|issue| {
        let long = |text: &String| text.len() > MAX_ISSUE;
        if long(&issue.text) || issue.alternatives.len() > MAX_CHOICES || issue.alternatives.iter().any(long) {
            return Err(format!("an issue and each of at most {MAX_CHOICES} alternatives has up to {MAX_ISSUE} bytes"));
        }
        let severity = match issue.severity.to_uppercase().as_str() {
            "HARD" => Severity::Hard,
            "SOFT" => Severity::Soft,
            other => return Err(format!("severity `{other}`: use HARD or SOFT")),
        };
        Ok(VisionIssue { severity, text: issue.text, alternatives: issue.alternatives })
    });
    issues.collect()
}

/// What the agent is told when its question is answered.
pub(super) fn told(decision: &Decision) -> String {
    let Some(answered) = &decision.answer else { return "Nobody answered.".to_owned() };
    let mut text = match (&answered.answer, &decision.request) {
        (Answer::Done, _) if decision.last_check.is_some() => "Done, and verified.".to_owned(),
        (Answer::Done | Answer::Override, _) => "Done, says the operator.".to_owned(),
        (Answer::DoneBy { command }, _) => format!("Done, and verified by: {}", command.join(" ")),
        (Answer::Text(text), _) => format!("The operator answers: {text}"),
        (Answer::Approve { result }, Request::Refinement { path, after, .. }) if result == after => {
            format!("Approved: {path} now has your text.")
        }
        (Answer::Approve { .. }, Request::Refinement { path, .. }) => {
            format!("Approved with changes: read {path}, it differs from your proposal.")
        }
        (Answer::Reject, _) => "Rejected.".to_owned(),
        (Answer::Revise(text), _) => format!("The operator revises: {text}"),
        (Answer::Acknowledge, _) => "Acknowledged: the operator knows and goes on.".to_owned(),
        (answer, _) => format!("The operator answers: {}", answer.name()),
    };
    if let Some(note) = &answered.note {
        text.push_str(&format!(" Note: {note}"));
    }
    text
}
