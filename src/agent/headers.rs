//! Response headers that matter: when to come back, and how much is left.
//!
//! Role: read `request-id`, `retry-after` in its three forms, `x-should-retry`, and the families
//! `anthropic-ratelimit-*` and `x-ratelimit-*`. Pure: the caller brings the clock.
//! Not its role: acting on them.
//!
//! Invariant: an unreadable or hostile header is an absent one; no value can overflow a duration.

use super::error::token;
use super::message::{RateLimits, RateWindow};
use jiff::Timestamp;
use reqwest::header::HeaderMap;
use std::time::Duration;

/// No server is believed when it asks for more than this.
const LONGEST_WAIT: Duration = Duration::from_secs(366 * 24 * 3600);

fn get<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
}

pub fn request_id(headers: &HeaderMap) -> Option<String> {
    let named = |name| get(headers, name).filter(|id| !id.is_empty());
    named("request-id").or_else(|| named("x-request-id")).map(token)
}

pub fn should_retry(headers: &HeaderMap) -> Option<bool> {
    match get(headers, "x-should-retry")? {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// `retry-after-ms`, else `retry-after` as seconds or as an HTTP date. A date that has passed is
/// zero, so that the caller still knows it was told something.
pub fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    if let Some(wait) = get(headers, "retry-after-ms").and_then(|ms| wait_of(ms, 1000.0)) {
        return Some(wait);
    }
    let value = get(headers, "retry-after")?;
    wait_of(value, 1.0).or_else(|| {
        let at = http_date(value)?;
        Some(Duration::try_from(at.duration_since(now)).unwrap_or_default().min(LONGEST_WAIT))
    })
}

fn wait_of(number: &str, per_second: f64) -> Option<Duration> {
    if !number.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    let seconds = number.parse::<f64>().ok()? / per_second;
    Some(Duration::from_secs_f64(seconds.min(LONGEST_WAIT.as_secs_f64())))
}

/// The three forms of RFC 9110: the usual one, the RFC 850 one, and that of C's `asctime`.
fn http_date(value: &str) -> Option<Timestamp> {
    // A wrong weekday is the server's slip, not a reason to come back too early.
    let usual = jiff::fmt::rfc2822::DateTimeParser::new().relaxed_weekday(true);
    if let Ok(at) = usual.parse_timestamp(value) {
        return Some(at);
    }
    ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"].iter().find_map(|form| {
        let civil = jiff::civil::DateTime::strptime(form, value).ok()?;
        Some(civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
    })
}

pub fn rate_limits(headers: &HeaderMap) -> RateLimits {
    let window = |what: &str| {
        let part = |name: &str| get(headers, &format!("anthropic-ratelimit-{what}-{name}"));
        RateWindow {
            limit: part("limit").and_then(|v| v.parse().ok()),
            remaining: part("remaining").and_then(|v| v.parse().ok()),
            reset: part("reset").and_then(|v| v.parse().ok()),
        }
    };
    RateLimits {
        requests: window("requests"),
        tokens: window("tokens"),
        input_tokens: window("input-tokens"),
        output_tokens: window("output-tokens"),
    }
}

/// The `x-ratelimit-*` family: `x-ratelimit-remaining-requests: 9`, `x-ratelimit-reset-tokens: 6m0s`.
pub fn x_rate_limits(headers: &HeaderMap, now: Timestamp) -> RateLimits {
    let window = |what: &str| {
        let part = |name: &str| get(headers, &format!("x-ratelimit-{name}-{what}"));
        RateWindow {
            limit: part("limit").and_then(|v| v.parse().ok()),
            remaining: part("remaining").and_then(|v| v.parse().ok()),
            reset: part("reset").and_then(span).and_then(|wait| now.checked_add(wait).ok()),
        }
    };
    RateLimits { requests: window("requests"), tokens: window("tokens"), ..RateLimits::default() }
}

