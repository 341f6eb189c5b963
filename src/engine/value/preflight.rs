//! What the work needs and this machine lacks: programs and variables.
//!
//! Role: look. Not its role: whether the run may begin without them (the gate decides).
//! Invariants: names only, never a value; lists are bounded; a variable counts only if tools will see it.

use crate::machine::run::RunState;
use crate::model::learnings::flatten;
use crate::model::secret::looks_secret;
use crate::model::value::tools::Discovery;
use crate::playbook::value::event::PreflightChecked;
use crate::playbook::value::services;
use crate::tool::lookup;
use crate::tool::process;

/// Names of one kind that are looked at.
const MAX_NAMES: usize = 100;
const MAX_NAME: usize = 100;
/// A key with fewer characters is none.
const MIN_KEY: usize = 10;
/// What stands where somebody should have put something.
const PLACEHOLDERS: [&str; 4] = ["your-", "placeholder", "changeme", "xxx"];

/// Nothing is known about the work, so nothing is missing.
pub(super) const fn nothing() -> PreflightChecked {
    PreflightChecked {
        missing_tools: Vec::new(),
        missing_variables: Vec::new(),
        placeholder_variables: Vec::new(),
        services: Vec::new(),
    }
}

/// What keeps declared services from being started at all. What is still to be built is no obstacle.
pub(super) fn services(run: &RunState, not_needed: &[String]) -> Vec<String> {
    let mut problems = Vec::new();
    for service in services::started(run) {
        let name = &service.name;
        let program = service.start.iter().flatten().next().filter(|program| !program.contains('/'));
        if let Some(program) = program.filter(|program| lookup::find(program).is_err() && !not_needed.contains(program))
        {
            problems.push(format!("install `{program}`, which starts the service {name}"));
        }
        let is_set = |variable: &String| std::env::var_os(variable).is_some_and(|value| !value.is_empty());
        for variable in service.env.iter().filter(|one| !is_set(one) && !not_needed.contains(one)) {
            problems.push(format!("set `{variable}`, which the service {name} needs"));
        }
    }
    if services::started(run).next().is_some() {
        problems.extend(services::no_network(run).map(str::to_owned));
    }
    problems.truncate(MAX_NAMES);
    problems
}

pub(super) fn check(context: &Discovery, not_needed: &[String]) -> PreflightChecked {
    let variable = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    check_with(context, not_needed, |name| lookup::find(name).is_ok(), variable)
}

fn check_with(
    context: &Discovery,
    not_needed: &[String],
    installed: impl Fn(&str) -> bool,
    variable: impl Fn(&str) -> Option<String>,
) -> PreflightChecked {
    let mut checked = nothing();
    for name in needed(&context.tools_required, not_needed) {
        if !installed(&name) {
            checked.missing_tools.push(name);
        }
    }
    for name in needed(&context.env_vars_required, not_needed) {
        match variable(&name).filter(|value| !value.trim().is_empty()) {
            None => checked.missing_variables.push(name),
            // A key of ours that no tool gets does not help the work.
            Some(_) if !process::is_passed_on(&name) => {
                checked.missing_variables.push(format!("{name} (set here, but not passed on to tools)"));
            }
            Some(value) if is_placeholder(&name, &value) => checked.placeholder_variables.push(name),
            Some(_) => {}
        }
    }
    checked
}

/// The names that are still needed, each once, in their order. Notes after a name do not count.
fn needed(names: &[String], not_needed: &[String]) -> Vec<String> {
    let first_word = |text: &str| flatten(text).split_whitespace().next().unwrap_or_default().to_owned();
    let not_needed: Vec<String> = not_needed.iter().map(|name| first_word(name)).collect();
    let mut kept: Vec<String> = Vec::new();
    for name in names.iter().take(MAX_NAMES) {
        let name: String = first_word(name).chars().take(MAX_NAME).collect();
        if !name.is_empty() && !not_needed.contains(&name) && !kept.contains(&name) {
            kept.push(name);
        }
    }
    kept
}

fn is_placeholder(name: &str, value: &str) -> bool {
    let lower = value.to_lowercase();
    let telling = PLACEHOLDERS.iter().any(|word| lower.contains(word));
    telling || (looks_secret(name) && value.chars().count() < MIN_KEY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::value::tools::{CodebaseState, DeliverableType};

    fn context(tools: &[&str], variables: &[&str]) -> Discovery {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Discovery {
            deliverable_type: DeliverableType::Software,
            project_type: String::new(),
            codebase_state: CodebaseState::Greenfield,
            value_proofs: Vec::new(),
            tools_required: words(tools),
            env_vars_required: words(variables),
            services: Vec::new(),
            entry_points: Vec::new(),
            start_command: None,
            key_files: Vec::new(),
            network: Vec::new(),
            test_frameworks: Vec::new(),
            holistic_type: None,
            unresolved_questions: Vec::new(),
        }
    }

    #[test]
    fn programs_are_looked_for_in_the_real_path() {
        let checked = check(&context(&["sh", "no-such-program-anywhere", "sh", ""], &["PATH"]), &[]);
        assert_eq!(checked.missing_tools, ["no-such-program-anywhere"]);
        assert!(checked.missing_variables.is_empty() && checked.placeholder_variables.is_empty());
    }

    #[test]
    fn what_is_not_needed_after_all_is_not_missing() {
        let wanted = context(&["docker", "helm"], &["DATABASE_URL", "TOKEN"]);
        let not_needed = ["docker".to_owned(), "DATABASE_URL (set here, but not passed on to tools)".to_owned()];
        let checked = check_with(&wanted, &not_needed, |_| false, |_| None);
        assert_eq!((checked.missing_tools, checked.missing_variables), (vec!["helm".into()], vec!["TOKEN".into()]));
    }

    #[test]
    fn a_variable_that_tools_do_not_get_is_missing() {
        let checked = check_with(
            &context(&[], &["DATABASE_URL", "LC_X", "HOME"]),
            &[],
            |_| true,
            |name| (name != "HOME").then(|| "value".to_owned()),
        );
        assert_eq!(checked.missing_variables, ["DATABASE_URL (set here, but not passed on to tools)", "HOME"]);
    }

    #[test]
    fn placeholders_are_told_from_values() {
        assert!(is_placeholder("URL", "https://YOUR-host") && is_placeholder("A", "ChangeMe!"));
        assert!(is_placeholder("API_KEY", "short") && !is_placeholder("NAME", "short"));
        assert!(!is_placeholder("API_KEY", "a-real-looking-key"));
    }
}
