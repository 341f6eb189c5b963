//! Stops from outside: at once, with no process left, and nothing lost.

use std::fs;
use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::case::{Case, Ran, Running, argv, no_survivor, sh, solver_report, write};
use crate::sealed::{Expect, check};
use crate::support::wait_until;

/// `two_steps`, but that the solver sleeps before it works. It works in a message of its own: what follows a call
/// that was cut in the same message is not executed.
fn sleepy() -> Case {
    let sleep = json!({"calls": [write("src/metric", "1\n"), sh("sleep 300 & sleep 301")]});
    let work = json!({"calls": [write("a", "1\n"), solver_report("Attempt 0.")]});
    Case::new()
        .check("a", "test -f a")
        .check("b", "test -f b")
        .turns("solver", 0, json!([sleep, work]))
        .solver(1, [write("b", "1\n")])
}

fn started() -> Running {
    let running = sleepy().start();
    running.wait_for_process("sleep 301");
    running
}

fn stop_file(ran: &Running) -> PathBuf {
    ran.bench.workspace.join("scratch/STOP")
}

/// The certificate that an undisturbed run ends with.
fn certificate(ran: &Ran) -> Value {
    ran.report()["halting_certificate"].clone()
}

#[test]
fn stop_cuts_a_tool_and_resume_reaches_the_same_certificate() {
    let running = started();
    let stop = stop_file(&running);
    fs::create_dir_all(stop.parent().unwrap()).unwrap();
    fs::write(&stop, "").unwrap();
    let ran = running.wait();
    no_survivor(&ran);
    check(&ran, &Expect::stopped(4, &[]));
    assert_eq!(ran.exit()["signal_detected"], "stop_file");
    assert_eq!(ran.exit()["iteration_at_detection"], 0);

    // What the solver had written when it was cut is there, and marked as what it is.
    let partial = ran.bench.evidence("iter_0/partial_artifacts.json");
    assert_eq!(partial["partial"], true);
    assert_eq!(partial["artifacts"][0]["path"], "src/metric");
    let patch = fs::read_to_string(ran.bench.workspace.join("evidence/loop/iter_0/partial.patch")).unwrap();
    assert!(patch.contains("src/metric") && patch.contains("+1"), "{patch}");
    assert_eq!(ran.exit()["partial_artifacts"]["files_changed"], 1);
    assert_eq!(ran.events("artifacts.partial").len(), 1);

    let refused = ran.bench.nightloop(&["resume"]).expect(75);
    assert!(refused.stderr.contains("scratch/STOP"), "{}", refused.stderr);
    fs::remove_file(&stop).unwrap();
    let resumed = ran.resume();
    check(&resumed, &Expect::exact(&["0.5", "0"]));
    assert_eq!(resumed.report()["resumes"], 1);
    // Collected as a whole all the same, from the tree before the iteration.
    let artifacts = resumed.bench.evidence("iter_0/artifacts.json")["artifacts"].clone();
    assert!(artifacts.as_array().unwrap().iter().any(|file| file["path"] == "src/metric"), "{artifacts}");
    let manifest = resumed.bench.evidence("manifest.json");
    assert_eq!(manifest["workspace"]["files"][0]["iteration"], 1, "the newest first");
    assert_eq!(manifest["workspace"]["total"], manifest["workspace"]["listed"]);
    let delta = resumed.bench.evidence("northstar_delta.json");
    assert_eq!(delta["iterations"].as_array().unwrap().len(), 2);
    assert_eq!(delta["iterations"][0]["metrics"][0]["after"], "1", "{delta}");
    assert_eq!(certificate(&resumed), certificate(&Case::two_steps().run()));
}

#[test]
fn signals_end_the_run_sealed_and_resumable() {
    for (signal, code, name) in [(Signal::INT, 130, "user_interrupt"), (Signal::TERM, 143, "terminated")] {
        let running = started();
        kill_process(Pid::from_raw(i32::try_from(running.pid()).unwrap()).unwrap(), signal).unwrap();
        let ran = running.wait();
        no_survivor(&ran);
        check(&ran, &Expect::stopped(code, &[]));
        assert_eq!(ran.exit()["signal_detected"], name);
        check(&ran.resume(), &Expect::exact(&["0.5", "0"]));
    }
}

#[test]
fn a_killed_engine_leaves_no_process_and_goes_on() {
    let running = started();
    kill_process(Pid::from_raw(i32::try_from(running.pid()).unwrap()).unwrap(), Signal::KILL).unwrap();
    let ran = running.wait();
    no_survivor(&ran);
    ran.bench.nightloop(&["verify"]).expect(2);
    let resumed = ran.resume();
    check(&resumed, &Expect::exact(&["0.5", "0"]));
    let unknown = resumed.events("tool.finished").iter().filter(|data| data["outcome"] == "unknown").count();
    assert_eq!(unknown, 1);
}

#[test]
fn a_stop_during_a_check_leaves_the_check_to_be_run_again() {
    let case = Case::new().check("a", "test -f a || exit 1; test -f scratch/go || sleep 301");
    let running = case.solver(0, [write("a", "1\n")]).file("scratch/note", "").start();
    running.wait_for_process("sleep 301");
    let stop = stop_file(&running);
    fs::write(&stop, "").unwrap();
    let ran = running.wait();
    no_survivor(&ran);
    check(&ran, &Expect::stopped(4, &[]));
    fs::rename(&stop, stop.with_file_name("go")).unwrap();
    check(&ran.resume(), &Expect::exact(&["0"]));
}

