//! Faults: each as the program really tells it, and each with the right reason.

use std::time::Duration;

use super::reader_tests::{Place, task};
use super::*;
use crate::agent::error::ProgramFault::{self, Auth, ContextFull, Crash, RateLimit, SpendLimit};
use crate::model::loop_file::ProgramProfile as P;

fn now() -> jiff::Zoned {
    "2026-11-16T14:30:00+01:00[Europe/Berlin]".parse().unwrap()
}

fn failure(profile: P, stdout: &str, exit: Exit, stderr: &str) -> (ProgramFault, String, Option<u64>) {
    let mut reader = Reader::new(profile);
    reader.push(stdout.as_bytes(), &mut |_| ());
    match reader.finish_at(exit, stderr.as_bytes(), &now()).unwrap_err() {
        CallError::Program { fault, message, retry_after } => (fault, message, retry_after.map(|wait| wait.as_secs())),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_fake_fault_has_its_reason() {
    let faults = [
        ("rate_limit", RateLimit),
        ("spend", SpendLimit),
        ("auth", Auth),
        ("context", ContextFull),
        ("crash", Crash),
        ("killed", Crash),
    ];
    for profile in P::ALL {
        for (name, expected) in faults {
            let ran = Place::new().run(profile, &task("Solver"), &[("FAKE_FAULT", name), ("FAKE_RESET_SECONDS", "40")]);
            let mut reader = Reader::new(profile);
            reader.push(&ran.stdout, &mut |_| ());
            let error = reader.finish(ran.exit, &ran.stderr).unwrap_err();
            let CallError::Program { fault, message, retry_after } = &error else { panic!("{error:?}") };
            assert_eq!(*fault, expected, "{} {name}: {message}", profile.name());
            let named = if profile == P::Plain { "it " } else { profile.name() };
            assert!(message.starts_with(named), "{message}");
            let wait = retry_after.unwrap_or_default();
            match expected {
                // The moment of the reset was named seconds ago.
                RateLimit => assert!(wait > Duration::ZERO && wait <= Duration::from_secs(40), "{wait:?} {message}"),
                _ => assert_eq!(*retry_after, None, "{message}"),
            }
            if expected == Auth {
                let advice = ["sign in", "set up", "declare"].iter().any(|word| message.contains(word));
                assert!(advice, "no word about what to do: {message}");
            }
        }
    }
}

#[test]
fn a_fault_can_be_played_once() {
    let place = Place::new();
    let once = place.work().join("once");
    let env = [("FAKE_FAULT", "rate_limit"), ("FAKE_FAULT_ONCE", once.to_str().unwrap())];
    let codes = [0, 1].map(|_| place.run(P::Claude, &task("Solver"), &env).exit);
    assert_eq!(codes, [Exit::Code(1), Exit::Code(0)]);
}

/// What Claude Code prints around a failed request.
fn claude_result(status: u16, words: &str) -> String {
    let words = serde_json::json!(words);
    format!(
        "{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"api_error_status\":{status},\"result\":{words}}}\n"
    )
}

#[test]
fn claude_in_its_own_words() {
    let cases = [
        (429, "You've hit your session limit · resets 9am (Europe/Berlin)", RateLimit, Some(18 * 3600 + 1800)),
        (429, "You've hit your weekly limit · resets Nov 18 at 3pm (Europe/Berlin)", RateLimit, Some(48 * 3600 + 1800)),
        (429, "Claude AI usage limit reached|1794836700", RateLimit, Some(900)),
        (429, "API Error: Request rejected (429) · The usage limit has been reached", RateLimit, None),
        (529, "API Error: 529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}", RateLimit, None),
        (429, "Some new words that nobody knows", RateLimit, None),
        (400, "Credit balance is too low", SpendLimit, None),
        (
            400,
            "API Error: 400 You have reached your specified API usage limits. You will regain access on 2026-12-01",
            SpendLimit,
            None,
        ),
        (401, "Not logged in · Please run /login", Auth, None),
        (401, "Invalid API key · Fix external API key", Auth, None),
        (401, "OAuth token has expired. Please obtain a new token", Auth, None),
        (403, "Your organization has been disabled", Auth, None),
        (400, "Prompt is too long", ContextFull, None),
        (500, "API Error: 500 Internal server error", Crash, None),
        (404, "There's an issue with the selected model (nope). It may not exist", Crash, None),
    ];
    for (status, words, fault, wait) in cases {
        let found = failure(P::Claude, &claude_result(status, words), Exit::Code(1), "");
        assert_eq!((found.0, found.2), (fault, wait), "{words}: {}", found.1);
        assert!(found.1.contains(&words[..12]), "{}", found.1);
    }
    let budget = r#"{"type":"result","subtype":"error_max_budget_usd","is_error":true,"errors":["Reached maximum budget ($0.1)"],"total_cost_usd":0.107}"#;
    assert_eq!(failure(P::Claude, budget, Exit::Code(1), "").0, SpendLimit);
    let turns = r#"{"type":"result","subtype":"error_max_turns","is_error":true}"#;
    let (fault, message, _) = failure(P::Claude, turns, Exit::Code(1), "");
    assert!(fault == Crash && message.contains("error_max_turns"), "{message}");
    let stderr = "Error: No conversation found with session ID: 1234";
    assert!(failure(P::Claude, "", Exit::Code(1), stderr).1.contains("No conversation found"));
}

#[test]
fn codex_in_its_own_words() {
    let cases = [
        (
            "You've hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://chatgpt.com/codex/settings/usage to purchase more credits or try again at 5:30 PM.",
            RateLimit,
            Some(3 * 3600),
        ),
        ("You've hit your usage limit. Try again at Nov 17th, 2026 2:30 PM.", RateLimit, Some(24 * 3600)),
        ("You've hit your usage limit. Try again later.", RateLimit, None),
        ("You've hit your usage limit for gpt-5.5. Switch to another model now, or try again later.", RateLimit, None),
        ("exceeded retry limit, last status: 429 Too Many Requests, request id: r", RateLimit, None),
        (
            "stream disconnected before completion: Rate limit reached for gpt-5.5. Please try again in 11.054s.",
            RateLimit,
            Some(11),
        ),
        ("Selected model is at capacity. Please try a different model.", RateLimit, None),
        ("Quota exceeded. Check your plan and billing details.", SpendLimit, None),
        ("Your workspace is out of credits. Add credits to continue.", SpendLimit, None),
        ("You hit your spend cap set in your workspace. Increase your spend cap to continue.", SpendLimit, None),
        (
            "unexpected status 401 Unauthorized: Missing bearer or basic authentication in header, url: https://x",
            Auth,
            None,
        ),
        (
            "Your access token could not be refreshed because your refresh token was revoked. Please log out and sign in again.",
            Auth,
            None,
        ),
        (
            "Codex ran out of room in the model's context window. Start a new thread or clear earlier history before retrying.",
            ContextFull,
            None,
        ),
        ("stream disconnected before completion: stream closed before response.completed", Crash, None),
    ];
    for (words, fault, wait) in cases {
        let words = serde_json::json!(words);
        let stdout = format!(
            "{{\"type\":\"error\",\"message\":{words}}}\n{{\"type\":\"turn.failed\",\"error\":{{\"message\":{words}}}}}\n"
        );
        let found = failure(P::Codex, &stdout, Exit::Code(1), "");
        assert_eq!((found.0, found.2), (fault, wait), "{words}: {}", found.1);
    }
    let stderr = "Error: Not logged in. Please run `codex login`";
    assert_eq!(failure(P::Codex, "", Exit::Code(1), stderr).0, Auth);
}

#[test]
fn gemini_in_its_own_words() {
    let ended = |words: &str| {
        format!(
            "{{\"type\":\"result\",\"status\":\"error\",\"error\":{{\"type\":\"Error\",\"message\":{}}}}}",
            serde_json::json!(words)
        )
    };
    let cases = [
        (
            "[API Error: You have exhausted your capacity on this model. Your quota will reset after 5h12m30s.]",
            RateLimit,
            Some(18_750),
        ),
        (
            "[API Error: You exceeded your current quota, please check your plan and billing details. Please retry in 34.07s.]",
            RateLimit,
            Some(34),
        ),
        ("[API Error: You have exhausted your daily quota on this model.]", SpendLimit, None),
        ("[API Error: API key not valid. Please pass a valid API key.]", Auth, None),
        (
            "[API Error: The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).]",
            ContextFull,
            None,
        ),
        ("[API Error: got status: INTERNAL]", Crash, None),
    ];
    for (words, fault, wait) in cases {
        let found = failure(P::Gemini, &ended(words), Exit::Code(1), "");
        assert_eq!((found.0, found.2), (fault, wait), "{words}: {}", found.1);
    }
    assert_eq!(failure(P::Gemini, "", Exit::Code(41), "").0, Auth, "the code alone says it");
    let (fault, message, _) = failure(P::Gemini, "", Exit::Code(53), "");
    assert!(fault == Crash && message.contains("limit of turns"), "{message}");
}

#[test]
fn the_others_in_their_own_words() {
    let opencode = |error: &str| format!("{{\"type\":\"error\",\"sessionID\":\"s\",\"error\":{error}}}\n");
    let cases = [
        (r#"{"name":"APIError","data":{"message":"Too Many Requests","statusCode":429}}"#, RateLimit),
        (r#"{"name":"APIError","data":{"message":"who knows","statusCode":529}}"#, RateLimit),
        (
            r#"{"name":"APIError","data":{"message":"Insufficient balance. Manage your billing here","statusCode":401}}"#,
            SpendLimit,
        ),
        (r#"{"name":"ProviderAuthError","data":{"providerID":"x","message":"no"}}"#, Auth),
        (r#"{"name":"ContextOverflowError","data":{"message":"too big"}}"#, ContextFull),
        (r#"{"name":"UnknownError","data":{"message":"Error: Model not found: x/y."}}"#, Crash),
        (r#""just words""#, Crash),
    ];
    for (error, fault) in cases {
        assert_eq!(failure(P::Opencode, &opencode(error), Exit::Code(1), "").0, fault, "{error}");
        assert_eq!(failure(P::Opencode, &opencode(error), Exit::Code(0), "").0, fault, "{error} with code 0");
    }
    let goose = |words: &str| {
        format!(
            "{{\"type\":\"message\",\"message\":{{\"id\":null,\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":\"Ran into this error: {words}.\"}}]}}}}\n{{\"type\":\"complete\",\"total_tokens\":1}}\n"
        )
    };
    let cases = [
        ("Rate limit exceeded: slow down", RateLimit),
        ("Credits exhausted: top up", SpendLimit),
        ("Authentication error: bad key", Auth),
        ("Context length exceeded: too long", ContextFull),
        ("Server error: 500", Crash),
    ];
    for (words, fault) in cases {
        assert_eq!(failure(P::Goose, &goose(words), Exit::Code(0), "").0, fault, "{words}");
    }
}

#[test]
fn an_answer_about_a_limit_is_no_limit() {
    let line = |text: &str| {
        format!(
            "{{\"type\":\"assistant\",\"message\":{{\"id\":\"m\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}\n"
        )
    };
    let words = "The server says: rate limit exceeded, 429 Too Many Requests, not logged in";
    let mut reader = Reader::new(P::Claude);
    reader.push(line(words).as_bytes(), &mut |_| ());
    let result = format!("{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"{words}\"}}\n");
    reader.push(result.as_bytes(), &mut |_| ());
    assert_eq!(reader.finish(Exit::Code(0), words.as_bytes()).unwrap().text, words);
    // And what a model said before a crash is not why it crashed.
    assert_eq!(failure(P::Claude, &line(words), Exit::Signal(11), "").0, Crash);
    assert_eq!(failure(P::Plain, words, Exit::Code(1), "").0, Crash);
    assert_eq!(failure(P::Aider, words, Exit::Code(0), "").0, Crash);
}

#[test]
fn a_limit_that_was_waited_out_no_longer_counts() {
    let rejected = "{\"type\":\"rate_limit_event\",\"rate_limit_info\":{\"status\":\"rejected\",\"resetsAt\":1}}\n";
    let done = "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"done\"}\n";
    let mut reader = Reader::new(P::Claude);
    reader.push(format!("{rejected}{done}").as_bytes(), &mut |_| ());
    assert!(reader.finish(Exit::Code(0), b"").is_ok());
}

#[test]
fn only_the_end_of_standard_error_is_believed() {
    let old = format!("rate limit exceeded\n{}\nboom", "x".repeat(8 * 1024));
    let (fault, message, _) = failure(P::Plain, "", Exit::Code(3), &old);
    assert_eq!(fault, Crash);
    assert!(message.ends_with("boom") && message.contains("code 3"), "{message}");
    assert!(message.len() < 500, "{} bytes", message.len());
    assert!(failure(P::Plain, "", Exit::Signal(9), "").1.contains("signal 9"));
}
