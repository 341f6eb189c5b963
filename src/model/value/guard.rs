//! What an agent may do to the plan. Deterministic; a rejection is a text that goes back to the agent.
//!
//! Role: judge one wish against the plan as it is. Not its role: changing the plan (the fold does that), bounding
//! texts and lists (`tools`).
//!
//! Invariants: what is accepted leaves the plan with unique ids, dependencies that exist and make no circle, and
//! within its caps; a task that is done or descoped stays as it is.

mod words;

use std::collections::BTreeSet;

use super::plan::{Task, TaskSource, TaskStatus};
use super::settings::ValueSettings;
use super::tools::{ManageTask, TaskAction};

/// Longest id of a task.
pub const MAX_ID: usize = 40;

/// What the plan becomes: one task added, changed or taken away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mutation {
    Add(Box<Task>),
    Replace(Box<Task>),
    Remove(String),
}

/// Checks a wish of an agent against the plan. `source` and `step` come from the engine.
pub fn judge(
    tasks: &[Task],
    settings: &ValueSettings,
    source: TaskSource,
    step: u32,
    wish: &ManageTask,
) -> Result<Mutation, String> {
    // Tasks that the engine makes of findings come this way too, and not through a tool's own check.
    wish.check()?;
    let plan = Plan { tasks, settings, source };
    if source == TaskSource::Qc {
        return plan.check_anew(wish).map(|task| Mutation::Replace(Box::new(task)));
    }
    match wish.action {
        TaskAction::Add => plan.add(step, wish).map(|task| Mutation::Add(Box::new(task))),
        TaskAction::Modify => plan.modify(wish).map(|task| Mutation::Replace(Box::new(task))),
        TaskAction::Remove => plan.remove(wish).map(Mutation::Remove),
    }
}

/// Is this the form of a task's id?
pub fn is_plain_id(id: &str) -> bool {
    id.len() <= MAX_ID
        && id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

struct Plan<'a> {
    tasks: &'a [Task],
    settings: &'a ValueSettings,
    source: TaskSource,
}

