//! The `value:` part of loop.yaml, with its defaults. All limits are hard: nothing in a run raises them.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `value:` as declared. What is left out has the default that is named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ValueSettings {
    /// The vision, relative to the workspace. Default VISION.md.
    pub vision: String,
    /// The requirements. Default PRD.md.
    pub prd: String,
    /// Automatic rounds of PRD refinement that need no person. Default 0.
    pub auto_approve_prd: u32,
    /// SOFT issues of the vision, by id, that are acknowledged beforehand.
    pub acknowledge_soft: BTreeSet<String>,
    /// Does a quality gate that fails stop the run? Default true.
    pub strict_gates: bool,
    /// Decision-engine steps of the whole run. Default 200.
    pub max_steps: u32,
    /// Steps of one iteration. Default 5.
    pub steps_per_iteration: u32,
    pub max_task_retries: u32,
    pub max_fix_attempts: u32,
    /// Steps without progress that count as being stuck. Default 10.
    pub max_no_progress: u32,
    pub max_course_corrections: u32,
    pub max_exit_gate_attempts: u32,
    /// Times the checks may be made or made anew. Default 3.
    pub max_qc_generations: u32,
    pub max_rollbacks: u32,
    /// Evaluations in a row that find nothing and still do not lead out. Default 3.
    pub max_fruitless_evals: u32,
    /// Done tasks before checks are written. Default 1.
    pub generate_verifications_after: u32,
    /// Tasks between two evaluations. Default 3.
    pub critical_eval_interval: u32,
    pub plan_health_after_tasks: u32,
    pub coherence_interval: u32,
    pub max_task_description_chars: usize,
    pub max_files_per_task: usize,
    /// Unfinished tasks that were not in the plan. Default 15.
    pub max_unplanned_tasks: usize,
    pub max_tasks: usize,
    /// Seconds one script may take. Default 60.
    pub script_seconds: u64,
    /// Seconds a sweep of all scripts may take. Default 120.
    pub sweep_seconds: u64,
    /// Verification runs of one pause, and how long a person is waited for (minutes; 0: the run's own patience).
    pub max_pause_checks: u32,
    pub pause_timeout_minutes: u64,
    /// Quick value checks after steps that changed something. Default true.
    pub quick_vrc: bool,
    pub process_monitor: bool,
    pub plan_health: bool,
    pub coherence: bool,
    pub git: GitSettings,
    pub epics: EpicSettings,
}

impl Default for ValueSettings {
    fn default() -> Self {
        Self {
            vision: "VISION.md".to_owned(),
            prd: "PRD.md".to_owned(),
            auto_approve_prd: 0,
            acknowledge_soft: BTreeSet::new(),
            strict_gates: true,
            max_steps: 200,
            steps_per_iteration: 5,
            max_task_retries: 3,
            max_fix_attempts: 5,
            max_no_progress: 10,
            max_course_corrections: 5,
            max_exit_gate_attempts: 3,
            max_qc_generations: 3,
            max_rollbacks: 3,
            max_fruitless_evals: 3,
            generate_verifications_after: 1,
            critical_eval_interval: 3,
            plan_health_after_tasks: 5,
            coherence_interval: 5,
            max_task_description_chars: 600,
            max_files_per_task: 5,
            max_unplanned_tasks: 15,
            max_tasks: 100,
            script_seconds: 60,
            sweep_seconds: 120,
            max_pause_checks: 10,
            pause_timeout_minutes: 0,
            quick_vrc: true,
            process_monitor: true,
            plan_health: true,
            coherence: true,
            git: GitSettings::default(),
            epics: EpicSettings::default(),
        }
    }
}

/// How the run treats the workspace's repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GitSettings {
    /// `branch` (the default where there is a repository): work on a branch of the run's own. `off`: no commits.
    pub mode: GitMode,
    /// Start although the tree has changes of your own; they are never committed. Default false.
    pub allow_dirty: bool,
    /// Branches that are never committed to.
    pub protected: Vec<String>,
    /// Names that are never committed.
    pub sensitive: Vec<String>,
}

impl Default for GitSettings {
    fn default() -> Self {
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
        Self {
            mode: GitMode::Auto,
            allow_dirty: false,
            protected: names(&["main", "master", "develop", "production", "staging"]),
            sensitive: names(&[
                ".env",
                ".env.*",
                "*.pem",
                "*.key",
                "*secret*",
                "*credential*",
                "*password*",
                "*.p12",
                "*.pfx",
            ]),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GitMode {
    /// `branch` where there is a repository, else `off`.
    #[default]
    Auto,
    Branch,
    Off,
}

/// Large visions in slices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EpicSettings {
    /// `auto`: by the size of the vision. Default off.
    pub mode: EpicMode,
    /// Minutes until a feedback checkpoint goes on by itself; 0 waits. Default 30.
    pub feedback_timeout_minutes: u64,
}

impl Default for EpicSettings {
    fn default() -> Self {
        Self { mode: EpicMode::Off, feedback_timeout_minutes: 30 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EpicMode {
    Auto,
    #[default]
    Off,
}
