//! Whether and when to try again: the overnight policy as pure functions.
//!
//! Role: sort a failed attempt into a class; give the wait before the next attempt.
//! Not its role: waiting, counting, randomness, budgets. The caller brings the attempt number and
//! random bits, and stops waiting when its budget ends.
//!
//! Invariants: no wait is shorter than the server asked for; our own back-off never exceeds
//! [`BACKOFF_CAP`]; a spend limit, a refused key and a broken request are never repeated.

use super::error::{CallError, ProgramFault};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Longest back-off of our own making. A longer `retry-after` still wins.
pub const BACKOFF_CAP: Duration = Duration::from_secs(300);
/// Attempts after which a transient fault is called permanent.
pub const TRANSIENT_ATTEMPTS: u32 = 300;
/// Attempts after which a program that breaks down is given up.
pub const CRASH_ATTEMPTS: u32 = 3;

const BACKOFF_BASE: Duration = Duration::from_millis(500);
/// Full jitter may draw zero; this keeps a dead server from being hammered.
const BACKOFF_FLOOR: Duration = Duration::from_millis(100);

/// What a failed attempt asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryClass {
    /// Money or quota is used up: pause until the operator or the calendar helps.
    SpendLimit,
    /// Too many requests: wait, without limit of attempts.
    RateLimited,
    /// The service is short of capacity: wait, without limit of attempts.
    Overloaded,
    /// A fault that usually passes: wait, at most [`TRANSIENT_ATTEMPTS`] times.
    Transient,
    /// An agent program broke down: try again, at most [`CRASH_ATTEMPTS`] times. A turn of it is dear.
    Crashed,
    /// The key is not accepted: pause.
    Auth,
    /// The request does not fit: make it smaller once.
    TooLarge,
    /// Sending it again cannot help.
    Fatal,
}

