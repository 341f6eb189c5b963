//! Services that the work needs: how each is started, asked for its health, and stopped.
//!
//! Not here: starting and asking (`engine::value`), whether a declaration may replace another (`playbook::value`).

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::{self, Check, MAX_NAME, MAX_TEXT};

/// Services of a run.
pub const MAX_SERVICES: usize = 20;
/// The longest name of a service that the engine starts: it names a file.
const MAX_SERVICE_NAME: usize = 64;
/// Seconds to become healthy, unless declared, and at most.
const START_SECONDS: u64 = 20;
const MAX_START_SECONDS: u64 = 300;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
// In the order of what each shows: that it runs, that it listens, that it answers.
pub enum HealthType {
    Process,
    Tcp,
    Http,
    Command,
}

/// How a service is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum StopSignal {
    #[default]
    #[serde(rename = "TERM")]
    Term,
    #[serde(rename = "INT")]
    Int,
    #[serde(rename = "QUIT")]
    Quit,
    #[serde(rename = "HUP")]
    Hup,
}

/// A service that the work needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Service {
    pub name: String,
    pub health_type: HealthType,
    /// For `tcp`. A service that is started is given it as `PORT`, too.
    #[serde(default)]
    pub port: Option<u16>,
    /// For `http`.
    #[serde(default)]
    pub health_url: Option<String>,
    /// The name of a process, for `process`.
    #[serde(default)]
    pub process: Option<String>,
    /// Program and arguments, for `command`.
    #[serde(default)]
    pub command: Option<Vec<String>>,
    /// Program and arguments that start it and stay in the foreground. Without them nobody starts it here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Vec<String>>,
    /// Where it is started, relative to the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Names of environment variables that it needs; never values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Program and arguments that end it in good order, before the signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Vec<String>>,
    /// TERM by default. What does not end is killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_signal: Option<StopSignal>,
    /// How long it may take to become healthy. Default 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_seconds: Option<u64>,
}

impl Service {
    /// `at`: where it stands, for the message.
    pub fn check(&self, at: &str) -> Result<(), String> {
        bounds::needed(&format!("{at}.name"), &self.name, MAX_NAME)?;
        let missing = |field: &str| format!("service `{}` needs `{field}`", self.name);
        if let Some(url) = &self.health_url {
            bounds::needed(&format!("{at}.health_url"), url, MAX_NAME)?;
            if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
                return Err(format!("{at}.health_url must begin with http:// or https://"));
            }
        }
        bounds::optional(&format!("{at}.process"), self.process.as_ref(), MAX_NAME)?;
        if let Some(argv) = &self.command {
            bounds::command(&format!("{at}.command"), argv)?;
        }
        match self.health_type {
            HealthType::Tcp if self.port.is_none_or(|port| port == 0) => Err(missing("port")),
            HealthType::Http if self.health_url.is_none() => Err(missing("health_url")),
            // One that we start is its own process.
            HealthType::Process if self.start.is_some() => Ok(()),
            HealthType::Process if self.process.as_deref().is_none_or(|name| name.trim().is_empty()) => {
                Err(missing("process"))
            }
            HealthType::Command if self.command.is_none() => Err(missing("command")),
            HealthType::Tcp | HealthType::Http | HealthType::Process | HealthType::Command => Ok(()),
        }?;
        self.check_start(at)
    }

    /// What only matters for one that the engine starts.
    fn check_start(&self, at: &str) -> Result<(), String> {
        let Some(start) = &self.start else { return Ok(()) };
        bounds::command(&format!("{at}.start"), start)?;
        if let Some(stop) = &self.stop {
            bounds::command(&format!("{at}.stop"), stop)?;
        }
        if !is_plain(&self.name) {
            return Err(format!(
                "{at}.name `{}`: a service that is started is named by letters, digits, `-` and `_`, at most {MAX_SERVICE_NAME}",
                self.name
            ));
        }
        bounds::names(&format!("{at}.env"), &self.env)?;
        if let Some(bad) = self.env.iter().find(|name| !is_variable(name)) {
            return Err(format!("{at}.env has `{bad}`: give names of variables, never their values"));
        }
        if let Some(cwd) = self.cwd.as_ref().filter(|cwd| !bounds::is_inside(cwd)) {
            return Err(format!("{at}.cwd is `{cwd}`: give a folder relative to the workspace, without `..`"));
        }
        if let Some(seconds) = self.start_seconds.filter(|seconds| !(1..=MAX_START_SECONDS).contains(seconds)) {
            return Err(format!("{at}.start_seconds is {seconds}: give 1 to {MAX_START_SECONDS}"));
        }
        match (&self.health_url, self.health_type) {
            (Some(url), HealthType::Http) if !is_loopback(url) => Err(format!(
                "{at}.health_url is `{url}`: a service that is started here is asked at http://127.0.0.1:PORT/..."
            )),
            _ => Ok(()),
        }
    }

    /// Does the engine start it?
    pub const fn is_started(&self) -> bool {
        self.start.is_some()
    }

    pub fn start_seconds(&self) -> u64 {
        self.start_seconds.unwrap_or(START_SECONDS)
    }

    /// Where clients reach it, as far as the declaration says.
    pub fn url(&self) -> Option<String> {
        let of_url = self.health_url.as_deref().and_then(origin).map(str::to_owned);
        of_url.or_else(|| self.port.map(|port| format!("127.0.0.1:{port}")))
    }

    /// The port it listens on, as far as the declaration says.
    pub fn listens(&self) -> Option<u16> {
        let of_url = self.health_url.as_deref().and_then(origin).and_then(|origin| origin.rsplit_once(':'));
        self.port.or_else(|| of_url.and_then(|(_, port)| port.parse().ok()))
    }

    /// Would this health check show less than that of `other`? Then a service could be called healthy that is not.
    pub fn shows_less_than(&self, other: &Self) -> bool {
        let rank = |kind| if kind == HealthType::Command { HealthType::Http } else { kind };
        rank(self.health_type) < rank(other.health_type)
    }
}

