//! Lost lines: the terminal goes away, the run does not.

use std::time::Duration;

use rustix::process::Signal;

use crate::stage::{Stage, asking, asking_after, eventually, kill, question};

/// How often the line is lost. More, to look for something rare: `NIGHTLOOP_HANGUPS=200`.
fn times() -> usize {
    std::env::var("NIGHTLOOP_HANGUPS").ok().and_then(|text| text.parse().ok()).unwrap_or(20)
}

/// The run that lost its screen is there for another one, and ends well.
fn goes_on(stage: &Stage) {
    stage.wait_for("decision.asked", 1);
    let mut second = stage.screen(&["attach"]);
    second.sees("1 waiting");
    stage.nightloop(&["answer", "d1", "blue"]).expect(0);
    second.sees_end("CONVERGED");
    second.press("q");
    second.ends_with(0);
    stage.wait_for_end();
    stage.ended_as("EXIT_CONVERGED", "PASS");
    stage.verify(0);
}

#[test]
fn a_run_outlives_its_terminal() {
    for round in 0..times() {
        // By turns: while it waits for a person, and while a model is asked.
        let (stage, waiting) = match round % 2 {
            0 => (Stage::of(asking(question())), true),
            _ => (Stage::of(asking_after(300, question())), false),
        };
        let mut screen = stage.screen(&["run", "--start"]);
        if waiting {
            screen.sees("1 waiting");
        } else {
            stage.wait_for("llm.requested", 1);
            screen.sees("SPAWN_SUBAGENT");
        }
        let before = stage.events().len();
        screen.hang_up();
        screen.exit_code();
        goes_on(&stage);
        assert!(stage.events().len() > before, "round {round}");
    }
}

/// Ticks of processor time that a process has used.
fn ticks(pid: i32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn a_run_that_lost_its_terminal_rests_while_it_waits() {
    let stage = Stage::of(asking(question()));
    let mut screen = stage.screen(&["run", "--start"]);
    screen.sees("1 waiting");
    let engine = stage.engine();
    screen.hang_up();
    screen.exit_code();
    let reads = || std::fs::read_link(format!("/proc/{engine}/fd/0")).unwrap_or_default();
    eventually("the terminal to be let go", || !reads().starts_with("/dev/pts"));
    let before = ticks(engine);
    // The waiting is the test: whoever asks the lost terminal again and again uses all of it.
    std::thread::sleep(Duration::from_secs(3));
    let used = ticks(engine) - before;
    assert!(used < 30, "{used} ticks in three seconds of waiting");
    goes_on(&stage);
}

#[test]
fn a_run_outlives_the_process_that_holds_its_terminal() {
    let stage = Stage::of(asking_after(1_000, question()));
    let mut screen = stage.screen(&["run", "--start"]);
    stage.wait_for("llm.requested", 1);
    screen.sees("SPAWN_SUBAGENT");
    kill(i32::try_from(screen.pid()).unwrap(), Signal::KILL);
    screen.exit_code();
    let left = screen.wait_for("the terminal to be let go", |view| !view.open);
    assert!(left.restored(), "{}", left.text);
    goes_on(&stage);
}
