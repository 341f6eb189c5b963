//! `nightloop run --goal … --check …`: a loop without a loop.yaml.
//!
//! Role: the declaration that these words stand for, as text that the ordinary parser reads, so that every rule of
//! loop.yaml holds for it. Not its role: starting the run, writing anything (`engine::host` writes a NORTHSTAR.md where
//! there is none, `evidence` the declaration).
//!
//! Invariants: what is read back is what was given, or nothing starts; a loop that could never succeed is refused here.

use std::path::Path;

use clap::Args;

use crate::engine::declaration::{self, Declaration};
use crate::engine::error::EngineError;
use crate::model::criterion::Proof;
use crate::model::loop_file::DEFAULT_CHECK_SECONDS;
use crate::model::safe::Safe;
use crate::workspace::plain;

use super::doctor::programs;
use super::init::agent::{self, Agent};

/// Beside it a goal would be a second declaration.
const LOOP_FILE: &str = "loop.yaml";
const NORTHSTAR: &str = "NORTHSTAR.md";

#[derive(Debug, Default, Args)]
#[group(skip)]
#[command(next_help_heading = "Without a loop.yaml")]
pub struct Options {
    /// What to reach; the loop is made of it and of the checks.
    #[arg(long, value_name = "TEXT", requires = "check", conflicts_with = "file")]
    goal: Option<String>,
    /// A command that exits 0 once the goal is reached. May be given several times.
    #[arg(long, value_name = "CMD", requires = "goal")]
    check: Vec<String>,
    /// Five iterations at the most; every check green.
    #[arg(long, requires = "goal", conflicts_with_all = ["strict", "security"])]
    fast: bool,
    /// Until the count of complaints is below 0.001; ten iterations at the most.
    #[arg(long, requires = "goal", conflicts_with = "security")]
    strict: bool,
    /// With the gates of rung 65537: a scanner, and the public interface before and after.
    #[arg(long, requires = "goal")]
    security: bool,
    /// The scanner for --security [default: `cargo audit`, where it can run offline].
    #[arg(long, value_name = "CMD", requires = "security")]
    scan: Option<String>,
    /// Prints the public interface, an item a line, for --security.
    #[arg(long, value_name = "CMD", requires = "security")]
    api: Option<String>,
}

/// The three invocations, and the plain one.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Usual,
    Fast,
    Strict,
    Security { scan: Vec<String>, api: Vec<String> },
}

impl Options {
    /// The declaration that the words stand for; `None`: there is no `--goal`, so loop.yaml counts.
    pub fn declaration(&self, here: &Path, agent: Option<&str>) -> Result<Option<Declaration>, EngineError> {
        let Some(goal) = &self.goal else { return Ok(None) };
        if is_there(here, LOOP_FILE)? {
            return Err(EngineError::usage(
                format!("--goal was given, and {} exists", here.join(LOOP_FILE).display()),
                "leave out --goal to run loop.yaml, or work in another directory (-C DIR)",
            ));
        }
        if goal.trim().is_empty() {
            return Err(EngineError::usage("the goal is empty", "say what to reach: --goal \"All tests pass\""));
        }
        let checks = self.check.iter().map(|check| words(check)).collect::<Result<Vec<_>, _>>()?;
        let own_northstar = is_there(here, NORTHSTAR)?;
        let agent = agent_line(here, agent)?;
        let text = text(goal, &checks, &self.kind(here)?, &agent, own_northstar);
        let mut declaration = declaration::stands_for(&text)?;
        same(&declaration, &checks)?;
        if !own_northstar {
            declaration.northstar = Some(northstar(goal));
            let note = "there is no NORTHSTAR.md: one is written, with the goal and a metric that follows the checks";
            declaration.notes.push(note.to_owned());
        }
        Ok(Some(declaration))
    }

