//! Other words for the same thing, as agents use them: the names of the schema win, and these become them.

use serde_json::Value;

use crate::model::purpose::Tool;

/// The input with the words of its schema.
pub fn resolved(tool: Tool, input: &Value) -> Result<Value, String> {
    let mut input = input.clone();
    match tool {
        Tool::ManageTask => manage_task(&mut input)?,
        Tool::ReportVisionValidation => severities(&mut input),
        Tool::RequestHumanAction => {
            let command = input.get("verification_command").or_else(|| input.get("verification"));
            if command.is_some_and(Value::is_string) {
                return Err("`verification_command` is a list of program and arguments; for a shell write \
                            [\"sh\", \"-c\", \"...\"]"
                    .to_owned());
            }
        }
        // The other tools have no second words, or have them as serde aliases.
        _ => {}
    }
    Ok(input)
}

/// `update` is `modify`; `block` is `modify` with a reason, `unblock` with the status pending.
fn manage_task(input: &mut Value) -> Result<(), String> {
    let Some(wish) = input.as_object_mut() else { return Ok(()) };
    let word = wish.get("action").and_then(Value::as_str).unwrap_or_default().to_owned();
    if word == "block" {
        let reason = wish.remove("reason");
        if let (None | Some(Value::Null), Some(reason)) = (wish.get("blocked_reason"), reason) {
            wish.insert("blocked_reason".to_owned(), reason);
        }
        if wish.get("blocked_reason").is_none_or(Value::is_null) {
            return Err("to block a task, modify it with a `blocked_reason`".to_owned());
        }
    }
    if word == "unblock" && wish.get("status").is_none_or(Value::is_null) {
        wish.insert("status".to_owned(), "pending".into());
    }
    if matches!(word.as_str(), "block" | "unblock" | "update") {
        wish.insert("action".to_owned(), "modify".into());
    }
    Ok(())
}

/// `hard` is HARD.
fn severities(input: &mut Value) {
    let issues = input.get_mut("issues").and_then(Value::as_array_mut);
    for issue in issues.into_iter().flatten() {
        if let Some(Value::String(word)) = issue.get_mut("severity") {
            word.make_ascii_uppercase();
        }
    }
}
