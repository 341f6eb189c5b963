//! A judge that an author changed, and what comes before its verdict: no flip, no entry, no commit; the next run knows.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::case::{Case, Ran, content, report, sh, write};

/// One item whose only judge is the project's check; the author does not do the work, but writes this.
struct Trick {
    check: Value,
    files: Vec<(&'static str, &'static str)>,
    author: (&'static str, &'static str),
}

const LOOK: &str = "#!/bin/sh\ngrep -q A a.txt\n";
const LOOK_JS: &str = "process.exit(require('fs').readFileSync('a.txt', 'utf8').includes('A') ? 0 : 1)\n";
const LINT_JS: &str = "const { rules } = require('../eslint.config.js')\n\
    const bad = !require('fs').readFileSync('a.txt', 'utf8').includes('A')\n\
    process.exit(rules.word === 'error' && bad ? 1 : 0)\n";

fn tricks() -> Vec<Trick> {
    let make = || json!(["make", "check"]);
    let mut tricks = vec![
        Trick {
            check: make(),
            files: vec![("Makefile", "check:\n\tgrep -q A a.txt\n")],
            author: ("Makefile", "check:\n\t@true\n"),
        },
        Trick {
            check: make(),
            files: vec![("Makefile", "check:\n\tsh check.sh\n"), ("check.sh", LOOK)],
            author: ("check.sh", "true\n"),
        },
        Trick {
            check: make(),
            files: vec![
                ("Makefile", "check:\n\tsh check.sh\n"),
                ("check.sh", "#!/bin/sh\nsh scripts/inner.sh\n"),
                ("scripts/inner.sh", LOOK),
            ],
            author: ("scripts/inner.sh", "true\n"),
        },
    ];
    if Command::new("npm").arg("--version").output().is_ok_and(|output| output.status.success()) {
        let package = r#"{"name": "x", "scripts": {"test": "node scripts/run-tests.js"}}"#;
        let files = || vec![("package.json", package), ("scripts/run-tests.js", LOOK_JS)];
        let test = || json!(["npm", "test"]);
        tricks.push(Trick { check: test(), files: files(), author: ("scripts/run-tests.js", "process.exit(0)\n") });
        let weak = r#"{"name": "x", "scripts": {"test": "true"}}"#;
        tricks.push(Trick { check: test(), files: files(), author: ("package.json", weak) });
        tricks.push(Trick {
            check: json!(["node", "tools/lint.js"]),
            files: vec![
                ("tools/lint.js", LINT_JS),
                ("eslint.config.js", "module.exports = { rules: { word: 'error' } }\n"),
            ],
            author: ("eslint.config.js", "module.exports = { rules: { word: 'off' } }\n"),
        });
    }
    tricks
}

fn case(trick: &Trick) -> Case {
    let mut case = Case::prd(&["A"]).without("prd").file("a.txt", "not yet\n");
    case.declared["acceptance_criteria"] =
        json!([{"id": "check", "text": "The check is green.", "check": trick.check}]);
    for (path, text) in &trick.files {
        case = case.file(path, text);
    }
    let (path, text) = trick.author;
    case.author("A", None, &[write(path, text), report(None)])
}

/// Nothing says that the item passes, and somebody was asked.
#[track_caller]
fn nothing_was_written(ran: &Ran, path: &str) {
    let asked = ran.asked();
    assert_eq!(asked.last().map(|(_, kind, _)| kind.as_str()), Some("tampering"), "{path}: {asked:?}");
    assert!(ran.passing().is_empty() && ran.flipped().is_empty(), "{path}: {}", ran.text("prd.json"));
    let progress = std::fs::read_to_string(ran.path("progress.txt")).unwrap_or_default();
    assert!(!progress.contains("- A"), "{path}: {progress}");
    assert!(ran.detail().contains(path), "{path} is named: {}", ran.detail());
}

