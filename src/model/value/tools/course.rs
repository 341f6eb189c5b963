//! Reports about where the work stands and where it should go: value checks, findings, causes, corrections.

use std::collections::{BTreeMap, BTreeSet};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::bounds::{self, Check, MAX_NAME, MAX_TEXT};
use crate::model::decimal::Exact;
use crate::model::value::settings::ValueSettings;
use crate::model::value::vrc::{Gap, GapSeverity, Recommendation};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RootCause {
    pub cause: String,
    /// Ids of the verifications that fail because of it.
    pub affected_tests: Vec<String>,
    /// The lowest is fixed first.
    pub priority: u32,
    pub fix_suggestion: String,
}

impl RootCause {
    fn check(&self, n: usize) -> Result<(), String> {
        bounds::needed(&format!("root_causes[{n}].cause"), &self.cause, MAX_TEXT)?;
        bounds::needed(&format!("root_causes[{n}].fix_suggestion"), &self.fix_suggestion, MAX_TEXT)?;
        bounds::names(&format!("root_causes[{n}].affected_tests"), &self.affected_tests)?;
        if self.affected_tests.is_empty() {
            return Err(format!("root_causes[{n}].affected_tests is empty: name the verifications that fail"));
        }
        Ok(())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Triage {
    pub root_causes: Vec<RootCause>,
}

impl Check for Triage {
    fn check(&self) -> Result<(), String> {
        if self.root_causes.is_empty() {
            return Err("`root_causes` is empty: something failed, so name at least one cause".to_owned());
        }
        bounds::count("root_causes", &self.root_causes)?;
        self.root_causes.iter().enumerate().try_for_each(|(n, cause)| cause.check(n))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VrcReport {
    /// How much of the promised value is there: a decimal from 0 to 1, as text: "0.85".
    #[serde(deserialize_with = "score")]
    #[schemars(schema_with = "score_schema")]
    pub value_score: Exact,
    pub deliverables_total: u32,
    /// Those that exist, work and have their value.
    pub deliverables_verified: u32,
    #[serde(default)]
    pub deliverables_blocked: u32,
    /// What is still between the present state and the vision.
    #[serde(default, deserialize_with = "gaps")]
    pub gaps: Vec<Gap>,
    pub recommendation: Recommendation,
    pub summary: String,
}

fn score_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": "^(0(\\.[0-9]{1,9})?|1(\\.0{1,9})?)$"})
}

/// A score as text, or as a number that is read through its text. Nothing is rescaled.
fn score<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Exact, D::Error> {
    let given = Value::deserialize(deserializer)?;
    let text = match &given {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => String::new(),
    };
    let score = Exact::parse(text.trim()).ok().filter(|score| *score <= Exact::from_u64(1));
    score.ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        D::Error::custom(format!("`value_score` is `{shown}`: give a decimal from 0 to 1 as text, e.g. \"0.85\""))
    })
}

/// Longest id of a gap: it becomes part of a task's id.
const MAX_GAP_ID: usize = 24;

/// A gap as an agent may write it.
#[derive(Deserialize)]
#[serde(untagged)]
enum GivenGap {
    Words(String),
    Whole(Value),
}

/// Gaps with plain ids, each its own. Reading what was written here gives the same again.
fn gaps<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Gap>, D::Error> {
    let given = Vec::<GivenGap>::deserialize(deserializer)?;
    let mut used = BTreeSet::new();
    let mut gaps = Vec::new();
    for (n, gap) in given.into_iter().enumerate() {
        let mut gap = match gap {
            GivenGap::Words(description) => {
                Gap { id: String::new(), description, severity: GapSeverity::Degraded, suggested_task: None }
            }
            GivenGap::Whole(value) => {
                Gap::deserialize(value).map_err(|e| D::Error::custom(format!("gaps[{n}]: {e}")))?
            }
        };
        gap.id = own_id(&gap.id, n + 1, &used);
        used.insert(gap.id.clone());
        gaps.push(gap);
    }
    Ok(gaps)
}

fn own_id(given: &str, number: usize, used: &BTreeSet<String>) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    let id: String = given.trim().chars().take(MAX_GAP_ID).map(plain).collect();
    let id = if id.chars().any(|c| c.is_ascii_alphanumeric()) { id } else { format!("gap-{number}") };
    if !used.contains(&id) {
        return id;
    }
    let short: String = id.chars().take(MAX_GAP_ID - 4).collect();
    // One of these is free: there is one more than there are ids in use.
    (2..used.len() + 3).map(|n| format!("{short}-{n}")).find(|id| !used.contains(id)).unwrap_or(id)
}

