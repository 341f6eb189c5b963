//! The structured tools of the value playbook: what agents hand in, as types with schemas.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::decimal::Exact;
use crate::model::decision::Severity;
use crate::model::purpose::Tool;

use super::vrc::{Gap, GapSeverity, Recommendation};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskAction {
    Add,
    Modify,
    Remove,
}

/// A wish to change the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ManageTask {
    pub action: TaskAction,
    pub task_id: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub value: Option<String>,
    #[serde(default)]
    pub acceptance: Option<String>,
    #[serde(default)]
    pub prd_section: Option<String>,
    #[serde(default)]
    pub dependencies: Option<Vec<String>>,
    #[serde(default)]
    pub phase: Option<String>,
    #[serde(default)]
    pub files_expected: Option<Vec<String>>,
    /// Program and arguments; exit code 0 once the task is done.
    #[serde(default)]
    pub check: Option<Vec<String>>,
    #[serde(default)]
    pub status: Option<super::plan::TaskStatus>,
    #[serde(default)]
    pub blocked_reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskComplete {
    pub task_id: String,
    pub files_created: Vec<String>,
    pub files_modified: Vec<String>,
    #[serde(default)]
    pub value_verified: Option<String>,
    #[serde(default)]
    pub completion_notes: Option<String>,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HealthType {
    Tcp,
    Http,
    Process,
    Command,
}

/// A service that the work needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Service {
    pub name: String,
    pub health_type: HealthType,
    #[serde(default)]
    pub port: Option<u16>,
    #[serde(default)]
    pub health_url: Option<String>,
    /// The name of a process, for `process`.
    #[serde(default)]
    pub process: Option<String>,
    /// Program and arguments, for `command`.
    #[serde(default)]
    pub command: Option<Vec<String>>,
}

/// What was found out about the workspace: the ground truth of later steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Discovery {
    pub deliverable_type: DeliverableType,
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
    #[serde(default)]
    pub services: Vec<Service>,
    #[serde(default)]
    pub test_frameworks: Vec<String>,
    /// browser, cli, api, document_review or data_validation.
    #[serde(default)]
    pub holistic_type: Option<String>,
    /// Only what a person must answer.
    #[serde(default)]
    pub unresolved_questions: Vec<String>,
}

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
    pub verdict: CritiqueVerdict,
    pub reason: String,
    #[serde(default)]
    pub amendments: Vec<String>,
    #[serde(default)]
    pub descope_suggestions: Vec<String>,
}

