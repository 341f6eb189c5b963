//! What passes is committed where that is wanted, and nowhere else.

use std::process::Command;

use serde_json::json;

use crate::case::{Case, Ran};
use crate::support::Bench;

fn git(bench: &Bench, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=someone", "-c", "user.email=someone@example.org"];
    let output = Command::new("git").args(identity).args(arguments).current_dir(&bench.workspace).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// On a branch of somebody's own, with everything committed.
fn in_a_repository(case: Case) -> Bench {
    let bench = case.written();
    git(&bench, &["init", "-q", "-b", "ralph/small"]);
    git(&bench, &["add", "-A"]);
    git(&bench, &["commit", "-q", "-m", "start"]);
    bench
}

fn run(bench: Bench) -> Ran {
    let ended = bench.nightloop(&["run", "--headless"]);
    Ran { bench, ended }
}

#[test]
fn each_item_that_passes_is_a_commit_on_a_branch_of_the_run() {
    let bench = in_a_repository(Case::prd(&["A", "B"]).set("git", json!({"mode": "branch"})));
    let start = git(&bench, &["rev-parse", "HEAD"]);
    let ran = run(bench).converged();
    let subjects = git(&ran.bench, &["log", "--format=%s"]);
    let items: Vec<&str> = subjects.lines().filter(|line| line.contains(" - Item ")).collect();
    assert_eq!(items.len(), 2, "{subjects}");
    assert!(items[0].ends_with("B - Item B") && items[1].ends_with("A - Item A"), "{subjects}");
    assert_eq!(git(&ran.bench, &["rev-parse", "ralph/small"]), start, "the branch of somebody else stays");
    let files = git(&ran.bench, &["show", "--name-only", "--format=", "HEAD"]);
    assert!(files.contains("b.txt") && files.contains("prd.json") && files.contains("progress.txt"), "{files}");
}

#[test]
fn without_it_the_repository_is_left_alone() {
    let bench = in_a_repository(Case::prd(&["A"]));
    let before = git(&bench, &["rev-parse", "HEAD"]);
    let ran = run(bench).converged();
    assert_eq!(git(&ran.bench, &["rev-parse", "HEAD"]), before);
    assert_eq!(git(&ran.bench, &["branch", "--show-current"]).trim(), "ralph/small");
    assert_eq!(git(&ran.bench, &["stash", "list"]), "");
}

#[test]
fn a_tree_with_changes_of_somebody_is_not_worked_in() {
    let bench = in_a_repository(Case::prd(&["A"]).file("mine.txt", "1\n").set("git", json!({"mode": "branch"})));
    std::fs::write(bench.workspace.join("mine.txt"), "2\n").unwrap();
    let ran = run(bench).ends(1).is("EXIT_BLOCKED", "ENVIRONMENT_MISMATCH");
    assert!(ran.detail().contains("`prd.git.allow_dirty: true`"), "{}", ran.detail());
    assert!(ran.detail().starts_with("git: "), "{}", ran.detail());
    assert!(ran.chosen().is_empty() && ran.text("mine.txt") == "2\n");
}
