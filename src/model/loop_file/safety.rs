//! What tools may do and touch, as declared.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::hosts::{MAX_LISTED, Pattern};

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
    pub network: Option<ReachDecl>,
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

/// What a command's sockets may reach.
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

/// What sandboxed commands may reach, as declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReachDecl {
    Kind(NetworkDecl),
    /// The run's own network, and through it the registries of the tools that the workspace uses.
    Registries,
    /// The run's own network, and through it these.
    Hosts(Vec<Pattern>),
}

impl ReachDecl {
    const REGISTRIES: &str = "registries";

    /// What the commands' own sockets may reach; a list is reached through us.
    pub const fn kind(&self) -> NetworkDecl {
        match self {
            Self::Kind(kind) => *kind,
            Self::Registries | Self::Hosts(_) => NetworkDecl::Loopback,
        }
    }

    pub const fn is_listed(&self) -> bool {
        matches!(self, Self::Registries | Self::Hosts(_))
    }
}

impl From<NetworkDecl> for ReachDecl {
    fn from(kind: NetworkDecl) -> Self {
        Self::Kind(kind)
    }
}

impl Serialize for ReachDecl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Kind(kind) => kind.serialize(serializer),
            Self::Registries => serializer.serialize_str(Self::REGISTRIES),
            Self::Hosts(hosts) => hosts.serialize(serializer),
        }
    }
}

// Not `untagged`: that would swallow the place and the wording of the real error.
impl<'de> Deserialize<'de> for ReachDecl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordOrList;
        impl<'de> Visitor<'de> for WordOrList {
            type Value = ReachDecl;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("off, loopback, registries, on, or a list of hosts")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<ReachDecl, E> {
                Ok(match word {
                    "off" => NetworkDecl::Off.into(),
                    "loopback" => NetworkDecl::Loopback.into(),
                    "on" => NetworkDecl::On.into(),
                    ReachDecl::REGISTRIES => ReachDecl::Registries,
                    other => {
                        return Err(E::unknown_variant(other, &["off", "loopback", ReachDecl::REGISTRIES, "on"]));
                    }
                })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<ReachDecl, A::Error> {
                let hosts = Vec::<Pattern>::deserialize(de::value::SeqAccessDeserializer::new(list))?;
                if hosts.is_empty() || hosts.len() > MAX_LISTED {
                    return Err(de::Error::custom(format!("a list of hosts has 1 to {MAX_LISTED} of them")));
                }
                Ok(ReachDecl::Hosts(hosts))
            }
        }
        deserializer.deserialize_any(WordOrList)
    }
}

impl JsonSchema for ReachDecl {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ReachDecl".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let kind = generator.subschema_for::<NetworkDecl>();
        schemars::json_schema!({
            "description": "What sandboxed commands may reach.",
            "anyOf": [
                kind,
                {
                    "description": "The run's own network, and through a proxy the package registries of the tools that the workspace uses.",
                    "const": Self::REGISTRIES,
                },
                {
                    "description": "The run's own network, and through a proxy these hosts: names, `*.name`, or addresses.",
                    "type": "array",
                    "items": { "type": "string" },
                    "minItems": 1,
                    "maxItems": MAX_LISTED,
                },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_or_a_list() {
        let read = |text: &str| serde_yaml::from_str::<ReachDecl>(text);
        for (text, kind) in [("off", NetworkDecl::Off), ("loopback", NetworkDecl::Loopback), ("on", NetworkDecl::On)] {
            assert_eq!(read(text).unwrap(), ReachDecl::Kind(kind));
        }
        assert_eq!(read("registries").unwrap(), ReachDecl::Registries);
        let list = read("[a.org, '*.b.org']").unwrap();
        assert_eq!((list.kind(), list.is_listed()), (NetworkDecl::Loopback, true));
        let json = serde_json::to_string(&list).unwrap();
        assert_eq!(serde_json::from_str::<ReachDecl>(&json).unwrap(), list);
        for wrong in ["[]", "['*']", "['a.org:80']", "open"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
