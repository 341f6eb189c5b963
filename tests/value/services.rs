//! Services that the engine starts: a real HTTP server, asked by real checks, through the binary.

use std::fs;

use nightloop::tool::process::{Marker, survivors};
use serde_json::{Value, json};

use crate::case::{Case, Ran, add_task, call, complete, discovery, done, held, sh, turns, vrc, write};
use crate::support::{Bench, wait_until};

/// A page and an API. `broken`: it ends as soon as it is started.
fn server(port: u16, broken: bool) -> String {
    let first = if broken { "raise SystemExit('there is no database')" } else { "" };
    format!(
        "import http.server, os\n{first}\nclass Handler(http.server.BaseHTTPRequestHandler):\n    def do_GET(self):\n        \
         self.path == '/fall' and os._exit(3)\n        \
         body = b'{{\"word\": \"one\"}}' if self.path == '/api' else b'<p>one</p>'\n        \
         self.send_response(200)\n        \
         self.end_headers()\n        self.wfile.write(body)\nprint('serving', flush=True)\n\
         http.server.HTTPServer(('127.0.0.1', {port}), Handler).serve_forever()\n"
    )
}

fn declared(port: u16, file: &str) -> Value {
    json!({
        "name": "web",
        "health_type": "http",
        "health_url": format!("http://127.0.0.1:{port}/"),
        "start": ["python3", file],
    })
}

fn put(service: &Value) -> Value {
    call("manage_service", json!({"action": "put", "reason": "The page is served by it.", "service": service}))
}

/// A check that asks over HTTP.
fn asks(id: &str, port: u16, path: &str, word: &str) -> Value {
    let text = format!(
        "#!/bin/sh\npython3 -c \"import sys, urllib.request\nbody = urllib.request.urlopen('http://127.0.0.1:{port}{path}').read()\
         \nsys.exit(0 if b'{word}' in body else 1)\"\n"
    );
    write(&format!(".loop/verifications/{id}.sh"), &text)
}

/// Two tasks: the server, and a text. The plan declares the service, and checks ask it.
fn web(port: u16, service: &Value, first: &str) -> Case {
    let plan = [
        add_task(
            "T1",
            json!({"description": "Write server.py, which serves the page and the API.", "check": ["test", "-f", "server.py"]}),
        ),
        add_task("T2", json!({"description": "Write two.txt for those who look for it.", "dependencies": ["T1"]})),
        put(service),
    ];
    let scripts = [asks("value/api", port, "/api", "word"), asks("value/page", port, "/", "<p>one</p>")];
    Case::new()
        .on(
            "discover_context",
            turns(&[&[discovery(json!({"project_type": "web service", "deliverable_type": "software"}))]]),
        )
        .on("plan", json!([{"text": "A plan.", "calls": plan}, done()]))
        .on_subject("execute", "T1", turns(&[&[write("server.py", first)], &[complete("T1")]]))
        .on("generate_verifications", json!([{"text": "Checks.", "calls": scripts}, done()]))
}

/// Each run has a network of its own, so all of them can have the same port.
const PORT: u16 = 8080;

pub fn has_python() -> bool {
    let found = std::process::Command::new("python3").arg("--version").output().is_ok_and(|it| it.status.success());
    if !found {
        eprintln!("skipped: there is no python3 here");
    }
    found
}

#[track_caller]
fn nothing_is_left(bench: &Bench) {
    let run = bench.run_dir().file_name().unwrap().to_string_lossy().into_owned();
    wait_until("no process of the run is left", || survivors(Marker::Run(&run)).is_empty());
}

/// What the brief of the latest call for a purpose says of the service.
#[track_caller]
fn told(ran: &Ran, purpose: &str) -> Value {
    let message: Value = serde_json::from_str(&ran.messages(purpose).pop().unwrap()).unwrap();
    let message = message["content"].as_str().unwrap_or_else(|| message["content"][0]["text"].as_str().unwrap());
    let section = message.split("=== SERVICES ===\n").nth(1).unwrap_or_else(|| panic!("no services: {message}"));
    serde_json::from_str(section.lines().next().unwrap()).unwrap()
}

/// First nothing of that name is there to be started, then what is there does not start.
pub fn down_twice() -> Case {
    web(PORT, &declared(PORT, "app.py"), &server(PORT, true))
        .on_nth("service_fix", 1, json!([{"calls": [put(&declared(PORT, "server.py"))]}, done()]))
        .on_nth("service_fix", 2, json!([{"calls": [write("server.py", &server(PORT, false))]}, done()]))
        .on("exit_gate", asking(&["/api", "/"]))
}

#[test]
fn a_service_that_is_down_twice_is_mended_and_certified() {
    if !has_python() {
        return;
    }
    let ran = down_twice().run().expect(0).verified();
    assert_eq!(ran.steps("service_fix"), 2, "{:#?}", ran.log());
    assert!(ran.detail().starts_with("EXACT"), "{}", ran.detail());
    let tried: Vec<Value> =
        ran.events("service.started").iter().map(|one| one["service"]["start"][1].clone()).collect();
    assert!(tried.contains(&json!("app.py")) && tried.last() == Some(&json!("server.py")), "{tried:?}");
    assert!(tried.len() <= 20, "{tried:?}");
    // Whoever mends it sees why it fails; whoever judges finds it up.
    let broken = told(&ran, "service_fix");
    assert!(broken["state"] == "not healthy" && broken["log"].to_string().contains("there is no database"), "{broken}");
    let judged = told(&ran, "exit_gate");
    assert_eq!((&judged["state"], &judged["url"]), (&json!("healthy"), &json!(format!("http://127.0.0.1:{PORT}"))));
    let log = fs::read_to_string(ran.bench.run_dir().join("services/web.log")).unwrap();
    assert!(log.contains("there is no database") && log.contains("serving"), "{log}");
    nothing_is_left(&ran.bench);
}