#[test]
fn a_stop_ends_the_wait_for_a_rate_limit() {
    let case = Case::two_steps().faults("solver", 0, json!([{"http": 429, "retry_after": 600}]));
    let running = case.file("scratch/note", "").start();
    running.wait_for_event("llm.failed");
    let stop = stop_file(&running);
    fs::write(&stop, "").unwrap();
    let ran = running.wait();
    check(&ran, &Expect::stopped(4, &[]));
    assert_eq!(ran.events("llm.failed")[0]["wait_millis"], 600_000);
    fs::remove_file(&stop).unwrap();
    Case::two_steps().replace_script(&ran);
    check(&ran.resume(), &Expect::exact(&["0.5", "0"]));
}

#[test]
fn a_full_disk_stops_before_anything_is_spent() {
    let ran = Case::two_steps().run_with("NIGHTLOOP_TEST_DISK_PERCENT", "91");
    check_without_plan(&ran);
    assert_eq!(ran.exit()["signal_detected"], "disk_usage");
    assert!(ran.events("llm.requested").is_empty());
    check(&ran.resume(), &Expect::exact(&["0.5", "0"]));
}

/// Stopped before DREAM_GOAL: there is no plan yet, and all the rest holds.
#[track_caller]
fn check_without_plan(ran: &Ran) {
    assert_eq!(ran.ended.code, 4, "{}{}", ran.ended.stdout, ran.ended.stderr);
    let report = ran.report();
    assert_eq!(report["stop_reason"], "BACKPRESSURE_SIGNAL");
    assert_eq!(report["halting_certificate"]["type"], "BACKPRESSURE");
    assert_eq!(report["iterations_completed"], 0);
    ran.bench.nightloop(&["verify"]).expect(0);
}

#[test]
fn finished_work_beats_a_stop() {
    // The check itself asks for the stop, when it is replayed; it counts where tools keep what makes them faster.
    let script = "test -f a || exit 1; mkdir -p target scratch; echo >> target/n
        test $(wc -l < target/n) -lt 2 || touch scratch/STOP";
    let check_a = json!({"id": "a", "text": "a", "check": {"command": argv(script), "writes": ["scratch/STOP"]}});
    let case = Case::new().declare("acceptance_criteria", json!([check_a])).solver(0, [write("a", "1\n")]);
    let ran = case.file(".gitignore", "target/\n").file("Cargo.toml", "").file("scratch/note", "").run();
    check(&ran, &Expect::exact(&["0"]));
    assert!(ran.bench.workspace.join("scratch/STOP").exists());
}

#[test]
fn a_run_in_progress_is_incomplete_and_owned() {
    let running = started();
    let verified = running.bench.nightloop(&["verify"]);
    assert_eq!(verified.code, 2, "{}{}", verified.stdout, verified.stderr);
    assert_eq!(running.bench.nightloop(&["resume"]).code, 73);
    running.bench.nightloop(&["stop"]).expect(0);
    let ran = running.wait();
    check(&ran, &Expect::stopped(4, &[]));
    wait_until("the seal is there", || ran.bench.run_dir().join("seal.json").exists());
}

/// `two_steps` with a database that is there as long as the file `up` is.
fn with_database(every_seconds: u64) -> Case {
    let command = ["sh", "-c", "test -f .db/up || { echo 'db: no response' >&2; exit 2; }"];
    let declared = json!([{"name": "db", "command": command, "every_seconds": every_seconds}]);
    sleepy().declare("backpressure", declared).file(".gitignore", ".db\n").file(".db/up", "")
}

#[test]
fn a_dead_database_stops_the_run_before_an_agent_and_resume_goes_on_once_it_is_back() {
    let case = Case::two_steps().declare("backpressure", json!([{"name": "db", "command": ["test", "-f", "up"]}]));
    let ran = case.run();
    // Before the plan or after it, whichever look came first.
    assert_eq!(ran.ended.code, 4, "{}", ran.ended.stderr);
    ran.bench.nightloop(&["verify"]).expect(0);
    assert_eq!(ran.exit()["signal_detected"], "dependency_down");
    assert_eq!(ran.exit()["detail"], "what the work needs is not available: db: exit 1");
    assert!(ran.events("agent.started").is_empty(), "nothing was spent");
    ran.bench.nightloop(&["resume"]).expect(4);
    fs::write(ran.bench.workspace.join("up"), "").unwrap();
    check(&ran.resume(), &Expect::exact(&["0.5", "0"]));
}

#[test]
fn a_database_that_dies_under_an_agent_cuts_it_within_its_interval() {
    let running = with_database(1).start();
    running.wait_for_process("sleep 301");
    let up = running.bench.workspace.join(".db/up");
    fs::remove_file(&up).unwrap();
    let ran = running.wait();
    no_survivor(&ran);
    check(&ran, &Expect::stopped(4, &[]));
    assert!(ran.exit()["detail"].as_str().unwrap().ends_with("db: exit 2: db: no response"), "{}", ran.exit());
    assert_eq!(ran.exit()["partial_artifacts"]["files_changed"], 1);
    fs::write(&up, "").unwrap();
    check(&ran.resume(), &Expect::exact(&["0.5", "0"]));
}
