//! What is recorded is what was sent, without what must not be seen.

use super::*;
use crate::agent::rehearsal::{Played, Script, Server, Speed, Tape};
use crate::agent::{Anthropic, AnthropicConfig, Backend, CallError, Reply, Request};
use serde_json::json;
use serde_json::value::RawValue;
use std::os::unix::fs::PermissionsExt as _;

const KEY: &str = "sk-ant-canary-0123456789-abcdefghijklmnop";

fn secrets() -> Arc<Secrets> {
    let mut secrets = Secrets::default();
    secrets.add("KEY", KEY);
    Arc::new(secrets)
}

fn request(turns: usize) -> Request {
    let raw = |value: serde_json::Value| RawValue::from_string(value.to_string()).unwrap();
    let first = json!({"role": "user", "content": "{\"subagent_role\":\"scout\",\"iteration_number\":0}"});
    let mut messages: Vec<Arc<RawValue>> = vec![Arc::from(raw(first))];
    for _ in 0..turns {
        messages.push(Arc::from(raw(json!({"role": "assistant", "content": "x"}))));
        messages.push(Arc::from(raw(json!({"role": "user", "content": "y"}))));
    }
    Request {
        model: "m".into(),
        max_tokens: 100,
        system: String::new(),
        tools: raw(json!([{"name": "bash"}, {"name": "submit_scout_report"}])),
        messages,
        thinking: None,
        effort: None,
        cache: None,
    }
}

async fn ask(server: &Server, recorder: Option<Arc<dyn Recorder>>, turns: usize) -> Result<Reply, CallError> {
    let config = AnthropicConfig {
        base_url: server.base_url(),
        api_key: Some(KEY.to_owned()),
        recorder,
        ..AnthropicConfig::default()
    };
    Anthropic::new(config).unwrap().complete(&request(turns), &mut |_| {}).await
}

async fn script(turns: serde_json::Value) -> Server {
    let text = json!({"rehearsal": 1, "steps": [{"role": "scout", "turns": turns}]}).to_string();
    Server::start(Script::parse(&text, "script").unwrap(), Speed::Instant).await.unwrap()
}

fn open(path: &Path, append: bool) -> Arc<Cassette> {
    Arc::new(Cassette::open(path, append, secrets()).unwrap())
}

fn recorder(cassette: &Arc<Cassette>) -> Option<Arc<dyn Recorder>> {
    Some(Arc::clone(cassette) as Arc<dyn Recorder>)
}

async fn player(path: &Path) -> Server {
    let tape = Tape::parse(&std::fs::read(path).unwrap(), "tape").unwrap();
    Server::start(Played::Tape(tape), Speed::Instant).await.unwrap()
}

#[tokio::test]
async fn a_played_reply_is_the_recorded_one_byte_for_byte() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.cassette");
    let live = script(json!([
        {"thinking": "Hm, é…", "text": "Words 日本", "calls": [
            {"tool": "bash", "input": {"command": "ls"}},
            {"tool": "bash", "raw_input": "{\"broken"},
        ], "faults": [{"http": 429, "retry_after": 7}, {"cut_after_bytes": 300}, {"cut": "reset"}]},
        {"text": "the end"},
    ]))
    .await;
    let cassette = open(&path, false);
    let mut recorded = Vec::new();
    for turns in [0, 0, 0, 0, 1] {
        recorded.push(ask(&live, recorder(&cassette), turns).await);
    }
    let played = player(&path).await;
    for (turns, recorded) in [0, 0, 0, 0, 1].into_iter().zip(recorded) {
        match (recorded, ask(&played, None, turns).await) {
            (Ok(one), Ok(other)) => {
                assert_eq!(one.message.get(), other.message.get());
                assert_eq!((one.usage, one.request_id, one.limits), (other.usage, other.request_id, other.limits));
            }
            (Err(one), Err(other)) => assert_eq!(one.to_string(), other.to_string()),
            (one, other) => panic!("{one:?} became {other:?}"),
        }
    }
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains(KEY), "the key was in a header only");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_secret_that_comes_in_pieces_is_not_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.cassette");
    let long = format!("{} {KEY} {}", "a".repeat(33), "b".repeat(50));
    let calls = json!([{"tool": "bash", "input": {"command": long}}]);
    let live = script(json!([{"thinking": long, "text": long, "calls": calls}])).await;
    let cassette = open(&path, false);
    let said = ask(&live, recorder(&cassette), 0).await.unwrap();
    assert!(said.message.get().contains(KEY), "the recorder changes nothing for the caller");
    let text = std::fs::read_to_string(&path).unwrap();
    // No piece of it either: each event brings 24 characters.
    for piece in ["canary-0123", "0123456789-abc", "abcdefghij"] {
        assert!(!text.contains(piece), "{piece}: {text}");
    }
    let played = ask(&player(&path).await, None, 0).await.unwrap();
    assert_eq!(played.message.get(), said.message.get().replace(KEY, "[secret:KEY]"));
}

#[tokio::test]
async fn a_cassette_that_does_not_fit_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.cassette");
    let live =
        script(json!([{"calls": [{"tool": "bash", "input": {}}]}, {"calls": [{"tool": "fly", "input": {}}]}])).await;
    let cassette = open(&path, false);
    for turns in [0, 1] {
        ask(&live, recorder(&cassette), turns).await.unwrap();
    }
    // A tool that there never was is the model's own mistake, and is played as such.
    ask(&player(&path).await, None, 1).await.unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    // As if `bash` had been taken away since.
    std::fs::write(&path, text.replace("\"bash\",\"submit", "\"shell\",\"submit").replace("bash", "shell")).unwrap();
    let played = player(&path).await;
    let error = ask(&played, None, 0).await.unwrap_err().to_string();
    assert!(error.contains("it calls `shell`, which is not offered"), "{error}");
    let error = ask(&played, None, 3).await.unwrap_err().to_string();
    assert!(error.contains("the cassette has no call for role \"scout\", iteration 0 (turn 3)"), "{error}");
}

#[tokio::test]
async fn a_full_cassette_stops_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.cassette");
    let live = script(json!([{"text": "x".repeat(5_000)}])).await;
    let cassette = Arc::new(Cassette::open_within(&path, false, secrets(), 20_000).unwrap());
    assert_eq!(cassette.stopped(), None);
    for _ in 0..20 {
        ask(&live, recorder(&cassette), 0).await.unwrap();
    }
    assert!(cassette.stopped().unwrap().contains("20000 bytes"));
    assert!(std::fs::metadata(&path).unwrap().len() < 20_200);
    let tape = Tape::parse(&std::fs::read(&path).unwrap(), "tape").unwrap();
    assert!(tape.stopped.unwrap().contains("20000 bytes"));
}

#[test]
fn a_cassette_is_never_overwritten_and_only_a_cassette_is_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    drop(open(&path, false));
    assert!(Cassette::open(&path, false, secrets()).is_err());
    // Killed in the middle of a line.
    std::fs::write(&path, format!("{HEADER}\n{}\n{{\"role\":\"sc", Line::default().text())).unwrap();
    assert!(Tape::parse(&std::fs::read(&path).unwrap(), "tape").is_ok());
    drop(open(&path, true));
    let other = dir.path().join("notes");
    std::fs::write(&other, "my notes, which are long enough").unwrap();
    assert!(Cassette::open(&other, true, secrets()).is_err());
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "my notes, which are long enough");
}
