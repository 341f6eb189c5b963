//! `rehearse`, `run --record` and `doctor` with the real binary: a run that is recorded plays back the same; a
//! rehearsal leaves everything as it was; each fault leads where the engine says.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code)]
#[path = "golden/case.rs"]
mod case;
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use case::{Case, call, sh, write};
use nightloop::model::digest::Digest;
use serde_json::{Value, json};
use support::{Bench, Ended};

/// Every file below a directory, by its digest.
fn digests(dir: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut left = vec![dir.to_owned()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() {
                left.push(path.clone());
            }
            let content = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            all.insert(path.display().to_string(), format!("{} {:?}", Digest::of(&content), meta.modified().unwrap()));
        }
    }
    all
}

fn data(bench: &Bench, kind: &str) -> Vec<Value> {
    bench.events().into_iter().filter(|(name, _)| name == kind).map(|(_, data)| data).collect()
}

fn replies(bench: &Bench) -> Vec<(Value, Value)> {
    data(bench, "llm.responded").into_iter().map(|mut data| (data["call"].take(), data["message"].take())).collect()
}

#[test]
fn a_recorded_run_plays_back_with_the_same_replies() {
    let scout = json!([
        {"thinking": "Hm, é…", "text": "I look. 日本", "calls": [sh("ls"), call("grep_search", json!({"pattern": "x"}))],
         "faults": [{"http": 500}, {"cut_after_bytes": 200}]},
        {"calls": [{"tool": "bash", "raw_input": "{\"command"}]},
        {"calls": [call("submit_scout_report", json!({"plan": ["Go."]}))]},
    ]);
    let case = Case::two_steps().turns("scout", 0, scout);
    let cassette = case.bench.dir.path().join("night.cassette");
    let bench = case.written();
    let ended: Ended = bench.command(&["run", "--headless", "--record"]).arg(&cassette).output().unwrap().into();
    ended.expect(0);
    let recorded = replies(&bench);
    assert!(recorded.len() >= 8, "{recorded:?}");

    let agent = json!({"model": {"backend": "rehearsal", "script": cassette}});
    let second = Case::two_steps().declare("agents", agent);
    let second = second.written();
    second.nightloop(&["run", "--headless"]).expect(0);
    assert_eq!(replies(&second), recorded, "the digests of the replies");
    assert_eq!(data(&second, "llm.failed").len(), 2, "the faults were recorded, too");

    // A second recording does not overwrite the first.
    let again: Ended = second.command(&["run", "--headless", "--record"]).arg(&cassette).output().unwrap().into();
    let again = again.expect(64);
    assert!(again.stderr.contains("a cassette is never overwritten"), "{}", again.stderr);
}

