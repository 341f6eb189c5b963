//! Exact quotients: means and relative distances that no decimal can hold.
//!
//! Role: compare and combine ratios without division.
//! Not its role: unbounded arithmetic; what does not fit in 128 bits is absent, never rounded.
//! Invariants: lowest terms, denominator above zero, so equal values are equal structures. Ordering
//! never multiplies, so it cannot overflow.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::decimal::Exact;

/// More places than this are never printed.
const MOST_PLACES: u32 = 1000;

/// A ratio in lowest terms. May be negative.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fraction {
    num: i128,
    den: i128,
}

impl Fraction {
    /// None for a zero denominator, or when a part does not fit.
    pub fn new(num: i128, den: i128) -> Option<Self> {
        let (top, bottom) = (num.unsigned_abs(), den.unsigned_abs());
        if bottom == 0 {
            return None;
        }
        let common = gcd(top, bottom);
        let top = i128::try_from(top / common).ok()?;
        let den_reduced = i128::try_from(bottom / common).ok()?;
        let num = if (num < 0) == (den < 0) { top } else { -top };
        Some(Self { num, den: den_reduced })
    }

    pub const fn zero() -> Self {
        Self { num: 0, den: 1 }
    }

    pub const fn numerator(self) -> i128 {
        self.num
    }

    pub const fn denominator(self) -> i128 {
        self.den
    }

    pub fn from_integer(number: u64) -> Self {
        Self { num: i128::from(number), den: 1 }
    }

    pub fn from_decimal(decimal: Decimal) -> Option<Self> {
        Self::new(decimal.mantissa(), 10i128.checked_pow(decimal.scale())?)
    }

    /// Always fits: 96 bits over at most 10^28.
    pub fn from_exact(value: Exact) -> Self {
        Self::from_decimal(value.decimal()).unwrap_or(Self::zero())
    }

    pub const fn is_zero(self) -> bool {
        self.num == 0
    }

    pub fn checked_add(self, other: Self) -> Option<Self> {
        // Taking the common part of the denominators out first keeps the intermediate values small.
        let common = i128::try_from(gcd(self.den.unsigned_abs(), other.den.unsigned_abs())).ok()?;
        let (left, right) = (self.den / common, other.den / common);
        let sum = self.num.checked_mul(right)?.checked_add(other.num.checked_mul(left)?)?;
        let again = i128::try_from(gcd(sum.unsigned_abs(), common.unsigned_abs())).ok()?;
        Self::new(sum / again, left.checked_mul(other.den / again)?)
    }

    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.checked_add(Self { num: -other.num, den: other.den })
    }

    pub fn checked_mul(self, other: Self) -> Option<Self> {
        let first = Self::new(self.num, other.den)?;
        let second = Self::new(other.num, self.den)?;
        Self::new(first.num.checked_mul(second.num)?, first.den.checked_mul(second.den)?)
    }

    /// None also for a zero divisor.
    pub fn checked_div(self, other: Self) -> Option<Self> {
        self.checked_mul(Self::new(other.den, other.num)?)
    }

    pub fn abs(self) -> Self {
        Self { num: self.num.abs(), den: self.den }
    }

    /// Plain decimal text, rounded half away from zero at `places`, without trailing zeros.
    pub fn to_decimal_text(self, places: u32) -> String {
        let (mut digits, rest) = self.long_division(places);
        if rest >= self.den.unsigned_abs() - rest {
            digits.step_up();
        }
        let text = digits.text();
        if self.num < 0 && text != "0" { format!("-{text}") } else { text }
    }

    /// The smallest decimal with at most `places` places that is not below this. None when negative or
    /// when it cannot be held.
    pub fn to_exact_rounded_up(self, places: u32) -> Option<Exact> {
        if self.num < 0 {
            return None;
        }
        let (mut digits, rest) = self.long_division(places);
        if rest > 0 {
            digits.step_up();
        }
        Exact::parse(&digits.text()).ok()
    }

    /// The magnitude's whole part and digits, and the remainder after the last place.
    fn long_division(self, places: u32) -> (Digits, u128) {
        let (top, bottom) = (self.num.unsigned_abs(), self.den.unsigned_abs());
        let mut digits = Digits { whole: top / bottom, places: Vec::new() };
        let mut rest = top % bottom;
        for _ in 0..places.min(MOST_PLACES) {
            if rest == 0 {
                break;
            }
            // Ten times the remainder may not fit, so it is added up ten times.
            let (mut sum, mut digit) = (0u128, 0u8);
            for _ in 0..10 {
                sum += rest;
                if sum >= bottom {
                    sum -= bottom;
                    digit += 1;
                }
            }
            digits.places.push(digit);
            rest = sum;
        }
        (digits, rest)
    }

    fn magnitude(self) -> (u128, u128) {
        (self.num.unsigned_abs(), self.den.unsigned_abs())
    }
}

