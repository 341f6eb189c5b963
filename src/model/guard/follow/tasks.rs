//! Programs that run named recipes: make, just, task, tox, nox, pre-commit.

use serde_yaml::Value;

use super::make::Rules;
use super::{At, Follow};
use crate::model::guard::names;

const MAX_INCLUDES: usize = 50;

impl Follow<'_> {
    pub(super) fn make(&mut self, rest: &[String], at: &At) {
        let (mut folder, mut file, mut targets) = (at.folder.clone(), None, Vec::new());
        let mut words = rest.iter().map(String::as_str);
        while let Some(word) = words.next() {
            let value = |short: &str| word.strip_prefix(short).filter(|value| !value.is_empty()).map(str::to_owned);
            match word {
                "-f" | "--file" | "--makefile" => file = words.next().map(str::to_owned),
                "-C" | "--directory" => {
                    folder = words.next().and_then(|word| names::join(&folder, word)).unwrap_or(folder)
                }
                "-I" | "-o" | "-W" | "-E" => {
                    words.next();
                }
                _ if word.starts_with("-f") => file = value("-f"),
                _ if word.starts_with("--file=") => file = value("--file="),
                _ if word.starts_with("--makefile=") => file = value("--makefile="),
                _ if word.starts_with("-C") => {
                    folder = value("-C").and_then(|word| names::join(&folder, &word)).unwrap_or(folder)
                }
                _ if word.starts_with('-') || word.contains('=') || word.bytes().all(|byte| byte.is_ascii_digit()) => {}
                _ => targets.push(word.to_owned()),
            }
        }
        let at = At { folder, ..at.clone() };
        let by_default = ["GNUmakefile", "makefile", "Makefile"].map(str::to_owned);
        let named: Vec<String> = file.map_or(by_default.to_vec(), |file| vec![file]);
        let Some(path) = named.iter().find_map(|name| self.resolve(name, &at, &[""])) else { return };
        self.recipes(path, targets, &at, true);
    }

    /// Recipes of the targets in a file, and the files it includes. `makes_files`: targets are names of files.
    fn recipes(&mut self, path: String, mut targets: Vec<String>, at: &At, makes_files: bool) {
        if !self.seen.insert(format!("{path}#{}", targets.join(" "))) {
            return;
        }
        self.guard(path.clone(), at);
        let mut rules = Rules::default();
        rules.add(&(self.read)(&path).unwrap_or_default());
        let mut looked = 0;
        while looked < rules.includes.len().min(MAX_INCLUDES) {
            let word = rules.includes[looked].clone();
            looked += 1;
            // A file that is not there yet is included once somebody adds it.
            let Some(included) = self.resolve(&word, at, &[""]).or_else(|| self.place(&word, at)) else { continue };
            self.guard(included.clone(), &at.by(path.clone()));
            rules.add(&(self.read)(&included).unwrap_or_default());
        }
        if targets.is_empty() {
            targets.extend(rules.first().map(str::to_owned));
        }
        let (recipes, reached) = rules.reached(&targets);
        if makes_files {
            let phony = rules.phony();
            let can_stand = reached.iter().filter(|target| !phony.contains(target));
            self.reached.targets.extend(can_stand.filter_map(|target| names::join(&at.folder, target)));
        }
        let inner = At { by: format!("{path} ({})", targets.join(" ")), depth: at.depth + 1, ..at.clone() };
        recipes.into_iter().for_each(|recipe| self.shell(recipe, &inner));
    }

    pub(super) fn tasks(&mut self, program: &str, rest: &[String], at: &At) {
        let wanted: Vec<String> = rest.iter().filter(|word| !word.starts_with('-')).cloned().collect();
        let files: &[&str] = match program {
            "just" => &["justfile", "Justfile", ".justfile"],
            "task" | "go-task" => &["Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml"],
            "tox" => &["tox.ini", "tox.toml", "pyproject.toml", "setup.cfg"],
            "nox" => &["noxfile.py"],
            _ => &[".pre-commit-config.yaml"],
        };
        let Some(path) = files.iter().find_map(|name| self.resolve(name, at, &[""])) else { return };
        if program == "just" {
            return self.recipes(path, wanted, at, false);
        }
        self.guard(path.clone(), at);
        let Some(text) = (self.read)(&path).filter(|_| self.seen.insert(path.clone())) else { return };
        let inner = at.by(path);
        match program {
            "tox" => text.lines().map(|line| line.split_once('=').map_or(line, |(_, value)| value)).for_each(|line| {
                self.shell(line.trim().trim_matches(['"', '[', ']']), &inner);
            }),
            "nox" => {}
            _ => {
                let value: Value = serde_yaml::from_str(&text).unwrap_or_default();
                let lines = if program == "pre-commit" { hooks(&value) } else { tasks(&value, &wanted) };
                lines.iter().for_each(|line| self.shell(line, &inner));
            }
        }
    }
}

/// Commands of the hooks that stand in the tree.
fn hooks(config: &Value) -> Vec<String> {
    let repos = config.get("repos").and_then(Value::as_sequence).into_iter().flatten();
    let hooks = repos.filter_map(|repo| repo.get("hooks")?.as_sequence()).flatten();
    let line = |hook: &Value| {
        let entry = hook.get("entry").and_then(Value::as_str).unwrap_or("hook");
        let args = hook.get("args").and_then(Value::as_sequence).into_iter().flatten().filter_map(Value::as_str);
        args.fold(entry.to_owned(), |line, arg| format!("{line} {arg}"))
    };
    hooks.map(line).take(500).collect()
}

/// Commands of the wanted tasks and of those they need.
fn tasks(file: &Value, wanted: &[String]) -> Vec<String> {
    let mut queue = if wanted.is_empty() { vec!["default".to_owned()] } else { wanted.to_vec() };
    let (mut lines, mut seen) = (Vec::new(), Vec::new());
    while let Some(name) = queue.pop() {
        if seen.contains(&name) || seen.len() > 200 {
            continue;
        }
        let Some(task) = file.get("tasks").and_then(|tasks| tasks.get(&name)) else { continue };
        seen.push(name);
        let list = |key: &str| task.get(key).and_then(Value::as_sequence).into_iter().flatten();
        let alone = task.as_str().or_else(|| task.get("cmd").and_then(Value::as_str)).map(str::to_owned);
        lines.extend(alone);
        for step in list("cmds").chain(task.as_sequence().into_iter().flatten()) {
            lines.extend(step.as_str().or_else(|| step.get("cmd")?.as_str()).map(str::to_owned));
            queue.extend(step.get("task").and_then(Value::as_str).map(str::to_owned));
        }
        let needs = list("deps").filter_map(|need| need.as_str().or_else(|| need.get("task")?.as_str()));
        queue.extend(needs.map(str::to_owned));
    }
    lines
}
