//! Canonical JSON: sorted keys, no blanks or two-space indent, LF, no floats.
//!
//! One value has one text, so that a digest of the text is a digest of the value.
//! Floats are refused: exact numbers travel as integers or as decimal strings.

use serde::Serialize;
use serde_json::Value;

/// A value that cannot be written canonically.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CanonicalError {
    #[error("{0} is a floating-point number: write exact values as integers or decimal strings")]
    Float(String),
    #[error("cannot be written as JSON: {0}")]
    Unserializable(String),
}

/// One line, no blanks: what gets hashed.
pub fn compact<T: Serialize + ?Sized>(value: &T) -> Result<String, CanonicalError> {
    write_with(value, false)
}

/// Indented and ended by a newline: what people read.
pub fn pretty<T: Serialize + ?Sized>(value: &T) -> Result<String, CanonicalError> {
    let mut text = write_with(value, true)?;
    text.push('\n');
    Ok(text)
}

fn write_with<T: Serialize + ?Sized>(value: &T, indented: bool) -> Result<String, CanonicalError> {
    let value = serde_json::to_value(value).map_err(|e| CanonicalError::Unserializable(e.to_string()))?;
    let mut out = String::new();
    write_value(&value, &mut out, indented.then_some(0))?;
    Ok(out)
}

/// `depth` is `None` for the compact form.
fn write_value(value: &Value, out: &mut String, depth: Option<usize>) -> Result<(), CanonicalError> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) if number.is_f64() => return Err(CanonicalError::Float(number.to_string())),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::String(text) => write_text(text, out)?,
        Value::Array(items) => {
            write_sequence(out, depth, ('[', ']'), items.iter(), write_value)?;
        }
        Value::Object(map) => {
            // Sorted here, whatever order the map type keeps.
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            write_sequence(out, depth, ('{', '}'), entries.into_iter(), |(key, value), out, depth| {
                write_text(key, out)?;
                out.push_str(if depth.is_some() { ": " } else { ":" });
                write_value(value, out, depth)
            })?;
        }
    }
    Ok(())
}

fn write_text(text: &str, out: &mut String) -> Result<(), CanonicalError> {
    let quoted = serde_json::to_string(text).map_err(|e| CanonicalError::Unserializable(e.to_string()))?;
    out.push_str(&quoted);
    Ok(())
}

fn write_sequence<T>(
    out: &mut String,
    depth: Option<usize>,
    (open, close): (char, char),
    items: impl ExactSizeIterator<Item = T>,
    mut write_item: impl FnMut(T, &mut String, Option<usize>) -> Result<(), CanonicalError>,
) -> Result<(), CanonicalError> {
    out.push(open);
    let empty = items.len() == 0;
    let inner = depth.map(|d| d + 1);
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(',');
        }
        new_line(out, inner);
        write_item(item, out, inner)?;
    }
    if !empty {
        new_line(out, depth);
    }
    out.push(close);
    Ok(())
}

fn new_line(out: &mut String, depth: Option<usize>) {
    if let Some(depth) = depth {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_are_sorted_at_every_depth() {
        let value = json!({"b": [{"z": 1, "a": null}], "a": "x\ny"});
        assert_eq!(compact(&value).unwrap(), r#"{"a":"x\ny","b":[{"a":null,"z":1}]}"#);
        assert_eq!(
            pretty(&value).unwrap(),
            "{\n  \"a\": \"x\\ny\",\n  \"b\": [\n    {\n      \"a\": null,\n      \"z\": 1\n    }\n  ]\n}\n"
        );
        assert_eq!(pretty(&json!({})).unwrap(), "{}\n");
    }

    #[test]
    fn floats_are_refused() {
        assert_eq!(compact(&json!({"r": 0.5})), Err(CanonicalError::Float("0.5".into())));
    }
}
