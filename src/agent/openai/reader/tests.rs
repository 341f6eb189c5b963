//! Tests of the reader: every sample, every cut, every split, and what servers get wrong.

use super::super::samples::{self, bare, stream, unended};
use super::*;
use crate::agent::message::{Block, StopReason, ToolInput};
use crate::agent::retry::classify;
use crate::model::failure::FailureClass;
use serde_json::json;

fn read(chunks: &[&[u8]]) -> Result<Assembled, CallError> {
    read_after(Asked::default(), chunks)
}

fn read_after(asked: Asked, chunks: &[&[u8]]) -> Result<Assembled, CallError> {
    let mut reader = Reader::new(asked);
    for chunk in chunks {
        if reader.push(chunk, &mut |_| {})? {
            break;
        }
    }
    reader.finish()
}

fn read_chunks(chunks: &[String]) -> Result<Assembled, CallError> {
    read(&[&stream(chunks)])
}

#[test]
fn every_sample_is_read_as_written_down() {
    for sample in samples::all() {
        let reply = read(&[&sample.bytes]).unwrap_or_else(|e| panic!("{}: {e}", sample.name));
        assert_eq!(reply.message.get(), sample.message, "{}", sample.name);
        assert_eq!(reply.stop.as_str(), sample.stop, "{}", sample.name);
        let usage = reply.usage;
        let tokens = [usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens, usage.thinking_tokens];
        assert_eq!(tokens, sample.tokens, "{}", sample.name);
        let single: Vec<&[u8]> = sample.bytes.chunks(1).collect();
        let again = read(&single).unwrap();
        assert_eq!((again.message.get(), again.usage), (sample.message, usage), "{} byte by byte", sample.name);
    }
}

#[test]
fn a_stream_cut_after_any_byte_is_complete_or_void() {
    for sample in samples::all() {
        let whole = read(&[&sample.bytes]).unwrap();
        let mut complete = 0;
        for cut in 0..=sample.bytes.len() {
            match read(&[&sample.bytes[..cut]]) {
                Ok(reply) => {
                    // The counts may be missing yet; what was said may not.
                    assert_eq!(reply.message.get(), whole.message.get(), "{} cut at {cut}", sample.name);
                    assert_eq!((&reply.blocks, &reply.stop), (&whole.blocks, &whole.stop), "{}", sample.name);
                    complete += 1;
                }
                Err(e) => {
                    assert_eq!(e, CallError::StreamCut { after_bytes: cut as u64 }, "{}", sample.name);
                    assert_eq!(complete, 0, "{} cut at {cut}: void after complete", sample.name);
                }
            }
        }
        assert!(complete >= 1, "{}", sample.name);
    }
}