struct Digits {
    whole: u128,
    places: Vec<u8>,
}

impl Digits {
    /// Adds one in the last place.
    fn step_up(&mut self) {
        for digit in self.places.iter_mut().rev() {
            if *digit < 9 {
                *digit += 1;
                return;
            }
            *digit = 0;
        }
        self.whole += 1;
    }

    fn text(&self) -> String {
        let places: String = self.places.iter().map(|digit| char::from(b'0' + digit)).collect();
        match places.trim_end_matches('0') {
            "" => self.whole.to_string(),
            places => format!("{}.{places}", self.whole),
        }
    }
}

/// Never zero unless both are.
fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Compares two ratios by their continued fractions: whole parts first, then the remainders upside down.
fn compare((mut a, mut b): (u128, u128), (mut c, mut d): (u128, u128)) -> Ordering {
    let mut turned = false;
    loop {
        let (left, right) = (a % b, c % d);
        let order = (a / b).cmp(&(c / d));
        // Against nothing left over, anything left over is more.
        let order = order.then((left != 0).cmp(&(right != 0)));
        if order != Ordering::Equal || left == 0 {
            return if turned { order.reverse() } else { order };
        }
        (a, b, c, d) = (b, left, d, right);
        turned = !turned;
    }
}

impl Ord for Fraction {
    fn cmp(&self, other: &Self) -> Ordering {
        self.num.signum().cmp(&other.num.signum()).then_with(|| {
            let order = compare(self.magnitude(), other.magnitude());
            if self.num < 0 { order.reverse() } else { order }
        })
    }
}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.num, self.den)
    }
}

impl fmt::Debug for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Text that is not a fraction as this module writes it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a fraction in lowest terms, e.g. \"1/3\"")]
pub struct NotAFraction;

impl FromStr for Fraction {
    type Err = NotAFraction;

    /// One fraction has one spelling: `2/4`, `1/-2` and `+1/2` are refused.
    fn from_str(text: &str) -> Result<Self, NotAFraction> {
        let (num, den) = text.split_once('/').ok_or(NotAFraction)?;
        let parse = |part: &str| part.parse::<i128>().map_err(|_| NotAFraction);
        let value = Self::new(parse(num)?, parse(den)?).ok_or(NotAFraction)?;
        if value.to_string() == text { Ok(value) } else { Err(NotAFraction) }
    }
}

