//! The `value:` part of loop.yaml, with its defaults and bounds. All limits are hard: nothing in a run raises them.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{guard, tools};

/// The largest count that may be declared.
const MAX_COUNT: u64 = 1_000;
/// A day, in seconds.
const MAX_SECONDS: u64 = 86_400;

/// What is wrong: the key to point at, what, and what to do.
pub type Wrong = (&'static str, String, &'static str);

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
    /// Verification runs of one pause. How long a person is waited for is the run's own patience (`decisions`).
    pub max_pause_checks: u32,
    /// Quick value checks after steps that changed something. Default true.
    pub quick_vrc: bool,
    pub process_monitor: bool,
    pub plan_health: bool,
    pub coherence: bool,
    pub git: GitSettings,
    pub epics: EpicSettings,
    /// What must run for the work and its checks: started, supervised and ended by the engine. No agent changes these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<tools::Service>,
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
            quick_vrc: true,
            process_monitor: true,
            plan_health: true,
            coherence: true,
            git: GitSettings::default(),
            epics: EpicSettings::default(),
            services: Vec::new(),
        }
    }
}

impl ValueSettings {
    /// Bounds of every number, path and pattern.
    pub fn check(&self) -> Result<(), Wrong> {
        for (key, number, range) in self.numbers() {
            if !range.contains(&number) {
                let message = format!("`{key}` is {number}: give {} to {}", range.start(), range.end());
                return Err((key, message, ""));
            }
        }
        self.check_files()?;
        if let Some(bad) = self.acknowledge_soft.iter().find(|id| !guard::is_plain_id(id)) {
            return Err((
                "acknowledge_soft",
                format!("`{bad}` is not a valid issue id"),
                "use the ids of the written brief",
            ));
        }
        too_many("acknowledge_soft", self.acknowledge_soft.len())?;
        tools::service::check_all("services", &self.services).map_err(|why| ("services", why, ""))?;
        self.git.check()
    }

    fn numbers(&self) -> [(&'static str, u64, std::ops::RangeInclusive<u64>); 22] {
        let count = |key, number: u32| (key, u64::from(number), 1..=MAX_COUNT);
        let size = |key, number: usize, most| (key, u64::try_from(number).unwrap_or(u64::MAX), 1..=most);
        let seconds = |key, number| (key, number, 1..=MAX_SECONDS);
        let longest = u64::try_from(tools::MAX_TEXT).unwrap_or(u64::MAX);
        [
            ("auto_approve_prd", u64::from(self.auto_approve_prd), 0..=MAX_COUNT),
            count("max_steps", self.max_steps),
            count("steps_per_iteration", self.steps_per_iteration),
            count("max_task_retries", self.max_task_retries),
            count("max_fix_attempts", self.max_fix_attempts),
            count("max_no_progress", self.max_no_progress),
            count("max_course_corrections", self.max_course_corrections),
            count("max_exit_gate_attempts", self.max_exit_gate_attempts),
            count("max_qc_generations", self.max_qc_generations),
            count("max_rollbacks", self.max_rollbacks),
            count("max_fruitless_evals", self.max_fruitless_evals),
            count("generate_verifications_after", self.generate_verifications_after),
            count("critical_eval_interval", self.critical_eval_interval),
            count("plan_health_after_tasks", self.plan_health_after_tasks),
            count("coherence_interval", self.coherence_interval),
            size("max_task_description_chars", self.max_task_description_chars, longest),
            size("max_files_per_task", self.max_files_per_task, MAX_COUNT),
            size("max_unplanned_tasks", self.max_unplanned_tasks, MAX_COUNT),
            size("max_tasks", self.max_tasks, MAX_COUNT),
            seconds("script_seconds", self.script_seconds),
            seconds("sweep_seconds", self.sweep_seconds),
            count("max_pause_checks", self.max_pause_checks),
        ]
    }

    fn check_files(&self) -> Result<(), Wrong> {
        for (key, path) in [("vision", &self.vision), ("prd", &self.prd)] {
            if !tools::is_inside(path) || path.ends_with('/') || path.len() > 500 {
                let message = format!("`{key}` is `{path}`, which is not a file in the workspace");
                return Err((key, message, "give a relative path without `..`, e.g. docs/VISION.md"));
            }
        }
        let parts = |path: &'_ str| {
            let parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
            parts.map(str::to_owned).collect::<Vec<_>>()
        };
        if parts(&self.vision) == parts(&self.prd) {
            let message = "`vision` and `prd` are the same file".to_owned();
            return Err(("prd", message, "the vision says why, the PRD says what: give each its own file"));
        }
        Ok(())
    }
}

