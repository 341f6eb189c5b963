//! Whole runs through `backend: openai`: the chat-completions client of the real binary against a rehearsal server
//! that this test serves.

use nightloop::agent::rehearsal::{RecordedRequest, Script, Server, Speed};
use serde_json::{Value, json};
use std::sync::mpsc;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

use crate::case::{Case, Ran};
use crate::sealed::{Expect, check};

/// A rehearsal server on a thread of its own.
struct Served {
    base_url: String,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<Vec<RecordedRequest>>,
}

impl Served {
    fn start(script: &Value) -> Self {
        let script = Script::parse(&script.to_string(), "rehearsal.yaml").unwrap();
        let (told, hears) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let server = Server::start(script, Speed::Instant).await.unwrap();
                told.send(format!("{}/v1", server.base_url())).unwrap();
                let _ = stopped.await;
                server.requests()
            })
        });
        Self { base_url: hears.recv().unwrap(), stop, thread }
    }

    /// What it was asked.
    fn end(self) -> Vec<RecordedRequest> {
        self.stop.send(()).unwrap();
        self.thread.join().unwrap()
    }
}

fn run(case: Case) -> (Ran, Vec<RecordedRequest>) {
    let served = Served::start(&case.script());
    let agent = json!({"backend": "openai", "model": "rehearsal-1", "base_url": served.base_url});
    let ran = case.declare("agents", json!({"model": agent})).run();
    let requests = served.end();
    (ran, requests)
}

#[test]
fn a_loop_reaches_its_proof_through_chat_completions() {
    let (ran, requests) = run(Case::two_steps());
    check(&ran, &Expect::exact(&["0.5", "0"]));
    assert_eq!(ran.text("b"), "1\n");
    assert!(ran.events("agent.started").iter().all(|data| data["backend"] == "openai"));
    // No price is declared: the cost is unknown, which is not zero.
    assert!(ran.events("llm.responded").iter().all(|data| data["cost_usd"].is_null()));
    let first: Value = serde_json::from_slice(&requests[0].body).unwrap();
    assert_eq!(first["messages"][0]["role"], "system");
    assert_eq!(first["tools"][0]["type"], "function");
    assert!(requests.iter().all(|request| !request.headers.iter().any(|(name, _)| name == "authorization")));
}

#[test]
fn faults_are_waited_out_and_a_malformed_call_is_refused() {
    let good = Case::two_steps().default_turns("solver", 0);
    let bad = json!({"calls": [{"tool": "write_file", "raw_input": "{\"path\": \"x"}]});
    let case = Case::two_steps()
        .faults("scout", 0, json!([{"http": 429, "retry_after": 0}]))
        .turns("solver", 0, json!([bad, good[0]]))
        .faults("skeptic", 0, json!([{"stream_error": "overloaded_error"}, {"html": 502}]))
        // The whole reply but its last byte: every tool call is there, and none may run.
        .faults("solver", 1, json!([{"cut_after_bytes": 10_000_000}, {"cut_after_bytes": 600}, {"cut": "reset"}]))
        .faults("skeptic", 1, json!([{"malformed_sse": true}]));
    let (ran, requests) = run(case);
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let failed = ran.events("llm.failed");
    let classes: Vec<&str> = failed.iter().map(|data| data["class"].as_str().unwrap()).collect();
    let transient = "transient";
    assert_eq!(classes, ["rate_limited", "overloaded", transient, transient, transient, transient, transient]);
    let refused = ran.events("tool.finished").iter().filter(|data| data["outcome"] == "refused").count();
    assert_eq!(refused, 1);
    assert!(!ran.bench.workspace.join("x").exists());
    assert_eq!(ran.intended("write_file"), 5);
    // The refused call and what it was told went back to the model.
    let second = requests.iter().find(|r| (r.role.as_str(), r.iteration, r.turn) == ("solver", Some(0), 1)).unwrap();
    let body: Value = serde_json::from_slice(&second.body).unwrap();
    let messages = body["messages"].as_array().unwrap();
    let [.., called, told] = messages.as_slice() else { panic!("{body}") };
    assert_eq!(called["tool_calls"][0]["id"], told["tool_call_id"]);
    assert!(told["content"].as_str().unwrap().starts_with("ERROR: "), "{told}");
}

#[test]
fn a_key_goes_to_a_local_server_only_if_it_is_named() {
    for (named, variable, wanted) in
        [(json!(null), "OPENAI_API_KEY", None), (json!("LOCAL_KEY"), "LOCAL_KEY", Some("Bearer sk-secret"))]
    {
        let case = Case::two_steps();
        let served = Served::start(&case.script());
        let agent = json!({"backend": "openai", "model": "m", "base_url": served.base_url, "api_key_env": named});
        let ran = case.declare("agents", json!({"model": agent})).run_with(variable, "sk-secret");
        check(&ran, &Expect::exact(&["0.5", "0"]));
        for request in served.end() {
            let sent =
                request.headers.iter().find(|(name, _)| name == "authorization").map(|(_, value)| value.as_str());
            assert_eq!(sent, wanted);
        }
    }
}

#[test]
fn an_account_without_quota_stops_the_run() {
    let quota = json!({"http": 429, "kind": "insufficient_quota", "code": "insufficient_quota", "retry_after": 1});
    let (ran, _) = run(Case::two_steps().faults("solver", 1, json!([quota])));
    check(&ran, &Expect::stopped(75, &["0.5"]));
    assert_eq!(ran.exit()["signal_detected"], "spend_limit");
}
