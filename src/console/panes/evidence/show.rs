//! A file of the evidence as lines to read: verdicts and reports as outlines, JSON with colours, the rest as
//! it is.
//!
//! Not here: reading files. Invariants: everything is made harmless; nothing of a document is left out but
//! its braces, nulls inside of lists and the tails of digests; what is cut is marked as cut.

use std::sync::Arc;

use serde_json::Value;

use crate::console::diff::Diff;
use crate::console::document::{DocLine, Document, Sign};
use crate::console::markdown;
use crate::console::prose::{self, Break};
use crate::console::syntax::{self, Lang};
use crate::console::theme::Role;

/// More of a file is not shown.
const MOST_BYTES: usize = 4 << 20;
/// Deeper documents are shown as plain JSON.
const DEEPEST: usize = 12;

/// These are read by people: without braces, verdicts as marks.
const OUTLINED: [&str; 7] = [
    "certificate.json",
    "review.json",
    "gate.json",
    "glow.json",
    "cnf_capsule.json",
    "halting_report.json",
    "exit.json",
];
/// A field that says whether something holds.
const VERDICTS: [&str; 6] = ["ok", "met", "passed", "holds", "held", "present"];
/// A field that names what a thing is.
const NAMES: [&str; 8] = ["question", "id", "name", "check", "metric", "path", "file_path", "iteration"];

/// What an operator asks for first.
const FIRST: [&str; 9] =
    ["type", "status", "stop_reason", "detail", "why", "residual", "forbidden_state", "goal", "goal_statement"];
/// Hex digits of a digest that are shown beside its path.
const SHORT: usize = 8;

/// What is read.
pub enum Content {
    Text(Box<Document>),
    Patch(Box<Diff>),
}

pub fn content(path: &str, bytes: &Arc<[u8]>) -> Content {
    if path.ends_with(".patch") || path.ends_with(".diff") {
        return Content::Patch(Box::new(Diff::new(Arc::clone(bytes))));
    }
    let kept = bytes.get(..bytes.len().min(MOST_BYTES)).unwrap_or_default();
    let text = String::from_utf8_lossy(kept);
    let name = path.rsplit('/').next().unwrap_or(path);
    let (mut lines, how) = if name.ends_with(".json") {
        json(name, &text)
    } else if name.ends_with(".md") {
        (markdown::parse(&text).into_iter().map(|marked| marked.line).collect(), Break::Words)
    } else {
        (prose::lines(&text).map(|line| DocLine::new(line, Role::Text)).collect(), Break::Anywhere)
    };
    if bytes.len() > MOST_BYTES {
        let words = format!("[{} more bytes are in the file]", bytes.len() - MOST_BYTES);
        lines.push(DocLine::new(words, Role::Warning));
    }
    Content::Text(Box::new(Document::new(lines, how)))
}

fn json(name: &str, text: &str) -> (Vec<DocLine>, Break) {
    let value: Option<Value> = serde_json::from_str(text).ok();
    if let Some(value) = value.as_ref().filter(|_| OUTLINED.contains(&name)) {
        let mut lines = Vec::new();
        outline(&mut lines, value, 0, 0);
        return (lines, Break::Words);
    }
    let pretty = match value {
        // Written for machines, on one line.
        Some(value) if text.trim_end().lines().count() <= 1 => serde_json::to_string_pretty(&value).ok(),
        _ => None,
    };
    let text = pretty.as_deref().unwrap_or(text);
    (prose::lines(text).map(|line| coloured(line, syntax::JSON)).collect(), Break::Anywhere)
}

fn coloured(line: String, lang: Lang) -> DocLine {
    let pieces = syntax::lex(lang, &line);
    DocLine::new(line, Role::Text).with(pieces)
}

fn outline(lines: &mut Vec<DocLine>, value: &Value, indent: u16, depth: usize) {
    match value {
        Value::Object(fields) if depth < DEEPEST => {
            // The verdict and the short facts before the long lists.
            let (short, long): (Vec<_>, Vec<_>) = fields.iter().partition(|(_, value)| is_short(value));
            let (unset, mut short): (Vec<_>, Vec<_>) = short.into_iter().partition(|(_, value)| value.is_null());
            short.sort_by_key(|(key, _)| FIRST.iter().position(|first| first == key).unwrap_or(FIRST.len()));
            for (key, value) in short {
                field(lines, key, value, indent);
            }
            if !unset.is_empty() {
                let names: Vec<String> = unset.iter().map(|(key, _)| words(key)).collect();
                let text = prose::line(&format!("null: {}", names.join(", ")));
                lines.push(DocLine::new(text, Role::Muted).indented(indent));
            }
            for (key, value) in long {
                if indent == 0 {
                    lines.push(DocLine::new("", Role::Text));
                }
                lines.push(DocLine::new(prose::line(&words(key)), Role::Heading).indented(indent));
                match value {
                    Value::String(text) if key == "accumulated_learnings" => {
                        lines.extend(markdown::parse(text).into_iter().map(|marked| marked.line));
                    }
                    value => outline(lines, value, indent + 2, depth + 1),
                }
            }
        }
        Value::Array(values) if depth < DEEPEST => {
            for value in values {
                item(lines, value, indent, depth);
            }
        }
        Value::String(text) => {
            lines.extend(prose::lines(text).map(|line| DocLine::new(line, Role::Text).indented(indent)));
        }
        value => lines.push(DocLine::new(prose::line(&plain(value)), Role::Text).indented(indent)),
    }
}

