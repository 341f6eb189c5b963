//! GLOW as stacked bars, one iteration to a row: growth, learning, output, wins.
//!
//! Not here: scoring. Invariants: the four parts differ in texture, not only in colour; every score is also
//! written as a number; the average is exact, or marked as rounded.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::console::prose::wrap;
use crate::console::theme::{Role, Theme};
use crate::machine::run::RunState;
use crate::model::fraction::Fraction;
use crate::model::glow::{Glow, trailing_zero_wins};
use crate::model::learnings::SpecVersion;
use crate::model::safe::Safe;

use super::pen::Pen;

const PARTS: [(&str, Role); 4] = [("G", Role::GlowG), ("L", Role::GlowL), ("O", Role::GlowO), ("W", Role::GlowW)];
/// The most that one part scores.
const FULL: u32 = 25;
/// Places of an average that does not end.
const PLACES: u32 = 2;

/// The scores of a run, and what follows from them.
#[derive(Debug, Clone)]
pub struct Scores<'a> {
    rows: Vec<(u32, &'a Glow)>,
    window: u64,
    /// Spec 1.0 scores nothing.
    used: bool,
    gated: bool,
}

impl<'a> Scores<'a> {
    pub fn of(run: &'a RunState) -> Self {
        Self {
            rows: run.iterations().filter_map(|it| Some((it.number(), it.glow.as_ref()?))).collect(),
            window: run.limits.northstar_drift_window,
            used: run.spec() == SpecVersion::V2,
            gated: run.spec() == SpecVersion::V2 && run.halt.is_none(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Why there is nothing to show.
    pub fn nothing(&self) -> &'static str {
        if self.used { "no iteration is scored yet" } else { "spec 1.0 has no GLOW" }
    }

    /// "it3 85 of 100": the latest.
    pub fn last(&self) -> Option<String> {
        self.rows.last().map(|(number, glow)| format!("it{number} {} of 100", glow.total))
    }

    /// "average 86.25"; a rounded one is marked with `~`.
    pub fn average(&self) -> Option<String> {
        let sum: i128 = self.rows.iter().map(|(_, glow)| i128::from(glow.total)).sum();
        let average = Fraction::new(sum, i128::try_from(self.rows.len()).ok()?)?;
        let text = average.to_decimal_text(PLACES);
        let exact = 100 % average.denominator() == 0;
        Some(if exact { format!("average {text}") } else { format!("average ~{text}") })
    }

    /// What the latest iterations without a win lead to.
    pub fn warning(&self) -> Option<String> {
        let streak = u64::from(trailing_zero_wins(self.rows.iter().map(|(_, glow)| *glow)));
        if streak == 0 || !self.gated {
            return None;
        }
        let outlook = match self.window.saturating_sub(streak) {
            0 => "the run blocks".to_owned(),
            1 => "one more blocks the run".to_owned(),
            more => format!("{more} more block the run"),
        };
        Some(format!("W=0 for {streak} of {}: {outlook}", self.window))
    }
}

/// Draws the bars; the row of iteration `cursor` is marked.
pub fn draw(buffer: &mut Buffer, area: Rect, theme: &Theme, scores: &Scores<'_>, cursor: Option<u32>) {
    let mut pen = Pen::new(buffer, area, theme);
    if pen.height() == 0 {
        return;
    }
    let warning = scores.warning();
    let warning = warning.map(|text| wrap(&format!("! {text}"), usize::from(pen.width()))).unwrap_or_default();
    let warning_rows = u16::try_from(warning.len()).unwrap_or(u16::MAX);
    // A warning leaves at least one bar.
    let warning_rows = if warning_rows < pen.height() { warning_rows } else { 0 };
    let rows = pen.height() - warning_rows;
    if scores.is_empty() {
        pen.text(0, 0, scores.nothing(), Role::Muted);
    }
    let shown = usize::from(rows).min(scores.rows.len());
    let at = cursor.and_then(|number| scores.rows.iter().position(|(it, _)| *it == number));
    let first = (scores.rows.len() - shown).min(at.unwrap_or(usize::MAX));
    let name_width = scores.rows.last().map_or(3, |(number, _)| number.to_string().len() + 2);
    for (y, (number, glow)) in (0..rows).zip(scores.rows.iter().skip(first)) {
        let role = if cursor == Some(*number) { Role::StateCurrent } else { Role::Muted };
        pen.text(0, y, &format!("it{number}"), role);
        bar(&mut pen, u16::try_from(name_width + 1).unwrap_or(0), y, glow);
    }
    let used = u16::try_from(shown).unwrap_or(rows);
    if let Some((_, glow)) = at.map_or_else(|| scores.rows.last(), |at| scores.rows.get(at))
        && used + 5 <= rows
    {
        reasons(&mut pen, used + 1, glow);
    }
    for (y, row) in (rows..pen.height()).zip(warning) {
        pen.text(0, y, &row, Role::Warning);
    }
}

/// Why each part scored what it did.
fn reasons(pen: &mut Pen<'_>, top: u16, glow: &Glow) {
    for (y, ((score, (name, role)), why)) in (top..).zip(parts(glow).into_iter().zip(PARTS).zip(&glow.because)) {
        pen.text(0, y, &format!("{name} {score:>2}"), role);
        pen.text(6, y, Safe::line(why).as_str(), Role::Muted);
    }
}

fn parts(glow: &Glow) -> [u32; 4] {
    [glow.g, glow.l, glow.o, glow.w]
}

fn bar(pen: &mut Pen<'_>, x: u16, y: u16, glow: &Glow) {
    let total = format!("{:>3}", glow.total);
    let letters: Vec<String> =
        parts(glow).iter().zip(PARTS).map(|(score, (name, _))| format!("{name}{score}")).collect();
    let letters = letters.join(" ");
    let room = pen.width().saturating_sub(x);
    // The numbers are the content; the bar takes what they leave.
    let with_letters = room >= 3 + 1 + 15 + 1 + 8;
    let numbers = if with_letters { format!("{total} {letters}") } else { total };
    let numbers_width = if with_letters { 3 + 1 + 15 } else { 3 };
    pen.text(x, y, &numbers, Role::Text);
    let start = x + numbers_width + 1;
    let columns = pen.width().saturating_sub(start).min(40);
    if columns < 4 {
        return;
    }
    let mut spans = Vec::new();
    for ((score, (_, role)), texture) in parts(glow).into_iter().zip(PARTS).zip(pen.glyphs().glow) {
        // Each part has a quarter of the bar, so that what is missing is seen where it is missing.
        let quarter = u32::from(columns) / 4;
        let filled = (score.min(FULL) * quarter).div_ceil(FULL);
        spans.push(Span::styled(texture.repeat(filled as usize), pen.theme().style(role)));
        let empty = quarter.saturating_sub(filled) as usize;
        spans.push(Span::styled(pen.glyphs().idle.repeat(empty), pen.theme().style(Role::GaugeEmpty)));
    }
    pen.line(start, y, Line::from(spans));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::sample::{Sample, screen};
    use crate::console::theme::Glyphs;

    fn drawn(width: u16, height: u16, theme: &Theme, run: &RunState, cursor: Option<u32>) -> String {
        screen(width, height, |frame| {
            let area = frame.area();
            draw(frame.buffer_mut(), area, theme, &Scores::of(run), cursor);
        })
    }

    /// The demo in its last iteration, with these wins.
    fn with_wins(wins: &[u32]) -> RunState {
        let sample = Sample::demo();
        let mut run = sample.after(sample.first("gate.judged", 0));
        let iterations = run.done.iter_mut().chain(&mut run.current);
        for (iteration, w) in iterations.zip(wins) {
            let glow = iteration.glow.as_mut().unwrap();
            glow.total = glow.total - glow.w + w;
            glow.w = *w;
        }
        run
    }

    #[test]
    fn warns_before_the_gate_blocks() {
        let warning = |wins: &[u32]| Scores::of(&with_wins(wins)).warning();
        assert_eq!(warning(&[25, 25, 25, 5]), None);
        assert_eq!(warning(&[25, 25, 25, 0]).unwrap(), "W=0 for 1 of 3: 2 more block the run");
        assert_eq!(warning(&[0, 25, 0, 0]).unwrap(), "W=0 for 2 of 3: one more blocks the run");
        assert_eq!(warning(&[25, 0, 0, 0]).unwrap(), "W=0 for 3 of 3: the run blocks");
        let mut spec_one = with_wins(&[25, 0, 0, 0]);
        spec_one.started.declaration.spec = Some(SpecVersion::V1);
        assert_eq!(Scores::of(&spec_one).warning(), None, "spec 1.0 has no such gate");
    }

    #[test]
    fn an_average_that_does_not_end_says_so() {
        let mut run = with_wins(&[25, 25, 25, 25]);
        let exact = Scores::of(&run).average().unwrap();
        assert!(!exact.contains('~'), "{exact}");
        run.current = None;
        run.done.last_mut().unwrap().glow.as_mut().unwrap().total = 1;
        run.done[0].glow.as_mut().unwrap().total = 0;
        run.done[1].glow.as_mut().unwrap().total = 0;
        assert_eq!(Scores::of(&run).average().unwrap(), "average ~0.33");
    }

    #[test]
    fn bars() {
        insta::assert_snapshot!(drawn(60, 5, &Theme::dark(), &with_wins(&[25, 5, 0, 0]), Some(1)));
        let ascii = Theme::plain().with_glyphs(Glyphs::ASCII);
        insta::assert_snapshot!(drawn(37, 4, &ascii, &with_wins(&[25, 5, 0, 15]), Some(1)));
    }
}
