//! Reading an error body, whoever wrote it.
//!
//! Role: find kind, code and message in the API's error object, in a gateway's variant of it, or
//! in an HTML page.
//! Not its role: headers, status, retrying.
//!
//! Invariant: any bytes give an answer, bounded and clean.

use super::error::{text, token};
use serde_json::Value;

/// What an error body says.
#[derive(Debug, PartialEq, Eq)]
pub struct ErrorBody {
    /// Absent when the body is not an error object.
    pub kind: Option<String>,
    pub code: Option<String>,
    pub message: String,
}

pub fn read(body: &[u8]) -> ErrorBody {
    let shown = String::from_utf8_lossy(body);
    let shown = shown.trim();
    match serde_json::from_str::<Value>(shown) {
        Ok(value) => read_json(&value, shown),
        Err(_) => ErrorBody { kind: None, code: None, message: plain(shown) },
    }
}

fn read_json(value: &Value, shown: &str) -> ErrorBody {
    let error = value.get("error").unwrap_or(value);
    // Some gateways write `"error": "words"`.
    let message = word(error.get("message")).or(error.as_str()).unwrap_or(shown);
    ErrorBody {
        kind: word(error.get("type")).filter(|kind| *kind != "error").map(token),
        // The Messages API has it in `details`, chat completions beside the message.
        code: word(error.get("details").and_then(|d| d.get("error_code"))).or(word(error.get("code"))).map(token),
        message: text(message),
    }
}

/// The API's error kind for a status whose body names none.
pub fn default_kind(status: u16) -> &'static str {
    match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        409 => "conflict_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        500..=599 => "api_error",
        _ => "unexpected_status",
    }
}

fn word(value: Option<&Value>) -> Option<&str> {
    value.and_then(Value::as_str).filter(|word| !word.is_empty())
}

fn plain(shown: &str) -> String {
    if shown.is_empty() {
        return "(empty answer)".to_owned();
    }
    if !looks_like_html(shown) {
        return text(shown);
    }
    match title(shown) {
        Some(title) if !title.trim().is_empty() => text(&format!("an HTML page, not an API answer: {title}")),
        _ => "an HTML page, not an API answer".to_owned(),
    }
}

fn looks_like_html(shown: &str) -> bool {
    let start: String = shown.chars().take(200).collect::<String>().to_ascii_lowercase();
    ["<!doctype html", "<html", "<head", "<body"].iter().any(|mark| start.contains(mark))
}

fn title(page: &str) -> Option<&str> {
    // ASCII lower-casing keeps byte positions.
    let lower = page.to_ascii_lowercase();
    let open = lower.find("<title")?;
    let start = open + lower[open..].find('>')? + 1;
    let end = start + lower[start..].find("</title")?;
    page.get(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(kind: Option<&str>, code: Option<&str>, message: &str) -> ErrorBody {
        ErrorBody { kind: kind.map(Into::into), code: code.map(Into::into), message: message.into() }
    }

    #[test]
    fn reads_every_shape() {
        let cases: &[(&str, ErrorBody)] = &[
            (
                r#"{"type":"error","error":{"type":"rate_limit_error","message":"m","details":{"error_code":"c"}},"request_id":"r"}"#,
                body(Some("rate_limit_error"), Some("c"), "m"),
            ),
            (r#"{"type":"error","error":{"type":"x","message":"m","details":null}}"#, body(Some("x"), None, "m")),
            (
                r#"{"error":{"message":"m","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
                body(Some("insufficient_quota"), Some("insufficient_quota"), "m"),
            ),
            (r#"{"error":{"code":400,"message":"m","type":"x"}}"#, body(Some("x"), None, "m")),
            (
                r#"{"object":"error","message":"m","type":"BadRequestError","code":400}"#,
                body(Some("BadRequestError"), None, "m"),
            ),
            (r#"{"error":"no upstream"}"#, body(None, None, "no upstream")),
            (r#"{"message":"m"}"#, body(None, None, "m")),
            (r#"{"error":{"type":5,"message":null}}"#, body(None, None, r#"{"error":{"type":5,"message":null}}"#)),
            ("[1]", body(None, None, "[1]")),
            ("", body(None, None, "(empty answer)")),
            ("upstream timed out\n", body(None, None, "upstream timed out")),
            (
                "<html>\n<head><TITLE lang=en>502 Bad Gateway</title></head>",
                body(None, None, "an HTML page, not an API answer: 502 Bad Gateway"),
            ),
            ("<!DOCTYPE html><p>sorry", body(None, None, "an HTML page, not an API answer")),
            ("<html><title>never closed", body(None, None, "an HTML page, not an API answer")),
        ];
        for (given, wanted) in cases {
            assert_eq!(&read(given.as_bytes()), wanted, "{given}");
        }
    }

    #[test]
    fn hostile_bodies_are_bounded() {
        let long = "\u{1b}[2J".repeat(10_000);
        let json = serde_json::json!({"error": {"type": long, "message": long, "details": {"error_code": long}}});
        for given in [
            json.to_string().into_bytes(),
            long.clone().into_bytes(),
            vec![0xFF; 100_000],
            format!("<html><title>{long}</title>").into_bytes(),
            "[".repeat(90_000).into_bytes(),
        ] {
            let read = read(&given);
            for shown in [Some(read.message), read.kind, read.code].into_iter().flatten() {
                assert!(shown.chars().count() <= 500 && !shown.chars().any(char::is_control));
            }
        }
    }
}
