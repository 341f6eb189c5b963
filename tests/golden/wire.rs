//! What goes over the wire: the real binary against a scripted server that this test holds, so that the bytes it
//! received can be looked at.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use nightloop::agent::rehearsal::{RecordedRequest, Script, Server, Speed};
use nightloop::engine::backends::Agents;
use nightloop::engine::conversation::{self, Messages};
use nightloop::engine::rate::{self, RateGate};
use nightloop::engine::recorded::fold_record;
use nightloop::journal::{self, RunDir};
use nightloop::machine::call::CallTodo;
use serde_json::{Value, json};

use crate::case::{Case, Ran, call, sh, solver_report, write};
use crate::sealed::{Expect, check};

/// A rehearsal server on a thread of its own.
pub struct Wire {
    server: Server,
    _stop: tokio::sync::oneshot::Sender<()>,
}

impl Wire {
    pub fn serve(script: &Value) -> Self {
        let script = Script::parse(&script.to_string(), "test").unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                tell.send(Server::start(script, Speed::Instant).await.unwrap()).unwrap();
                let _ = stopped.await;
            });
        });
        Self { server: told.recv().unwrap(), _stop: stop }
    }

    pub fn url(&self) -> String {
        self.server.base_url()
    }

    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.server.requests()
    }

    fn bodies(&self) -> Vec<Value> {
        self.requests().iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
    }
}

/// Runs a case through `backend: anthropic` against a server of our own.
fn run(case: Case, agent: Value) -> (Ran, Wire) {
    let wire = Wire::serve(&case.script());
    let mut agent = agent;
    agent["backend"] = json!("anthropic");
    agent["base_url"] = json!(wire.url());
    let ran = case.declare("agents", json!({"model": agent})).run();
    (ran, wire)
}

/// Thinking, text, and what a server's own tools leave behind, before the report.
fn talkative(case: Case, role: &'static str) -> Case {
    let report = case.default_turns(role, 0)[0].clone();
    let search = json!([
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
            {"type": "web_search_result", "url": "https://example.org", "title": "t", "encrypted_content": "AAE=", "page_age": null}]},
        {"type": "server_tool_use", "id": "srvtoolu_2", "name": "web_search", "input": {"query": "y"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_2",
            "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}},
    ]);
    let looks = json!({
        "thinking": "hm", "text": "I look.", "blocks": search, "calls": [sh("true"), call("no_such_tool", json!({}))],
        "usage": {"searches": 2},
    });
    let pauses = json!({"text": "One moment.", "blocks": [search[0], search[1]], "stop": "pause_turn"});
    let broken = json!({"calls": [{"tool": "bash", "raw_input": "{\"command\": \"ls"}]});
    case.turns(role, 0, json!([looks, pauses, broken, report]))
}

