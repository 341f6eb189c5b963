//! What class of failure an error is.
//!
//! Not here: what follows from it (`machine::failure`), how long is waited ([`crate::model::failure`]).

use crate::model::failure::FailureClass;

use super::error::{CallError, ProgramFault};

/// The class of a failed attempt.
pub fn classify(error: &CallError) -> FailureClass {
    match error {
        CallError::Http { status, kind, code, message, retry_after, should_retry, request_id: _ } => {
            classify_status(*status, kind, code.as_deref(), message, retry_after.is_some(), *should_retry)
        }
        CallError::StreamError { kind, message } => classify_kind(kind, message),
        CallError::StreamCut { .. } | CallError::Connect(_) | CallError::Idle(_) | CallError::BadReply(_) => {
            FailureClass::Transient
        }
        CallError::TooLarge(_) => FailureClass::TooLarge,
        CallError::Tls(_) | CallError::Config(_) => FailureClass::Fatal,
        CallError::Program { fault, .. } => match fault {
            ProgramFault::RateLimit => FailureClass::RateLimited,
            ProgramFault::SpendLimit => FailureClass::SpendLimit,
            ProgramFault::Auth => FailureClass::Auth,
            ProgramFault::Crash | ProgramFault::Silent => FailureClass::Crashed,
            ProgramFault::TooLong | ProgramFault::NotStarted | ProgramFault::ContextFull => FailureClass::Fatal,
        },
    }
}

fn classify_status(
    status: u16,
    kind: &str,
    code: Option<&str>,
    message: &str,
    told_when: bool,
    should_retry: Option<bool>,
) -> FailureClass {
    match status {
        402 => FailureClass::SpendLimit,
        429 if code == Some("enforced_spend_limit_reached") => FailureClass::SpendLimit,
        // OpenAI says it as a kind, as a code, or as both; waiting does not help, whatever the headers say.
        429 if is_empty_account(kind) || code.is_some_and(is_empty_account) => FailureClass::SpendLimit,
        // More than the account may ever send in a minute: no wait makes it fit.
        429 if message.trim_start().starts_with("Request too large") => FailureClass::TooLarge,
        429 if !told_when && speaks_of_usage_limit(message) => FailureClass::SpendLimit,
        429 => FailureClass::RateLimited,
        400 if is_own_usage_limit(message) => FailureClass::SpendLimit,
        400 if is_prompt_too_long(message) => FailureClass::TooLarge,
        400 if is_full_context(kind) || code.is_some_and(is_full_context) => FailureClass::TooLarge,
        // The model wrote a call that its server could not read; another try may read better.
        400 if code == Some("tool_use_failed") => FailureClass::Transient,
        400 | 404 | 422 => FailureClass::Fatal,
        401 | 403 => FailureClass::Auth,
        413 => FailureClass::TooLarge,
        529 => FailureClass::Overloaded,
        500..=599 if kind == "overloaded_error" => FailureClass::Overloaded,
        408 | 409 | 500..=599 if should_retry == Some(false) => FailureClass::Fatal,
        408 | 409 | 500..=599 => FailureClass::Transient,
        // A status the policy does not name: the server's own word decides.
        _ if should_retry == Some(true) => FailureClass::Transient,
        _ => FailureClass::Fatal,
    }
}

/// An error inside a 200 stream has no status; its kind stands in for one.
fn classify_kind(kind: &str, message: &str) -> FailureClass {
    match kind {
        "overloaded_error" => FailureClass::Overloaded,
        "rate_limit_error" if speaks_of_usage_limit(message) => FailureClass::SpendLimit,
        "rate_limit_error" => FailureClass::RateLimited,
        "billing_error" => FailureClass::SpendLimit,
        "authentication_error" | "permission_error" => FailureClass::Auth,
        "request_too_large" => FailureClass::TooLarge,
        "invalid_request_error" if is_own_usage_limit(message) => FailureClass::SpendLimit,
        "invalid_request_error" if is_prompt_too_long(message) => FailureClass::TooLarge,
        "invalid_request_error" | "not_found_error" => FailureClass::Fatal,
        // `api_error`, `timeout_error`, and kinds to come: a reply that had begun is worth another try.
        _ => FailureClass::Transient,
    }
}

fn speaks_of_usage_limit(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["usage limit", "spend limit", "spending limit"].iter().any(|words| message.contains(words))
}

fn is_own_usage_limit(message: &str) -> bool {
    message.trim_start().starts_with("You have reached your specified") && speaks_of_usage_limit(message)
}

fn is_prompt_too_long(message: &str) -> bool {
    message.trim_start().to_ascii_lowercase().starts_with("prompt is too long") || speaks_of_context(message)
}

pub(super) fn is_empty_account(word: &str) -> bool {
    matches!(word, "insufficient_quota" | "billing_hard_limit_reached")
}

pub(super) fn is_full_context(word: &str) -> bool {
    matches!(word, "context_length_exceeded" | "exceed_context_size_error")
}

/// Servers name a full context in many words, and few of them with a code.
pub(super) fn speaks_of_context(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["context length", "context size", "context window"].iter().any(|words| message.contains(words))
}

