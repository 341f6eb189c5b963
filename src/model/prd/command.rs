//! The command with which an item says how it is checked.
//!
//! Role: tell a command from prose, and give it as program and arguments. Not its role: running it; whose word counts
//! where loop.yaml names another one.
//! Invariants: under a key that can hold prose only what is plainly a command is one; what is taken for prose stays a
//! criterion for the critic, so nothing is lost; a text is run by `sh`, a list of words as it stands.

use super::first_named;
use super::json::{JsonKind, Member, Node};

/// Keys that hold nothing but a command.
const COMMANDS: &[&str] = &[
    "testcommand",
    "testcmd",
    "verificationcommand",
    "verificationcmd",
    "verifycommand",
    "verifycmd",
    "validationcommand",
    "validationcmd",
    "validatecommand",
    "checkcommand",
    "checkcmd",
];
/// Keys that hold a command, or prose.
const MAYBE: &[&str] = &["verify", "verification", "validation", "validate", "check", "test"];
/// Where an object under one of the keys keeps its command.
const INNER: &[&str] = &["command", "cmd", "run"];
/// Longer is no command that anybody wrote by hand.
const LONGEST: usize = 4_096;
const MOST_WORDS: usize = 100;

/// Words that people write where they have no command.
const NONE: &[&str] = &["none", "n/a", "na", "manual", "tbd", "todo", "-", "null"];
/// Programs whose names are no English words.
const PROGRAMS: &[&str] = &[
    "npm",
    "pnpm",
    "yarn",
    "npx",
    "pnpx",
    "bun",
    "bunx",
    "deno",
    "cargo",
    "pytest",
    "python3",
    "uv",
    "uvx",
    "pip",
    "poetry",
    "pipenv",
    "tox",
    "nox",
    "mvn",
    "gradle",
    "dotnet",
    "phpunit",
    "composer",
    "rspec",
    "tsc",
    "eslint",
    "vitest",
    "jest",
    "mocha",
    "playwright",
    "biome",
    "ruff",
    "mypy",
    "pyright",
    "curl",
    "grep",
    "rg",
    "jq",
    "sh",
    "bash",
    "docker",
    "kubectl",
    "terraform",
    "golangci-lint",
    "gofmt",
    "cmake",
    "ctest",
    "bazel",
    "zig",
    "bundle",
    "[",
    "[[",
    "!",
];
/// Programs whose names are also words: what follows them has to look like an argument.
const WORDS: &[&str] = &[
    "make", "go", "just", "task", "test", "node", "python", "ruby", "php", "swift", "mix", "rails", "rake", "java",
    "find", "ls", "cat", "diff", "git", "cd",
];
/// What is asked of such a program in one word.
const ACTIONS: &[&str] = &[
    "test",
    "tests",
    "check",
    "lint",
    "build",
    "vet",
    "run",
    "verify",
    "ci",
    "all",
    "typecheck",
    "fmt",
    "spec",
    "e2e",
];
/// Words that a sentence about a command has, and a command hardly ever.
const PROSE: &[&str] = &[
    "is",
    "are",
    "be",
    "should",
    "must",
    "shall",
    "will",
    "works",
    "work",
    "passes",
    "pass",
    "passed",
    "succeeds",
    "completes",
    "exits",
    "returns",
    "shows",
    "prints",
    "reports",
    "the",
    "a",
    "an",
    "and",
    "or",
    "with",
    "without",
    "that",
    "when",
    "green",
    "clean",
    "fails",
    "sure",
];

/// The command of an item with these members.
pub(super) fn of(members: &[Member]) -> Option<Vec<String>> {
    let plain = COMMANDS.iter().filter_map(|name| first_named(members, &[name]));
    let maybe = MAYBE.iter().filter_map(|name| first_named(members, &[name]));
    let mut plain = plain.filter_map(|member| argv(&member.value, true));
    plain.next().or_else(|| maybe.into_iter().find_map(|member| argv(&member.value, false)))
}

/// `sure`: the key says that it is a command.
fn argv(value: &Node, sure: bool) -> Option<Vec<String>> {
    match &value.kind {
        JsonKind::Text(text) => line(text, sure).map(shell),
        JsonKind::List(nodes) => {
            let words: Vec<&str> = nodes.iter().map(Node::text).collect::<Option<_>>()?;
            if words.is_empty() || words.len() > MOST_WORDS || words.iter().any(|word| word.len() > LONGEST) {
                return None;
            }
            if sure && words.iter().all(|word| !word.is_empty() && !word.contains(char::is_whitespace)) {
                return Some(words.into_iter().map(str::to_owned).collect());
            }
            let lines: Vec<String> = words.iter().map(|word| line(word, sure)).collect::<Option<_>>()?;
            Some(shell(lines.join(" && ")))
        }
        JsonKind::Object(members) => argv(&first_named(members, INNER)?.value, true),
        JsonKind::Null | JsonKind::Flag(_) | JsonKind::Number => None,
    }
}

