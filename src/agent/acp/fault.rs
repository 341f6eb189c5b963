//! What an error of the conversation means for the turn, in words an operator can act on.

use agent_client_protocol::{Error, ErrorCode, is_connection_terminated, is_incoming_transport_closed};

use super::super::error::{CallError, ProgramFault, text};

/// A fault in our words.
pub(super) fn program(fault: ProgramFault, words: &str) -> CallError {
    CallError::Program { fault, message: words.to_owned(), retry_after: None }
}

/// Is this the end of the conversation, rather than an answer of the program?
pub(super) fn is_end(error: &Error) -> bool {
    is_incoming_transport_closed(error) || is_connection_terminated(error)
}

/// The streams themselves failed: the program is gone, or reads nothing.
pub(super) fn broken(error: &Error) -> CallError {
    let why = details(error).unwrap_or_else(|| error.message.clone());
    program(ProgramFault::Crash, &format!("the line to it broke: {}", text(&why)))
}

/// The fault behind an error that came while we waited for something.
pub(super) fn of(error: &Error, doing: &str, sign_in: &[String]) -> CallError {
    if is_end(error) {
        return program(ProgramFault::Crash, &format!("it closed its output while {doing}"));
    }
    let mut said = text(&error.message);
    if let Some(more) = details(error) {
        said = format!("{said}: {}", text(&more));
    }
    if error.code == ErrorCode::AUTH_REQUIRED {
        let ways = if sign_in.is_empty() { "its own sign-in".to_owned() } else { sign_in.join(", ") };
        return program(ProgramFault::Auth, &format!("{said}; sign in with the program itself ({ways}), then go on"));
    }
    program(kind(&said), &format!("{said} (error {}) while {doing}", error.code.value()))
}

/// Programs put the reason where they like; the usual places.
fn details(error: &Error) -> Option<String> {
    let data = error.data.as_ref()?;
    let told = ["details", "message", "error", "reason"].iter().find_map(|key| data.get(key)?.as_str());
    told.or(data.as_str()).map(str::to_owned)
}

/// ACP has no codes for these, so the words must do. What is not recognised is a crash: it is not waited for.
fn kind(said: &str) -> ProgramFault {
    let said = said.to_lowercase();
    let any = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if any(&["credit balance", "out of credits", "insufficient_quota", "quota exceeded", "billing", "spend limit"]) {
        ProgramFault::SpendLimit
    } else if any(&["rate limit", "rate_limit", "too many requests", "overloaded", "usage limit"]) {
        ProgramFault::RateLimit
    } else if any(&["context window", "context length", "prompt is too long", "context_length_exceeded"]) {
        ProgramFault::ContextFull
    } else if any(&["not logged in", "not signed in", "invalid api key", "authentication required", "unauthorized"]) {
        ProgramFault::Auth
    } else {
        ProgramFault::Crash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_an_error_give_its_class() {
        let cases = [
            ("Internal error", "Your credit balance is too low", ProgramFault::SpendLimit),
            ("429 Too Many Requests", "", ProgramFault::RateLimit),
            ("Internal error", "prompt is too long: 210000 tokens", ProgramFault::ContextFull),
            ("Invalid API key", "", ProgramFault::Auth),
            ("Internal error", "undefined is not a function", ProgramFault::Crash),
        ];
        for (message, details, expected) in cases {
            let error = Error::new(-32603, message).data(serde_json::json!({"details": details}));
            let CallError::Program { fault, message, .. } = of(&error, "it was working", &[]) else { unreachable!() };
            assert_eq!(fault, expected, "{message}");
            assert!(message.contains(details), "{message}");
        }
    }
}
