//! The agents of a loop, ready to be called.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::agent::cassette::{self, Cassette, Recorder};
use crate::agent::http;
use crate::agent::models::{Catalogue, Facts, Settings, Wanted};
use crate::agent::openai::{self, OpenAi, OpenAiConfig};
use crate::agent::rehearsal::{MAX_TAPE_BYTES, Played, Script, Server, Tape};
use crate::agent::{Anthropic, AnthropicConfig, AuthStyle, Backend, CacheTtl, ModelLimits, Price};
use crate::model::loop_file::{AgentDecl, Auth, BackendName, LoopFile};

use crate::model::secret::Secrets;
use crate::playbook::prompts::Prompts;
use crate::workspace::document;

use super::error::EngineError;
use super::keys::{self, Key};
use super::launch_options::LaunchOptions;
use super::program::Program;
use super::rate::RateGate;
use super::setup::Setup;
use super::{places, secrecy};

const SCRIPT_HINT: &str = "agents.<name>.script names it; docs/rehearsal.md describes the format";
/// A bundle of certificates is smaller.
const MAX_CA_BYTES: u64 = 4 * 1024 * 1024;

/// One configured agent.
pub struct Agent {
    pub backend: Arc<dyn Backend>,
    pub backend_name: &'static str,
    pub model: String,
    pub setup: Setup,
    /// Shared with all runs of this user that use the same key and model.
    pub gate: Option<RateGate>,
}

/// All agents by name. Rehearsal servers live as long as this.
pub struct Agents {
    by_name: BTreeMap<String, Agent>,
    servers: Vec<Server>,
    programs: BTreeMap<String, Program>,
    secrets: Arc<Secrets>,
    prompts: Prompts,
    cassette: Option<Arc<Cassette>>,
    skips_waits: bool,
    /// What the operator should know before the start.
    pub warnings: Vec<String>,
    /// What servers said about their models, so that each is asked once.
    limits: BTreeMap<(String, String), Option<ModelLimits>>,
}

/// Where agents are made.
struct AgentBuilder<'a> {
    catalogue: Arc<Catalogue>,
    workspace: &'a Path,
    state_root: &'a Path,
    means: &'a LaunchOptions,
    /// By agent.
    keys: BTreeMap<String, Key>,
}

/// How long a stalled reply is waited for when nothing is real.
const REHEARSED_IDLE: Duration = Duration::from_secs(2);

impl Agents {
    /// Builds clients and starts rehearsal servers. Spends nothing.
    pub async fn prepare(
        declared: &LoopFile,
        workspace: &Path,
        state_root: &Path,
        means: &LaunchOptions,
    ) -> Result<Self, EngineError> {
        let keys = find_keys(declared, workspace).await?;
        let mut secrets = secrecy::gather(declared);
        for (name, key) in &keys {
            secrets.add(&format!("key-of-{name}"), key.expose());
        }
        let secrets = Arc::new(secrets);
        let builder = AgentBuilder { catalogue: Arc::new(catalogue()?), workspace, state_root, means, keys };
        let mut agents = Self {
            by_name: BTreeMap::new(),
            servers: Vec::new(),
            programs: BTreeMap::new(),
            cassette: cassette(means, &secrets)?,
            secrets,
            prompts: places::prompts()?,
            skips_waits: means.faults.is_some(),
            warnings: Vec::new(),
            limits: BTreeMap::new(),
        };
        for (name, decl) in declared.agents.iter() {
            agents.warnings.extend(stays_home(name, decl));
            let agent = match decl.backend {
                BackendName::Anthropic => agents.anthropic(name, decl, &builder).await?,
                BackendName::Openai => openai(name, decl, &builder)?,
                BackendName::Command | BackendName::Acp => {
                    agents.programs.insert(
                        name.to_owned(),
                        Program::of(decl, builder.declared_price(name, decl)?).with_prices(&builder.catalogue),
                    );
                    continue;
                }
                BackendName::Rehearsal => agents.rehearsal(name, decl, &builder).await?,
            };
            agents.by_name.insert(name.to_owned(), agent);
        }
        Ok(agents)
    }

