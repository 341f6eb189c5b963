//! The real client against the rehearsal server, over loopback.
//!
//! Role: every fault seen through HTTP, the choice of replies, what is sent. Test code only.

use super::anthropic::{Anthropic, AnthropicConfig, AuthStyle};
use super::message::{Backend, Block, Delta, Reply, ReplyMove, Request, StopReason, ToolInput, next_move};
use super::rehearsal::{Script, Server, Speed};
use super::request::{PrefixMismatch, Thinking, ThinkingDisplay};
use super::retry::classify;
use super::{CallError, RateWindow};
use crate::model::failure::FailureClass;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

mod odd_answers;

fn raw(value: &Value) -> Arc<RawValue> {
    Arc::from(RawValue::from_string(value.to_string()).unwrap())
}

fn order(role: &str, iteration: u64) -> Arc<RawValue> {
    let order = json!({"iteration_number": iteration, "subagent_role": role}).to_string();
    raw(&json!({"role": "user", "content": [{"type": "text", "text": order}]}))
}

fn request(messages: Vec<Arc<RawValue>>) -> Request {
    Request {
        model: "rehearsal-1".into(),
        max_tokens: 1000,
        system: "You are a test.".into(),
        tools: RawValue::from_string("[]".into()).unwrap(),
        messages,
        thinking: None,
        effort: None,
        cache: None,
    }
}

async fn serve(steps: &str) -> Server {
    serve_at(steps, Speed::Instant).await
}

async fn serve_at(steps: &str, speed: Speed) -> Server {
    let script = Script::parse(&format!("rehearsal: 1\nsteps:\n{steps}\n"), "test.yaml").unwrap();
    Server::start(script, speed).await.unwrap()
}

fn client(base_url: String) -> Anthropic {
    Anthropic::new(AnthropicConfig { base_url, ..AnthropicConfig::default() }).unwrap()
}

async fn ask(client: &Anthropic, request: &Request) -> Result<Reply, CallError> {
    client.complete(request, &mut |_| {}).await
}

async fn ask_scout(server: &Server) -> Result<Reply, CallError> {
    ask(&client(server.base_url()), &request(vec![order("scout", 0)])).await
}

