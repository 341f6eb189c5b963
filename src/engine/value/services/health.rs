//! Are the services that the work needs there?
//!
//! Role: ask each of them, on this machine only, all at the same time. Not its role: what follows from the answers.
//! Invariants: nothing outside this machine is asked; every question ends within its limit; what cannot be asked is
//! "not checked", which is no failure, because no repair would change it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::engine::confine;
use crate::engine::context::Context;
use crate::engine::error::EngineError;
use crate::model::learnings::flatten;
use crate::model::secret::Secrets;
use crate::model::value::tools::{HealthType, Service};
use crate::playbook::value::event::ServiceHealth;
use crate::tool::network::RunNetwork;
use crate::tool::process::{self, Access, CommandSpec, End};

const MAX_SERVICES: usize = 20;
const HTTP_LIMIT: Duration = Duration::from_secs(5);
const TCP_LIMIT: Duration = Duration::from_secs(2);
const COMMAND_LIMIT: Duration = Duration::from_secs(10);
/// The first line of an answer is shorter than this.
const MAX_STATUS_LINE: usize = 256;
const MAX_NAME: usize = 80;
const MAX_DETAIL: usize = 200;

/// How a service is asked.
pub(super) enum Check {
    NotChecked(String),
    /// One that we started: who asks knows whether it runs.
    Started,
    Http {
        url: String,
        port: u16,
        request: String,
    },
    Tcp(u16),
    Process(String),
    Command(Box<CommandSpec>),
}

pub(super) fn checks(cx: &Context<'_>, services: Vec<Service>) -> Result<Vec<(String, Check)>, EngineError> {
    let mut checks = Vec::new();
    for (index, service) in services.into_iter().enumerate() {
        let name = shown_name(&service.name);
        let check = match (index < MAX_SERVICES, service.health_type) {
            (false, _) => Check::NotChecked(format!("more than {MAX_SERVICES} services")),
            (true, HealthType::Http) => http_check(service.health_url.as_deref().unwrap_or_default()),
            (true, HealthType::Tcp) => match service.port {
                Some(port) if port > 0 => Check::Tcp(port),
                Some(_) | None => Check::NotChecked("it has no port".to_owned()),
            },
            (true, HealthType::Process) if service.is_started() => Check::Started,
            (true, HealthType::Process) => match service.process.filter(|name| !name.is_empty()) {
                Some(name) => Check::Process(name),
                None => Check::NotChecked("no process is named".to_owned()),
            },
            (true, HealthType::Command) => command_check(cx, service.command.unwrap_or_default())?,
        };
        checks.push((name, check));
    }
    Ok(checks)
}

/// The name under which it is recorded.
pub(super) fn shown_name(name: &str) -> String {
    flatten(name).chars().take(MAX_NAME).collect()
}

/// Does something listen where a service that does not run is to listen? Then it would be taken for the service.
pub(super) async fn is_taken(network: Option<&RunNetwork>, service: &Service) -> bool {
    match service.listens() {
        Some(port) => matches!(timeout(TCP_LIMIT, connect(network, port)).await, Ok(Ok(_))),
        None => false,
    }
}

/// A command that an agent named: within the rules, and where possible without a right to change anything.
fn command_check(cx: &Context<'_>, argv: Vec<String>) -> Result<Check, EngineError> {
    if argv.is_empty() {
        return Ok(Check::NotChecked("no command is named".to_owned()));
    }
    if let Err(why) = confine::permitted(&cx.rules, &argv) {
        return Ok(Check::NotChecked(why));
    }
    let mut spec = CommandSpec::new(argv, cx.workspace(), cx.state().run().as_str());
    spec.timeout = COMMAND_LIMIT;
    spec.confinement = confine::of_access(cx, Access::ReadOnly)?;
    Ok(Check::Command(Box::new(spec)))
}

/// Asks them all.
pub(super) async fn all(
    network: Option<&RunNetwork>,
    checks: Vec<(String, Check)>,
    cancel: &CancellationToken,
) -> Vec<ServiceHealth> {
    join_all(checks.into_iter().map(|(name, check)| ask(network, name, check, cancel))).await
}