#[test]
fn every_request_is_one_that_the_vendors_types_describe() {
    let schema: Value = serde_json::from_str(include_str!("../fixtures/messages-request.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let features = [
        json!({"model": "claude-opus-5-5", "effort": "high"}),
        json!({"model": "claude-sonnet-5-5", "thinking": "between_tools", "cache": "5m", "effort": "max"}),
        json!({"model": "claude-sonnet-5", "thinking": "off", "cache": "off"}),
        json!({"model": "claude-haiku-4-5", "max_tokens": 20_000}),
        json!({"model": "house-model", "web": {"search": true, "fetch": true, "allowed_domains": ["example.org"]}}),
        json!({"model": "claude-fable-5-2", "web": {"search": true, "max_uses": 2, "blocked_domains": ["a.b"]}, "cache": "1h"}),
    ];
    let mismatch =
        "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation";
    let (mut seen, mut kept) = (Vec::new(), Vec::new());
    for feature in features {
        let case = Case::two_steps();
        let case = talkative(talkative(talkative(case, "scout"), "solver"), "skeptic");
        let case = case.faults("scout", 1, json!([{"http": 400, "message": mismatch}]));
        let (ran, wire) = run(case, feature.clone());
        for body in wire.bodies() {
            let faults: Vec<String> =
                schema.iter_errors(&body).map(|e| format!("{}: {e}", e.instance_path())).collect();
            assert!(faults.is_empty(), "{feature}: {faults:#?}");
            seen.push(body.clone());
            kept.push(body);
        }
        let drops = ran.events("llm.requested").iter().filter(|data| data["drop_blocks"] == true).count();
        let adaptive = wire.bodies()[0]["thinking"]["type"] == "adaptive";
        assert_eq!(drops, usize::from(adaptive), "{feature}");
        if adaptive {
            check(&ran, &Expect::exact(&["0.5", "0"]));
        }
    }
    // Each feature was really there, so that the schema had something to look at.
    let count = |pointer: &str, value: Value| seen.iter().filter(|body| body.pointer(pointer) == Some(&value)).count();
    for (pointer, value) in [
        ("/thinking/type", json!("adaptive")),
        ("/thinking/type", json!("between_tools")),
        ("/thinking/type", json!("disabled")),
        ("/thinking/type", json!("enabled")),
        ("/thinking/block_binding/prefix_mismatch_behavior", json!("drop_block")),
        ("/output_config/effort", json!("max")),
        ("/cache_control/ttl", json!("5m")),
        ("/cache_control/ttl", json!("1h")),
        ("/messages/2/content/0/type", json!("tool_result")),
        ("/messages/1/content/2/type", json!("server_tool_use")),
    ] {
        assert!(count(pointer, value.clone()) > 0, "no request with {pointer} = {value}");
    }
    let has_web = |body: &&Value| body["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "web_search");
    assert!(seen.iter().filter(has_web).count() > 0 && !seen.iter().all(|body| has_web(&body)), "not for everybody");
    assert!(seen.iter().any(|body| body.get("cache_control").is_none()));
    // For a look with the vendor's own types, by hand.
    if let Some(path) = std::env::var_os("NIGHTLOOP_KEEP_REQUESTS") {
        std::fs::write(path, serde_json::to_string(&kept).unwrap()).unwrap();
    }
}

/// A run of many turns, stopped in thought after every single event: what would be sent next is what was sent.
#[test]
fn a_thousand_resumes_send_the_same_bytes() {
    let turn = |n: usize| json!({"thinking": format!("step {n}"), "text": "é🦀", "calls": [sh(&format!("echo {n}"))]});
    let mut turns: Vec<Value> = (0..40).map(turn).collect();
    turns.push(json!({"calls": [write("a", "1\n"), write("src/metric", "1\n"), solver_report("Done.")]}));
    let case = Case::new().check("a", "test -f a").turns("solver", 0, Value::Array(turns));
    let (ran, wire) = run(case, json!({"model": "claude-opus-5-5"}));
    check(&ran, &Expect::exact(&["0"]));
    let sent = wire.requests();
    assert!(sent.len() > 40, "{}", sent.len());

    let run_dir = RunDir::open(&ran.bench.run_dir()).unwrap();
    let records: Vec<_> = journal::read(&run_dir).map(|record| record.unwrap()).collect();
    let blobs = run_dir.blobs();
    let mut folded = None;
    fold_record(&mut folded, &records[0]).unwrap();
    let declared = folded.as_ref().unwrap().loop_file().clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let agents =
        runtime.block_on(Agents::prepare(&declared, &ran.bench.workspace, &ran.bench.state, &Speed::Instant.into()));
    let setup = agents.unwrap().get("model").unwrap().setup.clone();

    let (mut rebuilt, mut whole) = (0, 0);
    while rebuilt < 1_000 {
        let (mut folded, mut requested) = (None, 0);
        for record in &records {
            fold_record(&mut folded, record).unwrap();
            requested += usize::from(record.kind == "llm.requested");
            let state = folded.as_ref().unwrap();
            let Some(open) = state.call.as_ref() else { continue };
            // A fresh engine knows nothing but the journal and the blobs.
            let body = conversation::request(open, &setup, &blobs, &mut Messages::new()).unwrap().body();
            rebuilt += 1;
            // The open request would be sent again; else the next one is due.
            let due = if open.request_open { requested - 1 } else { requested };
            if open.next() == CallTodo::Ask {
                assert_eq!(body, sent[due].body, "after event {}", record.seq);
                whole += 1;
            } else if let Some(next) = sent.get(due).filter(|next| next.role == open.role().name()) {
                // In the middle of a turn: everything so far stands at the front of what comes next.
                let messages = body.windows(14).rposition(|window| window == br#"],"max_tokens""#).unwrap();
                assert!(next.body.starts_with(&body[..messages]), "after event {}", record.seq);
            }
        }
    }
    assert!(whole > 100, "{whole}");
}

/// A TLS server with a certificate that only our own authority signed, in front of a plain one.
fn tls_front(plain: String) -> u16 {
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let _ = rustls::crypto::ring::default_provider().install_default();
    let leaf = CertificateDer::from_pem_slice(include_bytes!("../fixtures/tls/leaf.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("../fixtures/tls/leaf.key")).unwrap();
    let config = rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(vec![leaf], key).unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (config, plain) = (config.clone(), plain.clone());
            std::thread::spawn(move || {
                let connection = rustls::ServerConnection::new(config).unwrap();
                let mut tls = rustls::StreamOwned::new(connection, stream);
                let Some(request) = read_request(&mut tls) else { return };
                let mut behind = TcpStream::connect(plain).unwrap();
                behind.write_all(&request).unwrap();
                let mut buffer = [0; 16 * 1024];
                while let Ok(n @ 1..) = behind.read(&mut buffer) {
                    if tls.write_all(&buffer[..n]).and_then(|()| tls.flush()).is_err() {
                        return;
                    }
                }
                tls.conn.send_close_notify();
                let _ = tls.flush();
            });
        }
    });
    port
}

/// One HTTP request with a content length.
fn read_request(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut request = Vec::new();
    let mut buffer = [0; 16 * 1024];
    loop {
        if let Some(head) = request.windows(4).position(|window| window == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&request[..head]).to_ascii_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
            if request.len() >= head + 4 + length.unwrap_or(0usize) {
                return Some(request);
            }
        }
        match stream.read(&mut buffer) {
            Ok(n @ 1..) => request.extend_from_slice(&buffer[..n]),
            Ok(0) | Err(_) => return None,
        }
    }
}

/// A proxy that tunnels every CONNECT to one port, and remembers who was asked for.
fn connect_proxy(to: u16) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let remembered = asked.clone();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let remembered = remembered.clone();
            std::thread::spawn(move || {
                let Some(request) = read_request(&mut client) else { return };
                let line = String::from_utf8_lossy(&request).lines().next().unwrap_or_default().to_owned();
                remembered.lock().unwrap().push(line);
                let mut server = TcpStream::connect(("127.0.0.1", to)).unwrap();
                client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap();
                let (mut from, mut onto) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut onto);
                    let _ = onto.shutdown(std::net::Shutdown::Write);
                });
                let _ = std::io::copy(&mut server, &mut client);
                let _ = client.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    (port, asked)
}

