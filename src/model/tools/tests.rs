//! What tools really print, and what is made of it; rules that no tool of ours prints.

use serde::Deserialize;

use super::*;
use crate::model::project_check::Clues;
use crate::model::signature::{Signature, plain};

/// An output as it came.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shown {
    tool: String,
    check: Vec<String>,
    exit: i32,
    class: Class,
    fixer: Option<String>,
    sensor: Option<String>,
    output: String,
}

fn shown() -> Vec<Shown> {
    serde_yaml::from_str(include_str!("../../../tests/fixtures/failure-outputs.yaml")).unwrap()
}

fn argv(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// A project that has every file that a fixer may ask for.
fn equipped() -> Clues {
    let mut clues = Clues::default();
    for name in ["Cargo.toml", "go.mod", ".pre-commit-config.yaml"] {
        clues.name(name);
    }
    for tool in ["eslint", "prettier", "biome", "standard"] {
        clues.name(format!("node_modules/.bin/{tool}"));
    }
    clues
}

#[test]
fn outputs_of_real_tools_have_their_class_their_fix_and_their_missing_program() {
    let mut wrong = Vec::new();
    for shown in shown() {
        let signature = Signature::of_check(&shown.check, shown.output.as_bytes());
        let text = plain(shown.output.as_bytes());
        let fixed = fix(&shown.check, &text, &equipped()).filter(|_| signature.class == Class::LintErrors);
        let absent = missing(&shown.check, Some(shown.exit), &text, &Clues::default());
        let found = (signature.class, fixed.map(|fix| fix.name), absent.map(|missing| missing.tool));
        let expected = (shown.class, shown.fixer, shown.sensor);
        if found != expected {
            wrong.push(format!("{} {:?}: {found:?}, not {expected:?}\n{}", shown.tool, shown.check, shown.output));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn enough_tools_are_known_by_what_they_print() {
    let shown = shown();
    let tools: std::collections::BTreeSet<&str> =
        shown.iter().filter_map(|shown| shown.tool.split([' ', ',']).next()).collect();
    assert!(shown.len() >= 100 && tools.len() >= 30, "{} outputs of {} tools", shown.len(), tools.len());
}

/// As these tools document it; none of them is where the outputs were made.
#[test]
fn outputs_by_the_book() {
    for (text, class) in [
        ("src/App.cs(3,9): error CS0246: The type or namespace name 'Foo' could not be found", Class::MissingImport),
        ("src/App.cs(3,9): error CS0029: Cannot implicitly convert type 'string' to 'int'", Class::TypeMismatch),
        ("/a/App.cs(3,9): error WHITESPACE: Fix whitespace formatting.", Class::LintErrors),
        ("[ERROR] /a/A.java:[3,9] cannot find symbol", Class::MissingImport),
        ("e: file:///a/A.kt:3:9 Unresolved reference: foo", Class::MissingImport),
        ("** (Mix) mix format failed due to --check-formatted.", Class::LintErrors),
        ("/a/a.swift:1:1: error: cannot find 'foo' in scope", Class::MissingImport),
        ("lib/a.rb:1:1: C: [Correctable] Style/StringLiterals: Prefer single-quoted strings", Class::LintErrors),
        ("a.go:3:2: Error return value is not checked (errcheck)", Class::LintErrors),
        ("open testdata/users.json: no such file or directory", Class::TestFixtureMissing),
        ("  /a/b.py:3:5 - error: \"foo\" is not assignable to \"int\" (reportArgumentType)", Class::TypeMismatch),
        ("error: lint errors: 3 problems", Class::LintErrors),
        ("panic: runtime error: index out of range", Class::Unknown),
        ("segmentation fault", Class::Unknown),
        ("see tests/fixtures/ for the data", Class::Unknown),
        ("TypeError: fetch failed", Class::Unknown),
    ] {
        assert_eq!(class_of(&[], text), class, "{text}");
    }
}

/// A check that is nothing but a linter fails as one, whatever it prints; a script that names one does not.
#[test]
fn a_command_says_it_where_its_words_do_not() {
    for (check, class) in [
        (&["yamllint", "."][..], Class::LintErrors),
        (&["npx", "--no-install", "oxlint"], Class::LintErrors),
        (&["uv", "run", "python", "-m", "mypy", "src"], Class::TypeMismatch),
        (&["sh", "-c", "CI=1 ./node_modules/.bin/eslint src"], Class::LintErrors),
        (&["cargo", "fmt", "--check"], Class::LintErrors),
        (&["cargo", "test"], Class::Unknown),
        (&["sh", "-c", "eslint . && vitest run"], Class::Unknown),
        (&["npm", "run", "eslint"], Class::Unknown),
        (&["echo", "eslint"], Class::Unknown),
        (&[], Class::Unknown),
    ] {
        assert_eq!(class_of(&argv(check), "it did not work"), class, "{check:?}");
    }
}

fn fixed(check: &[&str], output: &str, project: &Clues) -> Option<String> {
    fix(&argv(check), output, project).map(|fix| fix.command.join(" "))
}

#[test]
fn a_fix_is_the_check_itself_made_to_mend() {
    let ruff = "[*] 2 fixable with `--fix`.";
    let none = Clues::default();
    for (check, output, command) in [
        (&["ruff", "check", "src"][..], ruff, "ruff check --fix src"),
        (&["uv", "run", "ruff", "check", "src"], ruff, "uv run ruff check --fix src"),
        (&["python3", "-m", "ruff", "check"], ruff, "python3 -m ruff check --fix"),
        (&["sh", "-c", "ruff check src"], ruff, "ruff check --fix src"),
        (&["black", "--check", "."], "would reformat a.py", "black ."),
        (&["make", "check"], ruff, "ruff check --fix ."),
        // What a shell would expand is not repeated.
        (&["sh", "-c", "ruff check $FILES"], ruff, "ruff check --fix ."),
    ] {
        assert_eq!(fixed(check, output, &none).as_deref(), Some(command), "{check:?}");
    }
    let mut cargo = Clues::default();
    cargo.name("Cargo.toml");
    let diff = "Diff in /a/src/lib.rs:1:";
    assert_eq!(fixed(&["cargo", "fmt", "--all", "--", "--check"], diff, &cargo).as_deref(), Some("cargo fmt --all"));
    assert_eq!(fixed(&["cargo", "fmt", "--check"], diff, &none), None, "no Rust project");
}

/// What the project does not have is not run: an agent has to look.
#[test]
fn a_fix_is_started_as_the_project_starts_its_tools() {
    let eslint = "  3 errors and 0 warnings potentially fixable with the `--fix` option.";
    let mut project = Clues::default();
    assert_eq!(fixed(&["npm", "run", "lint"], eslint, &project), None);
    project.name("node_modules/.bin/eslint");
    assert_eq!(fixed(&["npm", "run", "lint"], eslint, &project).as_deref(), Some("node_modules/.bin/eslint --fix ."));
    for (name, command) in [
        ("pdm.lock", "pdm run ruff check --fix ."),
        ("poetry.lock", "poetry run ruff check --fix ."),
        ("uv.lock", "uv run ruff check --fix ."),
        (".venv/bin/ruff", ".venv/bin/ruff check --fix ."),
    ] {
        project.name(name);
        assert_eq!(
            fixed(&["make", "lint"], "[*] 1 fixable with the `--fix` option.", &project).as_deref(),
            Some(command)
        );
    }
}

/// An output names a tool; it never names the command.
#[test]
fn no_word_of_an_output_becomes_a_command() {
    let evil = "would reformat a.py; curl evil\n[*] 1 fixable with `--fix`; rm -rf .\n> ruff check --fix $(evil)";
    assert_eq!(fixed(&["make", "check"], evil, &Clues::default()).as_deref(), Some("ruff check --fix ."));
}

fn absent(check: &[&str], code: i32, output: &str, project: &Clues) -> Option<(String, String)> {
    missing(&argv(check), Some(code), output, project).map(|missing| (missing.tool, missing.install))
}

#[test]
fn a_missing_program_is_told_with_what_installs_it() {
    let node = |lock: &str, package: &str| {
        let mut clues = Clues::default();
        clues.keep("package.json", package.to_owned());
        clues.name(lock);
        clues
    };
    let declared = r#"{"devDependencies": {"vitest": "^3"}, "scripts": {"test": "vitest run"}}"#;
    let vitest = "sh: 1: vitest: not found";
    for (lock, package, install) in [
        ("package-lock.json", declared, "npm install"),
        ("pnpm-lock.yaml", declared, "pnpm install"),
        ("yarn.lock", "{}", "yarn add -D vitest"),
        ("bun.lock", "{}", "bun add --dev vitest"),
        ("x", "{}", "npm install --save-dev vitest"),
    ] {
        let found = absent(&["npm", "test"], 127, vitest, &node(lock, package)).unwrap();
        assert_eq!(found, ("vitest".to_owned(), install.to_owned()));
    }
    let mut python = Clues::default();
    let pytest = "/usr/bin/python3: No module named pytest";
    let told = |clues: &Clues| absent(&["make", "check"], 2, pytest, clues).unwrap().1;
    assert_eq!(told(&python), "pip install pytest");
    python.keep("requirements-dev.txt", "pytest>=8\n".to_owned());
    assert_eq!(told(&python), "pip install -r requirements-dev.txt");
    python.name("uv.lock");
    assert_eq!(told(&python), "uv add --dev pytest");
    python.keep("pyproject.toml", "[dependency-groups]\ndev = [\"pytest\"]\n".to_owned());
    assert_eq!(told(&python), "uv sync --all-groups");
    let nextest = absent(&["cargo", "nextest", "run"], 101, "error: no such command: `nextest`", &python).unwrap();
    assert_eq!(nextest.1, "cargo install --locked cargo-nextest");
    let npx = r#"npm error npx canceled due to missing packages and no YES option: ["jest@30.5.2"]"#;
    assert_eq!(absent(&["npx", "jest"], 1, npx, &Clues::default()).unwrap().0, "jest");
    let unknown =
        absent(&["make", "check"], 2, "make: frobnicate: No such file or directory\nmake: *** [x] Error 127", &python);
    assert_eq!(unknown.unwrap().1, "install `frobnicate`, or correct the command that names it");
    assert_eq!(missing(&argv(&["tox"]), None, "", &python).unwrap().install, "uv add --dev tox");
}

/// Work that is to make the missing thing would never begin.
#[test]
fn what_the_work_is_to_make_is_not_missing() {
    let with = |name: &str, text: &str| {
        let mut clues = Clues::default();
        clues.keep(name, text.to_owned());
        clues
    };
    let none = Clues::default();
    for (code, output, project) in [
        (1, "/usr/bin/python3: No module named shop", &none),
        (1, "ModuleNotFoundError: No module named 'pytest'", &none),
        (1, "ModuleNotFoundError: No module named 'shop'", &none),
        (127, "sh: 1: ./check.sh: not found", &none),
        (127, "bash: tools/check.sh: No such file or directory", &none),
        (2, "make: ./tools/check.sh: No such file or directory\nmake: *** [Makefile:2: check] Error 127", &none),
        (2, "make: *** No rule to make target 'check'.  Stop.", &none),
        (1, "npm error Missing script: \"test\"", &none),
        (1, "Error: Cannot find module './add'", &none),
        (1, "Error: Cannot find module 'left-pad'", &none),
        (127, "sh: 1: source: not found", &none),
        // Not at the end of a search of programs: a test that says so.
        (1, "sh: 1: frobnicate: not found", &none),
        // Its own names.
        (127, "sh: 1: shop: not found", &with("pyproject.toml", "[project.scripts]\nshop = \"shop.cli:main\"\n")),
        (127, "sh: 1: shop: not found", &with("package.json", r#"{"bin": {"shop": "bin/shop.js"}}"#)),
        (127, "sh: 1: shop: not found", &with("Cargo.toml", "[package]\nname = \"shop\"\n")),
        (127, "sh: 1: shop: not found", &with("bin/shop", "")),
        (127, "sh: 1: eslint: not found", &with("package.json", r#"{"name": "eslint"}"#)),
    ] {
        assert_eq!(absent(&["make", "check"], code, output, project), None, "{output}");
    }
}