    fn kind(&self, here: &Path) -> Result<Kind, EngineError> {
        if !self.security {
            return Ok(if self.fast {
                Kind::Fast
            } else if self.strict {
                Kind::Strict
            } else {
                Kind::Usual
            });
        }
        let needs = |what: &str, hint: &str| EngineError::usage(format!("--security needs {what}"), hint);
        let scan = match &self.scan {
            Some(command) => words(command)?,
            None => usual_scan(here).ok_or_else(|| {
                let hint = "name one that runs without a network: --scan \"CMD\" (for Rust: install cargo-audit and run \
                            it once, so that its advisories are here)";
                needs("a scanner, and none was found that can run here: without one rung 65537 is never reached", hint)
            })?,
        };
        let api = match &self.api {
            Some(command) => words(command)?,
            None => {
                let hint = "name it: --api \"CMD\" (an item a line; a line that is gone afterwards blocks)";
                return Err(needs("a command that prints the public interface", hint));
            }
        };
        Ok(Kind::Security { scan, api })
    }
}

/// The agent as loop.yaml declares it.
fn agent_line(here: &Path, named: Option<&str>) -> Result<String, EngineError> {
    let line = |agent: Agent| agent.line().unwrap_or_else(|| agent::USUAL.to_owned());
    let Some(named) = named else {
        let has_key = std::env::var_os("ANTHROPIC_API_KEY").is_some_and(|key| !key.is_empty());
        return match Agent::usual(has_key, |program| programs::find(program).is_ok()) {
            Agent::Anthropic if !has_key => Err(EngineError::usage(
                "no agent was found: ANTHROPIC_API_KEY is not set, and no known agent program is installed",
                "name one: --agent claude, or --agent with the command of an agent program",
            )),
            found => Ok(line(found)),
        };
    };
    if let Ok(known) = Agent::parse(named) {
        return Ok(line(known));
    }
    let argv = words(named)?;
    let program = argv.first().map_or("", String::as_str);
    let place = if program.contains('/') { here.join(program).display().to_string() } else { program.to_owned() };
    programs::find(&place).map_err(|why| {
        let known = Agent::parse("").err().unwrap_or_default();
        EngineError::usage(format!("the agent {program}: {why}"), format!("{known}, or a program that is installed"))
    })?;
    Ok(format!("{{ backend: command, command: {} }}", listed(&argv)))
}

fn is_there(here: &Path, name: &str) -> Result<bool, EngineError> {
    let kind = plain::kind(here, name);
    kind.map(|kind| kind.is_some())
        .map_err(|fault| EngineError::io("cannot look at", &here.join(name), fault.into_io()))
}

/// A command line as program and arguments. What only a shell understands is given to one.
fn words(command: &str) -> Result<Vec<String>, EngineError> {
    let wrong = |why: &str| EngineError::usage(format!("`{command}` is no command: {why}"), "quote it as for a shell");
    let split = shell_words::split(command).map_err(|_| wrong("a quote is not closed"))?;
    if split.is_empty() {
        return Err(wrong("it is empty"));
    }
    if needs_shell(command) { Ok(["sh", "-c", command].map(str::to_owned).to_vec()) } else { Ok(split) }
}

/// Does it hold anything outside of quotes that is more than words to a shell?
fn needs_shell(command: &str) -> bool {
    let (mut single, mut double, mut escaped) = (false, false, false);
    for c in command.chars() {
        match c {
            _ if escaped => escaped = false,
            '\'' if !double => single = !single,
            _ if single => {}
            '\\' => escaped = true,
            '"' => double = !double,
            '$' | '`' => return true,
            _ if double => {}
            '|' | '&' | ';' | '<' | '>' | '(' | ')' | '*' | '?' | '[' | '{' | '~' | '#' | '!' | '\n' => return true,
            _ => {}
        }
    }
    // An assignment in front is no program.
    command.split_whitespace().next().is_some_and(|first| first.contains('='))
}

