//! The real client over loopback: against the rehearsal server, against canned answers of real servers, against
//! servers that want to be asked otherwise.

use super::super::message::{Block, ReplyMove, StopReason, ToolInput, next_move};
use super::super::rehearsal::{Script, Server, Speed};
use super::super::retry::classify;
use super::*;
use crate::model::failure::FailureClass;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

fn request() -> Request {
    let order = json!({"iteration_number": 0, "subagent_role": "scout"}).to_string();
    let message = json!({"role": "user", "content": [{"type": "text", "text": order}]}).to_string();
    Request {
        model: "rehearsal-1".into(),
        max_tokens: 1000,
        system: "You are a test.".into(),
        tools: RawValue::from_string("[]".into()).unwrap(),
        messages: vec![Arc::from(RawValue::from_string(message).unwrap())],
        thinking: None,
        effort: None,
        cache: None,
    }
}

fn client(base_url: String) -> OpenAi {
    OpenAi::new(OpenAiConfig { base_url, ..OpenAiConfig::default() }).unwrap()
}

async fn ask(client: &OpenAi) -> Result<Reply, CallError> {
    client.complete(&request(), &mut |_| {}).await
}

async fn serve(turns: &str) -> Server {
    let script = format!("rehearsal: 1\nsteps:\n  - role: scout\n    turns:\n{turns}\n");
    Server::start(Script::parse(&script, "test.yaml").unwrap(), Speed::Instant).await.unwrap()
}

fn v1(server: &Server) -> String {
    format!("{}/v1", server.base_url())
}

/// A server that hands every connection to `answer` together with the bytes of its request.
async fn custom(answer: impl Fn(String) -> Vec<Vec<u8>> + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let request = read_request(&mut stream).await;
            for piece in answer(request) {
                let _ = stream.write_all(&piece).await;
                let _ = stream.flush().await;
            }
            let _ = stream.shutdown().await;
        }
    });
    format!("http://{address}/v1")
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
            if body.len() >= length.parse().unwrap() {
                return text;
            }
        }
        match stream.read(&mut buffer).await {
            Ok(n) if n > 0 => bytes.extend_from_slice(&buffer[..n]),
            _ => return text,
        }
    }
}

fn answer(head: &str, body: &[u8]) -> Vec<u8> {
    [b"HTTP/1.1 ", head.as_bytes(), b"\r\nconnection: close\r\n\r\n", body].concat()
}

async fn ask_canned(head: &str, body: &[u8]) -> Result<Reply, CallError> {
    let whole = answer(head, body);
    ask(&client(custom(move |_| vec![whole.clone()]).await)).await
}

const STREAM: &str = "200 OK\r\ncontent-type: text/event-stream";
const JSON: &str = "200 OK\r\ncontent-type: application/json; charset=utf-8";

#[tokio::test]
async fn a_whole_turn_with_thinking_text_and_calls() {
    let server = serve(
        r#"      - thinking: hm
        text: "I look é🦀."
        usage: { input: 1200, output: 300 }
        calls:
          - { tool: bash, input: { command: 'ls é', n: 1 } }
          - { tool: write_file, raw_input: '{"path": "x' }"#,
    )
    .await;
    let mut shown = (String::new(), String::new(), Vec::new());
    let client = client(v1(&server));
    let reply = client
        .complete(&request(), &mut |delta| match delta {
            Delta::Thinking(piece) => shown.0.push_str(piece),
            Delta::Text(piece) => shown.1.push_str(piece),
            Delta::ToolStarted { name } => shown.2.push(name.to_owned()),
            Delta::ToolInput(_) | Delta::Usage { .. } | Delta::Limits(_) => {}
        })
        .await
        .unwrap();
    assert_eq!(shown, ("hm".into(), "I look é🦀.".into(), vec!["bash".to_owned(), "write_file".to_owned()]));
    let bash = ToolInput::Json(json!({"command": "ls é", "n": 1}));
    let write = ToolInput::Malformed(r#"{"path": "x"#.into());
    assert_eq!(
        reply.blocks,
        [
            Block::Thinking { text: "hm".into() },
            Block::Text { text: "I look é🦀.".into() },
            Block::ToolUse { id: "call_scout_0_0_0".into(), name: "bash".into(), input: bash },
            Block::ToolUse { id: "call_scout_0_0_1".into(), name: "write_file".into(), input: write },
        ]
    );
    assert_eq!(next_move(&reply.stop, &reply.blocks), ReplyMove::RunTools);
    assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (1200, 300));
    assert_eq!(reply.request_id.as_deref(), Some("req_scout_0_0_0"));
    assert_eq!(reply.limits.requests.remaining, Some(999));
    assert!(reply.limits.requests.reset.is_some());
    let sent: Value = serde_json::from_slice(&server.requests()[0].body).unwrap();
    assert_eq!(sent["messages"][0], json!({"role": "system", "content": "You are a test."}));
}

