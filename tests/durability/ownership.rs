//! One run per workspace: who holds it, and who may stop it.

use std::fs;

use nightloop::tool::process::{Marker, survivors};

use crate::harness::{Running, run_dirs, run_id, single_iteration, tiny, tool_is_running, wait_until, with_script};
use crate::support::Bench;

fn busy() -> (Bench, Running) {
    let bench = with_script(&single_iteration("test -e go.log || sleep 300")).file(".gitignore", "*.log\n");
    let engine = Running::start(bench.command(&["run"]));
    wait_until("the tool runs", || tool_is_running(&bench, "bash"));
    (bench, engine)
}

#[test]
fn a_second_engine_is_refused_and_told_who_is_first() {
    let (bench, mut engine) = busy();
    let (run, owner) = (run_id(&bench), engine.0.id().to_string());
    for arguments in [&["run"][..], &["resume"], &["resume", &run]] {
        let refused = bench.nightloop(arguments).expect(73);
        assert!(refused.stderr.contains(&run), "{arguments:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(&owner), "{arguments:?} names no process: {}", refused.stderr);
        assert!(refused.stderr.contains("nightloop stop"), "{}", refused.stderr);
    }
    assert_eq!(run_dirs(&bench).len(), 1, "a refused run leaves nothing behind");
    assert!(!engine.has_ended(), "the first is not disturbed");
    engine.kill9();
    wait_until("the reaper has swept", || survivors(Marker::Run(&run)).is_empty());
    fs::write(bench.workspace.join("go.log"), "").unwrap();
    bench.nightloop(&["resume"]).expect(0);
    bench.nightloop(&["verify"]).expect(0);
}

#[test]
fn a_tool_that_outlives_the_engine_does_not_hold_the_lock() {
    let (bench, mut engine) = busy();
    let run = run_id(&bench);
    wait_until("the sleeper is there", || !survivors(Marker::Run(&run)).is_empty());
    engine.kill9();
    // At once, while the sleeper may still be there.
    fs::write(bench.workspace.join("go.log"), "").unwrap();
    bench.nightloop(&["resume"]).expect(0);
}

#[test]
fn stop_ends_a_running_run_and_refuses_an_ended_one() {
    let (bench, engine) = busy();
    let run = run_id(&bench);
    bench.nightloop(&["stop"]).expect(0);
    assert_eq!(engine.end().0, 4);
    assert!(survivors(Marker::Run(&run)).is_empty());
    bench.nightloop(&["verify"]).expect(0);
    // The operator's own stop would be taken back; this one is somebody else's.
    let stop = bench.workspace.join("scratch/STOP");
    fs::write(&stop, "").unwrap();
    let hint = bench.nightloop(&["resume"]).expect(75);
    assert!(hint.stderr.contains("scratch/STOP") && hint.stderr.contains("remove it"), "{}", hint.stderr);
    fs::remove_file(stop).unwrap();
    let refused = bench.nightloop(&["stop"]).expect(64);
    assert!(refused.stderr.contains("not running") && refused.stderr.contains("hint:"), "{}", refused.stderr);
    assert!(!bench.workspace.join("scratch/STOP").exists());
    fs::write(bench.workspace.join("go.log"), "").unwrap();
    bench.nightloop(&["resume"]).expect(0);
    bench.nightloop(&["verify"]).expect(0);
}

#[test]
fn a_run_does_not_work_beside_a_stop_file() {
    let bench = tiny().file("scratch/STOP", "");
    let stopped = bench.nightloop(&["run"]).expect(4);
    assert!(stopped.stdout.contains("scratch/STOP"), "{}", stopped.stdout);
    assert_eq!(bench.evidence("halting_report.json")["iterations_completed"], 0);
    assert_eq!(run_dirs(&bench).len(), 1, "the stop is recorded");
    bench.nightloop(&["verify"]).expect(0);
}
