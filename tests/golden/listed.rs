//! The network by list over whole runs: a registry of this machine, reached by name through the proxy and in no other way.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, ToSocketAddrs as _};
use std::sync::mpsc;
use std::thread::JoinHandle;

use nightloop::model::hosts;
use serde_json::{Value, json};

use crate::case::{Case, Ran, Running, sh, write};
use crate::sealed::{Expect, check};
use crate::support::case::{held, unattended};
use crate::support::wait_until;

/// What it serves.
const PACKAGE: &str = "a package of this registry\n";
/// Says where names lead, see `engine::network`.
const RESOLVE: &str = "NIGHTLOOP_TEST_RESOLVE";

/// A server in the host's network that answers every request, also within a tunnel, and says which came.
struct Registry {
    port: u16,
    came: mpsc::Receiver<String>,
    _serving: JoinHandle<()>,
}

impl Registry {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, came) = mpsc::channel();
        let serving = std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let first = lines.next().unwrap_or_default();
                let host = lines.by_ref().take_while(|line| !line.is_empty());
                let host =
                    host.filter(|line| line.to_ascii_lowercase().starts_with("host:")).last().unwrap_or_default();
                let _ = sender.send(format!("{first} {host}"));
                let length = PACKAGE.len();
                let _ = write!(
                    &stream,
                    "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{PACKAGE}"
                );
            }
        });
        Self { port, came, _serving: serving }
    }

    /// Names that lead here.
    fn named(&self, names: &[&str]) -> String {
        names.iter().map(|name| format!("{name}=127.0.0.1:{}", self.port)).collect::<Vec<_>>().join(",")
    }
}

/// What the machine has: `curl`, else python. Each prints the body, or the status and body of a refusal.
fn get(url: &str, tunnel: bool) -> String {
    let curl = std::process::Command::new("curl").arg("--version").output().is_ok();
    if curl {
        let tunnel = if tunnel { "--proxytunnel" } else { "" };
        return format!("curl -sS -i -m 60 {tunnel} {url} 2>&1");
    }
    if tunnel {
        eprintln!("SKIPPED: no curl, so no tunnel");
    }
    format!("python3 -c 'import urllib.request as u; print(u.urlopen(\"{url}\").read().decode())' 2>&1")
}

fn connected(ran: &Ran, host: &str) -> Vec<Value> {
    ran.events("network.connected").into_iter().filter(|data| data["host"] == host).collect()
}

