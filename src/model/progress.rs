//! A progress file as the next author sees it: what holds for the whole project first, then the latest entries.
//!
//! Role: cut a text that grows to what fits. Not its role: reading or writing the file.
//! Invariants: whole lines; what is left out is said; nothing of it is reordered but that the patterns come first.

/// The heading under which a project's lasting lessons stand.
const PATTERNS: &str = "codebase patterns";

/// At most so many bytes of it, and a line that says what is missing.
pub fn shown(text: &str, most: usize) -> String {
    let text = text.trim();
    if text.len() <= most {
        return text.to_owned();
    }
    let (patterns, rest) = split(text);
    let patterns = head(patterns.trim(), most / 2);
    let room = most.saturating_sub(patterns.len());
    let latest = tail(rest.trim(), room);
    let gap = "(earlier entries are left out)";
    if patterns.is_empty() { format!("{gap}\n{latest}") } else { format!("{patterns}\n{gap}\n{latest}") }
}

/// The section with the patterns, and all the rest.
fn split(text: &str) -> (String, String) {
    let (mut patterns, mut rest) = (String::new(), String::new());
    let mut inside = false;
    for line in text.split_inclusive('\n') {
        let heading = line.trim_start_matches('#');
        let is_heading = heading.len() < line.len();
        if is_heading {
            inside = heading.trim().to_lowercase().starts_with(PATTERNS);
        } else if inside && line.trim() == "---" {
            inside = false;
            continue;
        }
        if inside { patterns.push_str(line) } else { rest.push_str(line) }
    }
    (patterns, rest)
}

/// Its first lines.
fn head(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for line in text.split_inclusive('\n') {
        if shown.len() + line.len() > most {
            break;
        }
        shown.push_str(line);
    }
    shown.trim_end().to_owned()
}

/// Its last lines.
fn tail(text: &str, most: usize) -> &str {
    let mut from = text.len();
    for line in text.split_inclusive('\n').rev() {
        if text.len() - from + line.len() > most {
            break;
        }
        from -= line.len();
    }
    &text[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays_as_it_is() {
        assert_eq!(shown("# Progress\n\n## a\n- b\n", 100), "# Progress\n\n## a\n- b");
        assert_eq!(shown(" \n", 10), "");
    }

    #[test]
    fn patterns_come_first_and_the_latest_entries_stay() {
        let entries: String = (0..200).map(|n| format!("## 2026 - US-{n}\n- did it\n---\n")).collect();
        let text =
            format!("# Progress Log\n---\n{entries}## Codebase Patterns\n- plain sh\n- tabs\n---\n## last\n- end\n");
        let cut = shown(&text, 400);
        assert!(cut.starts_with("## Codebase Patterns\n- plain sh\n- tabs\n(earlier entries are left out)\n"), "{cut}");
        assert!(cut.ends_with("US-199\n- did it\n---\n## last\n- end") && !cut.contains("US-100"), "{cut}");
        assert!(cut.len() <= 400 + 40, "{}", cut.len());
        // Patterns alone never push the entries out.
        let patterns: String = (0..200).map(|n| format!("- pattern {n}\n")).collect();
        let cut = shown(&format!("## Codebase Patterns\n{patterns}---\n{entries}"), 400);
        assert!(cut.contains("- pattern 0\n") && cut.contains("US-199") && cut.len() <= 440, "{cut}");
        assert!(shown(&"x".repeat(500), 100).len() < 100, "one line that is too long is left out");
    }
}
