//! The shelf over its real socket.

use std::path::PathBuf;

use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use super::client::Caller;
use super::*;

fn tool(name: &str) -> ToolSpecJson {
    ToolSpecJson {
        name: name.to_owned(),
        description: "says it again".to_owned(),
        input_schema: json!({"type": "object", "properties": {"text": {"type": "string"}}}),
    }
}

fn env<'a>(offer: &'a Offer, name: &str) -> &'a str {
    offer.env.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).unwrap()
}

async fn connected(shelf: &ToolServer) -> (Caller, Vec<ToolSpecJson>) {
    let offer = shelf.offer(Path::new("/bin/nightloop"));
    Caller::connect(Path::new(env(&offer, SOCKET_VAR)), env(&offer, TOKEN_VAR)).await.unwrap()
}

/// Waits for what must come, and not for ever.
async fn soon<T>(what: &str, wanted: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), wanted).await.unwrap_or_else(|_| panic!("never came: {what}"))
}

#[tokio::test]
async fn tools_are_listed_and_calls_are_answered_under_our_ids() {
    let dir = tempfile::tempdir().unwrap();
    let (calls, mut called) = mpsc::channel(8);
    let shelf = ToolServer::open(dir.path(), vec![tool("echo"), tool("report")], calls).unwrap();
    let (caller, tools) = connected(&shelf).await;
    assert_eq!(tools, vec![tool("echo"), tool("report")]);
    let engine = async {
        for number in 1..=2 {
            let call: Call = called.recv().await.unwrap();
            assert_eq!(call.id, format!("m{number}"));
            let text = format!("{} {}", call.name, call.input["text"]);
            call.reply.send(Answer { text, is_error: number == 2 }).unwrap();
        }
    };
    let program = async {
        let first = caller.call("echo".into(), json!({"text": "one"})).await;
        assert_eq!(first, Answer { text: "echo \"one\"".into(), is_error: false });
        let second = caller.call("report".into(), json!({"text": 2})).await;
        assert_eq!(second, Answer { text: "report 2".into(), is_error: true });
        let unknown = caller.call("rm".into(), json!({})).await;
        assert!(unknown.is_error && unknown.text.contains("no such tool"), "{}", unknown.text);
    };
    soon("the calls", async { tokio::join!(engine, program) }).await;
    assert!(called.try_recv().is_err(), "a tool that is not listed reached the engine");
}

#[tokio::test]
async fn a_wrong_token_learns_nothing_and_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (calls, _called) = mpsc::channel(1);
    let shelf = ToolServer::open(dir.path(), vec![tool("secret_name")], calls).unwrap();
    let right = env(&shelf.offer(Path::new("x")), TOKEN_VAR).to_owned();
    let wrong = right.replace(|c: char| c != '0', "0");
    for token in ["", "0", &wrong, &right[..31]] {
        let error = soon("a refusal", Caller::connect(shelf.socket(), token)).await.unwrap_err();
        let said = error.to_string();
        assert!(said.contains("token") && !said.contains("secret_name") && !said.contains(&right), "{said}");
        assert_eq!(error.exit_code(), 64);
    }
    assert_eq!(shelf.refused(), 4);
    assert_eq!(connected(&shelf).await.1.len(), 1);
    assert_eq!(shelf.refused(), 4);
}

#[tokio::test]
async fn every_token_is_new() {
    let dir = tempfile::tempdir().unwrap();
    let (calls, _called) = mpsc::channel(1);
    let one = ToolServer::open(dir.path(), vec![], calls.clone()).unwrap();
    let two = ToolServer::open(dir.path(), vec![], calls).unwrap();
    assert_eq!(one.token.len(), 32);
    assert_ne!(one.token, two.token);
    assert_ne!(one.socket(), two.socket());
}

#[tokio::test]
async fn the_socket_is_private_and_goes_with_the_shelf() {
    let dir = tempfile::tempdir().unwrap();
    let (calls, mut called) = mpsc::channel(1);
    let shelf = ToolServer::open(dir.path(), vec![tool("echo")], calls).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(shelf.socket()), 0o600);
    assert_eq!(mode(shelf.socket().parent().unwrap()), 0o700);
    assert!(shelf.socket().starts_with(dir.path()));

    // Who waits for an answer when the shelf goes is told so.
    let (caller, _) = connected(&shelf).await;
    let engine = async {
        let call = called.recv().await.unwrap();
        drop(shelf);
        call
    };
    let (call, answer) =
        soon("the refusal", async { tokio::join!(engine, caller.call("echo".into(), json!({}))) }).await;
    assert!(answer.is_error && answer.text.contains("gone"), "{}", answer.text);
    assert!(call.reply.is_closed());
    let later = soon("a later call", caller.call("echo".into(), json!({}))).await;
    assert!(later.is_error, "{}", later.text);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "something was left behind");
}

