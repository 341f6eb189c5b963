//! Prints to the operator. A closed pipe is no error, and untrusted text never reaches a terminal raw.

use std::io::Write;

pub use crate::console::widget::count;
use crate::model::safe::{Safe, is_forbidden};

/// Untrusted text as one line that may be printed.
pub fn safe(text: &str) -> String {
    Safe::line(text.trim()).to_string()
}

/// One line to stdout; a reader that went away is not our problem.
pub fn line(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stdout(), "{}", text.as_ref());
}

/// One line to stderr, beside whatever goes to stdout.
pub fn complaint(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr(), "nightloop: {}", safe(text.as_ref()));
}

/// JSON that is safe to print: what could act on a terminal or hide in it is spelled as an escape.
pub fn json(value: &impl serde::Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_default();
    if text.chars().all(|c| !is_forbidden(c)) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_forbidden(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// Text that is already complete.
pub fn raw(text: &[u8]) {
    let mut out = std::io::stdout();
    let _ = out.write_all(text).and_then(|()| out.flush());
}

/// Milliseconds for people.
pub fn duration(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", millis / 60_000, millis / 1_000 % 60),
        _ => format!("{} h {} min", millis / 3_600_000, millis / 60_000 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stays_json_and_harmless() {
        let value = serde_json::json!({"q": "a\u{9b}2J\u{202e}b \u{e0041} ✓"});
        let text = json(&value);
        assert!(!text.contains(['\u{9b}', '\u{202e}', '\u{e0041}']), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    #[test]
    fn counts_and_durations_read_well() {
        assert_eq!(count(7), "7");
        assert_eq!(count(1234567), "1,234,567");
        assert_eq!(duration(999), "999 ms");
        assert_eq!(duration(61_500), "1 min 1 s");
    }
}
