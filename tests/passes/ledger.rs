//! What the engine writes beside prd.json, and what it leaves as it was.

use serde_json::json;

use crate::case::{Case, report, write};

#[test]
fn the_log_keeps_fifty_lines_and_its_archive_the_rest() {
    let old: String = (0..55).map(|number| format!("old line {number}\n")).collect();
    let ran = Case::prd(&["A", "B"]).failing("B", 1).file("loop/log.txt", &old).author(
        "B",
        Some(2),
        &[write("b.txt", "B\n"), report(Some("the word"))],
    );
    let ran = ran.run().converged();
    let (log, archive) = (ran.text("loop/log.txt"), ran.text("loop/log.archive.txt"));
    assert_eq!(log.lines().count(), 50);
    let moved = |line: &&str| !line.starts_with("# moved out of the log (run ");
    let kept: String = format!("{archive}{log}").split_inclusive('\n').filter(moved).collect();
    assert!(kept.starts_with(&old), "nothing is lost, and in order: {kept}");
    for wanted in [
        "[OK] ",
        " A passes, attempt 1 (run ",
        "B, attempt 1: not passed: check of item B",
        " B passes, attempt 2 (run ",
    ] {
        assert!(log.contains(wanted), "{wanted}: {log}");
    }
    assert!(log.contains("\nSee loop/last_error.txt\n"));
}

#[test]
fn a_new_progress_file_has_a_head_and_blocks() {
    let ran = Case::prd(&["A", "B"]).run().converged();
    let progress = ran.text("progress.txt");
    let lines: Vec<&str> = progress.lines().collect();
    assert_eq!((lines[0], lines[2]), ("# Progress Log", "---"));
    assert!(lines[1].starts_with("Started: 20"), "{progress}");
    assert_eq!(lines.iter().filter(|line| line.starts_with("## 20") && line.contains(" - ")).count(), 2);
    assert!(
        progress.contains(
            "- Files changed: a.txt\n- **Learnings for future iterations:**\n  - Files are small here.\n---\n"
        )
    );
}

#[test]
fn a_progress_file_of_blocks_goes_on_in_blocks() {
    let old = "## Codebase Patterns\n- Use grep.\n---\n\n# Ralph Progress Log\nStarted: yesterday\n---\n\n## 2026-01-01 - US-0\n- Did it.\n---";
    let ran = Case::prd(&["A"]).file("progress.txt", old).run().converged();
    let progress = ran.text("progress.txt");
    let added = progress.strip_prefix(old).expect("what was there is there, byte for byte");
    assert!(added.starts_with("\n\n## 20") && added.contains(" - A\n- Do what is asked. (run "), "{added}");
    assert!(!added.contains("Progress Log"), "one head is enough: {added}");
}

#[test]
fn a_progress_file_of_lines_goes_on_in_lines() {
    let old = "# progress\n\n2026-02-01 | SHELL-001 | passes | tests are slow\n";
    let ran = Case::prd(&["A", "B"]).file("progress.txt", old).run().converged();
    let progress = ran.text("progress.txt");
    let added: Vec<&str> = progress.strip_prefix(old).unwrap().lines().collect();
    assert_eq!(added.len(), 4, "{added:?}");
    for (line, item) in [(added[1], "A"), (added[3], "B")] {
        assert!(
            line.starts_with("20") && line.contains(&format!(" | {item} | passes | Files are small here. (run ")),
            "{line}"
        );
    }
    assert_eq!((added[0], added[2]), ("", ""));
}

#[test]
fn words_that_were_there_stay_byte_for_byte() {
    let agents = "# My project\r\n\r\n- tabs\t, umlauts äöü\n\n<!-- mine -->\nno end of line";
    let progress = "free words\nwithout any style \u{1f600}";
    let ran = Case::prd(&["A"]).file("AGENTS.md", agents).file("progress.txt", progress).run().converged();
    assert!(ran.text("AGENTS.md").starts_with(agents));
    assert!(ran.text("progress.txt").starts_with(progress));
}

#[test]
fn a_ralph_project_keeps_its_shape() {
    // The layout of an existing project: its file, its progress, its AGENTS.md; nothing but these gets larger.
    let prd = json!({
        "project": "P", "branchName": "ralph/p", "description": "d",
        "userStories": [{"id": "US-001", "title": "t", "description": "As a user", "acceptanceCriteria": ["a"], "priority": 1,
            "passes": false, "notes": "kept"}],
    });
    let text = serde_json::to_string_pretty(&prd).unwrap();
    let case = Case::prd(&[]).file("prd.json", &text).author("US-001", None, &[write("a.txt", "A\n"), report(None)]);
    let ran = case.critic(Some("US-001"), None, &[crate::case::content("a.txt")]).run().converged();
    let now = ran.text("prd.json");
    let changed: Vec<(&str, &str)> = text.lines().zip(now.lines()).filter(|(before, after)| before != after).collect();
    assert_eq!(changed.len(), 2, "{changed:?}");
    assert_eq!(ran.prd()["userStories"][0]["notes"], "kept\nIt is in its file.");
    assert!(!now.ends_with('\n'), "no end of line was there");
}