#[tokio::test]
async fn a_long_run_directory_gets_a_short_socket() {
    let dir = tempfile::tempdir().unwrap();
    let long = dir.path().join("x".repeat(120));
    std::fs::create_dir(&long).unwrap();
    let (calls, _called) = mpsc::channel(1);
    let shelf = ToolServer::open(&long, vec![], calls).unwrap();
    let socket = shelf.socket().to_owned();
    assert!(socket.as_os_str().len() <= MAX_SOCKET_PATH, "{}", socket.display());
    assert_eq!(std::fs::metadata(socket.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    connected(&shelf).await;
    drop(shelf);
    assert!(!socket.parent().unwrap().exists());
}

#[tokio::test]
async fn a_call_that_the_engine_drops_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let (calls, mut called) = mpsc::channel(1);
    let shelf = ToolServer::open(dir.path(), vec![tool("echo")], calls).unwrap();
    let (caller, _) = connected(&shelf).await;
    let engine = async { drop(called.recv().await) };
    let ((), answer) = soon("an answer", async { tokio::join!(engine, caller.call("echo".into(), json!({}))) }).await;
    assert!(answer.is_error && answer.text.contains("did not answer"), "{}", answer.text);
    drop(called);
    let answer = soon("an answer", caller.call("echo".into(), json!({}))).await;
    assert!(answer.is_error && answer.text.contains("no more calls"), "{}", answer.text);
}

#[tokio::test]
async fn the_fifth_connection_is_refused_until_one_goes() {
    let dir = tempfile::tempdir().unwrap();
    let (calls, _called) = mpsc::channel(1);
    let shelf = ToolServer::open(dir.path(), vec![], calls).unwrap();
    let mut held = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        held.push(connected(&shelf).await.0);
    }
    let token = shelf.token.clone();
    let error = soon("a refusal", Caller::connect(shelf.socket(), &token)).await.unwrap_err().to_string();
    assert!(error.contains("too many connections") || error.contains("does not answer"), "{error}");
    drop(held);
    soon("a free place", async { while Caller::connect(shelf.socket(), &token).await.is_err() {} }).await;
}

#[tokio::test]
async fn beyond_64_calls_in_flight_the_next_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (calls, mut called) = mpsc::channel(MAX_CALLS);
    let shelf = ToolServer::open(dir.path(), vec![tool("echo")], calls).unwrap();
    let (caller, _) = connected(&shelf).await;
    let caller = Arc::new(caller);
    let mut programs = JoinSet::new();
    let mut waiting = Vec::new();
    for _ in 0..MAX_CALLS {
        let caller = caller.clone();
        programs.spawn(async move { caller.call("echo".into(), json!({})).await });
        waiting.push(soon("a call", called.recv()).await.unwrap());
    }
    let refused = soon("a refusal", caller.call("echo".into(), json!({}))).await;
    assert!(refused.is_error && refused.text.contains("64 calls"), "{}", refused.text);
    for call in waiting {
        call.reply.send(Answer { text: String::new(), is_error: false }).unwrap();
    }
    while let Some(answer) = soon("an answer", programs.join_next()).await {
        assert!(!answer.unwrap().is_error);
    }
}

#[tokio::test]
async fn long_input_is_refused_and_long_answers_are_cut() {
    let dir = tempfile::tempdir().unwrap();
    let (calls, mut called) = mpsc::channel(1);
    let shelf = ToolServer::open(dir.path(), vec![tool("echo")], calls).unwrap();
    let (caller, _) = connected(&shelf).await;
    let refused = soon("a refusal", caller.call("echo".into(), json!({"text": "x".repeat(MAX_LINE)}))).await;
    assert!(refused.is_error && refused.text.contains("too long"), "{}", refused.text);
    let engine = async {
        let call = called.recv().await.unwrap();
        call.reply.send(Answer { text: "\u{1}".repeat(4 * MAX_LINE), is_error: false }).unwrap();
    };
    let ((), answer) = soon("an answer", async { tokio::join!(engine, caller.call("echo".into(), json!({}))) }).await;
    assert!(!answer.is_error && answer.text.ends_with("bytes left out]"));
}

#[tokio::test]
async fn nonsense_ends_the_connection_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let (calls, _called) = mpsc::channel(1);
    let shelf = ToolServer::open(dir.path(), vec![], calls).unwrap();
    let socket: PathBuf = shelf.socket().to_owned();
    for nonsense in [b"nonsense\n".to_vec(), b"{}\n".to_vec(), vec![b'x'; MAX_LINE + 1], b"\xff\xfe\n".to_vec()] {
        let mut stream = UnixStream::connect(&socket).await.unwrap();
        // It may be closed while we still write.
        let _ = stream.write_all(&nonsense).await;
        let mut said = Vec::new();
        let _ = soon("the end", tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut said)).await;
        assert!(!String::from_utf8_lossy(&said).contains("tools"), "it learned something");
    }
    connected(&shelf).await;
}

#[tokio::test]
async fn tools_with_one_name_are_not_offered() {
    let dir = tempfile::tempdir().unwrap();
    let (calls, _called) = mpsc::channel(1);
    let error = ToolServer::open(dir.path(), vec![tool("echo"), tool("echo")], calls).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn without_a_runtime_there_is_an_error_and_no_panic() {
    let dir = tempfile::tempdir().unwrap();
    let (calls, _called) = mpsc::channel(1);
    assert!(ToolServer::open(dir.path(), vec![], calls).is_err());
}
