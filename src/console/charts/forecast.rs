//! How far the budget reaches at the pace of the finished iterations. Pure, in whole numbers and fractions.
//!
//! Not here: limits themselves. Invariant: a forecast rounds down what is left, never up, and names the limit
//! that ends it.

use crate::console::widget;
use crate::machine::iteration::Iteration;
use crate::machine::run::RunState;
use crate::model::budget::Dimension;
use crate::model::decimal::Exact;
use crate::model::fraction::Fraction;

/// What is left at this pace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forecast {
    pub iterations: u64,
    pub millis: u64,
    /// The limit that is reached first.
    pub binding: Dimension,
}

impl Forecast {
    /// "~3 iterations, ~40 min left at this pace; time ends first"
    pub fn sentence(self) -> String {
        let unit = if self.iterations == 1 { "iteration" } else { "iterations" };
        format!(
            "~{} {unit}, ~{} left at this pace; {} first",
            self.iterations,
            widget::duration(self.millis),
            ends(self.binding)
        )
    }
}

/// A limit in an operator's words.
pub const fn name(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Iterations => "iterations",
        Dimension::TotalSeconds => "time",
        Dimension::TotalToolCalls => "tool calls",
        Dimension::TotalTokens => "tokens",
        Dimension::CostUsd => "money",
        Dimension::IterationSeconds => "time per iteration",
        Dimension::IterationToolCalls => "tool calls per iteration",
    }
}

fn ends(dimension: Dimension) -> String {
    match dimension {
        Dimension::TotalSeconds | Dimension::CostUsd | Dimension::IterationSeconds => {
            format!("{} ends", name(dimension))
        }
        Dimension::Iterations | Dimension::TotalToolCalls | Dimension::TotalTokens | Dimension::IterationToolCalls => {
            format!("{} end", name(dimension))
        }
    }
}

/// The forecast; `None` before the first iteration is finished, and after the end.
pub fn forecast(run: &RunState) -> Option<Forecast> {
    let finished: Vec<&Iteration> = run.done.iter().collect();
    if finished.is_empty() || run.halt.is_some() {
        return None;
    }
    let count = u64::try_from(finished.len()).unwrap_or(u64::MAX);
    let sum = |of: fn(&Iteration) -> u64| finished.iter().map(|it| of(it)).fold(0u64, u64::saturating_add);
    let millis = sum(|it| it.spend.millis);
    let calls = sum(|it| it.spend.tool_calls);
    let tokens = sum(|it| it.spend.input_tokens.saturating_add(it.spend.output_tokens));
    let (limits, spent) = (&run.limits, &run.spent);

    let iterations_left = limits.max_iterations.saturating_sub(count);
    let mut reach = vec![(Dimension::Iterations, Some(iterations_left))];
    let time_left = limits.max_total_seconds.saturating_mul(1_000).saturating_sub(spent.millis);
    reach.push((Dimension::TotalSeconds, rounds(time_left, millis, count)));
    let calls_left = limits.max_total_tool_calls.saturating_sub(spent.tool_calls);
    reach.push((Dimension::TotalToolCalls, rounds(calls_left, calls, count)));
    if let Some(limit) = limits.max_total_tokens {
        reach.push((Dimension::TotalTokens, rounds(limit.saturating_sub(spent.tokens()), tokens, count)));
    }
    if let (Some(limit), Some(cost)) = (limits.max_cost_usd, spent.cost_usd) {
        reach.push((Dimension::CostUsd, money_rounds(limit, cost, tokens, spent.tokens(), count)));
    }
    let known = reach.into_iter().filter_map(|(dimension, rounds)| Some((dimension, rounds?)));
    let (binding, iterations) = known.min_by_key(|(_, rounds)| *rounds)?;
    let pace = millis / count;
    Some(Forecast { iterations, millis: iterations.saturating_mul(pace).min(time_left), binding })
}

/// How often the mean of `count` iterations fits into what is left; `None`: it costs nothing.
fn rounds(left: u64, used: u64, count: u64) -> Option<u64> {
    u128::from(left).checked_mul(u128::from(count))?.checked_div(u128::from(used)).and_then(|n| u64::try_from(n).ok())
}