impl Plan<'_> {
    fn add(&self, step: u32, wish: &ManageTask) -> Result<Task, String> {
        let id = wish.task_id.as_str();
        if !is_plain_id(id) {
            return Err(format!(
                "`{id}` is no task id: use letters, digits, `-`, `_` and `.`, at most {MAX_ID}, e.g. T1 or INT-2"
            ));
        }
        if let Some(known) = self.find(id) {
            return Err(format!(
                "the id {id} is in use ({}): modify that task, or choose another id",
                known.status.name()
            ));
        }
        let texts = Texts::of(wish);
        if let Some(missing) = texts.first_missing() {
            return Err(format!("`{missing}` is empty: a task needs description, value and acceptance"));
        }
        self.description(texts.description)?;
        self.duplicate(id, texts.description)?;
        self.caps()?;
        let dependencies = self.dependencies(id, wish.dependencies.as_deref().unwrap_or_default())?;
        let files_expected = wish.files_expected.clone().unwrap_or_default();
        self.files(&files_expected)?;
        let (status, blocked_reason) = standing(TaskStatus::Pending, None, wish)?;
        if status == TaskStatus::Descoped {
            return Err("a new task cannot be descoped: leave it out".to_owned());
        }
        Ok(Task {
            id: id.to_owned(),
            status,
            source: self.source,
            description: texts.description.to_owned(),
            value: texts.value.to_owned(),
            acceptance: texts.acceptance.to_owned(),
            prd_section: wish.prd_section.clone(),
            dependencies,
            phase: wish.phase.clone(),
            epic: None,
            files_expected,
            check: wish.check.clone(),
            blocked_reason,
            retries: 0,
            files_created: Vec::new(),
            files_modified: Vec::new(),
            notes: String::new(),
            health_checked: false,
            created_in: step,
            done_in: None,
            broken_by: None,
            dispute: None,
        })
    }

    fn modify(&self, wish: &ManageTask) -> Result<Task, String> {
        let mut task = self.existing(&wish.task_id)?.clone();
        match task.status {
            TaskStatus::Done => {
                return Err(format!("{} is done and stays as it is: add a new task for what is missing", task.id));
            }
            TaskStatus::Descoped => {
                return Err(format!("{} is descoped and stays so: add a new task if it is needed after all", task.id));
            }
            TaskStatus::Pending | TaskStatus::InProgress | TaskStatus::Blocked => {}
        }
        // A review of the plan sees to it that checks are right; whoever builds against them changes none.
        let kept = self.source != TaskSource::Gate && wish.check.is_some();
        let fixed = [("prd_section", wish.prd_section.is_some()), ("check", kept)];
        if let Some((field, _)) = fixed.into_iter().find(|(_, given)| *given) {
            return Err(format!(
                "`{field}` of a task is not changed: modify description, value, acceptance, dependencies, phase, \
                 status, blocked_reason or files_expected"
            ));
        }
        let before = task.clone();
        if let Some(check) = &wish.check {
            task.check = Some(check.clone());
        }
        if let Some(description) = &wish.description {
            self.description(description)?;
            task.description = description.trim().to_owned();
        }
        if let Some(value) = &wish.value {
            task.value = value.trim().to_owned();
        }
        if let Some(acceptance) = &wish.acceptance {
            task.acceptance = acceptance.trim().to_owned();
        }
        if let Some(wanted) = &wish.dependencies {
            task.dependencies = self.dependencies(&task.id, wanted)?;
        }
        if let Some(phase) = &wish.phase {
            task.phase = Some(phase.clone());
        }
        if let Some(files) = &wish.files_expected {
            self.files(files)?;
            task.files_expected.clone_from(files);
        }
        (task.status, task.blocked_reason) = standing(task.status, task.blocked_reason.as_deref(), wish)?;
        if task.status == TaskStatus::Descoped {
            self.may_drop(&task, "descope")?;
            if let Some(reason) = wish.reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty()) {
                task.notes = reason.to_owned();
            }
        }
        if task == before {
            return Err(format!("this changes nothing about {}: name the fields and their new values", task.id));
        }
        Ok(task)
    }

    /// The author of checks writes a check anew that is said to be wrong, and nothing else.
    fn check_anew(&self, wish: &ManageTask) -> Result<Task, String> {
        let others = ManageTask { check: None, ..wish.clone() } != ManageTask::modify(&wish.task_id);
        let Some(check) = wish.check.as_ref().filter(|_| !others) else {
            return Err("give `action` modify, `task_id` and `check`, and nothing else: you write checks".to_owned());
        };
        let task = self.existing(&wish.task_id)?;
        if !task.is_disputed() {
            return Err(format!("nobody says that the check of {} is wrong: leave it", task.id));
        }
        if task.check.as_ref() == Some(check) {
            return Err(format!("this is the check that {} has: leave it if it is right", task.id));
        }
        Ok(Task { check: Some(check.clone()), ..task.clone() })
    }

    fn remove(&self, wish: &ManageTask) -> Result<String, String> {
        let task = self.existing(&wish.task_id)?;
        let id = &task.id;
        match task.status {
            TaskStatus::Done | TaskStatus::InProgress | TaskStatus::Descoped => {
                return Err(format!("{id} is {} and cannot be removed", task.status.name()));
            }
            TaskStatus::Pending | TaskStatus::Blocked => {}
        }
        // While planning, what was planned may still be taken out.
        if !self.source.is_planned() {
            self.may_drop(task, "remove")?;
        }
        let dependents: Vec<&str> = self.tasks.iter().filter(|t| t.dependencies.contains(id)).map(|t| &*t.id).collect();
        if !dependents.is_empty() {
            return Err(format!("{} depend on {id}: change their dependencies first", dependents.join(", ")));
        }
        Ok(id.clone())
    }

    fn find(&self, id: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| task.id == id)
    }

    fn existing(&self, id: &str) -> Result<&Task, String> {
        self.find(id).ok_or_else(|| format!("there is no task `{id}`: {}", self.known()))
    }

    fn known(&self) -> String {
        if self.tasks.is_empty() {
            return "the plan has no task yet".to_owned();
        }
        let ids: Vec<&str> = self.tasks.iter().take(20).map(|task| task.id.as_str()).collect();
        let more = if self.tasks.len() > ids.len() { ", ..." } else { "" };
        format!("the plan has {}{more}", ids.join(", "))
    }

    fn description(&self, description: &str) -> Result<(), String> {
        if description.trim().is_empty() {
            return Err("`description` is empty: say what is to be built".to_owned());
        }
        let (chars, most) = (description.chars().count(), self.settings.max_task_description_chars);
        if chars > most {
            return Err(format!("`description` has {chars} characters, the limit is {most}: split the task"));
        }
        if let Some(phrase) = words::meta_instruction(description) {
            return Err(format!(
                "`description` says \"{phrase}\", which is an instruction about the plan: describe what is to be built"
            ));
        }
        if let Some(phrase) = words::oversized(description) {
            return Err(format!("`description` says \"{phrase}\", which is too large for one task: split it"));
        }
        Ok(())
    }

    fn duplicate(&self, id: &str, description: &str) -> Result<(), String> {
        let twin = self.tasks.iter().find(|task| task.is_open() && words::similar(description, &task.description));
        match twin {
            Some(twin) => Err(format!(
                "{id} says nearly the same as {}: modify {0} instead, or say how this one differs",
                twin.id
            )),
            None => Ok(()),
        }
    }

    fn caps(&self) -> Result<(), String> {
        let most = self.settings.max_tasks;
        if self.tasks.len() >= most {
            return Err(format!("the plan has {} tasks, the limit is {most}: modify a task instead", self.tasks.len()));
        }
        let unplanned = self.tasks.iter().filter(|task| task.is_open() && !task.source.is_planned()).count();
        let most = self.settings.max_unplanned_tasks;
        if !self.source.is_planned() && unplanned >= most {
            return Err(format!(
                "{unplanned} unfinished tasks were not in the plan, the limit is {most}: restructure instead of adding"
            ));
        }
        Ok(())
    }

    fn files(&self, files: &[String]) -> Result<(), String> {
        let most = self.settings.max_files_per_task;
        if files.len() > most {
            return Err(format!("`files_expected` has {} files, the limit is {most}: split the task", files.len()));
        }
        Ok(())
    }

    /// The wanted dependencies, each once.
    fn dependencies(&self, id: &str, wanted: &[String]) -> Result<Vec<String>, String> {
        let mut kept: Vec<String> = Vec::new();
        for wanted in wanted {
            if wanted == id {
                return Err(format!("{id} cannot depend on itself"));
            }
            if self.find(wanted).is_none() {
                return Err(format!("{id} depends on `{wanted}`, which does not exist: {}", self.known()));
            }
            if self.leads_to(wanted, id) {
                return Err(format!("{wanted} already depends on {id}: that would be a circle"));
            }
            if !kept.contains(wanted) {
                kept.push(wanted.clone());
            }
        }
        Ok(kept)
    }

    /// Does `from` depend on `to`, over however many tasks?
    fn leads_to(&self, from: &str, to: &str) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(id) = open.pop() {
            if id == to {
                return true;
            }
            if seen.insert(id)
                && let Some(task) = self.find(id)
            {
                open.extend(task.dependencies.iter().map(String::as_str));
            }
        }
        false
    }

    /// What was planned is only given up where the course is corrected.
    fn may_drop(&self, task: &Task, verb: &str) -> Result<(), String> {
        let corrects = matches!(self.source, TaskSource::CourseCorrection | TaskSource::ExitGate);
        if !task.source.is_planned() || corrects {
            return Ok(());
        }
        Err(format!("{} was planned: only a course correction or the exit gate may {verb} it", task.id))
    }
}

