//! Streams in the shapes that real servers send, for tests of the reader.
//!
//! Role: sample bytes with the message they stand for. Test code only. The words are ours; the shapes (which fields,
//! in which order, how a call is cut into pieces, how a stream ends) are those of each server's public output.
//! Invariant: each sample is complete; tests cut and damage it themselves.

pub struct Sample {
    pub name: &'static str,
    pub bytes: Vec<u8>,
    /// The assembled message, byte for byte.
    pub message: &'static str,
    pub stop: &'static str,
    /// Input, cache read, output and thinking tokens.
    pub tokens: [u64; 4],
}

/// Events of a stream, ended as most servers do.
pub fn stream(chunks: &[String]) -> Vec<u8> {
    let mut out = unended(chunks);
    out.extend_from_slice(b"data: [DONE]\n\n");
    out
}

/// The same from a server that forgets `[DONE]`.
pub fn unended(chunks: &[String]) -> Vec<u8> {
    chunks.iter().flat_map(|chunk| format!("data: {chunk}\n\n").into_bytes()).collect()
}

/// A chunk with one choice and nothing around it.
pub fn bare(delta: &str, finish: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":{finish}}}]}}"#)
}

pub fn all() -> Vec<Sample> {
    vec![openai(), ollama(), llama_cpp(), vllm(), vllm_text(), openrouter(), sglang()]
}

fn openai() -> Sample {
    let chunk = |delta: &str, finish: &str| {
        format!(
            r#"{{"id":"chatcmpl-C1","object":"chat.completion.chunk","created":1755137933,"model":"gpt-5","service_tier":"default","system_fingerprint":null,"choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish}}}],"usage":null,"obfuscation":"yBUv8b1"}}"#
        )
    };
    let usage = r#"{"id":"chatcmpl-C1","object":"chat.completion.chunk","created":1755137933,"model":"gpt-5","service_tier":"default","system_fingerprint":null,"choices":[],"usage":{"prompt_tokens":2010,"completion_tokens":140,"total_tokens":2150,"prompt_tokens_details":{"cached_tokens":1920,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":64,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"obfuscation":""}"#;
    let call = r#"{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_a1","type":"function","function":{"name":"bash","arguments":""}}],"refusal":null}"#;
    Sample {
        name: "OpenAI, two calls at once",
        bytes: stream(&[
            chunk(call, "null"),
            chunk(r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"com"}}]}"#, "null"),
            chunk(r#"{"tool_calls":[{"index":0,"function":{"arguments":"mand\":\"ls é\"}"}}]}"#, "null"),
            chunk(
                r#"{"tool_calls":[{"index":1,"id":"call_b2","type":"function","function":{"name":"read_file","arguments":""}}]}"#,
                "null",
            ),
            chunk(r#"{"tool_calls":[{"index":1,"function":{"arguments":"{\"path\":\"a\"}"}}]}"#, "null"),
            chunk("{}", r#""tool_calls""#),
            usage.to_owned(),
        ]),
        message: r#"{"role":"assistant","content":[{"type":"tool_use","id":"call_a1","name":"bash","input":{"command":"ls é"}},{"type":"tool_use","id":"call_b2","name":"read_file","input":{"path":"a"}}]}"#,
        stop: "tool_use",
        tokens: [90, 1920, 140, 64],
    }
}