/// Money is known for the run only; the part of the finished iterations follows their tokens.
fn money_rounds(limit: Exact, cost: Exact, finished: u64, all: u64, count: u64) -> Option<u64> {
    let left = Fraction::from_exact(limit.checked_sub(cost).unwrap_or(Exact::ZERO));
    let share = Fraction::new(i128::from(finished), i128::from(all))?;
    let mean = Fraction::from_exact(cost).checked_mul(share)?.checked_div(Fraction::from_integer(count))?;
    let rounds = left.checked_div(mean)?;
    u64::try_from(rounds.numerator() / rounds.denominator()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::sample::Sample;

    fn paced(finished: &[(u64, u64, u64)]) -> RunState {
        let sample = Sample::demo();
        let mut run = sample.after(sample.first("iteration.began", 150));
        let template = run.done[0].clone();
        run.current = None;
        run.done = finished
            .iter()
            .map(|(millis, calls, tokens)| {
                let mut it = template.clone();
                it.spend.millis = *millis;
                it.spend.tool_calls = *calls;
                it.spend.input_tokens = *tokens;
                it.spend.output_tokens = 0;
                it
            })
            .collect();
        run.spent.millis = finished.iter().map(|f| f.0).sum();
        run.spent.tool_calls = finished.iter().map(|f| f.1).sum();
        run.spent.input_tokens = finished.iter().map(|f| f.2).sum();
        run.spent.output_tokens = 0;
        run.spent.cost_usd = Some(Exact::ZERO);
        run.limits.max_iterations = 10;
        run.limits.max_total_seconds = 14_400;
        run.limits.max_total_tool_calls = 500;
        run.limits.max_total_tokens = None;
        run.limits.max_cost_usd = None;
        run
    }

    #[test]
    fn iterations_bind_when_nothing_else_does() {
        let run = paced(&[(600_000, 10, 100), (1_000_000, 10, 100)]);
        let found = forecast(&run).unwrap();
        assert_eq!(found, Forecast { iterations: 8, millis: 6_400_000, binding: Dimension::Iterations });
        assert_eq!(found.sentence(), "~8 iterations, ~1 h 46 min left at this pace; iterations end first");
    }

    #[test]
    fn the_scarcest_limit_binds() {
        let mut run = paced(&[(600_000, 100, 1_000), (600_000, 100, 1_000)]);
        assert_eq!(forecast(&run).unwrap().binding, Dimension::TotalToolCalls);
        assert_eq!(forecast(&run).unwrap().iterations, 3);
        run.limits.max_total_tokens = Some(3_500);
        assert_eq!(forecast(&run).unwrap().binding, Dimension::TotalTokens);
        assert_eq!(forecast(&run).unwrap().iterations, 1, "1.5 is rounded down");
        run.limits.max_total_seconds = 1_500;
        let found = forecast(&run).unwrap();
        assert_eq!((found.binding, found.iterations, found.millis), (Dimension::TotalSeconds, 0, 0));
        assert!(found.sentence().ends_with("time ends first"));
    }

    #[test]
    fn money_is_forecast_exactly_and_unknown_money_not_at_all() {
        let mut run = paced(&[(1_000, 1, 1_000), (1_000, 1, 1_000)]);
        run.limits.max_cost_usd = Exact::parse("1.00").ok();
        run.spent.cost_usd = Exact::parse("0.4").ok();
        let found = forecast(&run).unwrap();
        assert_eq!((found.binding, found.iterations), (Dimension::CostUsd, 3), "0.60 left at 0.20 each");
        run.spent.cost_usd = None;
        assert_eq!(forecast(&run).unwrap().binding, Dimension::Iterations);
    }

    #[test]
    fn no_pace_no_forecast() {
        let mut run = paced(&[]);
        assert_eq!(forecast(&run), None);
        run = Sample::demo().ended();
        assert_eq!(forecast(&run), None, "the run has ended");
    }
}
