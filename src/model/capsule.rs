//! The capsule (Context Normal Form): the only input an agent gets besides its role prompt.
//!
//! Canonical JSON with exactly the keys of the declared spec. It holds no timestamps, process ids,
//! host names or absolute paths, so that the same facts always give the same bytes.

use serde::{Deserialize, Serialize};

use super::canonical::{self, CanonicalError};
use super::digest::Digest;
use super::northstar::Metric;
use super::rung::Rung;

/// What an agent is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capsule {
    pub goal_statement: String,
    pub acceptance_criteria: Vec<String>,
    pub halting_certificates_applicable: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub northstar_metrics: Option<Vec<Metric>>,
    pub current_state_summary: StateSummary,
    pub accumulated_learnings: String,
    pub remaining_budget: RemainingBudget,
    pub artifact_links: Vec<CapsuleLink>,
    pub skill_pack: Vec<String>,
    pub subagent_role: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rung_target: Option<Rung>,
}

/// Where the loop stands, from artifacts only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateSummary {
    pub iteration_number: u32,
    pub residual_current: Option<String>,
    pub criteria_met_so_far: Vec<String>,
    pub criteria_still_open: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub glow_previous_iteration: Option<Option<u32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub northstar_distance_current: Option<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_questions_from_last_iteration: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemainingBudget {
    pub iterations_remaining: u64,
    pub tool_calls_remaining: u64,
    pub seconds_remaining: u64,
}

/// A link to an artifact; never its content.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CapsuleLink {
    pub path: String,
    pub sha256: Digest,
    pub role: String,
}

impl Capsule {
    /// The same for somebody who looks for the first time: what is wanted, and nothing of what went before. Whoever
    /// knows earlier scores and excuses judges those.
    pub fn for_fresh_eyes(self) -> Self {
        let summary = self.current_state_summary;
        Self {
            current_state_summary: StateSummary {
                iteration_number: summary.iteration_number,
                residual_current: None,
                criteria_met_so_far: Vec::new(),
                criteria_still_open: Vec::new(),
                glow_previous_iteration: summary.glow_previous_iteration.map(|_| None),
                northstar_distance_current: summary.northstar_distance_current,
                open_questions_from_last_iteration: summary.open_questions_from_last_iteration.map(|_| Vec::new()),
            },
            accumulated_learnings: String::new(),
            artifact_links: Vec::new(),
            ..self
        }
    }

    /// The bytes that are stored and sent.
    pub fn text(&self) -> Result<String, CanonicalError> {
        canonical::pretty(self)
    }

    /// The digest used for replay: without `seconds_remaining`, which no replay can reproduce.
    pub fn replay_digest(&self) -> Result<Digest, CanonicalError> {
        let mut value = serde_json::to_value(self).map_err(|e| CanonicalError::Unserializable(e.to_string()))?;
        if let Some(budget) = value.get_mut("remaining_budget").and_then(|b| b.as_object_mut()) {
            budget.remove("seconds_remaining");
        }
        canonical::compact(&value).map(|text| Digest::of(text.as_bytes()))
    }
}

/// Phrases that point at an earlier conversation instead of an artifact.
const BLEED_PHRASES: [&str; 2] = ["as we discussed", "remember that"];

/// What stands in place of a line that pointed at an earlier conversation.
pub const BLEED_REMOVED: &str = "[removed: points at an earlier discussion without an artifact link]";

/// Does this text lean on an earlier conversation? A line with a `path#sha256` link may.
pub fn bleeds(text: &str) -> bool {
    text.lines().any(line_bleeds)
}

fn line_bleeds(line: &str) -> bool {
    let lower = line.to_lowercase();
    BLEED_PHRASES.iter().any(|phrase| lower.contains(phrase)) && !has_artifact_link(line)
}

/// Replaces every bleeding line.
pub fn without_bleed(text: &str) -> String {
    if !bleeds(text) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if line_bleeds(line) {
            out.push_str(BLEED_REMOVED);
            out.push_str(if line.ends_with('\n') { "\n" } else { "" });
        } else {
            out.push_str(line);
        }
    }
    out
}

fn has_artifact_link(line: &str) -> bool {
    line.split('#').skip(1).any(|rest| {
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        digits == 64
    })
}

/// Scans every field except the verbatim goal and criteria.
pub fn capsule_bleeds(capsule: &Capsule) -> bool {
    let summary = &capsule.current_state_summary;
    let metrics = capsule.northstar_metrics.iter().flatten();
    let texts = std::iter::once(capsule.accumulated_learnings.as_str())
        .chain(summary.open_questions_from_last_iteration.iter().flatten().map(String::as_str))
        .chain(metrics.flat_map(|m| [m.metric.as_str(), m.current.as_str(), m.target.as_str()]))
        .chain(capsule.artifact_links.iter().map(|link| link.path.as_str()))
        .chain([capsule.subagent_role.as_str()]);
    texts.into_iter().any(bleeds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bleed_is_found_unless_linked() {
        assert!(bleeds("first\nAs We Discussed, use tabs"));
        assert!(bleeds("Remember that x"));
        let linked = format!("as we discussed in notes.md#{}", Digest::of(b"n"));
        assert!(!bleeds(&linked));
        assert!(!bleeds("nothing here"));
        assert_eq!(without_bleed("a\nremember that\nb"), format!("a\n{BLEED_REMOVED}\nb"));
    }
}
