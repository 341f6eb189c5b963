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
    assert_eq!(classify(&moved), RetryClass::Fatal);

    let ambiguous = ask_canned("HTTP/1.1 418 Teapot\r\nx-should-retry: true", b"").await.unwrap_err();
    assert_eq!(classify(&ambiguous), RetryClass::Transient);

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
