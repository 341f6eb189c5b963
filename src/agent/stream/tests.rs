//! Tests of the stream reader: every cut, every split, every order.

use super::*;
use crate::agent::sample_streams::{self, event};
use proptest::prelude::*;

fn read(chunks: &[&[u8]]) -> Result<Assembled, CallError> {
    let mut reader = StreamReader::new();
    for chunk in chunks {
        if reader.push(chunk, &mut |_| {})? {
            break;
        }
    }
    reader.finish()
}

fn same(a: &Assembled, b: &Assembled) -> bool {
    a.message.get() == b.message.get()
        && a.blocks == b.blocks
        && a.stop == b.stop
        && a.stop_details == b.stop_details
        && a.usage == b.usage
}

#[test]
fn every_sample_is_read_as_written_down() {
    for sample in sample_streams::all() {
        let reply = read(&[&sample.bytes]).unwrap_or_else(|e| panic!("{}: {e}", sample.name));
        assert_eq!(reply.message.get(), sample.message, "{}", sample.name);
        assert_eq!(reply.stop.as_str(), sample.stop, "{}", sample.name);
        assert_eq!(reply.usage.total(), sample.tokens, "{}", sample.name);
    }
}

#[test]
fn a_stream_cut_after_any_byte_is_complete_or_void() {
    let samples = sample_streams::all();
    assert_eq!(samples.len(), 10);
    for sample in samples {
        let whole = read(&[&sample.bytes]).unwrap();
        let mut complete = 0;
        for cut in 0..=sample.bytes.len() {
            match read(&[&sample.bytes[..cut]]) {
                Ok(reply) => {
                    assert!(same(&reply, &whole), "{} cut at {cut}", sample.name);
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
fn chunk_boundaries_do_not_matter() {
    for sample in sample_streams::all() {
        let whole = read(&[&sample.bytes]).unwrap();
        for cut in 0..=sample.bytes.len() {
            let reply = read(&[&sample.bytes[..cut], &sample.bytes[cut..]]).unwrap();
            assert!(same(&reply, &whole), "{} split at {cut}", sample.name);
        }
        let single: Vec<&[u8]> = sample.bytes.chunks(1).collect();
        assert!(same(&read(&single).unwrap(), &whole), "{} byte by byte", sample.name);
    }
}

#[test]
fn deltas_are_shown_while_they_arrive() {
    let sample = sample_streams::all().into_iter().find(|s| s.name == "thinking, text, two calls").unwrap();
    let mut seen = Vec::new();
    let mut reader = StreamReader::new();
    let mut usage = Vec::new();
    let mut note = |delta: Delta<'_>| match delta {
        Delta::Usage { usage: counted, last } => usage.push((counted.prompt(), counted.output_tokens, last)),
        shown => seen.push(format!("{shown:?}")),
    };
    reader.push(&sample.bytes, &mut note).unwrap();
    // What is owed is known from the first event on.
    assert_eq!(usage, [(110, 1, false), (110, sample.tokens - 110, true)]);
    assert_eq!(
        seen,
        [
            r#"Thinking("let ")"#,
            r#"Thinking("me")"#,
            r#"Text("I run ")"#,
            r#"Text("it é")"#,
            r#"ToolStarted { name: "bash" }"#,
            r#"ToolInput("")"#,
            r#"ToolInput("{\"command\": ")"#,
            r#"ToolInput("\"ls\"}")"#,
            r#"ToolStarted { name: "read_file" }"#,
        ]
    );
}

fn start() -> String {
    event("message_start", r#"{"type":"message_start","message":{"usage":{"input_tokens":1}}}"#)
}

#[test]
fn a_reply_out_of_order_is_refused() {
    let text = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    let delta = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}"#;
    let stop = r#"{"type":"content_block_stop","index":0}"#;
    let end = r#"{"type":"message_stop"}"#;
    let name = |data: &str| event("message", data);
    for bytes in [
        name(text),
        name(end),
        start() + &start(),
        start() + &name(delta),
        start() + &name(text) + &name(text),
        start() + &name(text) + &name(stop) + &name(delta),
        start() + &name(text) + &name(end),
        start() + &event("message_stop", "{not json"),
        start() + &event("content_block_delta", r#"{"type":"content_block_delta"}"#),
    ] {
        let error = read(&[bytes.as_bytes()]).unwrap_err();
        assert!(matches!(error, CallError::BadReply(_)), "{bytes}: {error:?}");
    }
}

#[test]
fn an_error_event_ends_the_reply_in_any_shape() {
    for (data, kind, message) in [
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"},"request_id":"r"}"#,
            "overloaded_error",
            "busy",
        ),
        (r#"{"error":{"message":"busy"}}"#, "error", "busy"),
        ("gateway gone", "error", "gateway gone"),
    ] {
        let bytes = start() + &event("error", data);
        let wanted = CallError::StreamError { kind: kind.into(), message: message.into() };
        assert_eq!(read(&[bytes.as_bytes()]).unwrap_err(), wanted);
    }
}

#[test]
fn what_is_unknown_is_ignored() {
    let bytes = start()
        + &event("ping", "not json")
        + &event("brand_new", "{")
        + &event("brand_new", r#"{"type":"brand_new","index":"x"}"#)
        + "data: [DONE]\n\n"
        + &event("message_stop", r#"{"type":"message_stop"}"#)
        + &event("error", "after the end nothing is read");
    let reply = read(&[bytes.as_bytes()]).unwrap();
    assert_eq!(reply.stop, StopReason::Unknown("null".into()));
    assert_eq!(reply.message.get(), r#"{"role":"assistant","content":[]}"#);
}

#[test]
fn a_reply_without_end_is_refused() {
    let mut reader = StreamReader::new();
    let comment = [b":".as_slice(), &vec![b'x'; 1024 * 1024], b"\n"].concat();
    let error = (0..40).find_map(|_| reader.push(&comment, &mut |_| {}).err()).unwrap();
    assert!(matches!(error, CallError::TooLarge(_)));

    let error = read(&[b"data: ", &vec![b'x'; 9 * 1024 * 1024]]).unwrap_err();
    assert!(matches!(error, CallError::TooLarge(_)));
}

proptest! {
    #[test]
    fn damaged_streams_never_give_another_message_than_json(
        which in 0usize..10,
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = sample_streams::all().swap_remove(which).bytes;
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(reply) = read(&[&bytes]) {
            prop_assert!(serde_json::from_str::<Value>(reply.message.get()).is_ok());
        }
    }

    #[test]
    fn noise_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(read(&[&bytes]).is_err());
    }
}
