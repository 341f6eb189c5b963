//! Reports about the plan and its tasks: wishes, completion, what only a person can do, slices of the vision.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::bounds::{self, Check, MAX_NAME, MAX_TEXT};
use crate::model::value::plan::TaskStatus;

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
    /// For example T1, INT-2 or PREP-1.
    pub task_id: String,
    /// What to build. Needed to add.
    #[serde(default)]
    pub description: Option<String>,
    /// What the user has of it. Needed to add.
    #[serde(default)]
    pub value: Option<String>,
    /// How anyone can see that it is done. Needed to add.
    #[serde(default)]
    pub acceptance: Option<String>,
    /// Where the PRD asks for it. Only to add.
    #[serde(default)]
    pub prd_section: Option<String>,
    /// Ids of the tasks that come first.
    #[serde(default)]
    pub dependencies: Option<Vec<String>>,
    #[serde(default)]
    pub phase: Option<String>,
    /// Files to create or change, relative to the workspace.
    #[serde(default)]
    pub files_expected: Option<Vec<String>>,
    /// Program and arguments; exit code 0 once the task is done. To add, in a review of the plan, and to write a check
    /// anew that is said to be wrong.
    #[serde(default)]
    pub check: Option<Vec<String>>,
    #[serde(default)]
    #[schemars(schema_with = "wished_status")]
    pub status: Option<TaskStatus>,
    /// Blocks the task. `HUMAN_ACTION: ...` when only a person can unblock it.
    #[serde(default)]
    pub blocked_reason: Option<String>,
    /// Why, in a sentence. For what is descoped it stands in the delivery report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

fn wished_status(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "null"], "enum": ["pending", "blocked", "descoped", null]})
}

impl ManageTask {
    /// A change of a task that changes nothing yet.
    pub fn modify(task_id: &str) -> Self {
        Self {
            action: TaskAction::Modify,
            task_id: task_id.to_owned(),
            description: None,
            value: None,
            acceptance: None,
            prd_section: None,
            dependencies: None,
            phase: None,
            files_expected: None,
            check: None,
            status: None,
            blocked_reason: None,
            reason: None,
        }
    }

    /// The bounds of each field. Whether the wish fits the plan, `guard` says.
    pub fn check(&self) -> Result<(), String> {
        bounds::needed("task_id", &self.task_id, MAX_NAME)?;
        bounds::optional("description", self.description.as_ref(), MAX_TEXT)?;
        bounds::optional("value", self.value.as_ref(), MAX_TEXT)?;
        bounds::optional("acceptance", self.acceptance.as_ref(), MAX_TEXT)?;
        bounds::optional("prd_section", self.prd_section.as_ref(), MAX_NAME)?;
        bounds::optional("phase", self.phase.as_ref(), MAX_NAME)?;
        bounds::optional("blocked_reason", self.blocked_reason.as_ref(), MAX_TEXT)?;
        bounds::optional("reason", self.reason.as_ref(), MAX_TEXT)?;
        bounds::names("dependencies", self.dependencies.as_deref().unwrap_or_default())?;
        bounds::paths("files_expected", self.files_expected.as_deref().unwrap_or_default())?;
        self.check.as_ref().map_or(Ok(()), |argv| bounds::command("check", argv))
    }
}

