//! Tests of the collector: which call a piece belongs to, what the end means, what is counted.

use super::super::wire::Piece;
use super::*;
use serde_json::json;

/// Feeds deltas, given as JSON text so that their bytes are kept, and ends with `finish`.
fn collect(deltas: &[&str], finish: &str) -> Assembled {
    let mut collector = Collector::new(Asked { ids: Vec::new(), bytes: 400 });
    for delta in deltas {
        let piece: Piece<'_> = serde_json::from_str(delta).unwrap();
        collector.add(&piece, &mut |_| {}).unwrap();
    }
    collector.finish_reason(finish);
    collector.assemble().unwrap()
}

/// Calls as `id name input`.
fn calls(reply: &Assembled) -> Vec<String> {
    let message: Value = serde_json::from_str(reply.message.get()).unwrap();
    let blocks = message["content"].as_array().unwrap().iter().filter(|block| block["type"] == "tool_use");
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    blocks.map(|block| format!("{} {} {}", word(&block["id"]), word(&block["name"]), block["input"])).collect()
}

#[track_caller]
fn expect(what: &str, deltas: &[&str], wanted: &[&str]) {
    assert_eq!(calls(&collect(deltas, "tool_calls")), wanted, "{what}");
}

#[test]
fn a_piece_finds_its_call() {
    expect(
        "interleaved by index",
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\""}},{"index":1,"id":"b","function":{"name":"y","arguments":"{\"m\""}}]}"#,
            r#"{"tool_calls":[{"index":1,"function":{"arguments":":2}"}},{"index":0,"function":{"arguments":":1}"}}]}"#,
        ],
        &[r#"a x {"n":1}"#, r#"b y {"m":2}"#],
    );
    expect(
        "index missing, ids given, all in one chunk",
        &[
            r#"{"tool_calls":[{"id":"a","function":{"name":"x","arguments":"{}"}},{"id":"b","function":{"name":"x","arguments":"{}"}}]}"#,
        ],
        &["a x {}", "b x {}"],
    );
    expect(
        "index missing, one chunk per call",
        &[
            r#"{"tool_calls":[{"id":"a","function":{"name":"x","arguments":"{}"}}]}"#,
            r#"{"tool_calls":[{"id":"b","function":{"name":"x","arguments":"{\"n\""}}]}"#,
            r#"{"tool_calls":[{"function":{"arguments":":1}"}}]}"#,
        ],
        &["a x {}", r#"b x {"n":1}"#],
    );
    expect(
        "neither index nor id: by position",
        &[
            r#"{"tool_calls":[{"function":{"name":"x","arguments":"{\"n\""}},{"function":{"name":"y","arguments":"{\"m\""}}]}"#,
            r#"{"tool_calls":[{"function":{"arguments":":1}"}},{"function":{"arguments":":2}"}}]}"#,
        ],
        &[r#"call_0 x {"n":1}"#, r#"call_1 y {"m":2}"#],
    );
    expect(
        "always index 0 and an empty id in later pieces",
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":""}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"","function":{"name":null,"arguments":"{\"n\":1}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"b","function":{"name":"x","arguments":""}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"","function":{"name":null,"arguments":"{\"n\":2}"}}]}"#,
        ],
        &[r#"a x {"n":1}"#, r#"b x {"n":2}"#],
    );
    expect(
        "a new id for every piece",
        &[
            r#"{"tool_calls":[{"index":0,"id":"r1","function":{"name":"x"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"r2","function":{"arguments":"{\"n\""}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"r3","function":{"arguments":":1}"}}]}"#,
        ],
        &[r#"r1 x {"n":1}"#],
    );
    expect(
        "index always 0 and no id: a name after a whole input begins the next",
        &[
            r#"{"tool_calls":[{"index":0,"function":{"name":"x","arguments":"{\"n\":1}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"name":"x","arguments":"{\"n\":2}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"name":"y","arguments":""}}]}"#,
        ],
        &[r#"call_0 x {"n":1}"#, r#"call_1 x {"n":2}"#, "call_2 y {}"],
    );
    expect(
        "one id for two calls, told apart by their index",
        &[
            r#"{"tool_calls":[{"index":0,"id":"call","function":{"name":"x","arguments":"{}"}}]}"#,
            r#"{"tool_calls":[{"index":1,"id":"call","function":{"name":"y","arguments":"{}"}}]}"#,
        ],
        &["call x {}", "call_1 y {}"],
    );
}

#[test]
fn a_name_that_is_repeated_is_no_second_call() {
    expect(
        "with the id",
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\""}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":":1}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":""}}]}"#,
        ],
        &[r#"a x {"n":1}"#],
    );
    expect(
        "without",
        &[
            r#"{"tool_calls":[{"index":0,"function":{"name":"x","arguments":"{\"n\""}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"name":"x","arguments":":{},\"}\\\"}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"name":"x","arguments":"\":1}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"name":"x","arguments":""}}]}"#,
        ],
        &[r#"call_0 x {"n":{},"}\"}":1}"#],
    );
    expect(
        "the whole call once more at the end",
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\":1}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\":1}"}}]}"#,
        ],
        &[r#"a x {"n":1}"#],
    );
}

