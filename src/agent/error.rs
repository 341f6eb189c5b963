//! What can go wrong in one call, in words an operator can act on.
//!
//! Role: the error type and the cleaning of text that a server chose.
//! Not its role: whether to try again ([`super::retry`]).
//!
//! Invariant: every text shown by `Display` is bounded and free of control characters, whoever
//! built the value.

use std::fmt;
use std::time::Duration;

/// Longest piece of server text kept in an error, in characters.
pub const MAX_TEXT_CHARS: usize = 500;
/// Longest short token (error kind, code, request id) kept, in characters.
pub const MAX_TOKEN_CHARS: usize = 100;

/// One failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallError {
    /// The server answered with an error status.
    Http {
        status: u16,
        kind: String,
        code: Option<String>,
        message: String,
        retry_after: Option<Duration>,
        should_retry: Option<bool>,
        request_id: Option<String>,
    },
    /// The server reported an error inside a stream that had begun with status 200.
    StreamError { kind: String, message: String },
    /// The stream ended before the server said that the reply is whole; nothing of it counts.
    StreamCut { after_bytes: u64 },
    /// No connection, or it broke before the answer began.
    Connect(String),
    /// Nothing arrived for this long.
    Idle(Duration),
    /// The server's certificate was not accepted.
    Tls(String),
    /// The request or the reply is larger than the limit.
    TooLarge(String),
    /// The answer is not what the API in question sends.
    BadReply(String),
    /// The client cannot be built from its settings.
    Config(String),
    /// An agent program ended without finishing its turn.
    Program { fault: ProgramFault, message: String, retry_after: Option<Duration> },
}

/// Why an agent program did not finish its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProgramFault {
    /// Its service asks it to wait.
    RateLimit,
    /// Its account is out of money or quota.
    SpendLimit,
    /// It is not signed in, or its key is not accepted.
    Auth,
    /// It ended by itself with an error, or by a signal.
    Crash,
    /// It wrote nothing for too long, and was ended.
    Silent,
    /// Its turn took too long, and was ended.
    TooLong,
    /// It could not be started.
    NotStarted,
    /// The conversation no longer fits its model.
    ContextFull,
}

impl CallError {
    /// How long the server asked us to wait, when it did.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            CallError::Http { retry_after, .. } | CallError::Program { retry_after, .. } => *retry_after,
            CallError::StreamError { .. }
            | CallError::StreamCut { .. }
            | CallError::Connect(_)
            | CallError::Idle(_)
            | CallError::Tls(_)
            | CallError::TooLarge(_)
            | CallError::BadReply(_)
            | CallError::Config(_) => None,
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Http { status, kind, code, message, retry_after, should_retry: _, request_id } => {
                write!(f, "the model server answered {status} {}", token(kind))?;
                if let Some(code) = code {
                    write!(f, " ({})", token(code))?;
                }
                write!(f, ": {}", text(message))?;
                if let Some(wait) = retry_after {
                    write!(f, "; it asks to wait {} s", seconds(*wait))?;
                }
                match request_id {
                    Some(id) => write!(f, " [request {}]", token(id)),
                    None => Ok(()),
                }
            }
            CallError::StreamError { kind, message } => {
                write!(f, "the model server broke off its reply with {}: {}", token(kind), text(message))
            }
            CallError::StreamCut { after_bytes } => {
                write!(f, "the reply stopped after {after_bytes} bytes, before its end; nothing of it is used")
            }
            CallError::Connect(why) => {
                write!(f, "no connection to the model server: {}", text(why))
            }
            CallError::Idle(limit) => {
                write!(f, "the model server sent nothing for {} s", seconds(*limit))
            }
            CallError::Tls(why) => write!(
                f,
                "the model server's certificate was not accepted: {}; check the base URL and the system's certificates",
                text(why)
            ),
            CallError::TooLarge(what) => write!(f, "too large: {}", text(what)),
            CallError::BadReply(why) => {
                write!(f, "the model server's reply cannot be used: {}", text(why))
            }
            CallError::Program { fault, message, retry_after: _ } => {
                let what = match fault {
                    ProgramFault::RateLimit => "was asked to wait by its service",
                    ProgramFault::SpendLimit => "has reached its account's limit",
                    ProgramFault::Auth => "is not signed in",
                    ProgramFault::Crash => "ended before its turn was finished",
                    ProgramFault::Silent => "wrote nothing for too long and was ended",
                    ProgramFault::TooLong => "took too long and was ended",
                    ProgramFault::NotStarted => "could not be started",
                    ProgramFault::ContextFull => "ran out of context",
                };
                write!(f, "the agent program {what}: {}", text(message))
            }
            CallError::Config(why) => write!(f, "the model client cannot be set up: {}", text(why)),
        }
    }
}

