//! Manifests: by some keys they say what a check is, by others what the work needs.

use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item, Table};

use super::names;

/// Keys of package.json that define a check.
const PACKAGE_JSON: &[&str] = &[
    "scripts",
    "jest",
    "vitest",
    "mocha",
    "ava",
    "nyc",
    "c8",
    "tap",
    "babel",
    "eslintConfig",
    "eslintIgnore",
    "prettier",
    "stylelint",
    "lint-staged",
    "husky",
    "pre-commit",
    "type",
    "imports",
    "exports",
    "main",
    "module",
    "browser",
    "bin",
    "workspaces",
    "overrides",
    "resolutions",
    "pnpm",
    "packageManager",
    "engines",
    "volta",
    "browserslist",
    "sideEffects",
];
/// Tables of Cargo.toml that say what the work needs. All else defines a check.
const CARGO: &[&str] = &["dependencies", "dev-dependencies", "build-dependencies", "features"];
/// Tables of pyproject.toml that say what the work needs.
const PYPROJECT: &[&str] = &["project", "build-system", "dependency-groups"];
const PYPROJECT_TOOLS: &[&str] = &["poetry", "uv", "pdm", "hatch", "setuptools", "flit"];

/// The manifest as it is now, but for the keys that define a check, which are those of the start. `None`: the two cannot
/// be told apart here, so the start's counts as a whole.
pub fn merge(path: &str, start: &str, now: &str) -> Option<String> {
    match names::base(path) {
        "package.json" => package_json(start, now),
        "Cargo.toml" => toml(start, now, |key| CARGO.contains(&key), &[]),
        "pyproject.toml" => toml(start, now, |key| PYPROJECT.contains(&key), PYPROJECT_TOOLS),
        "go.mod" => go_mod(start, now),
        _ => None,
    }
}

fn package_json(start: &str, now: &str) -> Option<String> {
    let start: Map<String, Value> = serde_json::from_str(start).ok()?;
    let mut now: Map<String, Value> = serde_json::from_str(now).ok()?;
    for key in PACKAGE_JSON {
        match start.get(*key) {
            Some(value) => {
                now.insert((*key).to_owned(), value.clone());
            }
            None => {
                now.remove(*key);
            }
        }
    }
    serde_json::to_string_pretty(&now).ok()
}

/// What `is_work` names is taken from now; below `tool`, what `tools` names.
fn toml(start: &str, now: &str, is_work: impl Fn(&str) -> bool, tools: &[&str]) -> Option<String> {
    let mut merged: DocumentMut = start.parse().ok()?;
    let now: DocumentMut = now.parse().ok()?;
    take(merged.as_table_mut(), now.as_table(), is_work);
    if !tools.is_empty() {
        let mut none = Table::new();
        none.set_implicit(true);
        let theirs = now.get("tool").and_then(Item::as_table).unwrap_or(&none).clone();
        let entry = merged.as_table_mut().entry("tool").or_insert(Item::Table(none));
        take(entry.as_table_mut()?, &theirs, |key| tools.contains(&key));
    }
    Some(merged.to_string())
}

fn take(merged: &mut Table, now: &Table, is_work: impl Fn(&str) -> bool) {
    let gone: Vec<String> = merged.iter().map(|(key, _)| key.to_owned()).filter(|key| is_work(key)).collect();
    for key in gone {
        merged.remove(&key);
    }
    for (key, item) in now.iter().filter(|(key, _)| is_work(key)) {
        merged.insert(key, item.clone());
    }
}

/// Line by line: `require` blocks and lines as now, all else as at the start.
fn go_mod(start: &str, now: &str) -> Option<String> {
    let (other, _) = split_requires(start);
    let (_, requires) = split_requires(now);
    Some(format!("{other}\n{requires}"))
}

fn split_requires(text: &str) -> (String, String) {
    let (mut other, mut requires, mut inside) = (String::new(), String::new(), false);
    for line in text.lines() {
        let begins = line.trim_start().starts_with("require");
        let target = if inside || begins { &mut requires } else { &mut other };
        target.push_str(line);
        target.push('\n');
        inside = (inside || begins && line.trim_end().ends_with('(')) && line.trim() != ")";
    }
    (other, requires)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_defines_a_check_stays_and_dependencies_come() {
        let start = r#"{"scripts":{"test":"jest"},"devDependencies":{"jest":"1"}}"#;
        let now = r#"{"scripts":{"test":"true"},"jest":{"projects":[]},"dependencies":{"semver":"*"},"devDependencies":{"jest":"1"}}"#;
        let merged = merge("package.json", start, now).unwrap();
        assert!(merged.contains(r#""test": "jest""#) && merged.contains("semver") && !merged.contains("projects"));
        let start = "[package]\nname = \"a\"\nversion = \"0.1.0\"\n";
        let now = "[package]\nname = \"a\"\nautotests = false\n\n[features]\nextra = []\n\n[dependencies]\nb = \"1\"\n\n[[test]]\nname = \"it\"\nharness = false\n";
        let merged = merge("Cargo.toml", start, now).unwrap();
        assert!(merged.contains("extra") && merged.contains("b = \"1\""), "{merged}");
        assert!(!merged.contains("autotests") && !merged.contains("harness"), "{merged}");
        let now = "[project]\nname = \"a\"\n\n[tool.pytest.ini_options]\naddopts = \"--co\"\n\n[tool.uv]\nx = 1\n";
        let merged = merge("pyproject.toml", "[project]\nname = \"b\"\n", now).unwrap();
        assert!(merged.contains("[tool.uv]") && merged.contains("\"a\"") && !merged.contains("--co"), "{merged}");
        let merged = merge("go.mod", "module x\n\ngo 1.19\n", "module y\n\ngo 1.19\n\nrequire (\n\ta v1\n)\n").unwrap();
        assert!(merged.contains("module x") && merged.contains("a v1") && !merged.contains("module y"), "{merged}");
    }

    #[test]
    fn what_cannot_be_read_is_not_merged() {
        assert_eq!(merge("package.json", "{}", "{"), None);
        assert_eq!(merge("Cargo.toml", "[", "[a]"), None);
        assert_eq!(merge("pom.xml", "", ""), None);
    }
}
