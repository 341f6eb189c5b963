//! A canary: a key in the engine's environment that a model, its tools, a check and a server all try to repeat.
//! It must turn up nowhere but in the header it is for, and in the file that an agent wrote it to itself.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nightloop::agent::rehearsal::{Script, Server, Speed};
use serde_json::json;

use crate::case::{Case, call, sh, skeptic_report, write};
use crate::stage::{Stage, WIDE};

const KEY: &str = "sk-ant-canary-7Q2w9Zx-0123456789-abcdefghijklmnopqrstuv";
const TOKEN: &str = "ghp_CANARYabcdefghijklmnopqrstuvwxyz0123";
/// A tool that looks where keys are.
const LOOK: &str = "tr '\\0' '\\n' < /proc/$PPID/environ; base64 < /proc/$PPID/environ";

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Parts that no output may hold: of the key as it is, percent-encoded and in base64 at each alignment; of the
/// token.
fn traces() -> Vec<String> {
    let inside = |shift: usize| STANDARD.encode(format!("{}{KEY}", &"xyz"[..shift]))[12..28].to_owned();
    let mut traces: Vec<String> = (0..3).map(inside).collect();
    traces.extend(["canary-7Q2w".to_owned(), percent("canary-7Q2w"), "CANARYabcdef".to_owned()]);
    traces
}

#[track_caller]
fn clean(what: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for trace in traces() {
        if let Some(at) = text.find(&trace) {
            let start = text[..at].char_indices().rev().nth(200).map_or(0, |(place, _)| place);
            panic!("{what} holds {trace}: …{}", &text[start..at + trace.len()]);
        }
    }
}

#[track_caller]
fn clean_tree(dir: &Path) -> usize {
    let mut files = 0;
    for entry in fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
        let path = entry.unwrap().path();
        clean(&path.display().to_string(), path.file_name().unwrap().as_encoded_bytes());
        if path.is_dir() {
            files += clean_tree(&path);
        } else if path.is_file() {
            clean(&path.display().to_string(), &fs::read(&path).unwrap());
            files += 1;
        }
    }
    files
}

/// The loop, the server it talks to, and what keeps that server alive.
struct Trap {
    stage: Stage,
    server: Server,
    _serving: tokio::sync::oneshot::Sender<()>,
}

fn trap(asks: bool) -> Trap {
    let babble = format!("Look: {KEY} and {} and {}.", STANDARD.encode(KEY), percent(KEY));
    let mut calls = vec![call("grep_search", json!({"pattern": KEY})), call("read_file", json!({"path": [KEY]}))];
    if asks {
        calls.push(call("ask_human", json!({"kind": "question", "text": babble, "choices": [KEY]})));
    }
    let broken = json!({"http": 500, "message": format!("no: {KEY}"), "kind": KEY});
    let scout = json!([
        {"thinking": babble, "text": babble, "calls": calls, "chunk_delay_ms": 30, "faults": [broken]},
        {"calls": [{"tool": "bash", "raw_input": format!("{{\"command\": \"{KEY}")}]},
        {"calls": [call("submit_scout_report", json!({"plan": [babble], "sub_goal": {"text": KEY, "check": ["echo", KEY]}}))]},
    ]);
    let claims = json!([{"lane": "B", "text": babble}]);
    let skeptic =
        json!([{"calls": [skeptic_report(0, Some(&json!({"succeeded": claims, "open_questions": [babble]})))]}]);
    // The engine's own environment is closed to its tools; a file of the user's is not.
    let leak = format!("cat own.txt > leak.txt; {{ {LOOK}; }} >> leak.txt; cat leak.txt");
    let case = Case::two_steps()
        .file("token.txt", TOKEN)
        .file("own.txt", KEY)
        .check("talks", "cat token.txt; cat leak.txt 2>&1 || true")
        .turns("scout", 0, scout)
        .turns("skeptic", 0, skeptic)
        .solver(0, [sh("env"), sh(LOOK), sh(&format!("echo {KEY}")), sh(&leak), write("words.txt", KEY)])
        .solver(1, [sh("cat token.txt; cp leak.txt again.txt; rm leak.txt")]);
    let played = Script::parse(&case.script().to_string(), "script").unwrap();
    let (server, serving) = serve(played);
    let agent = json!({"backend": "anthropic", "model": "canary-model", "base_url": server.base_url(),
                       "api_key_env": "ANTHROPIC_API_KEY"});
    let case = case.declare("agents", json!({"model": agent}));
    let stage = Stage::of(case);
    fs::remove_file(stage.path("rehearsal.yaml")).unwrap();
    Trap { stage, server, _serving: serving }
}