fn rehearse(bench: &Bench, arguments: &[&str]) -> Value {
    let all = [&["rehearse", "--json"], arguments].concat();
    let ended = bench.nightloop(&all).expect(0);
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn a_rehearsal_changes_nothing_and_tells_how_it_would_end() {
    let agent = json!({"backend": "anthropic", "model": "m", "base_url": "https://models.invalid"});
    let case = Case::new()
        .check("a", "touch made-by-check; test -f a")
        .file("keep/me", "1")
        .file(".gitignore", "big\n")
        .file("big", "not copied")
        .declare("agents", json!({"one": agent, "two": agent}))
        .declare("roles", json!({"skeptic": "two"}));
    let bench = case.written();
    fs::remove_file(bench.workspace.join("rehearsal.yaml")).unwrap();
    let before = digests(bench.dir.path());
    let told = rehearse(&bench, &[]);
    assert_eq!(digests(bench.dir.path()), before, "neither workspace nor state nor home");
    assert_eq!(told["status"], "EXIT_BLOCKED", "{told}");
    assert_eq!(told["exit_code"], 1, "{told}");
    assert_eq!(told["waiting_for_you"], json!([]), "{told}");
    assert!(told["model_calls"].as_u64().unwrap() >= 3, "{told}");
    let checks = told["checks"].as_array().unwrap();
    assert!(checks.iter().any(|check| check["result"].as_str().unwrap().contains("exit")), "{told}");
    let lines = bench.nightloop(&["rehearse"]).expect(0).stdout;
    assert!(lines.starts_with("rehearsed: this loop would end with EXIT_BLOCKED"), "{lines}");
}

#[test]
fn each_fault_leads_where_the_engine_says() {
    let case = Case::two_steps();
    let bench = case.written();
    let script = bench.dir.path().join("script.yaml");
    fs::rename(bench.workspace.join("rehearsal.yaml"), &script).unwrap();
    let script = script.to_str().unwrap();
    for (fault, status, words) in [
        ("429@2", "EXIT_CONVERGED", "rate_limited: would wait 30 s and retry"),
        ("529@1", "EXIT_CONVERGED", "overloaded"),
        ("500@3", "EXIT_CONVERGED", "transient"),
        ("cut@2", "EXIT_CONVERGED", "transient"),
        ("stall@1", "EXIT_CONVERGED", "transient"),
        ("bad-json@1", "EXIT_CONVERGED", "the agent was told: {\"INVALID_JSON\""),
        ("wrong-report@1", "EXIT_CONVERGED", "the report does not fit its schema"),
        ("refusal@2", "", "the solver the model refused"),
        ("spend-limit@1", "EXIT_BLOCKED", "spend_limit: no retry"),
        ("context-full@2", "", "model_context_window_exceeded"),
    ] {
        let told = rehearse(&bench, &["--script", script, "--fault", fault]);
        let led = told["faults"][0]["led_to"].to_string();
        assert!(led.replace("\\\"", "\"").contains(words), "{fault}: {told:#}");
        assert!(told["faults"][0]["struck"].is_string(), "{fault}: {told:#}");
        if !status.is_empty() {
            assert_eq!(told["status"], status, "{fault}: {told:#}");
        }
        assert_eq!(
            told["waiting_for_you"].as_array().unwrap().len(),
            usize::from(fault == "spend-limit@1"),
            "{told:#}"
        );
    }
    let late = rehearse(&bench, &["--script", script, "--fault", "cut@99"]);
    assert_eq!(late["faults"][0]["struck"], Value::Null, "{late:#}");
    let places = |seed: &str| {
        let told = rehearse(&bench, &["--script", script, "--fault", "529", "--fault", "500", "--seed", seed]);
        (told["faults"].clone(), told["seed"].clone())
    };
    assert_eq!(places("7").1, json!(7));
    assert_eq!(places("7").0[0]["call"], places("7").0[0]["call"]);
}

#[test]
fn what_a_person_would_be_asked_is_told() {
    let rules = json!({"ask": ["shell(touch *)"]});
    let case = Case::two_steps().declare("permissions", rules).solver(0, [sh("touch x"), write("y", "1")]);
    let bench = case.written();
    let told = rehearse(&bench, &["--script", bench.workspace.join("rehearsal.yaml").to_str().unwrap()]);
    assert_eq!(told["waiting_for_you"], json!(["permission: bash touch x"]), "{told:#}");
}

#[test]
fn the_doctor_finds_what_would_fail_and_shows_no_key() {
    let key = "sk-ant-doctor-0123456789abcdef";
    let agent = |extra: Value| {
        let mut agent = json!({"backend": "anthropic", "model": "m", "base_url": "http://127.0.0.1:9"});
        agent.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        agent
    };
    let case = Case::two_steps()
        .declare(
            "agents",
            json!({
                "env": agent(json!({"api_key_env": "ANTHROPIC_API_KEY"})),
                "missing": agent(json!({"api_key_env": "NO_SUCH_KEY"})),
                "inside": agent(json!({"api_key_file": "key.txt"})),
                "cli": {"backend": "command", "command": ["no-such-program-here"]},
                "play": {"backend": "rehearsal", "script": "rehearsal.yaml"},
            }),
        )
        .declare("budget", json!({"max_cost_usd": "1.00"}))
        .file("key.txt", key);
    let bench = case.written();
    let ended: Ended = bench.command(&["doctor"]).env("ANTHROPIC_API_KEY", key).output().unwrap().into();
    let ended = ended.expect(1);
    for line in [
        "✓  agent env: a key from the variable ANTHROPIC_API_KEY",
        "✗  agent env: 127.0.0.1:9 answers:",
        "✗  agent missing: a key: NO_SUCH_KEY is not set",
        "✗  agent inside: a key: key.txt is in the workspace",
        "✗  agent cli: program no-such-program-here: not found in PATH",
        "✗  agent env: its price: unknown, and max_cost_usd is set",
        "✓  agent play: script rehearsal.yaml",
    ] {
        assert!(ended.stdout.contains(line), "{line}\n{}", ended.stdout);
    }
    assert!(!ended.stdout.contains(key) && !ended.stderr.contains(key), "{}", ended.stdout);

    let sound = Case::two_steps().written();
    sound.nightloop(&["doctor"]).expect(0);
    let bare = Case::two_steps().declare("sandbox", json!({"mode": "off"})).written();
    let said = bare.nightloop(&["doctor"]).stdout;
    for line in
        ["–  overlays are not available: there is no sandbox", "checks run in the workspace itself", "held back"]
    {
        assert!(said.contains(line), "{line}\n{said}");
    }
    let config = sound.dir.path().join("config");
    fs::create_dir_all(config.join("prompts")).unwrap();
    fs::write(config.join("prompts/scout.md"), "---\nvariables: [x]\n---\n{{ x }}").unwrap();
    for arguments in [&["doctor"][..], &["run", "--headless"]] {
        let mut command = sound.command(arguments);
        let ended: Ended = command.env("NIGHTLOOP_CONFIG_DIR", &config).output().unwrap().into();
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(said.contains("scout.md: there is no variable `x`"), "{said}");
        assert_ne!(ended.code, 0);
    }
    fs::write(config.join("prompts/scout.md"), "---\nvariables: []\n---\nOnly look.").unwrap();
    let mut command = sound.command(&["run", "--headless"]);
    let ended: Ended = command.env("NIGHTLOOP_CONFIG_DIR", &config).output().unwrap().into();
    ended.expect(0);
    let started = data(&sound, "agent.started");
    assert_eq!(started[0]["system"], Digest::of(b"Only look.").to_string().as_str(), "{}", started[0]);
}

/// A server that answers one request, and what it was asked.
fn listens_once() -> (u16, std::thread::JoinHandle<String>) {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = std::thread::spawn(move || {
        loop {
            // The doctor first looks whether anybody is there, and says nothing.
            let (mut stream, _) = listener.accept().unwrap();
            let (mut asked, mut piece) = (Vec::new(), [0; 4096]);
            while !asked.windows(4).any(|four| four == b"\r\n\r\n") {
                match stream.read(&mut piece).unwrap_or(0) {
                    0 => break,
                    read => asked.extend_from_slice(&piece[..read]),
                }
            }
            if !asked.is_empty() {
                let body = r#"{"data": [{"id": "m"}]}"#;
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
                write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
                return String::from_utf8_lossy(&asked).into_owned();
            }
        }
    });
    (port, served)
}

/// The doctor goes by what the engine would do: which prices it knows, which keys it sends, what a program sees.
#[test]
fn the_doctor_judges_as_the_engine_does() {
    let key = "sk-test-doctor-0123456789abcdef";
    let (port, served) = listens_once();
    let local = json!({"backend": "openai", "model": "m", "base_url": format!("http://127.0.0.1:{port}/v1"),
                       "price": {"input": "1", "output": "1"}});
    let known = json!({"backend": "anthropic", "model": "claude-opus-5-5", "base_url": "http://127.0.0.1:9"});
    let case = Case::two_steps();
    let program = case.bench.dir.path().join("claude");
    fs::write(&program, "#!/bin/sh\necho 1.0\n").unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let claude = |env: Value| json!({"backend": "command", "command": [program], "profile": "claude", "env": env});
    let case = case.declare("budget", json!({"max_cost_usd": "1.00"})).declare(
        "agents",
        json!({
            "local": local, "known": known, "alone": claude(json!([])), "told": claude(json!(["ANTHROPIC_API_KEY"])),
        }),
    );
    let bench = case.written();
    let mut command = bench.command(&["doctor", "--online"]);
    let ended: Ended = command.env("ANTHROPIC_API_KEY", key).env("OPENAI_API_KEY", key).output().unwrap().into();
    for line in [
        "✓  agent known: the price of claude-opus-5-5 is known",
        "✓  agent alone: it reports its own cost",
        "–  agent local: no key, and 127.0.0.1 is this machine",
        "✓  agent local: model m",
        "–  agent alone: no sign-in of",
        "ANTHROPIC_API_KEY is set, but not passed on; add `env: [ANTHROPIC_API_KEY]`",
        "✓  agent told: signed in by the variable ANTHROPIC_API_KEY",
    ] {
        assert!(ended.stdout.contains(line), "{line}\n{}", ended.stdout);
    }
    assert!(!ended.stdout.contains("alone: signed in"), "{}", ended.stdout);
    let asked = served.join().unwrap();
    assert!(asked.starts_with("GET /v1/models") && !asked.contains(key), "{asked}");
}

#[test]
fn a_playbook_that_our_script_does_not_know_is_refused_before_anything_is_copied() {
    let loop_yaml = include_str!("../assets/demo/value/loop.yaml");
    let bench = Bench::new()
        .file("loop.yaml", loop_yaml)
        .file("NORTHSTAR.md", include_str!("../assets/demo/value/NORTHSTAR.md"))
        .file("VISION.md", include_str!("../assets/demo/value/VISION.md"))
        .file("PRD.md", include_str!("../assets/demo/value/PRD.md"))
        .file("script.yaml", include_str!("../assets/demo/value/rehearsal.yaml"));
    let ended = bench.nightloop(&["rehearse"]).expect(64);
    assert!(ended.stderr.contains("no built-in script for the playbook `value`"), "{}", ended.stderr);
    assert!(ended.stderr.contains("reasoner") && ended.stderr.contains("--script FILE"), "{}", ended.stderr);
    let script = bench.workspace.join("script.yaml");
    bench.nightloop(&["rehearse", "--script", script.to_str().unwrap()]).expect(0);
}

#[test]
fn items_and_microloops_are_rehearsed_with_our_own_script() {
    for (name, file, content) in [
        ("prd", "prd.json", include_str!("../assets/demo/prd/prd.json")),
        ("micro", "sample.txt", include_str!("../assets/demo/micro/sample.txt")),
    ] {
        let declared = format!(
            "spec: \"1.0\"\nplaybook: {name}\ngoal: \"x\"\nacceptance_criteria:\n  - {{ id: sound, text: \"It is.\", \
             check: [\"true\"] }}\nhalting_certificates: [EXACT]\nsandbox: {{ mode: off }}\nagents:\n  \
             model: {{ backend: rehearsal, script: none.yaml }}\n"
        );
        let bench = Bench::new().file("loop.yaml", &declared).file(file, content);
        let ended = bench.nightloop(&["rehearse"]).expect(0);
        assert!(ended.stdout.contains("stuck") || ended.stdout.contains("decide"), "{name}: {}", ended.stdout);
    }
}

/// Beside role prompt and capsule, what we say to an agent in its first message is short.
#[test]
fn our_own_words_around_the_capsule_are_few() {
    let case = Case::two_steps();
    let bench = case.written();
    bench.nightloop(&["run", "--headless"]).expect(0);
    let run = bench.run_dir();
    let blob = |digest: &Value| {
        let name = digest.as_str().unwrap().trim_start_matches("sha256:").to_owned();
        let mut left = vec![run.join("blobs")];
        while let Some(path) = left.pop() {
            if path.is_dir() {
                left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            } else if path.file_name().unwrap().to_string_lossy().contains(&name)
                || Digest::of(&fs::read(&path).unwrap()).to_string().ends_with(&name)
            {
                return fs::read(&path).unwrap();
            }
        }
        panic!("no blob {name}");
    };
    for started in data(&bench, "agent.started") {
        let message: Value = serde_json::from_slice(&blob(&started["message"])).unwrap();
        let text = message["content"].as_str().unwrap();
        // The capsule, the report of the role before, diff and results are not ours; the words between them are.
        let ours: usize = text
            .lines()
            .filter(|line| !line.is_empty() && line.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
            .map(|line| line.len() + 2)
            .sum();
        assert!((8..=200).contains(&ours), "{ours} bytes in {text}");
        assert!(blob(&started["system"]).len() + ours <= 2_048, "{}", started["role"]);
    }
}