/// The class of a failed attempt.
pub fn classify(error: &CallError) -> RetryClass {
    match error {
        CallError::Http { status, kind, code, message, retry_after, should_retry, request_id: _ } => {
            classify_status(*status, kind, code.as_deref(), message, retry_after.is_some(), *should_retry)
        }
        CallError::StreamError { kind, message } => classify_kind(kind, message),
        CallError::StreamCut { .. } | CallError::Connect(_) | CallError::Idle(_) | CallError::BadReply(_) => {
            RetryClass::Transient
        }
        CallError::TooLarge(_) => RetryClass::TooLarge,
        CallError::Tls(_) | CallError::Config(_) => RetryClass::Fatal,
        CallError::Program { fault, .. } => match fault {
            ProgramFault::RateLimit => RetryClass::RateLimited,
            ProgramFault::SpendLimit => RetryClass::SpendLimit,
            ProgramFault::Auth => RetryClass::Auth,
            ProgramFault::Crash | ProgramFault::Silent => RetryClass::Crashed,
            ProgramFault::TooLong | ProgramFault::NotStarted | ProgramFault::ContextFull => RetryClass::Fatal,
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
) -> RetryClass {
    match status {
        402 => RetryClass::SpendLimit,
        429 if code == Some("enforced_spend_limit_reached") => RetryClass::SpendLimit,
        // OpenAI says it as a kind, as a code, or as both; waiting does not help, whatever the headers say.
        429 if is_empty_account(kind) || code.is_some_and(is_empty_account) => RetryClass::SpendLimit,
        // More than the account may ever send in a minute: no wait makes it fit.
        429 if message.trim_start().starts_with("Request too large") => RetryClass::TooLarge,
        429 if !told_when && speaks_of_usage_limit(message) => RetryClass::SpendLimit,
        429 => RetryClass::RateLimited,
        400 if is_own_usage_limit(message) => RetryClass::SpendLimit,
        400 if is_prompt_too_long(message) => RetryClass::TooLarge,
        400 if is_full_context(kind) || code.is_some_and(is_full_context) => RetryClass::TooLarge,
        // The model wrote a call that its server could not read; another try may read better.
        400 if code == Some("tool_use_failed") => RetryClass::Transient,
        400 | 404 | 422 => RetryClass::Fatal,
        401 | 403 => RetryClass::Auth,
        413 => RetryClass::TooLarge,
        529 => RetryClass::Overloaded,
        500..=599 if kind == "overloaded_error" => RetryClass::Overloaded,
        408 | 409 | 500..=599 if should_retry == Some(false) => RetryClass::Fatal,
        408 | 409 | 500..=599 => RetryClass::Transient,
        // A status the policy does not name: the server's own word decides.
        _ if should_retry == Some(true) => RetryClass::Transient,
        _ => RetryClass::Fatal,
    }
}

/// An error inside a 200 stream has no status; its kind stands in for one.
fn classify_kind(kind: &str, message: &str) -> RetryClass {
    match kind {
        "overloaded_error" => RetryClass::Overloaded,
        "rate_limit_error" if speaks_of_usage_limit(message) => RetryClass::SpendLimit,
        "rate_limit_error" => RetryClass::RateLimited,
        "billing_error" => RetryClass::SpendLimit,
        "authentication_error" | "permission_error" => RetryClass::Auth,
        "request_too_large" => RetryClass::TooLarge,
        "invalid_request_error" if is_own_usage_limit(message) => RetryClass::SpendLimit,
        "invalid_request_error" if is_prompt_too_long(message) => RetryClass::TooLarge,
        "invalid_request_error" | "not_found_error" => RetryClass::Fatal,
        // `api_error`, `timeout_error`, and kinds to come: a reply that had begun is worth another try.
        _ => RetryClass::Transient,
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

/// The wait before the next attempt, or `None` when there must be none.
///
/// `attempt` counts the attempts that have failed so far, from 1. `jitter` is 64 random bits.
pub fn delay(class: RetryClass, attempt: u32, retry_after: Option<Duration>, jitter: u64) -> Option<Duration> {
    match class {
        RetryClass::SpendLimit | RetryClass::Auth | RetryClass::TooLarge | RetryClass::Fatal => None,
        RetryClass::Transient if attempt >= TRANSIENT_ATTEMPTS => None,
        RetryClass::Crashed if attempt >= CRASH_ATTEMPTS => None,
        RetryClass::Transient | RetryClass::Crashed | RetryClass::RateLimited | RetryClass::Overloaded => {
            Some(backoff(attempt, jitter).max(retry_after.unwrap_or_default()))
        }
    }
}

/// Full jitter: a uniform draw between nothing and a ceiling that doubles up to the cap.
fn backoff(attempt: u32, jitter: u64) -> Duration {
    let doublings = attempt.saturating_sub(1).min(20);
    let ceiling = BACKOFF_BASE.saturating_mul(1 << doublings).min(BACKOFF_CAP);
    let ceiling_ms = u64::try_from(ceiling.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(jitter % (ceiling_ms + 1)).max(BACKOFF_FLOOR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use RetryClass::*;
    use proptest::prelude::*;

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

    #[test]
    fn transient_ends_after_300_attempts_and_the_others_do_not() {
        assert!(delay(Transient, 299, None, 0).is_some());
        assert_eq!(delay(Transient, 300, None, 0), None);
        assert!(delay(RateLimited, 1_000_000, None, 0).is_some());
        assert!(delay(Overloaded, u32::MAX, None, u64::MAX).is_some());
    }

    #[test]
    fn the_class_is_written_in_snake_case() {
        assert_eq!(serde_json::to_string(&SpendLimit).unwrap(), "\"spend_limit\"");
        assert_eq!(serde_json::from_str::<RetryClass>("\"rate_limited\"").unwrap(), RateLimited);
    }

    proptest! {
        #[test]
        fn waits_stay_in_bounds(attempt in any::<u32>(), after in proptest::option::of(0u64..100_000), jitter in any::<u64>()) {
            let after = after.map(Duration::from_secs);
            for class in [RateLimited, Overloaded] {
                let wait = delay(class, attempt, after, jitter).unwrap();
                prop_assert!(wait >= after.unwrap_or_default());
                prop_assert!(wait >= BACKOFF_FLOOR);
                prop_assert!(wait <= BACKOFF_CAP.max(after.unwrap_or_default()));
            }
            let transient = delay(Transient, attempt, after, jitter);
            prop_assert_eq!(transient.is_none(), attempt >= TRANSIENT_ATTEMPTS);
            for class in [SpendLimit, Auth, RetryClass::TooLarge, Fatal] {
                prop_assert_eq!(delay(class, attempt, after, jitter), None);
            }
        }

        #[test]
        fn early_attempts_wait_less(attempt in 1u32..9, jitter in any::<u64>()) {
            let ceiling = Duration::from_millis(500 << (attempt - 1));
            prop_assert!(delay(Transient, attempt, None, jitter).unwrap() <= ceiling);
        }
    }
}
