//! Nothing changes, nothing wakes up: when time alone must not make a frame.

use nightloop::console::pulse;
use nightloop::console::scene::Link;
use nightloop::console::theme::Theme;
use nightloop::console::update::Msg;

use super::looks::{Size, at_work, ended, ready, welcome};
use super::operator::{Operator, Recorded};

const SIZE: Size = (80, 24);

fn beats(operator: &Operator) -> bool {
    let beats = pulse::next(&operator.model, false).is_some();
    assert_eq!(beats, pulse::next(&operator.model, true).is_some(), "a thin line is slower, not other");
    beats
}

#[test]
fn a_run_at_work_beats() {
    let mut operator = at_work(Theme::dark(), SIZE, "1");
    assert!(beats(&operator));
    operator.linked(Link::Attached);
    assert!(beats(&operator));
    assert!(pulse::next(&operator.model, true) > pulse::next(&operator.model, false));
    // Long silence is told in minutes.
    let soon = pulse::next(&operator.model, false);
    operator.now_ms += 3_600_000;
    operator.tell(Msg::Tick);
    assert!(pulse::next(&operator.model, false) > soon);
}

#[test]
fn a_run_that_waits_for_a_person_stands_still() {
    let recorded = Recorded::demo();
    for count in [recorded.at_refinement(), recorded.at_action()] {
        let mut operator = Operator::watching(recorded, count, Theme::dark(), SIZE);
        assert!(!beats(&operator), "after {count} events");
        operator.press("i");
        assert!(!beats(&operator), "with the inbox open");
    }
}

#[test]
fn a_paused_run_stands_still() {
    let mut operator = super::looks::paused(Theme::dark(), SIZE);
    assert!(!beats(&operator));
    operator.press("2");
    assert!(!beats(&operator));
}

#[test]
fn what_is_over_stands_still() {
    assert!(!beats(&ended(Theme::dark(), SIZE, "1")));
    // The process that drove it is gone before its end.
    let mut lost = at_work(Theme::dark(), SIZE, "1");
    lost.tell(Msg::Feed(vec![nightloop::console::feed::Update::Ended]));
    assert!(!beats(&lost));
    let mut cut = at_work(Theme::dark(), SIZE, "1");
    cut.linked(Link::Lost("gone".into()));
    assert!(!beats(&cut));
}

#[test]
fn before_a_run_nothing_moves() {
    assert!(!beats(&ready(Theme::dark(), SIZE)));
    assert!(!beats(&welcome(Theme::dark(), SIZE)));
}

#[test]
fn a_replay_moves_by_its_events_only() {
    for playing in [true, false] {
        let mut operator = at_work(Theme::dark(), SIZE, "1");
        operator.linked(Link::Replay { playing, speed: 8, at: 1, of: 2 });
        assert!(!beats(&operator));
    }
}

#[test]
fn a_held_moment_stands_still() {
    let mut frozen = at_work(Theme::dark(), SIZE, "z");
    assert!(!beats(&frozen));
    frozen.press("z");
    assert!(beats(&frozen));
    // Looked up on the timeline.
    let mut earlier = at_work(Theme::dark(), SIZE, "6 up up up enter");
    assert!(earlier.model.world.moment.is_some());
    assert!(!beats(&earlier));
    earlier.press("L");
    assert!(beats(&earlier));
}

#[test]
fn what_stands_still_says_nothing_that_time_makes_wrong() {
    let recorded = Recorded::demo();
    for count in [recorded.at_refinement(), recorded.at_action()] {
        // The timeline (6) says itself up to when it goes.
        for pane in ["1", "2", "3", "4", "5", "7"] {
            let mut operator = Operator::watching(recorded, count, Theme::dark(), SIZE);
            operator.press(pane);
            let before = operator.text();
            operator.now_ms += 3_600_000;
            operator.tell(Msg::Tick);
            assert_eq!(operator.text(), before, "pane {pane}");
        }
    }
}

#[test]
fn a_tick_changes_nothing_where_none_was_due() {
    for mut operator in [ended(Theme::dark(), SIZE, "1"), ready(Theme::dark(), SIZE), at_work(Theme::dark(), SIZE, "z")]
    {
        let before = operator.text();
        operator.now_ms += 3_600_000;
        operator.tell(Msg::Tick);
        assert_eq!(operator.text(), before);
    }
}
