//! One run per workspace, whatever state directory it is driven from; and the two lie apart.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use nightloop::journal::FolderLock;
use nightloop::tool::process::{Marker, survivors};

use crate::harness::{
    Running, contents, files_below, run_id, single_iteration, tiny, tool_is_running, wait_until, with_script,
};
use crate::support::{Bench, Ended};

fn busy() -> (Bench, Running) {
    let bench =
        with_script(&single_iteration("until test -e go.log; do sleep 0.01; done")).file(".gitignore", "*.log\n");
    let engine = Running::start(bench.command(&["run"]));
    wait_until("the tool runs", || tool_is_running(&bench, "bash"));
    (bench, engine)
}

/// The same workspace with another state directory, by whatever path.
fn elsewhere(bench: &Bench, arguments: &[&str], state: &Path, workspace: &Path) -> Ended {
    let mut command = bench.command(arguments);
    command.env("NIGHTLOOP_STATE_DIR", state).current_dir(workspace).output().unwrap().into()
}

#[test]
fn another_state_directory_does_not_get_the_workspace() {
    let (bench, engine) = busy();
    let (state, link) = (bench.dir.path().join("other"), bench.dir.path().join("link"));
    symlink(&bench.workspace, &link).unwrap();
    for path in [bench.workspace.clone(), link, bench.workspace.join("../work")] {
        let refused = elsewhere(&bench, &["run"], &state, &path).expect(73);
        let owner = format!("pid {}", engine.0.id());
        assert!(refused.stderr.contains(&owner), "{} does not name {owner}", refused.stderr);
        assert!(refused.stderr.contains("hint:"), "{}", refused.stderr);
    }
    assert!(!state.join("runs").exists(), "a refused run leaves nothing behind");
    fs::write(bench.workspace.join("go.log"), "").unwrap();
    let (code, said) = engine.end();
    assert_eq!(code, 0, "{said}");
    bench.nightloop(&["verify"]).expect(0);
}

#[test]
fn a_killed_engine_gives_the_workspace_back() {
    let (bench, mut engine) = busy();
    let run = run_id(&bench);
    engine.kill9();
    wait_until("the reaper has swept", || survivors(Marker::Run(&run)).is_empty());
    fs::write(bench.workspace.join("go.log"), "").unwrap();
    let state = bench.dir.path().join("other");
    elsewhere(&bench, &["run"], &state, &bench.workspace).expect(0);
    elsewhere(&bench, &["verify"], &state, &bench.workspace).expect(0);
}

#[test]
fn whoever_holds_the_folder_is_named() {
    let bench = tiny();
    let held = FolderLock::acquire(&bench.workspace).unwrap().expect("this file system has locks");
    let refused = bench.nightloop(&["run"]).expect(73);
    assert!(refused.stderr.contains(&format!("pid {}", std::process::id())), "{}", refused.stderr);
    drop(held);
    bench.nightloop(&["run"]).expect(0);
    bench.nightloop(&["verify"]).expect(0);
}

/// A tool that takes the folder's lock, in vain while the engine lives, and is still there when it is dead.
#[test]
fn a_tool_that_outlives_its_engine_does_not_hold_the_folder() {
    if std::process::Command::new("flock").arg("--version").output().is_err() {
        println!("skipped: there is no flock program here");
        return;
    }
    let script = single_iteration("test -e go.log || exec flock . sleep 300");
    let bench = with_script(&script).file(".gitignore", "*.log\n");
    let mut engine = Running::start(bench.command(&["run"]));
    wait_until("the tool runs", || tool_is_running(&bench, "bash"));
    let run = run_id(&bench);
    wait_until("the waiter is there", || !survivors(Marker::Run(&run)).is_empty());
    engine.kill9();
    fs::write(bench.workspace.join("go.log"), "").unwrap();
    bench.nightloop(&["resume"]).expect(0);
    bench.nightloop(&["verify"]).expect(0);
}

#[test]
fn a_state_directory_in_the_workspace_is_refused() {
    let bench = tiny();
    fs::create_dir(bench.workspace.join("inner")).unwrap();
    let alias = bench.dir.path().join("alias");
    symlink(bench.workspace.join("inner"), &alias).unwrap();
    let before = contents(&bench.workspace);
    let workspace = bench.workspace.clone();
    for state in [workspace.clone(), workspace.join("state"), workspace.join("a/b/c"), alias.clone(), alias.join("s")] {
        let refused = elsewhere(&bench, &["run"], &state, &workspace).expect(64);
        assert!(refused.stderr.contains("inside the workspace"), "{}", refused.stderr);
        assert!(refused.stderr.contains(workspace.to_str().unwrap()), "{}", refused.stderr);
        assert!(refused.stderr.contains("NIGHTLOOP_STATE_DIR"), "{}", refused.stderr);
    }
    let refused = elsewhere(&bench, &["run"], bench.dir.path(), &workspace).expect(64);
    assert!(refused.stderr.contains("inside the state directory"), "{}", refused.stderr);
    assert_eq!(contents(&bench.workspace), before, "nothing is written: {:?}", files_below(&bench.workspace));
}

#[test]
fn a_run_whose_state_was_moved_into_the_workspace_does_not_go_on_there() {
    let bench = with_script(&single_iteration("true"));
    assert_eq!(crate::harness::run_with(&bench, &["run"], &[("NIGHTLOOP_CRASH", "after_sync:20")]).code, -1);
    let inside = bench.workspace.join("state");
    fs::rename(&bench.state, &inside).unwrap();
    elsewhere(&bench, &["resume"], &inside, &bench.workspace).expect(64);
    elsewhere(&bench, &["status"], &inside, &bench.workspace).expect(0);
    fs::rename(&inside, &bench.state).unwrap();
    bench.nightloop(&["resume"]).expect(0);
    bench.nightloop(&["verify"]).expect(0);
}
