//! Declarations that must be refused before anything is written.

use std::fs;

use crate::harness::{loop_yaml, run_dirs, tiny};
use crate::support::{Bench, Ended};

/// Refused with a usage error, and nothing is there that was not there before.
#[track_caller]
fn refused(bench: &Bench, what: &str) -> Ended {
    let names = |bench: &Bench| -> Vec<_> {
        let mut names: Vec<_> = fs::read_dir(&bench.workspace).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names(bench);
    let ended = bench.nightloop(&["run"]);
    assert!([64, 3].contains(&ended.code), "{what}: exit {}\n{}{}", ended.code, ended.stdout, ended.stderr);
    assert!(ended.stderr.starts_with("nightloop: "), "{what}: {}", ended.stderr);
    assert!(!ended.stderr.contains("panicked") && ended.stderr.len() < 2_000, "{what}: {}", ended.stderr);
    assert_eq!(names(bench), before, "{what}: something was written");
    assert!(run_dirs(bench).is_empty(), "{what}: a run was left behind");
    ended
}

/// (what, text to replace, replacement, words the error must hold).
type Change = (&'static str, &'static str, &'static str, &'static [&'static str]);

const CHANGES: &[Change] = &[
    ("unknown key", "name: small", "nmae: small", &["loop.yaml:2:", "nmae", "name"]),
    ("unknown nested key", "max_iterations: 5", "max_iteration: 5", &["loop.yaml:10:", "max_iteration"]),
    ("a float", "R_p: \"1e-4\"", "R_p: 0.0001", &["loop.yaml:8:", "R_p"]),
    ("too small", "R_p: \"1e-4\"", "R_p: \"1e-40\"", &["loop.yaml:8:"]),
    ("a negative R_p", "R_p: \"1e-4\"", "R_p: \"-1\"", &["loop.yaml:8:"]),
    ("an unknown certificate", "[EXACT]", "[EXCAT]", &["loop.yaml:7:", "EXCAT"]),
    ("an unknown playbook", "name: small", "playbook: swram", &["loop.yaml:2:", "swram"]),
    ("an unknown rung", "rung_target: 641", "rung_target: 642", &["loop.yaml:9:", "642"]),
    ("a duplicate key", "name: small", "name: small\nname: large", &["name"]),
    ("a duplicate criterion", "id: two", "id: one", &["one"]),
    ("an empty check", "[\"sh\", \"check.sh\", \"one\"]", "[]", &["loop.yaml:5:"]),
    ("a hostile criterion id", "id: two", "id: \"../../two\"", &["loop.yaml:6:"]),
    ("no document", "spec: \"2.0\"", "--- \nspec: \"2.0\"\n--- \nspec: \"2.0\"", &["loop.yaml"]),
    ("an unknown spec", "spec: \"2.0\"", "spec: \"3.0\"", &["loop.yaml:1:"]),
];

#[test]
fn a_wrong_word_is_named_with_its_line() {
    for (what, from, to, words) in CHANGES {
        let text = loop_yaml().replacen(from, to, 1);
        assert_ne!(text, loop_yaml(), "{what}: nothing was changed");
        let ended = refused(&tiny().file("loop.yaml", text), what);
        for word in *words {
            assert!(ended.stderr.contains(word), "{what}: no `{word}` in {}", ended.stderr);
        }
    }
}

#[test]
fn empty_criteria_need_information() {
    let text = loop_yaml();
    let criteria = text.find("acceptance_criteria").unwrap()..text.find("halting_certificates").unwrap();
    let text = [&text[..criteria.start], "acceptance_criteria: []\n", &text[criteria.end..]].concat();
    let ended = refused(&tiny().file("loop.yaml", text), "empty criteria");
    assert_eq!(ended.code, 3);
    assert!(ended.stderr.contains("loop.yaml:4"), "{}", ended.stderr);
}

#[test]
fn hostile_files_are_refused_quickly() {
    let deep = format!("goal: {}{}", "[".repeat(5_000), "]".repeat(5_000));
    let block: String = (0..5_000).map(|depth| format!("{}a:\n", " ".repeat(depth % 190))).collect();
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..12 {
        let again = vec![format!("*a{}", n - 1); 10].join(", ");
        bomb.push_str(&format!("a{n}: &a{n} [{again}]\n"));
    }
    let cases: [(&str, Vec<u8>); 7] = [
        ("5,000 deep", deep.into_bytes()),
        ("5,000 lines of nesting", block.into_bytes()),
        ("an alias bomb", bomb.into_bytes()),
        ("a bomb in a known key", b"goal: &a [*a, *a]\n".to_vec()),
        ("not UTF-8", b"goal: \"\xff\xfe\"\n".to_vec()),
        ("binary", vec![0; 4_096]),
        ("a list", b"- a\n- b\n".to_vec()),
    ];
    for (what, bytes) in cases {
        let bench = tiny().file("loop.yaml", bytes);
        refused(&bench, what);
    }
}

#[test]
fn a_huge_file_is_not_read() {
    let bench = tiny();
    fs::File::create(bench.workspace.join("loop.yaml")).unwrap().set_len(100 << 20).unwrap();
    let ended = refused(&bench, "100 MB");
    assert!(ended.stderr.contains("104857600"), "{}", ended.stderr);
}

#[test]
fn a_missing_file_has_a_hint() {
    let bench = tiny();
    fs::remove_file(bench.workspace.join("loop.yaml")).unwrap();
    let ended = refused(&bench, "missing");
    assert!(ended.stderr.contains("nightloop init"), "{}", ended.stderr);
}

#[test]
fn a_directory_is_no_declaration() {
    let bench = tiny();
    fs::remove_file(bench.workspace.join("loop.yaml")).unwrap();
    fs::create_dir(bench.workspace.join("loop.yaml")).unwrap();
    let ended = refused(&bench, "a directory");
    assert!(ended.stderr.contains("not a file"), "{}", ended.stderr);
}

#[test]
fn a_fifo_is_not_waited_for() {
    let bench = tiny();
    let path = bench.workspace.join("loop.yaml");
    fs::remove_file(&path).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    if made.is_ok_and(|status| status.success()) {
        refused(&bench, "a fifo");
    } else {
        println!("skipped: mkfifo is not here");
    }
}

#[test]
fn a_wrong_script_leaves_no_run_behind() {
    let bench = tiny();
    fs::remove_file(bench.workspace.join("rehearsal.yaml")).unwrap();
    let ended = refused(&bench, "no script");
    assert!(ended.stderr.contains("rehearsal.yaml"), "{}", ended.stderr);
    let script = "rehearsal: 1\nsteps:\n  - role: scout\n    truns: []\n";
    let ended = refused(&tiny().file("rehearsal.yaml", script), "a script with an unknown key");
    assert!(ended.stderr.contains("rehearsal.yaml:4") && ended.stderr.contains("truns"), "{}", ended.stderr);
    refused(&tiny().file("rehearsal.yaml", b"\xff\xfe"), "a script that is not UTF-8");
}

#[test]
fn a_missing_key_leaves_no_run_behind() {
    let agent = "{ backend: anthropic, model: claude-sonnet-5-5 }";
    let text = loop_yaml().replace("{ backend: rehearsal, script: rehearsal.yaml }", agent);
    let ended = refused(&tiny().file("loop.yaml", text), "no key");
    assert!(ended.stderr.contains("ANTHROPIC_API_KEY"), "{}", ended.stderr);
}