/// `cargo audit`, where its advisories are on this machine: checks have no network.
fn usual_scan(here: &Path) -> Option<Vec<String>> {
    let cargo = std::env::var_os("CARGO_HOME").map(std::path::PathBuf::from);
    let cargo = cargo.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")))?;
    let known = is_there(here, "Cargo.lock").unwrap_or(false)
        && programs::find("cargo-audit").is_ok()
        && cargo.join("advisory-db").is_dir();
    known.then(|| ["cargo", "audit", "--no-fetch"].map(str::to_owned).to_vec())
}

/// The text of the declaration.
fn text(goal: &str, checks: &[Vec<String>], kind: &Kind, agent: &str, own_northstar: bool) -> String {
    let mut text = format!(
        "# The loop that `nightloop run --goal` stands for. As loop.yaml in the project it can be run again.\n\
         spec: \"2.0\"\nname: goal\ngoal: {}\nacceptance_criteria:\n",
        quoted(Safe::line(goal.trim()).as_str())
    );
    for (index, argv) in checks.iter().enumerate() {
        let said = format!("`{}` exits 0.", Safe::line(&shown(argv)));
        text.push_str(&format!(
            "  - id: check-{}\n    text: {}\n    check: {}\n    timeout_seconds: {DEFAULT_CHECK_SECONDS}\n",
            index + 1,
            quoted(&said),
            listed(argv)
        ));
    }
    let seconds = DEFAULT_CHECK_SECONDS.saturating_mul(u64::try_from(checks.len()).unwrap_or(1));
    text.push_str(&format!(
        "residual:   # lines that complain, and one for each check that fails; 0 once all are green\n  \
         metric: \"complaints of the checks\"\n  command: {}\n  timeout_seconds: {seconds}\n",
        listed(&residual(checks))
    ));
    text.push_str(&match kind {
        Kind::Usual => "halting_certificates: [EXACT]\nprofile: strict\nbudget: { max_iterations: 10 }\n".to_owned(),
        Kind::Fast => "halting_certificates: [EXACT]\nprofile: fast\nbudget: { max_iterations: 5 }\n".to_owned(),
        Kind::Strict => "halting_certificates: [CONVERGED, DIVERGED]\nR_p: \"1e-3\"\nrung_target: 274177\n\
                         profile: strict\nbudget: { max_iterations: 10 }\n"
            .to_owned(),
        Kind::Security { scan, api } => format!(
            "halting_certificates: [EXACT]\nrung_target: 65537\ntouches: [security, api]\nprofile: strict\n\
             budget: {{ max_iterations: 10 }}\nsecurity: {{ command: {} }}\napi_surface: {{ command: {} }}\n",
            listed(scan),
            listed(api)
        ),
    });
    // A metric of one's own follows the residual by default: its id is not known here.
    let links = if own_northstar { "" } else { ", links: { residual: [vc-1] }" };
    text.push_str(&format!("northstar: {{ file: {NORTHSTAR}{links} }}\nagents:\n  builder: {agent}\n"));
    text
}

/// A number that shrinks as checks turn green and complaints go away, so that slow work is seen as work.
fn residual(checks: &[Vec<String>]) -> Vec<String> {
    let mut script = "n=0".to_owned();
    for argv in checks {
        script.push_str(&format!(
            "; out=$({} 2>&1) || n=$((n + 1 + $(printf '%s' \"$out\" | grep -ciE 'fail|error')))",
            shell_words::join(argv)
        ));
    }
    script.push_str("; echo $n");
    vec!["sh".to_owned(), "-c".to_owned(), script]
}

/// The command as it was typed, or near to it.
fn shown(argv: &[String]) -> String {
    match argv {
        [sh, c, script] if sh == "sh" && c == "-c" => script.clone(),
        argv => shell_words::join(argv),
    }
}

/// A Northstar for a loop that has none: the goal, and what the residual moves.
fn northstar(goal: &str) -> String {
    format!(
        "# NORTHSTAR: what this project is for\n\n{}\n\n\
         | id   | Metric                     | Current | Target |\n\
         |------|----------------------------|---------|--------|\n\
         | vc-1 | share of checks that pass  | 0%      | 100%   |\n",
        Safe::line(goal.trim())
    )
}

