//! The agents of a loop, ready to be called.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::agent::cassette::{self, Cassette, Recorder};
use crate::agent::openai::{self, OpenAi, OpenAiConfig};
use crate::agent::rehearsal::{MAX_TAPE_BYTES, Played, Script, Server, Tape};
use crate::agent::{Anthropic, AnthropicConfig, AuthStyle, Backend, Thinking, Usage};
use crate::model::decimal::Exact;
use crate::model::loop_file::{AgentDecl, Auth, BackendName, LoopFile, PriceDecl};

use crate::model::secret::Secrets;
use crate::playbook::prompts::Prompts;

use super::error::EngineError;
use super::means::Means;
use super::program::Program;
use super::{places, secrecy};

/// Tokens a reply may have when loop.yaml does not say.
const DEFAULT_MAX_TOKENS: u32 = 16_384;
const SCRIPT_HINT: &str = "agents.<name>.script names it; docs/rehearsal.md describes the format";

/// One configured agent.
pub struct Agent {
    pub backend: Arc<dyn Backend>,
    pub backend_name: &'static str,
    pub model: String,
    pub max_tokens: u32,
    pub thinking: Option<Thinking>,
    pub effort: Option<String>,
    price: Option<PriceDecl>,
}

/// All agents by name. Rehearsal servers live as long as this.
pub struct Agents {
    by_name: BTreeMap<String, Agent>,
    servers: Vec<Server>,
    programs: BTreeMap<String, Program>,
    secrets: Arc<Secrets>,
    prompts: Prompts,
    cassette: Option<Arc<Cassette>>,
    hurried: bool,
}

/// How long a stalled reply is waited for when nothing is real.
const HURRIED_IDLE: Duration = Duration::from_secs(2);
/// How long a wait is when nothing is real.
pub(super) const HURRIED_WAIT: Duration = Duration::from_millis(20);

