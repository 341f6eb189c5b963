//! Each declared agent: is its key there, can its server be reached, is its price known?

use std::net::ToSocketAddrs as _;
use std::path::Path;
use std::time::Duration;

use crate::agent::cassette;
use crate::agent::models::Catalogue;
use crate::agent::rehearsal::{MAX_TAPE_BYTES, Script, Tape};
use crate::engine::backends;
use crate::engine::keys;
use crate::engine::program::Program;
use crate::model::loop_file::{AgentDecl, Auth, BackendName, LoopFile};
use crate::workspace::document;

use super::{Findings, programs};

/// How long a server may take to be there.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
const ONLINE_LIMIT: Duration = Duration::from_secs(10);
/// How much of a list of models is read.
const MAX_LIST: usize = 1024 * 1024;

pub async fn look(here: &Path, file: &LoopFile, online: bool, findings: &mut Findings) {
    let catalogue = backends::catalogue().map_err(|error| error.to_string());
    if let Err(why) = &catalogue {
        findings.note(Err(why.clone()), "your own models");
    }
    let catalogue = catalogue.ok();
    let limited = file.budget.max_cost_usd.is_some();
    for (name, agent) in file.agents.iter() {
        match agent.backend {
            BackendName::Anthropic | BackendName::Openai => {
                server(here, name, agent, online, findings).await;
                price(name, priced_by(agent, catalogue.as_ref()), limited, findings);
            }
            BackendName::Command | BackendName::Acp => {
                programs::declared(here, name, agent, findings).await;
                price(name, priced_by(agent, catalogue.as_ref()), limited, findings);
            }
            BackendName::Rehearsal => script(here, name, agent, findings),
        }
    }
}

fn script(here: &Path, name: &str, agent: &AgentDecl, findings: &mut Findings) {
    let script = agent.script.as_deref().unwrap_or_default();
    let read = document::read_declared(here, script, MAX_TAPE_BYTES).and_then(|bytes| {
        if cassette::is_cassette(&bytes) {
            return Tape::parse(&bytes, script).map(|_| ()).map_err(|e| e.to_string());
        }
        let text = String::from_utf8(bytes).map_err(|e| e.to_string())?;
        Script::parse(&text, script).map(|_| ()).map_err(|e| e.to_string())
    });
    findings.note(read, &format!("agent {name}: script {script}"));
}

/// What the cost of an agent is counted by, as the engine would: `None` where nothing is known.
fn priced_by(agent: &AgentDecl, catalogue: Option<&Catalogue>) -> Option<String> {
    if agent.price.is_some() {
        return Some("a declared price".to_owned());
    }
    match agent.backend {
        BackendName::Command | BackendName::Acp => {
            Program::of(agent, None).tells_cost().then(|| "it reports its own cost".to_owned())
        }
        BackendName::Anthropic | BackendName::Openai | BackendName::Rehearsal => {
            let model = agent.model.as_deref().unwrap_or_default();
            catalogue?.price(model).map(|_| format!("the price of {model} is known"))
        }
    }
}

/// A limit in money needs a price.
fn price(name: &str, known: Option<String>, limited: bool, findings: &mut Findings) {
    match (known, limited) {
        (Some(how), _) => findings.note(Ok(()), &format!("agent {name}: {how}")),
        (None, true) => {
            let why = "unknown, and max_cost_usd is set; declare `price: { input: \"…\", output: \"…\" }`";
            findings.note(Err(why.to_owned()), &format!("agent {name}: its price"));
        }
        (None, false) => {
            findings.remark(format!("agent {name}: its price is unknown, so its cost will be unknown too"))
        }
    }
}

/// Where the key of an agent comes from.
enum Key {
    Found { from: String, value: Option<String> },
    NotNeeded,
    Missing(String),
}

fn key(here: &Path, agent: &AgentDecl, host: &str) -> Key {
    if let Some(argv) = &agent.api_key_command {
        let program = argv.first().map_or("", String::as_str);
        return match programs::find(program) {
            // Not run: it may ask for a password.
            Ok(_) => Key::Found { from: format!("the command `{program}`, not run here"), value: None },
            Err(why) => Key::Missing(format!("api_key_command: {program} {why}")),
        };
    }
    if let Some(file) = &agent.api_key_file {
        return key_file(here, file);
    }
    // The engine's own rule: what it would not send, is not sent from here.
    let Some(variable) = agent.api_key_env.as_deref().or_else(|| backends::usual_variable(agent)) else {
        return Key::NotNeeded;
    };
    match std::env::var(variable).ok().filter(|key| !key.is_empty()) {
        Some(value) => Key::Found { from: format!("the variable {variable}"), value: Some(value) },
        None if agent.api_key_env.is_none() && is_local(host) => Key::NotNeeded,
        None => Key::Missing(format!("{variable} is not set; export it, or use api_key_file or api_key_command")),
    }
}

fn key_file(here: &Path, file: &str) -> Key {
    use std::os::unix::fs::PermissionsExt as _;
    let path = keys::expand(file);
    let inside = path.canonicalize().is_ok_and(|path| here.canonicalize().is_ok_and(|here| path.starts_with(here)));
    if inside {
        return Key::Missing(format!("{file} is in the workspace, where every tool can read it; move it out"));
    }
    let open = std::fs::metadata(&path).is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0);
    match std::fs::read_to_string(&path).map(|text| text.lines().next().unwrap_or_default().trim().to_owned()) {
        Ok(line) if line.is_empty() => Key::Missing(format!("the first line of {file} is empty")),
        // The engine refuses it, too.
        Ok(_) if open => Key::Missing(format!("{file} can be read by others; chmod 600 {}", path.display())),
        Ok(line) => Key::Found { from: format!("the file {file}"), value: Some(line) },
        Err(error) => Key::Missing(format!("{file}: {error}")),
    }
}

