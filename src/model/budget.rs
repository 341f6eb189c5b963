//! Budgets: base values, profiles, clamps, and what is left.
//!
//! Profiles scale defaults only; explicit values are taken as given and then clamped. No clamp lowers
//! a limit, and nothing outside the operator's own override raises one.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::decimal::Exact;

/// How strictly defaults are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    #[default]
    Strict,
    Fast,
    BenchmarkAdapt,
}

impl Profile {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Fast => "fast",
            Self::BenchmarkAdapt => "benchmark_adapt",
        }
    }

    /// (iterations, everything else) in tenths: 7 means 0.7.
    const fn scale_tenths(self) -> (u64, u64) {
        match self {
            Self::Strict => (10, 10),
            Self::Fast => (5, 5),
            Self::BenchmarkAdapt => (7, 8),
        }
    }
}

/// A limit that can end an iteration or a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dimension {
    Iterations,
    TotalSeconds,
    TotalToolCalls,
    TotalTokens,
    CostUsd,
    IterationSeconds,
    IterationToolCalls,
}

impl Dimension {
    pub const ALL: [Self; 7] = [
        Self::Iterations,
        Self::TotalSeconds,
        Self::TotalToolCalls,
        Self::TotalTokens,
        Self::CostUsd,
        Self::IterationSeconds,
        Self::IterationToolCalls,
    ];

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dimension| dimension.name() == name)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Iterations => "iterations",
            Self::TotalSeconds => "total_seconds",
            Self::TotalToolCalls => "total_tool_calls",
            Self::TotalTokens => "total_tokens",
            Self::CostUsd => "cost_usd",
            Self::IterationSeconds => "iteration_seconds",
            Self::IterationToolCalls => "iteration_tool_calls",
        }
    }

    /// Does running out of this end the run, or only the agents of this iteration?
    pub const fn ends_run(self) -> bool {
        !matches!(self, Self::IterationSeconds | Self::IterationToolCalls)
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What loop.yaml asks for; `None` means the profile's default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Requested {
    pub max_iterations: Option<u64>,
    pub max_tool_calls_per_iteration: Option<u64>,
    pub max_seconds_per_iteration: Option<u64>,
    pub max_total_seconds: Option<u64>,
    pub max_total_tool_calls: Option<u64>,
    pub max_total_tokens: Option<u64>,
    #[schemars(with = "Option<String>")]
    pub max_cost_usd: Option<Exact>,
    pub divergence_window: Option<u64>,
}

/// The limits in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub max_iterations: u64,
    pub max_tool_calls_per_iteration: u64,
    pub max_seconds_per_iteration: u64,
    pub max_total_seconds: u64,
    pub max_total_tool_calls: u64,
    /// `None`: not limited.
    pub max_total_tokens: Option<u64>,
    pub max_cost_usd: Option<Exact>,
    pub divergence_window: u64,
    pub northstar_drift_window: u64,
}

impl Limits {
    /// The seeds' values under the strict profile.
    pub const BASE: Self = Self {
        max_iterations: 10,
        max_tool_calls_per_iteration: 80,
        max_seconds_per_iteration: 1_800,
        max_total_seconds: 14_400,
        max_total_tool_calls: 500,
        max_total_tokens: None,
        max_cost_usd: None,
        divergence_window: 3,
        northstar_drift_window: 3,
    };
}

impl Limits {
    /// The base where an iteration has several steps: what the seeds allow an iteration holds for each of them, and the
    /// totals stay in proportion. Never less than the base.
    pub const fn for_steps(steps: u64) -> Self {
        let steps = if steps == 0 { 1 } else { steps };
        let base = Self::BASE;
        Self {
            max_tool_calls_per_iteration: base.max_tool_calls_per_iteration.saturating_mul(steps),
            max_seconds_per_iteration: base.max_seconds_per_iteration.saturating_mul(steps),
            max_total_seconds: base.max_total_seconds.saturating_mul(steps),
            max_total_tool_calls: base.max_total_tool_calls.saturating_mul(steps),
            ..base
        }
    }

    /// The limit of a dimension as text; `None`: not limited.
    pub fn of(&self, dimension: Dimension) -> Option<String> {
        match dimension {
            Dimension::Iterations => Some(self.max_iterations.to_string()),
            Dimension::TotalSeconds => Some(self.max_total_seconds.to_string()),
            Dimension::TotalToolCalls => Some(self.max_total_tool_calls.to_string()),
            Dimension::TotalTokens => self.max_total_tokens.map(|limit| limit.to_string()),
            Dimension::CostUsd => self.max_cost_usd.map(|limit| limit.to_string()),
            Dimension::IterationSeconds => Some(self.max_seconds_per_iteration.to_string()),
            Dimension::IterationToolCalls => Some(self.max_tool_calls_per_iteration.to_string()),
        }
    }