impl Serialize for Fraction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fraction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use bigdecimal::BigDecimal;
    use proptest::prelude::*;

    use super::*;

    fn f(num: i128, den: i128) -> Fraction {
        Fraction::new(num, den).unwrap()
    }

    fn big(number: i128) -> BigDecimal {
        number.to_string().parse().unwrap()
    }

    /// Is `got` equal to `num/den`? By cross-multiplication without bounds.
    fn equals(got: Fraction, num: BigDecimal, den: BigDecimal) -> bool {
        big(got.num) * den == num * big(got.den)
    }

    #[test]
    fn lowest_terms_and_sign() {
        assert_eq!(f(2, -4), f(-1, 2));
        assert_eq!((f(2, -4).num, f(2, -4).den), (-1, 2));
        assert_eq!(f(0, -7), Fraction::zero());
        assert_eq!(Fraction::new(1, 0), None);
        assert_eq!(Fraction::new(i128::MIN, 1), None);
        assert_eq!(Fraction::new(i128::MIN, i128::MIN), Some(f(1, 1)));
        assert_eq!(f(1, 2).checked_div(Fraction::zero()), None);
        assert_eq!(f(-1, 2).abs(), f(1, 2));
    }

    #[test]
    fn thirds_stay_thirds() {
        let third = f(1, 3);
        assert_eq!(third.checked_add(third).and_then(|two| two.checked_add(third)), Some(f(1, 1)));
        assert_eq!(f(1, 1).checked_div(f(3, 1)), Some(third));
    }

    #[test]
    fn decimal_text() {
        for (value, places, text) in [
            (f(1, 3), 12, "0.333333333333"),
            (f(2, 3), 12, "0.666666666667"),
            (f(1, 8), 12, "0.125"),
            (f(1, 8), 2, "0.13"),
            (f(-1, 8), 2, "-0.13"),
            (f(999, 1000), 2, "1"),
            (f(1, 2), 0, "1"),
            (f(-1, 1000), 2, "0"),
            (f(0, 1), 12, "0"),
            (f(100, 1), 3, "100"),
            (f(i128::MAX - 1, i128::MAX), 5, "1"),
        ] {
            assert_eq!(value.to_decimal_text(places), text, "{value} at {places}");
        }
        assert_eq!(f(1, 3).to_decimal_text(u32::MAX).len(), 1002);
    }

    #[test]
    fn rounding_up_is_never_below() {
        assert_eq!(f(1, 3).to_exact_rounded_up(2), Exact::parse("0.34").ok());
        assert_eq!(f(1, 4).to_exact_rounded_up(2), Exact::parse("0.25").ok());
        assert_eq!(f(-1, 4).to_exact_rounded_up(2), None);
        assert_eq!(f(1, 3).to_exact_rounded_up(29), None);
        assert_eq!(f(i128::MAX, 1).to_exact_rounded_up(2), None);
    }

    #[test]
    fn close_giants_are_told_apart() {
        let (a, b) = (f(i128::MAX - 1, i128::MAX), f(i128::MAX - 2, i128::MAX - 1));
        assert_eq!((a.cmp(&b), b.cmp(&a), a.cmp(&a)), (Ordering::Greater, Ordering::Less, Ordering::Equal));
        assert!(f(-1, 3) < f(1, i128::MAX));
    }

    #[test]
    fn one_spelling() {
        assert_eq!(serde_json::to_string(&f(-1, 3)).unwrap(), "\"-1/3\"");
        assert_eq!(serde_json::from_str::<Fraction>("\"-1/3\"").unwrap(), f(-1, 3));
        for text in ["2/4", "1/-2", "+1/2", "1", "1/0", "a/b", " 1/2", "01/2"] {
            assert_eq!(text.parse::<Fraction>(), Err(NotAFraction), "{text}");
        }
    }

    fn part() -> impl Strategy<Value = i128> {
        (any::<i128>(), 0u32..127).prop_map(|(number, shift)| number >> shift)
    }

    fn any_fraction() -> impl Strategy<Value = Fraction> {
        (part(), part()).prop_filter_map("zero denominator", |(num, den)| Fraction::new(num, den))
    }

    proptest! {
        #[test]
        fn order_agrees_with_the_oracle(a in any_fraction(), b in any_fraction()) {
            let oracle = (big(a.num) * big(b.den)).cmp(&(big(b.num) * big(a.den)));
            prop_assert_eq!(a.cmp(&b), oracle);
            prop_assert_eq!(b.cmp(&a), oracle.reverse());
            prop_assert_eq!(a == b, oracle == Ordering::Equal);
        }

        #[test]
        fn neighbours_are_ordered(num in part(), den in part(), step in -2i128..3) {
            if let (Some(a), Some(b)) = (Fraction::new(num, den), Fraction::new(num, den.saturating_add(step))) {
                let oracle = (big(a.num) * big(b.den)).cmp(&(big(b.num) * big(a.den)));
                prop_assert_eq!(a.cmp(&b), oracle);
            }
        }

        #[test]
        fn operations_are_exact_or_absent(a in any_fraction(), b in any_fraction()) {
            let (an, ad, bn, bd) = (big(a.num), big(a.den), big(b.num), big(b.den));
            if let Some(sum) = a.checked_add(b) {
                prop_assert!(equals(sum, &an * &bd + &bn * &ad, &ad * &bd));
            }
            if let Some(difference) = a.checked_sub(b) {
                prop_assert!(equals(difference, &an * &bd - &bn * &ad, &ad * &bd));
            }
            if let Some(product) = a.checked_mul(b) {
                prop_assert!(equals(product, &an * &bn, &ad * &bd));
            }
            if let Some(quotient) = a.checked_div(b) {
                prop_assert!(equals(quotient, &an * &bd, &ad * &bn));
            }
        }

        #[test]
        fn small_operations_are_never_absent(a in -9999i128..9999, b in 1i128..9999, c in -9999i128..9999, d in 1i128..9999) {
            let (left, right) = (f(a, b), f(c, d));
            prop_assert!(left.checked_add(right).is_some() && left.checked_mul(right).is_some());
        }

        #[test]
        fn text_is_within_half_a_place(value in any_fraction(), places in 0u32..20) {
            let text: BigDecimal = value.to_decimal_text(places).parse().unwrap();
            let unit = BigDecimal::new(1.into(), i64::from(places));
            let off = (text * big(value.den) - big(value.num)).abs();
            prop_assert!(off * BigDecimal::from(2) <= unit * big(value.den));
        }

        #[test]
        fn rounded_up_is_the_least_above(num in 0i128..1_000_000, den in 1i128..1_000_000, places in 0u32..12) {
            let value = f(num, den);
            let up: BigDecimal = value.to_exact_rounded_up(places).unwrap().to_string().parse().unwrap();
            let unit = BigDecimal::new(1.into(), i64::from(places));
            prop_assert!(&up * big(den) >= big(num));
            prop_assert!((up - unit) * big(den) < big(num));
        }

        #[test]
        fn text_round_trips(value in any_fraction()) {
            prop_assert_eq!(value.to_string().parse::<Fraction>(), Ok(value));
        }
    }
}
