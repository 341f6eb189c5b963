//! Where a night goes, over a recorded run.

use crate::console::sample::Sample;
use crate::evidence::night::*;
use crate::machine::event::Event;
use crate::machine::event::{PauseBegan, PauseLifted, PauseRequested, RunResumed};
use crate::machine::fold;
use crate::machine::fold::Stamped;

/// Events of the sample, then made ones at given seconds after the last.
fn night(count: usize, then: Vec<(i64, Event)>) -> Night {
    let sample = Sample::demo();
    let mut night = Night::default();
    let mut state = crate::playbook::start(&sample.events[0]).unwrap();
    let mut last = sample.events[0].clone();
    for (index, stamped) in sample.events.iter().take(count).enumerate() {
        if index > 0 {
            fold::apply(&mut state, stamped).unwrap();
        }
        night.learn(stamped, &state);
        last = stamped.clone();
    }
    let base = last.ts.parse::<jiff::Timestamp>().unwrap();
    for (seconds, event) in then {
        let ts = base + jiff::SignedDuration::from_secs(seconds);
        last = Stamped { seq: last.seq + 1, ts: ts.to_string(), event, ..last };
        fold::apply(&mut state, &last).unwrap();
        night.learn(&last, &state);
    }
    night
}

fn seconds(night: &Night, doing: Doing) -> i64 {
    night.totals(None)[doing.index()] / 1_000
}

#[test]
fn waits_for_people_and_silence_are_told_apart() {
    let by = || "ann".to_owned();
    let asked = Sample::demo().first("llm.requested", 0);
    let paused = vec![
        (10, PauseRequested { by: by() }.into()),
        (20, PauseBegan {}.into()),
        (80, PauseLifted { by: by() }.into()),
    ];
    let night_ = night(asked - 1, paused);
    assert_eq!(seconds(&night_, Doing::Human), 60);
    assert_eq!(seconds(&night_, Doing::Work), 20);

    let silent = night(asked, vec![(400, PauseRequested { by: by() }.into())]);
    assert_eq!(seconds(&silent, Doing::Stalled), 400);
    let patient = night(asked, vec![(200, PauseRequested { by: by() }.into())]);
    assert_eq!(seconds(&patient, Doing::Stalled), 0);
    let mut speaking = night(asked, vec![]);
    speaking.heard();
    let later = speaking.last + 400_000;
    assert_eq!(speaking.totals(Some(later))[Doing::Stalled.index()], 0);
}

#[test]
fn a_gap_before_a_resume_is_down_and_a_limit_ends_when_it_was_announced_to() {
    let resumed = RunResumed {
        engine_version: "0".into(),
        reducer_version: 2,
        attempt: 1,
        torn_bytes: 0,
        torn_sha256: None,
        patience: crate::model::decision::Patience::default(),
        raised: Vec::new(),
        end: None,
    };
    let down = night(60, vec![(3_600, resumed.into())]);
    assert_eq!(seconds(&down, Doing::Down), 3_600);

    let failed = Sample::demo().first("llm.failed", 0);
    let waiting = night(failed, vec![]);
    let later = waiting.totals(Some(waiting.last + 10_000));
    assert!((900..=1_100).contains(&later[Doing::Limit.index()]), "{later:?}");
    assert!(later[Doing::Work.index()] >= 8_900, "{later:?}");
}

#[test]
fn columns_show_the_most_and_never_hide_lost_time() {
    let mut night = Night::beginning(0);
    night.add(Span { doing: Doing::Work, from: 0, to: 70 });
    night.add(Span { doing: Doing::Down, from: 70, to: 100 });
    night.add(Span { doing: Doing::Check, from: 100, to: 200 });
    assert_eq!(night.columns(0, 200, 2, None), [Some(Doing::Down), Some(Doing::Check)]);
    assert_eq!(night.columns(0, 400, 4, None), [Some(Doing::Down), Some(Doing::Check), None, None]);
    assert_eq!(night.columns(0, 0, 0, None), []);
}

#[test]
fn the_number_of_spans_is_bounded_and_totals_stay_exact() {
    let mut night = Night::beginning(0);
    for number in 0..50_000i64 {
        let doing = if number % 2 == 0 { Doing::Work } else { Doing::Check };
        night.add(Span { doing, from: number * 10, to: number * 10 + 10 });
    }
    assert!(night.spans.len() <= MOST_SPANS);
    assert_eq!(night.totals(None)[0] + night.totals(None)[1], 500_000);
    assert!(night.spans.windows(2).all(|pair| pair[0].to == pair[1].from));
}
