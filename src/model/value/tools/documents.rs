//! Reports about the vision, the PRD and the workspace, before the first iteration.

use std::collections::BTreeSet;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::bounds::{self, Check, MAX_DOCUMENT, MAX_NAME, MAX_NOTES, MAX_TEXT};
use super::service::{Service, check_all};
use crate::model::decision::Severity;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum CritiqueVerdict {
    Approve,
    Amend,
    Descope,
    Reject,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Critique {
    /// REJECT only what is impossible, never what is hard.
    pub verdict: CritiqueVerdict,
    pub reason: String,
    /// The changes that are needed, for AMEND.
    #[serde(default)]
    pub amendments: Vec<String>,
    /// What to cut, for DESCOPE.
    #[serde(default)]
    pub descope_suggestions: Vec<String>,
}

impl Check for Critique {
    fn check(&self) -> Result<(), String> {
        bounds::needed("reason", &self.reason, MAX_TEXT)?;
        bounds::texts("amendments", &self.amendments)?;
        bounds::texts("descope_suggestions", &self.descope_suggestions)?;
        match self.verdict {
            CritiqueVerdict::Amend if self.amendments.is_empty() => {
                Err("AMEND needs `amendments`: list each change to make".to_owned())
            }
            CritiqueVerdict::Descope if self.descope_suggestions.is_empty() => {
                Err("DESCOPE needs `descope_suggestions`: list what to cut".to_owned())
            }
            CritiqueVerdict::Approve | CritiqueVerdict::Amend | CritiqueVerdict::Descope | CritiqueVerdict::Reject => {
                Ok(())
            }
        }
    }
}

/// A whole new text of the PRD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrdProposal {
    /// The whole document, not a difference.
    pub text: String,
    /// What changed and why.
    pub note: String,
}

