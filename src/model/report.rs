//! The typed outputs of the roles. An agent's prose counts for nothing; these count.
//!
//! JSON schemas for the model are generated from these types, so text and code cannot drift apart.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::critique::{AuthorReport, Critique};
use super::lane::Lane;
use super::purpose::Tool;
use super::value::tools::{self, Structured};

/// A list from an agent is cut here; more is noise.
pub const MAX_ITEMS: usize = 50;

/// What to try in this iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScoutReport {
    /// What this iteration should try, in order.
    pub plan: Vec<String>,
    /// Commands that reproduce what is wrong.
    #[serde(default)]
    pub repro_commands: Vec<String>,
    /// Failing tests or errors, as observed.
    #[serde(default)]
    pub failing_tests_or_errors: Vec<String>,
    /// Files to look at, most suspect first.
    #[serde(default)]
    pub suspect_files_ranked: Vec<String>,
    /// What is needed and was not found.
    #[serde(default)]
    pub missing_assets: Vec<String>,
    /// A smaller goal of this iteration that a command can check.
    #[serde(default)]
    pub sub_goal: Option<SubGoal>,
}

/// A smaller goal with a check the engine runs before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubGoal {
    pub text: String,
    /// Program and arguments; exit code 0 means done.
    pub check: Vec<String>,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SolverReport {
    /// What the change is for, in one sentence.
    pub intent: String,
    /// What was tried, one action per line.
    pub actions: Vec<String>,
    #[serde(default)]
    pub files_touched: Vec<String>,
    #[serde(default)]
    pub expected_effect: String,
    #[serde(default)]
    pub risk_notes: Vec<String>,
}

/// What holds up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkepticReport {
    pub status: Verdict,
    /// The goal in your own words; only where you are asked to restate it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restated: Option<String>,
    /// What was achieved. Lane A needs the path of an artifact.
    pub succeeded: Vec<ReportedClaim>,
    /// What did not work, or broke.
    pub failed: Vec<ReportedClaim>,
    /// One entry for each criterion you were asked to judge.
    #[serde(default)]
    pub judged: Vec<Judgement>,
    /// Questions the next iteration should answer.
    pub open_questions: Vec<String>,
}

/// The skeptic's own word. The engine records it and decides without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Verdict {
    Pass,
    Fail,
    NeedInfo,
    Blocked,
}

/// A claim as the agent makes it; the engine resolves or demotes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportedClaim {
    pub lane: Lane,
    pub text: String,
    /// The workspace path of the artifact that backs the claim.
    #[serde(default)]
    pub artifact: Option<String>,
}

/// A judged criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Judgement {
    /// The id of the criterion.
    pub criterion: String,
    pub met: bool,
    /// The workspace path of the artifact that shows it.
    #[serde(default)]
    pub artifact: Option<String>,
    pub why: String,
}

/// Any role's report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", content = "report", rename_all = "lowercase")]
pub enum Report {
    Scout(ScoutReport),
    Solver(SolverReport),
    Skeptic(SkepticReport),
    Author(AuthorReport),
    Critic(Critique),
    /// What a structured tool of the value playbook brought.
    Value(Structured),
}

impl Report {
    /// Reads what an agent handed to its report tool. The error text goes back to the agent.
    pub fn parse(tool: Tool, input: &serde_json::Value) -> Result<Self, String> {
        let wrong = |e: serde_json::Error| format!("the report does not fit its schema: {e}");
        if let Some(structured) = Structured::parse(tool, input) {
            return structured.map(Self::Value);
        }
        let report = match tool {
            Tool::SubmitScoutReport => Self::Scout(serde_json::from_value(input.clone()).map_err(wrong)?),
            Tool::SubmitSolverReport => Self::Solver(serde_json::from_value(input.clone()).map_err(wrong)?),
            Tool::SubmitAuthorReport => Self::Author(serde_json::from_value(input.clone()).map_err(wrong)?),
            Tool::SubmitCritique => Self::Critic(serde_json::from_value(input.clone()).map_err(wrong)?),
            _ => Self::Skeptic(serde_json::from_value(input.clone()).map_err(wrong)?),
        };
        report.check()?;
        Ok(report)
    }