#[tokio::test]
async fn every_fault_has_its_class() {
    let server = serve(
        r#"      - text: done
        calls: [{ tool: bash, input: { command: "rm -rf build" } }]
        faults:
          - { http: 429, retry_after: 7, message: "slow\u001b[2J down" }
          - { http: 429, kind: insufficient_quota, code: insufficient_quota }
          - { http: 400, code: context_length_exceeded }
          - { http: 400, message: "This model's maximum context length is 8192 tokens." }
          - { http: 400 }
          - { http: 401 }
          - { http: 403 }
          - { http: 404 }
          - { http: 500 }
          - { http: 503 }
          - { html: 502 }
          - cut_after_bytes: 200
          - cut_after_bytes: 99999999
          - cut: reset
          - { stream_error: rate_limit_error }
          - stall_ms: 60000
          - malformed_sse: true"#,
    )
    .await;
    use FailureClass::*;
    let client = client(v1(&server));
    let wanted = [
        RateLimited,
        SpendLimit,
        TooLarge,
        TooLarge,
        Fatal,
        Auth,
        Auth,
        Fatal,
        Transient,
        Transient,
        Transient,
        Transient,
        Transient,
        Transient,
        RateLimited,
        Transient,
        Transient,
    ];
    let mut errors = Vec::new();
    for class in wanted {
        let error = ask(&client).await.unwrap_err();
        assert_eq!(classify(&error), class, "{error:?}");
        errors.push(error);
    }
    let CallError::Http { status: 429, message, retry_after, request_id, .. } = &errors[0] else { panic!() };
    assert_eq!(message, "slow\u{FFFD}[2J down");
    assert_eq!(*retry_after, Some(Duration::from_secs(7)));
    assert_eq!(request_id.as_deref(), Some("req_scout_0_0_0"));
    assert!(errors[10].to_string().contains("an HTML page, not an API answer: 502 scripted fault"));
    assert_eq!(errors[11], CallError::StreamCut { after_bytes: 200 });
    // All but the last byte: every call is there, and the reason to finish; still void.
    assert!(matches!(errors[12], CallError::StreamCut { after_bytes: 500.. }), "{:?}", errors[12]);
    assert!(matches!(errors[16], CallError::BadReply(_)));
    assert_eq!(ask(&client).await.unwrap().stop, StopReason::ToolUse);
}

#[tokio::test]
async fn every_sample_over_the_wire_whole_byte_by_byte_and_cut() {
    for sample in samples::all() {
        let whole = ask_canned(STREAM, &sample.bytes).await.unwrap();
        assert_eq!(whole.message.get(), sample.message, "{}", sample.name);
        let bytes = sample.bytes.clone();
        let single = custom(move |_| {
            let mut pieces = vec![answer(STREAM, b"")];
            pieces.extend(bytes.iter().map(|byte| vec![*byte]));
            pieces
        })
        .await;
        assert_eq!(ask(&client(single)).await.unwrap().message.get(), sample.message, "{}", sample.name);
        // Cut while the answer says that more will come: never whole before `[DONE]`.
        let chunked = "200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked";
        for cut in [1, sample.bytes.len() / 2, sample.bytes.len() - 3] {
            let part = [format!("{cut:x}\r\n").as_bytes(), &sample.bytes[..cut], b"\r\n"].concat();
            let error = ask_canned(chunked, &part).await.unwrap_err();
            assert_eq!(error, CallError::StreamCut { after_bytes: cut as u64 }, "{} at {cut}", sample.name);
        }
    }
}

