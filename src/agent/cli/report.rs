//! A report that a program wrote into its last words.
//!
//! Role: find the last fenced block of JSON. Not its role: what a report must hold.
//! Invariant: only the last block counts; an agent that shows an example first is not misread.

use serde_json::Value;

/// Longer blocks are no report.
const MAX_BLOCK: usize = 256 * 1024;

/// The last ```` ```json ```` block of `text`, if it is JSON.
pub fn fenced_report(text: &str) -> Option<Value> {
    serde_json::from_str(&last_block(text).filter(|block| block.len() <= MAX_BLOCK)?).ok()
}

/// Why the last block cannot be read, where there is one; for whoever wrote it.
pub fn unreadable_report(text: &str) -> Option<String> {
    let block = last_block(text)?;
    if block.len() > MAX_BLOCK {
        return Some(format!("the fenced json block has more than {MAX_BLOCK} bytes"));
    }
    let error = serde_json::from_str::<Value>(&block).err()?;
    Some(format!("the fenced json block cannot be read: {error}"))
}

fn last_block(text: &str) -> Option<String> {
    let mut last: Option<String> = None;
    let mut open: Option<String> = None;
    for line in text.lines() {
        let fence = line.trim();
        match &mut open {
            Some(block) if fence == "```" => {
                last = Some(std::mem::take(block));
                open = None;
            }
            Some(block) if block.len() <= MAX_BLOCK => {
                block.push_str(line);
                block.push('\n');
            }
            // It is too long already, and refused below.
            Some(_) => (),
            None if fence.eq_ignore_ascii_case("```json") => open = Some(String::new()),
            None => (),
        }
    }
    // A block that was begun and not ended is the last one all the same; broken JSON stays broken.
    open.or(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_last_block_counts() {
        let text = "For example:\n```json\n{\"plan\": [\"no\"]}\n```\nDone.\n\n  ```JSON\n{\"plan\":\n [\"yes ``` yes\"]}\n  ```\nBye.";
        assert_eq!(fenced_report(text), Some(json!({"plan": ["yes ``` yes"]})));
    }

    #[test]
    fn a_broken_or_missing_last_block_is_no_report() {
        let good = "```json\n{\"plan\": []}\n```\n";
        assert!(fenced_report(good).is_some());
        for text in [
            "".to_owned(),
            "{\"plan\": []}".to_owned(),
            "```\n{\"plan\": []}\n```".to_owned(),
            "```jsonc\n{}\n```".to_owned(),
            format!("{good}```json\n{{\"plan\": [\n```"),
            format!("{good}```json\n{{\"plan\": [\"cut"),
            format!("{good}```json\n{{\"a\": \"{}\"}}\n```", "x".repeat(MAX_BLOCK)),
        ] {
            assert_eq!(fenced_report(&text), None, "{}", &text[..text.len().min(80)]);
            assert_eq!(
                unreadable_report(&text).is_some(),
                text.contains("```json\n"),
                "{}",
                &text[..text.len().min(80)]
            );
        }
        assert_eq!(unreadable_report(good), None);
        let why = unreadable_report("```json\n{\"plan\": [\n").unwrap();
        assert!(why.contains("line 2"), "{why}");
    }

    #[test]
    fn an_end_that_was_forgotten_is_forgiven() {
        assert_eq!(fenced_report("```json\r\n{\"a\": 1}\r\n"), Some(json!({"a": 1})));
    }
}
