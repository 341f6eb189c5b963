//! The command that shows whether a project is sound, told from the files that lie in it.
//!
//! Role: which command a project's own files suggest. Not its role: reading them, running it, deciding that it is right:
//! that is for a person, so every command says where it comes from.
//! Invariants: one kind of project answers, the most explicit first; nothing that starts an agent or waits for changes
//! is ever suggested; a file that cannot be read as what it claims to be suggests nothing.

use serde_json::Value;

/// What lies in the folder of a project, as far as it says how to check it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Clues {
    /// .pre-commit-config.yaml
    pub pre_commit: bool,
    /// The text of the Makefile.
    pub makefile: Option<String>,
    /// Cargo.toml
    pub cargo: bool,
    /// The text of package.json.
    pub package_json: Option<String>,
    /// pyproject.toml, pytest.ini or setup.cfg
    pub python: bool,
    /// go.mod
    pub go: bool,
}

/// A command that was not declared but told from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inferred {
    /// For the criterion.
    pub id: &'static str,
    pub argv: Vec<&'static str>,
    /// The file it comes from.
    pub from: &'static str,
}

impl Inferred {
    fn new(id: &'static str, argv: &[&'static str], from: &'static str) -> Self {
        Self { id, argv: argv.to_vec(), from }
    }

    /// The command in one line.
    pub fn command(&self) -> String {
        self.argv.join(" ")
    }

    pub fn is(&self, argv: &[String]) -> bool {
        self.argv == argv
    }
}

/// Scripts of package.json that check something, in the order in which they fail soonest.
const SCRIPTS: &[(&str, &[&str])] = &[
    ("typecheck", &["npm", "run", "typecheck"]),
    ("lint", &["npm", "run", "lint"]),
    ("test", &["npm", "run", "test"]),
];

/// The commands that the clues suggest; none where they suggest nothing.
pub fn infer(clues: &Clues) -> Vec<Inferred> {
    let one = |there: bool, id, argv: &[&'static str], from| there.then(|| Inferred::new(id, argv, from));
    let makefile = clues.makefile.as_deref().unwrap_or_default();
    let first = one(clues.pre_commit, "pre-commit", &["pre-commit", "run", "--all-files"], ".pre-commit-config.yaml")
        .or_else(|| one(has_target(makefile, "check"), "check", &["make", "check"], "Makefile"))
        .or_else(|| one(has_target(makefile, "test"), "test", &["make", "test"], "Makefile"))
        .or_else(|| one(clues.cargo, "test", &["cargo", "test"], "Cargo.toml"));
    if let Some(first) = first {
        return vec![first];
    }
    let scripts = npm(clues.package_json.as_deref().unwrap_or_default());
    if !scripts.is_empty() {
        return scripts;
    }
    // `python` is not everywhere; `python3` is, also in a virtual environment.
    one(clues.python, "test", &["python3", "-m", "pytest"], "the Python project")
        .or_else(|| one(clues.go, "test", &["go", "test", "./..."], "go.mod"))
        .into_iter()
        .collect()
}

/// Does the Makefile say how to make this? `check: build`, `lint check:`, but neither `check := x` nor `.PHONY: check`.
fn has_target(makefile: &str, target: &str) -> bool {
    makefile.lines().any(|line| {
        // A recipe starts with a tab, and a comment is no rule.
        let Some((names, rest)) = line.split_once(':').filter(|_| !line.starts_with(['\t', ' ', '#'])) else {
            return false;
        };
        let assigns = rest.trim_start_matches(':').starts_with('=');
        !assigns && names.split_whitespace().any(|name| name == target)
    })
}

/// The checking scripts of package.json that do something and end.
fn npm(package: &str) -> Vec<Inferred> {
    let package: Value = serde_json::from_str(package).unwrap_or_default();
    let usable = |name: &str| {
        let script = package["scripts"][name].as_str().map(str::trim).unwrap_or_default();
        // What `npm init` writes fails always; what watches never ends.
        !script.is_empty() && !script.contains("no test specified") && !script.contains("--watch")
    };
    let known = SCRIPTS.iter().filter(|(name, _)| usable(name));
    known.map(|(name, argv)| Inferred::new(name, argv, "package.json")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(clues: &Clues) -> Vec<String> {
        infer(clues).iter().map(Inferred::command).collect()
    }

    fn make(text: &str) -> Clues {
        Clues { makefile: Some(text.to_owned()), ..Clues::default() }
    }

    fn package(scripts: &str) -> Clues {
        Clues { package_json: Some(format!("{{\"scripts\": {scripts}}}")), ..Clues::default() }
    }

    /// Each kind of project beats all that come after it.
    #[test]
    fn the_most_explicit_file_answers() {
        let mut clues = Clues {
            pre_commit: true,
            makefile: Some("check:\n\ttrue\ntest:\n\ttrue\n".to_owned()),
            cargo: true,
            package_json: Some(r#"{"scripts": {"test": "x"}}"#.to_owned()),
            python: true,
            go: true,
        };
        assert_eq!(told(&clues), ["pre-commit run --all-files"]);
        clues.pre_commit = false;
        assert_eq!(told(&clues), ["make check"]);
        clues.makefile = Some("test:\n\ttrue\n".to_owned());
        assert_eq!(told(&clues), ["make test"]);
        clues.makefile = Some("all:\n\ttrue\n".to_owned());
        assert_eq!(told(&clues), ["cargo test"]);
        clues.cargo = false;
        assert_eq!(told(&clues), ["npm run test"]);
        clues.package_json = None;
        assert_eq!(told(&clues), ["python3 -m pytest"]);
        clues.python = false;
        assert_eq!(told(&clues), ["go test ./..."]);
        clues.go = false;
        assert_eq!(told(&clues), Vec::<String>::new());
    }

    #[test]
    fn a_target_is_a_rule_and_nothing_that_looks_like_one() {
        for text in ["check: build\n", "lint check:\n", "check::\n\ttrue\n", "check : x\n", ".PHONY: check\ncheck:\n"] {
            assert_eq!(told(&make(text)), ["make check"], "{text:?}");
        }
        for text in
            ["check := x\n", "check ::= x\n", ".PHONY: check\n", "# check: x\n", "\tcheck: x\n", "checks:\n", ""]
        {
            assert_eq!(told(&make(text)), Vec::<String>::new(), "{text:?}");
        }
    }

    #[test]
    fn every_script_that_checks_and_ends_is_run() {
        let all =
            package(r#"{"test": "vitest run", "lint": "eslint .", "typecheck": "tsc --noEmit", "dev": "next dev"}"#);
        assert_eq!(told(&all), ["npm run typecheck", "npm run lint", "npm run test"]);
        let none =
            package(r#"{"test": "echo \"Error: no test specified\" && exit 1", "lint": "eslint --watch", "x": 1}"#);
        assert_eq!(told(&none), Vec::<String>::new());
        for broken in ["", "{", "[]", "{\"scripts\": []}", "{\"scripts\": {\"test\": null}}"] {
            let clues = Clues { package_json: Some(broken.to_owned()), go: true, ..Clues::default() };
            assert_eq!(told(&clues), ["go test ./..."], "{broken}");
        }
    }
}
