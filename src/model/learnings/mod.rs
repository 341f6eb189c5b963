//! AGENTS.md: what each iteration learnt, rendered, parsed, compacted.
//!
//! Role: the entry of an iteration, the document of a run, and its block inside the user's file.
//! Not its role: files, deciding lanes, checking that links resolve.
//! Invariants: agent text never leaves its line (see `text`); what is parsed renders to the same bytes;
//! what a run writes is bounded (`bounded`), so are all blocks of a file together (`distil`), and what a capsule gets of
//! them (`earlier`); runs from before the bound
//! are compacted as they were (`compact`).

pub mod block;
mod bounded;
mod compact;
mod distil;
mod earlier;
mod parse;
mod render;
#[cfg(test)]
mod tests;
mod text;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::lane::Lane;
use super::northstar::Metric;
use super::rung::Rung;

pub use block::{BlockError, begin_marker, blocks, end_marker, extract, foreign, frame, splice};
pub use bounded::{ITEMS_BYTES, Memory, OWN_BYTES, Shortened, Shrunk};
pub use compact::{CompactionLog, MOST_TOKENS, WHOLE_ITERATIONS, compaction_log, compaction_point, estimate_tokens};
pub use distil::{Distilled, EARLIER_FILE_BYTES, distil};
pub use earlier::{CAPSULE_BYTES, EARLIER_BYTES, for_capsule};
pub use parse::{Compacted, Document, LearningsError, parse_document, parse_entry};
pub use render::{render_document, render_entry};
pub use text::{LONGEST_TEXT, flatten};

/// The file, in the workspace.
pub const FILE: &str = "AGENTS.md";
/// A larger one is not read.
pub const MAX_FILE: usize = 16 << 20;

/// Which seed a run follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
pub enum SpecVersion {
    /// No Northstar, no GLOW, no operator check.
    #[serde(rename = "1.0")]
    V1,
    #[default]
    #[serde(rename = "2.0")]
    V2,
}

impl fmt::Display for SpecVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1 => "1.0",
            Self::V2 => "2.0",
        })
    }
}

/// An artifact, named by path and content. Printed `path#sha256`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Link {
    pub path: String,
    pub sha256: Digest,
}

impl Link {
    /// Reads what `Display` prints.
    pub fn parse(text: &str) -> Option<Self> {
        text::parse_link(text)
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::link_text(self))
    }
}

/// One statement about an iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    pub lane: Lane,
    pub text: String,
    #[serde(default)]
    pub link: Option<Link>,
    /// The lane it was claimed for, when nothing backed it.
    #[serde(default)]
    pub demoted_from: Option<Lane>,
}

/// Where the residual goes. The first iteration is `Stable`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ResidualDirection {
    Improving,
    Stable,
    Diverging,
}

impl ResidualDirection {
    pub const ALL: [Self; 3] = [Self::Improving, Self::Stable, Self::Diverging];
}

impl fmt::Display for ResidualDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Improving => "IMPROVING",
            Self::Stable => "STABLE",
            Self::Diverging => "DIVERGING",
        })
    }
}

/// Where the Northstar distance goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum NorthstarDirection {
    Improving,
    Stable,
    Drifting,
}

impl NorthstarDirection {
    pub const ALL: [Self; 3] = [Self::Improving, Self::Stable, Self::Drifting];
}

impl fmt::Display for NorthstarDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Improving => "IMPROVING",
            Self::Stable => "STABLE",
            Self::Drifting => "DRIFTING",
        })
    }
}

/// The GLOW score as it stands in an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GlowLine {
    pub total: u32,
    pub g: u32,
    pub l: u32,
    pub o: u32,
    pub w: u32,
}

/// Section N.4.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measures {
    pub residual_metric: String,
    /// Decimal text; none when it could not be measured. Not measured is not zero.
    pub residual: Option<String>,
    pub residual_direction: ResidualDirection,
    pub certificate: String,
    pub glow: Option<GlowLine>,
    pub northstar_distance: Option<String>,
    pub northstar_direction: Option<NorthstarDirection>,
}

