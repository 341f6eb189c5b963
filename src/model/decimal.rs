//! Exact, non-negative decimals: residuals, thresholds, limits.
//!
//! Role: read decimal text, compare, and calculate without losing a digit.
//! Not its role: quotients (see `fraction`), money formats, signed numbers.
//! Invariants: an [`Exact`] is finite, not negative, and stored with no trailing zeros, so that equal
//! values are equal in every representation. Nothing passes through floating point. `rust_decimal`
//! rounds silently when it runs out of places; here every result is exact or absent.

use std::borrow::Cow;
use std::fmt;

use rust_decimal::Decimal;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Longer texts are refused before they are read digit by digit.
const LONGEST_TEXT: usize = 1000;

/// The largest whole number that `rust_decimal` holds: 2^96 - 1.
const LARGEST_MANTISSA: i128 = 79_228_162_514_264_337_593_543_950_335;

/// A finite, non-negative decimal, held exactly.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Exact(Decimal);

/// Why a text is not an [`Exact`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    #[error("a decimal is missing: write digits, e.g. \"0.05\" or \"1e-4\"")]
    Empty,
    #[error("a decimal of {0} characters is too long: write at most {LONGEST_TEXT}")]
    TooLong(usize),
    #[error("`{0}` has blanks in it: write only the number, e.g. \"0.05\"")]
    Blank(String),
    #[error("`{0}` is not a number that can be compared: write a finite decimal, e.g. \"0.05\"")]
    NotFinite(String),
    #[error("`{0}` is negative: write a decimal that is zero or more")]
    Negative(String),
    #[error("`{0}` starts with a sign: write the digits alone")]
    Signed(String),
    #[error(
        "`{0}` is not a decimal: write digits, then perhaps a fraction and an exponent, e.g. \"12\", \"0.05\", \"1e-4\""
    )]
    Malformed(String),
    #[error("`{0}` cannot be held exactly: at most 28 decimal places and some 28 significant digits are kept")]
    NotHeldExactly(String),
}

impl Exact {
    pub const ZERO: Self = Self(Decimal::ZERO);

    /// Reads digits, an optional fraction and an optional exponent. Only zero may carry a minus sign.
    pub fn parse(text: &str) -> Result<Self, DecimalError> {
        if text.is_empty() {
            return Err(DecimalError::Empty);
        }
        if text.len() > LONGEST_TEXT {
            return Err(DecimalError::TooLong(text.chars().count()));
        }
        if text.chars().any(char::is_whitespace) {
            return Err(DecimalError::Blank(text.escape_debug().to_string()));
        }
        let (sign, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (Some('-'), &text[1..]),
            Some(b'+') => (Some('+'), &text[1..]),
            _ => (None, text),
        };
        if is_not_finite(unsigned) {
            return Err(DecimalError::NotFinite(text.to_owned()));
        }
        let parts = Parts::of(unsigned).ok_or_else(|| DecimalError::Malformed(text.escape_debug().to_string()))?;
        match sign {
            Some('-') if parts.is_zero() => Ok(Self::ZERO),
            Some('-') => Err(DecimalError::Negative(text.to_owned())),
            Some(_) => Err(DecimalError::Signed(text.to_owned())),
            None => parts.hold().ok_or_else(|| DecimalError::NotHeldExactly(text.to_owned())),
        }
    }

    pub fn from_u64(number: u64) -> Self {
        Self(Decimal::from(number))
    }

    pub fn is_zero(self) -> bool {
        self.0.is_zero()
    }

    /// The exact sum, or none when it cannot be held.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let (left, right, scale) = self.aligned(other)?;
        hold(left.checked_add(right)?, -scale)
    }

    /// The exact difference, or none when it is negative or cannot be held.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        if self < other {
            return None;
        }
        let (left, right, scale) = self.aligned(other)?;
        hold(left.checked_sub(right)?, -scale)
    }

    /// The exact product, or none when it cannot be held.
    pub fn checked_mul(self, other: Self) -> Option<Self> {
        if self.is_zero() || other.is_zero() {
            return Some(Self::ZERO);
        }
        let (mut left, left_exponent) = self.mantissa_without_zeros();
        let (mut right, right_exponent) = other.mantissa_without_zeros();
        let mut exponent = left_exponent + right_exponent;
        // A two on one side and a five on the other make a trailing zero; taken out first, what is
        // left cannot end in zero, so an overflow here means that the product really does not fit.
        for (two, five) in [(2, 5), (5, 2)] {
            while left % two == 0 && right % five == 0 {
                left /= two;
                right /= five;
                exponent += 1;
            }
        }
        hold(left.checked_mul(right)?, exponent)
    }

    pub fn decimal(self) -> Decimal {
        self.0
    }

    /// Money for people: dollars with at most four places, rounded up so that nothing spent reads as nothing. The
    /// record keeps every digit.
    pub fn dollars(self) -> String {
        let up = rust_decimal::RoundingStrategy::ToPositiveInfinity;
        format!("${}", self.0.round_dp_with_strategy(4, up))
    }

    /// For charts only. Never compare with it.
    pub fn to_f64_for_drawing(self) -> f64 {
        self.0.to_string().parse().unwrap_or(f64::MAX)
    }

    /// Both mantissas at the larger scale. None means that neither sum nor difference fits: the number
    /// with more places does not end in zero, so its places cannot be given up.
    fn aligned(self, other: Self) -> Option<(i128, i128, i32)> {
        let scale = self.0.scale().max(other.0.scale());
        let lift = |value: Decimal| value.mantissa().checked_mul(10i128.checked_pow(scale - value.scale())?);
        Some((lift(self.0)?, lift(other.0)?, i32::try_from(scale).ok()?))
    }

    fn mantissa_without_zeros(self) -> (i128, i32) {
        let scale = i32::try_from(self.0.scale()).unwrap_or_default();
        strip_zeros(self.0.mantissa(), -scale)
    }
}

