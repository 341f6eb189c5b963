//! Names that must not be mixed up.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One execution of a loop. Time-sortable text (a ULID), safe as a file name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

impl RunId {
    /// Accepts only what the engine itself writes: 26 characters of Crockford base 32.
    pub fn parse(text: &str) -> Option<Self> {
        let ok = text.len() == 26
            && text.bytes().all(|b| b.is_ascii_digit() || (b.is_ascii_uppercase() && !b"ILOU".contains(&b)));
        ok.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for RunId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("`{text}` is not a run id (26 characters of base 32)"))
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who an agent call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Scout,
    Solver,
    Skeptic,
    Author,
    Critic,
    Builder,
    Qc,
    Fixer,
    Evaluator,
    Researcher,
    Reasoner,
    Classifier,
}

impl Role {
    pub const ALL: [Self; 12] = [
        Self::Scout,
        Self::Solver,
        Self::Skeptic,
        Self::Author,
        Self::Critic,
        Self::Builder,
        Self::Qc,
        Self::Fixer,
        Self::Evaluator,
        Self::Researcher,
        Self::Reasoner,
        Self::Classifier,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Scout => "scout",
            Self::Solver => "solver",
            Self::Skeptic => "skeptic",
            Self::Author => "author",
            Self::Critic => "critic",
            Self::Builder => "builder",
            Self::Qc => "qc",
            Self::Fixer => "fixer",
            Self::Evaluator => "evaluator",
            Self::Researcher => "researcher",
            Self::Reasoner => "reasoner",
            Self::Classifier => "classifier",
        }
    }

    /// May this role change the workspace?
    pub const fn may_write(self) -> bool {
        match self {
            Self::Solver | Self::Author | Self::Builder | Self::Qc | Self::Fixer => true,
            Self::Scout
            | Self::Skeptic
            | Self::Critic
            | Self::Evaluator
            | Self::Researcher
            | Self::Reasoner
            | Self::Classifier => false,
        }
    }

    /// Does this role judge? Nobody whispers to a judge.
    pub const fn judges(self) -> bool {
        matches!(self, Self::Skeptic | Self::Critic | Self::Evaluator)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
