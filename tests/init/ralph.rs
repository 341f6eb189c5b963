//! A project in the layout of snarktank/ralph, as somebody left it: `nightloop init --from prd.json && nightloop run`,
//! and nothing else.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::Bench;

const PRD: &str = r#"{
  "project": "greeter",
  "branchName": "ralph/greeter",
  "description": "Greeter: says hello in a way people like",
  "userStories": [
    {
      "id": "US-003",
      "title": "Say goodbye",
      "description": "As a user I want to hear goodbye so that I know it is over.",
      "acceptanceCriteria": ["sh bye.sh prints Goodbye", "Typecheck passes"],
      "priority": 3,
      "passes": false,
      "notes": ""
    },
    {
      "id": "US-001",
      "title": "Have a check",
      "description": "As a developer I want a check.",
      "acceptanceCriteria": ["make check runs the tests"],
      "priority": 1,
      "passes": true,
      "notes": "done by hand",
      "estimate": 1.50
    },
    {
      "id": "US-002",
      "title": "Say hello",
      "description": "As a user I want to be greeted.",
      "acceptanceCriteria": ["sh hello.sh prints Hello", "Typecheck passes"],
      "priority": 2,
      "passes": false,
      "notes": ""
    }
  ]
}
"#;

const PROGRESS: &str = "# Ralph Progress Log
Started: Mon Nov  2 21:04:11 UTC 2026

## Codebase Patterns
- Scripts are plain sh, no bash
- Tests lie in tests/, one a script
---

## 2026-11-02 21:30 - US-001
- Added the Makefile
- **Learnings for future iterations:**
  - make check stops at the first failure
---
";

const AGENTS: &str = "# Agents\n\nBe brief.   \n\n* tabs\tstay, so do blanks at the end  \n";

const MAKEFILE: &str = ".PHONY: check\ncheck:\n\t@for t in tests/*.sh; do sh $$t || exit 1; done\n";

/// The declaration with the scripted model as its agent; everything else is as `init` wrote it.
pub fn rehearsed(declaration: &str) -> String {
    let model = "  builder: { backend: rehearsal, script: rehearsal.yaml }\n";
    let put = |line: &str| if line.starts_with("  builder: ") { model.to_owned() } else { format!("{line}\n") };
    declaration.lines().map(put).collect()
}

fn call(tool: &str, input: Value) -> Value {
    json!({"tool": tool, "input": input})
}

/// One attempt at a story: a script, which says this, and the test of the story.
fn attempt(id: &str, nth: u32, script: &str, says: &str, should: &str) -> Value {
    let test = format!("tests/{script}");
    let mut report = json!({
        "intent": format!("{script} says {should}."),
        "actions": [format!("Wrote {script} and its test.")],
        "files_touched": [script, test],
        "notes": format!("{script} prints {should}."),
        "learnings": [format!("{script} needs no arguments")],
    });
    if nth > 1 {
        report["retry"] = json!({"kind": "variable_changed", "what": "the word", "from": "another", "to": says});
    }
    json!({"purpose": "author", "subject": id, "nth": nth, "turns": [
        {"calls": [
            call("write_file", json!({"path": script, "content": format!("echo {says}\n")})),
            call("write_file", json!({"path": test, "content": format!("test \"$(sh {script})\" = {should}\n")})),
        ]},
        {"calls": [call("submit_author_report", report)]},
    ]})
}

/// What the critic says once the check passes.
fn verified(id: &str, script: &str) -> Value {
    let met = |criterion: &str| json!({"criterion": criterion, "met": true, "artifact": script, "why": "It is there."});
    json!({"purpose": "critic", "subject": id, "turns": [{"calls": [call("submit_critique", json!({
        "status": "VERIFIED",
        "can_further_iteration_help": false,
        "recommendation": "CONTINUE",
        "reason": "Both criteria hold.",
        "concerns": [],
        "judged": [met("1"), met("2")],
    }))]}]})
}

