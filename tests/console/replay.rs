//! A copied journal, played back.

use crate::case::Case;
use crate::screen::{PANES, Screen, View};
use crate::stage::Stage;
use crate::support::copy_tree;

/// Where the replay stands: (at, of).
fn place(view: &View) -> Option<(u64, u64)> {
    let (_, rest) = view.text.split_once("REPLAY ")?;
    let (at, of) = rest.split_whitespace().next()?.split_once('/')?;
    Some((at.parse().ok()?, of.parse().ok()?))
}

#[track_caller]
fn stands(screen: &Screen, at: u64) {
    screen.wait_for(&format!("event {at}"), |view| place(view).is_some_and(|(now, _)| now == at) && view.has("held"));
}

#[test]
fn a_copied_run_is_shown_and_stepped_through() {
    let stage = Stage::of(Case::two_steps());
    stage.nightloop(&["run", "--headless"]).expect(0);
    let copy = stage.bench.dir.path().join("copied");
    copy_tree(&stage.bench.run_dir(), &copy);
    let copy = copy.to_str().unwrap();
    let mut screen = stage.screen(&["replay", copy, "--speed", "1"]);
    screen.wait_for("the replay", |view| place(view).is_some());
    screen.press("space");
    let held = screen.wait_for("the replay to hold", |view| view.has("held"));
    let (at, of) = place(&held).unwrap();
    assert!(at < of, "{at} of {of}");
    screen.press(".");
    stands(&screen, at + 1);
    screen.press(". . .");
    stands(&screen, at + 4);
    screen.press(",");
    stands(&screen, at + 3);
    // What runs no more takes no orders.
    screen.press("p");
    screen.sees("read-only");
    for (pane, _) in PANES {
        screen.show_pane(pane);
    }
    stands(&screen, at + 3);
    screen.press("q");
    assert!(screen.ends_with(0).restored());
    stage.nightloop(&["verify", copy]).expect(0);
}
