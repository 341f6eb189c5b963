//! When a limit is over, from the words of a program.
//!
//! Role: "try again in 20s", "resets 9am (Europe/Berlin)", "try again at Nov 17th, 2026 5:30 PM", and the
//! like. The caller brings the clock.
//! Not its role: whether there is a limit at all.
//!
//! Invariants: what cannot be read is absent; no wait is negative or longer than [`LONGEST`].

use std::time::Duration;

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};

use super::turn::at_least_zero;

/// No program is believed when it names a later time. Weekly and monthly limits exist.
const LONGEST: Duration = Duration::from_secs(32 * 24 * 3600);

/// Words before a span of time.
const IN: [&str; 11] = [
    "retry in ",
    "retry after ",
    "try again in ",
    "try again after ",
    "reset after ",
    "resets after ",
    "resets in ",
    "reset in ",
    "retry-after: ",
    "retry-after\":\"",
    "retry_after\":",
];
/// Words before a moment.
const AT: [&str; 5] = ["resets at ", "resets ", "try again at ", "reset at ", "retry at "];
const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// How long these words ask to wait.
pub(super) fn wait(words: &str, now: &Zoned) -> Option<Duration> {
    let lower = words.to_ascii_lowercase();
    let after = |marks: &[&str], read: &dyn Fn(usize) -> Option<Duration>| {
        marks.iter().find_map(|mark| lower.match_indices(mark).find_map(|(at, _)| read(at + mark.len())))
    };
    let wait = after(&IN, &|at| span(&lower[at..]))
        .or_else(|| after(&AT, &|at| moment(&words[at..], now)))
        .or_else(|| after(&["limit reached|"], &|at| until(Timestamp::from_second(leading(&lower[at..])?).ok()?, now)));
    wait.filter(|wait| *wait <= LONGEST)
}

/// How long until `at`; nothing when it is too far off to be true.
pub(super) fn until(at: Timestamp, now: &Zoned) -> Option<Duration> {
    Some(at_least_zero(at.duration_since(now.timestamp()))).filter(|wait| *wait <= LONGEST)
}

/// `5h12m30s`, `34.07s`, `1 hour 30 minutes`, or a bare number of seconds.
fn span(text: &str) -> Option<Duration> {
    let mut rest = text.trim_start().trim_start_matches("about ");
    let mut millis: u64 = 0;
    let mut parts = 0;
    loop {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits == 0 || digits > 9 {
            break;
        }
        let whole: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        // Thousandths are enough: what is left out is made up for by rounding up.
        let mut thousandths = 0;
        if let Some(fraction) = rest.strip_prefix('.').filter(|text| text.starts_with(|c: char| c.is_ascii_digit())) {
            let length = fraction.len() - fraction.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let padded = format!("{:0<3}", &fraction[..length.min(3)]);
            thousandths = padded.parse::<u64>().ok()? + u64::from(length > 3);
            rest = &fraction[length..];
        }
        let word = rest.trim_start();
        let letters = word.len() - word.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        let per = match &word[..letters] {
            "ms" | "millisecond" | "milliseconds" => 1,
            "s" | "sec" | "secs" | "second" | "seconds" => 1_000,
            "m" | "min" | "mins" | "minute" | "minutes" => 60_000,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000,
            "d" | "day" | "days" => 86_400_000,
            _ if parts == 0 => return Some(Duration::from_millis(whole * 1_000 + thousandths)),
            _ => break,
        };
        millis = millis.checked_add(whole.checked_mul(per)?)?.checked_add((thousandths * per).div_ceil(1_000))?;
        parts += 1;
        rest = word[letters..].trim_start_matches([' ', ',']);
    }
    (parts > 0).then(|| Duration::from_millis(millis))
}

