//! Evidence of earlier runs is moved, never lost and never overwritten.

use std::fs;

use crate::harness::{contents, run_dirs, run_id, tiny};

#[test]
fn a_second_run_archives_the_first_unchanged() {
    let bench = tiny();
    bench.nightloop(&["run"]).expect(0);
    let first = run_id(&bench);
    let loop_dir = bench.workspace.join("evidence/loop");
    let before = contents(&loop_dir);
    fs::remove_file(bench.workspace.join("one.txt")).unwrap();
    bench.nightloop(&["run"]).expect(0);
    let archive = bench.workspace.join("evidence/archive").join(&first);
    let after = contents(&archive);
    assert_eq!(before.len(), after.len());
    for (path, bytes) in &before {
        let moved = archive.join(path.strip_prefix(&loop_dir).unwrap());
        assert_eq!(after.get(&moved), Some(bytes), "{}", moved.display());
    }
    let runs = run_dirs(&bench);
    assert_eq!(runs.len(), 2);
    for run in runs {
        let name = run.file_name().unwrap().to_str().unwrap().to_owned();
        bench.nightloop(&["verify", &name]).expect(0);
    }
    // What lies in the archive is evidence still.
    fs::write(archive.join("plan.json"), "{}").unwrap();
    let found = bench.nightloop(&["verify", &first]).expect(1);
    assert!(found.stdout.contains("plan.json"), "{}", found.stdout);
}

#[test]
fn evidence_of_somebody_else_is_moved_and_never_overwritten() {
    let bench = tiny().file("evidence/loop/plan.json", "theirs").file("evidence/archive/unknown/plan.json", "older");
    bench.nightloop(&["run"]).expect(0);
    let archived = |name: &str| fs::read_to_string(bench.workspace.join("evidence/archive").join(name)).unwrap();
    assert_eq!(archived("unknown/plan.json"), "older");
    assert_eq!(archived("unknown-2/plan.json"), "theirs");
    bench.nightloop(&["verify"]).expect(0);
}

#[test]
fn a_manifest_that_names_a_path_is_not_followed() {
    let hostile = r#"{"loop_id": "../../outside", "artifacts": []}"#;
    let bench = tiny().file("evidence/loop/manifest.json", hostile);
    bench.nightloop(&["run"]).expect(0);
    assert!(!bench.workspace.join("outside").exists() && !bench.dir.path().join("outside").exists());
    let kept = bench.workspace.join("evidence/archive/unknown/manifest.json");
    assert_eq!(fs::read_to_string(kept).unwrap(), hostile);
}

#[test]
fn a_run_that_is_sealed_late_overwrites_nobody_and_is_found_where_it_went() {
    let bench = tiny();
    bench.nightloop(&["run"]).expect(0);
    let first = run_id(&bench);
    fs::remove_file(bench.state.join("runs").join(&first).join("seal.json")).unwrap();
    let another_run = || {
        fs::remove_file(bench.workspace.join("one.txt")).unwrap();
        bench.nightloop(&["run"]).expect(0);
    };
    another_run();
    bench.nightloop(&["resume", &first]).expect(0);
    for run in run_dirs(&bench) {
        bench.nightloop(&["verify", run.file_name().unwrap().to_str().unwrap()]).expect(0);
    }
    another_run();
    // The first run lies in the archive twice; the later copy is the one that counts.
    fs::write(bench.workspace.join("evidence/archive").join(&first).join("plan.json"), "{}").unwrap();
    bench.nightloop(&["verify", &first]).expect(0);
}
