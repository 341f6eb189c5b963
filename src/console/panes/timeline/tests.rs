//! The timeline pane, read and gone back in as an operator would.

use super::*;
use crate::console::sample::{Sample, scene, screen};
use crate::console::theme::{Glyphs, Theme};
use crate::machine::fold;
use crate::machine::run::RunState;

fn told(pane: &mut TimelinePane, sample: &Sample, count: usize) -> RunState {
    let mut state = crate::playbook::start(&sample.events[0]).unwrap();
    for (index, stamped) in sample.events.iter().take(count).enumerate() {
        if index > 0 {
            fold::apply(&mut state, stamped).unwrap();
        }
        pane.learn(News::Event { stamped, state: &state, body: None });
    }
    state
}

fn draw(pane: &mut TimelinePane, state: &RunState, theme: &Theme, width: u16, height: u16) -> String {
    pane.resize(Rect::new(0, 0, width, height));
    screen(width, height, |frame| pane.view(frame, frame.area(), &scene(state, theme)))
}

#[test]
fn it_reads_well() {
    let sample = Sample::demo();
    let theme = Theme::dark();
    let mut pane = TimelinePane::new();
    let state = told(&mut pane, &sample, sample.events.len());
    insta::assert_snapshot!("timeline_80x20", draw(&mut pane, &state, &theme, 80, 20));
    insta::assert_snapshot!("timeline_120x36", draw(&mut pane, &state, &theme, 120, 36));
    let ascii = Theme::plain().with_glyphs(Glyphs::ASCII);
    pane.resize(Rect::new(0, 0, 80, 20));
    pane.act(Action::PreviousIteration, &scene(&state, &theme));
    pane.act(Action::PreviousIteration, &scene(&state, &theme));
    insta::assert_snapshot!("timeline_ascii", draw(&mut pane, &state, &ascii, 80, 20));
    insta::assert_snapshot!("timeline_40x12", draw(&mut pane, &state, &theme, 40, 12));
}

#[test]
fn a_running_run_grows_until_now() {
    let sample = Sample::demo();
    let mut pane = TimelinePane::new();
    let state = told(&mut pane, &sample, sample.first("llm.failed", 0));
    let shown = draw(&mut pane, &state, &Theme::dark(), 80, 20);
    assert!(shown.contains("limit 1 s") && shown.contains("work 59 s"), "{shown}");
    assert!(shown.contains("1 min"), "{shown}");
}

#[test]
fn filters_cycle_and_every_one_shows_what_it_says() {
    let sample = Sample::demo();
    let theme = Theme::dark();
    let mut pane = TimelinePane::new();
    let state = told(&mut pane, &sample, sample.events.len());
    let mut counts = Vec::new();
    for _ in 0..7 {
        counts.push((pane.filter.name(), pane.shown.len()));
        assert!(pane.shown.iter().all(|id| pane.filter.shows(pane.entry(*id).unwrap())));
        pane.act(Action::FilterEvents, &scene(&state, &theme));
    }
    assert_eq!(pane.filter, Filter::Main);
    assert_eq!(counts[6], ("every event", sample.events.len()));
    let about: usize = counts[1..5].iter().map(|(_, count)| count).sum();
    assert_eq!(about, sample.events.len());
    assert!(counts[5].1 > 0 && counts[5].1 < counts[0].1);
}

#[test]
fn scrubbing_asks_for_the_moment_under_the_cursor() {
    let sample = Sample::demo();
    let theme = Theme::dark();
    let mut pane = TimelinePane::new();
    let state = told(&mut pane, &sample, sample.events.len());
    draw(&mut pane, &state, &theme, 80, 20);
    pane.search("residual 4", &scene(&state, &theme));
    let cmds = pane.act(Action::Scrub, &scene(&state, &theme));
    let [Cmd::Load(Load::Moment(seq))] = cmds.as_slice() else { panic!("{cmds:?}") };
    let event = &sample.events[usize::try_from(*seq).unwrap()].event;
    assert_eq!(event.kind(), "residual.measured");
    let then = sample.after(usize::try_from(*seq).unwrap() + 1);
    let mut at = scene(&then, &theme);
    at.live = false;
    pane.act(Action::Down, &at);
    let shown = screen(80, 20, |frame| pane.view(frame, frame.area(), &at));
    assert!(shown.contains(&format!("at event {seq}")), "{shown}");
    assert!(shown.lines().any(|line| line.contains("●") && line.contains("residual 4")), "{shown}");
}

#[test]
fn what_is_kept_is_bounded_and_a_reader_stays() {
    let sample = Sample::demo();
    let theme = Theme::dark();
    let mut pane = TimelinePane { most: 100, ..TimelinePane::new() };
    let state = told(&mut pane, &sample, 150);
    draw(&mut pane, &state, &theme, 80, 20);
    for _ in 0..5 {
        pane.act(Action::Up, &scene(&state, &theme));
    }
    let here = pane.current().unwrap().seq;
    told(&mut pane, &sample, 40);
    assert_eq!(pane.current().unwrap().seq, here);
    assert!(pane.entries.len() <= 100);
    assert!(draw(&mut pane, &state, &theme, 80, 20).contains("older events are not listed"));
    assert!(shortened("é".repeat(500)).len() <= LONGEST_WORDS);
}

#[test]
fn any_size_is_survived() {
    let sample = Sample::demo();
    let mut pane = TimelinePane::new();
    let state = told(&mut pane, &sample, 200);
    for width in [1u16, 2, 3, 5, 9, 17, 29, 30, 40, 80, 300] {
        for height in [1u16, 2, 3, 5, 7, 8, 12, 26, 60, 120] {
            draw(&mut pane, &state, &Theme::dark(), width, height);
            pane.act(Action::PageUp, &scene(&state, &Theme::dark()));
        }
    }
}
