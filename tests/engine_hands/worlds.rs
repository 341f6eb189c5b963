//! The loops that the traps are set in: small ones of three playbooks that succeed where nothing is in their way.
//!
//! In the first iteration an agent's command waits until the test lets it go on; see [`crate::stage`].

use std::process::Command;

use serde_json::{Value, json};

use crate::support::Bench;
use crate::{passes, swarm, value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum World {
    Swarm,
    Prd,
    Value,
    /// The same in a repository, where the engine commits.
    PrdGit,
    ValueGit,
}

/// A file of the project; no agent has to do with it.
pub const PRODUCT: &str = "src/product.txt";
pub const HELD: &str = "held.wait";
pub const GO: &str = "go.wait";

/// What the agent runs itself once it goes on, if there is such a file.
pub const ACT: &str = "act.sh";

/// Waits for the test, but not for ever.
fn held() -> Value {
    let wait = format!("i=0; until [ -e {GO} ] || [ $i -ge 3000 ]; do i=$((i+1)); sleep 0.01; done");
    let script = format!("touch {HELD}; {wait}; test ! -e {ACT} || sh {ACT}");
    json!({"tool": "bash", "input": {"command": script}})
}

impl World {
    pub fn bench(self) -> Bench {
        match self {
            Self::Swarm => swarm(),
            Self::Prd => prd().written(),
            Self::Value => value_case().written(),
            Self::PrdGit => repository(prd().set("git", json!({"mode": "branch"})).written()),
            Self::ValueGit => repository(value_case().written()),
        }
    }

    /// What an earlier run has made goes away, so that there is something to do again.
    pub fn undo(self, bench: &Bench) {
        let made: &[&str] = match self {
            Self::Swarm => &["a", "b", "src/metric"],
            _ => &[],
        };
        for name in made {
            let _ = std::fs::remove_file(bench.workspace.join(name));
        }
    }
}

/// What follows a call that was cut in the same message is not executed: it is held in a message of its own.
fn swarm() -> Bench {
    let wait = json!({"calls": [swarm::write("src/metric", "1\n"), held()]});
    let work = json!({"calls": [swarm::write("a", "1\n"), swarm::solver_report("Attempt 0.")]});
    let case = swarm::Case::new()
        .check("a", "test -f a")
        .check("b", "test -f b")
        .turns("solver", 0, json!([wait, work]))
        .solver(1, [swarm::write("b", "1\n")])
        .file(PRODUCT, "as it was\n");
    case.written()
}

/// The first attempt at an item fails, so that everything is written that is written about failures.
fn prd() -> passes::Case {
    let wrong = json!({"calls": [passes::write("a.txt", "wrong\n"), passes::report(None)]});
    let right = [passes::write("a.txt", "A\n"), passes::report(Some("A"))];
    let case = passes::Case::prd(&["A", "B"]).file(PRODUCT, "as it was\n");
    case.turns("author", Some("A"), Some(1), json!([{"calls": [held()]}, wrong])).author("A", Some(2), &right)
}

fn value_case() -> value::Case {
    let work = value::turns(&[&[held()], &[value::write("one.txt", "one\n")], &[value::complete("T1")]]);
    let case = value::Case::new().file(PRODUCT, "as it was\n");
    case.set("git", json!({"mode": "auto"})).on_subject("execute", "T1", work)
}

fn repository(bench: Bench) -> Bench {
    git(&bench, &["init", "-q", "-b", "mine"]);
    git(&bench, &["add", "-A"]);
    git(&bench, &["commit", "-q", "-m", "start"]);
    bench
}

/// The user's git, in a workspace that is not hostile yet.
pub fn git(bench: &Bench, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=someone", "-c", "user.email=someone@example.org"];
    let output = Command::new("git").args(identity).args(arguments).current_dir(&bench.workspace).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
