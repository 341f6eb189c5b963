//! The shared file, and fifty callers of the real client against a server that counts.

use super::*;
use crate::agent::{Anthropic, AnthropicConfig, Backend, CallError, Delta, Request};
use serde_json::value::RawValue;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

#[test]
fn a_broken_or_foreign_file_is_replaced_and_the_key_is_not_in_it() {
    let root = tempfile::tempdir().unwrap();
    let gate = RateGate::of(root.path(), "sk-secret", "m", "https://h");
    for content in ["", "{", "[]", r#"{"v":9}"#, r#"{"v":1,"colour":"red"}"#, &"x".repeat(1_000_000)] {
        fs::create_dir_all(gate.path.parent().unwrap()).unwrap();
        fs::write(&gate.path, content).unwrap();
        assert_eq!(gate.ask(now_ms(), 1, false).0, GateAnswer::Go, "{:.20}", content);
        assert!(gate.read().is_some(), "{:.20} was not replaced", content);
    }
    for entry in fs::read_dir(gate.path.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        let shown = format!("{} {}", path.display(), fs::read_to_string(&path).unwrap());
        assert!(!shown.contains("secret"), "{shown}");
    }
    let other = RateGate::of(root.path(), "sk-other", "m", "https://h");
    assert_ne!(gate.path, other.path);
    let unusable = RateGate { path: PathBuf::from("/proc/nightloop/gate.json") };
    assert_eq!(unusable.ask(now_ms(), 1, false).0, GateAnswer::Go, "without a file a run goes on alone");
}

const LIMIT: u64 = 10;
const WINDOW_MS: u64 = 250;

/// What the server saw.
#[derive(Default)]
struct Seen {
    window: u64,
    counted: u64,
    most: u64,
    calls: u64,
    refusals: u64,
}

/// A Messages API with a fixed window, that refuses now and then with a `retry-after` of its own.
async fn counting_server(listener: TcpListener, seen: Arc<Mutex<Seen>>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let seen = seen.clone();
        tokio::spawn(async move {
            let mut buffer = vec![0; 64 * 1024];
            let mut request = Vec::new();
            // The bodies here are small and end with the request's own last field.
            while !request.ends_with(b"\"stream\":true}") {
                match stream.read(&mut buffer).await {
                    Ok(n) if n > 0 => request.extend_from_slice(&buffer[..n]),
                    _ => return,
                }
            }
            let answer = answer(&mut seen.lock().unwrap());
            let _ = stream.write_all(answer.as_bytes()).await;
        });
    }
}

fn answer(seen: &mut Seen) -> String {
    let now = now_ms();
    seen.calls += 1;
    let window = now / WINDOW_MS;
    if window != seen.window {
        (seen.window, seen.counted) = (window, 0);
    }
    seen.counted += 1;
    seen.most = seen.most.max(seen.counted);
    if seen.calls == 30 || seen.calls == 60 {
        seen.refusals += 1;
        return "HTTP/1.1 429 Too Many\r\nretry-after-ms: 300\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            .to_owned();
    }
    let left = LIMIT.saturating_sub(seen.counted);
    let reset = jiff::Timestamp::from_millisecond(i64::try_from((window + 1) * WINDOW_MS).unwrap()).unwrap();
    let stream = concat!(
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1}}}\n\n",
        "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1}}\n\n",
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    );
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nanthropic-ratelimit-requests-limit: {LIMIT}\r\n\
         anthropic-ratelimit-requests-remaining: {left}\r\nanthropic-ratelimit-requests-reset: {reset}\r\n\
         connection: close\r\n\r\n{stream}"
    )
}

/// What the callers did: (asked the gate at, went at), and (refusal was in the file by, nobody before).
#[derive(Default)]
struct Calls {
    went: Vec<(u64, u64)>,
    told: Vec<(u64, u64)>,
}

/// One run's way of calling: through the gate, with the waits it is told.
async fn call_until_answered(client: &Anthropic, gate: &RateGate, request: &Request, calls: &Mutex<Calls>) {
    loop {
        let asked = now_ms();
        let (verdict, ticket) = gate.ask(now_ms(), random(), false);
        if let GateAnswer::Wait { millis, .. } = verdict {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            continue;
        }
        calls.lock().unwrap().went.push((asked, now_ms()));
        let mut on_delta = |delta: Delta<'_>| {
            if let Delta::Limits(limits) = delta {
                gate.heard(ticket, limits, now_ms());
            }
        };
        match client.complete(request, &mut on_delta).await {
            Ok(_) => return gate.close(ticket),
            Err(error @ CallError::Http { status: 429, .. }) => {
                let now = now_ms();
                gate.refused(ticket, error.retry_after(), now);
                calls.lock().unwrap().told.push((now_ms(), now + 300));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Fifty runs in five threads, each with its own client and its own handle of the file. The waits are the gate's
/// own; what is asserted is what the server counted.
#[test]
fn fifty_runs_share_a_limit() {
    let root = tempfile::tempdir().unwrap();
    let seen = Arc::new(Mutex::new(Seen::default()));
    let calls = Arc::new(Mutex::new(Calls::default()));
    let server = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = server.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let counted = seen.clone();
    let serving = std::thread::spawn(move || {
        server.block_on(async {
            tokio::select! {
                () = counting_server(listener, counted) => {}
                _ = stopped => {}
            }
        });
    });
    let callers: Vec<_> = (0..5)
        .map(|_| {
            let (root, base_url, calls) = (root.path().to_owned(), base_url.clone(), calls.clone());
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    let mut runs = tokio::task::JoinSet::new();
                    for _ in 0..10 {
                        let gate = RateGate::of(&root, "sk-secret", "m", &base_url);
                        let config = AnthropicConfig { base_url: base_url.clone(), ..AnthropicConfig::default() };
                        let calls = calls.clone();
                        runs.spawn(async move {
                            let client = Anthropic::new(config).unwrap();
                            let request = Request {
                                model: "m".into(),
                                max_tokens: 10,
                                system: String::new(),
                                tools: RawValue::from_string("[]".into()).unwrap(),
                                messages: Vec::new(),
                                thinking: None,
                                effort: None,
                                cache: None,
                            };
                            for _ in 0..2 {
                                call_until_answered(&client, &gate, &request, &calls).await;
                            }
                        });
                    }
                    runs.join_all().await;
                });
            })
        })
        .collect();
    for caller in callers {
        caller.join().unwrap();
    }
    let _ = stop.send(());
    serving.join().unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.calls, 100 + seen.refusals);
    assert_eq!(seen.refusals, 2);
    let calls = calls.lock().unwrap();
    assert_eq!(calls.told.len(), 2);
    // What was on its way when the refusal came cannot be called back; who asked after it must have waited.
    let early = |told: &(u64, u64)| calls.went.iter().filter(|went| went.0 > told.0 && went.1 < told.1).count();
    assert_eq!(calls.told.iter().map(early).sum::<usize>(), 0, "calls before the retry-after");
    assert!(seen.most <= LIMIT, "{} calls in a window of {LIMIT}", seen.most);
}