/// True when the server says that a thinking block no longer fits the conversation before it.
/// Sending the same bytes again cannot help; dropping the block ([`super::PrefixMismatch`]) or a
/// fresh conversation can.
pub fn is_prefix_mismatch(error: &CallError) -> bool {
    match error {
        CallError::Http { status: 400, message, .. } => {
            let message = message.to_ascii_lowercase();
            message.contains("thinking") && (message.contains("signature") || message.contains("cannot be modified"))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FailureClass::*;
    use std::time::Duration;

    fn http(status: u16) -> CallError {
        http_with(status, "", None, "", None, None)
    }

    fn http_with(
        status: u16,
        kind: &str,
        code: Option<&str>,
        message: &str,
        retry_after: Option<u64>,
        should_retry: Option<bool>,
    ) -> CallError {
        CallError::Http {
            status,
            kind: kind.into(),
            code: code.map(Into::into),
            message: message.into(),
            retry_after: retry_after.map(Duration::from_secs),
            should_retry,
            request_id: None,
        }
    }

    #[test]
    fn the_table() {
        let limit = "You have reached your specified API usage limits. You will regain access on 2026-12-01.";
        let cases = [
            (http(402), SpendLimit),
            (http_with(429, "", Some("enforced_spend_limit_reached"), "", Some(60), None), SpendLimit),
            (http_with(429, "", None, "Workspace usage limit reached", None, None), SpendLimit),
            (http_with(429, "", None, "Workspace usage limit reached", Some(9), None), RateLimited),
            (http_with(429, "", Some("ramp_limit_exceeded"), "", Some(9), None), RateLimited),
            (http_with(429, "", None, "", None, Some(false)), RateLimited),
            (http(429), RateLimited),
            (http_with(400, "invalid_request_error", None, limit, None, None), SpendLimit),
            (http_with(400, "", None, "prompt is too long: 1200000 tokens > 1000000 maximum", None, None), TooLarge),
            (http_with(429, "insufficient_quota", None, "", Some(1), None), SpendLimit),
            (http_with(429, "", Some("insufficient_quota"), "", None, None), SpendLimit),
            (http_with(429, "tokens", Some("rate_limit_exceeded"), "", None, None), RateLimited),
            (
                http_with(429, "tokens", Some("rate_limit_exceeded"), "Request too large for m: Limit 30", None, None),
                TooLarge,
            ),
            (http_with(400, "", Some("tool_use_failed"), "", None, None), Transient),
            (http_with(400, "", Some("context_length_exceeded"), "", None, None), TooLarge),
            (http_with(400, "exceed_context_size_error", None, "", None, None), TooLarge),
            (http_with(400, "", None, "This model's maximum context length is 8192 tokens.", None, None), TooLarge),
            (http(400), Fatal),
            (http_with(400, "", None, "", None, Some(true)), Fatal),
            (http(401), Auth),
            (http(403), Auth),
            (http(404), Fatal),
            (http(408), Transient),
            (http(409), Transient),
            (http_with(409, "", None, "", None, Some(false)), Fatal),
            (http(413), TooLarge),
            (http(422), Fatal),
            (http(500), Transient),
            (http_with(500, "overloaded_error", None, "", None, None), Overloaded),
            (http_with(500, "", None, "", None, Some(false)), Fatal),
            (http(502), Transient),
            (http(503), Transient),
            (http(504), Transient),
            (http(529), Overloaded),
            (http(301), Fatal),
            (http(418), Fatal),
            (http_with(418, "", None, "", None, Some(true)), Transient),
            (stream("overloaded_error", ""), Overloaded),
            (stream("rate_limit_error", ""), RateLimited),
            (stream("rate_limit_error", "usage limit"), SpendLimit),
            (stream("billing_error", ""), SpendLimit),
            (stream("api_error", ""), Transient),
            (stream("timeout_error", ""), Transient),
            (stream("never_heard_of", ""), Transient),
            (stream("invalid_request_error", ""), Fatal),
            (stream("invalid_request_error", limit), SpendLimit),
            (stream("authentication_error", ""), Auth),
            (stream("permission_error", ""), Auth),
            (stream("request_too_large", ""), TooLarge),
            (CallError::StreamCut { after_bytes: 3 }, Transient),
            (CallError::Connect(String::new()), Transient),
            (CallError::Idle(Duration::from_secs(1)), Transient),
            (CallError::Tls(String::new()), Fatal),
            (CallError::TooLarge(String::new()), TooLarge),
            (CallError::BadReply(String::new()), Transient),
            (CallError::Config(String::new()), Fatal),
        ];
        for (error, wanted) in cases {
            assert_eq!(classify(&error), wanted, "{error:?}");
        }
    }

    fn stream(kind: &str, message: &str) -> CallError {
        CallError::StreamError { kind: kind.into(), message: message.into() }
    }

    #[test]
    fn a_block_bound_to_another_conversation_is_recognised() {
        let bound = "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation";
        assert!(is_prefix_mismatch(&http_with(400, "", None, bound, None, None)));
        assert!(!is_prefix_mismatch(&http_with(400, "", None, "max_tokens: too small", None, None)));
        assert!(!is_prefix_mismatch(&http_with(500, "", None, bound, None, None)));
    }
}
