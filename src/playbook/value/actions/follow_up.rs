//! Tasks that the engine makes of what judges found.
//!
//! Role: pass each through the guardrails that hold for an agent's wishes, so that duplicates and caps hold here too.
//! Not its role: which findings deserve a task. Invariant: deciding again after a crash names the same tasks and
//! makes none twice; what is refused is named, never lost in silence.

use crate::machine::event::Event;
use crate::machine::run::RunState;
use crate::model::value::guard::{self, Mutation};
use crate::model::value::tools::{ManageTask, TaskAction};
use crate::model::value::{Gap, TaskSource};
use crate::playbook::value::event::TaskPut;
use crate::playbook::value::state::OpenStep;

use super::ask::cut;

/// The longest value and acceptance of a task that is made of a finding.
const MAX_TEXT: usize = 1_000;
/// Of an id that a judge chose, this much goes into the id of a task.
const MAX_NAME: usize = 20;

/// Tasks for one and the same finding: it may come back once. A judge that repeats itself makes no more work.
const MAX_SAME: usize = 2;

/// A task as a finding suggests it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub id: String,
    pub description: String,
    pub value: String,
    pub acceptance: String,
}

impl Wanted {
    /// For a gap; `None`: nothing is suggested. `nth` counts from 1.
    pub fn of_gap(prefix: &str, nth: usize, gap: &Gap) -> Option<Self> {
        let description = gap.suggested_task.clone().filter(|task| !task.trim().is_empty())?;
        let name = plain(&gap.id, nth);
        let acceptance = format!("Gap '{name}' resolved: {}", gap.description);
        Some(Self { id: format!("{prefix}-{name}"), description, value: gap.description.clone(), acceptance })
    }
}

/// What became of the suggestions.
#[derive(Debug, Default)]
pub struct FollowUp {
    pub events: Vec<Event>,
    pub made: Vec<String>,
    pub refused: Vec<String>,
}

impl FollowUp {
    /// For the detail of a step; empty when there was nothing.
    pub fn words(&self) -> String {
        let mut words = String::new();
        if !self.made.is_empty() {
            words.push_str(&format!("; new tasks: {}", self.made.join(", ")));
        }
        if !self.refused.is_empty() {
            words.push_str(&format!("; no task for: {}", self.refused.join("; ")));
        }
        words
    }
}

/// Makes tasks of suggestions, each judged against the plan with those before it.
pub fn tasks(run: &RunState, step: &OpenStep, source: TaskSource, wanted: &[Wanted], why: &str) -> FollowUp {
    let settings = run.value_settings();
    let mut plan = run.value().tasks.clone();
    let mut follow_up = FollowUp::default();
    for one in wanted {
        if follow_up.made.contains(&one.id) {
            follow_up.refused.push(format!("{} (named twice)", one.id));
            continue;
        }
        // Put before a crash: the same finding made the same task.
        if plan.iter().any(|task| task.id == one.id && task.created_in == step.number && task.source == source) {
            follow_up.made.push(one.id.clone());
            continue;
        }
        let description = cut(&one.description, settings.max_task_description_chars);
        let same = plan.iter().filter(|task| task.source == source && task.description == description);
        let same: Vec<&str> = same.map(|task| task.id.as_str()).collect();
        if same.len() >= MAX_SAME {
            follow_up.refused.push(format!("{} (the same as {})", one.id, same.join(", ")));
            continue;
        }
        let wish = ManageTask {
            action: TaskAction::Add,
            task_id: one.id.clone(),
            description: Some(description),
            value: Some(cut(if one.value.trim().is_empty() { &one.description } else { &one.value }, MAX_TEXT)),
            acceptance: Some(cut(&one.acceptance, MAX_TEXT)),
            prd_section: None,
            dependencies: None,
            phase: None,
            files_expected: None,
            check: None,
            status: None,
            blocked_reason: None,
            reason: None,
        };
        match guard::judge(&plan, settings, source, step.number, &wish) {
            Ok(Mutation::Add(mut task)) => {
                // Work that a slice of the vision brought about belongs to that slice.
                task.epic = run.value().current_epic().map(|epic| epic.epic);
                plan.push((*task).clone());
                follow_up.made.push(one.id.clone());
                follow_up.events.push(TaskPut { task, why: why.to_owned() }.into());
            }
            Ok(Mutation::Replace(_) | Mutation::Remove(_)) => {}
            Err(why) => follow_up.refused.push(format!("{} ({})", one.id, cut(&why, 160))),
        }
    }
    follow_up
}

/// A name that fits into a task's id.
fn plain(id: &str, nth: usize) -> String {
    let fits = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = id.trim().chars().filter(fits).take(MAX_NAME).collect();
    if name.is_empty() { format!("gap-{nth}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::value::GapSeverity;

    #[test]
    fn a_gap_makes_a_task_with_an_id_that_fits_whatever_the_judge_wrote() {
        let gap = |id: &str, task: Option<&str>| Gap {
            id: id.into(),
            description: "no help".into(),
            severity: GapSeverity::Critical,
            suggested_task: task.map(str::to_owned),
        };
        let id = |id: &str| Wanted::of_gap("EG-1", 3, &gap(id, Some("Write help."))).unwrap().id;
        assert_eq!(id("g1"), "EG-1-g1");
        assert_eq!(id("../g 1\u{1b}[2J"), "EG-1-..g12J");
        assert_eq!(id("  \n"), "EG-1-gap-3");
        assert_eq!(id(&"x".repeat(500)).len(), 25);
        assert_eq!(Wanted::of_gap("EG-1", 1, &gap("g1", None)), None);
        assert_eq!(Wanted::of_gap("EG-1", 1, &gap("g1", Some("  "))), None);
    }
}