fn git(workspace: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"])
        .args(arguments)
        .current_dir(workspace)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn project() -> Bench {
    // The second story needs a second attempt: its first one breaks the check that passed before.
    let steps = [
        attempt("US-002", 1, "hello.sh", "Hello", "Hello"),
        verified("US-002", "hello.sh"),
        attempt("US-003", 1, "bye.sh", "Bye", "Goodbye"),
        attempt("US-003", 2, "bye.sh", "Goodbye", "Goodbye"),
        verified("US-003", "bye.sh"),
    ];
    let script = json!({"rehearsal": 1, "model": "rehearsal-1", "steps": steps});
    let bench = Bench::new()
        .file("prd.json", PRD)
        .file("progress.txt", PROGRESS)
        .file("AGENTS.md", AGENTS)
        .file("Makefile", MAKEFILE)
        .file("tests/none.sh", "true\n")
        .file("scripts/ralph/ralph.sh", "exec claude -p 'go on'\n");
    let workspace = &bench.workspace;
    git(workspace, &["init", "-q", "-b", "main"]);
    git(workspace, &["add", "-A"]);
    git(workspace, &["commit", "-q", "-m", "start"]);
    git(workspace, &["switch", "-q", "-c", "ralph/greeter"]);
    fs::write(workspace.join("tests/none.sh"), "exit 1 # half an idea\n").unwrap();
    git(workspace, &["stash", "push", "-q", "-m", "half an idea"]);
    git(workspace, &["commit", "-q", "--allow-empty", "-m", "feat: US-001 - Have a check"]);
    bench.file("rehearsal.yaml", script.to_string())
}

/// Everything that git could lose.
fn history(workspace: &Path) -> [String; 4] {
    [
        &["for-each-ref", "--format=%(refname) %(objectname)"][..],
        &["symbolic-ref", "HEAD"],
        &["stash", "list", "--format=%H %gs"],
        &["reflog", "--format=%H %gs"],
    ]
    .map(|arguments| git(workspace, arguments))
}

#[test]
fn an_existing_ralph_project_runs_with_two_commands() {
    let bench = project();
    let read = |name: &str| fs::read_to_string(bench.workspace.join(name)).unwrap();
    let before = history(&bench.workspace);

    let ended = bench.nightloop(&["init", "--from", "prd.json"]).expect(0);
    assert!(ended.stdout.contains("check: make check, inferred from Makefile"), "{}", ended.stdout);
    assert!(ended.stdout.contains("3 items, 1 pass; first item: US-002"), "{}", ended.stdout);
    assert_eq!([read("prd.json"), read("progress.txt"), read("AGENTS.md")], [PRD, PROGRESS, AGENTS]);

    fs::write(bench.workspace.join("loop.yaml"), rehearsed(&read("loop.yaml"))).unwrap();
    let ended = bench.nightloop(&["run", "--headless"]).expect(0);
    assert!(ended.stdout.contains("EXIT_CONVERGED"), "{}", ended.stdout);
    bench.nightloop(&["verify"]).expect(0);

    // Two lines of each of the two stories, and no other byte.
    let expected = PRD.replace("\"passes\": false", "\"passes\": true");
    let expected = expected.replacen("\"notes\": \"\"", "\"notes\": \"bye.sh prints Goodbye.\"", 1);
    assert_eq!(read("prd.json"), expected.replacen("\"notes\": \"\"", "\"notes\": \"hello.sh prints Hello.\"", 1));

    let progress = read("progress.txt");
    let new = progress.strip_prefix(PROGRESS).expect("what stood there stands there still");
    let [hello, bye] = ["- US-002\n", "- US-003\n"].map(|head| new.find(head).unwrap_or_else(|| panic!("{new}")));
    assert!(hello < bye && new.contains("hello.sh needs no arguments"), "{new}");
    let agents = read("AGENTS.md");
    assert!(agents.starts_with(AGENTS) && agents.len() > AGENTS.len(), "{agents}");
    let log = read("loop/log.txt");
    assert!(log.contains("US-003, attempt 1: not passed: check") && log.matches("[OK]").count() == 2, "{log}");

    assert_eq!(history(&bench.workspace), before, "git is as it was");
    let done: Vec<_> = bench.events().into_iter().filter(|(kind, _)| kind == "item.settled").collect();
    let order: Vec<&str> = done.iter().map(|(_, data)| data["item"].as_str().unwrap()).collect();
    assert_eq!(order, ["US-002", "US-003", "US-003"], "by priority, not by place");
}

/// Where people keep the file: found by the folder, and by its name.
#[test]
fn the_layouts_that_people_have_are_found() {
    for (place, named) in [
        ("prd.json", "."),
        ("scripts/ralph/prd.json", "."),
        ("scripts/ralph/prd.json", "scripts/ralph"),
        ("scripts/ralph/prd.json", "scripts/ralph/prd.json"),
        (".ralph/prd.json", "."),
        ("plans/prd.json", "./"),
        ("feature_list.json", "."),
    ] {
        let bench = Bench::new().file(place, PRD).file("Makefile", MAKEFILE);
        let ended = bench.nightloop(&["init", "--from", named]).expect(0);
        assert!(ended.stdout.contains(&format!("{place}: 3 items, 1 pass; first item: US-002")), "{}", ended.stdout);
        assert!(ended.stdout.contains("branch: ralph/greeter"), "{}", ended.stdout);
        let declared = fs::read_to_string(bench.workspace.join("loop.yaml")).unwrap();
        assert!(declared.contains(&format!("file: \"{place}\"")), "{declared}");
    }
    let bench = Bench::new().file("prd.json", PRD).file("plans/prd.json", PRD);
    let ended = bench.nightloop(&["init", "--from", "."]).expect(64);
    assert!(ended.stderr.contains("several files could be meant: prd.json, plans/prd.json"), "{}", ended.stderr);
    let ended = Bench::new().nightloop(&["init", "--from", "."]).expect(64);
    assert!(ended.stderr.contains("looked in scripts/ralph/ .ralph/"), "{}", ended.stderr);
    assert!(!bench.workspace.join("loop.yaml").exists());
}

/// In its own folder: what lies beside the file is gone on with there, and nothing is put at the top but the loop's own.
#[test]
fn a_project_with_its_loop_in_a_folder_runs_with_two_commands() {
    let bench = project();
    let at = |name: &str| bench.workspace.join(name);
    for name in ["prd.json", "progress.txt"] {
        fs::rename(at(name), at(&format!("scripts/ralph/{name}"))).unwrap();
    }
    bench.nightloop(&["init", "--from", "."]).expect(0);
    let declared = rehearsed(&fs::read_to_string(at("loop.yaml")).unwrap());
    fs::write(at("loop.yaml"), declared).unwrap();
    let ended = bench.nightloop(&["run", "--headless"]).expect(0);
    assert!(ended.stdout.contains("EXIT_CONVERGED"), "{}", ended.stdout);
    bench.nightloop(&["verify"]).expect(0);
    let progress = fs::read_to_string(at("scripts/ralph/progress.txt")).unwrap();
    assert!(progress.starts_with(PROGRESS) && progress.contains("hello.sh needs no arguments"), "{progress}");
    assert!(!at("progress.txt").exists() && !at("prd.json").exists());
    let items = fs::read_to_string(at("scripts/ralph/prd.json")).unwrap();
    assert_eq!(items.matches("\"passes\": true").count(), 3);
}
