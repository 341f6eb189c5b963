//! One way to point at a place in a text file and say what to do about it.
//!
//! Role: the shape of such messages, spelling hints, and YAML errors turned into them.
//! Not its role: printing, colours, deciding what is an error.
//! Invariants: lines and columns count from one; a message holds no control characters, whatever stood
//! in the file, so it can be shown on a terminal.

use std::fmt;

/// Longer words get no spelling hint.
const LONGEST_WORD: usize = 64;

/// What is wrong, where, and perhaps what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub file: String,
    pub line: Option<usize>,
    pub column: Option<usize>,
    pub message: String,
    pub hint: Option<String>,
}

impl Diagnostic {
    /// About a whole file.
    pub fn new(file: &str, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: None, column: None, message: message.into(), hint: None }
    }

    pub fn at(self, line: usize, column: usize) -> Self {
        Self { line: Some(line), column: Some(column), ..self }
    }

    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
            if let Some(column) = self.column {
                write!(f, ":{column}")?;
            }
        }
        write!(f, ": {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Diagnostic {}

/// The candidate that `word` was most likely meant to be, with swapped neighbours as one mistake; on a tie, the first.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let limit = match word.chars().count() {
        0 | 1 => 0,
        2..=5 => 1,
        6..=8 => 2,
        9..=LONGEST_WORD => 3,
        _ => return None,
    };
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= 4 * LONGEST_WORD)
        .map(|candidate| (strsim::osa_distance(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A YAML error in the words of somebody who writes the file.
pub fn from_yaml(file: &str, error: &serde_yaml::Error) -> Diagnostic {
    let location = error.location();
    let whole = error.to_string();
    let text = match &location {
        Some(place) => {
            let suffix = format!(" at line {} column {}", place.line(), place.column());
            // Only the last mention is taken off: the text itself may speak of other places.
            whole.strip_suffix(suffix.as_str()).unwrap_or(&whole)
        }
        None => &whole,
    };
    let (message, hint) = reworded(text);
    Diagnostic {
        file: file.to_owned(),
        line: location.as_ref().map(serde_yaml::Location::line),
        column: location.as_ref().map(serde_yaml::Location::column),
        message: printable(&message),
        hint: hint.map(|hint| printable(&hint)),
    }
}

/// Serde's sentences in ours, with a hint where one can be given.
fn reworded(text: &str) -> (String, Option<String>) {
    for (theirs, ours, known) in
        [("unknown field `", "unknown key", "known keys"), ("unknown variant `", "unknown value", "known values")]
    {
        if let Some((place, word, expected)) = unknown(text, theirs) {
            let candidates = quoted(expected);
            let hint = match nearest(word, candidates.iter().copied()) {
                Some(meant) => Some(format!("did you mean `{meant}`?")),
                None if candidates.is_empty() => None,
                None => Some(format!("{known}: {}", candidates.join(", "))),
            };
            return (format!("{ours} `{word}`{}", within(place)), hint);
        }
    }
    for (theirs, ours) in [("missing field `", "missing key"), ("duplicate field `", "duplicate key")] {
        if let Some((place, rest)) = text.split_once(theirs) {
            return (format!("{ours} `{}`{}", rest.trim_end_matches('`'), within(place)), None);
        }
    }
    (text.to_owned(), None)
}

/// Splits `place: unknown field `word`, expected …`. The word comes from the file and may itself hold
/// backticks, so its end is looked for from the right.
fn unknown<'a>(text: &'a str, theirs: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let (place, rest) = text.split_once(theirs)?;
    ["`, expected ", "`, there are no "]
        .iter()
        .find_map(|end| rest.rsplit_once(end))
        .map(|(word, expected)| (place, word, expected))
}

/// The words between backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

fn within(place: &str) -> String {
    match place.trim_end_matches(": ") {
        "" => String::new(),
        place => format!(" in `{place}`"),
    }
}

fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Loop {
        goal: String,
        budget: Option<Budget>,
        mode: Option<Mode>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Budget {
        iterations: u32,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        Fast,
        Strict,
    }

    fn shown(yaml: &str) -> String {
        from_yaml("loop.yaml", &serde_yaml::from_str::<Loop>(yaml).unwrap_err()).to_string()
    }

    #[test]
    fn an_unknown_key_gets_its_neighbour() {
        assert_eq!(shown("goal: x\nbuget: {}\n"), "loop.yaml:2:1: unknown key `buget`\n  hint: did you mean `budget`?");
        assert_eq!(
            shown("goal: x\nzebra: {}\n"),
            "loop.yaml:2:1: unknown key `zebra`\n  hint: known keys: goal, budget, mode"
        );
        assert_eq!(
            shown("goal: x\nbudget:\n  iteration: 3\n"),
            "loop.yaml:3:3: unknown key `iteration` in `budget`\n  hint: did you mean `iterations`?"
        );
    }

    #[test]
    fn other_errors_are_cleaned() {
        assert_eq!(
            shown("goal: x\nmode: strct\n"),
            "loop.yaml:2:7: unknown value `strct` in `mode`\n  hint: did you mean `strict`?"
        );
        assert_eq!(shown("mode: fast\n"), "loop.yaml:1:1: missing key `goal`");
        // The parser only knows where the mapping starts.
        assert_eq!(shown("goal: x\ngoal: y\n"), "loop.yaml:1:1: duplicate key `goal`");
        let syntax = shown("goal: [x\n");
        assert!(syntax.starts_with("loop.yaml:") && !syntax.contains('\n'), "{syntax}");
        let kind = shown("goal: x\nbudget: {iterations: many}\n");
        assert_eq!(kind.matches("column").count(), 0, "{kind}");
        assert!(kind.contains("invalid type"), "{kind}");
    }

    #[test]
    fn hostile_keys_stay_on_their_line() {
        let text = shown("goal: x\n\"a`, expected `b\\n\\e[31m\": 1\n");
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn nearness() {
        let keys = ["budget", "goal", "criteria", "max_iterations"];
        for (word, expected) in [
            ("buget", Some("budget")),
            ("bugdet", Some("budget")),
            ("BUDGET", Some("budget")),
            ("gaol", Some("goal")),
            ("criterion", Some("criteria")),
            ("max_iteration", Some("max_iterations")),
            ("g", None),
            ("", None),
            ("zebra", None),
        ] {
            assert_eq!(nearest(word, keys), expected, "{word}");
        }
        assert_eq!(nearest(&"x".repeat(10_000), keys), None);
    }

    #[test]
    fn places() {
        let plain = Diagnostic::new("loop.yaml", "too large");
        assert_eq!(plain.to_string(), "loop.yaml: too large");
        assert_eq!(plain.at(7, 3).with_hint("split it").to_string(), "loop.yaml:7:3: too large\n  hint: split it");
    }

    proptest! {
        #[test]
        fn nothing_panics(text in any::<String>()) {
            if let Err(error) = serde_yaml::from_str::<Loop>(&text) {
                let shown = from_yaml("f", &error).to_string();
                prop_assert!(shown.starts_with("f:"));
            }
            let _ = reworded(&text);
        }
    }
}