impl Check for VrcReport {
    fn check(&self) -> Result<(), String> {
        bounds::needed("summary", &self.summary, MAX_TEXT)?;
        let (total, verified, blocked) =
            (self.deliverables_total, self.deliverables_verified, self.deliverables_blocked);
        if verified.checked_add(blocked).is_none_or(|counted| counted > total) {
            return Err(format!("{verified} verified and {blocked} blocked deliverables are more than {total} in all"));
        }
        bounds::count("gaps", &self.gaps)?;
        for (n, gap) in self.gaps.iter().enumerate() {
            bounds::needed(&format!("gaps[{n}].description"), &gap.description, MAX_TEXT)?;
            bounds::optional(&format!("gaps[{n}].suggested_task"), gap.suggested_task.as_ref(), MAX_TEXT)?;
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CorrectionAction {
    Restructure,
    Descope,
    NewTasks,
    Rollback,
    RegenerateTests,
    Escalate,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CourseCorrection {
    /// What kind of correction this is; the tasks are changed with manage_task.
    pub action: CorrectionAction,
    pub reason: String,
    /// The label of a checkpoint, for `rollback`.
    #[serde(default)]
    pub rollback_to_checkpoint: Option<String>,
    #[serde(default)]
    pub tasks_to_restructure: Vec<String>,
}

impl Check for CourseCorrection {
    fn check(&self) -> Result<(), String> {
        bounds::needed("reason", &self.reason, MAX_TEXT)?;
        bounds::optional("rollback_to_checkpoint", self.rollback_to_checkpoint.as_ref(), MAX_NAME)?;
        bounds::names("tasks_to_restructure", &self.tasks_to_restructure)?;
        let label = self.rollback_to_checkpoint.as_deref().unwrap_or_default();
        if self.action == CorrectionAction::Rollback && label.trim().is_empty() {
            return Err("rollback needs `rollback_to_checkpoint`: the label of a checkpoint".to_owned());
        }
        Ok(())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvalFinding {
    /// critical and blocking findings become tasks by themselves.
    pub severity: GapSeverity,
    pub description: String,
    pub user_impact: String,
    #[serde(default)]
    pub suggested_fix: Option<String>,
    /// What you did and what you saw.
    #[serde(default)]
    pub evidence: Option<String>,
}

impl Check for EvalFinding {
    fn check(&self) -> Result<(), String> {
        bounds::needed("description", &self.description, MAX_TEXT)?;
        bounds::needed("user_impact", &self.user_impact, MAX_TEXT)?;
        bounds::optional("suggested_fix", self.suggested_fix.as_ref(), MAX_TEXT)?;
        bounds::optional("evidence", self.evidence.as_ref(), MAX_TEXT)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum StrategyAction {
    StrategyChange,
    Escalate,
    Continue,
}

/// What can be wrong with how the work goes.
const PATTERNS: [&str; 6] =
    ["plateau", "churn", "efficiency_collapse", "category_clustering", "budget_divergence", "file_hotspot"];

/// The dimension that is a limit.
const MAX_FIX_ATTEMPTS: &str = "max_fix_attempts";
/// Dimensions changed by one decision.
const MAX_CHANGES: usize = 2;
/// Steps that a change is given to show its effect.
const MIN_RE_EVALUATE: u32 = 3;

/// What can be changed, and to what.
const DIMENSIONS: [(&str, &[&str]); 7] = [
    ("test_approach", &["bash", "pytest", "playwright", "manual_verification", "none"]),
    ("fix_approach", &["targeted", "refactor", "rewrite", "root_cause_group"]),
    ("execution_order", &["dependency", "easy_wins", "high_value", "blocked_first"]),
    (MAX_FIX_ATTEMPTS, &["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]),
    (
        "research_trigger",
        &["after_1_failures", "after_2_failures", "after_3_failures", "after_5_failures", "proactive", "never"],
    ),
    ("scope_per_task", &["full", "mvp", "stub"]),
    ("error_triage", &["individual", "grouped", "escalate"]),
];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StrategyChange {
    #[schemars(schema_with = "patterns")]
    pub pattern: String,
    pub cause: String,
    /// The numbers that show it.
    #[serde(default)]
    pub evidence: Vec<String>,
    pub action: StrategyAction,
    pub rationale: String,
    /// Steps until it is looked at again.
    #[schemars(range(min = 3))]
    pub re_evaluate_after: u32,
    /// Dimension -> value; at most two, for STRATEGY_CHANGE only.
    #[serde(default, deserialize_with = "changes")]
    #[schemars(schema_with = "dimensions")]
    pub changes: BTreeMap<String, String>,
}

fn patterns(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": PATTERNS})
}

fn dimensions(_: &mut SchemaGenerator) -> Schema {
    let each = DIMENSIONS.iter().map(|(name, values)| ((*name).to_owned(), serde_json::json!({"enum": values})));
    let properties: serde_json::Map<String, Value> = each.collect();
    json_schema!({
        "type": "object", "properties": properties, "additionalProperties": false, "maxProperties": MAX_CHANGES,
    })
}

/// Values as text; `"max_fix_attempts": 3` is meant as "3".
fn changes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    let given = BTreeMap::<String, Value>::deserialize(deserializer)?;
    let text = |(name, value): (String, Value)| match value {
        Value::String(text) => Ok((name, text)),
        Value::Number(number) => Ok((name, number.to_string())),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            Err(D::Error::custom("`changes` holds texts: a dimension and its value"))
        }
    };
    given.into_iter().map(text).collect()
}

impl StrategyChange {
    /// No strategy raises a limit of the loop.
    pub fn within(&self, settings: &ValueSettings) -> Result<(), String> {
        let wanted = self.changes.get(MAX_FIX_ATTEMPTS).and_then(|text| text.parse::<u32>().ok());
        let most = settings.max_fix_attempts;
        match wanted {
            Some(wanted) if wanted > most => {
                Err(format!("`{MAX_FIX_ATTEMPTS}` may only be lowered: {wanted} is more than {most}"))
            }
            _ => Ok(()),
        }
    }
}

impl Check for StrategyChange {
    fn check(&self) -> Result<(), String> {
        bounds::one_of("pattern", &self.pattern, &PATTERNS)?;
        bounds::needed("cause", &self.cause, MAX_TEXT)?;
        bounds::texts("evidence", &self.evidence)?;
        bounds::needed("rationale", &self.rationale, MAX_TEXT)?;
        if self.re_evaluate_after < MIN_RE_EVALUATE {
            return Err(format!("`re_evaluate_after` is {}: give at least {MIN_RE_EVALUATE}", self.re_evaluate_after));
        }
        if self.changes.len() > MAX_CHANGES {
            return Err(format!("{} changes: change at most {MAX_CHANGES} dimensions", self.changes.len()));
        }
        for (name, value) in &self.changes {
            bounds::one_of("changes", name, &DIMENSIONS.map(|(name, _)| name))?;
            let allowed = DIMENSIONS.iter().find(|(known, _)| known == name).map_or(&[][..], |(_, values)| values);
            bounds::one_of(name, value, allowed)?;
        }
        match (self.action, self.changes.is_empty()) {
            (StrategyAction::StrategyChange, true) => {
                Err("STRATEGY_CHANGE needs `changes`: one or two dimensions with their new values".to_owned())
            }
            (StrategyAction::Escalate | StrategyAction::Continue, false) => {
                Err("`changes` go with STRATEGY_CHANGE only: leave them out".to_owned())
            }
            (StrategyAction::StrategyChange, false) | (StrategyAction::Escalate | StrategyAction::Continue, true) => {
                Ok(())
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Coherence {
    Healthy,
    Warning,
    Critical,
}

/// What holds a whole together.
const COHERENCE: [&str; 7] = [
    "structural_integrity",
    "interaction_coherence",
    "conceptual_integrity",
    "behavioral_consistency",
    "informational_flow",
    "resilience",
    "evolutionary_capacity",
];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoherenceFinding {
    #[schemars(schema_with = "coherence_dimensions")]
    pub dimension: String,
    pub severity: Coherence,
    pub description: String,
    #[serde(default)]
    pub suggested_action: Option<String>,
}

fn coherence_dimensions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": COHERENCE})
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoherenceReport {
    /// The worst of the dimensions, not an average.
    pub overall: Coherence,
    #[serde(default)]
    pub findings: Vec<CoherenceFinding>,
}

impl Check for CoherenceReport {
    fn check(&self) -> Result<(), String> {
        bounds::count("findings", &self.findings)?;
        for (n, finding) in self.findings.iter().enumerate() {
            bounds::one_of(&format!("findings[{n}].dimension"), &finding.dimension, &COHERENCE)?;
            bounds::needed(&format!("findings[{n}].description"), &finding.description, MAX_TEXT)?;
            bounds::optional(&format!("findings[{n}].suggested_action"), finding.suggested_action.as_ref(), MAX_TEXT)?;
        }
        Ok(())
    }
}
