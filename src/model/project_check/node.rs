//! Checks of projects of Node and Deno.

use serde_json::Value;

use super::scripts::{Script, usable};
use super::{Clues, Inferred};

/// What scripts that check something are called, in the order in which they fail soonest.
const SCRIPTS: [(&str, &[&str]); 3] = [
    ("typecheck", &["typecheck", "type-check", "check-types", "check:types", "types:check", "tsc"]),
    ("lint", &["lint:check", "lint:ci", "lint"]),
    ("test", &["test", "test:run", "test:ci", "test:unit"]),
];

/// The scripts of package.json that check something and end by themselves; those of its packages, where it has none.
pub fn checks(clues: &Clues) -> Vec<Inferred> {
    let Some(package) = json(clues, "package.json") else { return Vec::new() };
    let manager = clues.node_manager();
    let own: Vec<Inferred> = SCRIPTS
        .iter()
        .filter_map(|(id, names)| {
            let (name, script) = names.iter().find_map(|name| Some((*name, usable(&package["scripts"], name)?)))?;
            let argv = match script {
                Script::AsIs => words(&[manager, "run", name]),
                Script::InCi => words(&["env", "CI=true", manager, "run", name]),
                Script::Instead(argv) => exec(manager).iter().map(|word| (*word).to_owned()).chain(argv).collect(),
            };
            Some(Inferred { id: (*id).to_owned(), argv, from: "package.json".to_owned() })
        })
        .collect();
    if !own.is_empty() {
        return own;
    }
    let has_packages = !package["workspaces"].is_null() || clues.has("pnpm-workspace.yaml");
    if has_packages && packages_have(clues, "test") {
        let argv: &[&str] = match manager {
            "pnpm" => &["pnpm", "--recursive", "--if-present", "run", "test"],
            "yarn" => &["yarn", "workspaces", "foreach", "--all", "run", "test"],
            "bun" => &["bun", "run", "--filter", "*", "test"],
            _ => &["npm", "run", "test", "--workspaces", "--if-present"],
        };
        return vec![Inferred::new("test", argv, "package.json")];
    }
    // Bun's own runner needs no script.
    let tested = manager == "bun" && clues.any(|path| path.contains(".test.") || path.contains(".spec."));
    tested.then(|| Inferred::new("test", &["bun", "test"], "package.json")).into_iter().collect()
}

/// Every package that has such a script ends by itself.
fn packages_have(clues: &Clues, script: &str) -> bool {
    let package = |path: &str| path != "package.json" && path.ends_with("/package.json");
    let scripts = |text: &str| -> Option<Value> {
        let read: Value = serde_json::from_str(text).ok()?;
        (!read["scripts"][script].is_null()).then(|| read["scripts"].clone())
    };
    let mut found = clues.texts(package).filter_map(scripts).peekable();
    found.peek().is_some() && found.all(|scripts| usable(&scripts, script) == Some(Script::AsIs))
}

/// A task of deno.json, else Deno's own runner.
pub fn deno(clues: &Clues) -> Vec<Inferred> {
    let Some(from) = clues.first(&["deno.json", "deno.jsonc"]) else { return Vec::new() };
    let settings = json(clues, from).unwrap_or_default();
    let told = |name: &str| match &settings["tasks"][name] {
        Value::Object(task) => task.get("command").cloned().unwrap_or_default(),
        text => text.clone(),
    };
    for name in ["check", "test"] {
        let tasks = serde_json::json!({ name: told(name) });
        if usable(&tasks, name) == Some(Script::AsIs) {
            return vec![Inferred::new(name, &["deno", "task", name], from)];
        }
    }
    let test = |path: &str| {
        ["_test.ts", ".test.ts", "_test.tsx", ".test.tsx", "_test.js"].iter().any(|end| path.ends_with(end))
    };
    clues.any(test).then(|| Inferred::new("test", &["deno", "test"], from)).into_iter().collect()
}

fn exec(manager: &str) -> &'static [&'static str] {
    match manager {
        "pnpm" => &["pnpm", "exec"],
        "yarn" => &["yarn", "run"],
        "bun" => &["bunx"],
        _ => &["npx"],
    }
}

fn words(argv: &[&str]) -> Vec<String> {
    argv.iter().map(|word| (*word).to_owned()).collect()
}

pub(super) fn json(clues: &Clues, name: &str) -> Option<Value> {
    serde_json::from_str(clues.text(name)?).ok().filter(Value::is_object)
}
