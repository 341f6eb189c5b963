//! What people wrote down as the check: a target of make, a recipe of just, a task of Taskfile.

use serde_json::Value;

use super::{Clues, Inferred};

/// In the order in which make looks for them.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];
const JUSTFILES: [&str; 3] = ["justfile", "Justfile", ".justfile"];
const TASKFILES: [&str; 4] = ["Taskfile.yml", "taskfile.yml", "Taskfile.yaml", "taskfile.yaml"];

/// `check` of the first that has one, else `test`.
pub fn target(clues: &Clues) -> Option<Inferred> {
    let text = |names: &[&'static str]| names.iter().find_map(|name| Some((*name, clues.text(name)?)));
    let (make, just, task) = (text(&MAKEFILES), text(&JUSTFILES), text(&TASKFILES));
    ["check", "test"].into_iter().find_map(|target| {
        let made = make
            .filter(|(_, text)| has_target(text, target))
            .map(|_| Inferred::new(target, &["make", target], "Makefile"));
        let just = || just.filter(|(_, text)| has_recipe(text, target));
        let task = || task.filter(|(_, text)| has_task(text, target));
        made.or_else(|| just().map(|(from, _)| Inferred::new(target, &["just", target], from)))
            .or_else(|| task().map(|(from, _)| Inferred::new(target, &["task", target], from)))
    })
}

/// Does the Makefile say how to make this? `check: build`, `lint check:`, but neither `check := x` nor `.PHONY: check`.
fn has_target(makefile: &str, target: &str) -> bool {
    makefile.lines().any(|line| {
        // A recipe starts with a tab, and a comment is no rule.
        let Some((names, rest)) = line.split_once(':').filter(|_| !line.starts_with(['\t', ' ', '#'])) else {
            return false;
        };
        let assigns = rest.trim_start_matches(':').starts_with('=');
        !assigns && names.split_whitespace().any(|name| name == target)
    })
}

/// `test:`, `@test: build`, `test *args:`, but not `test := "x"` and nothing that needs an argument.
fn has_recipe(justfile: &str, target: &str) -> bool {
    justfile.lines().any(|line| {
        let Some((head, rest)) = line.split_once(':').filter(|_| !line.starts_with(['\t', ' ', '#'])) else {
            return false;
        };
        let mut words = head.trim_start_matches('@').split_whitespace();
        let named = words.next() == Some(target);
        named && !rest.starts_with('=') && words.all(|word| word.starts_with('*') || word.contains('='))
    })
}

fn has_task(taskfile: &str, target: &str) -> bool {
    let read: Value = serde_yaml::from_str(taskfile).unwrap_or_default();
    let task = &read["tasks"][target];
    !task.is_null() && task["watch"] != true
}
