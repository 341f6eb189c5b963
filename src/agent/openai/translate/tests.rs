//! Tests of the translation: whole bodies, and what must never change.

use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;

const DIALECT: Dialect = Dialect { limit: LimitField::MaxTokens, ask_usage: true };

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn request(system: &str, messages: &[&str]) -> Request {
    Request {
        model: "qwen3".into(),
        max_tokens: 64,
        system: system.into(),
        tools: raw(
            r#"[{"name":"bash","description":"Runs.","input_schema":{"type": "object", "z":1.0}},{"type":"web_search","name":"web"}]"#,
        ),
        messages: messages.iter().map(|m| Arc::from(raw(m))).collect(),
        thinking: None,
        effort: None,
        cache: None,
    }
}

fn written(request: &Request) -> String {
    String::from_utf8(body(request, DIALECT).unwrap().0).unwrap()
}

#[test]
fn the_body_in_full() {
    let mut full = request(
        "Be \"brief\".",
        &[
            r#"{"role":"user","content":"Go."}"#,
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":""},{"type":"text","text":"I look."},{"type":"tool_use","id":"a","name":"bash","input":{"command": "ls", "n":1.0}},{"type":"tool_use","id":"b","name":"bash","input":{}}]}"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x\ny","is_error":false},{"type":"text","text":"OPERATOR\nFaster."},{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"no"},{"type":"text","text":"such"}],"is_error":true}]}"#,
        ],
    );
    full.effort = Some("high".into());
    assert_eq!(
        written(&full),
        concat!(
            r#"{"model":"qwen3","stream":true,"stream_options":{"include_usage":true},"max_tokens":64,"reasoning_effort":"high","#,
            r#""tools":[{"type":"function","function":{"name":"bash","description":"Runs.","parameters":{"type": "object", "z":1.0}}}],"#,
            r#""messages":[{"role":"system","content":"Be \"brief\"."},{"role":"user","content":"Go."},"#,
            r#"{"role":"assistant","content":"I look.","tool_calls":[{"id":"a","type":"function","function":{"name":"bash","arguments":"{\"command\": \"ls\", \"n\":1.0}"}},{"id":"b","type":"function","function":{"name":"bash","arguments":"{}"}}]},"#,
            r#"{"role":"tool","content":"x\ny","tool_call_id":"a"},{"role":"tool","content":"ERROR: no\nsuch","tool_call_id":"b"},"#,
            r#"{"role":"user","content":"OPERATOR\nFaster."}]}"#
        )
    );
    assert_eq!(body(&full, DIALECT).unwrap().1, ["a", "b"]);
}

#[test]
fn what_is_not_set_is_not_sent() {
    let mut bare = request("", &[]);
    bare.tools = raw("[ ]");
    let dialect = Dialect { limit: LimitField::MaxCompletionTokens, ask_usage: false };
    let (bytes, ids) = body(&bare, dialect).unwrap();
    assert_eq!(
        String::from_utf8(bytes).unwrap(),
        r#"{"model":"qwen3","stream":true,"max_completion_tokens":64,"messages":[]}"#
    );
    assert!(ids.is_empty());
}

#[test]
fn every_assistant_message_stays_one_message() {
    let thinking_only = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm"}]}"#;
    let words = r#"{"role":"assistant","content":"plain"}"#;
    let two =
        r#"{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]}"#;
    let sent: Value = serde_json::from_str(&written(&request("", &[thinking_only, words, two]))).unwrap();
    assert_eq!(
        sent["messages"],
        json!([
            {"role": "assistant", "content": ""},
            {"role": "assistant", "content": "plain"},
            {"role": "assistant", "content": "a\n[a block of the kind image was here]\nb"},
        ])
    );
}

#[test]
fn what_cannot_be_translated_is_said() {
    for bad in [
        "7",
        r#"{"role":"user"}"#,
        r#"{"role":"robot","content":"x"}"#,
        r#"{"role":"user","content":7}"#,
        r#"{"role":"user","content":[{"type":"tool_result","content":"x"}]}"#,
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"a"}]}"#,
    ] {
        let error = body(&request("", &[r#"{"role":"user","content":"x"}"#, bad]), DIALECT).unwrap_err();
        assert!(error.to_string().contains("message 2"), "{bad}: {error}");
    }
    let mut tools = request("", &[]);
    tools.tools = raw("{}");
    assert!(matches!(body(&tools, DIALECT), Err(CallError::Config(_))));
}

fn message() -> impl Strategy<Value = String> {
    let words = ".{0,30}";
    prop_oneof![
        words.prop_map(|text| json!({"role": "user", "content": text}).to_string()),
        (words, words).prop_map(|(text, id)| {
            json!({"role": "assistant", "content": [
                {"type": "thinking", "thinking": text},
                {"type": "text", "text": text},
                {"type": "tool_use", "id": id, "name": "bash", "input": {"command": text}},
            ]})
            .to_string()
        }),
        (words, any::<bool>()).prop_map(|(text, is_error)| {
            json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": text, "is_error": is_error},
            ]})
            .to_string()
        }),
    ]
}

proptest! {
    #[test]
    fn equal_requests_are_equal_bytes_and_appending_keeps_the_prefix(
        system in ".{0,30}",
        messages in proptest::collection::vec(message(), 1..6),
    ) {
        let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
        let whole = written(&request(&system, &messages));
        prop_assert_eq!(&whole, &written(&request(&system, &messages)));
        prop_assert!(serde_json::from_str::<Value>(&whole).is_ok());
        let shorter = written(&request(&system, &messages[..messages.len() - 1]));
        prop_assert!(whole.starts_with(&shorter[..shorter.len() - 2]));
    }
}
