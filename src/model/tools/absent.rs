//! The program that a check needed and did not find: a missing sensor.
//!
//! Invariant: what the project itself makes is never missing: a path, a file of the workspace, a name that its manifests
//! give to what they build. Who works on it would be stopped before the work.

use regex::Captures;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::command;
use super::table::{self, By, Tool};
use crate::model::project_check::Clues;

/// A program that is not there, and what installs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    pub tool: String,
    pub install: String,
}

/// How a shell ends that did not find a program.
const NOT_FOUND: i32 = 127;

/// Which program a failed check did not find. `code`: how it ended; `None`: it did not even start.
pub fn missing(argv: &[String], code: Option<i32>, output: &str, project: &Clues) -> Option<Missing> {
    let tool = match code {
        Some(code) => {
            let passed_on = ["Error 127", "code 127", "status 127", "exited with 127", "exit code: 127"];
            let not_found = code == NOT_FOUND || passed_on.iter().any(|words| output.contains(words));
            output.lines().find_map(|line| named(argv, line.trim_end(), not_found, project))?
        }
        None => argv.first().filter(|program| is_program(program))?.clone(),
    };
    let install = install(&tool, project);
    Some(Missing { tool, install })
}

/// Does an output say that some program is not there?
pub fn is_told(output: &str) -> bool {
    let told = |line: &str| table::table().absent.iter().any(|rule| rule.line.is_match(line));
    output.lines().any(|line| told(line.trim_end()))
}

/// The program that a line says is not there.
fn named(argv: &[String], line: &str, not_found: bool, project: &Clues) -> Option<String> {
    table::table().absent.iter().find_map(|rule| {
        let tool = tool_of(argv, &rule.line.captures(line)?)?;
        let known = table::table().tool(&tool).is_some();
        let believed = rule.surely || known || (!rule.known && not_found && !project.holds(&tool));
        (believed && is_program(&tool) && !makes(project, &tool)).then_some(tool)
    })
}

fn tool_of(argv: &[String], found: &Captures<'_>) -> Option<String> {
    if let Some(cargo) = found.name("cargo") {
        return Some(format!("cargo-{}", cargo.as_str()));
    }
    match found.name("tool") {
        Some(tool) => Some(tool.as_str().to_owned()),
        None => command::simple(argv).first()?.tool().first().map(|tool| (*tool).to_owned()),
    }
}

/// A name that a search of the programs could find; not a path, and nothing that a shell has of its own.
fn is_program(name: &str) -> bool {
    let scoped = name.strip_prefix('@').filter(|rest| rest.split('/').count() == 2);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '-');
    let begins = |part: &str| part.starts_with(|c: char| c.is_ascii_alphanumeric());
    let parts: Vec<&str> = scoped.unwrap_or(name).split('/').collect();
    let length = if scoped.is_some() { 2 } else { 1 };
    parts.len() == length
        && name.len() <= 60
        && parts.iter().all(|part| begins(part) && part.chars().all(plain))
        && !table::table().not_programs.iter().any(|known| known == name)
}

/// Does a manifest of the project give this name to what is made here?
fn makes(project: &Clues, tool: &str) -> bool {
    let package: Value =
        project.text("package.json").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    if package["name"] == tool || !package["bin"][tool].is_null() {
        return true;
    }
    let names_it = |line: &str| {
        let Some((key, value)) = line.split_once('=') else { return false };
        let value = value.trim().trim_matches(['"', '\'', ',']);
        let is_entry = value.contains(':') && !value.contains(['<', '>', '{', '[']);
        (key.trim() == "name" && value == tool) || (key.trim().trim_matches(['"', '\'']) == tool && is_entry)
    };
    ["Cargo.toml", "pyproject.toml", "setup.cfg", "setup.py"]
        .into_iter()
        .filter_map(|name| project.text(name))
        .any(|text| text.lines().any(|line| names_it(line.trim())))
}

/// What a person has to do to have it.
fn install(tool: &str, project: &Clues) -> String {
    match table::table().tool(tool) {
        Some(Tool { install: Some(install), .. }) => install.clone(),
        Some(Tool { by: Some(By::Node), package, .. }) => node(package.as_deref().unwrap_or(tool), project),
        Some(Tool { by: Some(By::Python), package, .. }) => python(package.as_deref().unwrap_or(tool), project),
        Some(_) | None if declares(project, tool) => format!("{} install", project.node_manager()),
        Some(_) | None => format!("install `{tool}`, or correct the command that names it"),
    }
}

fn declares(project: &Clues, package: &str) -> bool {
    let manifest: Value =
        project.text("package.json").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    ["dependencies", "devDependencies", "optionalDependencies"].iter().any(|kind| !manifest[*kind][package].is_null())
}

fn node(package: &str, project: &Clues) -> String {
    let manager = project.node_manager();
    if declares(project, package) {
        return format!("{manager} install");
    }
    match manager {
        "npm" => format!("npm install --save-dev {package}"),
        "bun" => format!("bun add --dev {package}"),
        manager => format!("{manager} add -D {package}"),
    }
}

fn python(package: &str, project: &Clues) -> String {
    let named = |name: &str| project.text(name).is_some_and(|text| text.contains(package));
    let declared = named("pyproject.toml");
    let (sync, add) = match project.python_manager() {
        Some("uv") => ("uv sync --all-groups", "uv add --dev"),
        Some("poetry") => ("poetry install", "poetry add --group dev"),
        Some("pdm") => ("pdm install", "pdm add -d"),
        _ => {
            let requirements =
                ["requirements-dev.txt", "dev-requirements.txt", "requirements-test.txt", "requirements.txt"];
            return match requirements.into_iter().find(|name| named(name)) {
                Some(file) => format!("pip install -r {file}"),
                None => format!("pip install {package}"),
            };
        }
    };
    if declared { sync.to_owned() } else { format!("{add} {package}") }
}