impl Check for ManageTask {
    fn check(&self) -> Result<(), String> {
        self.check()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskComplete {
    pub task_id: String,
    /// Relative to the workspace.
    pub files_created: Vec<String>,
    /// Relative to the workspace.
    pub files_modified: Vec<String>,
    /// How you saw that the value is there.
    #[serde(default)]
    pub value_verified: Option<String>,
    #[serde(default, alias = "notes")]
    pub completion_notes: Option<String>,
}

impl Check for TaskComplete {
    fn check(&self) -> Result<(), String> {
        bounds::needed("task_id", &self.task_id, MAX_NAME)?;
        bounds::paths("files_created", &self.files_created)?;
        bounds::paths("files_modified", &self.files_modified)?;
        bounds::optional("value_verified", self.value_verified.as_ref(), MAX_TEXT)?;
        bounds::optional("completion_notes", self.completion_notes.as_ref(), MAX_TEXT)
    }
}

/// A check asks for the wrong thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WrongCheck {
    /// The id of the verification, or of the task whose check it is.
    pub check: String,
    /// What it asks for, what was promised instead, and where that stands.
    pub reason: String,
}

impl Check for WrongCheck {
    fn check(&self) -> Result<(), String> {
        bounds::needed("check", &self.check, MAX_NAME)?;
        bounds::needed("reason", &self.reason, MAX_TEXT)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HumanActionRequest {
    /// What a person has to do, in one sentence.
    pub action: String,
    /// Step by step, for someone who does not know the code.
    pub instructions: String,
    /// The task that waits for it; empty when none does.
    pub blocked_task_id: String,
    /// Program and arguments; exit code 0 once the action is done.
    #[serde(default, alias = "verification")]
    pub verification_command: Option<Vec<String>>,
}

impl Check for HumanActionRequest {
    fn check(&self) -> Result<(), String> {
        bounds::needed("action", &self.action, MAX_TEXT)?;
        bounds::needed("instructions", &self.instructions, MAX_TEXT)?;
        bounds::bounded("blocked_task_id", &self.blocked_task_id, MAX_NAME)?;
        self.verification_command.as_ref().map_or(Ok(()), |argv| bounds::command("verification_command", argv))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EpicPlan {
    pub title: String,
    /// What the user has once this slice is there.
    pub value_statement: String,
    pub deliverables: Vec<String>,
    pub completion_criteria: Vec<String>,
}

impl EpicPlan {
    fn check(&self, n: usize) -> Result<(), String> {
        bounds::needed(&format!("epics[{n}].title"), &self.title, MAX_NAME)?;
        bounds::needed(&format!("epics[{n}].value_statement"), &self.value_statement, MAX_TEXT)?;
        bounds::texts(&format!("epics[{n}].deliverables"), &self.deliverables)?;
        bounds::texts(&format!("epics[{n}].completion_criteria"), &self.completion_criteria)?;
        if self.deliverables.is_empty() || self.completion_criteria.is_empty() {
            return Err(format!("epics[{n}] needs at least one deliverable and one completion criterion"));
        }
        Ok(())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EpicDecomposition {
    /// 2 to 5 slices, each of value on its own, the foundation first; none if the vision is one piece.
    pub epics: Vec<EpicPlan>,
    /// More than 5 slices would be needed.
    #[serde(default)]
    pub vision_too_large: bool,
    pub rationale: String,
}

impl Check for EpicDecomposition {
    fn check(&self) -> Result<(), String> {
        bounds::needed("rationale", &self.rationale, MAX_TEXT)?;
        if (self.epics.len() == 1 && !self.vision_too_large) || self.epics.len() > 5 {
            return Err(format!(
                "{} epics: give 2 to 5, or none if the vision is one piece; say `vision_too_large` if 5 are not enough",
                self.epics.len()
            ));
        }
        self.epics.iter().enumerate().try_for_each(|(n, epic)| epic.check(n))
    }
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
    /// What the user can do now.
    pub delivered: Vec<String>,
    /// How much of the vision is there, in words.
    pub vision_progress: String,
    /// What should change in the slices to come.
    #[serde(default)]
    pub adjustments: Vec<String>,
    pub next_epic: String,
    pub confidence: Confidence,
    pub confidence_rationale: String,
}

impl Check for EpicSummary {
    fn check(&self) -> Result<(), String> {
        bounds::texts("delivered", &self.delivered)?;
        bounds::needed("vision_progress", &self.vision_progress, MAX_TEXT)?;
        bounds::texts("adjustments", &self.adjustments)?;
        bounds::bounded("next_epic", &self.next_epic, MAX_TEXT)?;
        bounds::needed("confidence_rationale", &self.confidence_rationale, MAX_TEXT)
    }
}