#[test]
fn done_may_be_missing_but_the_reason_may_not() {
    let said = bare(r#"{"content":"hi"}"#, "null");
    let reply = read(&[&unended(&[said.clone(), bare("{}", r#""stop""#)])]).unwrap();
    assert_eq!(reply.stop, StopReason::EndTurn);
    for empty_reason in ["null", r#""""#] {
        let chunks = [said.clone(), bare("{}", empty_reason)];
        assert!(matches!(read(&[&unended(&chunks)]), Err(CallError::StreamCut { .. })));
        assert!(matches!(read_chunks(&chunks), Err(CallError::StreamCut { .. })), "[DONE] alone is no end");
    }
    assert_eq!(read(&[b"data: [DONE]\n\n"]).unwrap_err(), CallError::StreamCut { after_bytes: 14 });
}

#[test]
fn nothing_after_done_is_read() {
    let mut bytes = stream(&[bare(r#"{"content":"hi"}"#, r#""stop""#)]);
    bytes.extend_from_slice(b"data: {\"error\":\"late\"}\n\ndata: nonsense\n\n");
    assert_eq!(read(&[&bytes]).unwrap().blocks, [Block::Text { text: "hi".into() }]);
}

#[test]
fn an_error_inside_the_stream_is_an_error() {
    let said = bare(r#"{"content":"hi"}"#, "null");
    for (chunk, class) in [
        (
            r#"{"error":{"message":"oom","type":"InternalServerError","param":null,"code":500}}"#,
            FailureClass::Transient,
        ),
        (r#"{"error":"model runner has stopped"}"#, FailureClass::Transient),
        (r#"{"object":"error","message":"m","type":"BadRequestError","code":400}"#, FailureClass::Fatal),
        (
            r#"{"id":"gen","error":{"code":429,"message":"slow"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#,
            FailureClass::RateLimited,
        ),
        (r#"{"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}"#, FailureClass::Transient),
    ] {
        let error = read_chunks(&[said.clone(), chunk.to_owned(), bare("{}", r#""stop""#)]).unwrap_err();
        assert!(matches!(error, CallError::StreamError { .. }), "{chunk}: {error:?}");
        assert_eq!(classify(&error), class, "{chunk}");
    }
    let named = b"event: error\ndata: {\"message\":\"gone\",\"code\":503}\n\n";
    let error = read(&[named]).unwrap_err();
    assert_eq!(error, CallError::StreamError { kind: "api_error".into(), message: "gone".into() });
    // `null` is no error.
    assert!(read_chunks(&[r#"{"error":null,"choices":[{"delta":{},"finish_reason":"stop"}]}"#.to_owned()]).is_ok());
}

#[test]
fn odd_but_harmless_lines_are_read_over() {
    let mut bytes =
        b"\xEF\xBB\xBF: hello\r\nid: 7\r\nretry: 10\r\n\r\ndata:\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n"
            .to_vec();
    bytes.extend(stream(&[
        r#"{"choices":[],"prompt_filter_results":[]}"#.to_owned(),
        r#"{"choices":null,"usage":null}"#.to_owned(),
        r#"{"choices":[{"index":1,"delta":{"content":"another choice"},"finish_reason":null}]}"#.to_owned(),
        r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}],"usage":null}"#.to_owned(),
        r#"{"choices":[],"usage":"none"}"#.to_owned(),
    ]));
    let reply = read(&[&bytes]).unwrap();
    assert_eq!(reply.message.get(), r#"{"role":"assistant","content":[{"type":"text","text":"hi"}]}"#);
}

#[test]
fn bytes_that_are_no_text_and_chunks_that_are_no_json() {
    let reply =
        read(&[b"data: {\"choices\":[{\"delta\":{\"content\":\"a\xFFb\"},\"finish_reason\":\"stop\"}]}\n\n"]).unwrap();
    assert_eq!(reply.blocks, [Block::Text { text: "a\u{FFFD}b".into() }]);
    let deep = "[".repeat(100_000);
    for bad in ["{\"choices\":[", "nonsense", "7", &deep, &format!(r#"{{"choices":[{{"delta":{{"content":{deep}"#)] {
        let error = read_chunks(&[bad.to_owned()]).unwrap_err();
        assert!(matches!(error, CallError::BadReply(_)), "{error:?}");
        assert!(error.to_string().chars().count() < 700);
    }
}

#[test]
fn floods_end_in_time() {
    let mut reader = Reader::new(Asked::default());
    let line = [b"data: ".as_slice(), &vec![b'x'; 1024 * 1024]].concat();
    assert!((0..10).any(|_| matches!(reader.push(&line, &mut |_| {}), Err(CallError::TooLarge(_)))));

    let mut reader = Reader::new(Asked::default());
    let comment = [b":".as_slice(), &vec![b'x'; 1024 * 1024], b"\n"].concat();
    let refused = (0..40).find(|_| reader.push(&comment, &mut |_| {}).is_err());
    assert_eq!(refused, Some(31), "32 MiB of anything is the end");

    let call = |n: usize| {
        bare(&format!(r#"{{"tool_calls":[{{"index":{n},"id":"c{n}","function":{{"name":"x"}}}}]}}"#), "null")
    };
    let calls: Vec<String> = (0..200).map(call).collect();
    assert!(matches!(read_chunks(&calls).unwrap_err(), CallError::TooLarge(_)));
}

#[test]
fn a_deep_or_broken_input_is_carried_as_text() {
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(500), "]".repeat(500));
    for arguments in [deep.as_str(), r#"{"path": "x"#, "not json"] {
        let call = json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "x", "arguments": arguments}}]});
        let reply = read_chunks(&[bare(&call.to_string(), r#""tool_calls""#)]).unwrap();
        let wanted = ToolInput::Malformed(arguments.to_owned());
        assert_eq!(reply.blocks, [Block::ToolUse { id: "c".into(), name: "x".into(), input: wanted }]);
        let message: Value = serde_json::from_str(reply.message.get()).unwrap();
        assert_eq!(message["content"][0]["input"], json!({"INVALID_JSON": arguments}));
    }
}

#[test]
fn a_whole_answer_is_a_reply_too() {
    let body = br#"{"id":"chatcmpl-1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"reasoning":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},{"id":"c2","type":"function","function":{"name":"bash","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":7,"completion_tokens":5}}"#;
    let mut shown = Vec::new();
    let reply = whole(body, Asked::default(), &mut |delta| shown.push(format!("{delta:?}"))).unwrap();
    assert_eq!(
        reply.message.get(),
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":""},{"type":"tool_use","id":"c1","name":"bash","input":{"command":"ls"}},{"type":"tool_use","id":"c2","name":"bash","input":{}}]}"#
    );
    assert_eq!((reply.stop, reply.usage.total()), (StopReason::ToolUse, 12));
    assert_eq!(shown.len(), 5, "{shown:?}");
    for cut in 0..body.len() {
        assert!(whole(&body[..cut], Asked::default(), &mut |_| {}).is_err(), "cut at {cut}");
    }
    let error = whole(br#"{"error":{"message":"busy","type":"rate_limit_error"}}"#, Asked::default(), &mut |_| {});
    assert_eq!(classify(&error.unwrap_err()), FailureClass::RateLimited);
    // What a server sends that was stopped before it began.
    let nothing = br#"{"choices":[{"index":0,"message":{"role":"","content":""},"finish_reason":null}],"usage":{"prompt_tokens":0}}"#;
    assert!(matches!(whole(nothing, Asked::default(), &mut |_| {}), Err(CallError::BadReply(_))));
}

#[test]
fn ids_of_earlier_turns_are_not_used_again() {
    let sample = samples::all().pop().unwrap();
    let asked = Asked { ids: vec!["0".into(), "call_1".into()], bytes: 0 };
    let reply = read_after(asked, &[&sample.bytes]).unwrap();
    let ids: Vec<&str> = reply
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::ToolUse { id, .. } => Some(id.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(ids, ["call_2", "1"]);
}