fn too_many(key: &'static str, items: usize) -> Result<(), Wrong> {
    if items > tools::MAX_LIST {
        return Err((key, format!("`{key}` has {items} entries: at most {}", tools::MAX_LIST), ""));
    }
    Ok(())
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

impl GitSettings {
    pub fn check(&self) -> Result<(), Wrong> {
        too_many("protected", self.protected.len())?;
        too_many("sensitive", self.sensitive.len())?;
        if self.protected.iter().any(|name| name.trim().is_empty()) {
            return Err(("protected", "`protected` has an empty branch name".to_owned(), ""));
        }
        match self.sensitive.iter().find(|glob| glob.is_empty() || globset::Glob::new(glob).is_err()) {
            Some(bad) => {
                Err(("sensitive", format!("`{bad}` is not a valid glob"), "for example [\".env\", \"*.pem\"]"))
            }
            None => Ok(()),
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
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EpicSettings {
    /// `auto`: by the size of the vision. Default off.
    pub mode: EpicMode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EpicMode {
    Auto,
    #[default]
    Off,
}

#[cfg(test)]
mod tests {
    use crate::model::loop_file::parse;

    fn wrong(value: &str) -> String {
        parse(&format!("playbook: value\ngoal: x\nvalue:\n{value}\n"), "loop.yaml").unwrap_err().to_string()
    }

    #[test]
    fn the_defaults_and_the_edges_are_fine() {
        super::ValueSettings::default().check().unwrap();
        for fine in ["max_steps: 1000", "script_seconds: 86400", "auto_approve_prd: 0"] {
            parse(&format!("playbook: value\nvalue: {{{fine}}}\n"), "loop.yaml").unwrap();
        }
    }

    #[test]
    fn what_is_out_of_bounds_has_its_line() {
        for (value, words) in [
            ("  max_steps: 0", "`max_steps` is 0: give 1 to 1000"),
            ("  steps_per_iteration: 1001", "1 to 1000"),
            ("  max_tasks: 0", "1 to 1000"),
            ("  max_task_description_chars: 4001", "1 to 4000"),
            ("  script_seconds: 0", "1 to 86400"),
            ("  sweep_seconds: 86401", "1 to 86400"),
            ("  vision: /etc/passwd", "not a file in the workspace"),
            ("  prd: a/../../b", "not a file in the workspace"),
            ("  prd: ''", "not a file in the workspace"),
            ("  prd: ./VISION.md", "are the same file"),
            ("  acknowledge_soft: ['a b']", "not a valid issue id"),
            ("  git: {sensitive: ['a[']}", "not a valid glob"),
            ("  git: {protected: ['']}", "empty branch name"),
            ("  git: {mode: sometimes}", "unknown value `sometimes`"),
            ("  max_stepz: 3", "max_stepz"),
        ] {
            let error = wrong(value);
            assert!(error.starts_with("loop.yaml:4") && error.contains(words), "{value}: {error}");
        }
    }

    #[test]
    fn the_section_belongs_to_its_playbook() {
        let error = parse("goal: x\nvalue: {max_steps: 3}\n", "loop.yaml").unwrap_err().to_string();
        assert!(error.starts_with("loop.yaml:2") && error.contains("playbook: value"), "{error}");
    }
}