    /// What must not be seen.
    pub fn secrets(&self) -> &Arc<Secrets> {
        &self.secrets
    }

    pub fn prompts(&self) -> &Prompts {
        &self.prompts
    }

    /// What the run is recorded on.
    pub fn cassette(&self) -> Option<&Arc<Cassette>> {
        self.cassette.as_ref()
    }

    /// Is nothing real, so that no server's wait need be waited out?
    pub fn skips_waits(&self) -> bool {
        self.skips_waits
    }

    fn recorder(&self) -> Option<Arc<dyn Recorder>> {
        self.cassette.as_ref().map(|cassette| Arc::clone(cassette) as Arc<dyn Recorder>)
    }

    pub fn get(&self, name: &str) -> Option<&Agent> {
        self.by_name.get(name)
    }

    /// The agent of this name, if it is a program.
    pub fn program(&self, name: &str) -> Option<&Program> {
        self.programs.get(name)
    }

    async fn rehearsal(
        &mut self,
        name: &str,
        decl: &AgentDecl,
        builder: &AgentBuilder<'_>,
    ) -> Result<Agent, EngineError> {
        let script_name = decl.script.as_deref().unwrap_or("rehearsal.yaml");
        let played = played(builder.workspace, script_name)?;
        let model = decl.model.clone().unwrap_or_else(|| played.model().to_owned());
        let mut setup = builder.setup(name, decl, &model)?;
        // A model that only plays one is asked plainly, unless loop.yaml says otherwise.
        if builder.catalogue.get(&model).is_none() && decl.thinking.is_none() {
            setup.thinking = None;
        }
        let server =
            Server::start_with(played, builder.means.speed, builder.means.faults.clone()).await.map_err(|e| {
                EngineError::usage(format!("the rehearsal server cannot listen: {e}"), "it needs a loopback port")
            })?;
        let mut config = AnthropicConfig { base_url: server.base_url(), ..AnthropicConfig::default() };
        config.recorder = self.recorder();
        if self.skips_waits {
            config.idle_timeout = REHEARSED_IDLE;
        }
        self.servers.push(server);
        Ok(Agent {
            backend: Arc::new(client(name, config)?),
            backend_name: BackendName::Rehearsal.name(),
            model,
            setup,
            gate: None,
        })
    }

    async fn anthropic(
        &mut self,
        name: &str,
        decl: &AgentDecl,
        builder: &AgentBuilder<'_>,
    ) -> Result<Agent, EngineError> {
        let defaults = AnthropicConfig::default();
        let key = builder.keys.get(name).cloned();
        if key.is_none() && decl.base_url.is_none() {
            let variable = decl.api_key_env.as_deref().unwrap_or("ANTHROPIC_API_KEY");
            return Err(EngineError::usage(
                format!("agent `{name}` needs a key, and {variable} is not set"),
                "export the key, name an api_key_file, or use `backend: rehearsal` to try the loop without one",
            ));
        }
        let model = decl.model.clone().unwrap_or_default();
        let mut setup = builder.setup(name, decl, &model)?;
        let base_url = decl.base_url.clone().unwrap_or(defaults.base_url.clone());
        let gate = key.as_ref().map(|key| RateGate::of(builder.state_root, key.expose(), &model, &base_url));
        let (has_key, asked) = (key.is_some(), (base_url.clone(), model.clone()));
        let config = AnthropicConfig {
            base_url,
            api_key: key.map(|key| key.expose().to_owned()),
            auth: match decl.auth {
                Some(Auth::XApiKey) => AuthStyle::XApiKey,
                Some(Auth::Bearer) | None => AuthStyle::Bearer,
            },
            version: decl.api_version.clone().unwrap_or(defaults.version.clone()),
            ca_pem: decl.ca_file.as_deref().map(|file| ca_file(name, file)).transpose()?,
            recorder: self.recorder(),
            ..defaults
        };
        let backend = client(name, config)?;
        // The server knows its models better than a file does. Where it does not answer, the file has to do.
        let live = match self.limits.get(&asked) {
            Some(known) => *known,
            None if has_key => backend.model_limits(&model).await,
            None => None,
        };
        self.limits.insert(asked, live);
        if let Some(live) = live {
            setup.max_output = live.max_tokens.or(setup.max_output);
            setup.context = live.max_input_tokens.or(setup.context);
            setup.max_tokens = setup.max_tokens.min(setup.max_output.unwrap_or(u32::MAX));
        } else if builder.catalogue.get(&model).is_none() {
            self.warnings.push(format!(
                "agent `{name}`: nothing is known about the model {model}; its limits and its price are unknown"
            ));
        }
        Ok(Agent { backend: Arc::new(backend), backend_name: BackendName::Anthropic.name(), model, setup, gate })
    }
}

