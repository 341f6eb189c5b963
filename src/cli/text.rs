//! Prints to the operator. A closed pipe is no error, and untrusted text never reaches a terminal raw.

use std::io::Write;

use crate::model::safe::Safe;

/// Untrusted text as one line that may be printed.
pub fn safe(text: &str) -> String {
    Safe::line(text.trim()).to_string()
}

/// One line to stdout; a reader that went away is not our problem.
pub fn line(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stdout(), "{}", text.as_ref());
}

/// Text that is already complete.
pub fn raw(text: &[u8]) {
    let mut out = std::io::stdout();
    let _ = out.write_all(text).and_then(|()| out.flush());
}

/// Milliseconds for people.
pub fn duration(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", millis / 60_000, millis / 1_000 % 60),
        _ => format!("{} h {} min", millis / 3_600_000, millis / 60_000 % 60),
    }
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
    fn counts_and_durations_read_well() {
        assert_eq!(count(7), "7");
        assert_eq!(count(1234567), "1,234,567");
        assert_eq!(duration(999), "999 ms");
        assert_eq!(duration(61_500), "1 min 1 s");
    }
}
