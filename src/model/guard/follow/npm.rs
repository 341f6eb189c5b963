//! Scripts of package.json: which commands a script comes to, and which settings stand in it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{At, Follow};
use crate::model::guard::{names, shell};

/// What may be left out at the end of an imported path.
pub const ENDS: &[&str] = &[
    "",
    ".js",
    ".cjs",
    ".mjs",
    ".ts",
    ".mts",
    ".cts",
    ".tsx",
    ".jsx",
    ".json",
    "/index.js",
    "/index.cjs",
    "/index.mjs",
    "/index.ts",
];
const MAX_PACKAGES: usize = 50;

/// Keys of package.json that hold settings of runners which load files.
const SETTINGS: &[&str] = &["jest", "mocha", "ava", "nyc", "c8", "babel", "eslintConfig", "prettier", "vitest", "tap"];

/// The settings of runners in package.json, as text.
pub fn settings(text: &str) -> String {
    let package: Value = serde_json::from_str(text).unwrap_or_default();
    let found = SETTINGS.iter().filter_map(|key| package.get(key).map(|value| format!("{key} config {value}\n")));
    found.collect()
}

/// What a tsconfig builds on; its other paths are code. Comments are allowed in it, so that it is read as text.
pub fn extends(text: &str) -> String {
    let Some((_, rest)) = text.split_once("\"extends\"") else { return String::new() };
    let value = rest.trim_start_matches([':', ' ', '\t', '\r', '\n']);
    let end = if value.starts_with('[') {
        value.find(']')
    } else {
        value.get(1..).and_then(|rest| Some(rest.find('"')? + 1))
    };
    format!("extends {}", &value[..end.unwrap_or(0)])
}

fn scripts(text: &str) -> BTreeMap<String, String> {
    let package: Value = serde_json::from_str(text).unwrap_or_default();
    let scripts = package.get("scripts").and_then(Value::as_object);
    let entries = scripts.into_iter().flatten();
    entries.filter_map(|(name, line)| Some((name.clone(), line.as_str()?.to_owned()))).collect()
}

impl Follow<'_> {
    /// `npm test`, `npm run x`, `yarn x`. False when it is no script, so that something else may know the command.
    pub(super) fn npm(&mut self, program: &str, rest: &[String], at: &At) -> bool {
        let mut folder = at.folder.clone();
        let mut plain = Vec::new();
        let mut everywhere = false;
        let mut words = rest.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--prefix" | "-C" | "--cwd" | "--dir" => {
                    let named = words.next().and_then(|word| names::join(&folder, word));
                    folder = named.unwrap_or(folder);
                }
                "-w" | "--workspace" | "--filter" | "-F" => {
                    everywhere = true;
                    words.next();
                }
                "-r" | "-ws" | "--recursive" | "--workspaces" => everywhere = true,
                "--" => break,
                word if word.starts_with("--workspace=") || word.starts_with("--filter=") => everywhere = true,
                word if word.starts_with('-') => {}
                word => plain.push(word),
            }
        }
        let at = At { folder, ..at.clone() };
        let script = match plain.as_slice() {
            ["run" | "run-script", script, ..] => script,
            ["test" | "t" | "tst", ..] if program != "bun" => "test",
            ["install" | "i" | "ci", ..] => "install",
            [script, ..] => script,
            [] => return true,
        };
        let package = names::join(&at.folder, "package.json").unwrap_or_default();
        let is_script = (self.read)(&package).is_some_and(|text| scripts(&text).contains_key(script));
        if !is_script && !everywhere && program == "bun" {
            return false;
        }
        self.npm_script(script, &at);
        if everywhere {
            let is_package = |path: &&String| names::base(path) == "package.json" && !path.contains("node_modules/");
            let packages: Vec<String> = self.names.iter().filter(is_package).take(MAX_PACKAGES).cloned().collect();
            for package in packages {
                self.npm_script(script, &At { folder: names::folder(&package).to_owned(), ..at.clone() });
            }
        }
        true
    }

    /// A script with those before and after it; `lint:*` is all of that kind.
    pub(super) fn npm_script(&mut self, wanted: &str, at: &At) {
        let Some(package) = names::join(&at.folder, "package.json") else { return };
        let Some(text) = (self.read)(&package) else { return };
        self.reached.found.entry(package.clone()).or_insert_with(|| format!("{package}, named by {}", at.by));
        let scripts = scripts(&text);
        let is_wanted = |name: &str| match wanted.split_once('*') {
            Some((start, _)) => name.starts_with(start),
            None => name == wanted || name == format!("pre{wanted}") || name == format!("post{wanted}"),
        };
        for (name, line) in scripts.iter().filter(|(name, _)| is_wanted(name)) {
            if self.seen.insert(format!("{package}#{name}")) {
                let by = format!("script {name} of {package}");
                let inner = At { by, depth: at.depth + 1, ..at.clone() };
                // `concurrently "npm:a" "npm run b"`: commands in quotes.
                for command in shell::commands(line) {
                    let nested = command.words.iter().filter(|word| word.contains(' ')).cloned().collect::<Vec<_>>();
                    let named = command.words.iter().filter_map(|word| word.strip_prefix("npm:")).map(str::to_owned);
                    let named: Vec<String> = named.collect();
                    self.command(&command, &inner);
                    nested.iter().for_each(|line| self.shell(line, &inner));
                    named.iter().for_each(|script| self.npm_script(script, &inner));
                }
            }
        }
    }
}