/// Section N.6, spec 2.0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operators {
    pub boundary: String,
    pub symmetry: String,
    pub serialization: Vec<String>,
    /// Lines that AGENTS.md grew by.
    pub compression: i64,
    pub irreducibility: u32,
    pub resolution: String,
}

/// What one iteration learnt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub iteration: u32,
    pub tried: Vec<String>,
    pub succeeded: Vec<Claim>,
    pub failed: Vec<Claim>,
    pub measures: Measures,
    pub open_questions: Vec<String>,
    /// None under spec 1.0.
    pub operators: Option<Operators>,
}

/// The metadata on top of a run's document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    pub goal: String,
    pub started: String,
    pub r_p: String,
    pub max_iterations: u32,
    pub rung_target: Rung,
    pub northstar_metrics: Vec<Metric>,
    pub seed_checksum: Option<u64>,
}

impl Header {
    /// As it is written down, and so as it is read back: texts made safe, and only what the spec has.
    pub fn sanitized(&self, spec: SpecVersion) -> Self {
        let metric = |metric: &Metric| Metric {
            id: flatten(&metric.id),
            metric: flatten(&metric.metric),
            current: flatten(&metric.current),
            target: flatten(&metric.target),
        };
        let (northstar_metrics, seed_checksum) = match spec {
            SpecVersion::V1 => (Vec::new(), None),
            SpecVersion::V2 => (self.northstar_metrics.iter().map(metric).collect(), self.seed_checksum),
        };
        Self {
            goal: flatten(&self.goal),
            started: flatten(&self.started),
            r_p: flatten(&self.r_p),
            max_iterations: self.max_iterations,
            rung_target: self.rung_target,
            northstar_metrics,
            seed_checksum,
        }
    }
}

impl Entry {
    /// As it is written down, and so as it is read back: texts made safe, and only what the spec has.
    pub fn sanitized(&self, spec: SpecVersion) -> Self {
        let items = |texts: &[String]| texts.iter().map(|one| text::item(one)).collect();
        let claims = |claims: &[Claim]| {
            claims.iter().map(|claim| Claim { text: text::claim_text(&claim.text), ..claim.clone() }).collect()
        };
        Self {
            iteration: self.iteration,
            tried: items(&self.tried),
            succeeded: claims(&self.succeeded),
            failed: claims(&self.failed),
            measures: self.measures.sanitized(spec),
            open_questions: items(&self.open_questions),
            operators: match spec {
                SpecVersion::V1 => None,
                SpecVersion::V2 => self.operators.as_ref().map(Operators::sanitized),
            },
        }
    }
}

impl Entry {
    /// As it stands in AGENTS.md: the operator check is in the evidence alone.
    pub fn without_operators(&self) -> Self {
        Self { operators: None, ..self.clone() }
    }
}

impl Measures {
    fn sanitized(&self, spec: SpecVersion) -> Self {
        let value =
            |value: &Option<String>| value.as_deref().map(flatten).filter(|value| !value.is_empty() && value != "null");
        let v2 = spec == SpecVersion::V2;
        Self {
            residual_metric: flatten(&self.residual_metric),
            residual: value(&self.residual),
            residual_direction: self.residual_direction,
            certificate: flatten(&self.certificate),
            glow: self.glow.filter(|_| v2),
            northstar_distance: value(&self.northstar_distance).filter(|_| v2),
            northstar_direction: self.northstar_direction.filter(|_| v2),
        }
    }
}

impl Operators {
    /// Does each of the six say something?
    pub fn is_complete(&self) -> bool {
        let texts = [&self.boundary, &self.symmetry, &self.resolution];
        !self.serialization.is_empty() && texts.iter().all(|text| !text.trim().is_empty())
    }

    fn sanitized(&self) -> Self {
        Self {
            boundary: flatten(&self.boundary),
            symmetry: flatten(&self.symmetry),
            serialization: self.serialization.iter().map(|path| flatten(path)).collect(),
            compression: self.compression,
            irreducibility: self.irreducibility,
            resolution: flatten(&self.resolution),
        }
    }
}