impl Check for PrdProposal {
    fn check(&self) -> Result<(), String> {
        if self.text.trim().is_empty() {
            return Err("`text` is empty: give the whole document".to_owned());
        }
        if self.text.len() > MAX_DOCUMENT {
            return Err(format!("`text` has {} bytes, the limit is {MAX_DOCUMENT}", self.text.len()));
        }
        bounds::bounded("note", &self.note, MAX_TEXT)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResearchReport {
    pub topic: String,
    /// What can be acted upon: what changed, what works now, ways around.
    pub findings: String,
    /// Addresses, or what else it rests on.
    pub sources: Vec<String>,
    /// Ways to reach the same outcome, with their trade-offs.
    #[serde(default)]
    pub alternatives: Vec<String>,
    /// Ids of the verifications it is for.
    #[serde(default)]
    pub affected_verifications: Vec<String>,
}

impl Check for ResearchReport {
    fn check(&self) -> Result<(), String> {
        bounds::needed("topic", &self.topic, MAX_TEXT)?;
        bounds::needed("findings", &self.findings, MAX_NOTES)?;
        bounds::texts("sources", &self.sources)?;
        bounds::texts("alternatives", &self.alternatives)?;
        bounds::names("affected_verifications", &self.affected_verifications)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VisionPass {
    /// What this pass found, for the passes after it; at most 8000 characters.
    pub notes: String,
}

impl Check for VisionPass {
    fn check(&self) -> Result<(), String> {
        bounds::needed("notes", &self.notes, MAX_NOTES)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum VisionVerdict {
    Pass,
    NeedsRevision,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Strength {
    Critical,
    Weak,
    Adequate,
    Strong,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dimensions {
    pub outcome_grounded: Strength,
    pub adoption_realistic: Strength,
    pub causally_sound: Strength,
    pub failure_aware: Strength,
}

impl Dimensions {
    /// The weakest of the four.
    pub fn weakest(&self) -> Strength {
        let most = self.outcome_grounded.min(self.adoption_realistic);
        most.min(self.causally_sound).min(self.failure_aware)
    }
}

/// HARD: impossible, contradictory, no_problem, all_activity, no_mechanism. The others are SOFT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IssueCategory {
    Impossible,
    Contradictory,
    NoProblem,
    AllActivity,
    NoMechanism,
    WeakEvidence,
    AdoptionRisk,
    GameableMetric,
    UnaddressedFailure,
    MissingMechanism,
}

impl IssueCategory {
    /// How grave an issue of this kind is. Being risky is never HARD.
    pub const fn severity(self) -> Severity {
        match self {
            Self::Impossible | Self::Contradictory | Self::NoProblem | Self::AllActivity | Self::NoMechanism => {
                Severity::Hard
            }
            Self::WeakEvidence
            | Self::AdoptionRisk
            | Self::GameableMetric
            | Self::UnaddressedFailure
            | Self::MissingMechanism => Severity::Soft,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VisionIssueReport {
    /// Its own among the issues, for example V1.
    pub id: String,
    #[schemars(schema_with = "severity")]
    pub severity: Severity,
    pub category: IssueCategory,
    pub description: String,
    /// The words of the vision, or the lack of them.
    pub evidence: String,
    #[serde(default)]
    pub suggested_revision: Option<String>,
}

fn severity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["HARD", "SOFT"]})
}

impl VisionIssueReport {
    fn check(&self, n: usize) -> Result<(), String> {
        if !crate::model::value::guard::is_plain_id(&self.id) {
            return Err(format!("issues[{n}].id is no id: use letters, digits, `-`, `_` and `.`, e.g. V{}", n + 1));
        }
        bounds::needed(&format!("issues[{n}].description"), &self.description, MAX_TEXT)?;
        bounds::needed(&format!("issues[{n}].evidence"), &self.evidence, MAX_TEXT)?;
        bounds::optional(&format!("issues[{n}].suggested_revision"), self.suggested_revision.as_ref(), MAX_TEXT)?;
        if self.severity != self.category.severity() {
            return Err(format!(
                "issue {}: HARD goes with impossible, contradictory, no_problem, all_activity or no_mechanism, and \
                 SOFT with the other categories",
                self.id
            ));
        }
        Ok(())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VisionValidation {
    /// PASS: no HARD issue, and every dimension ADEQUATE or STRONG.
    pub verdict: VisionVerdict,
    pub reason: String,
    pub dimensions: Dimensions,
    pub strengths: Vec<String>,
    pub issues: Vec<VisionIssueReport>,
    /// Evidence that should stop the loop later.
    #[serde(default)]
    pub kill_criteria: Vec<String>,
}

impl Check for VisionValidation {
    fn check(&self) -> Result<(), String> {
        bounds::needed("reason", &self.reason, MAX_TEXT)?;
        bounds::texts("strengths", &self.strengths)?;
        bounds::texts("kill_criteria", &self.kill_criteria)?;
        bounds::count("issues", &self.issues)?;
        let mut ids = BTreeSet::new();
        for (n, issue) in self.issues.iter().enumerate() {
            issue.check(n)?;
            if !ids.insert(&issue.id) {
                return Err(format!("the issue id {} is used twice: give each issue its own", issue.id));
            }
        }
        let hard = self.issues.iter().any(|issue| issue.severity == Severity::Hard);
        if self.verdict == VisionVerdict::Pass && (hard || self.dimensions.weakest() < Strength::Adequate) {
            return Err("PASS needs that no issue is HARD and that every dimension is ADEQUATE or STRONG: say \
                        NEEDS_REVISION, or correct the issues or dimensions"
                .to_owned());
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliverableType {
    #[default]
    Unknown,
    Software,
    Document,
    Data,
    Config,
    Hybrid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CodebaseState {
    Greenfield,
    Brownfield,
    NonCode,
}

/// How the whole can be looked at.
const HOLISTIC: [&str; 5] = ["browser", "cli", "api", "document_review", "data_validation"];

/// What was found out about the workspace: the ground truth of later steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Discovery {
    pub deliverable_type: DeliverableType,
    /// For example web_app, cli or report.
    pub project_type: String,
    pub codebase_state: CodebaseState,
    /// Outcomes that a user can see, not infrastructure.
    pub value_proofs: Vec<String>,
    /// Programs the work needs.
    #[serde(default)]
    pub tools_required: Vec<String>,
    /// Environment variables the work needs.
    #[serde(default)]
    pub env_vars_required: Vec<String>,
    /// What must run: with a `start` command the engine starts it, supervises it and ends it with the run.
    #[serde(default)]
    pub services: Vec<Service>,
    /// Where the program begins: files, commands, routes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entry_points: Vec<String>,
    /// Program and arguments by which a user starts the product.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_command: Option<Vec<String>>,
    /// Files that whoever works here has to know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key_files: Vec<String>,
    /// What the work needs of the network: ports it listens on, hosts and registries it reaches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<String>,
    #[serde(default)]
    pub test_frameworks: Vec<String>,
    #[serde(default)]
    #[schemars(schema_with = "holistic_type")]
    pub holistic_type: Option<String>,
    /// Only what a person must answer.
    #[serde(default)]
    pub unresolved_questions: Vec<String>,
}

fn holistic_type(_: &mut SchemaGenerator) -> Schema {
    let [browser, cli, api, document, data] = HOLISTIC;
    json_schema!({"type": ["string", "null"], "enum": [browser, cli, api, document, data, null]})
}

impl Check for Discovery {
    fn check(&self) -> Result<(), String> {
        bounds::needed("project_type", &self.project_type, MAX_NAME)?;
        bounds::texts("value_proofs", &self.value_proofs)?;
        bounds::names("tools_required", &self.tools_required)?;
        bounds::names("env_vars_required", &self.env_vars_required)?;
        bounds::names("test_frameworks", &self.test_frameworks)?;
        bounds::texts("unresolved_questions", &self.unresolved_questions)?;
        bounds::names("entry_points", &self.entry_points)?;
        bounds::names("key_files", &self.key_files)?;
        bounds::texts("network", &self.network)?;
        if let Some(argv) = &self.start_command {
            bounds::command("start_command", argv)?;
        }
        if let Some(kind) = &self.holistic_type {
            bounds::one_of("holistic_type", kind, &HOLISTIC)?;
        }
        bounds::count("services", &self.services)?;
        self.services.iter().enumerate().try_for_each(|(n, service)| service.check(&format!("services[{n}]")))?;
        if self.services.iter().any(Service::is_started) { check_all("services", &self.services) } else { Ok(()) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PreflightStatus {
    Ready,
    FixableIssues,
    BlockedExternal,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PreflightReport {
    pub status: PreflightStatus,
    /// What a person has to do, in order; may be empty when READY.
    pub instructions: String,
    /// Required names that turned out not to be needed after all.
    #[serde(default)]
    pub not_needed: Vec<String>,
}

impl Check for PreflightReport {
    fn check(&self) -> Result<(), String> {
        bounds::names("not_needed", &self.not_needed)?;
        match self.status {
            PreflightStatus::Ready => bounds::bounded("instructions", &self.instructions, MAX_TEXT),
            PreflightStatus::FixableIssues | PreflightStatus::BlockedExternal => {
                bounds::needed("instructions", &self.instructions, MAX_TEXT)
            }
        }
    }
}
