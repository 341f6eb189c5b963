//! What a check printed, without what differs from run to run: how long it took, when it was, in which order.
//!
//! Role: one digest by which two outputs of a check are compared. Not its role: what a failure looks like (`signature`).
//! Invariant: numbers that are no durations and no moments stay: a check that prints dice is not steady.

use super::digest::Digest;

const UNITS: [&str; 13] =
    ["ns", "us", "µs", "μs", "ms", "s", "sec", "secs", "second", "seconds", "min", "minutes", "milliseconds"];

/// The digest of an output whose lines may come in any order.
pub fn digest(output: &[u8]) -> Digest {
    let text = String::from_utf8_lossy(output);
    let mut lines: Vec<String> = text.lines().map(steady).filter(|line| !line.is_empty()).collect();
    lines.sort();
    Digest::of(lines.join("\n").as_bytes())
}

fn steady(line: &str) -> String {
    let bare = |word: &str| word.trim_matches(|c: char| "()[]{},;:=<>\"'".contains(c)).to_owned();
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let mut out: Vec<&str> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).map(|word| bare(word)).unwrap_or_default();
        let this = bare(word);
        let differs = is_duration(&this)
            || (is_number(&this) && UNITS.contains(&next.as_str()))
            || is_moment(&this)
            || this.contains("/tmp/");
        out.push(if differs { "#" } else { word });
    }
    out.join(" ")
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// `0.01s`, `5ms`
fn is_duration(word: &str) -> bool {
    UNITS.iter().any(|unit| word.strip_suffix(unit).is_some_and(is_number))
}

/// `14:02:11.5`, `2026-11-18T14:02:11Z`
fn is_moment(word: &str) -> bool {
    let of_clock = |c: char| c.is_ascii_digit() || matches!(c, ':' | '.' | '-' | '+' | 'T' | 'Z');
    word.matches(':').count() >= 2 && word.chars().all(of_clock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_order_do_not_count_and_numbers_do() {
        let one = "test b ... ok\ntest a ... ok\nfinished in 0.01s (5 ms) at 14:02:11\n/tmp/x1/log\n";
        let two = "test a ... ok\ntest b ... ok\nfinished in 2.5s (17 ms) at 15:00:00\n/tmp/y2/log\n";
        assert_eq!(digest(one.as_bytes()), digest(two.as_bytes()));
        for (one, two) in [("3 passed", "4 passed"), ("17323", "9442"), ("ok", "")] {
            assert_ne!(digest(one.as_bytes()), digest(two.as_bytes()), "{one} {two}");
        }
    }
}