    fn check(&self) -> Result<(), String> {
        let longest = match self {
            Self::Scout(r) => r
                .plan
                .len()
                .max(r.repro_commands.len())
                .max(r.failing_tests_or_errors.len())
                .max(r.suspect_files_ranked.len())
                .max(r.missing_assets.len()),
            Self::Solver(r) => r.actions.len().max(r.files_touched.len()).max(r.risk_notes.len()),
            Self::Skeptic(r) => r.succeeded.len().max(r.failed.len()).max(r.judged.len()).max(r.open_questions.len()),
            Self::Author(r) => r.actions.len().max(r.files_touched.len()).max(r.learnings.len()),
            Self::Critic(r) => r.judged.len().max(r.assumptions.len()),
            Self::Value(_) => 0,
        };
        if longest > MAX_ITEMS {
            return Err(format!("a list has {longest} items: keep each list to {MAX_ITEMS}"));
        }
        match self {
            Self::Scout(r) if r.plan.is_empty() => Err("`plan` is empty: say what this iteration should try".into()),
            Self::Scout(ScoutReport { sub_goal: Some(goal), .. }) if goal.check.is_empty() => {
                Err("`sub_goal.check` is empty: give a command, or leave sub_goal out".into())
            }
            Self::Solver(r) if r.actions.is_empty() => Err("`actions` is empty: say what was tried".into()),
            Self::Author(r) => r.check(),
            Self::Critic(r) => r.check(),
            _ => Ok(()),
        }
    }

    /// Is the call over once this is accepted?
    pub fn ends_call(&self) -> bool {
        match self {
            Self::Scout(_) | Self::Solver(_) | Self::Skeptic(_) | Self::Author(_) | Self::Critic(_) => true,
            Self::Value(report) => report.tool().ends_call(),
        }
    }

    /// Paths the report leans on; the engine resolves them to digests.
    pub fn cited_paths(&self) -> Vec<&str> {
        match self {
            Self::Scout(_) | Self::Solver(_) | Self::Author(_) | Self::Value(_) => Vec::new(),
            Self::Critic(r) => r.judged.iter().filter_map(|judgement| judgement.artifact.as_deref()).collect(),
            Self::Skeptic(r) => {
                let claims = r.succeeded.iter().chain(&r.failed).filter_map(|c| c.artifact.as_deref());
                claims.chain(r.judged.iter().filter_map(|j| j.artifact.as_deref())).collect()
            }
        }
    }
}

/// The JSON schema of a structured tool.
pub fn schema(tool: Tool) -> serde_json::Value {
    let schema = tools::schema(tool).unwrap_or_else(|| match tool {
        Tool::SubmitScoutReport => schemars::schema_for!(ScoutReport),
        Tool::SubmitSolverReport => schemars::schema_for!(SolverReport),
        Tool::SubmitAuthorReport => schemars::schema_for!(AuthorReport),
        Tool::SubmitCritique => schemars::schema_for!(Critique),
        _ => schemars::schema_for!(SkepticReport),
    });
    let mut value = schema.to_value();
    if let Some(object) = value.as_object_mut() {
        object.remove("$schema");
        object.remove("title");
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_report_that_does_not_fit_says_why() {
        let error = Report::parse(Tool::SubmitScoutReport, &json!({"plan": ["x"], "plann": []})).unwrap_err();
        assert!(error.contains("plann"), "{error}");
        let error = Report::parse(Tool::SubmitScoutReport, &json!({"plan": []})).unwrap_err();
        assert!(error.contains("`plan` is empty"), "{error}");
        let many: Vec<String> = (0..51).map(|i| i.to_string()).collect();
        let error = Report::parse(Tool::SubmitSolverReport, &json!({"intent": "i", "actions": many})).unwrap_err();
        assert!(error.contains("51 items"), "{error}");
    }

    #[test]
    fn schemas_name_every_required_field() {
        let required = schema(Tool::SubmitSkepticReport)["required"].to_string();
        for field in ["status", "succeeded", "failed", "open_questions"] {
            assert!(required.contains(field), "{required}");
        }
    }
}
