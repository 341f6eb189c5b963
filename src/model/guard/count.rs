//! How many tests a check ran, by the summary it printed.

use serde::{Deserialize, Serialize};

/// Tests by how they ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Count {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

/// Words of a summary by what they count.
const PASSED: &[&str] = &["passed", "passing", "pass", "ok"];
const FAILED: &[&str] = &["failed", "failing", "fail", "failures", "errors", "error"];
const SKIPPED: &[&str] = &["skipped", "pending", "ignored", "skip", "todo", "deselected", "xfailed"];

/// The number of tests that a summary names; `None`: there is no summary that is known.
pub fn count(output: &str) -> Option<Count> {
    let mut total: Option<Count> = None;
    for line in output.lines().map(plain).filter(|line| line.len() < 400) {
        if let Some(found) = of_line(&line) {
            let sum = total.get_or_insert_default();
            sum.passed += found.passed;
            sum.failed += found.failed;
            sum.skipped += found.skipped;
        }
    }
    total.or_else(|| unittest(output))
}

/// Without colours.
fn plain(line: &str) -> String {
    let mut out = String::new();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            for c in chars.by_ref() {
                if c.is_ascii_alphabetic() {
                    break;
                }
            }
        } else {
            out.push(c);
        }
    }
    out.trim().to_owned()
}

fn of_line(line: &str) -> Option<Count> {
    let lower = line.to_ascii_lowercase();
    // cargo test; jest and vitest (`Tests:`, `Tests  `); pytest (`== 3 passed in 0.1s ==`, or bare with -q); nextest; mocha.
    let body = if let Some(rest) = lower.strip_prefix("test result:") {
        rest.split_once(". ").map_or(rest, |(_, rest)| rest)
    } else if let Some(rest) = lower.strip_prefix("tests:").or_else(|| lower.strip_prefix("tests  ")) {
        rest
    } else if let Some((_, rest)) = lower.split_once("tests run:") {
        rest
    } else if lower.trim_matches(['=', ' ']).contains(" in ") || is_plain(&lower) || is_node(&lower) {
        &lower
    } else {
        return None;
    };
    words(body)
}

/// `3 passing (5ms)`, `1 failing`, `4 passed, 0 failed`: a number and such a word begin the line.
fn is_plain(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let number = words.next().is_some_and(|word| word.parse::<u64>().is_ok());
    let word = words.next().map(|word| word.trim_end_matches([',', ';']));
    number && matches!(word, Some("passing" | "failing" | "pending" | "passed" | "failed"))
}

/// `# pass 3`, as TAP reporters end.
fn is_node(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let mark = matches!(words.next(), Some("#" | "ℹ"));
    mark && matches!(words.next(), Some("pass" | "fail" | "skipped"))
}

/// Numbers beside words that are known; `None`: none is.
fn words(body: &str) -> Option<Count> {
    let tokens: Vec<&str> =
        body.split(|c: char| c.is_whitespace() || "=,;|()".contains(c)).filter(|t| !t.is_empty()).collect();
    let mut count = Count::default();
    let mut known = false;
    // `# skipped 1`: the word comes first.
    let word_first = is_node(body);
    for pair in tokens.windows(2) {
        let (number, word) = match (pair[0].parse::<u64>(), pair[1].parse::<u64>()) {
            (Ok(number), Err(_)) if !word_first => (number, pair[1]),
            (Err(_), Ok(number)) if word_first => (number, pair[0]),
            _ => continue,
        };
        let field = if PASSED.contains(&word) {
            &mut count.passed
        } else if FAILED.contains(&word) {
            &mut count.failed
        } else if SKIPPED.contains(&word) {
            &mut count.skipped
        } else {
            continue;
        };
        *field = field.saturating_add(number);
        known = true;
    }
    known.then_some(count)
}

