//! Amounts as people read them: how long, how many. One format everywhere.

/// A duration in at most two units.
pub fn duration(millis: u64) -> String {
    let seconds = millis / 1_000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..600 => match seconds % 60 {
            0 => format!("{} min", seconds / 60),
            rest => format!("{} min {rest} s", seconds / 60),
        },
        600..3_600 => format!("{} min", seconds / 60),
        _ => match seconds / 60 % 60 {
            0 => format!("{} h", seconds / 3_600),
            minutes => format!("{} h {minutes} min", seconds / 3_600),
        },
    }
}

/// How long something took: to the millisecond where it was quick.
pub fn took(millis: u64) -> String {
    if millis < 1_000 { format!("{millis} ms") } else { duration(millis) }
}

/// A count with thousands set apart.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_at_most_two_units() {
        assert_eq!((duration(999), took(999)), ("0 s".to_owned(), "999 ms".to_owned()));
        for (millis, text) in [
            (1_999, "1 s"),
            (61_500, "1 min 1 s"),
            (120_000, "2 min"),
            (754_000, "12 min"),
            (7_200_000, "2 h"),
            (7_500_000, "2 h 5 min"),
        ] {
            assert_eq!((duration(millis), took(millis)), (text.to_owned(), text.to_owned()));
        }
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!([7, 1_000, 1_234_567].map(count), ["7", "1,000", "1,234,567"]);
    }
}