fn is_local(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

async fn server(here: &Path, name: &str, agent: &AgentDecl, online: bool, findings: &mut Findings) {
    let base = agent.base_url.as_deref().unwrap_or("https://api.anthropic.com");
    let url = match reqwest::Url::parse(base).ok().filter(reqwest::Url::has_host) {
        Some(url) => url,
        None => {
            let why = "it is not a valid URL; one looks like https://api.example.com";
            findings.note(Err(why.to_owned()), &format!("agent {name}: base_url"));
            return;
        }
    };
    let host = url.host_str().unwrap_or_default().to_owned();
    let key = key(here, agent, &host);
    match &key {
        Key::Found { from, .. } => findings.note(Ok(()), &format!("agent {name}: a key from {from}")),
        Key::NotNeeded if is_local(&host) => findings.remark(format!("agent {name}: no key, and {host} is this machine")),
        Key::NotNeeded => findings.remark(format!(
            "agent {name}: no key is sent to {host}; if it needs one, declare api_key_env, api_key_command or api_key_file"
        )),
        Key::Missing(why) => findings.note(Err(why.clone()), &format!("agent {name}: a key")),
    }
    let place = format!("{host}:{}", url.port_or_known_default().unwrap_or(443));
    let proxy = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
        .iter()
        .any(|variable| std::env::var_os(variable).is_some_and(|value| !value.is_empty()));
    if proxy && !is_local(&host) {
        findings.remark(format!("agent {name}: {place} is reached through a proxy; not tried"));
    } else {
        findings.note(reach(place.clone()).await, &format!("agent {name}: {place} answers"));
    }
    if online {
        let value = match key {
            Key::Found { value, .. } => value,
            Key::NotNeeded | Key::Missing(_) => None,
        };
        models(name, agent, base, value, findings).await;
    }
}

/// Opens a connection and closes it again.
async fn reach(place: String) -> Result<(), String> {
    let connect = async {
        // Names are looked up by the system, which may take its time.
        let looked = place.clone();
        let found = tokio::task::spawn_blocking(move || looked.to_socket_addrs().map(Iterator::collect::<Vec<_>>));
        let addresses =
            found.await.map_err(|e| e.to_string())?.map_err(|e| format!("{e}; check base_url and network"))?;
        let connected = tokio::net::TcpStream::connect(&addresses[..]).await;
        connected.map(|_| ()).map_err(|e| format!("{e}; is the server running, and is base_url right?"))
    };
    match tokio::time::timeout(CONNECT_LIMIT, connect).await {
        Ok(result) => result,
        Err(_) => Err(format!("no connection within {} s; check base_url and network", CONNECT_LIMIT.as_secs())),
    }
}

/// Asks for the list of models: is the key accepted, and the model there?
async fn models(name: &str, agent: &AgentDecl, base: &str, key: Option<String>, findings: &mut Findings) {
    let base = base.trim_end_matches('/').trim_end_matches("/v1");
    let what = format!("agent {name}: the key is accepted");
    match list(&format!("{base}/v1/models"), agent, key).await {
        Ok(listed) => {
            findings.note(Ok(()), &what);
            let model = agent.model.as_deref().unwrap_or_default();
            if listed.iter().any(|listed| listed == model) {
                findings.note(Ok(()), &format!("agent {name}: model {model}"));
            } else {
                findings
                    .remark(format!("agent {name}: the server does not list the model {model}; it may still know it"));
            }
        }
        Err(why) => findings.note(Err(why), &what),
    }
}

async fn list(url: &str, agent: &AgentDecl, key: Option<String>) -> Result<Vec<String>, String> {
    // Fails only when a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .connect_timeout(CONNECT_LIMIT)
        .timeout(ONLINE_LIMIT)
        // A redirect could carry the key to another host.
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|e| e.to_string())?;
    let mut call = client.get(url);
    if agent.backend == BackendName::Anthropic {
        let usual = crate::agent::AnthropicConfig::default().version;
        call = call.header("anthropic-version", agent.api_version.clone().unwrap_or(usual));
    }
    if let Some(key) = key {
        call = match agent.auth {
            Some(Auth::XApiKey) => call.header("x-api-key", key.trim()),
            Some(Auth::Bearer) | None => call.bearer_auth(key.trim()),
        };
    }
    let mut response = call.send().await.map_err(|e| e.without_url().to_string())?;
    match response.status().as_u16() {
        200 => {}
        401 | 403 => return Err("the server rejected it; is it the key for this server?".to_owned()),
        404 => return Ok(Vec::new()),
        other => return Err(format!("the server answered {other}")),
    }
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(|e| e.without_url().to_string())? {
        body.extend_from_slice(&bytes);
        if body.len() > MAX_LIST {
            return Err(format!("its list of models is longer than {MAX_LIST} bytes"));
        }
    }
    let list: serde_json::Value =
        serde_json::from_slice(&body).map_err(|_| "its list of models is not JSON".to_owned())?;
    let models = list["data"].as_array().cloned().unwrap_or_default();
    Ok(models.iter().filter_map(|model| model["id"].as_str().map(str::to_owned)).collect())
}