impl std::error::Error for CallError {}

/// Server text made safe to show: at most [`MAX_TEXT_CHARS`] characters, no control characters.
pub fn text(raw: &str) -> String {
    clean(raw, MAX_TEXT_CHARS)
}

/// A server-chosen short token made safe to show.
pub fn token(raw: &str) -> String {
    clean(raw, MAX_TOKEN_CHARS)
}

fn clean(raw: &str, limit: usize) -> String {
    let mut rest = raw.trim().chars();
    let mut out: String = rest
        .by_ref()
        .take(limit)
        .map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            c if c.is_control() || reorders_or_hides(c) => '\u{FFFD}',
            c => c,
        })
        .collect();
    if rest.next().is_some() {
        out.pop();
        out.push('…');
    }
    out
}

/// Characters that print nothing or turn the text around: they can make a line say another thing.
fn reorders_or_hides(c: char) -> bool {
    matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{E0000}'..='\u{E007F}')
}

fn seconds(duration: Duration) -> String {
    let millis = duration.as_millis();
    if millis.is_multiple_of(1000) { (millis / 1000).to_string() } else { format!("{:.3}", duration.as_secs_f64()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_bounded_and_harmless_in_every_variant() {
        let evil = "\u{1b}]0;owned\u{7}\u{202E}\r\n\u{0}".repeat(200_000);
        let errors = [
            CallError::Http {
                status: 500,
                kind: evil.clone(),
                code: Some(evil.clone()),
                message: evil.clone(),
                retry_after: Some(Duration::from_millis(1500)),
                should_retry: None,
                request_id: Some(evil.clone()),
            },
            CallError::StreamError { kind: evil.clone(), message: evil.clone() },
            CallError::Connect(evil.clone()),
            CallError::Tls(evil.clone()),
            CallError::TooLarge(evil.clone()),
            CallError::BadReply(evil.clone()),
            CallError::Config(evil),
        ];
        for error in errors {
            let shown = error.to_string();
            assert!(shown.chars().count() <= 1000, "{} characters", shown.chars().count());
            assert!(!shown.chars().any(|c| c.is_control() || reorders_or_hides(c)), "{shown}");
        }
    }

    #[test]
    fn text_is_cut_with_a_mark_only_when_it_is_longer() {
        let exact = "é".repeat(MAX_TEXT_CHARS);
        assert_eq!(text(&exact), exact);
        let longer = text(&format!("{exact}x"));
        assert_eq!(longer.chars().count(), MAX_TEXT_CHARS);
        assert!(longer.ends_with('…'));
    }

    #[test]
    fn says_what_happened() {
        let error = CallError::Http {
            status: 429,
            kind: "rate_limit_error".into(),
            code: None,
            message: "slow down".into(),
            retry_after: Some(Duration::from_secs(7)),
            should_retry: None,
            request_id: Some("req_1".into()),
        };
        assert_eq!(
            error.to_string(),
            "the model server answered 429 rate_limit_error: slow down; it asks to wait 7 s [request req_1]"
        );
    }
}
