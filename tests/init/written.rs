//! What `nightloop init` writes, what it leaves alone, and what it says when it cannot.

use std::fs;

use crate::support::Bench;

const PRD: &str = "{\"items\": [{\"id\": \"A\", \"title\": \"t\", \"passes\": false}]}\n";

fn read(bench: &Bench, name: &str) -> String {
    fs::read_to_string(bench.workspace.join(name)).unwrap()
}

#[test]
fn the_inferred_check_is_said_and_marked() {
    let bench = Bench::new().file("plans/prd.json", PRD).file("go.mod", "module x\n");
    let ended = bench.nightloop(&["init", "--from", "./plans/prd.json", "--agent", "claude"]).expect(0);
    assert!(ended.stdout.contains("plans/prd.json: 1 items, 0 pass; first item: A (t)"), "{}", ended.stdout);
    assert!(ended.stdout.contains("check: go test ./..., inferred from go.mod"), "{}", ended.stdout);
    let text = read(&bench, "loop.yaml");
    assert!(text.contains("# inferred from go.mod") && text.contains("check: [\"go\", \"test\", \"./...\"]"), "{text}");
    assert!(text.contains("file: \"plans/prd.json\"") && text.contains("command: [\"claude\"]"), "{text}");
}

/// The script that starts an agent is no check, and nothing is made up in its place.
#[test]
fn without_a_check_the_run_asks_for_one() {
    let bench = Bench::new().file("prd.json", PRD).file("scripts/ralph/loop.sh", "claude -p go\n");
    let ended = bench.nightloop(&["init", "--from", "prd.json"]).expect(0);
    assert!(ended.stdout.contains("check: none was found"), "{}", ended.stdout);
    let text = crate::ralph::rehearsed(&read(&bench, "loop.yaml"));
    assert!(!text.contains("ralph"), "{text}");
    let bench = bench.file("loop.yaml", text).file("rehearsal.yaml", "rehearsal: 1\nmodel: m\nsteps: []\n");
    let ended = bench.nightloop(&["run", "--headless"]).expect(3);
    assert!(
        ended.stdout.contains("EXIT_NEED_INFO") && ended.stdout.contains("no check is declared"),
        "{}",
        ended.stdout
    );
}

#[test]
fn what_is_no_prd_is_refused_with_its_place() {
    let bench = Bench::new().file("prd.json", "{\"items\": [\n  {\"id\": \"A\", \"title\": \"t\"},\n  {\"id\": \"B\", \"title\": \"u\", \"passes\": false}\n]}\n");
    let ended = bench.nightloop(&["init", "--from", "prd.json"]).expect(64);
    assert!(ended.stderr.contains("prd.json:2:3: item A") && ended.stderr.contains("hint:"), "{}", ended.stderr);
    for (file, said) in [("none.json", "none.json does not exist"), ("../prd.json", "not a file in")] {
        let ended = bench.nightloop(&["init", "--from", file]).expect(64);
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
    }
    bench.nightloop(&["init", "--from", "prd.json", "--template", "prd"]).expect(64);
    assert!(!bench.workspace.join("loop.yaml").exists());
}

#[test]
fn nothing_that_is_there_is_overwritten() {
    let bench = Bench::new().file("loop.yaml", "goal: mine\n").file("prd.json", PRD);
    for arguments in [&["init", "--from", "prd.json"][..], &["init", "--template", "prd"], &["init"]] {
        let ended = bench.nightloop(arguments).expect(64);
        assert!(ended.stderr.contains("already exists"), "{}", ended.stderr);
    }
    assert_eq!(read(&bench, "loop.yaml"), "goal: mine\n");
    fs::remove_file(bench.workspace.join("loop.yaml")).unwrap();
    bench.nightloop(&["init", "--template", "prd"]).expect(0);
    assert_eq!(read(&bench, "prd.json"), PRD, "a PRD that is there stays");
}

#[test]
fn templates_bring_what_they_read() {
    for (template, files) in [
        ("prd", &["loop.yaml", "prd.json"][..]),
        ("review", &["loop.yaml"]),
        ("green-tests", &["NORTHSTAR.md", "loop.yaml"]),
    ] {
        let bench = Bench::new();
        bench.nightloop(&["init", "--template", template]).expect(0);
        let mut names: Vec<_> =
            fs::read_dir(&bench.workspace).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, files, "{template}");
    }
}
