//! The fix that a tool has for what it found.

use serde::{Deserialize, Serialize};

use super::command::{self, Simple};
use super::table::{self, By, Fixer};
use crate::model::project_check::Clues;

/// A command that mends what a check found, and its name as a detour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fix {
    pub name: String,
    pub command: Vec<String>,
}

/// The fix for a failed check, if its output names one and the project has its tool.
pub fn fix(argv: &[String], output: &str, project: &Clues) -> Option<Fix> {
    let text = super::said(output);
    let fits = |fixer: &&Fixer| {
        let there = fixer.there.is_empty() || fixer.there.iter().any(|name| project.has(name));
        there && fixer.lines.is_match(&text)
    };
    table::table().fixers.iter().filter(fits).find_map(|fixer| {
        let command = as_the_check(argv, fixer).or_else(|| as_the_project(fixer, project))?;
        Some(Fix { name: fixer.name.clone(), command })
    })
}

/// The check's own command with what makes it mend: `ruff check src` → `ruff check --fix src`.
fn as_the_check(argv: &[String], fixer: &Fixer) -> Option<Vec<String>> {
    let commands = command::simple(argv);
    let [Simple { words, launcher }] = commands.as_slice() else { return None };
    let [only] = commands.as_slice() else { return None };
    let tool = only.tool();
    let named = !fixer.words.is_empty() && tool.len() >= fixer.words.len();
    if !named || fixer.words.iter().zip(&tool).any(|(name, word)| name != word) {
        return None;
    }
    // What a shell would expand is not ours to repeat.
    if words.iter().any(|word| word.contains('$')) {
        return None;
    }
    let (head, rest) = words.split_at(launcher + fixer.words.len());
    let rest = rest.iter().filter(|word| !fixer.drop.contains(word));
    Some(head.iter().chain(&fixer.add).chain(rest).cloned().collect())
}

/// The usual command, started as this project starts its tools; `None`: it does not have it.
fn as_the_project(fixer: &Fixer, project: &Clues) -> Option<Vec<String>> {
    let (tool, rest) = fixer.command.split_first()?;
    let started = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).chain([tool.clone()]).collect();
    let head: Vec<String> = match fixer.by {
        Some(By::Node) => {
            let installed = format!("node_modules/.bin/{tool}");
            vec![project.has(&installed).then_some(installed)?]
        }
        Some(By::Python) => {
            let installed = [".venv", "venv"].map(|folder| format!("{folder}/bin/{tool}"));
            match installed.into_iter().find(|path| project.has(path)) {
                Some(path) => vec![path],
                None if project.has("uv.lock") => started(&["uv", "run"]),
                None if project.has("poetry.lock") => started(&["poetry", "run"]),
                None if project.has("pdm.lock") => started(&["pdm", "run"]),
                None => vec![tool.clone()],
            }
        }
        None => vec![tool.clone()],
    };
    Some(head.into_iter().chain(rest.iter().cloned()).collect())
}