/// A server on a thread of its own, until the sender is dropped.
fn serve(script: Script) -> (Server, tokio::sync::oneshot::Sender<()>) {
    let (ready, server) = std::sync::mpsc::channel();
    let (serving, over) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            ready.send(Server::start(script, Speed::Times(1.0)).await.unwrap()).unwrap();
            let _ = over.await;
        });
    });
    (server.recv().unwrap(), serving)
}

impl Trap {
    /// Everything that is kept or was shown.
    #[track_caller]
    fn holds_nothing(&self, shown: &[&[u8]]) {
        let got_it = |header: &(String, String)| header.0 == "authorization" && header.1 == format!("Bearer {KEY}");
        assert!(
            self.server.requests().iter().all(|request| request.headers.iter().any(got_it)),
            "the key was not sent"
        );
        assert!(!self.server.requests().is_empty());
        for request in self.server.requests() {
            clean("a request", &request.body);
        }
        // The trap worked: the tools did see the key, and it was taken out.
        let told = self.stage.told_agents();
        assert!(told.contains("[secret:ANTHROPIC_API_KEY]"), "{told}");
        let file = fs::read_to_string(self.stage.path("again.txt")).unwrap();
        assert!(file.contains(KEY), "an agent's own file is left alone");
        assert_eq!(file.matches("ANTHROPIC_API_KEY").count(), 0, "the engine's environment is closed: {file}");
        assert!(clean_tree(&self.stage.bench.state) > 10);
        assert!(clean_tree(&self.stage.path("evidence")) > 10);
        clean("AGENTS.md", self.stage.read("AGENTS.md").as_bytes());
        assert!(self.stage.read("AGENTS.md").contains("[secret:ANTHROPIC_API_KEY]"));
        for shown in shown {
            assert!(shown.len() > 1_000);
            clean("what was shown", shown);
        }
        self.stage.verify(0);
    }
}

#[test]
fn a_key_turns_up_in_no_file_and_on_no_log() {
    let trap = trap(false);
    let cassette = trap.stage.bench.dir.path().join("night.cassette");
    let arguments = ["run", "--json", "--record", cassette.to_str().unwrap()];
    let ended = trap.stage.nightloop_with(&arguments, &[("ANTHROPIC_API_KEY", KEY)]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    trap.holds_nothing(&[ended.stdout.as_bytes(), &fs::read(&cassette).unwrap()]);
    // No tool is given the variable itself: what `env` prints does not even have its name.
    let asked = trap.stage.all("tool.intended").into_iter().find(|data| data["summary"] == "env").unwrap();
    let done = trap.stage.all("tool.finished").into_iter().find(|data| data["id"] == asked["id"]).unwrap();
    let text = done["text"].to_string();
    assert!(text.contains("PATH=") && !text.contains("ANTHROPIC"), "{text}");
    let lines = trap_lines();
    clean("what was shown", lines.as_bytes());
}

/// The same run as readable lines.
fn trap_lines() -> String {
    let trap = trap(false);
    let ended = trap.stage.nightloop_with(&["run", "--headless"], &[("ANTHROPIC_API_KEY", KEY)]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("[secret:"), "{}", ended.stdout);
    ended.stdout + &ended.stderr
}

#[test]
fn a_key_turns_up_on_no_screen() {
    let trap = trap(true);
    let mut screen = trap.stage.open(&["run", "--start"], WIDE, &[("ANTHROPIC_API_KEY", KEY)]);
    // A key pressed before the first frame would be lost.
    screen.sees("SPAWN_SUBAGENT");
    screen.show_pane("2");
    screen.sees("[secret:ANTHROPIC_API_KEY]");
    screen.sees("1 waiting");
    screen.press("i");
    screen.sees("[secret:ANTHROPIC_API_KEY]");
    screen.press("esc");
    trap.stage.nightloop(&["answer", "d1", "blue"]).expect(0);
    screen.sees_end("CONVERGED");
    for (pane, _) in crate::screen::PANES {
        screen.show_pane(pane);
    }
    screen.press("q");
    screen.ends_with(0);
    let inbox = trap.stage.nightloop(&["inbox", "--all"]);
    let raw = screen.raw();
    trap.holds_nothing(&[&raw, format!("{}{}{:1000}", inbox.stdout, inbox.stderr, ' ').as_bytes()]);
}
