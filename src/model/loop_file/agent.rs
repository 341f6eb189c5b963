//! One agent as declared: which backend answers, with which model, key and limits.
//!
//! A key is never part of a declaration: it names where the key is found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::call_limits::CallLimits;
use crate::model::decimal::Exact;

/// A configured way to run a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentDecl {
    pub backend: BackendName,
    pub model: Option<String>,
    pub effort: Option<Effort>,
    pub base_url: Option<String>,
    /// The environment variable that holds the key (default ANTHROPIC_API_KEY or OPENAI_API_KEY).
    pub api_key_env: Option<String>,
    /// A command that prints the key on its first line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_command: Option<Vec<String>>,
    /// A file, outside the workspace, whose first line is the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_file: Option<String>,
    pub auth: Option<Auth>,
    pub api_version: Option<String>,
    /// A PEM file with certificates to trust besides the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
    pub max_tokens: Option<u32>,
    /// How the model thinks; by default what suits the model, shown in summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThinkingDecl>,
    /// How long the server keeps the conversation so far for the next request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheDecl>,
    /// The server's own web tools, for roles that look things up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<WebDecl>,
    /// The rehearsal script, relative to the workspace.
    pub script: Option<String>,
    pub price: Option<PriceDecl>,
    /// The program of a `command` or `acp` agent, with its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Whose output the program writes; by default known from its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProgramProfile>,
    /// How the program gets its prompt; by default as its profile says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<PromptBy>,
    /// Environment variables the program may see besides the usual ones (its own key, for example).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Folders outside the workspace that the program may write (its own state).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
    /// The longest silence of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence_seconds: Option<u64>,
    /// The longest time one turn of the program may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_seconds: Option<u64>,
    /// How much one call may use, whatever its role; `limits` of the role outweighs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<CallLimits>,
}

/// US dollars per million tokens, as decimal strings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceDecl {
    #[schemars(with = "String")]
    pub input: Exact,
    #[schemars(with = "String")]
    pub output: Exact,
    #[schemars(with = "Option<String>")]
    pub cache_read: Option<Exact>,
    #[schemars(with = "Option<String>")]
    pub cache_write: Option<Exact>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BackendName {
    /// The Messages API.
    Anthropic,
    /// Any server that speaks chat completions.
    Openai,
    /// An agent program, run once per turn.
    Command,
    /// An agent program that speaks the Agent Client Protocol.
    Acp,
    /// A scripted model inside nightloop.
    Rehearsal,
}

impl BackendName {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Openai => "openai",
            Self::Command => "command",
            Self::Acp => "acp",
            Self::Rehearsal => "rehearsal",
        }
    }

    /// Does it run a program that has tools of its own?
    pub const fn is_program(self) -> bool {
        matches!(self, Self::Command | Self::Acp)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Auth {
    Bearer,
    XApiKey,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl Effort {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

/// How a model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingDecl {
    Adaptive,
    /// Only between tool calls, where the model can.
    BetweenTools,
    Off,
}

/// How long the server keeps a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CacheDecl {
    #[serde(rename = "off")]
    Off,
    #[serde(rename = "5m")]
    FiveMinutes,
    #[serde(rename = "1h")]
    Hour,
}

/// Web tools that the model's server runs. At most one of the two domain lists may be given.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebDecl {
    #[serde(default)]
    pub search: bool,
    #[serde(default)]
    pub fetch: bool,
    /// Uses per request (default 5).
    pub max_uses: Option<u32>,
    #[serde(default)]
    pub allowed_domains: Vec<String>,
    #[serde(default)]
    pub blocked_domains: Vec<String>,
}

/// Whose command line and output a program has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProgramProfile {
    Claude,
    Codex,
    Gemini,
    Opencode,
    Goose,
    Aider,
    /// Any command: its output is its answer.
    Plain,
}

impl ProgramProfile {
    pub const ALL: [Self; 7] =
        [Self::Claude, Self::Codex, Self::Gemini, Self::Opencode, Self::Goose, Self::Aider, Self::Plain];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Goose => "goose",
            Self::Aider => "aider",
            Self::Plain => "plain",
        }
    }

    /// The profile of a program by its file name.
    pub fn of_program(program: &str) -> Self {
        let name = program.rsplit('/').next().unwrap_or(program);
        Self::ALL.into_iter().find(|profile| profile.name() == name).unwrap_or(Self::Plain)
    }
}

/// How a program gets its prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PromptBy {
    Stdin,
    /// As its last argument, or in place of `{prompt}` among its arguments.
    Argument,
}

impl AgentDecl {
    /// What is wrong with it, and what to do.
    pub(super) fn check(&self, name: &str) -> Result<(), (String, &'static str)> {
        let missing = |what: &str| format!("agent `{name}` {what}");
        match self.backend {
            BackendName::Rehearsal if self.script.is_none() => {
                Err((missing("rehearses without a script"), "add `script: rehearsal.yaml`"))
            }
            BackendName::Anthropic | BackendName::Openai if self.model.is_none() => {
                Err((missing("names no model"), "add `model: …`"))
            }
            BackendName::Openai if self.base_url.is_none() => {
                Err((missing("names no server"), "add `base_url: \"http://127.0.0.1:11434/v1\"`"))
            }
            BackendName::Command | BackendName::Acp if self.command.as_ref().is_none_or(Vec::is_empty) => {
                Err((missing("names no program"), "add `command: [\"claude\"]`"))
            }
            _ if self
                .web
                .as_ref()
                .is_some_and(|web| !web.allowed_domains.is_empty() && !web.blocked_domains.is_empty()) =>
            {
                Err((missing("both allows and blocks domains"), "keep one of the two lists"))
            }
            _ => match self.limits.as_ref().map_or(Ok(()), CallLimits::check) {
                Ok(()) => Ok(()),
                Err((_, why)) => Err((missing(&format!("has a limit that cannot be: {why}")), "")),
            },
        }
    }

    /// The profile of a program agent.
    pub fn program_profile(&self) -> ProgramProfile {
        let program = self.command.as_ref().and_then(|argv| argv.first());
        self.profile.unwrap_or_else(|| program.map_or(ProgramProfile::Plain, |name| ProgramProfile::of_program(name)))
    }
}
