//! Exact decimals against an oracle without limits.

use std::str::FromStr;

use bigdecimal::BigDecimal;
use proptest::prelude::*;

use super::*;

fn exact(text: &str) -> Exact {
    Exact::parse(text).unwrap()
}

fn big(value: Exact) -> BigDecimal {
    BigDecimal::from_str(&value.to_string()).unwrap()
}

/// The oracle's answer to "can this be held?", worked out without the code under test.
fn fits(value: &BigDecimal) -> bool {
    let (mantissa, scale) = value.normalized().into_bigint_and_scale();
    let (mantissa, scale) = if scale < 0 {
        match scale {
            -40..0 => (mantissa * bigdecimal::num_bigint::BigInt::from(10).pow(scale.unsigned_abs() as u32), 0),
            _ => return false,
        }
    } else {
        (mantissa, scale)
    };
    scale <= 28 && mantissa <= bigdecimal::num_bigint::BigInt::from(LARGEST_MANTISSA)
}

#[test]
fn canonical_text() {
    for (text, printed) in [
        ("1e-4", "0.0001"),
        ("5E-2", "0.05"),
        ("0.90", "0.9"),
        ("12", "12"),
        ("0012.50", "12.5"),
        ("1.5e+3", "1500"),
        ("120e-1", "12"),
        ("0", "0"),
        ("0.000", "0"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("0e999999999999999999999", "0"),
        ("1e-28", "0.0000000000000000000000000001"),
        ("79228162514264337593543950335", "79228162514264337593543950335"),
        ("7.9228162514264337593543950335", "7.9228162514264337593543950335"),
        ("0.50000000000000000000000000000000000000000", "0.5"),
    ] {
        assert_eq!(exact(text).to_string(), printed, "{text}");
    }
}

#[test]
fn refused_texts_say_why() {
    use DecimalError as E;
    let held = |text: &str| E::NotHeldExactly(text.into());
    let malformed = |text: &str| E::Malformed(text.into());
    for (text, error) in [
        ("", E::Empty),
        (".5", malformed(".5")),
        ("5.", malformed("5.")),
        ("1_000", malformed("1_000")),
        ("1e", malformed("1e")),
        ("1e-", malformed("1e-")),
        ("0x10", malformed("0x10")),
        ("١", malformed("١")),
        ("-", malformed("-")),
        ("--0", malformed("--0")),
        ("-5", E::Negative("-5".into())),
        ("+5", E::Signed("+5".into())),
        (" 5", E::Blank(" 5".into())),
        ("5\n", E::Blank("5\\n".into())),
        ("NaN", E::NotFinite("NaN".into())),
        ("-inf", E::NotFinite("-inf".into())),
        (".inf", E::NotFinite(".inf".into())),
        ("Infinity", E::NotFinite("Infinity".into())),
        ("1e-40", held("1e-40")),
        ("1e-29", held("1e-29")),
        ("0.00000000000000000000000000001", held("0.00000000000000000000000000001")),
        ("1.23456789012345678901234567890123", held("1.23456789012345678901234567890123")),
        ("79228162514264337593543950336", held("79228162514264337593543950336")),
        ("1e29", held("1e29")),
        ("1e99999999999999999999", held("1e99999999999999999999")),
    ] {
        assert_eq!(Exact::parse(text), Err(error), "{text}");
    }
    assert!(held("1e-40").to_string().contains("cannot be held exactly: at most 28 decimal places"));
    assert_eq!(Exact::parse(&"1".repeat(1001)), Err(E::TooLong(1001)));
}

#[test]
fn what_rust_decimal_gets_wrong() {
    let max = exact("79228162514264337593543950335");
    assert_eq!(max.checked_add(exact("0.1")), None);
    let tiny = exact("1e-10");
    assert_eq!(tiny.checked_mul(tiny).and_then(|square| square.checked_mul(tiny)), None);
    assert_eq!(exact("9999999999999999999").checked_add(exact("1e-10")), None);
    assert_eq!(exact("0.3").checked_sub(exact("0.1")), Some(exact("0.2")));
    assert_eq!(exact("0.1").checked_sub(exact("0.3")), None);
    // The guards on rust_decimal's own result would refuse this exact one.
    assert_eq!(exact("1e-28").checked_mul(exact("1e28")), Some(exact("1")));
}

#[test]
fn only_quoted_text_is_read() {
    let message = "write it as a quoted decimal string, e.g. \"1e-4\": a number would pass through floating point";
    for yaml in ["0.1", "1e-4", "5", "-5", "123456789012345678901234567890"] {
        let error = serde_yaml::from_str::<Exact>(yaml).unwrap_err().to_string();
        assert!(error.starts_with(message), "{yaml}: {error}");
    }
    assert!(serde_json::from_str::<Exact>("0.1").unwrap_err().to_string().starts_with(message));
    assert!(serde_yaml::from_str::<Exact>("null").is_err());
    assert_eq!(serde_yaml::from_str::<Exact>("\"1e-4\"").unwrap(), exact("0.0001"));
    assert_eq!(serde_json::to_string(&exact("1e-4")).unwrap(), "\"0.0001\"");
}

#[test]
fn zero_and_u64() {
    assert!(Exact::ZERO.is_zero() && exact("-0.0") == Exact::ZERO);
    assert_eq!(Exact::from_u64(u64::MAX).to_string(), u64::MAX.to_string());
    assert_eq!(exact("0.25").to_f64_for_drawing(), 0.25);
}

fn any_text() -> impl Strategy<Value = String> {
    ("[0-9]{1,31}", proptest::option::of("[0-9]{1,31}"), proptest::option::of(-40i32..40)).prop_map(
        |(whole, fraction, exponent)| {
            let fraction = fraction.map(|digits| format!(".{digits}")).unwrap_or_default();
            let exponent = exponent.map(|power| format!("e{power}")).unwrap_or_default();
            format!("{whole}{fraction}{exponent}")
        },
    )
}

fn any_exact() -> impl Strategy<Value = Exact> {
    (0..=LARGEST_MANTISSA, 0u32..96, 0u32..=28).prop_map(|(mantissa, shift, scale)| {
        Exact(Decimal::try_from_i128_with_scale(mantissa >> shift, scale).unwrap().normalize())
    })
}

proptest! {
    #[test]
    fn parsing_agrees_with_the_oracle(text in any_text()) {
        let oracle = BigDecimal::from_str(&text).unwrap();
        match Exact::parse(&text) {
            Ok(value) => prop_assert_eq!(big(value), oracle),
            Err(error) => {
                prop_assert_eq!(error, DecimalError::NotHeldExactly(text));
                prop_assert!(!fits(&oracle));
            }
        }
    }

    #[test]
    fn print_then_parse(value in any_exact()) {
        prop_assert_eq!(Exact::parse(&value.to_string()), Ok(value));
        let json = serde_json::to_string(&value).unwrap();
        prop_assert_eq!(serde_json::from_str::<Exact>(&json).unwrap(), value);
    }

    #[test]
    fn nothing_panics(text in any::<String>()) {
        let _ = Exact::parse(&text);
    }

    #[test]
    fn operations_are_exact_or_absent(a in any_exact(), b in any_exact()) {
        let cases = [
            (a.checked_add(b), big(a) + big(b)),
            (a.checked_mul(b), big(a) * big(b)),
            (a.checked_sub(b), big(a) - big(b)),
        ];
        let zero = BigDecimal::from(0);
        for (got, oracle) in cases {
            match got {
                Some(value) => prop_assert_eq!(big(value), oracle),
                None => prop_assert!(oracle < zero || !fits(&oracle)),
            }
        }
        prop_assert_eq!(a.cmp(&b), big(a).cmp(&big(b)));
    }
}

#[test]
fn dollars_have_four_places_and_nothing_spent_reads_as_nothing() {
    let shown = |text: &str| Exact::parse(text).unwrap().dollars();
    assert_eq!(shown("0.091197000000000006"), "$0.0912");
    assert_eq!(shown("0.000001"), "$0.0001");
    assert_eq!((shown("0"), shown("1.25")), ("$0".to_owned(), "$1.25".to_owned()));
}