#[test]
fn a_changed_judge_is_looked_at_before_anything_says_that_the_item_passes() {
    for trick in tricks() {
        let path = trick.author.0;
        let ran = case(&trick).run().waits();
        assert_eq!(ran.verdicts(), ["VERIFIED"], "{path}: the check was green");
        nothing_was_written(&ran, path);
        // Somebody begins anew, without an answer: what the run found is still what judges.
        let again = again(ran);
        assert_eq!(again.ended.code, 3, "{path}: {}", again.ended.stdout);
        assert!(again.ended.stdout.contains("tampering") && again.ended.stdout.contains(path), "{path}");
        let prd: Value = serde_json::from_str(&again.text("prd.json")).unwrap();
        assert!(crate::case::passing(&prd).is_empty(), "{path}: the next run believed the changed judge");
    }
}

/// A new run in the same workspace.
fn again(ran: Ran) -> Ran {
    Ran::of(ran.bench, &["run", "--headless"])
}

#[test]
fn without_a_sandbox_a_changed_judge_is_a_question_too() {
    let trick = &tricks()[1];
    let ran = case(trick).unconfined().run().waits();
    nothing_was_written(&ran, trick.author.0);
    assert_eq!(again(ran).ended.code, 3);
}

#[test]
fn a_rejected_judge_flips_nothing_and_an_accepted_one_flips() {
    let trick = &tricks()[0];
    let ran = case(trick).run().waits();
    let ran = ran.answer("d1", "reject").resume().ends(1);
    assert!(ran.detail().contains("GATE_TAMPERING"), "{}", ran.detail());
    assert!(ran.passing().is_empty() && !ran.path("progress.txt").metadata().is_ok_and(|m| m.len() > 80));
    assert_eq!(again(ran).ended.code, 3, "the next run asks about it, too");

    let ran = case(trick).run().waits().answer("d1", "accept").resume();
    assert_eq!(ran.passing(), ["A"], "{}", ran.ended.stdout);
}

fn git(workspace: &Path, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=someone", "-c", "user.email=someone@example.org"];
    let output = Command::new("git").args(identity).args(arguments).current_dir(workspace).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn nothing_is_committed_by_a_changed_judge() {
    let bench = case(&tricks()[0]).set("git", json!({"mode": "branch"})).written();
    for arguments in [&["init", "-q", "-b", "work"][..], &["add", "-A"], &["commit", "-q", "-m", "start"]] {
        git(&bench.workspace, arguments);
    }
    let ran = Ran::of(bench, &["run", "--headless"]).waits();
    nothing_was_written(&ran, "Makefile");
    let subjects = git(&ran.bench.workspace, &["log", "--all", "--format=%s"]);
    assert!(!subjects.contains("Item A"), "{subjects}");
}

/// The engine is killed after the judge was changed: there is no end at which it could be remembered.
#[test]
fn a_run_that_was_killed_leaves_its_judges_to_the_next_one_as_it_found_them() {
    let trick = &tricks()[0];
    let (path, text) = trick.author;
    let held = case(trick).author("A", None, &[write(path, text), crate::case::held(), report(None)]).start().hold();
    let bench = held.killed();
    case(trick).write_script(&bench);
    let again = Ran::of(bench, &["run", "--headless"]);
    assert_eq!(again.ended.code, 3, "{}", again.ended.stdout);
    assert!(again.ended.stdout.contains("tampering") && again.ended.stdout.contains(path), "{}", again.ended.stdout);
}

/// A switch of the branch is nobody's business but its owner's: it is told.
#[test]
fn an_agent_that_switches_the_branch_is_mentioned() {
    let author =
        [write("a.txt", "A\n"), sh("git switch -q -c elsewhere || git checkout -q -b elsewhere"), report(None)];
    let bench = Case::prd(&["A"]).unconfined().author("A", None, &author).critic(Some("A"), None, &[content("a.txt")]);
    let bench = bench.written();
    for arguments in [&["init", "-q", "-b", "work"][..], &["add", "-A"], &["commit", "-q", "-m", "start"]] {
        git(&bench.workspace, arguments);
    }
    let ran = Ran::of(bench, &["run", "--headless"]).converged();
    let words = "switched the repository from work to elsewhere";
    assert!(ran.ended.stdout.matches(words).count() >= 2, "in a line and at the end: {}", ran.ended.stdout);
    assert!(ran.report()["remarks"][0].as_str().unwrap().contains(words), "{}", ran.report());
}
