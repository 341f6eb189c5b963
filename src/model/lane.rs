//! Lanes: how much a statement is worth.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The weight of a claim. `C` is never halt evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Lane {
    /// A fact backed by an artifact.
    A,
    /// An engineering observation backed by tool output.
    B,
    /// A hypothesis.
    C,
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
        })
    }
}