/// What the agent's commands printed.
fn printed(ran: &Ran) -> String {
    let finished = ran.events("tool.finished");
    finished.iter().filter_map(|data| data["text"]["inline"].as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_registry_of_a_tool_in_use_is_reached_and_nothing_else() {
    let registry = Registry::start();
    let names = registry.named(&["registry.npmjs.org", "pypi.org", "evil.example.org"]);
    let ran = Case::two_steps()
        .declare("sandbox", json!({"network": "registries"}))
        .file("web/package.json", "{}\n")
        .solver(
            0,
            [sh(&get("http://registry.npmjs.org/pkg", false)), sh(&get("http://registry.npmjs.org/tunnelled", true))],
        )
        // Its tool is not used here, it is no registry, it is this machine by a name of its own, or not a port for packages.
        .solver(0, [sh(&get("http://pypi.org/simple", false)), sh(&get("http://evil.example.org/", true))])
        .solver(
            0,
            [sh(&get("http://169.254.169.254/latest", false)), sh(&get("http://registry.npmjs.org:8080/", false))],
        )
        // Around the proxy there is nothing: not even the server itself.
        .solver(0, [sh(&format!("curl -sS -m 5 --noproxy '*' http://127.0.0.1:{}/direct 2>&1; true", registry.port))])
        .run_with(RESOLVE, &names);
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let opened = ran.events("network.opened");
    assert_eq!(opened.len(), 1, "{opened:?}");
    assert_eq!(opened[0]["why"], "npm: web/package.json");
    let came: Vec<String> = registry.came.try_iter().collect();
    assert_eq!(came.len(), 2, "{came:?}");
    assert!(came[0].starts_with("GET /pkg ") && came[0].contains("registry.npmjs.org"), "{came:?}");
    assert!(came[1].starts_with("GET /tunnelled "), "{came:?}");
    let printed = printed(&ran);
    assert_eq!(printed.matches(PACKAGE.trim()).count(), 2, "{printed}");
    assert!(printed.contains("not on the list of `sandbox.network`"), "{printed}");
    let reached: Vec<Value> =
        connected(&ran, "registry.npmjs.org").into_iter().filter(|data| data.get("refused").is_none()).collect();
    let bytes = |key: &str| reached.iter().map(|data| data[key].as_u64().unwrap()).sum::<u64>();
    assert!(reached.iter().map(|data| data["times"].as_u64().unwrap()).sum::<u64>() == 2, "{reached:?}");
    assert!(bytes("received") > 2 * PACKAGE.len() as u64 && bytes("sent") > 40, "{reached:?}");
    for (host, why) in [
        ("pypi.org", "not on the list"),
        ("evil.example.org", "not on the list"),
        ("169.254.169.254", "not on the list"),
    ] {
        let seen = connected(&ran, host);
        assert!(seen[0]["refused"].as_str().unwrap().contains(why), "{seen:?}");
    }
    let port = connected(&ran, "registry.npmjs.org").into_iter().find(|data| data["port"] == 8080).unwrap();
    assert!(port["refused"].as_str().unwrap().contains("ports"), "{port}");
    // Nobody is there: nothing is asked, and the agent is told.
    assert!(ran.events("decision.asked").is_empty() && printed.contains("Nobody is there"), "{printed}");
}

#[test]
fn a_name_that_leads_into_the_machine_is_refused() {
    let registry = Registry::start();
    let ran = Case::two_steps()
        .declare("sandbox", json!({"network": ["localhost"]}))
        .solver(
            0,
            [sh(&format!(
                "curl -sS -m 20 --noproxy none.invalid --proxytunnel http://localhost:{}/ 2>&1; true",
                registry.port
            ))],
        )
        .solver(0, [sh("curl -sS -i -m 20 --noproxy none.invalid http://localhost/ 2>&1")])
        .run();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let seen = connected(&ran, "localhost");
    assert!(seen.iter().any(|data| data["refused"].as_str().unwrap().contains("this machine")), "{seen:?}");
    assert!(registry.came.try_recv().is_err());
}

#[test]
fn a_host_on_no_list_becomes_a_question_and_is_reached_once_it_is_allowed() {
    let registry = Registry::start();
    let bench = Case::two_steps()
        .declare("sandbox", json!({"network": ["other.example.org"]}))
        .declare("decisions", json!({"mode": "wait"}))
        .solver(0, [sh(&get("http://new.example.org/first", false)), held()])
        .solver(0, [sh(&get("http://new.example.org/second", false)), write("more", "1\n")])
        .written();
    let mut command = bench.command(&["run", "--headless"]);
    command.env(RESOLVE, registry.named(&["new.example.org"]));
    let running = Running::by(command, bench).hold();
    let inbox = running.bench.nightloop(&["inbox"]).expect(0).stdout;
    assert!(inbox.contains("network: new.example.org"), "{inbox}");
    running.bench.nightloop(&["answer", "d1", "allow"]).expect(0);
    let ran = running.release().wait();
    check(&ran, &Expect::exact(&["0.5", "0"]));
    let seen = connected(&ran, "new.example.org");
    assert_eq!(seen.len(), 2, "{seen:?}");
    assert_eq!((&seen[0]["unlisted"], &seen[1]["unlisted"]), (&json!(true), &Value::Null));
    assert_eq!(registry.came.try_iter().count(), 1);
    assert!(printed(&ran).contains("The operator is asked for it"), "{}", printed(&ran));
}

/// Processes that this engine started to stand in a network or a cage.
fn helpers_of(engine: u32) -> usize {
    let tail = format!("__launch\0{engine}\0");
    let lines = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.ends_with(tail.as_bytes())).count()
}

#[test]
fn a_killed_run_leaves_no_network_and_goes_on_with_a_new_one() {
    let registry = Registry::start();
    let names = registry.named(&["a.example.org"]);
    let bench = Case::two_steps()
        .declare("sandbox", json!({"network": ["*.example.org"]}))
        .solver(0, [sh(&get("http://a.example.org/first", false)), held()])
        .solver(1, [sh(&get("http://a.example.org/second", false))])
        .written();
    let mut command = bench.command(&["run", "--headless"]);
    command.env(RESOLVE, &names);
    let running = Running::by(command, bench).hold();
    let engine = running.pid();
    assert!(helpers_of(engine) > 0, "nothing would be shown otherwise");
    let bench = running.killed();
    wait_until("the network is gone", || helpers_of(engine) == 0);
    let mut command = bench.command(&["resume", "--headless"]);
    command.env(RESOLVE, &names);
    let ran = Ran { ended: unattended(command), bench };
    check(&ran, &Expect::exact(&["0.5", "0"]));
    assert_eq!(ran.events("network.opened").len(), 1, "it is known");
    assert_eq!(registry.came.try_iter().count(), 2);
    assert!(connected(&ran, "a.example.org").iter().all(|data| data.get("refused").is_none()));
}

/// How this machine reaches the registries of npm and PyPI: by the shipped list, or, where its own network has them, by
/// their names and addresses.
fn reach() -> Value {
    let tools = hosts::registries().iter().filter(|one| ["npm", "pypi"].contains(&one.tool.as_str()));
    let names: Vec<String> = tools.flat_map(|one| one.hosts.iter().map(|host| host.as_str().to_owned())).collect();
    let resolved = names.iter().filter_map(|name| (name.as_str(), 443).to_socket_addrs().ok()).flatten();
    let addresses = resolved.map(|one| one.ip()).filter(|ip| !hosts::is_public(*ip));
    let own: BTreeSet<String> = addresses.map(|ip| ip.to_string()).collect();
    if own.is_empty() { json!("registries") } else { names.into_iter().chain(own).collect() }
}

/// The real tools with the real registries.
#[test]
fn npm_and_pip_install_from_their_registries() {
    if std::env::var_os("NIGHTLOOP_REGISTRIES").is_none() {
        eprintln!("SKIPPED: set NIGHTLOOP_REGISTRIES=1 to let npm and pip reach their registries");
        return;
    }
    let tools = [
        ("npm", "npm install --no-audit --no-fund is-odd@3.0.1 && test -f node_modules/is-odd/package.json"),
        ("pip", "python3 -m pip install --no-cache-dir --target vendored six; test -f vendored/six.py"),
    ];
    for (tool, command) in tools {
        if std::process::Command::new(tool).arg("--version").output().is_err() {
            eprintln!("SKIPPED: there is no {tool} here");
            continue;
        }
        let bench = Case::two_steps()
            .declare("sandbox", json!({"network": reach()}))
            .file("package.json", "{\"name\": \"probe\", \"version\": \"1.0.0\"}\n")
            .file("requirements.txt", "six\n")
            .file(".gitignore", "node_modules/\nvendored/\n")
            .solver(0, [sh(&format!("({command}) 2>&1 && echo installed: {tool}"))])
            .written();
        let mut run = bench.command(&["run", "--headless"]);
        // The home of the one who runs this says where their tools look; these say whom they trust.
        for name in ["HOME", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "REQUESTS_CA_BUNDLE"] {
            run.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        let ran = Ran { ended: unattended(run), bench };
        let connected = ran.events("network.connected");
        let printed = printed(&ran);
        assert!(printed.contains(&format!("installed: {tool}")), "{printed}\n{connected:#?}\n{}", ran.ended.stdout);
        let received = |one: &&Value| one.get("refused").is_none() && one["received"].as_u64() > Some(1_000);
        assert!(connected.iter().any(|one| received(&one)), "{connected:#?}");
    }
}
