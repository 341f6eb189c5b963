//! The residual over the iterations: how far from the goal, and which way it goes.
//!
//! Role: place measured values, their threshold and a cursor on a grid. Not its role: judging convergence.
//! Invariants: null is a gap, never a zero; the log scale shows a zero on the axis with a sign of its own;
//! every number that is written is the exact one.

mod plot;

use std::cmp::Ordering;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::console::theme::{Glyphs, Role, Theme};
use crate::console::widget;
use crate::machine::run::RunState;
use crate::model::decimal::Exact;

use super::pen::Pen;
use plot::Plot;

/// How values become heights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    #[default]
    Linear,
    Log,
}

impl Scale {
    pub const fn other(self) -> Self {
        match self {
            Self::Linear => Self::Log,
            Self::Log => Self::Linear,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Log => "log",
        }
    }
}

/// Which way the residual went last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Shrinking,
    Stable,
    Growing,
    /// Fewer than two values, or a null between them.
    Unknown,
}

impl Direction {
    fn between(earlier: Option<Exact>, later: Option<Exact>) -> Self {
        match (earlier, later) {
            (Some(earlier), Some(later)) => match later.cmp(&earlier) {
                Ordering::Less => Self::Shrinking,
                Ordering::Equal => Self::Stable,
                Ordering::Greater => Self::Growing,
            },
            _ => Self::Unknown,
        }
    }

    pub const fn word(self) -> &'static str {
        match self {
            Self::Shrinking => "shrinking",
            Self::Stable => "stable",
            Self::Growing => "growing",
            Self::Unknown => "",
        }
    }

    pub const fn glyph(self, glyphs: &Glyphs) -> &'static str {
        match self {
            Self::Shrinking => glyphs.arrow_down,
            Self::Stable => glyphs.arrow_right,
            Self::Growing => glyphs.arrow_up,
            Self::Unknown => "",
        }
    }

    pub const fn role(self) -> Role {
        match self {
            Self::Shrinking => Role::Good,
            Self::Stable | Self::Unknown => Role::Text,
            Self::Growing => Role::Warning,
        }
    }
}

/// One measurement; `iteration` is `None` for the one before the first iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    pub iteration: Option<u32>,
    /// `None`: it was null.
    pub value: Option<Exact>,
}

/// All measurements of a run, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub points: Vec<Point>,
    pub r_p: Exact,
}

impl Series {
    pub fn of(run: &RunState) -> Self {
        let baseline = run
            .baseline
            .residual
            .as_ref()
            .map(|residual| Point { iteration: None, value: residual.as_ref().map(|residual| residual.value) });
        let measured = run
            .iterations()
            .filter(|iteration| iteration.residual.is_some())
            .map(|iteration| Point { iteration: Some(iteration.number()), value: iteration.residual_value() });
        Self { points: baseline.into_iter().chain(measured).collect(), r_p: run.r_p() }
    }

    /// Where the point under the cursor came from.
    pub fn direction_at(&self, index: usize) -> Direction {
        let value = |index: usize| self.points.get(index).and_then(|point| point.value);
        match index.checked_sub(1) {
            Some(before) => Direction::between(value(before), value(index)),
            None => Direction::Unknown,
        }
    }

    /// The latest direction.
    pub fn direction(&self) -> Direction {
        self.direction_at(self.points.len().saturating_sub(1))
    }

    /// "it3 residual 0.1666666667 ↓", "baseline residual null".
    pub fn describe(&self, index: usize, glyphs: &Glyphs) -> String {
        let Some(point) = self.points.get(index) else { return "residual not measured yet".to_owned() };
        let name = point.iteration.map_or_else(|| "baseline".to_owned(), |number| format!("it{number}"));
        let value = point.value.map_or_else(|| "null".to_owned(), |value| value.to_string());
        let arrow = self.direction_at(index).glyph(glyphs);
        if arrow.is_empty() { format!("{name} residual {value}") } else { format!("{name} residual {value} {arrow}") }
    }
}