/// `Ran 3 tests in 0.001s`, then `OK` or `FAILED (failures=1, errors=1, skipped=1)`.
fn unittest(output: &str) -> Option<Count> {
    let ran = output.lines().find_map(|line| {
        let rest = line.trim().strip_prefix("Ran ")?;
        rest.contains(" test").then(|| rest.split_whitespace().next()?.parse::<u64>().ok()).flatten()
    })?;
    let tail =
        output.lines().rev().find(|line| line.starts_with("OK") || line.starts_with("FAILED")).unwrap_or_default();
    let number = |word: &str| {
        let rest = tail.split_once(&format!("{word}=")).map_or("", |(_, rest)| rest);
        rest.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse::<u64>().ok()).unwrap_or(0)
    };
    let (failed, skipped) = (number("failures") + number("errors"), number("skipped"));
    Some(Count { passed: ran.saturating_sub(failed + skipped), failed, skipped })
}

/// Lines of a failed check that complain, in whichever tool's words.
pub fn complaints(output: &str) -> u32 {
    const WORDS: [&str; 7] = ["fail", "error", "not ok", "panicked", "expected", "✗", "✕"];
    let complains = |line: &str| {
        let line = line.to_lowercase();
        WORDS.iter().any(|word| line.contains(word))
    };
    u32::try_from(output.lines().filter(|line| complains(line)).count()).unwrap_or(u32::MAX)
}

/// What is wrong with the number of tests, if anything: none may be lost, and a summary that was there must be there.
pub fn judge_count(start: Count, now: Option<Count>) -> Option<String> {
    let expected = start.passed + start.failed;
    match now {
        None => Some(format!("at the start it said that it ran {expected} tests, and now it does not say")),
        Some(now) if now.passed < expected => Some(format!(
            "{} tests pass, and {expected} ran at the start ({} are skipped now)",
            now.passed, now.skipped
        )),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_of_runners() {
        for (output, passed, failed, skipped) in [
            ("=== 1 failed, 2 passed, 1 skipped in 0.02s ===", 2, 1, 1),
            ("3 passed in 0.01s", 3, 0, 0),
            ("FAIL total\n1 passed, 3 failed\n", 1, 3, 0),
            ("Tests:       1 failed, 3 passed, 4 total", 3, 1, 0),
            ("Test Files  1 passed (1)\n      Tests  3 passed | 1 skipped (4)\n", 3, 0, 1),
            ("  3 passing (4ms)\n  1 failing\n", 3, 1, 0),
            (
                "test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
              test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
                3,
                1,
                1,
            ),
            ("Ran 4 tests in 0.001s\n\nFAILED (failures=1, skipped=1)\n", 2, 1, 1),
            ("Ran 4 tests in 0.001s\n\nOK\n", 4, 0, 0),
            ("Tests run: 5, Failures: 1, Errors: 0", 0, 0, 0),
            ("# tests 3\n# pass 2\n# fail 1\n", 2, 1, 0),
            ("     Summary [   0.005s] 2 tests run: 2 passed, 0 skipped", 2, 0, 0),
        ] {
            let expected = (passed + failed + skipped > 0).then_some(Count { passed, failed, skipped });
            assert_eq!(count(output), expected, "{output}");
        }
        assert_eq!(count("all is well\nexit in 3 seconds\n"), None);
        assert_eq!(count("\u{1b}[32m3 passed\u{1b}[0m in 0.01s").map(|count| count.passed), Some(3));
    }

    #[test]
    fn lines_that_complain_are_counted() {
        assert_eq!(complaints("test 1 FAILED\ntest 2 ok\nerror: x\n✗ y\nnot ok 4\n"), 4);
        assert_eq!(complaints("all is well\n"), 0);
    }

    #[test]
    fn a_test_that_is_lost_is_missed() {
        let start = Count { passed: 2, failed: 1, skipped: 0 };
        assert_eq!(judge_count(start, Some(Count { passed: 3, ..start })), None);
        assert!(judge_count(start, Some(Count { passed: 2, failed: 0, skipped: 1 })).is_some());
        assert!(judge_count(start, None).is_some());
    }
}
