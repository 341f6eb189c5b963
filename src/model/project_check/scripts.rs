//! What a script of package.json (or its like) does: whether it ends by itself, and whether it checks anything.

use serde_json::Value;

use crate::model::guard::shell;

/// Scripts that name one another are followed so far.
const DEEPEST: usize = 5;
/// Programs that are agents: a check never starts one.
const AGENTS: [&str; 10] =
    ["claude", "codex", "gemini", "opencode", "goose", "aider", "cursor-agent", "amp", "qwen", "nightloop"];
/// Programs that serve or wait until they are stopped.
const WAITING: [&str; 7] = ["nodemon", "chokidar", "watchexec", "entr", "live-server", "http-server", "ts-node-dev"];

/// How a script may be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Script {
    /// By its name.
    AsIs,
    /// With this in the environment, it ends.
    InCi,
    /// By this command instead: the script would wait for changes.
    Instead(Vec<String>),
}

/// `None`: it is not there, checks nothing, does not end, or starts an agent.
pub fn usable(scripts: &Value, name: &str) -> Option<Script> {
    look(scripts, name, 0)
}

fn look(scripts: &Value, name: &str, depth: usize) -> Option<Script> {
    let text = scripts[name].as_str().map(str::trim).filter(|text| !text.is_empty())?;
    // What `npm init` writes fails always.
    if depth > DEEPEST || text.contains("no test specified") {
        return None;
    }
    let commands = shell::commands(text);
    let words: Vec<Vec<&str>> =
        commands.iter().map(|command| tool(&command.words)).filter(|words| !words.is_empty()).collect();
    let says_only = |words: &Vec<&str>| matches!(words[0], "echo" | "true" | ":" | "exit" | "printf");
    if words.iter().all(says_only) || words.iter().any(|words| AGENTS.contains(&words[0])) {
        return None;
    }
    let mut found = Script::AsIs;
    for command in &words {
        let one = match named_script(command) {
            Some(other) if !scripts[other].is_null() && other != name => look(scripts, other, depth + 1)?,
            _ => ends(command)?,
        };
        match one {
            Script::AsIs => {}
            Script::InCi => found = Script::InCi,
            // Only a script that is nothing else has another command that says the same.
            Script::Instead(argv) if words.len() == 1 => found = Script::Instead(argv),
            Script::Instead(_) => found = Script::InCi,
        }
    }
    Some(found)
}

/// The tool of a command, without what only starts it.
fn tool(words: &[String]) -> Vec<&str> {
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    let setting = |word: &str| word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && !name.starts_with('-'));
    while words.first().is_some_and(|word| {
        setting(word) || matches!(*word, "npx" | "bunx" | "cross-env" | "env" | "dotenv" | "--" | "time" | "-y")
    }) {
        words.remove(0);
    }
    if let Some(first) = words.first_mut() {
        *first = first.rsplit('/').next().unwrap_or_default();
    }
    words
}

/// `npm run lint`, `pnpm lint`, `yarn test`, `run-s lint`: the script that is run.
fn named_script<'a>(command: &[&'a str]) -> Option<&'a str> {
    let rest = command.get(1..)?;
    match *command.first()? {
        "npm" | "pnpm" | "yarn" | "bun" => match rest {
            ["run" | "run-script", name, ..] => Some(name),
            ["test" | "t", ..] => Some("test"),
            [name, ..] if !name.starts_with('-') => Some(name),
            _ => None,
        },
        "run-s" | "run-p" | "npm-run-all" => rest.iter().copied().find(|word| !word.starts_with('-')),
        _ => None,
    }
}

/// Does this command end by itself?
fn ends(command: &[&str]) -> Option<Script> {
    let (program, rest) = command.split_first()?;
    let has = |words: &[&str]| rest.iter().any(|word| words.contains(word));
    let off = has(&["--watch=false", "--no-watch", "--watchAll=false", "--single-run", "--ci", "--run", "--watch=0"]);
    let watches =
        rest.iter().any(|word| matches!(*word, "--watch" | "--watchAll" | "--watch-all" | "--watch=true" | "--ui"))
            || (has(&["-w"]) && !matches!(*program, "prettier" | "gofmt" | "npm" | "shfmt" | "wc" | "sort" | "grep"));
    if WAITING.contains(program) || (watches && !off && *program != "vitest") {
        return None;
    }
    match (*program, rest) {
        ("vitest", _) if has(&["run", "--run", "--no-watch", "--watch=false", "list", "typecheck", "bench"]) => {
            Some(Script::AsIs)
        }
        ("vitest", _) => {
            let kept =
                rest.iter().filter(|word| !matches!(**word, "watch" | "dev" | "-w" | "--watch" | "--ui" | "--open"));
            Some(Script::Instead(["vitest", "run"].into_iter().chain(kept.copied()).map(str::to_owned).collect()))
        }
        ("react-scripts" | "craco" | "react-app-rewired", ["test", ..]) if !off => Some(Script::InCi),
        // It opens a browser, too.
        ("ng", ["test", ..]) | ("karma", ["start", ..]) if !off => None,
        ("cypress", ["open", ..])
        | ("next" | "nuxt" | "vite" | "astro" | "expo", ["dev" | "start" | "preview", ..]) => None,
        ("vite", []) | ("webpack-dev-server", _) => None,
        ("turbo" | "nx" | "tsup" | "webpack" | "rollup" | "deno" | "cargo", [first, ..]) if *first == "watch" => None,
        _ => Some(Script::AsIs),
    }
}