/// `9am (Europe/Berlin)`, `5:30 PM`, `Nov 17th, 2026 5:30 PM`, `Oct 20 at 3pm`.
fn moment(text: &str, now: &Zoned) -> Option<Duration> {
    let text: String = text.chars().take(80).collect();
    let zone = match text.split_once('(').and_then(|(_, rest)| rest.split_once(')')) {
        Some((name, _)) if name.contains('/') || name == "UTC" => TimeZone::get(name).ok()?,
        _ => now.time_zone().clone(),
    };
    let here = now.with_time_zone(zone.clone());
    let lower = text.to_ascii_lowercase();
    let mut words = lower.split([' ', ',']).filter(|word| !word.is_empty()).peekable();
    let month = words.peek().and_then(|word| MONTHS.iter().position(|month| word.starts_with(month)));
    let date = match month {
        Some(month) => {
            words.next();
            let day = i8::try_from(leading(words.next()?)?).ok()?;
            let year = words.peek().and_then(|word| word.parse::<i16>().ok()).filter(|year| *year > 2000);
            if year.is_some() {
                words.next();
            }
            let month = i8::try_from(month + 1).ok()?;
            let this_year = Date::new(year.unwrap_or(here.year()), month, day).ok()?;
            // Without a year, a day long past is next year's.
            let past = year.is_none() && this_year < here.date().checked_sub(2.days()).ok()?;
            Some(if past { this_year.checked_add(1.year()).ok()? } else { this_year })
        }
        None => None,
    };
    if words.peek() == Some(&"at") {
        words.next();
    }
    let clock = words.next()?;
    let time = time_of_day(clock, words.next().unwrap_or_default())?;
    let at = date.unwrap_or(here.date()).to_datetime(time).to_zoned(zone).ok()?;
    let at = if date.is_none() && at <= here { at.checked_add(1.day()).ok()? } else { at };
    until(at.timestamp(), now)
}

/// `9am`, `5:30pm`, `5:30` with `pm` as the next word, `17:30`.
fn time_of_day(clock: &str, next: &str) -> Option<Time> {
    let clock = clock.trim_end_matches(['.', ';']);
    let digits = clock.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let half = match &clock[digits.len()..] {
        "" => next.get(..2).unwrap_or_default(),
        letters => letters,
    };
    let (hour, minute) = digits.split_once(':').unwrap_or((digits, "0"));
    let (hour, minute): (i8, i8) = (hour.parse().ok()?, minute.parse().ok()?);
    let hour = match half {
        "am" | "pm" if !(1..=12).contains(&hour) => return None,
        "am" => hour % 12,
        "pm" => hour % 12 + 12,
        _ if digits.contains(':') => hour,
        _ => return None,
    };
    Time::new(hour, minute, 0, 0).ok()
}

/// The number that a text begins with.
fn leading(text: &str) -> Option<i64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    text[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Zoned {
        "2026-11-16T14:30:00+01:00[Europe/Berlin]".parse().unwrap()
    }

    fn seconds(words: &str) -> Option<u64> {
        wait(words, &now()).map(|wait| wait.as_secs())
    }

    #[test]
    fn spans_are_read() {
        let cases = [
            ("Rate limit reached for gpt-5. Please try again in 11.054s. Visit", 11_054),
            ("Please retry in 34.074824224s.", 34_075),
            ("Your quota will reset after 5h12m30s.", 18_750_000),
            ("try again in 1 hour 30 minutes", 5_400_000),
            ("retry after 20", 20_000),
            ("Please try again in 250ms.", 250),
            ("it will reset in 2 days, really", 172_800_000),
        ];
        for (words, millis) in cases {
            assert_eq!(wait(words, &now()), Some(Duration::from_millis(millis)), "{words}");
        }
    }

    #[test]
    fn moments_are_read_in_their_own_time_zone() {
        let cases = [
            ("You've hit your session limit · resets 9am (Europe/Berlin)", 18 * 3600 + 1800),
            ("You've hit your limit · resets 3:45pm (Europe/Berlin)", 4500),
            ("resets 9am (America/New_York)", 1800),
            ("or try again at 5:30 PM.", 3 * 3600),
            ("try again at Nov 17th, 2026 2:30 PM.", 24 * 3600),
            ("resets Nov 18 at 3pm (Europe/Berlin)", 48 * 3600 + 1800),
            ("resets Nov 18, 3pm (Europe/Berlin)", 48 * 3600 + 1800),
            ("resets at 14:31", 60),
        ];
        for (words, expected) in cases {
            assert_eq!(seconds(words), Some(expected), "{words}");
        }
        let epoch = now().timestamp().as_second() + 90;
        assert_eq!(seconds(&format!("Claude AI usage limit reached|{epoch}")), Some(90));
    }

    #[test]
    fn what_is_no_time_is_absent() {
        for words in [
            "try again later",
            "resets at some point",
            "resets 25pm",
            "resets 9am (Nowhere/Land)",
            "try again at Foo 99",
            "retry after the end",
            "try again in 99999999999999999999 days",
            "try again in 999 days",
            "limit reached|99999999999999999999999",
            "resets Feb 31 at 3pm",
            "resets éé",
            "",
        ] {
            assert_eq!(seconds(words), None, "{words}");
        }
    }
}
