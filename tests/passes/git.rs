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

/// A story that names a branch, and a repository on another one.
fn named(branch: &str, settings: &serde_json::Value, log: &[&str]) -> Bench {
    let text = json!({"branchName": branch, "userStories": [crate::case::item("A")]}).to_string();
    let bench = Case::prd(&["A"]).file("prd.json", &text).set("git", settings.clone()).written();
    git(&bench, &["init", "-q", "-b", "trunk"]);
    git(&bench, &["add", "-A"]);
    git(&bench, &["commit", "-q", "-m", log[0]]);
    log[1..].iter().for_each(|subject| drop(git(&bench, &["commit", "-q", "--allow-empty", "-m", subject])));
    bench
}

fn current(ran: &Ran) -> String {
    git(&ran.bench, &["branch", "--show-current"]).trim().to_owned()
}

#[test]
fn the_branch_that_the_items_name_is_made_and_committed_on_in_the_projects_words() {
    let bench = named("ralph/greeter", &json!({"mode": "branch"}), &["start", "feat: [US-000] - Begin"]);
    let start = git(&bench, &["rev-parse", "HEAD"]);
    let ran = run(bench).converged();
    assert_eq!(current(&ran), "ralph/greeter");
    assert_eq!(git(&ran.bench, &["rev-parse", "trunk"]), start);
    let subjects = git(&ran.bench, &["log", "--format=%s"]);
    assert!(subjects.lines().any(|line| line == "feat: [A] - Item A"), "{subjects}");
    assert!(ran.ended.stdout.contains("works on branch ralph/greeter"), "{}", ran.ended.stdout);
    // The next run goes on there, in words that are declared.
    let mut declared: serde_json::Value = serde_json::from_str(&ran.text("loop.yaml")).unwrap();
    declared["prd"]["commit"] = json!("work({id}): {title}");
    ran.put("loop.yaml", &declared.to_string());
    ran.put("a.txt", "gone\n");
    let text = json!({"branchName": "ralph/greeter", "userStories": [crate::case::item("A")]}).to_string();
    ran.put("prd.json", &text);
    git(&ran.bench, &["add", "-A"]);
    git(&ran.bench, &["commit", "-q", "-m", "again"]);
    let ran = run(ran.bench).converged();
    assert_eq!(current(&ran), "ralph/greeter");
    let subjects = git(&ran.bench, &["log", "--format=%s", "-n", "5"]);
    assert!(subjects.lines().any(|line| line == "work(A): Item A"), "{subjects}");
}

#[test]
fn a_branch_that_cannot_be_used_is_said() {
    // Off: one line, and nothing is touched.
    let ran = run(named("ralph/greeter", &json!({"mode": "off"}), &["start"])).converged();
    let said = "prd.json names the branch ralph/greeter; git is off, so the work stays on trunk";
    assert!(ran.ended.stdout.contains(said), "{}", ran.ended.stdout);
    assert_eq!(current(&ran), "trunk");
    // Protected, or no name for a branch: the run's own, and why.
    for (branch, why) in [("main", "it is a protected branch"), ("-x y", "git takes no such name")] {
        let ran = run(named(branch, &json!({"mode": "branch"}), &["start"])).converged();
        assert!(current(&ran).starts_with("nightloop/"), "{}", current(&ran));
        assert!(ran.ended.stdout.contains(why), "{}", ran.ended.stdout);
    }
    // It is at another commit: nothing is checked out over the work, and what to do is said.
    let bench = named("ralph/greeter", &json!({"mode": "branch"}), &["start"]);
    git(&bench, &["branch", "ralph/greeter"]);
    git(&bench, &["commit", "-q", "--allow-empty", "-m", "later"]);
    let there = git(&bench, &["rev-parse", "ralph/greeter"]);
    let ran = run(bench).ends(1).is("EXIT_BLOCKED", "ENVIRONMENT_MISMATCH");
    assert!(ran.detail().contains("`git switch ralph/greeter`") && ran.called().is_empty(), "{}", ran.detail());
    assert_eq!((current(&ran).as_str(), git(&ran.bench, &["rev-parse", "ralph/greeter"])), ("trunk", there));
}