/// Draws the chart; the cursor stands on the point `cursor`.
pub fn draw(buffer: &mut Buffer, area: Rect, theme: &Theme, series: &Series, scale: Scale, cursor: usize) {
    let mut pen = Pen::new(buffer, area, theme);
    if pen.width() < 4 || pen.height() == 0 {
        return;
    }
    if series.points.is_empty() {
        pen.text(0, 0, "not measured yet: the baseline comes before iteration 0", Role::Muted);
        return;
    }
    let rows = if pen.height() >= 3 { pen.height() - 1 } else { pen.height() };
    let heights = Heights::of(series, scale);
    let (top, bottom) = heights.labels();
    let at_r_p = Plot::new(1, rows, theme.glyphs().braille);
    let r_p_row = at_r_p.row(at_r_p.level(heights.share(series.r_p)));
    let threshold_name = format!("R_p {}", series.r_p);
    let r_p_text = series.r_p.to_string();
    let named = |row: u16, value: String| match row == r_p_row {
        true if value == r_p_text => threshold_name.clone(),
        true => format!("{value}, {threshold_name}"),
        false => value,
    };
    let (top, bottom) = (named(0, top), named(rows.saturating_sub(1), bottom));
    let widest =
        [top.as_str(), bottom.as_str(), threshold_name.as_str()].into_iter().map(widget::width).max().unwrap_or(1);
    let axis = u16::try_from(widest).unwrap_or(u16::MAX).min(pen.width() / 3);
    let columns = pen.width().saturating_sub(axis + 1);
    let window = Window::of(series.points.len(), cursor, columns);

    pen.column(axis, 0, rows, theme.glyphs().line_v, Role::Border);
    let mut plot = Plot::new(columns, rows, theme.glyphs().braille);
    threshold(&mut pen, axis, r_p_row, &threshold_name);
    pen.text_before(axis, 0, &top, Role::Muted);
    if rows > 1 {
        pen.text_before(axis, rows - 1, &bottom, Role::Muted);
    }

    let mut before: Option<(u16, u16)> = None;
    for (index, x) in window.places() {
        let place = series.points.get(index).and_then(|point| point.value).map(|v| (x, plot.level(heights.share(v))));
        if let (Some(from), Some(to)) = (before, place) {
            plot.connect(from, to);
        }
        before = place;
    }
    plot.draw(&mut pen, axis + 1, Role::Residual);

    for (index, x) in window.places() {
        let Some(point) = series.points.get(index) else { continue };
        let role = match point.iteration {
            _ if index == cursor => Role::StateCurrent,
            None => Role::Baseline,
            Some(_) => Role::Residual,
        };
        match point.value {
            Some(value) => {
                let row = plot.row(plot.level(heights.share(value)));
                let on_axis = scale == Scale::Log && value.is_zero();
                let sign = if on_axis { theme.glyphs().visited } else { theme.glyphs().dot };
                pen.mark(axis + 1 + x, row, sign, role);
            }
            None => {
                pen.column(axis + 1 + x, 0, rows, theme.glyphs().gap, Role::Muted);
                if index == cursor {
                    pen.mark(axis + 1 + x, rows.saturating_sub(1), theme.glyphs().unknown, role);
                }
            }
        }
    }
    if rows < pen.height() {
        labels(&mut pen, axis + 1, rows, series, &window, cursor);
    }
}

/// The R_p line, named at the axis.
fn threshold(pen: &mut Pen<'_>, axis: u16, row: u16, name: &str) {
    for x in (axis + 1..pen.width()).step_by(2) {
        pen.mark(x, row, pen.glyphs().line_h, Role::Threshold);
    }
    pen.text_before(axis, row, name, Role::Threshold);
}

/// Iteration numbers under the chart, as many as fit.
fn labels(pen: &mut Pen<'_>, left: u16, y: u16, series: &Series, window: &Window, cursor: usize) {
    let mut free = 0;
    let last = window.places().last().map(|(index, _)| index);
    for (index, x) in window.places() {
        let Some(point) = series.points.get(index) else { continue };
        let name = point.iteration.map_or_else(|| "base".to_owned(), |number| format!("it{number}"));
        let columns = u16::try_from(widget::width(&name)).unwrap_or(u16::MAX);
        let fits = left + x + columns <= pen.width();
        if x < free || (!fits && Some(index) != last) {
            continue;
        }
        let role = if index == cursor { Role::StateCurrent } else { Role::Muted };
        let start = if fits { left + x } else { pen.width().saturating_sub(columns) };
        if start >= left + free {
            pen.text(start, y, &name, role);
            free = x + columns + 1;
        }
    }
    if window.first > 0 {
        pen.text(0, y, pen.glyphs().cut, Role::Muted);
    }
}

/// Which points are shown, and how far apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    first: usize,
    count: usize,
    step: u16,
}

/// Points further apart than this do not read better.
const WIDEST_STEP: usize = 16;

impl Window {
    /// The latest points, moved back so far that the cursor is among them.
    fn of(points: usize, cursor: usize, columns: u16) -> Self {
        let count = points.min(usize::from(columns));
        let first = (points - count).min(cursor);
        let gaps = count.saturating_sub(1).max(1);
        let step = (usize::from(columns.saturating_sub(1)) / gaps).clamp(1, WIDEST_STEP);
        Self { first, count, step: u16::try_from(step).unwrap_or(1) }
    }

    /// Index and column of each point that is shown.
    fn places(self) -> impl Iterator<Item = (usize, u16)> {
        let columns = (0..self.count).map(move |n| u16::try_from(n).unwrap_or(u16::MAX).saturating_mul(self.step));
        (self.first..).zip(columns)
    }
}

/// The range of the values, and where in it a value lies.
#[derive(Debug, Clone, Copy)]
struct Heights {
    scale: Scale,
    highest: Exact,
    /// The smallest value above zero.
    lowest: Exact,
}

impl Heights {
    fn of(series: &Series, scale: Scale) -> Self {
        let values = || series.points.iter().filter_map(|point| point.value).chain([series.r_p]);
        let highest = values().max().unwrap_or(Exact::ZERO);
        let lowest = values().filter(|value| !value.is_zero()).min().unwrap_or(Exact::ZERO);
        Self { scale, highest, lowest }
    }

    fn labels(&self) -> (String, String) {
        let bottom = match self.scale {
            Scale::Linear => Exact::ZERO,
            Scale::Log => self.lowest,
        };
        (self.highest.to_string(), bottom.to_string())
    }

    /// From 0 (bottom) to 1 (top); `None`: a zero on the log scale, on the axis below everything.
    fn share(&self, value: Exact) -> Option<f64> {
        let [value_at, low, high] = [value, self.lowest, self.highest].map(Exact::to_f64_for_drawing);
        match self.scale {
            Scale::Linear if self.highest.is_zero() => Some(0.0),
            Scale::Linear => Some(value_at / high),
            Scale::Log if value.is_zero() => None,
            Scale::Log if self.lowest == self.highest => Some(1.0),
            Scale::Log => Some((value_at.ln() - low.ln()) / (high.ln() - low.ln())),
        }
    }
}

#[cfg(test)]
mod tests;