/// All services of one list: bounded, each named once.
pub fn check_all(at: &str, services: &[Service]) -> Result<(), String> {
    if services.len() > MAX_SERVICES {
        return Err(format!("`{at}` has {} entries: at most {MAX_SERVICES}", services.len()));
    }
    let mut names = BTreeSet::new();
    for (n, service) in services.iter().enumerate() {
        service.check(&format!("{at}[{n}]"))?;
        if !names.insert(&service.name) {
            return Err(format!("the service `{}` is declared twice", service.name));
        }
    }
    Ok(())
}

fn is_plain(name: &str) -> bool {
    name.len() <= MAX_SERVICE_NAME
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Scheme, host and port.
fn origin(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("http://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    url.get(.."http://".len() + end)
}

fn is_loopback(url: &str) -> bool {
    let hosts = ["127.0.0.1", "localhost", "[::1]"];
    let authority = origin(url).and_then(|origin| origin.strip_prefix("http://")).unwrap_or_default();
    hosts.iter().any(|host| {
        authority.strip_prefix(host).is_some_and(|port| {
            port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
        })
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServiceAction {
    /// Declare it, or declare it anew.
    Put,
    /// The work does not need it after all.
    Remove,
}

/// A wish to change which services the engine starts, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ManageService {
    pub action: ServiceAction,
    /// What was wrong, or why it is needed.
    pub reason: String,
    /// Needed to put: the whole declaration.
    #[serde(default)]
    pub service: Option<Service>,
    /// Needed to remove.
    #[serde(default)]
    pub name: Option<String>,
}

impl Check for ManageService {
    fn check(&self) -> Result<(), String> {
        bounds::needed("reason", &self.reason, MAX_TEXT)?;
        bounds::optional("name", self.name.as_ref(), MAX_NAME)?;
        match (self.action, &self.service, &self.name) {
            (ServiceAction::Put, Some(service), _) => service.check("service"),
            (ServiceAction::Put, None, _) => Err("to put a service, give the whole `service`".to_owned()),
            (ServiceAction::Remove, _, Some(_)) => Ok(()),
            (ServiceAction::Remove, _, None) => Err("to remove a service, give its `name`".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(fields: &serde_json::Value) -> Service {
        let mut all = serde_json::json!({"name": "web", "health_type": "http", "start": ["python3", "server.py"],
            "health_url": "http://127.0.0.1:8080/health?deep=1"});
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn what_is_started_is_on_this_machine_and_has_a_plain_name() {
        for (fields, words) in [
            (serde_json::json!({}), ""),
            (serde_json::json!({"health_url": "http://localhost:3000"}), ""),
            (serde_json::json!({"health_url": "http://[::1]:3000/"}), ""),
            (serde_json::json!({"name": "a b"}), "letters, digits"),
            (serde_json::json!({"name": "../../x"}), "letters, digits"),
            (serde_json::json!({"start": []}), "`service.start` is empty"),
            (serde_json::json!({"cwd": "../x"}), "without `..`"),
            (serde_json::json!({"env": ["A=1"]}), "never their values"),
            (serde_json::json!({"start_seconds": 0}), "give 1 to 300"),
            (serde_json::json!({"health_url": "http://example.com/"}), "127.0.0.1"),
            (serde_json::json!({"health_url": "http://127.0.0.1.example.com/"}), "127.0.0.1"),
            (serde_json::json!({"health_url": "https://127.0.0.1/"}), "127.0.0.1"),
            (serde_json::json!({"health_url": "http://127.0.0.1:{PORT}/"}), "127.0.0.1"),
        ] {
            let checked = service(&fields).check("service");
            match words {
                "" => assert_eq!(checked, Ok(()), "{fields}"),
                words => assert!(checked.as_ref().is_err_and(|why| why.contains(words)), "{fields}: {checked:?}"),
            }
        }
    }

    #[test]
    fn where_it_is_reached_follows_from_the_declaration() {
        let web = service(&serde_json::json!({}));
        assert_eq!((web.url().as_deref(), web.listens()), (Some("http://127.0.0.1:8080"), Some(8080)));
        let db = service(&serde_json::json!({"health_type": "tcp", "port": 5432, "health_url": null}));
        assert_eq!((db.url().as_deref(), db.listens()), (Some("127.0.0.1:5432"), Some(5432)));
        assert!(db.shows_less_than(&web) && !web.shows_less_than(&db) && !web.shows_less_than(&web));
    }

    #[test]
    fn a_name_stands_for_one_service() {
        let web = service(&serde_json::json!({}));
        assert!(check_all("services", &[web.clone(), web.clone()]).unwrap_err().contains("twice"));
        let many: Vec<_> = (0..=MAX_SERVICES).map(|n| Service { name: format!("s{n}"), ..web.clone() }).collect();
        assert!(check_all("services", &many).unwrap_err().contains("at most 20"));
    }
}
