//! Why a program did not finish, from its words.
//!
//! Role: the phrases that programs and their services use, and the message an operator gets.
//! Not its role: where the words come from; structured reasons win over them ([`super::turn`]).
//!
//! Invariant: a phrase is listed only if it names its reason alone; anything else is a crash.

use crate::agent::error::ProgramFault;
use crate::model::loop_file::ProgramProfile;

use super::{Exit, facts};

/// Money is gone; waiting does not help.
const SPENT: [&str; 19] = [
    "specified api usage limits",
    "credit balance is too low",
    "out of credits",
    "out of extra usage",
    "credits exhausted",
    "insufficient credits",
    "insufficient balance",
    "insufficient funds",
    "more credits, or fewer max_tokens",
    "spend cap",
    "spend limit",
    "spending limit",
    "spending cap",
    "billing_error",
    "billing hard limit",
    "payment required",
    "reached max budget",
    "maximum budget",
    "budgetexceedederror",
];
/// Quota is used up: a pause if the words say until when, else as good as spent.
const QUOTA: [&str; 9] = [
    "quota exceeded",
    "exceeded your current quota",
    "exceeded your quota",
    "insufficient_quota",
    "insufficient quota",
    "exhausted your daily quota",
    "exhausted your capacity",
    "quota_exhausted",
    "quota will reset",
];
/// The conversation is too long for the model.
const FULL: [&str; 16] = [
    "prompt is too long",
    "input is too long",
    "context window",
    "context length exceeded",
    "context_length_exceeded",
    "maximum context length",
    "contextwindowexceedederror",
    "contextoverflowerror",
    "exceeds the maximum number of tokens",
    "exceed context limit",
    "exceeds the context",
    "context limit reached",
    "conversation is too long",
    "has hit a token limit",
    "too many tokens in the request",
    "request_too_large",
];
/// Nobody is signed in, or the key is refused.
const AUTH: [&str; 34] = [
    "not logged in",
    "please run /login",
    "not signed in",
    "please log in",
    "please sign in",
    "log out and sign in again",
    "invalid api key",
    "invalid x-api-key",
    "incorrect api key",
    "api key not valid",
    "api_key_invalid",
    "invalid_api_key",
    "missing api key",
    "api key is missing",
    "no api key",
    "fix external api key",
    "please set an auth method",
    "authentication_error",
    "authentication_failed",
    "authentication error",
    "authenticationerror",
    "authentication failed",
    "providerautherror",
    "not able to authenticate you",
    "401 unauthorized",
    "status 401",
    "api error: 401",
    "unauthenticated",
    "unauthorizederror",
    "oauth token has expired",
    "oauth token revoked",
    "missing environment variable: `openai_api_key`",
    "no provider configured",
    "invalid_grant",
];
/// The service asks for patience.
const WAIT: [&str; 27] = [
    "hit your usage limit",
    "hit your session limit",
    "hit your weekly limit",
    "hit your limit",
    "hit your opus limit",
    "hit your sonnet limit",
    "usage limit reached",
    "limit reached|",
    "5-hour limit reached",
    "weekly limit reached",
    "session limit reached",
    "the usage limit has been reached",
    "rate limit",
    "rate_limit",
    "rate-limited",
    "ratelimiterror",
    "rate limited",
    "too many requests",
    "429 too many",
    "status 429",
    "status: 429",
    "(429)",
    "resource_exhausted",
    "overloaded",
    "at capacity",
    "experiencing high demand",
    "servers are down or overloaded",
];

/// The reason that these words name, if they name one. `when_known`: they also say when it is over.
pub(super) fn in_words(words: &str, when_known: bool) -> Option<ProgramFault> {
    let words = words.to_ascii_lowercase();
    let any = |phrases: &[&str]| phrases.iter().any(|phrase| words.contains(phrase));
    if any(&SPENT) {
        Some(ProgramFault::SpendLimit)
    } else if any(&QUOTA) {
        Some(if when_known { ProgramFault::RateLimit } else { ProgramFault::SpendLimit })
    } else if any(&FULL) {
        Some(ProgramFault::ContextFull)
    } else if any(&AUTH) {
        Some(ProgramFault::Auth)
    } else if any(&WAIT) {
        Some(ProgramFault::RateLimit)
    } else {
        None
    }
}

/// The reason that an HTTP status names.
pub(super) fn in_status(status: u64) -> Option<ProgramFault> {
    match status {
        401 | 403 => Some(ProgramFault::Auth),
        402 => Some(ProgramFault::SpendLimit),
        413 => Some(ProgramFault::ContextFull),
        429 | 503 | 529 => Some(ProgramFault::RateLimit),
        _ => None,
    }
}

/// What happened and what to do, for an operator. `words` are the program's own.
pub(super) fn message(profile: ProgramProfile, fault: ProgramFault, exit: Exit, finished: bool, words: &str) -> String {
    let name = if profile == ProgramProfile::Plain { "it" } else { profile.name() };
    let ended = match exit {
        Exit::Code(0) if finished => "ended with code 0 after reporting an error".to_owned(),
        Exit::Code(0) => "ended with code 0 without saying that its turn was finished".to_owned(),
        Exit::Code(code) => format!("ended with code {code}"),
        Exit::Signal(signal) => format!("was ended by signal {signal}"),
    };
    let said = if words.is_empty() { "it printed no reason".to_owned() } else { format!("it said: {words}") };
    let advice = match fault {
        ProgramFault::Auth => format!("; {}", facts(profile).sign_in),
        ProgramFault::SpendLimit => "; raise the limit of its account or choose another agent, then resume".to_owned(),
        ProgramFault::ContextFull => "; a new session or a smaller task is needed".to_owned(),
        _ => String::new(),
    };
    format!("{name} {ended}; {said}{advice}")
}

/// Lines that close an outburst and say nothing about it.
const NOISE: [&str; 8] = [
    "at ",
    "node.js v",
    "npm error a complete log",
    "npm err! a complete log",
    "note: ",
    "file \"",
    "goroutine ",
    "exit status ",
];

/// The last line that names the trouble: no frame of a stack, no closing words of a runner. Else the last one.
pub(super) fn last_line(words: &str) -> &str {
    let lines = || words.lines().rev().map(str::trim).filter(|line| line.chars().any(char::is_alphanumeric));
    let is_noise = |line: &str| {
        let lower = line.to_ascii_lowercase();
        NOISE.iter().any(|noise| lower.starts_with(noise))
    };
    lines().find(|line| !is_noise(line)).or_else(|| lines().next()).unwrap_or_default()
}