impl AgentBuilder<'_> {
    fn declared_price(&self, name: &str, decl: &AgentDecl) -> Result<Option<Price>, EngineError> {
        let price = decl.price.as_ref().map(|price| {
            Price::declared(price, self.catalogue.web_search()).ok_or_else(|| {
                EngineError::usage(format!("agent `{name}`: its price has too many digits"), "shorten it")
            })
        });
        price.transpose()
    }

    /// The settings of an agent, or why its declaration contradicts its model.
    fn setup(&self, name: &str, decl: &AgentDecl, model: &str) -> Result<Setup, EngineError> {
        let wanted = Wanted {
            thinking: decl.thinking,
            effort: decl.effort,
            max_tokens: decl.max_tokens,
            web_search: decl.web.as_ref().is_some_and(|web| web.search),
            web_fetch: decl.web.as_ref().is_some_and(|web| web.fetch),
        };
        let unknown = Facts::default();
        let Settings { thinking, effort, max_tokens, max_output, context } = self
            .catalogue
            .get(model)
            .unwrap_or(&unknown)
            .settle(model, &wanted)
            .map_err(|refused| EngineError::usage(format!("agent `{name}`: {}", refused.message), refused.hint))?;
        Ok(Setup {
            max_tokens,
            max_output,
            context,
            thinking,
            effort,
            cache: CacheTtl::declared(decl.cache),
            web: decl.web.clone(),
            price: self.declared_price(name, decl)?.or_else(|| self.catalogue.price(model)),
        })
    }
}

/// The script or cassette of an agent.
fn played(workspace: &Path, name: &str) -> Result<Played, EngineError> {
    let unreadable =
        |e: String| EngineError::usage(format!("cannot read the rehearsal script {name}: {e}"), SCRIPT_HINT);
    let bytes = document::read_declared(workspace, name, MAX_TAPE_BYTES).map_err(unreadable)?;
    let parsed = if cassette::is_cassette(&bytes) {
        Tape::parse(&bytes, name).map(Played::Tape)
    } else {
        let text = String::from_utf8(bytes).map_err(|e| unreadable(e.to_string()))?;
        Script::parse(&text, name).map(Played::Script)
    };
    parsed.map_err(|e| EngineError::usage(e.to_string(), SCRIPT_HINT))
}

/// Opens the cassette that is to be recorded.
fn cassette(means: &LaunchOptions, secrets: &Arc<Secrets>) -> Result<Option<Arc<Cassette>>, EngineError> {
    let Some(record) = &means.record else { return Ok(None) };
    let opened = Cassette::open(&record.file, record.append, Arc::clone(secrets)).map_err(|e| {
        let hint = if e.kind() == std::io::ErrorKind::AlreadyExists {
            "choose another name; a cassette is never overwritten"
        } else {
            "--record names a file that can be created"
        };
        EngineError::usage(format!("cannot record to {}: {e}", record.file.display()), hint)
    })?;
    Ok(Some(Arc::new(opened)))
}