#[test]
fn a_service_is_up_again_after_a_crash_of_the_engine() {
    if !has_python() {
        return;
    }
    let second = turns(&[&[held(), write("two.txt", "two\n")], &[complete("T2")]]);
    // A criterion that asks it, too: it is tried without the work, and then nothing serves.
    let ask = format!("import urllib.request; urllib.request.urlopen('http://127.0.0.1:{PORT}/api')");
    let criterion = json!({"id": "api", "text": "The API answers.", "check": ["python3", "-c", ask]});
    let running = web(PORT, &declared(PORT, "server.py"), &server(PORT, false))
        .on_subject("execute", "T2", second)
        .declare("acceptance_criteria", json!([criterion]))
        .start()
        .hold();
    let bench = running.killed();
    nothing_is_left(&bench);
    let before = bench.events().iter().filter(|(kind, _)| kind == "service.started").count();
    assert_eq!(before, 3, "for the first look at the criterion, before the first task, and with what it built");
    let ran = Ran::of(bench, &["resume", "--headless"]).expect(0).verified();
    assert!(ran.detail().starts_with("EXACT"), "{}", ran.detail());
    assert_eq!(ran.steps("service_fix"), 0, "{:#?}", ran.log());
    nothing_is_left(&ran.bench);
}

/// What a judge asks over HTTP, and its verdict after that.
fn asking(paths: &[&str]) -> Value {
    let ask = |path: &&str| {
        let url = format!("http://127.0.0.1:{PORT}{path}");
        json!({"calls": [sh(&format!("python3 -c \"import urllib.request as u; print(u.urlopen('{url}').read())\""))]})
    };
    let verdict = json!({"calls": [vrc("1", "SHIP_READY", json!([]))]});
    Value::Array(paths.iter().map(ask).chain([verdict]).collect())
}

/// What the judge of the exit gate was answered.
fn answers(ran: &Ran) -> Vec<String> {
    let finished = ran.events("tool.finished");
    let of_gate = finished.iter().filter(|data| data["call"].as_str().unwrap().contains(".exit_gate."));
    of_gate.filter_map(|data| data["text"]["inline"].as_str().map(str::to_owned)).collect()
}

#[test]
fn a_service_that_falls_while_a_judge_asks_it_is_up_again_for_the_next_question() {
    if !has_python() {
        return;
    }
    let ran = web(PORT, &declared(PORT, "server.py"), &server(PORT, false))
        .on("exit_gate", asking(&["/api", "/fall", "/api"]))
        .run()
        .expect(0)
        .verified();
    let [first, second, third, ..] = &answers(&ran)[..] else { panic!("{:?}", answers(&ran)) };
    assert!(first.contains("word") && !second.contains("word") && third.contains("word"), "{first}\n{second}\n{third}");
    let ended = ran.events("service.ended");
    assert!(ended.iter().any(|one| one["how"] == "it ended with exit code 3" && one["asked"] == false), "{ended:?}");
    nothing_is_left(&ran.bench);
}

#[test]
fn a_judge_finds_the_service_up_after_a_crash_in_the_middle_of_its_work() {
    if !has_python() {
        return;
    }
    let case = || web(PORT, &declared(PORT, "server.py"), &server(PORT, false)).on("exit_gate", asking(&["/api", "/"]));
    let whole = case().run().expect(0).verified();
    let events = whole.bench.events();
    let judge = events
        .iter()
        .position(|(kind, data)| kind == "tool.finished" && data["call"].as_str().unwrap().contains(".exit_gate."));
    let died = case().run_with("NIGHTLOOP_CRASH", &format!("after_sync:{}", judge.unwrap()));
    assert_eq!(died.ended.code, -1, "{}", died.ended.stderr);
    let ran = died.resume().expect(0).verified();
    assert!(answers(&ran)[1].contains("<p>one</p>"), "{:?}", answers(&ran));
    assert_eq!(answers(&ran)[..2], answers(&whole)[..2]);
    nothing_is_left(&ran.bench);
}

#[test]
fn no_exit_gate_is_passed_with_a_service_that_never_came_up() {
    if !has_python() {
        return;
    }
    // Its checks ask nobody.
    let scripts = [crate::case::script("value/two", "two.txt", "two")];
    let ran = web(PORT, &declared(PORT, "server.py"), &server(PORT, true))
        .on("generate_verifications", json!([{"text": "Checks.", "calls": scripts}, done()]))
        .on("service_fix", json!([done()]))
        .on("course_correct", turns(&[&[crate::case::correction("restructure", json!({}))]]))
        .run()
        .verified();
    assert_ne!(ran.ended.code, 0, "{:#?}", ran.log());
    assert!(ran.detail().contains("web"), "{}", ran.detail());
    nothing_is_left(&ran.bench);
}

#[test]
fn a_service_of_the_declaration_needs_a_network() {
    let case = Case::new().set("services", json!([declared(8080, "server.py")]));
    let ended = case.declare("sandbox", json!({"network": "off"})).run().expect(64).ended;
    assert!(ended.stderr.contains("cannot be reached with `network: off`"), "{}", ended.stderr);
}