/// The pieces of a decimal text, each only digits.
struct Parts<'a> {
    whole: &'a str,
    fraction: &'a str,
    exponent: i64,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let (number, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], exponent(&text[at + 1..])?),
            None => (text, 0),
        };
        let (whole, fraction) = match number.split_once('.') {
            Some((whole, fraction)) if is_digits(fraction) => (whole, fraction),
            Some(_) => return None,
            None => (number, ""),
        };
        is_digits(whole).then_some(Self { whole, fraction, exponent })
    }

    fn digits(&self) -> impl Iterator<Item = u8> + '_ {
        self.whole.bytes().chain(self.fraction.bytes()).map(|digit| digit - b'0')
    }

    fn is_zero(&self) -> bool {
        self.digits().all(|digit| digit == 0)
    }

    fn hold(&self) -> Option<Exact> {
        let count = self.whole.len() + self.fraction.len();
        let trailing = self.digits().collect::<Vec<_>>().iter().rev().take_while(|digit| **digit == 0).count();
        if trailing == count {
            return Some(Exact::ZERO);
        }
        let mut mantissa = 0i128;
        for digit in self.digits().take(count - trailing) {
            mantissa = mantissa.checked_mul(10)?.checked_add(i128::from(digit))?;
        }
        let places = i64::try_from(self.fraction.len()).ok()? - i64::try_from(trailing).ok()?;
        hold(mantissa, i32::try_from(self.exponent.checked_sub(places)?).ok()?)
    }
}

/// The digits after `e`. Far too large exponents saturate: they are refused later anyway.
fn exponent(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if !is_digits(digits) {
        return None;
    }
    let size = digits.parse::<i64>().unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
    Some(if negative { -size } else { size })
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_not_finite(text: &str) -> bool {
    let lower = text.trim_start_matches('.').to_ascii_lowercase();
    ["nan", "snan", "qnan", "inf", "infinity"].contains(&lower.as_str())
}

/// Moves trailing zeros of `mantissa` into the power of ten.
fn strip_zeros(mut mantissa: i128, mut exponent: i32) -> (i128, i32) {
    while mantissa != 0 && mantissa % 10 == 0 {
        mantissa /= 10;
        exponent += 1;
    }
    (mantissa, exponent)
}

/// `mantissa` times ten to the `exponent`, if it fits exactly.
fn hold(mantissa: i128, exponent: i32) -> Option<Exact> {
    if mantissa == 0 {
        return Some(Exact::ZERO);
    }
    let (mantissa, exponent) = strip_zeros(mantissa, exponent);
    let (mantissa, scale) = match u32::try_from(exponent) {
        Ok(up) => (mantissa.checked_mul(10i128.checked_pow(up)?)?, 0),
        Err(_) => (mantissa, exponent.unsigned_abs()),
    };
    if !(0..=LARGEST_MANTISSA).contains(&mantissa) || scale > Decimal::MAX_SCALE {
        return None;
    }
    Decimal::try_from_i128_with_scale(mantissa, scale).ok().map(Exact)
}

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Serialize for Exact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Exact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // `any`, because YAML would hand the text of a plain number to a request for a string.
        deserializer.deserialize_any(OnlyText)
    }
}

struct OnlyText;

impl OnlyText {
    fn number<E: serde::de::Error>() -> E {
        E::custom("write it as a quoted decimal string, e.g. \"1e-4\": a number would pass through floating point")
    }
}

impl serde::de::Visitor<'_> for OnlyText {
    type Value = Exact;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quoted decimal string, e.g. \"1e-4\"")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Exact, E> {
        Exact::parse(text).map_err(E::custom)
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Exact, E> {
        Err(Self::number())
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<Exact, E> {
        Err(Self::number())
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<Exact, E> {
        Err(Self::number())
    }

    fn visit_i128<E: serde::de::Error>(self, _: i128) -> Result<Exact, E> {
        Err(Self::number())
    }

    fn visit_u128<E: serde::de::Error>(self, _: u128) -> Result<Exact, E> {
        Err(Self::number())
    }
}

impl JsonSchema for Exact {
    fn schema_name() -> Cow<'static, str> {
        "Decimal".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A decimal as text, zero or more, held exactly; e.g. \"1e-4\".",
            "pattern": "^([0-9]+(\\.[0-9]+)?([eE][+-]?[0-9]+)?|-0+(\\.0+)?([eE][+-]?[0-9]+)?)$"
        })
    }
}

#[cfg(test)]
#[path = "decimal_tests.rs"]
mod tests;
