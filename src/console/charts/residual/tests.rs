//! Gaps, zeros, exact words, and what the chart looks like.

use super::*;
use crate::console::moment::sizes;
use crate::console::sample::{Sample, screen};

fn series(values: &[&str]) -> Series {
    let points = values.iter().enumerate().map(|(index, text)| Point {
        iteration: index.checked_sub(1).and_then(|number| u32::try_from(number).ok()),
        value: Exact::parse(text).ok(),
    });
    Series { points: points.collect(), r_p: Exact::parse("0.0001").unwrap() }
}

fn drawn(width: u16, height: u16, theme: &Theme, series: &Series, scale: Scale, cursor: usize) -> String {
    screen(width, height, |frame| {
        let area = frame.area();
        draw(frame.buffer_mut(), area, theme, series, scale, cursor);
    })
}

#[test]
fn the_cursor_says_the_exact_value_and_where_it_came_from() {
    let series = series(&["1", "0.5", "0.1666666667", "0.1666666667", "null", "0.2"]);
    let glyphs = &Glyphs::UNICODE;
    assert_eq!(series.describe(0, glyphs), "baseline residual 1");
    assert_eq!(series.describe(2, glyphs), "it1 residual 0.1666666667 ↓");
    assert_eq!(series.describe(3, glyphs), "it2 residual 0.1666666667 →");
    assert_eq!(series.describe(4, glyphs), "it3 residual null");
    assert_eq!(series.direction_at(5), Direction::Unknown, "a null breaks the row");
    assert_eq!(series.describe(9, glyphs), "residual not measured yet");
}

#[test]
fn the_demo_shrinks_to_zero() {
    let series = Series::of(&Sample::demo().ended());
    assert_eq!(series.points.first().unwrap().iteration, None);
    assert_eq!(series.points.last().unwrap().value, Some(Exact::ZERO));
    assert_eq!(series.direction(), Direction::Shrinking);
    insta::assert_snapshot!(drawn(60, 8, &Theme::dark(), &series, Scale::Linear, 2));
}

#[test]
fn log_scale_shows_zero_on_the_axis_and_null_as_a_gap() {
    let series = series(&["5", "0.5", "null", "0.004", "0.00001", "0"]);
    insta::assert_snapshot!(drawn(60, 8, &Theme::dark(), &series, Scale::Log, 5));
    let ascii = Theme::plain().with_glyphs(Glyphs::ASCII);
    insta::assert_snapshot!(drawn(60, 8, &ascii, &series, Scale::Log, 3));
}

#[test]
fn a_null_is_never_drawn_at_zero() {
    let text = drawn(30, 4, &Theme::plain(), &series(&["5", "null", "5"]), Scale::Linear, 0);
    assert!(text.contains('╎'), "{text}");
    assert_eq!(text.matches('•').count(), 2, "{text}");
}

#[test]
fn many_iterations_keep_the_cursor_in_sight() {
    for (cursor, first) in [(2_999, 2_950), (10, 10), (2_960, 2_950)] {
        let window = Window::of(3_000, cursor, 50);
        assert_eq!((window.first, window.count, window.step), (first, 50, 1));
        assert!(window.places().any(|(index, _)| index == cursor));
    }
    assert!(Window::of(5, 4, 0).places().next().is_none());
}

#[test]
fn shares_keep_their_order_on_both_scales() {
    let series = series(&["79228162514264337593543950335", "0.0000000000000000000000000001", "3"]);
    for scale in [Scale::Linear, Scale::Log] {
        let heights = Heights::of(&series, scale);
        let share = |text: &str| heights.share(Exact::parse(text).unwrap()).unwrap();
        assert!(share("79228162514264337593543950335") <= 1.0);
        assert!(share("3") <= share("4"));
        assert!(share("0.0000000000000000000000000001") >= 0.0);
    }
}

#[test]
fn no_size_is_too_small_or_too_large() {
    let series = series(&["5", "0.5", "null", "0.004", "0.00001", "0"]);
    for (width, height) in sizes() {
        for cursor in [3, 99] {
            drawn(width, height, &Theme::dark(), &series, Scale::Log, cursor);
            drawn(width, height, &Theme::plain().with_glyphs(Glyphs::ASCII), &series, Scale::Linear, cursor);
        }
    }
}