/// Reasoning in `reasoning`; every call whole in one chunk, all with index 0; the reason is `stop`.
fn ollama() -> Sample {
    let chunk = |delta: &str, finish: &str| {
        format!(
            r#"{{"id":"chatcmpl-140","object":"chat.completion.chunk","created":1768062791,"model":"qwen3:8b","system_fingerprint":"fp_ollama","choices":[{{"index":0,"delta":{delta},"finish_reason":{finish}}}]}}"#
        )
    };
    Sample {
        name: "Ollama, thinking and two calls with index 0",
        bytes: stream(&[
            chunk(r#"{"role":"assistant","content":"","reasoning":"Okay, "}"#, "null"),
            chunk(r#"{"role":"assistant","content":"","reasoning":"two files 🦀."}"#, "null"),
            chunk(
                r#"{"role":"assistant","content":"","tool_calls":[{"id":"call_lbcjwr0u","index":0,"type":"function","function":{"name":"read_file","arguments":"{\"path\":\"a\"}"}}]}"#,
                "null",
            ),
            chunk(
                r#"{"role":"assistant","content":"","tool_calls":[{"id":"call_mmmf8pcj","index":0,"type":"function","function":{"name":"read_file","arguments":"{\"path\":\"b\"}"}}]}"#,
                "null",
            ),
            chunk(r#"{"role":"assistant","content":""}"#, r#""stop""#),
            r#"{"id":"chatcmpl-140","object":"chat.completion.chunk","created":1768062791,"model":"qwen3:8b","system_fingerprint":"fp_ollama","choices":[],"usage":{"prompt_tokens":331,"completion_tokens":55,"total_tokens":386}}"#.to_owned(),
        ]),
        message: r#"{"role":"assistant","content":[{"type":"thinking","thinking":"Okay, two files 🦀.","signature":""},{"type":"tool_use","id":"call_lbcjwr0u","name":"read_file","input":{"path":"a"}},{"type":"tool_use","id":"call_mmmf8pcj","name":"read_file","input":{"path":"b"}}]}"#,
        stop: "tool_use",
        tokens: [331, 0, 55, 0],
    }
}

/// Reasoning in `reasoning_content`; counts only in `timings`.
fn llama_cpp() -> Sample {
    let chunk = |delta: &str, finish: &str, more: &str| {
        format!(
            r#"{{"choices":[{{"finish_reason":{finish},"index":0,"delta":{delta}}}],"created":1758777189,"id":"chatcmpl-L2v2","model":"gpt-oss.gguf","system_fingerprint":"b6510-703f9e32","object":"chat.completion.chunk"{more}}}"#
        )
    };
    let timings = r#","timings":{"cache_n":1100,"prompt_n":250,"prompt_ms":277.8,"prompt_per_token_ms":1.11,"prompt_per_second":900.0,"predicted_n":61,"predicted_ms":1605.3,"predicted_per_token_ms":26.3,"predicted_per_second":38.0}"#;
    Sample {
        name: "llama.cpp, thinking, text, a call in pieces, timings",
        bytes: stream(&[
            chunk(r#"{"role":"assistant","content":null}"#, "null", ""),
            chunk(r#"{"reasoning_content":"I need"}"#, "null", ""),
            chunk(r#"{"reasoning_content":" a test."}"#, "null", ""),
            chunk(r#"{"content":"First "}"#, "null", ""),
            chunk(r#"{"content":"the test.\n"}"#, "null", ""),
            chunk(
                r#"{"tool_calls":[{"index":0,"id":"EOIjhzHZeDcpjqqJ","type":"function","function":{"name":"bash","arguments":"{"}}]}"#,
                "null",
                "",
            ),
            chunk(r#"{"tool_calls":[{"index":0,"function":{"arguments":"\"command\":\"cargo "}}]}"#, "null", ""),
            chunk(r#"{"tool_calls":[{"index":0,"function":{"arguments":"test\"}"}}]}"#, "null", ""),
            chunk("{}", r#""tool_calls""#, timings),
        ]),
        message: r#"{"role":"assistant","content":[{"type":"thinking","thinking":"I need a test.","signature":""},{"type":"text","text":"First the test.\n"},{"type":"tool_use","id":"EOIjhzHZeDcpjqqJ","name":"bash","input":{"command":"cargo test"}}]}"#,
        stop: "tool_use",
        tokens: [250, 1100, 61, 0],
    }
}

/// The name alone, then arguments; an empty list of calls beside text; both names of reasoning with the same words.
fn vllm() -> Sample {
    let chunk = |delta: &str, finish: &str| {
        format!(
            r#"{{"id":"chatcmpl-97319e51","object":"chat.completion.chunk","created":1784121169,"model":"qwen3-4b","choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish},"token_ids":null}}]}}"#
        )
    };
    Sample {
        name: "vLLM, both names of reasoning, a call in pieces",
        bytes: stream(&[
            r#"{"id":"chatcmpl-97319e51","object":"chat.completion.chunk","created":1784121169,"model":"qwen3-4b","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null}"#.to_owned(),
            chunk(r#"{"reasoning":"Hm","reasoning_content":"Hm","tool_calls":[]}"#, "null"),
            chunk(
                r#"{"tool_calls":[{"id":"chatcmpl-tool-b120ab7b","type":"function","index":0,"function":{"name":"write_file"}}]}"#,
                "null",
            ),
            chunk(r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\": \"x\", "}}]}"#, "null"),
            chunk(r#"{"tool_calls":[{"index":0,"function":{"arguments":"\"content\": \"1\\n\"}"}}]}"#, "null"),
            chunk(r#"{"content":""}"#, r#""tool_calls","stop_reason":null"#),
            r#"{"id":"chatcmpl-97319e51","object":"chat.completion.chunk","created":1784121169,"model":"qwen3-4b","choices":[],"usage":{"prompt_tokens":1874,"total_tokens":1942,"completion_tokens":68,"prompt_tokens_details":null}}"#.to_owned(),
        ]),
        message: r#"{"role":"assistant","content":[{"type":"thinking","thinking":"Hm","signature":""},{"type":"tool_use","id":"chatcmpl-tool-b120ab7b","name":"write_file","input":{"path": "x", "content": "1\n"}}]}"#,
        stop: "tool_use",
        tokens: [1874, 0, 68, 0],
    }
}

fn vllm_text() -> Sample {
    Sample {
        name: "vLLM, text cut by its length, the last word with the reason",
        bytes: stream(&[
            r#"{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}"#.to_owned(),
            r#"{"id":"c","choices":[{"index":0,"delta":{"content":"in","tool_calls":[]},"logprobs":null,"finish_reason":null}]}"#.to_owned(),
            r#"{"id":"c","choices":[{"index":0,"delta":{"content":" clusters"},"logprobs":null,"finish_reason":"length","stop_reason":null}]}"#.to_owned(),
            r#"{"id":"c","choices":[],"usage":{"prompt_tokens":32,"total_tokens":35,"completion_tokens":3},"system_fingerprint":"vllm-0.29.0"}"#.to_owned(),
        ]),
        message: r#"{"role":"assistant","content":[{"type":"text","text":"in clusters"}]}"#,
        stop: "max_tokens",
        tokens: [32, 0, 3, 0],
    }
}

/// Comments before and between, CR LF, and a choice in the chunk with the counts.
fn openrouter() -> Sample {
    let lines = [
        ": OPENROUTER PROCESSING",
        "",
        ": OPENROUTER PROCESSING",
        "",
        r#"data: {"id":"gen-1","provider":"X","model":"m","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":"Done"},"finish_reason":null,"native_finish_reason":null,"logprobs":null}]}"#,
        "",
        ": OPENROUTER PROCESSING",
        "",
        r#"data: {"id":"gen-1","provider":"X","model":"m","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":"."},"finish_reason":"stop","native_finish_reason":"completed","logprobs":null}]}"#,
        "",
        r#"data: {"id":"gen-1","provider":"X","model":"m","object":"chat.completion.chunk","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null,"native_finish_reason":null,"logprobs":null}],"usage":{"prompt_tokens":14,"completion_tokens":3,"total_tokens":17,"cost":0.0000013,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":1}}}"#,
        "",
        "data: [DONE]",
        "",
        "",
    ];
    Sample {
        name: "OpenRouter, comments and CR LF",
        bytes: lines.join("\r\n").into_bytes(),
        message: r#"{"role":"assistant","content":[{"type":"text","text":"Done."}]}"#,
        stop: "end_turn",
        tokens: [10, 4, 3, 1],
    }
}

/// Ids that count from 0 in every reply and are repeated in every piece; every index is 0.
fn sglang() -> Sample {
    let piece = |id: &str, name: &str, arguments: &str| {
        let call = format!(
            r#"{{"id":"{id}","index":0,"type":"function","function":{{"name":{name},"arguments":"{arguments}"}}}}"#
        );
        bare(&format!(r#"{{"role":null,"content":null,"reasoning_content":null,"tool_calls":[{call}]}}"#), "null")
    };
    Sample {
        name: "SGLang, ids in every piece",
        bytes: stream(&[
            bare(r#"{"role":"assistant","content":"","reasoning_content":null,"tool_calls":null}"#, "null"),
            piece("0", r#""bash""#, ""),
            piece("0", "null", r#"{\"command\": "#),
            piece("0", "null", r#"\"ls\"}"#),
            piece("1", r#""bash""#, ""),
            piece("1", "null", r#"{\"command\": \"pwd\"}"#),
            bare(r#"{"role":null,"content":null,"tool_calls":null}"#, r#""tool_calls""#),
            r#"{"choices":[],"usage":{"prompt_tokens":40,"total_tokens":60,"completion_tokens":20,"prompt_tokens_details":null}}"#.to_owned(),
        ]),
        message: r#"{"role":"assistant","content":[{"type":"tool_use","id":"0","name":"bash","input":{"command": "ls"}},{"type":"tool_use","id":"1","name":"bash","input":{"command": "pwd"}}]}"#,
        stop: "tool_use",
        tokens: [40, 0, 20, 0],
    }
}