impl Agents {
    /// Builds clients and starts rehearsal servers. Spends nothing.
    pub async fn prepare(declared: &LoopFile, workspace: &Path, means: &Means) -> Result<Self, EngineError> {
        let secrets = Arc::new(secrecy::gather(declared));
        let mut agents = Self {
            by_name: BTreeMap::new(),
            servers: Vec::new(),
            programs: BTreeMap::new(),
            cassette: cassette(means, &secrets)?,
            secrets,
            prompts: places::prompts()?,
            hurried: means.faults.is_some(),
        };
        for (name, decl) in declared.agents.iter() {
            let agent = match decl.backend {
                BackendName::Anthropic => anthropic(name, decl, agents.recorder())?,
                BackendName::Openai => openai(name, decl)?,
                BackendName::Command | BackendName::Acp => {
                    agents.programs.insert(name.to_owned(), Program::of(decl));
                    continue;
                }
                BackendName::Rehearsal => agents.rehearsal(name, decl, workspace, means).await?,
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

    /// How long to wait really: in a rehearsal with faults nothing real is waited for.
    pub fn wait(&self, wait: Duration) -> Duration {
        if self.hurried { wait.min(HURRIED_WAIT) } else { wait }
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
        workspace: &Path,
        means: &Means,
    ) -> Result<Agent, EngineError> {
        let script_name = decl.script.as_deref().unwrap_or("rehearsal.yaml");
        let path = workspace.join(script_name);
        let played = played(&path, script_name)?;
        let model = played.model().to_owned();
        let server = Server::start_with(played, means.speed, means.faults.clone()).await.map_err(|e| {
            EngineError::usage(format!("the rehearsal server cannot listen: {e}"), "it needs a loopback port")
        })?;
        let mut config = AnthropicConfig { base_url: server.base_url(), ..AnthropicConfig::default() };
        config.recorder = self.recorder();
        if self.hurried {
            config.idle_timeout = HURRIED_IDLE;
        }
        self.servers.push(server);
        Ok(Agent {
            backend: Arc::new(client(name, config)?),
            backend_name: BackendName::Rehearsal.name(),
            model: decl.model.clone().unwrap_or(model),
            max_tokens: decl.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
            thinking: None,
            effort: None,
            price: decl.price.clone(),
        })
    }
}

/// The script or cassette of an agent.
fn played(path: &Path, name: &str) -> Result<Played, EngineError> {
    let unreadable =
        |e: String| EngineError::usage(format!("cannot read the rehearsal script {name}: {e}"), SCRIPT_HINT);
    let size = std::fs::metadata(path).map_err(|e| unreadable(e.to_string()))?.len();
    if size > MAX_TAPE_BYTES as u64 {
        return Err(unreadable(format!("it has {size} bytes, the limit is {MAX_TAPE_BYTES}")));
    }
    let bytes = std::fs::read(path).map_err(|e| unreadable(e.to_string()))?;
    let parsed = if cassette::is_cassette(&bytes) {
        Tape::parse(&bytes, name).map(Played::Tape)
    } else {
        let text = String::from_utf8(bytes).map_err(|e| unreadable(e.to_string()))?;
        Script::parse(&text, name).map(Played::Script)
    };
    parsed.map_err(|e| EngineError::usage(e.to_string(), SCRIPT_HINT))
}

/// Opens the cassette that is to be recorded.
fn cassette(means: &Means, secrets: &Arc<Secrets>) -> Result<Option<Arc<Cassette>>, EngineError> {
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

fn anthropic(name: &str, decl: &AgentDecl, recorder: Option<Arc<dyn Recorder>>) -> Result<Agent, EngineError> {
    let defaults = AnthropicConfig::default();
    let variable = decl.api_key_env.as_deref().unwrap_or("ANTHROPIC_API_KEY");
    let api_key = std::env::var(variable).ok().filter(|key| !key.is_empty());
    if api_key.is_none() && decl.base_url.is_none() {
        return Err(EngineError::usage(
            format!("agent `{name}` needs a key, and {variable} is not set"),
            "export the key, or use `backend: rehearsal` to try the loop without one",
        ));
    }
    let config = AnthropicConfig {
        base_url: decl.base_url.clone().unwrap_or(defaults.base_url.clone()),
        api_key,
        auth: match decl.auth {
            Some(Auth::XApiKey) => AuthStyle::XApiKey,
            Some(Auth::Bearer) | None => AuthStyle::Bearer,
        },
        version: decl.api_version.clone().unwrap_or(defaults.version.clone()),
        recorder,
        ..defaults
    };
    Ok(Agent {
        backend: Arc::new(client(name, config)?),
        backend_name: BackendName::Anthropic.name(),
        model: decl.model.clone().unwrap_or_default(),
        max_tokens: decl.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
        thinking: Some(Thinking::summarized()),
        effort: decl.effort.map(|effort| effort.name().to_owned()),
        price: decl.price.clone(),
    })
}

fn openai(name: &str, decl: &AgentDecl) -> Result<Agent, EngineError> {
    let defaults = OpenAiConfig::default();
    let base_url = decl.base_url.clone().unwrap_or(defaults.base_url.clone());
    let config = OpenAiConfig { api_key: openai_key(decl, &base_url), base_url, ..defaults };
    let backend = OpenAi::new(config).map_err(|e| {
        EngineError::usage(format!("agent `{name}` cannot be set up: {e}"), "check its base_url and key")
    })?;
    Ok(Agent {
        backend: Arc::new(backend),
        backend_name: BackendName::Openai.name(),
        model: decl.model.clone().unwrap_or_default(),
        max_tokens: decl.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
        thinking: None,
        effort: decl.effort.map(|effort| effort.name().to_owned()),
        price: decl.price.clone(),
    })
}

/// A key is optional. The one that is meant for the service of OpenAI is not given to a server on this machine,
/// unless the declaration names it.
fn openai_key(decl: &AgentDecl, base_url: &str) -> Option<String> {
    let variable = match &decl.api_key_env {
        Some(named) => named.as_str(),
        None if openai::is_local(base_url) => return None,
        None => "OPENAI_API_KEY",
    };
    std::env::var(variable).ok().filter(|key| !key.is_empty())
}

fn client(name: &str, config: AnthropicConfig) -> Result<Anthropic, EngineError> {
    Anthropic::new(config)
        .map_err(|e| EngineError::usage(format!("agent `{name}` cannot be set up: {e}"), "check its base_url and key"))
}

impl Agent {
    /// What a reply cost; `None` when no price is declared: unknown is not zero.
    pub fn cost(&self, usage: &Usage) -> Option<Exact> {
        let price = self.price.as_ref()?;
        let per_token = Exact::parse("0.000001").ok()?;
        let part =
            |tokens: u64, per_million: Exact| Exact::from_u64(tokens).checked_mul(per_million)?.checked_mul(per_token);
        part(usage.input_tokens, price.input)?
            .checked_add(part(usage.output_tokens, price.output)?)?
            .checked_add(part(usage.cache_read_input_tokens, price.cache_read.unwrap_or(price.input))?)?
            .checked_add(part(usage.cache_creation_input_tokens, price.cache_write.unwrap_or(price.input))?)
    }

    pub fn has_price(&self) -> bool {
        self.price.is_some()
    }
}