#[tokio::test]
async fn answers_that_are_no_stream() {
    let body = br#"{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}"#;
    let reply = ask_canned(JSON, body).await.unwrap();
    assert_eq!(reply.blocks, [Block::Text { text: "hi".into() }]);
    assert!(reply.usage.input_tokens > 20, "estimated from the body: {:?}", reply.usage);

    let error =
        ask_canned(JSON, br#"{"error":{"message":"loading model","type":"unavailable_error","code":503}}"#).await;
    assert_eq!(
        error.unwrap_err(),
        CallError::StreamError { kind: "api_error".into(), message: "loading model".into() }
    );

    let page = ask_canned("200 OK\r\ncontent-type: text/html", b"<html><title>Log in</title>").await.unwrap_err();
    assert_eq!(page, CallError::BadReply("no event stream: an HTML page, not an API answer: Log in".into()));

    let cut = ask_canned(&format!("{JSON}\r\ncontent-length: 9999"), body).await.unwrap_err();
    assert_eq!(cut, CallError::StreamCut { after_bytes: body.len() as u64 });

    let moved = ask_canned("307 Moved\r\nlocation: http://127.0.0.1:1/steal", b"").await.unwrap_err();
    assert!(matches!(moved, CallError::Http { status: 307, .. }), "{moved:?}");

    let flood = vec![b' '; 33 * 1024 * 1024];
    assert!(matches!(ask_canned(JSON, &flood).await.unwrap_err(), CallError::TooLarge(_)));
}

/// A server with opinions: what it was sent, and a refusal as long as `refuses` finds one.
async fn picky(refuses: fn(&Value) -> Option<&'static str>) -> (String, Arc<Mutex<Vec<Value>>>) {
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let noted = Arc::clone(&seen);
    let base = custom(move |request| {
        let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
        let refusal = refuses(&body);
        noted.lock().unwrap().push(body);
        vec![match refusal {
            Some(words) => {
                let error = json!({"error": {"message": words, "type": "invalid_request_error", "code": "unsupported_parameter"}});
                answer("400 Bad Request\r\ncontent-type: application/json", error.to_string().as_bytes())
            }
            None => answer(STREAM, &samples::stream(&[samples::bare(r#"{"content":"hi"}"#, r#""stop""#)])),
        }]
    })
    .await;
    (base, seen)
}

#[tokio::test]
async fn the_other_name_of_the_limit_is_learnt_once() {
    let (base, seen) = picky(|body| {
        let words = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
        (!body["max_tokens"].is_null()).then_some(words)
    })
    .await;
    let client = client(base);
    ask(&client).await.unwrap();
    ask(&client).await.unwrap();
    let seen = seen.lock().unwrap();
    let limits: Vec<_> =
        seen.iter().map(|body| (body["max_tokens"].as_u64(), body["max_completion_tokens"].as_u64())).collect();
    assert_eq!(limits, [(Some(1000), None), (None, Some(1000)), (None, Some(1000))]);
}

#[tokio::test]
async fn a_server_that_knows_neither_word_is_asked_for_both_and_no_more() {
    let (base, seen) = picky(|body| match (&body["stream_options"], &body["max_completion_tokens"]) {
        (Value::Null, Value::Null) => Some("max_completion_tokens is missing"),
        (Value::Null, _) => None,
        _ => Some("stream_options: Extra inputs are not permitted"),
    })
    .await;
    let patient = client(base);
    ask(&patient).await.unwrap();
    assert_eq!(seen.lock().unwrap().len(), 3);

    let (base, seen) = picky(|_| Some("neither max_tokens nor max_completion_tokens nor stream_options")).await;
    let stubborn = client(base);
    let error = ask(&stubborn).await.unwrap_err();
    assert_eq!(classify(&error), FailureClass::Fatal);
    assert_eq!(seen.lock().unwrap().len(), 3);
    ask(&stubborn).await.unwrap_err();
    assert_eq!(seen.lock().unwrap().len(), 4, "nothing is left to try");
}

#[tokio::test]
async fn silence_is_noticed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let idle_timeout = Duration::from_millis(50);
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    let silent = OpenAi::new(OpenAiConfig { base_url, idle_timeout, ..OpenAiConfig::default() }).unwrap();
    assert_eq!(ask(&silent).await.unwrap_err(), CallError::Idle(idle_timeout));
}

#[tokio::test]
async fn the_key_is_sent_and_never_shown() {
    let server = serve("      - text: x").await;
    for key in [Some("sk-secret"), None] {
        let api_key = key.map(str::to_owned);
        let config = OpenAiConfig { base_url: v1(&server), api_key, ..OpenAiConfig::default() };
        ask(&OpenAi::new(config).unwrap()).await.unwrap();
    }
    let sent: Vec<Option<String>> = server
        .requests()
        .iter()
        .map(|request| request.headers.iter().find(|(name, _)| name == "authorization").map(|(_, v)| v.clone()))
        .collect();
    assert_eq!(sent, [Some("Bearer sk-secret".to_owned()), None]);

    let base_url = "https://user:sk-secret@example.org/v1".to_owned();
    let config = OpenAiConfig { base_url, api_key: Some("sk-secret".into()), ..OpenAiConfig::default() };
    let client = OpenAi::new(config.clone()).unwrap();
    let shown = format!("{config:?} {client:?} {:?}", client.headers);
    assert!(!shown.contains("sk-secret") && shown.contains("example.org"), "{shown}");
    let error = OpenAi::new(OpenAiConfig { api_key: Some("sk-secret\n\u{1}".into()), ..config }).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("secret"));
}

#[tokio::test]
async fn a_request_over_the_limit_is_not_sent() {
    let server = serve("      - text: x").await;
    let mut large = request();
    large.system = "x".repeat(33 * 1024 * 1024);
    let error = client(v1(&server)).complete(&large, &mut |_| {}).await.unwrap_err();
    assert!(matches!(error, CallError::TooLarge(_)));
    assert!(server.requests().is_empty());
}

#[test]
fn the_endpoint_keeps_what_was_written() {
    for (base, wanted) in [
        ("https://h/v1", "https://h/v1/chat/completions"),
        (" https://h/v1/ ", "https://h/v1/chat/completions"),
        ("http://h:8080", "http://h:8080/chat/completions"),
        ("https://h/api/openai", "https://h/api/openai/chat/completions"),
    ] {
        assert_eq!(endpoint(base).unwrap().as_str(), wanted);
    }
    for bad in ["", "h", "ftp://h", "https://"] {
        assert!(matches!(endpoint(bad), Err(CallError::Config(_))), "{bad}");
    }
    assert!(is_local("http://127.0.0.1:11434/v1") && is_local("http://localhost:1234"));
    assert!(!is_local("https://api.openai.com/v1") && !is_local("nonsense"));
}