fn said(reply: &Reply) -> String {
    reply
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn a_whole_turn_with_thinking_text_and_calls() {
    let long = "lorem ipsum dolor sit amet é🦀 ".repeat(20);
    let server = serve(&format!(
        "  - role: scout\n    turns:\n      - thinking: hm\n        text: '{long}'\n        usage: {{ input: 1200, output: 300 }}\n        calls:\n          - {{ tool: bash, input: {{ command: 'ls é', n: 1 }} }}\n          - {{ tool: write_file, raw_input: '{{\"path\": \"x' }}\n"
    ))
    .await;
    let mut shown = (String::new(), String::new(), Vec::new(), String::new());
    let client = client(server.base_url());
    let request = request(vec![order("scout", 0)]);
    let reply = client
        .complete(&request, &mut |delta| match delta {
            Delta::Thinking(piece) => shown.0.push_str(piece),
            Delta::Text(piece) => shown.1.push_str(piece),
            Delta::ToolStarted { name } => shown.2.push(name.to_owned()),
            Delta::ToolInput(piece) => shown.3.push_str(piece),
            Delta::Usage { .. } | Delta::Limits(_) => {}
        })
        .await
        .unwrap();
    assert_eq!(shown.0, "hm");
    assert_eq!(shown.1, long);
    assert_eq!(shown.2, ["bash", "write_file"]);
    assert!(shown.3.ends_with(r#"{"path": "x"#));
    let bash = ToolInput::Json(json!({"command": "ls é", "n": 1}));
    let write = ToolInput::Malformed(r#"{"path": "x"#.into());
    assert_eq!(
        reply.blocks,
        [
            Block::Thinking { text: "hm".into() },
            Block::Text { text: long },
            Block::ToolUse { id: "toolu_scout_0_0_0".into(), name: "bash".into(), input: bash },
            Block::ToolUse { id: "toolu_scout_0_0_1".into(), name: "write_file".into(), input: write },
        ]
    );
    assert_eq!(next_move(&reply.stop, &reply.blocks), ReplyMove::RunTools);
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (1200, 300));
    assert_eq!(reply.request_id.as_deref(), Some("req_scout_0_0_0"));
    assert_eq!(reply.limits.requests.remaining, Some(999));
    assert_eq!(reply.limits.tokens, RateWindow::default());
    let message: Value = serde_json::from_str(reply.message.get()).unwrap();
    assert_eq!(message["role"], "assistant");
    assert_eq!(message["content"][3]["input"], json!({"INVALID_JSON": "{\"path\": \"x"}));
}

#[tokio::test]
async fn every_http_fault_has_its_class() {
    let server = serve(
        r#"  - role: scout
    turns:
      - text: done
        faults:
          - { http: 429, retry_after: 7, message: "slow\u001b[2J down" }
          - { http: 429, retry_after: 7, code: enforced_spend_limit_reached }
          - { http: 429, message: "Your usage limit is reached" }
          - { http: 400, message: "You have reached your specified API usage limits." }
          - { http: 402 }
          - { http: 529 }
          - { http: 500 }
          - { http: 503, kind: overloaded_error }
          - { http: 408 }
          - { http: 409 }
          - { http: 504 }
          - { http: 401 }
          - { http: 403 }
          - { http: 404 }
          - { http: 413 }
          - { http: 422 }
          - { html: 502 }
"#,
    )
    .await;
    use FailureClass::*;
    let wanted = [
        (429, RateLimited),
        (429, SpendLimit),
        (429, SpendLimit),
        (400, SpendLimit),
        (402, SpendLimit),
        (529, Overloaded),
        (500, Transient),
        (503, Overloaded),
        (408, Transient),
        (409, Transient),
        (504, Transient),
        (401, Auth),
        (403, Auth),
        (404, Fatal),
        (413, TooLarge),
        (422, Fatal),
        (502, Transient),
    ];
    for (attempt, (wanted_status, class)) in wanted.into_iter().enumerate() {
        let error = ask_scout(&server).await.unwrap_err();
        assert_eq!(classify(&error), class, "{error:?}");
        let CallError::Http { status, kind, message, retry_after, request_id, .. } = error else { panic!("{error:?}") };
        assert_eq!(status, wanted_status);
        match attempt {
            0 => {
                assert_eq!(kind, "rate_limit_error");
                assert_eq!(message, "slow\u{FFFD}[2J down");
                assert_eq!(retry_after, Some(Duration::from_secs(7)));
                assert_eq!(request_id.as_deref(), Some("req_scout_0_0_0"));
            }
            16 => assert_eq!(message, "an HTML page, not an API answer: 502 scripted fault"),
            _ => {}
        }
    }
    assert_eq!(said(&ask_scout(&server).await.unwrap()), "done");
    let attempts: Vec<usize> = server.requests().iter().map(|request| request.attempt).collect();
    assert_eq!(attempts, (0..=wanted.len()).collect::<Vec<_>>());
}

#[tokio::test]
async fn every_broken_connection_or_stream_has_its_class() {
    let server = serve(
        r#"  - role: scout
    turns:
      - text: done
        calls: [{ tool: bash, input: { command: "rm -rf build" } }]
        faults:
          - cut_after_bytes: 200
          - cut_after_bytes: 0
          - cut_after_bytes: 99999999
          - cut: reset
          - stream_error: overloaded_error
          - { stream_error: api_error, message: gone }
          - stall_ms: 60000
          - malformed_sse: true
"#,
    )
    .await;
    let mut seen = Vec::new();
    for _ in 0..8 {
        let error = ask_scout(&server).await.unwrap_err();
        seen.push((classify(&error), error));
    }
    assert_eq!(seen[0], (FailureClass::Transient, CallError::StreamCut { after_bytes: 200 }));
    assert_eq!(seen[1], (FailureClass::Transient, CallError::StreamCut { after_bytes: 0 }));
    assert!(matches!(seen[2], (FailureClass::Transient, CallError::StreamCut { after_bytes: 500.. })), "{:?}", seen[2]);
    assert!(matches!(seen[3], (FailureClass::Transient, CallError::Connect(_))), "{:?}", seen[3]);
    let stream_error =
        |kind: &str, message: &str| CallError::StreamError { kind: kind.into(), message: message.into() };
    assert_eq!(seen[4], (FailureClass::Overloaded, stream_error("overloaded_error", "scripted fault")));
    assert_eq!(seen[5], (FailureClass::Transient, stream_error("api_error", "gone")));
    assert!(matches!(seen[6], (FailureClass::Transient, CallError::StreamCut { .. })), "{:?}", seen[6]);
    assert!(matches!(seen[7], (FailureClass::Transient, CallError::BadReply(_))), "{:?}", seen[7]);
    assert_eq!(ask_scout(&server).await.unwrap().stop, StopReason::ToolUse);
}

#[tokio::test]
async fn silence_is_noticed() {
    let server =
        serve_at("  - { role: scout, turns: [{ text: x, faults: [{ stall_ms: 600000 }] }] }", Speed::Times(1.0)).await;
    let limit = Duration::from_millis(50);
    let config = AnthropicConfig { base_url: server.base_url(), idle_timeout: limit, ..AnthropicConfig::default() };
    let error = ask(&Anthropic::new(config).unwrap(), &request(vec![order("scout", 0)])).await.unwrap_err();
    assert_eq!(error, CallError::Idle(limit));
    assert_eq!(classify(&error), FailureClass::Transient);
}

#[tokio::test]
async fn nobody_listening_is_a_connect_error_and_so_is_a_stopped_server() {
    let server = serve("  - { role: scout, turns: [{ text: x }] }").await;
    let client = client(server.base_url());
    let request = request(vec![order("scout", 0)]);
    ask(&client, &request).await.unwrap();
    drop(server);
    // The listener closes when its task is next polled.
    let error = loop {
        match ask(&client, &request).await {
            Ok(_) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, CallError::Connect(_) | CallError::StreamCut { .. }), "{error:?}");
    assert_eq!(classify(&error), FailureClass::Transient);
}

#[tokio::test]
async fn replies_depend_on_the_request_alone() {
    let steps = r#"  - role: scout
    turns: [{ text: any 0 }, { text: any 1 }]
  - { role: scout, iteration: 3, turns: [{ text: three 0 }] }
  - { role: critic, iteration: 0, turns: [{ text: no, stop: refusal }] }
"#;
    let assistant = raw(&json!({"role": "assistant", "content": "x"}));
    let user = raw(&json!({"role": "user", "content": "go on"}));
    let turn = |role, iteration, turns: usize| {
        let mut messages = vec![order(role, iteration)];
        for _ in 0..turns {
            messages.extend([assistant.clone(), user.clone()]);
        }
        request(messages)
    };
    // Asked in any order, by a server that has seen nothing before: as after a kill and a resume.
    for first in 0..4 {
        let server = serve(steps).await;
        let client = client(server.base_url());
        let mut wanted = [
            (turn("scout", 0, 1), "any 1"),
            (turn("scout", 3, 0), "three 0"),
            (turn("scout", 9, 0), "any 0"),
            (turn("scout", 3, 1), "(script ended)"),
        ];
        wanted.rotate_left(first);
        for (request, text) in &wanted {
            let reply = ask(&client, request).await.unwrap();
            assert_eq!(said(&reply), *text);
            assert_eq!(reply.stop, StopReason::EndTurn);
        }
        let requests = server.requests();
        assert_eq!(requests.len(), 4);
        let at = (4 - first) % 4;
        assert_eq!((requests[at].role.as_str(), requests[at].iteration, requests[at].turn), ("scout", Some(0), 1));
        assert_eq!(requests[at].body, wanted[at].0.body());
    }
    let server = serve(steps).await;
    let client = client(server.base_url());
    let refused = ask(&client, &turn("critic", 0, 0)).await.unwrap();
    assert_eq!(refused.stop, StopReason::Refusal);
    assert_eq!(refused.stop_details.as_deref(), Some("scripted refusal"));
    let error = ask(&client, &turn("critic", 5, 2)).await.unwrap_err();
    assert_eq!(classify(&error), FailureClass::Fatal);
    let shown = error.to_string();
    assert!(shown.contains("critic") && shown.contains("iteration 5") && shown.contains("turn 2"), "{shown}");
}

#[tokio::test]
async fn equal_requests_get_equal_messages() {
    let steps = "  - { role: scout, turns: [{ thinking: a, text: b, calls: [{ tool: c }] }] }";
    let (one, two) = (serve(steps).await, serve(steps).await);
    let (first, second) = (ask_scout(&one).await.unwrap(), ask_scout(&two).await.unwrap());
    assert_eq!(first.message.get(), second.message.get());
    assert_eq!(first.usage, second.usage);
}

#[tokio::test]
async fn the_headers_that_are_sent() {
    let server = serve("  - { role: scout, turns: [{ text: x }] }").await;
    let mut with_drop = request(vec![order("scout", 0)]);
    let on_mismatch = PrefixMismatch::DropBlock;
    with_drop.thinking = Some(Thinking::Adaptive { display: ThinkingDisplay::Summarized, on_mismatch });
    for (auth, key) in [(AuthStyle::Bearer, Some("k1")), (AuthStyle::XApiKey, Some("k2")), (AuthStyle::Bearer, None)] {
        let api_key = key.map(str::to_owned);
        let config = AnthropicConfig { base_url: server.base_url(), api_key, auth, ..AnthropicConfig::default() };
        let plain = request(vec![order("scout", 0)]);
        ask(&Anthropic::new(config).unwrap(), if key.is_some() { &plain } else { &with_drop }).await.unwrap();
    }
    let requests = server.requests();
    let header = |n: usize, name: &str| {
        requests[n].headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    };
    assert_eq!((header(0, "authorization"), header(0, "x-api-key")), (Some("Bearer k1"), None));
    assert_eq!((header(1, "authorization"), header(1, "x-api-key")), (None, Some("k2")));
    assert_eq!((header(2, "authorization"), header(2, "x-api-key")), (None, None));
    assert_eq!(header(0, "anthropic-version"), Some("2026-10-21"));
    assert_eq!(header(0, "content-type"), Some("application/json"));
    assert_eq!(header(0, "anthropic-beta"), None);
    assert_eq!(header(2, "anthropic-beta"), Some("thinking-binding-controls-2026-08-01"));
}

#[tokio::test]
async fn a_request_over_the_limit_is_not_sent() {
    let server = serve("  - { role: scout, turns: [{ text: x }] }").await;
    let mut large = request(vec![order("scout", 0)]);
    large.system = "x".repeat(33 * 1024 * 1024);
    let error = ask(&client(server.base_url()), &large).await.unwrap_err();
    assert!(matches!(error, CallError::TooLarge(_)));
    assert_eq!(classify(&error), FailureClass::TooLarge);
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn many_conversations_at_once() {
    let server = serve("  - { role: scout, turns: [{ text: x, faults: [{ http: 529 }] }] }").await;
    let client = Arc::new(client(server.base_url()));
    let mut all = tokio::task::JoinSet::new();
    for iteration in 0..200 {
        let client = client.clone();
        all.spawn(async move {
            let request = request(vec![order("scout", iteration)]);
            let first = ask(&client, &request).await.unwrap_err();
            assert_eq!(classify(&first), FailureClass::Overloaded);
            said(&ask(&client, &request).await.unwrap())
        });
    }
    let replies = all.join_all().await;
    assert_eq!(replies.len(), 200);
    assert!(replies.iter().all(|reply| reply == "x"));
}
