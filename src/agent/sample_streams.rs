//! Ten streams in the shapes that the API's documentation shows, for tests of the reader.
//!
//! Role: sample bytes with the message they stand for. Test code only.
//! Invariant: each sample is complete; tests cut and damage it themselves.

pub struct Sample {
    pub name: &'static str,
    pub bytes: Vec<u8>,
    /// The assembled message, byte for byte.
    pub message: &'static str,
    pub stop: &'static str,
    /// All tokens of the call.
    pub tokens: u64,
}

/// One event as the server writes it.
pub fn event(name: &str, data: &str) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":null,"cache_read_input_tokens":100,"output_tokens":1,"service_tier":"standard"}}}"#;

/// Wraps block events into a whole message.
fn message(body: &[(&str, &str)], stop: &str, output: u64) -> Vec<u8> {
    let mut out = event("message_start", START) + &event("ping", r#"{"type":"ping"}"#);
    for (name, data) in body {
        out += &event(name, data);
    }
    let delta = format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":{stop},"stop_sequence":null}},"usage":{{"output_tokens":{output}}}}}"#
    );
    out += &event("message_delta", &delta);
    out += &event("message_stop", r#"{"type":"message_stop"}"#);
    out.into_bytes()
}

pub fn all() -> Vec<Sample> {
    vec![
        text(),
        thinking_text_two_calls(),
        cut_call(),
        silent_thinking(),
        server_tool(),
        interleaved(),
        refusal(),
        crlf_and_comments(),
        empty(),
        unknown_block(),
    ]
}

fn text() -> Sample {
    Sample {
        name: "text",
        bytes: message(
            &[
                (
                    "content_block_start",
                    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
                ),
                (
                    "content_block_delta",
                    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}"#,
                ),
                (
                    "content_block_delta",
                    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" 🦀"}}"#,
                ),
                ("content_block_stop", r#"{"type":"content_block_stop","index":0}"#),
            ],
            r#""end_turn""#,
            15,
        ),
        message: r#"{"role":"assistant","content":[{"type":"text","text":"Hello 🦀"}]}"#,
        stop: "end_turn",
        tokens: 125,
    }
}

fn thinking_text_two_calls() -> Sample {
    Sample {
        name: "thinking, text, two calls",
        bytes: message(
            &[
                (
                    "content_block_start",
                    r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
                ),
                (
                    "content_block_delta",
                    r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"let "}}"#,
                ),
                (
                    "content_block_delta",
                    r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"me"}}"#,
                ),
                (
                    "content_block_delta",
                    r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQBCg=="}}"#,
                ),
                ("content_block_stop", r#"{"type":"content_block_stop","index":0}"#),
                (
                    "content_block_start",
                    r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
                ),
                (
                    "content_block_delta",
                    r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I run "}}"#,
                ),
                (
                    "content_block_delta",
                    r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"it é"}}"#,
                ),
                ("content_block_stop", r#"{"type":"content_block_stop","index":1}"#),
                (
                    "content_block_start",
                    r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"bash","input":{}}}"#,
                ),
                (
                    "content_block_delta",
                    r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}"#,
                ),
                (
                    "content_block_delta",
                    r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"command\": "}}"#,
                ),
                (
                    "content_block_delta",
                    r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"ls\"}"}}"#,
                ),
                ("content_block_stop", r#"{"type":"content_block_stop","index":2}"#),
                (
                    "content_block_start",
                    r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_2","name":"read_file","input":{}}}"#,
                ),
                ("content_block_stop", r#"{"type":"content_block_stop","index":3}"#),
            ],
            r#""tool_use""#,
            90,
        ),
        message: r#"{"role":"assistant","content":[{"type":"thinking","thinking":"let me","signature":"EqQBCg=="},{"type":"text","text":"I run it é"},{"type":"tool_use","id":"toolu_1","name":"bash","input":{"command": "ls"}},{"type":"tool_use","id":"toolu_2","name":"read_file","input":{}}]}"#,
        stop: "tool_use",
        tokens: 200,
    }
}

fn cut_call() -> Sample {
    Sample {
        name: "a call cut by max_tokens",
        bytes: message(
            &[
                (
                    "content_block_start",
                    r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"bash","input":{}}}"#,
                ),
                (
                    "content_block_delta",
                    r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"command\": \"rm -rf build"}}"#,
                ),
                ("content_block_stop", r#"{"type":"content_block_stop","index":0}"#),
            ],
            r#""max_tokens""#,
            64,
        ),
        message: r#"{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"bash","input":{"INVALID_JSON":"{\"command\": \"rm -rf build"}}]}"#,
        stop: "max_tokens",
        tokens: 174,
    }
}