/// What is shipped, with the operator's own file over it.
pub fn catalogue() -> Result<Catalogue, EngineError> {
    let shipped = Catalogue::shipped().map_err(|e| EngineError::Internal(e.to_string()))?;
    let Some(path) = places::config_dir().map(|dir| dir.join("models.yaml")) else { return Ok(shipped) };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(shipped),
        Err(e) => return Err(EngineError::io("cannot read your models", &path, e)),
    };
    shipped
        .with(&text, &path.display().to_string())
        .map_err(|e| EngineError::usage(e.to_string(), "docs/models.md describes the format"))
}

fn ca_file(name: &str, file: &str) -> Result<Vec<u8>, EngineError> {
    use std::io::Read as _;
    let path = keys::expand(file);
    let mut pem = Vec::new();
    std::fs::File::open(&path)
        .and_then(|file| file.take(MAX_CA_BYTES).read_to_end(&mut pem))
        .map(|_| pem)
        .map_err(|e| EngineError::usage(format!("agent `{name}`: cannot read ca_file {file}: {e}"), "check the path"))
}

fn openai(name: &str, decl: &AgentDecl, builder: &AgentBuilder<'_>) -> Result<Agent, EngineError> {
    let defaults = OpenAiConfig::default();
    let base_url = decl.base_url.clone().unwrap_or(defaults.base_url.clone());
    let model = decl.model.clone().unwrap_or_default();
    let mut setup = builder.setup(name, decl, &model)?;
    // Such servers think as they like; nothing asks them to.
    setup.thinking = None;
    let key = builder.keys.get(name);
    let gate = key.map(|key| RateGate::of(builder.state_root, key.expose(), &model, &base_url));
    let config = OpenAiConfig {
        api_key: key.map(|key| key.expose().to_owned()),
        base_url,
        ca_pem: decl.ca_file.as_deref().map(|file| ca_file(name, file)).transpose()?,
        ..defaults
    };
    let backend = OpenAi::new(config).map_err(|e| {
        EngineError::usage(format!("agent `{name}` cannot be set up: {e}"), "check its base_url and key")
    })?;
    Ok(Agent { backend: Arc::new(backend), backend_name: BackendName::Openai.name(), model, setup, gate })
}

/// The keys of all agents, found once: a command that prints one may ask its owner.
async fn find_keys(declared: &LoopFile, workspace: &Path) -> Result<BTreeMap<String, Key>, EngineError> {
    let mut keys = BTreeMap::new();
    for (name, decl) in declared.agents.iter() {
        if !matches!(decl.backend, BackendName::Anthropic | BackendName::Openai) {
            continue;
        }
        if let Some(key) = keys::find(name, decl, usual_variable(decl).unwrap_or_default(), workspace).await? {
            keys.insert(name.to_owned(), key);
        }
    }
    Ok(keys)
}

/// Where the key of an agent is when its declaration does not say. A vendor's key is for that vendor's own host: any
/// other server, near or far, gets one that was declared for it, or none.
pub fn usual_variable(decl: &AgentDecl) -> Option<&'static str> {
    let (variable, home) = vendor(decl.backend)?;
    let goes_home = decl.base_url.as_deref().is_none_or(|base| same_origin(base, &home));
    goes_home.then_some(variable)
}

/// The usual variable of a vendor's key, and the only server it is for.
fn vendor(backend: BackendName) -> Option<(&'static str, String)> {
    match backend {
        BackendName::Anthropic => Some(("ANTHROPIC_API_KEY", AnthropicConfig::default().base_url)),
        BackendName::Openai => Some(("OPENAI_API_KEY", OpenAiConfig::default().base_url)),
        BackendName::Command | BackendName::Acp | BackendName::Rehearsal => None,
    }
}

fn same_origin(one: &str, other: &str) -> bool {
    let origin = |base: &str| http::base_url(base).ok().map(|url| url.origin());
    origin(one).is_some_and(|one| Some(one) == origin(other))
}