fn shell(line: String) -> Vec<String> {
    vec!["sh".to_owned(), "-c".to_owned(), line]
}

/// The text as a command line, if it is one.
fn line(text: &str, sure: bool) -> Option<String> {
    let text = text.trim();
    let span = text.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')).filter(|inner| !inner.contains('`'));
    let (text, sure) = (span.unwrap_or(text).trim(), sure || span.is_some());
    let is_none = text.len() > LONGEST || NONE.contains(&text.to_ascii_lowercase().as_str());
    (!text.is_empty() && !is_none && !text.contains('\0') && (sure || is_plainly(text))).then(|| text.to_owned())
}

/// Is it plainly a command, in a place that may hold a sentence?
fn is_plainly(text: &str) -> bool {
    let ends_a_sentence = text.ends_with('.') && !text.ends_with("..");
    if ends_a_sentence || text.contains('\n') || unquoted(text).split_whitespace().any(|word| PROSE.contains(&word)) {
        return false;
    }
    let mut words = text.split_whitespace().skip_while(|word| is_assignment(word));
    let Some(program) = words.next() else { return false };
    let next = words.next();
    if program.starts_with("./") || program.starts_with("../") || PROGRAMS.contains(&program) {
        return true;
    }
    let is_argument = |word: &str| {
        ACTIONS.contains(&word) || word.starts_with('-') || word.contains(['.', '/', '_', ':', '=', '\\', '"', '\''])
    };
    WORDS.contains(&program) && next.is_some_and(is_argument)
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'))
}

/// The words outside quotes.
fn unquoted(text: &str) -> String {
    let mut quote = None;
    let outside = text.chars().filter(|c| match (quote, *c) {
        (None, '"' | '\'') => {
            quote = Some(*c);
            false
        }
        (Some(open), c) => {
            quote = Some(open).filter(|open| *open != c);
            false
        }
        (None, _) => true,
    });
    outside.collect()
}

#[cfg(test)]
mod tests {
    use super::super::json;
    use super::*;

    fn of_json(text: &str) -> Option<String> {
        of(json::read(text).unwrap().members().unwrap()).map(|argv| argv.join(" "))
    }

    #[test]
    fn what_is_plainly_a_command_is_one() {
        for text in [
            "npm test",
            "bun run check",
            "cargo test --locked",
            "go test ./...",
            "make check",
            "test -f Dockerfile && grep -q FROM Dockerfile",
            "PYTHONPATH=. python3 -m pytest tests/test_x.py",
            "cd ./api && go vet ./...",
            "./scripts/check.sh US-001",
            "curl -s http://localhost:3000/health | jq -e '.status == \"it is and works\"'",
            "python scripts/check.py",
            "`anything at all`",
        ] {
            assert!(line(text, false).is_some(), "{text}");
        }
    }

    #[test]
    fn a_sentence_is_none() {
        for text in [
            "config.json defines all agents (Scout, Builder)",
            "make sure the tests pass",
            "make well-known output",
            "test that the button works",
            "go to /settings and look",
            "npm test passes",
            "npm run build completes successfully",
            "curl localhost:3000 returns 200",
            "Typecheck passes",
            "Run the build command",
            "node should start",
            "python script runs",
            "cargo test.",
            "find out why",
            "",
            "npm test\nthen look",
        ] {
            assert_eq!(line(text, false), None, "{text}");
        }
    }

    #[test]
    fn keys_and_shapes() {
        for (text, expected) in [
            (r#"{"testCommand": "anything goes here"}"#, Some("sh -c anything goes here")),
            (r#"{"verification_cmd": "test -f Dockerfile"}"#, Some("sh -c test -f Dockerfile")),
            (r#"{"validationCommand": ["pytest", "tests/x.py", "-v"]}"#, Some("pytest tests/x.py -v")),
            (r#"{"validationCommand": ["npm test", "npm run lint"]}"#, Some("sh -c npm test && npm run lint")),
            (r#"{"verify": {"command": "make x"}}"#, Some("sh -c make x")),
            (r#"{"verify": "words", "test_command": "make y"}"#, Some("sh -c make y")),
            (r#"{"verification": "npm test"}"#, Some("sh -c npm test")),
            (r#"{"validation": ["npm test", "cargo check"]}"#, Some("sh -c npm test && cargo check")),
            (r#"{"validation": ["npm test", "the page loads"]}"#, None),
            (r#"{"verify": {"checks": ["it holds"], "status": "passed"}}"#, None),
            (r#"{"testCommand": "N/A", "verificationCommand": null}"#, None),
            (r#"{"test": true, "check": 7}"#, None),
            (r#"{"testCommand": [], "tests": ["npm test"]}"#, None),
        ] {
            assert_eq!(of_json(text).as_deref(), expected, "{text}");
        }
    }
}