#[test]
fn a_house_certificate_and_the_systems_proxy_are_honoured() {
    let case = || Case::new().check("a", "test -f a").solver(0, [write("a", "1\n")]);
    let wire = Wire::serve(&case().script());
    let front = tls_front(wire.url().trim_start_matches("http://").to_owned());
    let (proxy, asked) = connect_proxy(front);
    let ca = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/tls/ca.pem");
    let agent = json!({"backend": "anthropic", "model": "m", "base_url": "https://model.example", "ca_file": ca});
    let run = |agent: &Value, variables: &[(&str, String)]| {
        let bench = case().declare("agents", json!({"model": agent})).written();
        let mut command = bench.command(&["run", "--headless"]);
        command.envs(variables.iter().map(|(name, value)| (*name, value.as_str())));
        Ran { ended: command.output().unwrap().into(), bench }
    };
    let through = ("HTTPS_PROXY", format!("http://127.0.0.1:{proxy}"));
    let ran = run(&agent, std::slice::from_ref(&through));
    check(&ran, &Expect::exact(&["0"]));
    assert!(asked.lock().unwrap().iter().all(|line| line.starts_with("CONNECT model.example:443 ")));
    assert_eq!(wire.requests().len(), 3);

    // Without the certificate nothing is said, and nothing is tried again.
    let mut bare = agent.clone();
    bare.as_object_mut().unwrap().remove("ca_file");
    let ran = run(&bare, std::slice::from_ref(&through));
    let failed = ran.events("llm.failed");
    assert_eq!(failed[0]["class"], "fatal", "{failed:?}");
    assert!(failed[0]["message"].as_str().unwrap().contains("certificate"), "{failed:?}");
    assert_eq!(wire.requests().len(), 3);

    // This machine is never asked for through a proxy.
    let before = asked.lock().unwrap().len();
    let mut local = agent.clone();
    local["base_url"] = json!(format!("https://localhost:{front}"));
    check(&run(&local, std::slice::from_ref(&through)), &Expect::exact(&["0"]));
    assert_eq!(asked.lock().unwrap().len(), before);
}

