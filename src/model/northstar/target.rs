//! What a target asks for: a value to meet, or a bound to reach.
//!
//! Role: read the sign in front of (or the plus behind) a target, and say how far a value is from it. Not its role:
//! the numbers themselves (`number`), or what several metrics come to.
//!
//! Invariants: beyond a bound the distance is zero; a target that is not reached is never at distance zero.

use super::Metric;
use super::number;
use crate::model::fraction::Fraction;

/// How a target is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    Point,
    AtLeast,
    Above,
    AtMost,
    Below,
}

impl Bound {
    fn of(target: &str) -> Self {
        let text = target.trim().trim_matches(['*', '`', '_']).trim_start();
        let signs = [(">=", Self::AtLeast), ("≥", Self::AtLeast), ("<=", Self::AtMost), ("≤", Self::AtMost)];
        let strict = [(">", Self::Above), ("<", Self::Below)];
        let sign = signs.into_iter().chain(strict).find(|(sign, _)| text.starts_with(sign));
        let more = || text.trim_start_matches(|c: char| c.is_ascii_digit() || ",.".contains(c)).starts_with('+');
        sign.map(|(_, bound)| bound).unwrap_or(if more() { Self::AtLeast } else { Self::Point })
    }

    const fn is_strict(self) -> bool {
        matches!(self, Self::Above | Self::Below)
    }

    fn is_reached(self, current: Fraction, target: Fraction) -> bool {
        match self {
            Self::Point => current == target,
            Self::AtLeast => current >= target,
            Self::Above => current > target,
            Self::AtMost => current <= target,
            Self::Below => current < target,
        }
    }
}

/// |current - target| / |target|, for a target of zero |current|; zero once a bound is reached. A strict bound that is
/// not passed counts one more: whoever stands on `> 0` has not arrived.
pub(super) fn distance(metric: &Metric) -> Option<Fraction> {
    let bound = Bound::of(&metric.target);
    let current = Fraction::from_decimal(number(&metric.current)?)?;
    let target = Fraction::from_decimal(number(&metric.target)?)?;
    if bound.is_reached(current, target) {
        return Some(Fraction::zero());
    }
    let gap = super::relative(metric)?;
    if bound.is_strict() { gap.checked_add(Fraction::from_integer(1)) } else { Some(gap) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(current: &str, target: &str) -> Fraction {
        let metric = Metric { id: "m".into(), metric: "m".into(), current: current.into(), target: target.into() };
        distance(&metric).unwrap()
    }

    #[test]
    fn beyond_a_bound_there_is_no_distance() {
        for (current, target) in [
            ("45", ">= 40"),
            ("40", "≥40"),
            ("120", "100+ skills"),
            ("1", "<= 2"),
            ("0", "≤ 0"),
            ("1", "> 0"),
            ("4", "< 5"),
            ("100 %", "100 %"),
            ("99", ">= 80%"),
        ] {
            assert!(at(current, target).is_zero(), "{current} of {target}");
        }
    }

    #[test]
    fn before_a_bound_the_distance_shrinks_and_is_never_zero() {
        for (far, near, target) in [
            ("20", "39", ">= 40"),
            ("9", "3", "<= 2"),
            ("-3", "0", "> 0"),
            ("7", "5", "< 5"),
            ("10", "90", "100 %"),
            ("60", "45", "40"),
        ] {
            assert!(at(far, target) > at(near, target) && !at(near, target).is_zero(), "{far}, {near} of {target}");
        }
        assert!(at("45", "40") > at("41", "40"), "a plain number is a point: past it means away from it");
    }
}
