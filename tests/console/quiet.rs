//! An idle console writes nothing at all.

use std::time::{Duration, Instant};

use crate::case::Case;
use crate::screen::Screen;
use crate::stage::{Stage, asking, question};

/// Here the waiting is the test itself.
const SILENCE: Duration = Duration::from_secs(10);

/// Waits until the last frame of what was just done is written.
fn settled(screen: &Screen) -> usize {
    let (mut bytes, mut since) = (screen.bytes_written(), Instant::now());
    let began = Instant::now();
    while since.elapsed() < Duration::from_millis(1_500) {
        assert!(began.elapsed() < crate::screen::PATIENCE, "it never stops to write; the screen:\n{}", screen.text());
        std::thread::sleep(Duration::from_millis(20));
        if screen.bytes_written() != bytes {
            (bytes, since) = (screen.bytes_written(), Instant::now());
        }
    }
    bytes
}

#[test]
fn nothing_is_written_while_nothing_changes() {
    let ready = Stage::of(Case::two_steps());
    let mut before_the_start = ready.screen(&["run"]);
    before_the_start.sees("Nothing has been spent.");

    let waits = Stage::of(asking(question()));
    let waiting = waits.screen(&["run", "--start"]);
    waiting.sees("1 waiting");

    let asks = Stage::of(asking(question()));
    let mut in_the_inbox = asks.screen(&["run", "--start"]);
    in_the_inbox.sees("1 waiting");
    in_the_inbox.press("i");
    in_the_inbox.sees("Which colour?");

    let visionary = Stage::empty();
    let in_a_gate = visionary.screen(&["demo", "value", "--into", ".", "--speed", "20"]);
    in_a_gate.sees("1 waiting");

    let over = Stage::of(Case::two_steps());
    let mut ended = over.screen(&["run", "--start"]);
    ended.sees_end("CONVERGED");

    let places = ["ready", "a decision waits", "the inbox is open", "a gate waits", "the run has ended"];
    let screens = [&before_the_start, &waiting, &in_the_inbox, &in_a_gate, &ended];
    let before = screens.map(settled);
    std::thread::sleep(SILENCE);
    for ((place, screen), before) in places.iter().zip(screens).zip(before) {
        let written = screen.bytes_written() - before;
        let raw = screen.raw();
        let said = String::from_utf8_lossy(&raw[before..]).into_owned();
        assert_eq!(written, 0, "{place}: {said:?}\n{}", screen.text());
    }

    before_the_start.press("q");
    before_the_start.ends_with(0);
    for (stage, mut screen) in [(&waits, waiting), (&asks, in_the_inbox)] {
        stage.nightloop(&["answer", "d1", "blue"]).expect(0);
        screen.sees_end("CONVERGED");
        screen.press("esc q");
        screen.ends_with(0);
        stage.verify(0);
    }
    visionary.nightloop(&["answer", "d1", "quit"]).expect(0);
    in_a_gate.wait_for("the run to end", |_| visionary.count("run.halted") == 1);
    ended.press("q");
    ended.ends_with(0);
    over.verify(0);
}