#[test]
fn what_a_model_cannot_do_is_refused_before_the_start() {
    for (agent, hint) in [
        (json!({"model": "claude-opus-5-5", "thinking": "off"}), "adaptive"),
        (json!({"model": "claude-opus-4-6", "effort": "xhigh"}), "low, medium, high, max"),
        (json!({"model": "claude-haiku-4-5", "max_tokens": 100_000}), "64000"),
        (json!({"model": "claude-opus-5", "web": {"fetch": true}}), "web.fetch"),
        (json!({"model": "m", "api_key_file": "loop.yaml"}), "workspace"),
        (json!({"model": "m", "api_key_command": ["false"]}), "by hand"),
        (json!({"model": "m", "ca_file": "/nonexistent"}), "check the path"),
    ] {
        let (ran, wire) = run(Case::two_steps(), agent.clone());
        assert_eq!(ran.ended.code, 64, "{agent}");
        assert!(ran.ended.stderr.contains(hint), "{agent}: {}", ran.ended.stderr);
        assert!(wire.requests().is_empty() && !ran.bench.state.join("runs").exists(), "{agent}");
    }
}

#[test]
fn what_one_run_is_told_holds_for_the_next() {
    let case = || Case::new().check("a", "test -f a").solver(0, [write("a", "1\n")]);
    let wire = Wire::serve(&case().script());
    let agent = json!({"backend": "anthropic", "model": "m", "base_url": wire.url(), "api_key_env": "TEST_KEY"});
    let case = case().declare("agents", json!({"model": agent}));
    // Another run with the same key and model hears "come back later": later than a busy machine needs for the checks
    // that come before the first call.
    let wait = std::time::Duration::from_secs(8);
    let gate = RateGate::of(&case.bench.state, "sk-test", "m", &wire.url());
    let (_, ticket) = gate.ask(rate::now_ms(), 1, false);
    let told = rate::now_ms();
    gate.refused(ticket, Some(wait), told);
    let ran = case.run_with("TEST_KEY", "sk-test");
    let came = rate::now_ms();
    check(&ran, &Expect::exact(&["0"]));
    let kinds: Vec<String> =
        ran.bench.events().into_iter().map(|(kind, _)| kind).filter(|kind| kind.starts_with("llm.")).collect();
    assert_eq!(kinds[..3], ["llm.failed", "llm.requested", "llm.responded"]);
    let waited = &ran.events("llm.failed")[0];
    assert_eq!((&waited["class"], &waited["attempt"]), (&json!("rate_limited"), &json!(0)));
    assert_eq!(waited["message"], "another run of yours was told to wait");
    assert!(came >= told + 8_000, "it ended before it may have begun");
    // The key is in no file that the run left behind.
    let found = std::process::Command::new("grep").args(["-rl", "sk-test"]).arg(ran.bench.dir.path()).output().unwrap();
    assert!(found.stdout.is_empty(), "{}", String::from_utf8_lossy(&found.stdout));
}
