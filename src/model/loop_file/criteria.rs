//! Acceptance criteria as loop.yaml writes them: plain text, or a mapping.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::criterion::{Criterion, Proof};

use super::DEFAULT_CHECK_SECONDS;
use crate::model::ids::Role;

/// One acceptance criterion: plain text, or a mapping.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum CriterionDecl {
    Text(String),
    Full(CriterionFull),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CriterionFull {
    pub id: Option<String>,
    pub text: String,
    /// Program and arguments, run by the engine; exit code 0 means met. Or a mapping with `command`.
    pub check: Option<CheckDecl>,
    pub judge: Option<Role>,
    pub timeout_seconds: Option<u64>,
    /// Globs of files that must not change in the iteration that turns this criterion green.
    pub protects: Option<Vec<String>>,
}

/// A check: its command alone, or with what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckDecl {
    pub command: Vec<String>,
    pub hidden: Option<String>,
    pub writes: Vec<String>,
}

/// The mapping form of a check.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CheckMap {
    /// Program and arguments.
    command: Vec<String>,
    /// A folder outside of the workspace: its files are put over the workspace while the engine runs the check, and no
    /// agent can read them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hidden: Option<String>,
    /// Globs of what the check may write into the workspace. All else that it writes is dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    writes: Vec<String>,
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum CheckForm {
    Command(Vec<String>),
    Map(CheckMap),
}

impl JsonSchema for CheckDecl {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CheckDecl".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        CheckForm::json_schema(generator)
    }
}

impl Serialize for CheckDecl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { command, hidden, writes } = self.clone();
        if hidden.is_none() && writes.is_empty() {
            return command.serialize(serializer);
        }
        CheckMap { command, hidden, writes }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for CheckDecl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListOrMap;
        impl<'de> Visitor<'de> for ListOrMap {
            type Value = CheckDecl;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a check: a list of program and arguments, or a mapping with `command`")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<CheckDecl, A::Error> {
                let command = Vec::deserialize(de::value::SeqAccessDeserializer::new(seq))?;
                Ok(CheckDecl { command, hidden: None, writes: Vec::new() })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CheckDecl, A::Error> {
                let CheckMap { command, hidden, writes } =
                    CheckMap::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(CheckDecl { command, hidden, writes })
            }
        }
        deserializer.deserialize_any(ListOrMap)
    }
}

// Not `untagged`: that would swallow the place and the wording of the real error.
impl<'de> Deserialize<'de> for CriterionDecl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrMap;
        impl<'de> Visitor<'de> for TextOrMap {
            type Value = CriterionDecl;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a criterion: text, or a mapping with `text` and `check` or `judge`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<CriterionDecl, E> {
                Ok(CriterionDecl::Text(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CriterionDecl, A::Error> {
                CriterionFull::deserialize(de::value::MapAccessDeserializer::new(map)).map(CriterionDecl::Full)
            }
        }
        deserializer.deserialize_any(TextOrMap)
    }
}

/// A criterion with its id and proof filled in.
pub(super) fn resolve(index: usize, decl: &CriterionDecl) -> Criterion {
    let default_id = || format!("c{}", index + 1);
    match decl {
        CriterionDecl::Text(text) => {
            let (id, text, protects) = (default_id(), text.clone(), Vec::new());
            Criterion { id, text, proof: Proof::Judged, protects, hidden: None, writes: Vec::new() }
        }
        CriterionDecl::Full(full) => {
            let timeout_seconds = full.timeout_seconds.unwrap_or(DEFAULT_CHECK_SECONDS);
            Criterion {
                id: full.id.clone().unwrap_or_else(default_id),
                text: full.text.clone(),
                proof: match &full.check {
                    Some(check) => Proof::Check { argv: check.command.clone(), timeout_seconds },
                    None => Proof::Judged,
                },
                protects: full.protects.clone().unwrap_or_default(),
                hidden: full.check.as_ref().and_then(|check| check.hidden.clone()),
                writes: full.check.as_ref().map(|check| check.writes.clone()).unwrap_or_default(),
            }
        }
    }
}