fn silent_thinking() -> Sample {
    Sample {
        name: "thinking kept back",
        bytes: message(
            &[
                (
                    "content_block_start",
                    r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
                ),
                (
                    "content_block_delta",
                    r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}"#,
                ),
                ("content_block_stop", r#"{"type":"content_block_stop","index":0}"#),
                (
                    "content_block_start",
                    r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"b64=="}}"#,
                ),
                ("content_block_stop", r#"{"type":"content_block_stop","index":1}"#),
                (
                    "content_block_start",
                    r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"Done."}}"#,
                ),
                ("content_block_stop", r#"{"type":"content_block_stop","index":2}"#),
            ],
            r#""end_turn""#,
            1,
        ),
        message: r#"{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"c2ln"},{"type":"redacted_thinking","data":"b64=="},{"type":"text","text":"Done."}]}"#,
        stop: "end_turn",
        tokens: 111,
    }
}

fn server_tool() -> Sample {
    Sample {
        name: "server tool, paused",
        bytes: message(
            &[
                (
                    "content_block_start",
                    r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}"#,
                ),
                (
                    "content_block_delta",
                    r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"rust\"}"}}"#,
                ),
                ("content_block_stop", r#"{"type":"content_block_stop","index":0}"#),
                (
                    "content_block_start",
                    r#"{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","title":"R","url":"https://example.org","encrypted_content":"AbC=","page_age":null}]}}"#,
                ),
                ("content_block_stop", r#"{"type":"content_block_stop","index":1}"#),
                (
                    "content_block_start",
                    r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"","citations":[]}}"#,
                ),
                (
                    "content_block_delta",
                    r#"{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"type":"c","url":"u"}}}"#,
                ),
                (
                    "content_block_delta",
                    r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"see"}}"#,
                ),
                ("content_block_stop", r#"{"type":"content_block_stop","index":2}"#),
            ],
            r#""pause_turn""#,
            40,
        ),
        message: r#"{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"rust"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","title":"R","url":"https://example.org","encrypted_content":"AbC=","page_age":null}]},{"type":"text","text":"see","citations":[{"type":"c","url":"u"}]}]}"#,
        stop: "pause_turn",
        tokens: 150,
    }
}

fn interleaved() -> Sample {
    Sample {
        name: "interleaved blocks",
        bytes: message(
            &[
                (
                    "content_block_start",
                    r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
                ),
                (
                    "content_block_start",
                    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
                ),
                (
                    "content_block_delta",
                    r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"B"}}"#,
                ),
                (
                    "content_block_delta",
                    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"A"}}"#,
                ),
                ("content_block_stop", r#"{"type":"content_block_stop","index":1}"#),
                ("content_block_stop", r#"{"type":"content_block_stop","index":0}"#),
                (
                    "message_delta",
                    r#"{"type":"message_delta","delta":{"stop_reason":null},"usage":{"output_tokens":3}}"#,
                ),
            ],
            r#""stop_sequence""#,
            5,
        ),
        message: r#"{"role":"assistant","content":[{"type":"text","text":"A"},{"type":"text","text":"B"}]}"#,
        stop: "stop_sequence",
        tokens: 115,
    }
}

fn refusal() -> Sample {
    let mut bytes = event("message_start", START);
    bytes += &event(
        "message_delta",
        r#"{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"category":"cyber","explanation":"no"}},"usage":{"input_tokens":10,"output_tokens":2,"output_tokens_details":{"thinking_tokens":1}}}"#,
    );
    bytes += &event("message_stop", r#"{"type":"message_stop"}"#);
    Sample {
        name: "refusal",
        bytes: bytes.into_bytes(),
        message: r#"{"role":"assistant","content":[]}"#,
        stop: "refusal",
        tokens: 112,
    }
}

fn crlf_and_comments() -> Sample {
    let text = String::from_utf8_lossy(&text().bytes).replace('\n', "\r\n");
    let bytes = format!("\u{FEFF}: welcome\r\n{}", text.replace("event: ping", ":keep-alive\r\nid: 3\r\nevent: ping"));
    Sample { name: "CRLF, mark and comments", bytes: bytes.into_bytes(), ..text_expectation() }
}

fn text_expectation() -> Sample {
    Sample { bytes: Vec::new(), ..text() }
}

fn empty() -> Sample {
    Sample {
        name: "empty end_turn",
        bytes: message(&[], r#""end_turn""#, 2),
        message: r#"{"role":"assistant","content":[]}"#,
        stop: "end_turn",
        tokens: 112,
    }
}

fn unknown_block() -> Sample {
    Sample {
        name: "unknown block, delta, event and reason",
        bytes: message(
            &[
                (
                    "content_block_start",
                    r#"{"type":"content_block_start","index":0,"content_block":{"zeta":[1.0,{"b":2,"a":1}],"type":"hologram"}}"#,
                ),
                (
                    "content_block_delta",
                    r#"{"type":"content_block_delta","index":0,"delta":{"type":"hologram_delta","photons":3}}"#,
                ),
                ("hologram_event", r#"{"type":"hologram_event"}"#),
                ("content_block_stop", r#"{"type":"content_block_stop","index":0}"#),
            ],
            r#""teleported""#,
            9,
        ),
        message: r#"{"role":"assistant","content":[{"zeta":[1.0,{"b":2,"a":1}],"type":"hologram"}]}"#,
        stop: "teleported",
        tokens: 119,
    }
}
