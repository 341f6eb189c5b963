//! What tools may do and touch, as declared.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rules of the form `tool(pattern)`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PermissionsDecl {
    #[serde(default)]
    pub allow: Vec<String>,
    #[serde(default)]
    pub ask: Vec<String>,
    #[serde(default)]
    pub deny: Vec<String>,
    /// What becomes of a call that no rule names. By default it is allowed, unless `allow` has rules for its
    /// tool: then a person is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<Otherwise>,
}

/// What becomes of a call that no rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Otherwise {
    Allow,
    Ask,
    Deny,
}

/// What is enforced around tools and checks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SandboxDecl {
    /// `required` when nobody watches, else `preferred`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<SandboxMode>,
    /// What tools and checks may reach; `off` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkDecl>,
    /// Folders that tools and checks may write; the workspace by default. Relative ones start there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<Vec<String>>,
    /// May the caches of build tools (cargo, npm, pip, go …) be written? Yes by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caches: Option<bool>,
}

/// `required` refuses to start where the sandbox cannot be enforced; `preferred` takes what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SandboxMode {
    Required,
    Preferred,
    Off,
}

/// What a sandboxed command may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NetworkDecl {
    /// Nothing.
    #[default]
    Off,
    /// Servers of the run's own on 127.0.0.1, and nothing else.
    Loopback,
    On,
}
