//! Signals to a headless run: what stops it, what does not, and that nothing is left behind.

use std::process::Stdio;

use nightloop::tool::process::{Marker, survivors};
use rustix::process::Signal;

use crate::harness::{
    Running, has_event, journal_text, run_id, single_iteration, single_iteration_with, small, tool_is_running,
    wait_until, with_script,
};
use crate::support::Bench;

/// The tool waits for a file, so that it runs long the first time and ends at once after that.
const LONG_ONCE: &str = "test -e go.log || sleep 300";

/// A run that is in the middle of its tool call.
fn in_a_tool() -> (Bench, Running) {
    let bench = with_script(&single_iteration(LONG_ONCE)).file(".gitignore", "*.log\n");
    let engine = Running::start(bench.command(&["run"]));
    wait_until("the tool runs", || tool_is_running(&bench, "bash"));
    (bench, engine)
}

/// A run whose model thinks for minutes.
fn in_a_model_call() -> (Bench, Running) {
    let bench = with_script(&single_iteration_with("true", 300_000));
    let engine = Running::start(bench.command(&["run"]));
    let waiting = |text: &str| {
        text.lines().last().is_some_and(|line| line.contains("\"type\":\"llm.requested\"") && line.contains("solver"))
            && text.contains("tool.finished")
    };
    wait_until("the solver's second request is out", || waiting(&journal_text(&bench)));
    (bench, engine)
}

/// Lets the scripted model answer at once from now on.
fn hurry(bench: &Bench) {
    std::fs::write(bench.workspace.join("rehearsal.yaml"), single_iteration("true")).unwrap();
    std::fs::write(bench.workspace.join("go.log"), "").unwrap();
}

fn halted_by(bench: &Bench) -> Vec<String> {
    let events = bench.events();
    let halts = events.iter().filter(|(kind, _)| kind == "run.halted");
    halts.map(|(_, data)| data["signal"].as_str().unwrap_or("-").to_owned()).collect()
}

#[test]
fn a_signal_stops_the_run_cleanly_and_resume_goes_on() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        for (place, (bench, engine)) in [("tool", in_a_tool()), ("model call", in_a_model_call())] {
            engine.signal(signal);
            let (ended, stderr) = engine.end();
            assert_eq!(ended, code, "in a {place}: {stderr}");
            assert!(survivors(Marker::Run(&run_id(&bench))).is_empty(), "in a {place}");
            assert_eq!(halted_by(&bench).len(), 1, "in a {place}: the halt is recorded");
            bench.nightloop(&["verify"]).expect(0);
            hurry(&bench);
            bench.nightloop(&["resume"]).expect(0);
            bench.nightloop(&["verify"]).expect(0);
            assert_eq!(halted_by(&bench).len(), 2, "in a {place}");
            assert_eq!(bench.evidence("exit.json")["status"], "EXIT_CONVERGED");
        }
    }
}

#[test]
fn a_hangup_does_not_stop_the_run() {
    let bench =
        with_script(&single_iteration("while ! test -e go.log; do sleep 0.01; done")).file(".gitignore", "*.log\n");
    let engine = Running::start(bench.command(&["run"]));
    wait_until("the tool runs", || tool_is_running(&bench, "bash"));
    engine.signal(Signal::HUP);
    engine.signal(Signal::HUP);
    std::fs::write(bench.workspace.join("go.log"), "").unwrap();
    assert_eq!(engine.end().0, 0);
    bench.nightloop(&["verify"]).expect(0);
}

#[test]
fn a_second_interrupt_ends_at_once_and_resume_works() {
    let (bench, engine) = in_a_tool();
    let run = run_id(&bench);
    engine.signal(Signal::INT);
    engine.signal(Signal::INT);
    // The first may have been enough by the time the second arrives; both are 130.
    assert_eq!(engine.end().0, 130);
    wait_until("nothing of the run is left", || survivors(Marker::Run(&run)).is_empty());
    hurry(&bench);
    bench.nightloop(&["resume"]).expect(0);
    bench.nightloop(&["verify"]).expect(0);
}

#[test]
fn a_reader_that_goes_away_does_not_stop_the_run() {
    for arguments in [&["run"][..], &["run", "--json"]] {
        let bench = small();
        let mut command = bench.command(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        drop(child.stderr.take());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{arguments:?}");
        bench.nightloop(&["verify"]).expect(0);
    }
}

#[test]
fn a_kill_after_an_interrupt_and_a_resume_is_no_tampering() {
    let (bench, engine) = in_a_tool();
    engine.signal(Signal::INT);
    assert_eq!(engine.end().0, 130);
    // It was sealed and anchored; the resume sets that seal aside, and then the power fails.
    let mut engine = Running::start(bench.command(&["resume"]));
    wait_until("the run goes on", || has_event(&bench, "run.resumed"));
    engine.kill9();
    let verified = bench.nightloop(&["verify"]);
    assert_eq!(verified.code, 2, "{}", verified.stdout);
    hurry(&bench);
    bench.nightloop(&["resume"]).expect(0);
    bench.nightloop(&["verify"]).expect(0);
}

/// The engine may die between the seal and its anchor, or between setting a seal aside and going on.
#[test]
fn an_anchor_that_lags_behind_is_no_tampering() {
    let (bench, engine) = in_a_tool();
    engine.signal(Signal::INT);
    assert_eq!(engine.end().0, 130);
    let (run, events) = (bench.run_dir(), bench.events().len());
    let (seal, aside) = (run.join("seal.json"), run.join(format!("seal-{events}.json")));
    std::fs::rename(run.join("seal.dsse.json"), run.join(format!("seal-{events}.dsse.json"))).unwrap();
    std::fs::rename(&seal, &aside).unwrap();
    bench.nightloop(&["verify"]).expect(2);
    let kept = std::fs::read(&aside).unwrap();
    std::fs::write(&aside, [&kept[..], b" "].concat()).unwrap();
    bench.nightloop(&["verify"]).expect(1);
    std::fs::write(&aside, &kept).unwrap();

    hurry(&bench);
    bench.nightloop(&["resume"]).expect(0);
    let anchors = bench.state.join("anchors.log");
    let text = std::fs::read_to_string(&anchors).unwrap();
    // The beginning, the first seal, the second seal.
    let first: Vec<&str> = text.lines().take(2).collect();
    assert_eq!(text.lines().count(), 3);
    std::fs::write(&anchors, format!("{}\n", first.join("\n"))).unwrap();
    let found = bench.nightloop(&["verify"]).expect(2);
    assert!(found.stdout.contains("no anchor of this run names its seal"), "{}", found.stdout);
    bench.nightloop(&["resume"]).expect(0);
    bench.nightloop(&["verify"]).expect(0);
}
