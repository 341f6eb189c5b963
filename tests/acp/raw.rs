//! Agents that do not keep to the protocol: their lines are written by hand.

use nightloop::agent::{CallError, ProgramFault};
use nightloop::model::act::Act;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};

use crate::stage::{Seen, Stage, task};

/// The agent's end of the line.
struct Hand {
    lines: Lines<BufReader<DuplexStream>>,
    writer: DuplexStream,
}

impl Hand {
    fn new(reader: DuplexStream, writer: DuplexStream) -> Self {
        Self { lines: BufReader::new(reader).lines(), writer }
    }

    async fn write(&mut self, line: impl AsRef<[u8]>) {
        // The other end may stop listening, which is what some cases are about.
        let _ = self.writer.write_all(line.as_ref()).await;
        let _ = self.writer.write_all(b"\n").await;
    }

    /// The next message of the client.
    async fn hear(&mut self) -> Value {
        match self.lines.next_line().await {
            Ok(Some(line)) => serde_json::from_str(&line).unwrap(),
            _ => std::future::pending().await,
        }
    }

    /// Answers the next request, which must be this one.
    async fn answer(&mut self, method: &str, result: Value) -> Value {
        let asked = self.hear().await;
        assert_eq!(asked["method"], method);
        self.write(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string()).await;
        asked
    }

    async fn until_prompt(&mut self) -> Value {
        self.answer("initialize", json!({"protocolVersion": 1})).await;
        self.answer("session/new", json!({"sessionId": "s"})).await;
        self.hear().await
    }

    async fn say(&mut self, text: &str) {
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
        let params = json!({"sessionId": "s", "update": update});
        self.write(json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string()).await;
    }

    async fn end(&mut self, prompt: &Value) {
        let result = json!({"stopReason": "end_turn"});
        self.write(json!({"jsonrpc": "2.0", "id": prompt["id"], "result": result}).to_string()).await;
    }
}

async fn with<F: Future<Output = ()> + Send + 'static>(agent: impl FnOnce(Hand) -> F) -> Seen {
    let dir = tempfile::tempdir().unwrap();
    let task = task(dir.path(), "the prompt");
    Stage::default().with(&task, |reader, writer| agent(Hand::new(reader, writer))).await
}

#[tokio::test]
async fn we_offer_no_files_and_no_terminal_and_send_role_and_prompt() {
    let (told, heard) = tokio::sync::oneshot::channel();
    with(async |mut hand| {
        let hello = hand.answer("initialize", json!({"protocolVersion": 1})).await;
        let new = hand.answer("session/new", json!({"sessionId": "s"})).await;
        let prompt = hand.hear().await;
        told.send((hello["params"].clone(), new["params"].clone(), prompt["params"].clone())).unwrap();
        hand.end(&prompt).await;
    })
    .await;
    let (hello, new, prompt) = heard.await.unwrap();
    assert_eq!(hello["protocolVersion"], 1);
    assert_eq!(hello["clientCapabilities"]["terminal"], json!(false));
    assert_eq!(hello["clientCapabilities"]["fs"], json!({"readTextFile": false, "writeTextFile": false}));
    assert_eq!(new["mcpServers"], json!([]));
    let texts: Vec<_> = prompt["prompt"].as_array().unwrap().iter().map(|block| block["text"].clone()).collect();
    assert_eq!(texts, [json!("You are the Solver of one iteration."), json!("the prompt")]);
}

#[tokio::test]
async fn noise_between_messages_is_left_out_and_told() {
    let seen = with(async |mut hand| {
        hand.write("npm notice: a new version is there").await;
        let prompt = hand.until_prompt().await;
        hand.write("").await;
        hand.write("{\"jsonrpc\":\"2.0\",").await;
        hand.write("[1,2,3]").await;
        hand.write(b"\xff\xfe\x00").await;
        hand.write("[".repeat(10_000)).await;
        hand.write("{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}").await;
        hand.write(json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s"}}).to_string())
            .await;
        hand.write(json!({"jsonrpc": "2.0", "method": "session/update", "params": 5}).to_string()).await;
        hand.write(json!({"jsonrpc": "2.0", "method": "_vendor/hello", "params": {}}).to_string()).await;
        hand.say("fine").await;
        hand.end(&prompt).await;
    })
    .await;
    assert_eq!(seen.finished().text, "fine");
    let notes = seen.notes().join("\n");
    assert!(notes.contains("7 lines that it wrote were no ACP messages"), "{notes}");
    assert!(notes.contains("1 of its updates were not understood"), "{notes}");
}

#[tokio::test]
async fn an_unknown_request_is_answered_not_found() {
    let (told, heard) = tokio::sync::oneshot::channel();
    let seen = with(async |mut hand| {
        let prompt = hand.until_prompt().await;
        hand.write(json!({"jsonrpc": "2.0", "id": "x", "method": "no/such", "params": {}}).to_string()).await;
        let _ = told.send(hand.hear().await);
        hand.end(&prompt).await;
    })
    .await;
    seen.finished();
    let answer = heard.await.unwrap();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("x"), &json!(-32601)));
}