    /// The limits after an operator raised one. Only upwards, and never past what can be written down.
    pub fn raised(&self, dimension: Dimension, to: &str) -> Result<Self, String> {
        let only_up =
            || Err(format!("a limit can only be raised: {dimension} is {}", self.of(dimension).unwrap_or_default()));
        let mut limits = self.clone();
        if dimension == Dimension::CostUsd {
            let to = Exact::parse(to).map_err(|e| e.to_string())?;
            match self.max_cost_usd {
                Some(from) if to > from => limits.max_cost_usd = Some(to),
                Some(_) => return only_up(),
                None => return Err("there is no money limit to raise".to_owned()),
            }
            return Ok(limits);
        }
        let to: u64 = to.parse().map_err(|_| format!("`{to}` is not a whole number"))?;
        if to > MAX_LIMIT {
            return Err(format!("at most {MAX_LIMIT}"));
        }
        let slot = match dimension {
            Dimension::Iterations => &mut limits.max_iterations,
            Dimension::TotalSeconds => &mut limits.max_total_seconds,
            Dimension::TotalToolCalls => &mut limits.max_total_tool_calls,
            Dimension::IterationSeconds => &mut limits.max_seconds_per_iteration,
            Dimension::IterationToolCalls => &mut limits.max_tool_calls_per_iteration,
            Dimension::TotalTokens => match &mut limits.max_total_tokens {
                Some(limit) => limit,
                None => return Err("there is no token limit to raise".to_owned()),
            },
            Dimension::CostUsd => return Err("money is a decimal".to_owned()),
        };
        if to <= *slot {
            return only_up();
        }
        *slot = to;
        Ok(limits)
    }
}

/// A requested value that was below what the gates allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clamp {
    pub limit: String,
    pub requested: u64,
    pub used: u64,
}

/// Limits with the story of how they came about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effective {
    pub profile: Profile,
    pub limits: Limits,
    pub clamps: Vec<Clamp>,
}

/// Never fewer than these, whatever the profile or loop.yaml say.
const MIN_ITERATIONS: u64 = 3;
const MIN_TOOL_CALLS_PER_ITERATION: u64 = 40;
const MIN_SECONDS_PER_ITERATION: u64 = 600;
/// More than any run can use. In milliseconds it is still a whole number that every JSON reader keeps.
const MAX_LIMIT: u64 = (1 << 53) / 1_000;
/// A window of one value cannot show a direction; a longer window than this would hide divergence.
const WINDOW_RANGE: (u64, u64) = (2, 3);

/// Defaults by profile, explicit values as given, both clamped.
pub fn effective(requested: &Requested, profile: Profile) -> Effective {
    effective_from(&Limits::BASE, requested, profile)
}

/// The same, from another base.
pub fn effective_from(base: &Limits, requested: &Requested, profile: Profile) -> Effective {
    let (sweep, rest) = profile.scale_tenths();
    let scaled = |base: u64, tenths: u64| base.saturating_mul(tenths).div_ceil(10);
    let mut clamps = Vec::new();
    let mut clamp = |limit: &str, value: u64, min: u64, max: u64| {
        let used = value.clamp(min, max);
        if used != value {
            clamps.push(Clamp { limit: limit.to_owned(), requested: value, used });
        }
        used
    };
    let limits = Limits {
        max_iterations: clamp(
            "max_iterations",
            requested.max_iterations.unwrap_or_else(|| scaled(base.max_iterations, sweep)),
            MIN_ITERATIONS,
            u64::from(u32::MAX) - 1,
        ),
        max_tool_calls_per_iteration: clamp(
            "max_tool_calls_per_iteration",
            requested.max_tool_calls_per_iteration.unwrap_or_else(|| scaled(base.max_tool_calls_per_iteration, rest)),
            MIN_TOOL_CALLS_PER_ITERATION,
            MAX_LIMIT,
        ),
        max_seconds_per_iteration: clamp(
            "max_seconds_per_iteration",
            requested.max_seconds_per_iteration.unwrap_or_else(|| scaled(base.max_seconds_per_iteration, rest)),
            MIN_SECONDS_PER_ITERATION,
            MAX_LIMIT,
        ),
        max_total_seconds: clamp(
            "max_total_seconds",
            requested.max_total_seconds.unwrap_or_else(|| scaled(base.max_total_seconds, rest)),
            0,
            MAX_LIMIT,
        ),
        max_total_tool_calls: clamp(
            "max_total_tool_calls",
            requested.max_total_tool_calls.unwrap_or_else(|| scaled(base.max_total_tool_calls, rest)),
            0,
            MAX_LIMIT,
        ),
        max_total_tokens: requested.max_total_tokens.map(|limit| clamp("max_total_tokens", limit, 0, MAX_LIMIT)),
        max_cost_usd: requested.max_cost_usd,
        divergence_window: clamp(
            "divergence_window",
            requested.divergence_window.unwrap_or(base.divergence_window),
            WINDOW_RANGE.0,
            WINDOW_RANGE.1,
        ),
        northstar_drift_window: base.northstar_drift_window,
    };
    Effective { profile, limits, clamps }
}