/// Text as a YAML scalar: what JSON escapes, YAML reads alike.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn listed(argv: &[String]) -> String {
    format!("[{}]", argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(", "))
}

/// YAML has its own idea of some characters: what would be read otherwise is not run.
fn same(declaration: &Declaration, checks: &[Vec<String>]) -> Result<(), EngineError> {
    let read = declaration.file.criteria().into_iter().filter_map(|criterion| match criterion.proof {
        Proof::Check { argv, .. } => Some(argv),
        Proof::Judged | Proof::ExitGate | Proof::Items | Proof::Verified => None,
    });
    if read.eq(checks.iter().cloned()) {
        return Ok(());
    }
    Err(EngineError::usage(
        "a check holds characters that no declaration can hold",
        "put it into a script, and name that",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::budget::Profile;
    use crate::model::loop_file::{self, LoopFile};
    use crate::model::rung::Rung;
    use crate::model::{feasible, northstar};

    fn made(kind: &Kind, checks: &[&str]) -> LoopFile {
        let checks: Vec<Vec<String>> = checks.iter().map(|check| words(check).unwrap()).collect();
        let text = text("All: tests # pass", &checks, kind, r#"{ backend: command, command: ["a"] }"#, false);
        let file = loop_file::parse(&text, "loop.yaml").unwrap_or_else(|e| panic!("{e}\n{text}"));
        let metrics = northstar::parse(&super::northstar("x")).unwrap().metrics;
        assert_eq!(feasible::obstacles(&file, &metrics), [], "{text}");
        file
    }

    #[test]
    fn words_are_words_and_the_rest_is_for_a_shell() {
        for (command, argv) in [
            ("cargo test -q", &["cargo", "test", "-q"] as &[&str]),
            (r#"sh check.sh "a b" 'c|d'"#, &["sh", "check.sh", "a b", "c|d"]),
            (r"a\ b c", &["a b", "c"]),
            ("cargo test && cargo clippy", &["sh", "-c", "cargo test && cargo clippy"]),
            ("test -f *.txt", &["sh", "-c", "test -f *.txt"]),
            (r#"echo "$HOME""#, &["sh", "-c", r#"echo "$HOME""#]),
            ("CI=1 make test", &["sh", "-c", "CI=1 make test"]),
        ] {
            assert_eq!(words(command).unwrap(), argv, "{command}");
        }
        assert!(words("").is_err() && words("echo 'open").is_err());
    }

    #[test]
    fn the_three_invocations_are_declarations() {
        let fast = made(&Kind::Fast, &["test -f a"]);
        assert_eq!((fast.profile, fast.budget.max_iterations), (Profile::Fast, Some(5)));
        let strict = made(&Kind::Strict, &["test -f a", "test -f b | cat"]);
        assert_eq!((strict.certificates().len(), strict.r_p().1, strict.criteria().len()), (2, true, 2));
        let security = Kind::Security { scan: vec!["s".into()], api: vec!["p".into()] };
        assert_eq!(made(&security, &["x"]).rung_target(), Rung::Promoted);
        assert_eq!(made(&Kind::Usual, &["x"]).goal.as_deref(), Some("All: tests # pass"));
    }

    /// The number follows what the checks print, and is 0 exactly when all of them are green.
    #[test]
    fn the_residual_counts_complaints() {
        let residual = |checks: &[&str]| {
            let checks: Vec<Vec<String>> = checks.iter().map(|check| words(check).unwrap()).collect();
            let argv = super::residual(&checks);
            let out = std::process::Command::new(&argv[0]).args(&argv[1..]).output().unwrap();
            String::from_utf8(out.stdout).unwrap().trim().to_owned()
        };
        assert_eq!(residual(&["true", "echo no error"]), "0");
        assert_eq!(residual(&["false", "true"]), "1");
        assert_eq!(residual(&["echo FAILED a; echo failed b; exit 1", "false"]), "4");
    }
}
