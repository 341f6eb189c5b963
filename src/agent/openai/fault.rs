//! Errors that a server reports where a reply should be.
//!
//! Role: find the error object in a 200 answer and name its kind in our words, so that [`crate::agent::classify`]
//! sorts it like any other.
//! Not its role: answers with an error status ([`crate::agent::http`]).
//!
//! Invariant: any JSON gives a bounded error; a kind nobody knows is passed on as it is.

use crate::agent::envelope;
use crate::agent::error::{CallError, text, token};
use crate::agent::retry::{is_empty_account, is_full_context, speaks_of_context};
use serde_json::Value;

/// The error that a chunk or a whole answer reports.
pub fn reported(error: &Value) -> CallError {
    let word = |name: &str| error[name].as_str().filter(|word| !word.is_empty());
    let whole = error.to_string();
    let message = word("message").or(error.as_str()).unwrap_or(&whole);
    CallError::StreamError { kind: kind(error, word("code"), word("type"), message), message: text(message) }
}

fn kind(error: &Value, code: Option<&str>, kind: Option<&str>, message: &str) -> String {
    if speaks_of_context(message) {
        return "request_too_large".to_owned();
    }
    for name in [code, kind].into_iter().flatten() {
        match name {
            name if is_empty_account(name) => return "billing_error".to_owned(),
            name if is_full_context(name) => return "request_too_large".to_owned(),
            "rate_limit_exceeded" => return "rate_limit_error".to_owned(),
            "invalid_api_key" => return "authentication_error".to_owned(),
            "server_error" => return "api_error".to_owned(),
            _ => {}
        }
    }
    // Many servers put the status there that they could no longer send.
    let status = error["code"].as_u64().or_else(|| code.and_then(|code| code.parse().ok()));
    match status.and_then(|status| u16::try_from(status).ok()) {
        Some(status @ 400..=599) => envelope::default_kind(status).to_owned(),
        _ => kind.map_or_else(|| "api_error".to_owned(), token),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::retry::classify;
    use crate::model::failure::FailureClass;
    use serde_json::json;

    #[test]
    fn every_known_shape_has_its_class() {
        for (error, class) in [
            (
                json!({"message": "m", "type": "InternalServerError", "param": null, "code": 500}),
                FailureClass::Transient,
            ),
            (json!({"message": "m", "type": "api_error", "param": null, "code": null}), FailureClass::Transient),
            (json!({"message": "slow", "code": 429}), FailureClass::RateLimited),
            (json!({"message": "m", "code": "429"}), FailureClass::RateLimited),
            (json!({"message": "m", "type": "tokens", "code": "rate_limit_exceeded"}), FailureClass::RateLimited),
            (json!({"message": "m", "type": "insufficient_quota"}), FailureClass::SpendLimit),
            (json!({"message": "m", "code": 402}), FailureClass::SpendLimit),
            (json!({"message": "m", "code": "invalid_api_key"}), FailureClass::Auth),
            (json!({"message": "m", "code": "context_length_exceeded"}), FailureClass::TooLarge),
            (
                json!({"message": "request (9 tokens) exceeds the available context size (8 tokens)", "code": 400}),
                FailureClass::TooLarge,
            ),
            (json!({"message": "no such field", "type": "BadRequestError", "code": 400}), FailureClass::Fatal),
            (json!("model is still loading"), FailureClass::Transient),
            (json!({"code": 99999999999u64}), FailureClass::Transient),
        ] {
            assert_eq!(classify(&reported(&error)), class, "{error}");
        }
        let CallError::StreamError { message, .. } = reported(&json!("busy")) else { panic!() };
        assert_eq!(message, "busy");
    }
}