/// What has been used.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Spent {
    pub iterations: u64,
    pub millis: u64,
    pub tool_calls: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub requests: u64,
    /// `None` once a call with an unknown price was made: unknown is not zero.
    pub cost_usd: Option<Exact>,
    /// What is known of it: a limit bites on this although some call's price is unknown.
    #[serde(skip)]
    pub known_cost_usd: Option<Exact>,
    pub iteration_millis: u64,
    pub iteration_tool_calls: u64,
}

impl Spent {
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

/// A limit that has been reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exhausted {
    pub dimension: Dimension,
    pub observed: String,
    pub limit: String,
}

/// The limits that end the run, checked between iterations. Order: iterations first (resolution A4).
pub fn run_exhausted(limits: &Limits, spent: &Spent) -> Option<Exhausted> {
    let count = |dimension, observed: u64, limit: u64| {
        (observed >= limit).then(|| Exhausted { dimension, observed: observed.to_string(), limit: limit.to_string() })
    };
    count(Dimension::Iterations, spent.iterations, limits.max_iterations).or_else(|| totals_exhausted(limits, spent))
}

/// The limits that cut an agent call short, whatever the iteration.
pub fn totals_exhausted(limits: &Limits, spent: &Spent) -> Option<Exhausted> {
    let count = |dimension, observed: u64, limit: u64| {
        (observed >= limit).then(|| Exhausted { dimension, observed: observed.to_string(), limit: limit.to_string() })
    };
    count(Dimension::TotalSeconds, spent.millis / 1_000, limits.max_total_seconds)
        .or_else(|| count(Dimension::TotalToolCalls, spent.tool_calls, limits.max_total_tool_calls))
        .or_else(|| limits.max_total_tokens.and_then(|limit| count(Dimension::TotalTokens, spent.tokens(), limit)))
        .or_else(|| {
            let (limit, cost) = (limits.max_cost_usd?, spent.cost_usd.or(spent.known_cost_usd)?);
            (cost >= limit).then(|| Exhausted {
                dimension: Dimension::CostUsd,
                observed: cost.to_string(),
                limit: limit.to_string(),
            })
        })
}

/// The limits that cut the agents of this iteration short.
pub fn iteration_exhausted(limits: &Limits, spent: &Spent) -> Option<Exhausted> {
    let count = |dimension, observed: u64, limit: u64| {
        (observed >= limit).then(|| Exhausted { dimension, observed: observed.to_string(), limit: limit.to_string() })
    };
    totals_exhausted(limits, spent)
        .or_else(|| {
            count(Dimension::IterationSeconds, spent.iteration_millis / 1_000, limits.max_seconds_per_iteration)
        })
        .or_else(|| {
            count(Dimension::IterationToolCalls, spent.iteration_tool_calls, limits.max_tool_calls_per_iteration)
        })
}