#[tokio::test]
async fn the_words_of_another_session_are_not_ours() {
    let seen = with(async |mut hand| {
        let prompt = hand.until_prompt().await;
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "other"}});
        let params = json!({"sessionId": "t", "update": update});
        hand.write(json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string()).await;
        hand.say("ours").await;
        hand.end(&prompt).await;
    })
    .await;
    assert_eq!(seen.acts, vec![Act::Said { text: "ours".into() }]);
}

#[tokio::test]
async fn a_line_without_end_is_not_read_to_its_end() {
    let seen = with(async |mut hand| {
        hand.until_prompt().await;
        loop {
            if hand.writer.write_all(&[b'x'; 65_536]).await.is_err() {
                return;
            }
        }
    })
    .await;
    assert!(matches!(&seen.result, Err(CallError::TooLarge(why)) if why.contains("8 MiB")), "{:?}", seen.result);
}

#[tokio::test]
async fn a_long_message_is_kept_up_to_a_limit() {
    let seen = with(async |mut hand| {
        let prompt = hand.until_prompt().await;
        for _ in 0..5 {
            hand.say(&"é".repeat(150_000)).await;
        }
        hand.end(&prompt).await;
    })
    .await;
    let text = &seen.finished().text;
    assert!(text.len() < 1_100_000 && text.ends_with("bytes left out]"), "{}", text.len());
}

#[tokio::test]
async fn an_end_at_any_time_is_a_crash() {
    for stage in 0..3 {
        let seen = with(async move |mut hand| {
            if stage > 0 {
                hand.answer("initialize", json!({"protocolVersion": 1})).await;
            }
            if stage > 1 {
                hand.answer("session/new", json!({"sessionId": "s"})).await;
            }
            hand.hear().await;
        })
        .await;
        let (fault, message) = seen.fault();
        assert!(fault == ProgramFault::Crash && message.contains("closed its output"), "{stage}: {message}");
    }
}

#[tokio::test]
async fn another_version_is_not_spoken() {
    for version in [0, 2, 9] {
        let seen = with(async move |mut hand| {
            hand.answer("initialize", json!({"protocolVersion": version})).await;
            hand.hear().await;
        })
        .await;
        let (fault, message) = seen.fault();
        assert!(fault == ProgramFault::NotStarted && message.contains("version 1"), "{version}: {message}");
    }
}

#[tokio::test]
async fn hostile_words_in_an_error_are_made_harmless() {
    let seen = with(async |mut hand| {
        let prompt = hand.until_prompt().await;
        let error = json!({"code": -32603, "message": "\u{1b}]0;owned\u{7}".repeat(10_000)});
        hand.write(json!({"jsonrpc": "2.0", "id": prompt["id"], "error": error}).to_string()).await;
        hand.hear().await;
    })
    .await;
    let shown = seen.result.unwrap_err().to_string();
    assert!(shown.len() < 3_000 && !shown.chars().any(char::is_control), "{shown}");
}

#[tokio::test]
async fn a_permission_asked_before_the_turn_is_refused() {
    let (told, heard) = tokio::sync::oneshot::channel();
    let seen = with(async |mut hand| {
        hand.answer("initialize", json!({"protocolVersion": 1})).await;
        let new = hand.hear().await;
        let options = json!([{"optionId": "y", "name": "Yes", "kind": "allow_once"}, {"optionId": "n", "name": "No", "kind": "reject_once"}]);
        let params = json!({"sessionId": "s", "toolCall": {"toolCallId": "1", "title": "rm"}, "options": options});
        hand.write(json!({"jsonrpc": "2.0", "id": 1, "method": "session/request_permission", "params": params}).to_string()).await;
        let _ = told.send(hand.hear().await);
        hand.write(json!({"jsonrpc": "2.0", "id": new["id"], "result": {"sessionId": "s"}}).to_string()).await;
        let prompt = hand.hear().await;
        hand.end(&prompt).await;
    })
    .await;
    seen.finished();
    assert!(seen.asked.is_empty());
    assert_eq!(heard.await.unwrap()["result"]["outcome"]["optionId"], "n");
}