/// What a service said loses what must stay secret.
pub(super) fn clean(health: ServiceHealth, secrets: &Secrets) -> ServiceHealth {
    ServiceHealth { detail: secrets.redact(&health.detail).into_owned(), ..health }
}

async fn ask(network: Option<&RunNetwork>, name: String, check: Check, cancel: &CancellationToken) -> ServiceHealth {
    let (healthy, detail) = match check {
        Check::Started => (true, "it runs".to_owned()),
        Check::NotChecked(why) => (true, format!("not checked: {why}")),
        Check::Http { url, port, request } => match timeout(HTTP_LIMIT, status(network, port, &request)).await {
            Ok(Ok(code)) => ((200..400).contains(&code), format!("{url} answers {code}")),
            Ok(Err(error)) => (false, format!("{url}: {error}")),
            Err(_) => (false, format!("{url} does not answer within {} s", HTTP_LIMIT.as_secs())),
        },
        Check::Tcp(port) => match timeout(TCP_LIMIT, connect(network, port)).await {
            Ok(Ok(_)) => (true, format!("port {port} is open")),
            Ok(Err(error)) => (false, format!("port {port}: {error}")),
            Err(_) => (false, format!("port {port} does not answer within {} s", TCP_LIMIT.as_secs())),
        },
        Check::Process(process) => match tokio::task::spawn_blocking(move || runs(&process)).await {
            Ok(Some(true)) => (true, "it runs".to_owned()),
            Ok(Some(false)) => (false, "no process of that name runs".to_owned()),
            Ok(None) | Err(_) => (true, "not checked: processes cannot be listed here".to_owned()),
        },
        Check::Command(spec) => match process::run(*spec, cancel).await.end {
            End::Exited(0) => (true, "its command succeeds".to_owned()),
            End::Exited(code) => (false, format!("its command ends with exit code {code}")),
            End::Signaled(signal) => (false, format!("its command is ended by signal {signal}")),
            End::TimedOut => (false, format!("its command does not end within {} s", COMMAND_LIMIT.as_secs())),
            End::Cancelled => (false, "its command was interrupted".to_owned()),
            End::NotStarted(why) | End::Exhausted(why) => (false, format!("its command did not start: {why}")),
        },
    };
    ServiceHealth { name, healthy, detail: flatten(&detail).chars().take(MAX_DETAIL).collect(), log: String::new() }
}

fn http_check(url: &str) -> Check {
    // A template that nobody filled in.
    if url.contains('{') {
        return Check::NotChecked("its URL is not filled in".to_owned());
    }
    let Ok(parsed) = reqwest::Url::parse(url) else { return Check::NotChecked("its URL cannot be read".to_owned()) };
    let Some(port) = parsed.port_or_known_default().filter(|_| parsed.scheme() == "http") else {
        return Check::NotChecked("only http is asked".to_owned());
    };
    let Some(host) = parsed.host_str() else { return Check::NotChecked("its URL names no host".to_owned()) };
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>().ok();
    if !address.map_or(host == "localhost", |address| address.is_loopback()) {
        return Check::NotChecked("it is not on this machine".to_owned());
    }
    let path = parsed.query().map_or_else(|| parsed.path().to_owned(), |query| format!("{}?{query}", parsed.path()));
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUser-Agent: nightloop\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    );
    Check::Http { url: format!("http://{host}:{port}{}", parsed.path()), port, request }
}

/// Connects where the run's commands meet; where they have no network, on this machine.
async fn connect(network: Option<&RunNetwork>, port: u16) -> io::Result<TcpStream> {
    if let Some(network) = network {
        return network.connect(port).await;
    }
    match TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await {
        Ok(stream) => Ok(stream),
        Err(error) => TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await.map_err(|_| error),
    }
}

