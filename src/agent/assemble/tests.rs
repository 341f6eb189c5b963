//! Tests of one block's assembly.

use super::*;
use serde_json::json;

fn build(start: &str, deltas: &[&str]) -> (String, Block) {
    let mut builder = BlockBuilder::start(start, &mut |_| {}).unwrap();
    for delta in deltas {
        builder.add(delta, &mut |_| {}).unwrap();
    }
    let mut out = String::new();
    let block = builder.finish(&mut out);
    (out, block)
}

fn input_delta(text: &str) -> String {
    json!({"type": "input_json_delta", "partial_json": text}).to_string()
}

#[test]
fn unknown_blocks_come_back_byte_for_byte() {
    let odd = r#"{"type":"made_up","z":1.50,"a":{"deep": [1e3, 18446744073709551616]},"b":"\u00e9"}"#;
    assert_eq!(build(odd, &[]), (odd.to_owned(), Block::Other { kind: "made_up".into() }));
    assert_eq!(build(odd, &[r#"{"type":"made_up_delta","x":1}"#]).0, odd);
}

#[test]
fn deltas_fill_only_their_field() {
    let (raw, block) = build(
        r#"{"type":"thinking","thinking":"","signature":""}"#,
        &[
            r#"{"type":"thinking_delta","thinking":"a\n"}"#,
            r#"{"type":"thinking_delta","thinking":"b"}"#,
            r#"{"type":"signature_delta","signature":"c2ln"}"#,
        ],
    );
    assert_eq!(raw, r#"{"type":"thinking","thinking":"a\nb","signature":"c2ln"}"#);
    assert_eq!(block, Block::Thinking { text: "a\nb".into() });
}

#[test]
fn a_silent_thinking_block_keeps_its_empty_text() {
    let (raw, block) =
        build(r#"{"type":"thinking","thinking":""}"#, &[r#"{"type":"signature_delta","signature":"x"}"#]);
    assert_eq!(raw, r#"{"type":"thinking","thinking":"","signature":"x"}"#);
    assert_eq!(block, Block::Thinking { text: String::new() });
}

#[test]
fn citations_are_collected() {
    let (raw, _) = build(
        r#"{"citations":null,"type":"text","text":""}"#,
        &[
            r#"{"type":"text_delta","text":"x"}"#,
            r#"{"type":"citations_delta","citation":{"n":1}}"#,
            r#"{"type":"citations_delta","citation":{"n":2}}"#,
        ],
    );
    assert_eq!(raw, r#"{"citations":[{"n":1},{"n":2}],"type":"text","text":"x"}"#);
}

#[test]
fn tool_input_keeps_its_bytes_when_valid() {
    let start = r#"{"type":"tool_use","id":"t1","name":"bash","input":{},"caller":{"type":"direct"}}"#;
    let (raw, block) = build(start, &[&input_delta(r#"{"n": 1."#), &input_delta(r#"50, "b":"x"}"#)]);
    assert_eq!(
        raw,
        r#"{"type":"tool_use","id":"t1","name":"bash","input":{"n": 1.50, "b":"x"},"caller":{"type":"direct"}}"#
    );
    let input = ToolInput::Json(json!({"n": 1.5, "b": "x"}));
    assert_eq!(block, Block::ToolUse { id: "t1".into(), name: "bash".into(), input });
}

#[test]
fn tool_input_that_is_no_json_becomes_data() {
    let start = r#"{"type":"tool_use","id":"t1","name":"bash","input":{}}"#;
    let deep = "[".repeat(100_000);
    for bad in [r#"{"command": "rm -rf build"#, "{}{}", "\u{0}", "nope", r#"{"n":1e999}"#, &deep] {
        let (raw, block) = build(start, &[&input_delta(bad)]);
        let echoed: serde_json::Value = serde_json::from_str(&raw).unwrap();
        assert_eq!(echoed["input"], json!({"INVALID_JSON": bad}));
        let Block::ToolUse { input, .. } = block else { panic!("{block:?}") };
        assert_eq!(input, ToolInput::Malformed(bad.to_owned()));
    }
}

#[test]
fn an_input_that_is_no_object_is_given_as_json_but_sent_back_as_an_object() {
    let start = r#"{"type":"tool_use","id":"t1","name":"bash","input":{}}"#;
    for odd in ["[1]", "null", "7", "\"x\""] {
        let (raw, block) = build(start, &[&input_delta(odd)]);
        let echoed: serde_json::Value = serde_json::from_str(&raw).unwrap();
        assert_eq!(echoed["input"], json!({"INVALID_JSON": odd}));
        let Block::ToolUse { input, .. } = block else { panic!("{block:?}") };
        assert_eq!(input, ToolInput::Json(serde_json::from_str(odd).unwrap()));
    }
}

#[test]
fn tool_input_may_be_empty_or_whole() {
    let start = |input: &str| format!(r#"{{"type":"tool_use","id":"t","name":"n"{input}}}"#);
    for (given, deltas, wanted) in [
        (start(r#","input":{}"#), vec![], json!({})),
        (start(r#","input":{}"#), vec![input_delta("")], json!({})),
        (start(""), vec![], json!({})),
        (start(r#","input":null"#), vec![], json!({})),
        (start(r#","input":{"a":1}"#), vec![], json!({"a": 1})),
    ] {
        let deltas: Vec<&str> = deltas.iter().map(String::as_str).collect();
        let (raw, block) = build(&given, &deltas);
        let echoed: serde_json::Value = serde_json::from_str(&raw).unwrap();
        assert_eq!(echoed["input"], wanted, "{given} {deltas:?}");
        let Block::ToolUse { input, .. } = block else { panic!("{block:?}") };
        assert_eq!(input, ToolInput::Json(wanted));
    }
}

#[test]
fn server_tools_stream_their_input_too() {
    let start = r#"{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}"#;
    let (raw, block) = build(start, &[&input_delta(r#"{"query":"x"}"#)]);
    assert_eq!(raw, r#"{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"x"}}"#);
    assert_eq!(block, Block::Other { kind: "server_tool_use".into() });
}

#[test]
fn a_block_without_type_or_a_call_without_name_is_refused() {
    for bad in
        ["[]", "{}", r#"{"type":7}"#, r#"{"type":"tool_use","id":"","name":"x"}"#, r#"{"type":"tool_use","id":"x"}"#]
    {
        assert!(BlockBuilder::start(bad, &mut |_| {}).is_err(), "{bad}");
    }
}
