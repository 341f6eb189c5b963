//! A JSON schema in few words: every field with its kind, for a prompt that must stay short.
//!
//! Not a validator. Fields that may be left out end in `?`.

use serde_json::Value;

/// Schemas here are our own and shallow; a reference that turns in a circle ends at this depth.
const MAX_DEPTH: usize = 8;

/// `{"plan":[text],"sub_goal?":{"text":text,"check":[text]}}`
pub fn sketch(schema: &Value) -> String {
    let mut out = String::new();
    write(schema, schema, 0, &mut out);
    out
}

fn write(root: &Value, schema: &Value, depth: usize, out: &mut String) {
    if depth > MAX_DEPTH {
        out.push('…');
        return;
    }
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
        return write(root, &root["$defs"][name], depth + 1, out);
    }
    if let Some(choices) = schema["anyOf"].as_array().or_else(|| schema["oneOf"].as_array()) {
        let known = choices.iter().filter(|choice| choice["type"] != "null");
        for (number, choice) in known.enumerate() {
            if number > 0 {
                out.push('|');
            }
            write(root, choice, depth + 1, out);
        }
        return;
    }
    if let Some(values) = schema["enum"].as_array() {
        let words: Vec<String> = values.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect();
        out.push_str(&format!("\"{}\"", words.join("|")));
        return;
    }
    if let Some(value) = schema["const"].as_str() {
        out.push_str(&format!("\"{value}\""));
        return;
    }
    match kind(schema) {
        "object" => object(root, schema, depth, out),
        "array" => {
            out.push('[');
            write(root, &schema["items"], depth + 1, out);
            out.push(']');
        }
        "boolean" => out.push_str("true|false"),
        "integer" | "number" => out.push_str("number"),
        _ => out.push_str("text"),
    }
}

fn object(root: &Value, schema: &Value, depth: usize, out: &mut String) {
    let required = |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|n| n == name));
    out.push('{');
    for (number, (name, field)) in schema["properties"].as_object().into_iter().flatten().enumerate() {
        if number > 0 {
            out.push(',');
        }
        let mark = if required(name) { "" } else { "?" };
        out.push_str(&format!("\"{name}{mark}\":"));
        write(root, field, depth + 1, out);
    }
    out.push('}');
}

/// The type; of several the first that is not null.
fn kind(schema: &Value) -> &str {
    match &schema["type"] {
        Value::String(kind) => kind,
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or(""),
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::purpose::Tool;
    use crate::model::report;

    #[test]
    fn every_report_in_few_words() {
        let of = |tool| sketch(&report::schema(tool));
        assert_eq!(
            of(Tool::SubmitSolverReport),
            r#"{"intent":text,"actions":[text],"files_touched?":[text],"expected_effect?":text,"risk_notes?":[text]}"#
        );
        let skeptic = of(Tool::SubmitSkepticReport);
        for part in [r#""status":"PASS|FAIL|NEED_INFO|BLOCKED""#, r#""met":true|false"#, r#""artifact?":text"#] {
            assert!(skeptic.contains(part), "{skeptic}");
        }
        assert!(
            of(Tool::SubmitScoutReport).contains(r#""sub_goal?":{"text":text,"check":[text]}"#),
            "{}",
            of(Tool::SubmitScoutReport)
        );
    }

    #[test]
    fn a_circle_ends() {
        let schema = serde_json::json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}});
        assert_eq!(sketch(&schema), "…");
    }
}