/// The status code that a server answers with. Redirects are answers, not ways to follow.
async fn status(network: Option<&RunNetwork>, port: u16, request: &str) -> io::Result<u16> {
    let mut stream = connect(network, port).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut line = Vec::new();
    while !line.contains(&b'\n') && line.len() < MAX_STATUS_LINE {
        let mut buffer = [0; 64];
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            break;
        }
        line.extend_from_slice(&buffer[..count]);
    }
    let text = String::from_utf8_lossy(&line);
    let mut words = text.split_whitespace();
    let code = words.next().filter(|word| word.starts_with("HTTP/")).and_then(|_| words.next());
    code.and_then(|code| code.parse().ok()).ok_or_else(|| io::Error::other("it does not speak HTTP"))
}

/// Does a process of this name run? `None`: nobody can say here.
fn runs(name: &str) -> Option<bool> {
    let entries = std::fs::read_dir("/proc").ok()?;
    let mut any = false;
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        any = true;
        if is_called(&entry.path(), name) {
            return Some(true);
        }
    }
    any.then_some(false)
}

/// The kernel keeps the first 15 bytes of a name; the command line has all of it.
fn is_called(process: &Path, name: &str) -> bool {
    let comm = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
    let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
    let program = String::from_utf8_lossy(line.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned();
    let program = program.rsplit('/').next().unwrap_or_default();
    comm.trim_end() == name || program == name
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers one request with these bytes; its port.
    async fn server(answer: &'static str) -> u16 {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0; 1];
                if stream.read(&mut byte).await.unwrap() == 0 {
                    return;
                }
                request.extend_from_slice(&byte);
            }
            let line = String::from_utf8(request).unwrap().lines().next().unwrap().to_owned();
            assert_eq!(line, "GET /health?deep=1 HTTP/1.1");
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        port
    }

    async fn health(check: Check) -> ServiceHealth {
        all(None, vec![("web".to_owned(), check)], &CancellationToken::new()).await.remove(0)
    }

    #[tokio::test]
    async fn a_real_server_is_asked_for_its_status() {
        for (answer, healthy) in [
            ("HTTP/1.1 200 OK\r\n\r\n", true),
            ("HTTP/1.1 302 Found\r\nLocation: http://example.com/\r\n\r\n", true),
            ("HTTP/1.0 404 Not Found\r\n\r\n", false),
            ("HTTP/1.1 503 Busy\r\n\r\n", false),
            ("220 ready\r\n", false),
            ("", false),
        ] {
            let port = server(answer).await;
            let found = health(http_check(&format!("http://localhost:{port}/health?deep=1"))).await;
            assert_eq!(found.healthy, healthy, "{answer:?}: {}", found.detail);
        }
    }

    #[tokio::test]
    async fn what_is_not_here_is_not_asked() {
        for url in
            ["http://example.com/", "https://localhost/", "http://10.0.0.1/", "http://localhost:{PORT}/", "x", ""]
        {
            let found = health(http_check(url)).await;
            assert!(found.healthy && found.detail.starts_with("not checked"), "{url}: {}", found.detail);
        }
    }

    #[tokio::test]
    async fn a_port_is_open_or_not() {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(health(Check::Tcp(port)).await.healthy);
        drop(listener);
        assert!(!health(Check::Tcp(port)).await.healthy);
        let url = format!("http://127.0.0.1:{port}/");
        assert!(!health(http_check(&url)).await.healthy);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_process_is_found_by_its_name() {
        let own = std::fs::read_to_string("/proc/self/comm").unwrap().trim_end().to_owned();
        assert!(health(Check::Process(own)).await.healthy);
        assert!(!health(Check::Process("no-such-process-anywhere".to_owned())).await.healthy);
    }

    #[tokio::test]
    async fn a_command_says_it_with_its_exit_code() {
        let run = |script: &str| {
            let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
            Check::Command(Box::new(CommandSpec::new(argv, std::env::temp_dir(), "test")))
        };
        assert!(health(run("exit 0")).await.healthy);
        let broken = health(run("exit 7")).await;
        assert!(!broken.healthy && broken.detail.ends_with("exit code 7"));
    }
}
