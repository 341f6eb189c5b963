//! What a program is told: the role's prompt, the message of the turn, and how to hand in its report.

use serde_json::Value;

use crate::agent::program::Task;
use crate::engine::ask;
use crate::engine::context::Context;
use crate::engine::error::EngineError;
use crate::model::digest::Digest;
use crate::model::purpose::Purpose;
use crate::model::report;

use super::declared::Program;
use super::sketch::sketch;

/// The task of the next turn of the open call.
pub(super) fn task(cx: &Context<'_>, program: &Program) -> Result<Task, EngineError> {
    let call = cx.call()?.clone();
    let system = String::from_utf8_lossy(&cx.blobs().get(&call.started.system)?).into_owned();
    let role = call.role();
    let report = how_to_report(call.purpose(), program.takes_tools());
    let report = format!("{}{report}", answered_before(cx, &call.started.call));
    let session = program.can_go_on().then(|| call.session.clone()).flatten();
    let messages: Result<Vec<String>, EngineError> = call.messages.iter().map(|m| message_text(cx, m)).collect();
    let prompt = match messages?.as_slice() {
        [] => String::new(),
        [first] => format!("{first}\n{report}"),
        // It remembers; only the latest is new.
        [.., last] if session.is_some() => format!("{last}\n{report}"),
        [first, earlier @ .., last] => {
            let said = earlier.last().map(String::as_str).unwrap_or_default();
            format!("{first}\nYOUR EARLIER ANSWER\n{said}\nNOW\n{last}\n{report}")
        }
    };
    Ok(Task {
        system,
        prompt,
        session,
        model: program.model.clone(),
        workspace: cx.workspace().to_owned(),
        read_only: !role.may_write(),
        caged: false,
        offer: None,
    })
}

/// What people answered in this call already: a program that is started again need not ask again.
fn answered_before(cx: &Context<'_>, call: &str) -> String {
    let decisions = &cx.state().operator.decisions;
    let of_call = decisions.iter().filter(|decision| decision.asked_by.as_ref().is_some_and(|by| by.call == call));
    let mut text = String::new();
    for decision in of_call.filter(|decision| decision.closed_with().is_some()) {
        let gist: String = decision.request.gist().chars().take(500).collect();
        text.push_str(&format!("ALREADY ANSWERED\n{gist}\n{}\n", ask::told(decision)));
    }
    text
}

/// The words of a stored message.
fn message_text(cx: &Context<'_>, digest: &Digest) -> Result<String, EngineError> {
    let message: Value = serde_json::from_slice(&cx.blobs().get(digest)?)
        .map_err(|e| EngineError::Internal(format!("message {}: {e}", digest.short())))?;
    Ok(words(&message["content"]))
}

/// How a program hands in its report. The fenced block is for programs that cannot reach our tools.
fn how_to_report(purpose: Purpose, takes_tools: bool) -> String {
    let Some(tool) = purpose.closing() else {
        let names: Vec<&str> = purpose.tools().iter().map(|tool| tool.name()).collect();
        return if names.is_empty() {
            "When you are done, stop.".to_owned()
        } else {
            format!("Use `{}` of the MCP server `nightloop`. When you are done, stop.", names.join("`, `"))
        };
    };
    let fields = sketch(&report::schema(tool));
    let how = if takes_tools {
        format!("Hand in your report with the tool `{tool}` of the MCP server `nightloop`. If you cannot reach it,")
    } else {
        "When you are done,".to_owned()
    };
    format!(
        "REPORT\n{how} end your answer with one fenced json block of this form (fields with ? may be left out): {fields}"
    )
}

/// The text of a message's content: a string, or its text and result blocks.
fn words(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| match block["type"].as_str() {
                Some("text") => block["text"].as_str().map(str::to_owned),
                Some("tool_result") => {
                    block["content"].as_str().map(|text| format!("Your report was answered: {text}"))
                }
                _ => None,
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_of_messages() {
        assert_eq!(words(&json!("plain")), "plain");
        let results = json!([
            {"type": "tool_result", "tool_use_id": "r", "content": "the report does not fit", "is_error": true},
            {"type": "text", "text": "OPERATOR\nbe quick"},
            {"type": "tool_use", "id": "x", "name": "y", "input": {}},
        ]);
        assert_eq!(words(&results), "Your report was answered: the report does not fit\nOPERATOR\nbe quick");
        assert_eq!(words(&json!(null)), "");
    }

    /// Beside the role's prompt and the capsule a program gets at most this much text from us.
    #[test]
    fn what_we_add_stays_short() {
        for purpose in Purpose::ALL {
            for takes_tools in [true, false] {
                let added = how_to_report(purpose, takes_tools);
                assert!(added.len() <= 2048, "{purpose}: {} bytes", added.len());
                let named = purpose.closing().is_none_or(|tool| added.contains(tool.name()));
                assert!(named || !takes_tools, "{purpose}: {added}");
            }
        }
    }
}
