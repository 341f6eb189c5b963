//! Patterns of rules, matched against texts: `*` stands for anything.
//!
//! Pure and bounded: at worst the pattern's length times the text's.

use super::shell::HOLE;

/// `*` stands for any text, slashes and spaces included. `cmd *` also matches `cmd` alone, and `**/` also matches
/// nothing. A hole in the text is matched by a star only: whatever the shell puts there, the pattern still fits.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    spellings(pattern, |pattern| wild(pattern.as_bytes(), text.as_bytes()))
}

/// Could the text match, if the shell puts the right thing into its holes?
pub(super) fn could_match(pattern: &str, text: &str) -> bool {
    text.contains(HOLE) && spellings(pattern, |pattern| meet(pattern.as_bytes(), text.as_bytes()))
}

fn spellings(pattern: &str, fits: impl Fn(&str) -> bool) -> bool {
    fits(pattern)
        || pattern.strip_suffix(" *").is_some_and(&fits)
        || (pattern.contains("**/") && fits(&pattern.replace("**/", "")))
}

/// Linear in practice, at worst pattern times text: goes back only to the last star.
fn wild(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, t));
            p += 1;
        } else if pattern.get(p) == Some(&text[t]) {
            p += 1;
            t += 1;
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            p = at + 1;
            t = from + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// Is there a text that both fit: the pattern with its stars, the text with its holes? Row by row, each cell says
/// whether the rest of the pattern and the rest of the text can be made equal.
fn meet(pattern: &[u8], text: &[u8]) -> bool {
    let hole = HOLE as u8;
    let mut after: Vec<bool> = Vec::new();
    for p in (0..=pattern.len()).rev() {
        let mut row = vec![false; text.len() + 1];
        for t in (0..=text.len()).rev() {
            let here = (pattern.get(p).copied(), text.get(t).copied());
            // The same pattern against the text without its first character, and the other two ways on.
            let skip_text = row.get(t + 1).copied().unwrap_or(false);
            let skip_pattern = after.get(t).copied().unwrap_or(false);
            let skip_both = after.get(t + 1).copied().unwrap_or(false);
            row[t] = match here {
                (None, None) => true,
                (None, Some(byte)) => byte == hole && skip_text,
                (Some(byte), None) => byte == b'*' && skip_pattern,
                (Some(b'*'), Some(_)) => skip_pattern || skip_text,
                (Some(_), Some(byte)) if byte == hole => skip_pattern || skip_text,
                (Some(a), Some(b)) => a == b && skip_both,
            };
        }
        after = row;
    }
    after.first().copied().unwrap_or(false)
}

/// A path without `.`, `..` and doubled slashes, by its text alone.
pub(super) fn normal_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if path.starts_with('/') => {}
            other => parts.push(other),
        }
    }
    let lead = if path.starts_with('/') { "/" } else { "" };
    format!("{lead}{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_do_not_explode() {
        let pattern = "*a".repeat(50);
        assert!(!matches(&pattern, &"b".repeat(10_000)));
        assert!(wild(b"*", b"") && wild(b"a*b*c", b"aXbYc") && !wild(b"a*b", b"a"));
    }

    #[test]
    fn a_hole_is_covered_by_a_star_and_could_be_anything() {
        assert!(matches("git add *", "git add \0") && !matches("git add x", "git add \0"));
        for (pattern, text) in [("git push*", "git \0"), ("rm -rf *", "rm \0 x"), ("rm -rf *", "\0"), ("a*c", "ab\0")] {
            assert!(could_match(pattern, text), "{pattern} {text:?}");
        }
        for (pattern, text) in [("git push*", "git log \0"), ("rm *", "cp \0"), ("abc", "x\0"), ("abc", "abc")] {
            assert!(!could_match(pattern, text), "{pattern} {text:?}");
        }
    }
}