/// What an operator should know who trusted that the key of the environment goes along.
fn stays_home(name: &str, decl: &AgentDecl) -> Option<String> {
    let (variable, home) = vendor(decl.backend)?;
    let elsewhere = decl.base_url.as_deref().filter(|base| !same_origin(base, &home) && !openai::is_local(base))?;
    let declares = decl.api_key_env.is_some() || decl.api_key_command.is_some() || decl.api_key_file.is_some();
    (!declares).then(|| {
        format!(
            "agent `{name}`: no key is sent to {}: {variable} is for {} alone; if it needs one, declare `api_key_env`, \
             `api_key_command` or `api_key_file`",
            http::shown_base(elsewhere),
            http::shown_base(&home)
        )
    })
}

fn client(name: &str, config: AnthropicConfig) -> Result<Anthropic, EngineError> {
    Anthropic::new(config)
        .map_err(|e| EngineError::usage(format!("agent `{name}` cannot be set up: {e}"), "check its base_url and key"))
}

impl Agent {
    pub fn has_price(&self) -> bool {
        self.setup.price.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::Role;
    use crate::model::loop_file::WebDecl;
    use serde_json::{Value, json};

    fn declared(backend: &str, base_url: Option<&str>) -> AgentDecl {
        let agent: Value = json!({"backend": backend, "model": "m", "base_url": base_url});
        serde_json::from_value(agent).unwrap()
    }

    #[test]
    fn web_tools_are_for_those_who_look_things_up() {
        let web = WebDecl {
            search: true,
            fetch: true,
            max_uses: None,
            allowed_domains: Vec::new(),
            blocked_domains: Vec::new(),
        };
        let setup = Setup { web: Some(web), ..Setup::default() };
        let who: Vec<Role> = Role::ALL.into_iter().filter(|role| setup.web_for(*role).is_some()).collect();
        assert_eq!(who, [Role::Scout, Role::Researcher]);
        assert!(Role::ALL.into_iter().all(|role| Setup::default().web_for(role).is_none()));
    }

    #[test]
    fn the_key_of_a_vendor_goes_to_that_vendor_alone() {
        assert_eq!(usual_variable(&declared("openai", Some("https://API.openai.com/v1/"))), Some("OPENAI_API_KEY"));
        assert_eq!(usual_variable(&declared("openai", None)), Some("OPENAI_API_KEY"));
        let home = "https://api.anthropic.com";
        assert_eq!(usual_variable(&declared("anthropic", Some(home))), Some("ANTHROPIC_API_KEY"));
        assert_eq!(usual_variable(&declared("anthropic", None)), Some("ANTHROPIC_API_KEY"));
        for other in [
            "http://127.0.0.1:11434/v1",
            "http://localhost:8000/v1",
            "http://[::1]:1/v1",
            "https://gateway.example/v1",
            "https://api.openai.com.example/v1",
            "https://api.openai.com@example.com/v1",
            "http://api.openai.com/v1",
            "https://api.openai.com:8443/v1",
            "https://api.anthropic.com.example",
        ] {
            assert_eq!(usual_variable(&declared("openai", Some(other))), None, "{other}");
            assert_eq!(usual_variable(&declared("anthropic", Some(other))), None, "{other}");
        }
    }

    #[test]
    fn a_key_that_stays_home_is_said() {
        let told = stays_home("far", &declared("openai", Some("https://user:pw@gateway.example/v1"))).unwrap();
        assert!(told.contains("https://gateway.example") && told.contains("OPENAI_API_KEY"), "{told}");
        assert!(!told.contains("pw"), "{told}");
        assert_eq!(stays_home("near", &declared("openai", Some("http://127.0.0.1:1/v1"))), None);
        assert_eq!(stays_home("home", &declared("anthropic", None)), None);
        let mut own = declared("anthropic", Some("https://gateway.example"));
        own.api_key_env = Some("GATEWAY_KEY".to_owned());
        assert_eq!(stays_home("own", &own), None);
    }
}
