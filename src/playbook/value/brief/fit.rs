//! Bounds: texts cut in the middle, facts as canonical JSON lines that get shorter until they fit.

use serde_json::Value;

use crate::model::canonical;

/// How long a text, and how many items a list, may be: tried in this order until everything fits.
const LEVELS: [(usize, usize); 6] = [(8_000, 100), (2_000, 50), (600, 30), (240, 20), (100, 10), (40, 5)];
/// Room for the line that says how many are not shown.
const MORE: usize = 32;
/// Room for the words in the place of the middle.
const LEFT_OUT: usize = 48;

/// The text in at most `limit` bytes: its beginning and its end, with a note of how much is missing between them.
pub fn middle(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let Some(keep) = limit.checked_sub(LEFT_OUT) else { return head(text, limit).to_owned() };
    let front = head(text, keep / 2);
    let back = tail(text, keep - keep / 2);
    let gone = text.len() - front.len() - back.len();
    format!("{front}\n[{gone} bytes are left out here]\n{back}")
}

/// The text in at most `limit` bytes, for texts of a line or two.
pub fn shorten(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    if limit >= 4 * LEFT_OUT {
        return middle(text, limit);
    }
    format!("{}…", head(text, limit.saturating_sub('…'.len_utf8())))
}

/// One line of canonical JSON for each value, in at most `limit` bytes.
pub fn lines(values: Vec<Value>, limit: usize) -> String {
    let mut written = Vec::new();
    for (text, items) in LEVELS {
        written = values.iter().filter_map(|value| canonical::compact(&shrink(value, text, items)).ok()).collect();
        if size(&written) <= limit {
            return written.concat_lines();
        }
    }
    // Still too long: the first of them, and how many are missing.
    let mut room = limit.saturating_sub(MORE);
    let shown = written.iter().take_while(|line| {
        let fits = line.len() < room;
        room = room.saturating_sub(line.len() + 1);
        fits
    });
    let shown = shown.count();
    let missing = written.len() - shown;
    written.truncate(shown);
    written.push(format!("{{\"more\":{missing}}}"));
    written.concat_lines()
}

trait Lines {
    fn concat_lines(&self) -> String;
}

impl Lines for Vec<String> {
    fn concat_lines(&self) -> String {
        self.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
    }
}

fn size(lines: &[String]) -> usize {
    lines.iter().map(|line| line.len() + 1).sum()
}

/// The value with every text and every list in it bounded. Values are made by us: a few levels deep.
fn shrink(value: &Value, text: usize, items: usize) -> Value {
    match value {
        Value::String(long) => Value::String(shorten(long, text)),
        Value::Array(list) => {
            let mut kept: Vec<Value> = list.iter().take(items).map(|item| shrink(item, text, items)).collect();
            if list.len() > items {
                kept.push(Value::String(format!("… {} more", list.len() - items)));
            }
            Value::Array(kept)
        }
        Value::Object(map) => map.iter().map(|(key, item)| (key.clone(), shrink(item, text, items))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn head(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn tail(text: &str, limit: usize) -> &str {
    let mut start = text.len() - limit.min(text.len());
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_long_text_keeps_both_ends_within_its_limit() {
        let text = format!("begin{}end", "é".repeat(5_000));
        for limit in [49, 60, 100, 1_001, 9_999] {
            let cut = middle(&text, limit);
            assert!(cut.len() <= limit, "{limit}: {}", cut.len());
            assert!(cut.contains("bytes are left out here"), "{limit}: {cut}");
        }
        let cut = middle(&text, 1_000);
        assert!(cut.starts_with("beginé") && cut.ends_with("éend"), "{cut}");
        assert_eq!(middle("short", 5), "short");
        assert_eq!(middle(&text, 6), "begin");
    }

    #[test]
    fn short_texts_end_with_dots() {
        assert_eq!(shorten("abcdef", 5), "ab…");
        assert_eq!(shorten("abcdef", 6), "abcdef");
        assert_eq!(shorten("ééé", 5), "é…");
    }

    #[test]
    fn lines_get_shorter_before_any_is_dropped() {
        let values = vec![json!({"b": "x".repeat(900), "a": 1}), json!({"b": "y"})];
        assert!(lines(values.clone(), 2_000).starts_with(r#"{"a":1,"b":"xxx"#));
        let short = lines(values, 300);
        assert!(short.len() <= 300, "{short}");
        assert!(short.contains("left out here") && short.ends_with("{\"b\":\"y\"}\n"), "{short}");
    }

    #[test]
    fn lines_that_do_not_fit_are_counted() {
        let values: Vec<Value> = (0..500).map(|n| json!({"id": n, "text": "x".repeat(300)})).collect();
        let text = lines(values, 1_000);
        assert!(text.len() <= 1_000, "{}", text.len());
        let shown = text.lines().count() - 1;
        assert!(shown > 5, "{text}");
        assert_eq!(text.lines().last(), Some(format!("{{\"more\":{}}}", 500 - shown).as_str()));
        assert_eq!(lines(Vec::new(), 10), "");
    }
}
