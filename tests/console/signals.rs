//! Signals and faults: the terminal is given back, whatever happens.

use rustix::process::Signal;

use crate::case::Case;
use crate::stage::{Stage, asking, asking_after, question, slow};

#[test]
fn a_told_end_restores_the_terminal_and_seals_the_run() {
    let stage = Stage::of(slow(120_000));
    let mut screen = stage.screen(&["run", "--start"]);
    stage.wait_for("llm.requested", 1);
    screen.sees("SPAWN_SUBAGENT");
    screen.kill(Signal::TERM);
    let end = screen.ends_with(143);
    assert!(end.restored() && screen.has_old_mode(), "{}", end.text);
    stage.wait_for_end();
    assert!(stage.bench.run_dir().join("seal.json").exists());
    stage.verify(0);
    stage.play(&Case::two_steps());
    stage.nightloop(&["resume", "--headless"]).expect(0);
    stage.verify(0);
}

#[test]
fn told_twice_it_goes_at_once_and_still_restores_the_terminal() {
    // Three times, because which of the two signals finds what is a matter of moments.
    for _ in 0..3 {
        let stage = Stage::of(slow(120_000));
        let mut screen = stage.screen(&["run", "--start"]);
        stage.wait_for("llm.requested", 1);
        screen.sees("SPAWN_SUBAGENT");
        let engine = stage.engine();
        screen.kill(Signal::TERM);
        if let Some(pid) = rustix::process::Pid::from_raw(engine) {
            // It may have been quick.
            let _ = rustix::process::kill_process(pid, Signal::TERM);
        }
        let end = screen.ends_with(143);
        assert!(end.restored() && screen.has_old_mode(), "{}", end.text);
        stage.wait_for_end();
        let verified = stage.nightloop(&["verify"]);
        assert!(matches!(verified.code, 0 | 2), "{}", verified.stdout);
    }
}

#[test]
fn a_console_that_fails_gives_the_terminal_back_and_leaves_the_run_alone() {
    let stage = Stage::of(asking(question()));
    let mut screen = stage.open(&["run", "--start"], crate::stage::WIDE, &[("NIGHTLOOP_PANIC_KEY", "1")]);
    screen.sees("1 waiting");
    screen.press("f12");
    let end = screen.wait_for("the terminal to be let go", |view| !view.open);
    assert!(end.restored() && screen.has_old_mode(), "{}", end.text);
    assert!(end.has("internal error at") && end.has("continues without a screen"), "{}", end.text);
    screen.exit_code();
    let mut second = stage.screen(&["attach"]);
    second.sees("1 waiting");
    stage.nightloop(&["answer", "d1", "blue"]).expect(0);
    second.sees_end("CONVERGED");
    second.press("q");
    second.ends_with(0);
    stage.wait_for_end();
    stage.verify(0);
}

#[test]
fn a_suspended_console_gives_the_terminal_back_while_the_run_goes_on() {
    let stage = Stage::of(asking_after(1_500, question()));
    let mut screen = stage.job(&["run", "--start"]);
    stage.wait_for("llm.requested", 1);
    screen.sees("SPAWN_SUBAGENT");
    screen.press("ctrl-z");
    screen.wait_for("the job to stop", |view| view.restored() && view.has("the job stopped"));
    assert_eq!(stage.count("decision.asked"), 0, "it was meant to stop during the call");
    // Nobody looks, and it asks all the same.
    stage.wait_for("decision.asked", 1);
    screen.press("enter");
    screen.wait_for("the console to come back", |view| view.alternate && view.has("1 waiting"));
    screen.press("i");
    screen.sees("Which colour?");
    stage.nightloop(&["answer", "d1", "blue"]).expect(0);
    screen.sees_end("CONVERGED");
    screen.press("esc q");
    screen.ends_with(0);
    stage.verify(0);
}

#[test]
fn a_killed_engine_leaves_a_terminal_that_works() {
    let stage = Stage::of(asking(question()));
    let mut screen = stage.screen(&["run", "--start"]);
    screen.sees("1 waiting");
    let engine = rustix::process::Pid::from_raw(stage.engine()).unwrap();
    rustix::process::kill_process(engine, Signal::KILL).unwrap();
    let view = screen.ends_with(137);
    assert!(view.restored() && view.has("nightloop resume"), "{}", view.text);
    assert!(screen.has_old_mode());
}