/// The three texts every task has.
struct Texts<'a> {
    description: &'a str,
    value: &'a str,
    acceptance: &'a str,
}

impl<'a> Texts<'a> {
    fn of(wish: &'a ManageTask) -> Self {
        let text = |field: &'a Option<String>| field.as_deref().unwrap_or_default().trim();
        Self { description: text(&wish.description), value: text(&wish.value), acceptance: text(&wish.acceptance) }
    }

    fn first_missing(&self) -> Option<&'static str> {
        let fields = [("description", self.description), ("value", self.value), ("acceptance", self.acceptance)];
        fields.into_iter().find(|(_, text)| text.is_empty()).map(|(name, _)| name)
    }
}

/// The status and reason that a wish leads to. A reason blocks; a status that is not blocked needs none.
fn standing(
    status: TaskStatus,
    reason: Option<&str>,
    wish: &ManageTask,
) -> Result<(TaskStatus, Option<String>), String> {
    let given = wish.blocked_reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty());
    match (wish.status, given) {
        (None, None) => Ok((status, reason.map(str::to_owned))),
        (None | Some(TaskStatus::Blocked), Some(given)) => Ok((TaskStatus::Blocked, Some(given.to_owned()))),
        (Some(TaskStatus::Blocked), None) => match reason {
            Some(reason) => Ok((TaskStatus::Blocked, Some(reason.to_owned()))),
            None => Err("a blocked task needs a `blocked_reason`".to_owned()),
        },
        (Some(wanted @ (TaskStatus::Pending | TaskStatus::Descoped)), None) => Ok((wanted, None)),
        (Some(wanted @ (TaskStatus::Pending | TaskStatus::Descoped)), Some(_)) => {
            Err(format!("a `blocked_reason` blocks, but `status` is {}: give one of the two", wanted.name()))
        }
        (Some(wanted @ (TaskStatus::InProgress | TaskStatus::Done)), _) => Err(format!(
            "`status` cannot be set to {}: the engine finds that out; use pending, blocked or descoped",
            wanted.name()
        )),
    }
}

#[cfg(test)]
mod tests;