/// One element of a list: with its verdict and its name on the first line, if it has such.
fn item(lines: &mut Vec<DocLine>, value: &Value, indent: u16, depth: usize) {
    let Some(fields) = value.as_object().filter(|_| artifact(value).is_none()) else {
        let mut texts = match value {
            Value::Array(_) => vec![prose::line(&value.to_string())],
            value => prose::lines(&plain(value)).collect(),
        }
        .into_iter();
        lines.push(DocLine::new(texts.next().unwrap_or_default(), Role::Text).indented(indent).signed(Sign::Bullet));
        lines.extend(texts.map(|line| DocLine::new(line, Role::Text).indented(indent + 2)));
        return;
    };
    let verdict = VERDICTS.iter().find_map(|key| fields.get(*key)?.as_bool().map(|good| (*key, good)));
    let name = NAMES.iter().find_map(|key| fields.get(*key).filter(|value| is_short(value)).map(|value| (*key, value)));
    let sign = match verdict {
        Some((_, true)) => Sign::Good,
        Some((_, false)) => Sign::Bad,
        None => Sign::Bullet,
    };
    let title = match name {
        Some(("iteration", value)) => format!("iteration {}", plain(value)),
        Some((_, value)) => plain(value),
        None => String::new(),
    };
    lines.push(DocLine::new(prose::line(&title), Role::Emphasis).indented(indent).signed(sign));
    let shown = |key: &str| verdict.is_none_or(|(other, _)| other != key) && name.is_none_or(|(other, _)| other != key);
    for (key, value) in fields.iter().filter(|(key, value)| shown(key) && !value.is_null()) {
        if is_short(value) {
            field(lines, key, value, indent + 2);
        } else {
            lines.push(DocLine::new(prose::line(&words(key)), Role::Muted).indented(indent + 2));
            outline(lines, value, indent + 4, depth + 1);
        }
    }
}

fn field(lines: &mut Vec<DocLine>, key: &str, value: &Value, indent: u16) {
    let name = words(key);
    let text = prose::line(&format!("{name}: {}", plain(value)));
    let end = (name.len() + 1).min(text.len());
    let line = DocLine::new(text, Role::Text).with(vec![(0..end, Role::Muted)]).indented(indent);
    let line = match value {
        Value::Bool(good) if VERDICTS.contains(&key) => line.signed(if *good { Sign::Good } else { Sign::Bad }),
        _ => line,
    };
    lines.push(line);
}

/// A key as words; a name in capitals stays.
fn words(key: &str) -> String {
    if key.chars().any(char::is_uppercase) { key.to_owned() } else { key.replace('_', " ") }
}

fn is_short(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => !text.contains('\n'),
        Value::Array(values) => values.is_empty(),
        Value::Object(fields) => fields.is_empty() || artifact(value).is_some(),
    }
}

/// A path with its digest, as one short text.
fn artifact(value: &Value) -> Option<String> {
    let fields = value.as_object().filter(|fields| fields.len() == 2)?;
    let (path, digest) = (fields.get("path")?.as_str()?, fields.get("sha256")?.as_str()?);
    let short: String = digest.chars().take(SHORT).collect();
    (!path.contains('\n')).then(|| format!("{path}#{short}.."))
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) if values.is_empty() => "none".to_owned(),
        Value::Object(fields) if fields.is_empty() => "none".to_owned(),
        value => artifact(value).unwrap_or_else(|| value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<DocLine> {
        match content(path, &Arc::from(text.as_bytes())) {
            Content::Text(document) => (0..document.len()).map(|at| document.line(at).unwrap().clone()).collect(),
            Content::Patch(_) => panic!("{path} is no text"),
        }
    }

    #[test]
    fn a_review_reads_as_questions_and_answers() {
        let text = r#"{"iteration":2,"answers":[{"question":"Is it true?","answer":"yes, exit 0","ok":true},
            {"question":"Is it whole?","answer":"no\u001b[2J","ok":false}]}"#;
        let lines = lines("evidence/loop/iter_2/review.json", text);
        let good = lines.iter().find(|line| &*line.text == "Is it true?").unwrap();
        assert_eq!(good.sign, Some(Sign::Good));
        let bad = lines.iter().find(|line| &*line.text == "Is it whole?").unwrap();
        assert_eq!(bad.sign, Some(Sign::Bad));
        assert!(lines.iter().any(|line| &*line.text == "answer: yes, exit 0"));
        assert!(lines.iter().all(|line| !line.text.contains('\u{1b}')));
    }

    #[test]
    fn nothing_of_a_document_is_lost() {
        let text = r#"{"a":{"b":[1,[2,3],{"c":null,"f":4,"id":"x","ok":true,"d":["deep"]}],"e":{}},"t":"one\ntwo"}"#;
        let all: String = lines("exit.json", text).iter().map(|line| format!("{}\n", line.text)).collect();
        for part in ["a", "b", "1", "[2,3]", "f: 4", "x", "deep", "e: none", "one", "two"] {
            assert!(all.contains(part), "{part} is missing in\n{all}");
        }
    }

    #[test]
    fn other_json_keeps_its_braces_and_broken_json_is_shown() {
        let shown = lines("manifest.json", "{\"a\":[1]}");
        assert_eq!(&*shown[1].text, "  \"a\": [");
        assert_eq!(shown[1].pieces[0].1, Role::Keyword);
        assert_eq!(&*lines("certificate.json", "{broken")[0].text, "{broken");
    }
}