/// Is so much of the iteration used that only its close has room? A tenth is kept for that.
pub fn iteration_nearly_used(limits: &Limits, spent: &Spent) -> bool {
    let most = |used: u64, limit: u64| used.saturating_mul(10) >= limit.saturating_mul(9);
    most(spent.iteration_tool_calls, limits.max_tool_calls_per_iteration)
        || most(spent.iteration_millis / 1_000, limits.max_seconds_per_iteration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_scale_defaults_and_round_up() {
        let of = |profile| effective(&Requested::default(), profile).limits;
        let fast = of(Profile::Fast);
        assert_eq!(
            (fast.max_iterations, fast.max_tool_calls_per_iteration, fast.max_seconds_per_iteration),
            (5, 40, 900)
        );
        assert_eq!((fast.max_total_seconds, fast.max_total_tool_calls), (7_200, 250));
        let bench = of(Profile::BenchmarkAdapt);
        assert_eq!(
            (bench.max_iterations, bench.max_tool_calls_per_iteration, bench.max_seconds_per_iteration),
            (7, 64, 1_440)
        );
        assert_eq!((bench.max_total_seconds, bench.max_total_tool_calls), (11_520, 400));
        assert_eq!(of(Profile::Strict), Limits::BASE);
    }

    #[test]
    fn an_iteration_of_several_steps_has_room_for_each() {
        let limits = effective_from(&Limits::for_steps(5), &Requested::default(), Profile::Strict).limits;
        assert_eq!((limits.max_tool_calls_per_iteration, limits.max_seconds_per_iteration), (400, 9_000));
        assert_eq!((limits.max_total_tool_calls, limits.max_total_seconds), (2_500, 72_000));
        assert_eq!(limits.max_iterations, Limits::BASE.max_iterations);
        assert_eq!(Limits::for_steps(0), Limits::BASE);
        // The profiles scale that as well, and what is declared stands as it is.
        let requested = Requested { max_tool_calls_per_iteration: Some(80), ..Requested::default() };
        let fast = effective_from(&Limits::for_steps(5), &requested, Profile::Fast).limits;
        assert_eq!((fast.max_tool_calls_per_iteration, fast.max_seconds_per_iteration), (80, 4_500));
    }

    #[test]
    fn explicit_values_are_not_scaled_but_clamped() {
        let requested = Requested { max_iterations: Some(1), max_total_seconds: Some(60), ..Requested::default() };
        let effective = effective(&requested, Profile::Fast);
        assert_eq!(effective.limits.max_iterations, 3);
        assert_eq!(effective.limits.max_total_seconds, 60);
        assert_eq!(effective.clamps, [Clamp { limit: "max_iterations".into(), requested: 1, used: 3 }]);
    }

    #[test]
    fn absurd_limits_are_clamped_to_what_can_be_written_down() {
        let requested =
            Requested { max_total_tokens: Some(u64::MAX), max_total_seconds: Some(u64::MAX), ..Requested::default() };
        let effective = effective(&requested, Profile::Strict);
        assert_eq!(effective.limits.max_total_tokens, Some(MAX_LIMIT));
        assert!(effective.limits.max_total_seconds * 1_000 <= 1 << 53);
        assert_eq!(effective.clamps.len(), 2);
    }

    #[test]
    fn a_limit_goes_up_or_stays() {
        let limits = Limits { max_cost_usd: Exact::parse("2.50").ok(), ..Limits::BASE };
        assert_eq!(limits.raised(Dimension::Iterations, "12").unwrap().max_iterations, 12);
        assert!(limits.raised(Dimension::Iterations, "10").is_err());
        assert!(limits.raised(Dimension::Iterations, "many").is_err());
        assert!(limits.raised(Dimension::TotalSeconds, &u64::MAX.to_string()).is_err());
        let raised = limits.raised(Dimension::CostUsd, "2.51").unwrap();
        assert_eq!(raised.of(Dimension::CostUsd).as_deref(), Some("2.51"));
        assert!(limits.raised(Dimension::CostUsd, "2.5").is_err());
        assert!(limits.raised(Dimension::TotalTokens, "5").is_err(), "what is not limited cannot be raised");
        for dimension in Dimension::ALL {
            assert_eq!(Dimension::parse(dimension.name()), Some(dimension));
        }
    }

    #[test]
    fn unknown_cost_never_counts_as_zero_or_as_spent() {
        let limits = Limits { max_cost_usd: Some(Exact::ZERO), ..Limits::BASE };
        let unknown = Spent { cost_usd: None, ..Spent::default() };
        assert_eq!(totals_exhausted(&limits, &unknown), None);
        let known = Spent { cost_usd: Some(Exact::ZERO), ..Spent::default() };
        assert_eq!(totals_exhausted(&limits, &known).unwrap().dimension, Dimension::CostUsd);
    }

    #[test]
    fn each_dimension_is_reached_at_its_limit() {
        let spent = |f: fn(&mut Spent)| {
            let mut spent = Spent { cost_usd: Some(Exact::ZERO), ..Spent::default() };
            f(&mut spent);
            spent
        };
        let limits = Limits { max_total_tokens: Some(10), max_cost_usd: Exact::parse("1").ok(), ..Limits::BASE };
        let hit = |s: &Spent| run_exhausted(&limits, s).map(|e| e.dimension);
        assert_eq!(hit(&spent(|s| s.iterations = 9)), None);
        assert_eq!(hit(&spent(|s| s.iterations = 10)), Some(Dimension::Iterations));
        assert_eq!(hit(&spent(|s| s.millis = 14_399_999)), None);
        assert_eq!(hit(&spent(|s| s.millis = 14_400_000)), Some(Dimension::TotalSeconds));
        assert_eq!(hit(&spent(|s| s.tool_calls = 500)), Some(Dimension::TotalToolCalls));
        assert_eq!(hit(&spent(|s| s.output_tokens = 10)), Some(Dimension::TotalTokens));
        assert_eq!(hit(&spent(|s| s.cost_usd = Exact::parse("1.00").ok())), Some(Dimension::CostUsd));
        assert_eq!(hit(&spent(|s| s.iteration_tool_calls = 80)), None);
        let cut = spent(|s| s.iteration_tool_calls = 80);
        assert_eq!(iteration_exhausted(&limits, &cut).unwrap().dimension, Dimension::IterationToolCalls);
    }
}