/// A whole new text of the PRD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrdProposal {
    pub text: String,
    pub note: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RootCause {
    pub cause: String,
    pub affected_tests: Vec<String>,
    pub priority: u32,
    pub fix_suggestion: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Triage {
    pub root_causes: Vec<RootCause>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HumanActionRequest {
    pub action: String,
    pub instructions: String,
    pub blocked_task_id: String,
    /// Program and arguments; exit code 0 once the action is done.
    #[serde(default)]
    pub verification_command: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VrcReport {
    /// A decimal from 0 to 1, as text: "0.85".
    #[schemars(with = "String")]
    pub value_score: Exact,
    pub deliverables_total: u32,
    pub deliverables_verified: u32,
    #[serde(default)]
    pub deliverables_blocked: u32,
    #[serde(default)]
    pub gaps: Vec<Gap>,
    pub recommendation: Recommendation,
    pub summary: String,
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
    pub action: CorrectionAction,
    pub reason: String,
    /// The label of a checkpoint, for `rollback`.
    #[serde(default)]
    pub rollback_to_checkpoint: Option<String>,
    #[serde(default)]
    pub tasks_to_restructure: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvalFinding {
    pub severity: GapSeverity,
    pub description: String,
    pub user_impact: String,
    #[serde(default)]
    pub suggested_fix: Option<String>,
    #[serde(default)]
    pub evidence: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResearchReport {
    pub topic: String,
    pub findings: String,
    pub sources: Vec<String>,
    /// Ways to reach the same outcome, with their trade-offs.
    #[serde(default)]
    pub alternatives: Vec<String>,
    #[serde(default)]
    pub affected_verifications: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VisionPass {
    /// What this pass found, for the passes after it.
    pub notes: String,
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VisionIssueReport {
    pub id: String,
    #[schemars(with = "String")]
    pub severity: Severity,
    pub category: IssueCategory,
    pub description: String,
    pub evidence: String,
    #[serde(default)]
    pub suggested_revision: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VisionValidation {
    pub verdict: VisionVerdict,
    pub reason: String,
    pub dimensions: Dimensions,
    pub strengths: Vec<String>,
    pub issues: Vec<VisionIssueReport>,
    /// Evidence that should stop the loop later.
    #[serde(default)]
    pub kill_criteria: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum StrategyAction {
    StrategyChange,
    Escalate,
    Continue,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StrategyChange {
    /// plateau, churn, efficiency_collapse, category_clustering, budget_divergence or file_hotspot.
    pub pattern: String,
    pub cause: String,
    #[serde(default)]
    pub evidence: Vec<String>,
    pub action: StrategyAction,
    pub rationale: String,
    pub re_evaluate_after: u32,
    /// Dimension -> value; at most two.
    #[serde(default)]
    pub changes: std::collections::BTreeMap<String, String>,
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
    /// What a person has to do, in order.
    pub instructions: String,
    /// Required names that turned out not to be needed after all.
    #[serde(default)]
    pub not_needed: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EpicPlan {
    pub title: String,
    pub value_statement: String,
    pub deliverables: Vec<String>,
    pub completion_criteria: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EpicDecomposition {
    pub epics: Vec<EpicPlan>,
    #[serde(default)]
    pub vision_too_large: bool,
    pub rationale: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Confidence {
    High,
    Medium,
    Low,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EpicSummary {
    pub delivered: Vec<String>,
    pub vision_progress: String,
    #[serde(default)]
    pub adjustments: Vec<String>,
    pub next_epic: String,
    pub confidence: Confidence,
    pub confidence_rationale: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Coherence {
    Healthy,
    Warning,
    Critical,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoherenceFinding {
    pub dimension: String,
    pub severity: Coherence,
    pub description: String,
    #[serde(default)]
    pub suggested_action: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoherenceReport {
    pub overall: Coherence,
    #[serde(default)]
    pub findings: Vec<CoherenceFinding>,
}

/// What one structured tool brought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "tool", content = "input", rename_all = "snake_case")]
pub enum Structured {
    ManageTask(ManageTask),
    ReportTaskComplete(TaskComplete),
    ReportDiscovery(Discovery),
    ReportCritique(Critique),
    ProposePrd(PrdProposal),
    ReportTriage(Triage),
    RequestHumanAction(HumanActionRequest),
    ReportVrc(VrcReport),
    ReportCourseCorrection(CourseCorrection),
    ReportEvalFinding(EvalFinding),
    ReportResearch(ResearchReport),
    ReportVisionPass(VisionPass),
    ReportVisionValidation(VisionValidation),
    ReportStrategyChange(StrategyChange),
    ReportPreflight(PreflightReport),
    ReportEpicDecomposition(EpicDecomposition),
    ReportEpicSummary(EpicSummary),
    ReportCoherence(CoherenceReport),
}

impl Structured {
    pub const fn tool(&self) -> Tool {
        match self {
            Self::ManageTask(_) => Tool::ManageTask,
            Self::ReportTaskComplete(_) => Tool::ReportTaskComplete,
            Self::ReportDiscovery(_) => Tool::ReportDiscovery,
            Self::ReportCritique(_) => Tool::ReportCritique,
            Self::ProposePrd(_) => Tool::ProposePrd,
            Self::ReportTriage(_) => Tool::ReportTriage,
            Self::RequestHumanAction(_) => Tool::RequestHumanAction,
            Self::ReportVrc(_) => Tool::ReportVrc,
            Self::ReportCourseCorrection(_) => Tool::ReportCourseCorrection,
            Self::ReportEvalFinding(_) => Tool::ReportEvalFinding,
            Self::ReportResearch(_) => Tool::ReportResearch,
            Self::ReportVisionPass(_) => Tool::ReportVisionPass,
            Self::ReportVisionValidation(_) => Tool::ReportVisionValidation,
            Self::ReportStrategyChange(_) => Tool::ReportStrategyChange,
            Self::ReportPreflight(_) => Tool::ReportPreflight,
            Self::ReportEpicDecomposition(_) => Tool::ReportEpicDecomposition,
            Self::ReportEpicSummary(_) => Tool::ReportEpicSummary,
            Self::ReportCoherence(_) => Tool::ReportCoherence,
        }
    }

    /// Reads what an agent handed in. The error text goes back to the agent. `None`: no tool of this playbook.
    pub fn parse(tool: Tool, input: &serde_json::Value) -> Option<Result<Self, String>> {
        fn read<T: serde::de::DeserializeOwned>(
            input: &serde_json::Value,
            make: impl Fn(T) -> Structured,
        ) -> Option<Result<Structured, String>> {
            let read = serde_json::from_value(input.clone()).map(make);
            Some(read.map_err(|e| format!("the report does not fit its schema: {e}")))
        }
        match tool {
            Tool::SubmitScoutReport | Tool::SubmitSolverReport | Tool::SubmitSkepticReport => None,
            Tool::ManageTask => read(input, Self::ManageTask),
            Tool::ReportTaskComplete => read(input, Self::ReportTaskComplete),
            Tool::ReportDiscovery => read(input, Self::ReportDiscovery),
            Tool::ReportCritique => read(input, Self::ReportCritique),
            Tool::ProposePrd => read(input, Self::ProposePrd),
            Tool::ReportTriage => read(input, Self::ReportTriage),
            Tool::RequestHumanAction => read(input, Self::RequestHumanAction),
            Tool::ReportVrc => read(input, Self::ReportVrc),
            Tool::ReportCourseCorrection => read(input, Self::ReportCourseCorrection),
            Tool::ReportEvalFinding => read(input, Self::ReportEvalFinding),
            Tool::ReportResearch => read(input, Self::ReportResearch),
            Tool::ReportVisionPass => read(input, Self::ReportVisionPass),
            Tool::ReportVisionValidation => read(input, Self::ReportVisionValidation),
            Tool::ReportStrategyChange => read(input, Self::ReportStrategyChange),
            Tool::ReportPreflight => read(input, Self::ReportPreflight),
            Tool::ReportEpicDecomposition => read(input, Self::ReportEpicDecomposition),
            Tool::ReportEpicSummary => read(input, Self::ReportEpicSummary),
            Tool::ReportCoherence => read(input, Self::ReportCoherence),
        }
    }
}

/// The JSON schema of a tool of this playbook.
pub fn schema(tool: Tool) -> Option<schemars::Schema> {
    Some(match tool {
        Tool::SubmitScoutReport | Tool::SubmitSolverReport | Tool::SubmitSkepticReport => return None,
        Tool::ManageTask => schemars::schema_for!(ManageTask),
        Tool::ReportTaskComplete => schemars::schema_for!(TaskComplete),
        Tool::ReportDiscovery => schemars::schema_for!(Discovery),
        Tool::ReportCritique => schemars::schema_for!(Critique),
        Tool::ProposePrd => schemars::schema_for!(PrdProposal),
        Tool::ReportTriage => schemars::schema_for!(Triage),
        Tool::RequestHumanAction => schemars::schema_for!(HumanActionRequest),
        Tool::ReportVrc => schemars::schema_for!(VrcReport),
        Tool::ReportCourseCorrection => schemars::schema_for!(CourseCorrection),
        Tool::ReportEvalFinding => schemars::schema_for!(EvalFinding),
        Tool::ReportResearch => schemars::schema_for!(ResearchReport),
        Tool::ReportVisionPass => schemars::schema_for!(VisionPass),
        Tool::ReportVisionValidation => schemars::schema_for!(VisionValidation),
        Tool::ReportStrategyChange => schemars::schema_for!(StrategyChange),
        Tool::ReportPreflight => schemars::schema_for!(PreflightReport),
        Tool::ReportEpicDecomposition => schemars::schema_for!(EpicDecomposition),
        Tool::ReportEpicSummary => schemars::schema_for!(EpicSummary),
        Tool::ReportCoherence => schemars::schema_for!(CoherenceReport),
    })
}