/// A time to wait as OpenAI writes it: `1s`, `17ms`, `6m0s`, `2m59.56s`, `1h2m`; a bare number is seconds.
fn span(value: &str) -> Option<Duration> {
    if value.len() > 40 {
        return None;
    }
    let mut rest = value;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let per_second = match unit {
            "ms" => 1000.0,
            "s" | "" => 1.0,
            "m" => 1.0 / 60.0,
            "h" => 1.0 / 3600.0,
            "d" => 1.0 / 86_400.0,
            _ => return None,
        };
        total = total.saturating_add(wait_of(number, per_second)?);
        rest = after;
    }
    (!value.is_empty()).then_some(total.min(LONGEST_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use reqwest::header::{HeaderName, HeaderValue};

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| {
                (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap())
            })
            .collect()
    }

    fn now() -> Timestamp {
        "1994-11-06T08:49:30Z".parse().unwrap()
    }

    #[test]
    fn retry_after_in_all_forms() {
        let after = |value: &str| retry_after(&headers(&[("retry-after", value)]), now());
        assert_eq!(after("7"), Some(Duration::from_secs(7)));
        assert_eq!(after("0.5"), Some(Duration::from_millis(500)));
        assert_eq!(after("0"), Some(Duration::ZERO));
        assert_eq!(after("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::from_secs(7)));
        assert_eq!(after("Sunday, 06-Nov-94 08:49:37 GMT"), Some(Duration::from_secs(7)));
        assert_eq!(after("Sun Nov  6 08:49:37 1994"), Some(Duration::from_secs(7)));
        assert_eq!(after("Sun, 06 Nov 1994 08:49:29 GMT"), Some(Duration::ZERO));
        for bad in ["", "-1", "soon", "NaN", "inf", "1e9", ".", "1.2.3"] {
            assert_eq!(after(bad), None, "{bad}");
        }
        assert_eq!(after(&"9".repeat(400)), Some(LONGEST_WAIT));
        assert_eq!(after("Fri, 31 Dec 9998 23:59:59 GMT"), Some(LONGEST_WAIT));
        let both = headers(&[("retry-after-ms", "250"), ("retry-after", "9")]);
        assert_eq!(retry_after(&both, now()), Some(Duration::from_millis(250)));
        let bad_ms = headers(&[("retry-after-ms", "x"), ("retry-after", "9")]);
        assert_eq!(retry_after(&bad_ms, now()), Some(Duration::from_secs(9)));
    }

    #[test]
    fn limits_and_the_rest() {
        let all = headers(&[
            ("request-id", "req_1"),
            ("x-should-retry", "false"),
            ("anthropic-ratelimit-requests-limit", "50"),
            ("anthropic-ratelimit-requests-remaining", "49"),
            ("anthropic-ratelimit-requests-reset", "2026-11-16T00:00:00Z"),
            ("anthropic-ratelimit-input-tokens-remaining", "-3"),
            ("anthropic-ratelimit-output-tokens-reset", "tomorrow"),
        ]);
        assert_eq!(request_id(&all).as_deref(), Some("req_1"));
        assert_eq!(should_retry(&all), Some(false));
        let limits = rate_limits(&all);
        assert_eq!(
            limits.requests,
            RateWindow { limit: Some(50), remaining: Some(49), reset: Some("2026-11-16T00:00:00Z".parse().unwrap()) }
        );
        assert_eq!(limits.input_tokens, RateWindow::default());
        assert_eq!(limits.output_tokens, RateWindow::default());
        assert_eq!(should_retry(&headers(&[])), None);
    }

    #[test]
    fn the_other_family_of_limits() {
        let all = headers(&[
            ("x-request-id", "req_2"),
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-remaining-requests", "59"),
            ("x-ratelimit-reset-requests", "1s"),
            ("x-ratelimit-remaining-tokens", "149984"),
            ("x-ratelimit-reset-tokens", "2m59.5s"),
        ]);
        assert_eq!(request_id(&all).as_deref(), Some("req_2"));
        let limits = x_rate_limits(&all, now());
        let at = |text: &str| Some(text.parse().unwrap());
        assert_eq!(
            limits.requests,
            RateWindow { limit: Some(60), remaining: Some(59), reset: at("1994-11-06T08:49:31Z") }
        );
        assert_eq!(
            limits.tokens,
            RateWindow { limit: None, remaining: Some(149_984), reset: at("1994-11-06T08:52:29.5Z") }
        );
        for (given, wanted) in [
            ("17ms", Some(Duration::from_millis(17))),
            ("1h2m3s", Some(Duration::from_secs(3723))),
            ("7", Some(Duration::from_secs(7))),
            ("", None),
            ("soon", None),
            ("1x", None),
            ("-1s", None),
            ("9999999999999999999999d", Some(LONGEST_WAIT)),
        ] {
            assert_eq!(span(given), wanted, "{given}");
        }
    }

    proptest! {
        #[test]
        fn no_header_value_can_break_the_reader(value in "[ -~]{0,60}") {
            let pairs = headers(&[("retry-after", &value), ("retry-after-ms", &value)]);
            if let Some(wait) = retry_after(&pairs, now()) {
                prop_assert!(wait <= LONGEST_WAIT);
            }
            if let Some(wait) = span(&value) {
                prop_assert!(wait <= LONGEST_WAIT);
            }
        }
    }
}