#[test]
fn arguments_may_be_an_object_and_keep_their_bytes() {
    let object =
        r#"{"tool_calls":[{"id":"a","function":{"name":"x","arguments":{"z": 1.0, "a": 12345678901234567890123}}}]}"#;
    let reply = collect(&[object], "tool_calls");
    assert!(reply.message.get().contains(r#""input":{"z": 1.0, "a": 12345678901234567890123}"#), "{}", reply.message);
    expect("null", &[r#"{"tool_calls":[{"id":7,"function":{"name":"x","arguments":null}}]}"#], &["7 x {}"]);
    expect(
        "the old form",
        &[r#"{"function_call":{"name":"x","arguments":"{\"n\""}}"#, r#"{"function_call":{"arguments":":1}"}}"#],
        &[r#"call_0 x {"n":1}"#],
    );
}

#[test]
fn ids_nobody_can_use_are_replaced() {
    let long = format!(r#"{{"tool_calls":[{{"id":"{}","function":{{"name":"x"}}}}]}}"#, "i".repeat(10_000));
    expect("endless", &[&long], &["call_0 x {}"]);
    expect(
        "with a control character",
        &[r#"{"tool_calls":[{"id":"a\u001b[2J","function":{"name":"x"}}]}"#],
        &["call_0 x {}"],
    );
}

#[test]
fn a_call_without_a_name_is_no_reply() {
    let mut collector = Collector::new(Asked::default());
    let piece: Piece<'_> =
        serde_json::from_str(r#"{"tool_calls":[{"id":"a","function":{"arguments":"{}"}}]}"#).unwrap();
    collector.add(&piece, &mut |_| {}).unwrap();
    collector.finish_reason("stop");
    assert!(matches!(collector.assemble(), Err(CallError::BadReply(_))));
}

#[test]
fn what_the_end_means() {
    let text = r#"{"content":"hi"}"#;
    let call = r#"{"tool_calls":[{"id":"a","function":{"name":"x","arguments":"{}"}}]}"#;
    for (finish, alone, with_call) in [
        ("stop", "end_turn", "tool_use"),
        ("tool_calls", "end_turn", "tool_use"),
        ("function_call", "end_turn", "tool_use"),
        ("length", "max_tokens", "max_tokens"),
        ("content_filter", "refusal", "refusal"),
        ("insufficient_system_resource", "insufficient_system_resource", "insufficient_system_resource"),
    ] {
        assert_eq!(collect(&[text], finish).stop.as_str(), alone, "{finish}");
        assert_eq!(collect(&[text, call], finish).stop.as_str(), with_call, "{finish}");
    }
    assert_eq!(collect(&[text], "weird").stop, StopReason::Unknown("weird".into()));
    let refused = collect(&[r#"{"refusal":"I can"}"#, r#"{"refusal":"not."}"#], "stop");
    assert_eq!((refused.stop, refused.stop_details.as_deref()), (StopReason::Refusal, Some("I cannot.")));
}

#[test]
fn content_may_come_in_parts() {
    let reply = collect(
        &[
            r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}"#,
            r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"image"}]}"#,
        ],
        "stop",
    );
    assert_eq!(reply.blocks, [Block::Thinking { text: "hm".into() }, Block::Text { text: "ab".into() }]);
}

#[test]
fn what_was_not_counted_is_estimated() {
    let mut collector = Collector::new(Asked { ids: Vec::new(), bytes: 4000 });
    let piece: Piece<'_> = serde_json::from_str(r#"{"content":"12345678"}"#).unwrap();
    collector.add(&piece, &mut |_| {}).unwrap();
    assert_eq!((collector.tokens().input_tokens, collector.tokens().output_tokens), (1000, 2));
    // A zero is what a server says that did not count.
    collector.count(json!({"prompt_tokens": 0, "completion_tokens": 0}));
    assert_eq!(collector.tokens().input_tokens, 1000);
    collector.count(json!({"prompt_tokens": 9, "completion_tokens": 3, "prompt_cache_hit_tokens": 5}));
    collector.count(json!(null));
    let usage = collector.tokens();
    assert_eq!((usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens), (4, 5, 3));
    // A server that counts more from its cache than there was.
    collector.count(json!({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 90}}));
    assert_eq!((collector.tokens().input_tokens, collector.tokens().cache_read_input_tokens), (0, 9));
}
