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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Scout,
    Solver,
    Skeptic,
}

impl Role {
    pub const ALL: [Self; 3] = [Self::Scout, Self::Solver, Self::Skeptic];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Scout => "scout",
            Self::Solver => "solver",
            Self::Skeptic => "skeptic",
        }
    }

    /// May this role change the workspace?
    pub const fn may_write(self) -> bool {
        match self {
            Self::Solver => true,
            Self::Scout | Self::Skeptic => false,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
