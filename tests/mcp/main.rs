//! `nightloop mcp` as a program starts it: real processes, real pipes, and the engine's shelf behind it.

#![allow(clippy::unwrap_used, clippy::panic)]

mod client;

use std::path::Path;
use std::process::{Command, Stdio};

use nightloop::engine::offer::{Answer, Call, ToolServer, ToolSpecJson};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use client::Client;

fn nightloop() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_nightloop"))
}

fn tool(name: &str) -> ToolSpecJson {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    ToolSpecJson { name: name.into(), description: format!("The tool {name}."), input_schema: schema }
}

/// A shelf whose `echo` answers, whose `fail` fails, and whose `wait` never answers.
struct World {
    shelf: Option<ToolServer>,
    _dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (calls, mut called) = mpsc::channel::<Call>(8);
        let shelf = ToolServer::open(dir.path(), ["echo", "fail", "wait"].map(tool).to_vec(), calls).unwrap();
        tokio::spawn(async move {
            let mut waiting = Vec::new();
            while let Some(Call { id, name, input, reply }) = called.recv().await {
                let text = format!("{id}: {}", input["text"].as_str().unwrap_or_default());
                match name.as_str() {
                    "wait" => waiting.push(reply),
                    _ => drop(reply.send(Answer { text, is_error: name == "fail" })),
                }
            }
        });
        Self { shelf: Some(shelf), _dir: dir }
    }

    fn client(&self) -> Client {
        Client::start(&self.shelf.as_ref().unwrap().offer(nightloop()))
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"))
}

#[tokio::test]
async fn tools_are_listed_and_called() {
    let world = World::new();
    let mut client = world.client();
    let hello = client.hello().await;
    assert_eq!(hello["serverInfo"]["name"], "nightloop");
    assert!(hello["capabilities"]["tools"].is_object(), "{hello}");

    let listed = client.ask("tools/list", json!({})).await.unwrap();
    let tools = listed["tools"].as_array().unwrap();
    assert_eq!(tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect::<Vec<_>>(), ["echo", "fail", "wait"]);
    assert_eq!(
        (&tools[0]["description"], &tools[0]["inputSchema"]),
        (&json!("The tool echo."), &tool("echo").input_schema)
    );

    // Two calls under ids of the client's own; the engine's are ours.
    let result = client.call("echo", json!({"text": "hé\n\u{1}"})).await.unwrap();
    assert_eq!((text(&result), &result["isError"]), ("m1: hé\n\u{1}", &json!(false)));
    let result = client.call("fail", json!({"text": "no"})).await.unwrap();
    assert_eq!((text(&result), &result["isError"]), ("m2: no", &json!(true)));
    let result = client.call("rm", json!({})).await.unwrap();
    assert!(result["isError"] == true && text(&result).contains("no such tool"), "{result}");
    // Without arguments is an empty object, for the engine to judge.
    let result = client.ask("tools/call", json!({"name": "echo"})).await.unwrap();
    assert_eq!(text(&result), "m3: ");

    assert_eq!(client.end().await.code(), Some(0));
}

#[tokio::test]
async fn what_is_not_understood_does_not_end_it() {
    let world = World::new();
    let mut client = world.client();
    client.hello().await;
    for garbage in ["garbage", "{", "[]", "17", "{\"jsonrpc\":\"2.0\"}", "\u{0}", ""] {
        client.write(garbage).await;
    }
    assert_eq!(client.ask("ping", json!({})).await.unwrap(), json!({}));
    let error = client.ask("no/such", json!({})).await.unwrap_err();
    assert_eq!(error["code"], -32601);
    let error = client.ask("tools/call", json!({"arguments": 5})).await.unwrap_err();
    assert!(error["code"].is_i64(), "{error}");
    let long = client.call("echo", json!({"text": "x".repeat(2 << 20)})).await.unwrap();
    assert!(long["isError"] == true && text(&long).contains("too long"), "{long}");
    assert_eq!(text(&client.call("echo", json!({"text": "still here"})).await.unwrap()), "m1: still here");
}

#[tokio::test]
async fn when_the_engine_goes_calls_are_errors() {
    let mut world = World::new();
    let mut client = world.client();
    client.hello().await;
    let waiting = client.send("tools/call", json!({"name": "wait", "arguments": {}})).await;
    // It is under way once a later one has been answered.
    client.call("echo", json!({"text": "x"})).await.unwrap();
    drop(world.shelf.take());
    let result = client.answer_to(waiting).await.unwrap();
    assert!(result["isError"] == true && text(&result).contains("gone"), "{result}");
    let result = client.call("echo", json!({"text": "x"})).await.unwrap();
    assert!(result["isError"] == true && text(&result).contains("gone"), "{result}");
    assert!(client.ask("tools/list", json!({})).await.is_ok());
    assert_eq!(client.end().await.code(), Some(0));
}

#[tokio::test]
async fn several_clients_have_the_same_tools() {
    let world = World::new();
    let (mut one, mut two) = (world.client(), world.client());
    one.hello().await;
    two.hello().await;
    assert_eq!(text(&one.call("echo", json!({"text": "a"})).await.unwrap()), "m1: a");
    assert_eq!(text(&two.call("echo", json!({"text": "b"})).await.unwrap()), "m2: b");
}

/// How it ends without a word on standard output: exit code and error.
fn refused(set: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut command = Command::new(nightloop());
    command.arg("mcp").env_remove("NIGHTLOOP_TOOLS").env_remove("NIGHTLOOP_TOOLS_TOKEN").stdin(Stdio::null());
    let output = command.envs(set.iter().copied()).output().unwrap();
    assert_eq!(output.stdout, b"");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn without_its_variables_it_says_what_they_are_for() {
    let (code, error) = refused(&[]);
    assert!(code == Some(64) && error.contains("NIGHTLOOP_TOOLS is not set") && error.contains("hint:"), "{error}");
    let (code, error) = refused(&[("NIGHTLOOP_TOOLS", "/nowhere")]);
    assert!(code == Some(64) && error.contains("NIGHTLOOP_TOOLS_TOKEN is not set"), "{error}");
    let (code, error) = refused(&[("NIGHTLOOP_TOOLS", "/nowhere/x.sock"), ("NIGHTLOOP_TOOLS_TOKEN", "t")]);
    assert!(code == Some(74) && error.contains("/nowhere/x.sock"), "{error}");
}

#[tokio::test]
async fn a_wrong_token_is_refused() {
    let world = World::new();
    let socket = world.shelf.as_ref().unwrap().socket().to_str().unwrap().to_owned();
    let asked = move || refused(&[("NIGHTLOOP_TOOLS", &socket), ("NIGHTLOOP_TOOLS_TOKEN", &"0".repeat(32))]);
    let (code, error) = tokio::task::spawn_blocking(asked).await.unwrap();
    assert!(code == Some(64) && error.contains("the engine refused") && error.contains("token"), "{error}");
    assert_eq!(world.shelf.as_ref().unwrap().refused(), 1);
}
