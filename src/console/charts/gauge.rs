//! Budget gauges: what is used of each limit, as a bar and in words.
//!
//! Not here: enforcing. Invariants: an unknown price is said to be unknown, never 0; a limit that does not
//! exist has no bar.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::console::theme::{Role, Theme};
use crate::console::widget;
use crate::machine::run::RunState;
use crate::model::budget::Dimension;
use crate::model::fraction::Fraction;

use super::forecast::name;
use super::pen::Pen;

/// One gauge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gauge {
    pub dimension: Dimension,
    pub used: String,
    /// `None`: not limited.
    pub limit: Option<String>,
    /// Used by limit; `None`: one of them is not known.
    pub share: Option<Fraction>,
}

impl Gauge {
    /// From here on a gauge warns; from the limit on it is bad.
    const WARN_TENTHS: i128 = 8;

    fn of(dimension: Dimension, used: u64, limit: Option<u64>, words: fn(u64) -> String) -> Self {
        Self {
            dimension,
            used: words(used),
            limit: limit.map(words),
            share: limit.and_then(|limit| Fraction::new(i128::from(used), i128::from(limit))),
        }
    }

    /// "3 of 10", "12,345, no limit", "unknown of $20".
    pub fn words(&self) -> String {
        match &self.limit {
            Some(limit) => format!("{} of {limit}", self.used),
            None => format!("{}, no limit", self.used),
        }
    }

    fn role(&self) -> Role {
        match self.share {
            Some(share) if share.numerator() >= share.denominator() => Role::Bad,
            Some(share)
                if share.numerator().saturating_mul(10) >= share.denominator().saturating_mul(Self::WARN_TENTHS) =>
            {
                Role::Warning
            }
            Some(_) | None => Role::GaugeFull,
        }
    }
}

/// The gauges of a run; `elapsed` counts what has passed since the last event as well.
pub fn gauges(run: &RunState, elapsed_millis: u64) -> [Gauge; 5] {
    let (spent, limits) = (&run.spent, &run.limits);
    let money_limit = limits.max_cost_usd;
    let money = Gauge {
        dimension: Dimension::CostUsd,
        used: spent.cost_usd.map_or_else(|| "unknown".to_owned(), |cost| cost.dollars()),
        limit: money_limit.map(|limit| format!("${limit}")),
        share: spent
            .cost_usd
            .zip(money_limit)
            .and_then(|(cost, limit)| Fraction::from_exact(cost).checked_div(Fraction::from_exact(limit))),
    };
    let millis = |millis: u64| widget::duration(millis);
    [
        Gauge::of(Dimension::Iterations, spent.iterations, Some(limits.max_iterations), widget::count),
        Gauge::of(
            Dimension::TotalSeconds,
            elapsed_millis,
            Some(limits.max_total_seconds.saturating_mul(1_000)),
            millis,
        ),
        Gauge::of(Dimension::TotalToolCalls, spent.tool_calls, Some(limits.max_total_tool_calls), widget::count),
        Gauge::of(Dimension::TotalTokens, spent.tokens(), limits.max_total_tokens, widget::count),
        money,
    ]
}

/// One gauge in one row: name, bar, words.
pub fn draw(buffer: &mut Buffer, area: Rect, theme: &Theme, gauge: &Gauge) {
    const NAME: u16 = 11;
    let mut pen = Pen::new(buffer, area, theme);
    if pen.height() == 0 {
        return;
    }
    let words = gauge.words();
    let words_width = u16::try_from(widget::width(&words)).unwrap_or(u16::MAX);
    let role = gauge.role();
    pen.text(0, 0, name(gauge.dimension), Role::Muted);
    let word_role = if role == Role::GaugeFull { Role::Text } else { role };
    let bar = pen.width().saturating_sub(NAME.saturating_add(words_width).saturating_add(1)).min(24);
    if bar < 4 || gauge.limit.is_none() {
        pen.text(NAME, 0, &words, word_role);
        return;
    }
    pen.line(NAME, 0, bar_line(theme, gauge, bar, role));
    pen.text(NAME + bar + 1, 0, &words, word_role);
}

fn bar_line(theme: &Theme, gauge: &Gauge, columns: u16, role: Role) -> Line<'static> {
    let glyphs = theme.glyphs();
    let all = i128::from(columns);
    let filled = gauge.share.map_or(0, |share| {
        // Something used is never drawn as nothing; something left is never drawn as full.
        let exact = share.numerator().saturating_mul(all) / share.denominator();
        if share.is_zero() {
            0
        } else if share.numerator() < share.denominator() {
            exact.clamp(1, all - 1)
        } else {
            all
        }
    });
    let filled = usize::try_from(filled).unwrap_or(0);
    Line::from(vec![
        Span::styled(glyphs.gauge_full.repeat(filled), theme.style(role)),
        Span::styled(
            glyphs.gauge_empty.repeat(usize::from(columns).saturating_sub(filled)),
            theme.style(Role::GaugeEmpty),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::sample::{Sample, screen};
    use crate::console::theme::Glyphs;
    use crate::model::decimal::Exact;

    fn drawn(gauge: &Gauge) -> String {
        let theme = Theme::plain().with_glyphs(Glyphs::ASCII);
        screen(50, 1, |frame| {
            let area = frame.area();
            draw(frame.buffer_mut(), area, &theme, gauge);
        })
    }

    #[test]
    fn an_unknown_price_is_not_zero() {
        let mut run = Sample::demo().ended();
        run.spent.cost_usd = None;
        assert_eq!(gauges(&run, 0)[4].words(), "unknown, no limit");
        run.limits.max_cost_usd = Exact::parse("20.00").ok();
        let [.., money] = gauges(&run, 0);
        assert_eq!((money.words().as_str(), money.share), ("unknown of $20", None));
        run.spent.cost_usd = Exact::parse("16.00").ok();
        let [.., money] = gauges(&run, 0);
        assert_eq!((money.words().as_str(), money.role()), ("$16 of $20", Role::Warning));
    }

    #[test]
    fn a_little_is_seen_and_almost_full_is_not_full() {
        let gauge = |used| Gauge::of(Dimension::Iterations, used, Some(1_000), widget::count);
        let filled = |used| drawn(&gauge(used)).matches('#').count();
        assert_eq!(filled(0), 0);
        assert_eq!(filled(1), 1);
        assert_eq!(filled(999), 23);
        assert_eq!(filled(1_000), 24);
        assert_eq!(gauge(1_000).role(), Role::Bad);
    }

    #[test]
    fn a_limit_of_nothing_divides_nothing() {
        let gauge = Gauge::of(Dimension::TotalToolCalls, 3, Some(0), widget::count);
        assert_eq!(gauge.share, None);
        assert!(drawn(&gauge).contains("3 of 0"));
    }
}
