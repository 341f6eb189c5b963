//! Acceptance criteria as loop.yaml writes them: plain text, or a mapping.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

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
    /// Program and arguments, run by the engine; exit code 0 means met.
    pub check: Option<Vec<String>>,
    pub judge: Option<Role>,
    pub timeout_seconds: Option<u64>,
    /// Globs of files that must not change in the iteration that turns this criterion green.
    pub protects: Option<Vec<String>>,
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
            Criterion { id: default_id(), text: text.clone(), proof: Proof::Judged, protects: Vec::new() }
        }
        CriterionDecl::Full(full) => {
            let timeout_seconds = full.timeout_seconds.unwrap_or(DEFAULT_CHECK_SECONDS);
            Criterion {
                id: full.id.clone().unwrap_or_else(default_id),
                text: full.text.clone(),
                proof: match &full.check {
                    Some(argv) => Proof::Check { argv: argv.clone(), timeout_seconds },
                    None => Proof::Judged,
                },
                protects: full.protects.clone().unwrap_or_default(),
            }
        }
    }
}
