//! The simple commands of a check, and which tool each of them starts.
//!
//! Invariant: only declared words go in, so what comes out is as trusted as the declaration.

use crate::model::guard::shell;

const SHELLS: [&str; 5] = ["sh", "bash", "dash", "zsh", "ksh"];

/// One command: its words, and how many of them only start the tool.
#[derive(Debug, PartialEq, Eq)]
pub struct Simple {
    pub words: Vec<String>,
    pub launcher: usize,
}

impl Simple {
    fn new(words: Vec<String>) -> Self {
        let launcher = launcher(&words);
        Self { words, launcher }
    }

    /// The tool and its arguments; `node_modules/.bin/eslint` is eslint.
    pub fn tool(&self) -> Vec<&str> {
        let mut words: Vec<&str> = self.words.iter().skip(self.launcher).map(String::as_str).collect();
        if let Some(tool) = words.first_mut() {
            *tool = tool.rsplit('/').next().unwrap_or_default();
        }
        words
    }
}

/// The commands that a check runs; those of the text, where it is a shell with one.
pub fn simple(argv: &[String]) -> Vec<Simple> {
    let named = argv.first().map(|program| program.rsplit('/').next().unwrap_or(program));
    let text = match argv {
        [_, option, text, ..] if option.starts_with('-') && option.ends_with('c') => Some(text),
        _ => None,
    };
    match text.filter(|_| named.is_some_and(|name| SHELLS.contains(&name))) {
        Some(text) => {
            let commands = shell::commands(text).into_iter().filter(|command| !command.words.is_empty());
            commands.map(|command| Simple::new(command.words)).collect()
        }
        None => vec![Simple::new(argv.to_vec())],
    }
}

/// How many words come before the tool: `npx`, `uv run`, `python3 -m`, settings of variables.
fn launcher(words: &[String]) -> usize {
    const STARTERS: [(&str, &[&str]); 9] = [
        ("npx", &[]),
        ("bunx", &[]),
        ("pnpm", &["exec", "dlx", "run"]),
        ("yarn", &["exec", "dlx", "run"]),
        ("bun", &["x", "run"]),
        ("uv", &["run"]),
        ("poetry", &["run"]),
        ("pdm", &["run"]),
        ("bundle", &["exec"]),
    ];
    let mut at = 0;
    let word = |at: usize| words.get(at).map(String::as_str).unwrap_or_default();
    while word(at).split_once('=').is_some_and(|(name, _)| is_variable(name)) || ["env", "time"].contains(&word(at)) {
        at += 1;
    }
    for _ in 0..3 {
        let program = word(at).rsplit('/').next().unwrap_or_default();
        if is_python(program) && word(at + 1) == "-m" {
            at += 2;
            continue;
        }
        let Some((_, verbs)) = STARTERS.iter().find(|(starter, _)| *starter == program) else { break };
        let next = if verbs.is_empty() { at + 1 } else { at + 2 };
        if !verbs.is_empty() && !verbs.contains(&word(at + 1)) {
            break;
        }
        at = next;
        while word(at).starts_with('-') {
            at += 1;
        }
    }
    if at < words.len() { at } else { 0 }
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn is_python(program: &str) -> bool {
    program.strip_prefix("python").is_some_and(|version| version.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
}
