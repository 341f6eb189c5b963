//! The numbers behind the triggers. Whole numbers and fractions; nothing is rounded but the scores, to nine places.

use std::collections::BTreeMap;

use crate::machine::run::RunState;
use crate::model::decimal::Exact;
use crate::model::fraction::Fraction;
use crate::model::report::Report;
use crate::model::value::tools::Structured;
use crate::model::value::{Task, Vrc};

/// Decision steps for which the value has to stay flat.
pub const PATIENCE: usize = 5;
/// Value checks without which there is no velocity to speak of.
const MIN_CHECKS: usize = 3;
/// The moving average looks at this many of the latest changes, so that its parts stay small numbers.
const WINDOW: usize = 5;
/// The weight of the newest change, in tenths.
const ALPHA_TENTHS: i128 = 3;
/// Flat: the velocity is at most this share of the run's own mean velocity. A run that gains a little with each check
/// has a velocity equal to its mean and is never flat, however small its steps; one that stopped gaining has none.
const FLAT: i128 = 10;
/// From here on there is not enough left to gain to call it flat.
const NEARLY_THERE: (i128, i128) = (9, 10);
/// Scores are compared in billionths.
const BILLION: i128 = 1_000_000_000;
/// The value per this many tokens.
const TOKENS: i128 = 1_000_000;
/// Of a cause this much is compared.
const CAUSE_CHARS: usize = 60;

/// Checks that measured something. One that was carried forward says nothing new.
fn measured(run: &RunState) -> Vec<(&Vrc, i128)> {
    let billionths = |score: Exact| {
        let fraction = Fraction::from_exact(score);
        fraction.numerator().checked_mul(BILLION).map(|scaled| scaled / fraction.denominator())
    };
    let own = run.value().vrcs.iter().filter(|vrc| !vrc.carried);
    own.filter_map(|vrc| billionths(vrc.value_score).map(|score| (vrc, score))).collect()
}

/// The moving average of the latest changes, as a numerator over 10^(WINDOW - 1).
fn moving_average(changes: &[i128]) -> Option<Fraction> {
    let (first, rest) = changes[changes.len().saturating_sub(WINDOW)..].split_first()?;
    let mut average = Fraction::new(*first, 1)?;
    let (newest, kept) = (Fraction::new(ALPHA_TENTHS, 10)?, Fraction::new(10 - ALPHA_TENTHS, 10)?);
    for change in rest {
        average = average.checked_mul(kept)?.checked_add(Fraction::new(*change, 1)?.checked_mul(newest)?)?;
    }
    Some(average)
}

/// A value that stopped moving.
pub struct Flat {
    /// The step of the check since which every check found it flat.
    pub step: u32,
    pub score: Exact,
}

/// Since when the value has not moved; `None`: it moves, or is nearly there, or too little is known.
pub fn flat_since(run: &RunState) -> Option<Flat> {
    let checks = measured(run);
    let latest = checks.last()?;
    if checks.len() < MIN_CHECKS
        || Fraction::from_exact(latest.0.value_score) >= Fraction::new(NEARLY_THERE.0, NEARLY_THERE.1)?
    {
        return None;
    }
    let changes: Vec<i128> = checks.windows(2).map(|pair| pair[1].1 - pair[0].1).collect();
    let is_flat = |count: usize| {
        let gained: i128 = changes[..count].iter().sum();
        let mean = i128::try_from(count).ok().and_then(|count| Fraction::new(gained.max(0), count * FLAT));
        matches!((moving_average(&changes[..count]), mean), (Some(velocity), Some(mean)) if velocity <= mean)
    };
    // From the latest check back to the first of those that are all flat.
    let first = (1..=changes.len()).rev().take_while(|count| is_flat(*count)).last()?;
    let (since, _) = checks.get(first)?;
    Some(Flat { step: since.step, score: latest.0.value_score })
}

/// Is the value gained per token less than half of its mean so far?
pub fn efficiency_collapsed(run: &RunState) -> bool {
    let checks = measured(run);
    let gains: Vec<i128> = checks
        .windows(2)
        .filter_map(|pair| {
            let between = run.value().log.iter().filter(|one| one.step > pair[0].0.step && one.step <= pair[1].0.step);
            let tokens = between.map(|one| i128::from(one.tokens)).sum::<i128>();
            let gain = (pair[1].1 - pair[0].1).checked_mul(TOKENS)?;
            (tokens > 0).then(|| gain / tokens)
        })
        .collect();
    if gains.len() < MIN_CHECKS {
        return false;
    }
    let sum: i128 = gains.iter().sum();
    let half = i128::try_from(gains.len()).ok().and_then(|count| Fraction::new(sum, count * 2));
    sum > 0 && matches!((moving_average(&gains), half), (Some(now), Some(half)) if now < half)
}

/// The file that most of these tasks created or changed; the first by name of several.
pub fn most_touched<'a>(tasks: &[&'a Task]) -> Option<(&'a str, usize)> {
    let mut touched: BTreeMap<&str, usize> = BTreeMap::new();
    for task in tasks {
        let mut files: Vec<&str> = task.files_created.iter().chain(&task.files_modified).map(String::as_str).collect();
        files.sort_unstable();
        files.dedup();
        for file in files {
            *touched.entry(file).or_default() += 1;
        }
    }
    most(touched)
}

/// The cause that most failures were put down to: its words, how many, of how many.
pub fn most_named_cause(run: &RunState) -> Option<(String, usize, usize)> {
    let mut causes: BTreeMap<String, usize> = BTreeMap::new();
    for accepted in run.iterations().flat_map(|iteration| iteration.reports.values()) {
        let Report::Value(Structured::ReportTriage(triage)) = &accepted.report else { continue };
        for root in &triage.root_causes {
            let words = root.cause.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
            let cause: String = words.chars().take(CAUSE_CHARS).collect();
            *causes.entry(cause).or_default() += root.affected_tests.len();
        }
    }
    let all = causes.values().sum();
    most(causes).map(|(cause, count)| (cause, count, all))
}

fn most<K: Ord>(counts: BTreeMap<K, usize>) -> Option<(K, usize)> {
    let mut found: Option<(K, usize)> = None;
    for (key, count) in counts {
        if found.as_ref().is_none_or(|(_, most)| count > *most) {
            found = Some((key, count));
        }
    }
    found
}

/// Is `part` more than this share of `all`?
pub fn is_more_than(part: usize, all: usize, share: (i128, i128)) -> bool {
    let of = |number: usize| i128::try_from(number).ok();
    match (of(part), of(all)) {
        (Some(part), Some(all)) => part * share.1 > all * share.0,
        _ => false,
    }
}
