//! Everything that a command says, on both streams.
//!
//! Role: the one place that writes to the operator's terminal outside of the console.
//! Not its role: what is said, and the console's own drawing.
//!
//! Invariants: no control character and nothing that hides or reorders text is written, wherever the text came
//! from; a line is one line; a closed pipe is no error. `tests/architecture.rs` holds that nobody else writes.

use std::borrow::Cow;
use std::io::Write;

use ratatui::text::Line;

use crate::console::terminal;
use crate::console::theme::{Depth, write_lines};
use crate::engine::error::EngineError;
pub use crate::model::amount::{count, duration, took};
use crate::model::safe::{Safe, is_forbidden};

/// Untrusted text as one line that may be printed.
pub fn safe(text: &str) -> String {
    Safe::line(text.trim()).to_string()
}

/// A whole line that may be printed. What is harmless stays as it is, however long.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_forbidden) { Cow::Owned(Safe::line(text).to_string()) } else { Cow::Borrowed(text) }
}

/// One line to stdout; a reader that went away is not our problem.
pub fn line(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stdout(), "{}", printable(text.as_ref()));
}

/// One line of JSON to stdout.
pub fn json_line(value: &impl serde::Serialize) {
    let _ = writeln!(std::io::stdout(), "{}", json(value));
}

/// One line to stderr, beside whatever goes to stdout.
pub fn complaint(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr(), "nightloop: {}", safe(text.as_ref()));
}

/// Why a command failed and what to do, one line each: a name with a line break in it forges no hint.
pub fn error(error: &EngineError) {
    let (message, hint) = error.parts();
    complaint(message);
    if let Some(hint) = hint {
        let _ = writeln!(std::io::stderr(), "  hint: {}", safe(&hint));
    }
}

/// What a panic says.
pub fn fault(info: &std::panic::PanicHookInfo<'_>) {
    let _ = std::io::stderr().write_all(terminal::report(info).as_bytes());
}

/// What the parser of arguments says: help and version to stdout, a complaint to stderr.
pub fn parser(said: &clap::Error) {
    let plain = said.render().to_string();
    if plain.chars().all(|c| c == '\n' || !is_forbidden(c)) {
        // In colour where the terminal has it; there is nothing else in it.
        let _ = said.print();
        return;
    }
    for line in Safe::lines(&plain) {
        let _ = if said.use_stderr() {
            writeln!(std::io::stderr(), "{line}")
        } else {
            writeln!(std::io::stdout(), "{line}")
        };
    }
}

/// JSON that is safe to print: what could act on a terminal or hide in it is spelled as an escape.
fn json(value: &impl serde::Serialize) -> String {
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

/// Bytes of our own making, with nothing foreign in them: scripts, pages, what gives a terminal back.
pub fn own(bytes: &[u8]) {
    let mut out = std::io::stdout();
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

/// Lines with their styles, where the terminal has any.
pub fn styled(lines: &[Line<'_>], depth: Option<Depth>) {
    let _ = write_lines(&mut std::io::stdout(), lines, depth);
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
}
