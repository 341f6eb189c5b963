//! What the graph shows, at every size.

use super::*;
use crate::console::moment::sizes;
use crate::console::sample::{Sample, screen};

fn drawn(width: u16, height: u16, theme: &Theme, run: &RunState) -> String {
    screen(width, height, |frame| {
        let area = frame.area();
        draw(frame.buffer_mut(), area, theme, run);
    })
}

fn working() -> RunState {
    let sample = Sample::demo();
    sample.after(sample.first("agent.started", 150))
}

#[test]
fn the_ring_follows_the_machine() {
    let two = ring(SpecVersion::V2);
    assert_eq!(two.first(), Some(&State::SpawnSubagent));
    assert_eq!(two.last(), Some(&State::BudgetCheck));
    assert!(two.contains(&State::GlowCheck));
    assert!(!ring(SpecVersion::V1).contains(&State::GlowCheck));
}

#[test]
fn boxes() {
    insta::assert_snapshot!(drawn(112, 12, &Theme::dark(), &working()));
}

#[test]
fn boxes_with_room_in_ascii_after_the_end() {
    let theme = Theme::plain().with_glyphs(Glyphs::ASCII);
    insta::assert_snapshot!(drawn(130, 16, &theme, &Sample::demo().ended()));
}

#[test]
fn rows() {
    insta::assert_snapshot!(drawn(78, 6, &Theme::dark(), &working()));
}

#[test]
fn rows_before_anything_happened() {
    insta::assert_snapshot!(drawn(90, 6, &Theme::dark(), &Sample::demo().after(1)));
}

#[test]
fn short_and_line() {
    insta::assert_snapshot!(drawn(78, 2, &Theme::dark(), &Sample::demo().ended()));
    insta::assert_snapshot!(drawn(40, 1, &Theme::dark(), &working()));
    insta::assert_snapshot!(drawn(40, 1, &Theme::plain().with_glyphs(Glyphs::ASCII), &working()));
}

#[test]
fn every_layout_names_the_current_state_and_the_loop() {
    let run = working();
    for (width, height) in [(112, 12), (78, 6), (78, 2), (40, 1)] {
        let text = drawn(width, height, &Theme::plain(), &run);
        assert!(text.contains("● SPAWN"), "{text}");
        assert!(text.contains("loop ×"), "{text}");
    }
}

#[test]
fn spec_one_draws_no_glow_check() {
    let mut run = working();
    run.started.declaration.spec = Some(SpecVersion::V1);
    for (width, height) in [(112, 12), (78, 6), (78, 2)] {
        let text = drawn(width, height, &Theme::plain(), &run);
        assert!(!text.contains("GLOW") && text.contains("BUDGET"), "{text}");
    }
}

#[test]
fn no_size_is_too_small_or_too_large() {
    let (run, ended) = (working(), Sample::demo().ended());
    for (width, height) in sizes() {
        drawn(width, height, &Theme::dark(), &run);
        drawn(width, height, &Theme::plain().with_glyphs(Glyphs::ASCII), &ended);
    }
}

#[test]
fn only_the_current_state_is_lit() {
    use ratatui::style::Modifier;
    let run = working();
    for (width, height) in [(112, 12), (78, 6), (78, 2), (40, 1)] {
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        draw(&mut buffer, area, &Theme::plain(), &run);
        let lit: String = area
            .positions()
            .filter(|at| buffer[*at].modifier.contains(Modifier::REVERSED))
            .map(|at| buffer[at].symbol())
            .collect();
        assert!(lit.trim().starts_with("● SPAWN") && lit.trim().ends_with("×3"), "{width}x{height}: {lit}");
    }
}
