//! Answers that no Messages API sends: portals, gateways, floods. Test code only.

use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A server that gives each connection the same bytes and closes.
async fn canned(answer: Vec<u8>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = [0; 64 * 1024];
            let _ = stream.read(&mut buffer).await;
            let _ = stream.write_all(&answer).await;
            let _ = stream.shutdown().await;
            while stream.read(&mut buffer).await.is_ok_and(|n| n > 0) {}
        }
    });
    format!("http://{address}")
}

async fn ask_canned(head: &str, body: &[u8]) -> Result<Reply, CallError> {
    let answer = [head.as_bytes(), b"\r\nconnection: close\r\n\r\n", body].concat();
    ask(&client(canned(answer).await), &request(vec![order("scout", 0)])).await
}

#[tokio::test]
async fn answers_that_no_api_sends() {
    let html =
        ask_canned("HTTP/1.1 200 OK\r\ncontent-type: text/html", b"<html><title>Log in</title>").await.unwrap_err();
    assert_eq!(html, CallError::BadReply("no event stream: an HTML page, not an API answer: Log in".into()));

    let json = br#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#;
    let error = ask_canned("HTTP/1.1 200 OK\r\ncontent-type: application/json", json).await.unwrap_err();
    assert_eq!(error, CallError::StreamError { kind: "overloaded_error".into(), message: "busy".into() });

    let moved = ask_canned("HTTP/1.1 307 Moved\r\nlocation: http://127.0.0.1:1/steal", b"").await.unwrap_err();
    assert!(matches!(moved, CallError::Http { status: 307, .. }), "{moved:?}");
    assert_eq!(classify(&moved), FailureClass::Fatal);

    let ambiguous = ask_canned("HTTP/1.1 418 Teapot\r\nx-should-retry: true", b"").await.unwrap_err();
    assert_eq!(classify(&ambiguous), FailureClass::Transient);

    let nonsense = ask_canned("SSH-2.0-OpenSSH", b"").await.unwrap_err();
    assert!(matches!(nonsense, CallError::Connect(_)), "{nonsense:?}");

    let clean_end =
        ask_canned("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream", b"event: ping\n").await.unwrap_err();
    assert_eq!(clean_end, CallError::StreamCut { after_bytes: 12 });

    let untyped = &crate::agent::sample_streams::all()[0];
    let reply = ask_canned("HTTP/1.1 200 OK\r\nx: y", &untyped.bytes).await.unwrap();
    assert_eq!(reply.message.get(), untyped.message);
}

#[tokio::test]
async fn huge_hostile_answers_are_bounded() {
    let flood = "\u{1b}]0;x\u{7}".repeat(1_000_000);
    let error = ask_canned("HTTP/1.1 500 \x01\r\nrequest-id: \u{e9}", flood.as_bytes()).await.unwrap_err();
    let shown = format!("{error}");
    assert!(shown.chars().count() < 1000 && !shown.chars().any(char::is_control), "{shown}");

    let endless = [b"data: ".as_slice(), &vec![b'x'; 10 * 1024 * 1024]].concat();
    let error = ask_canned("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream", &endless).await.unwrap_err();
    assert!(matches!(error, CallError::TooLarge(_)), "{error:?}");
}

/// A server that answers each path with its own JSON, and tells what it was asked.
async fn aside(answers: Vec<(&'static str, &'static str)>) -> (String, Arc<std::sync::Mutex<Vec<String>>>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = asked.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = vec![0; 64 * 1024];
            let read = stream.read(&mut buffer).await.unwrap_or(0);
            let request = String::from_utf8_lossy(&buffer[..read]).into_owned();
            let answer = answers.iter().find(|(path, _)| request.split(' ').nth(1) == Some(path));
            let (status, body) = answer.map_or(("404 Not Found", "{}"), |(_, body)| ("200 OK", *body));
            seen.lock().unwrap().push(request);
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(head.as_bytes()).await;
            let _ = stream.write_all(body.as_bytes()).await;
        }
    });
    (format!("http://{address}"), asked)
}

#[tokio::test]
async fn a_model_and_a_count_are_asked_for_aside() {
    let model = r#"{"id":"m","max_input_tokens":200000,"max_tokens":64000,"capabilities":null}"#;
    let (base, asked) = aside(vec![
        ("/v1/models/m", model),
        ("/v1/models/..%2F..%2Fkeys", model),
        ("/v1/models/odd", r#"{"max_input_tokens":-1,"max_tokens":"many"}"#),
        ("/v1/models/page", "<html>"),
        ("/v1/messages/count_tokens", r#"{"input_tokens": 2095}"#),
    ])
    .await;
    let client = client(base);
    let limits = client.model_limits("m").await.unwrap();
    assert_eq!((limits.max_input_tokens, limits.max_tokens), (Some(200_000), Some(64_000)));
    assert!(client.model_limits("../../keys").await.is_some(), "a name stays one segment of the path");
    for none in ["odd", "page", "unknown"] {
        assert_eq!(client.model_limits(none).await, None, "{none}");
    }
    let request = request(vec![order("scout", 0)]);
    assert_eq!(client.count_tokens(&request).await, Some(2_095));
    let last = asked.lock().unwrap().last().unwrap().clone();
    assert!(last.starts_with("POST /v1/messages/count_tokens ") && !last.contains("max_tokens"), "{last}");
    let nobody = super::client("http://127.0.0.1:1".into());
    assert_eq!((nobody.count_tokens(&request).await, nobody.model_limits("m").await), (None, None));
}

#[tokio::test]
async fn what_the_server_counted_is_told_before_a_reply_breaks_off() {
    let start = br#"event: message_start
data: {"type":"message_start","message":{"usage":{"input_tokens":7,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20},"output_tokens":1}}}

"#;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nanthropic-ratelimit-requests-remaining: 3";
    let answer = [head.as_bytes(), b"\r\nconnection: close\r\n\r\n", start].concat();
    let client = client(canned(answer).await);
    let (mut counted, mut left) = (None, None);
    let cut = client
        .complete(&request(vec![order("scout", 0)]), &mut |delta| match delta {
            Delta::Usage { usage, last } => counted = Some((usage, last)),
            Delta::Limits(limits) => left = limits.requests.remaining,
            Delta::Text(_) | Delta::Thinking(_) | Delta::ToolStarted { .. } | Delta::ToolInput(_) => {}
        })
        .await
        .unwrap_err();
    assert!(matches!(cut, CallError::StreamCut { .. }));
    let (usage, last) = counted.unwrap();
    assert_eq!((usage.prompt(), usage.cache_creation_1h_input_tokens, last), (37, Some(20), false));
    assert_eq!(left, Some(3));
}
