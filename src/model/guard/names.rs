//! Paths of a tree, always relative to its root, with `/` between names.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::table::table;

/// Folders where projects keep what checks and builds them.
const JUDGING_FOLDERS: &[&str] =
    &["scripts", "script", "tools", "tool", "checks", "check", "ci", ".ci", "hack", "qa", "verify", "dev", ".github"];
/// A word of a name that begins so says that the file judges.
const JUDGING_STARTS: &[&str] = &[
    "check", "test", "verif", "lint", "valid", "assert", "expect", "compar", "golden", "harness", "measure", "metric",
    "residual", "audit", "smoke", "score", "setup", "teardown",
];
const JUDGING_WORDS: &[&str] =
    &["ci", "qa", "count", "scan", "spec", "gate", "env", "hook", "hooks", "helper", "helpers", "config", "runner"];

/// The last name of a path.
pub fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The folder of a path; empty for the root.
pub fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The end of a name, lower case: `rs`. A name that only begins with a dot has none.
pub fn extension(path: &str) -> String {
    let name = base(path).trim_start_matches('.');
    name.rsplit_once('.').map_or_else(String::new, |(_, end)| end.to_ascii_lowercase())
}

/// The name without its end.
pub fn stem(path: &str) -> &str {
    let name = base(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| if stem.is_empty() { name } else { stem })
}

/// `word` as seen from `folder`, without `.` and `..`; `None` for what leads out of the tree or is no path.
pub fn join(folder: &str, word: &str) -> Option<String> {
    if word.starts_with(['/', '~']) || word.contains('\0') || word.len() > 4096 {
        return None;
    }
    let mut names: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
    for name in word.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop()?;
            }
            name => names.push(name),
        }
    }
    (!names.is_empty()).then(|| names.join("/"))
}

/// All paths below a folder.
pub fn below<'a>(names: &'a BTreeSet<String>, folder: &str) -> impl Iterator<Item = &'a String> + use<'a> {
    let start = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let end = start.clone();
    names.range::<String, _>((Bound::Included(start), Bound::Unbounded)).take_while(move |path| path.starts_with(&end))
}

/// Is it, by its place, code under test: below a folder of sources, or in a package of the project?
pub fn is_outside(path: &str, names: &BTreeSet<String>) -> bool {
    let mut folders: Vec<&str> = path.split('/').collect();
    folders.pop();
    let Some(top) = folders.first() else { return false };
    let is_package = names.contains(&format!("{top}/__init__.py")) && !matches!(*top, "tests" | "test");
    is_package || folders.iter().any(|folder| table().outside.contains(*folder))
}

/// Does its name or its folder say that it judges, rather than that it is judged?
pub fn judges(path: &str) -> bool {
    stands_with_judges(path) || names_a_judge(stem(path))
}

/// Does it stand in a folder of judges?
pub fn stands_with_judges(path: &str) -> bool {
    path.split('/').rev().skip(1).any(|folder| JUDGING_FOLDERS.contains(&folder))
}

/// Does one word of a name say that it judges?
pub fn names_a_judge(stem: &str) -> bool {
    let lower = stem.to_ascii_lowercase();
    let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    let by_words =
        words.any(|word| JUDGING_WORDS.contains(&word) || JUDGING_STARTS.iter().any(|start| word.starts_with(start)));
    // `runTests`, `preCheck`: the second word begins with a capital.
    by_words || ["Test", "Check", "Lint", "Verify", "Setup"].iter().any(|word| stem.contains(word))
}

/// Does its name say that something is compared with it?
pub fn is_expectation(path: &str) -> bool {
    let lower = base(path).to_ascii_lowercase();
    let words =
        ["expect", "golden", "baseline", "oracle", "reference", "approved", "threshold", "allowlist", "allowed"];
    words.iter().any(|word| lower.contains(word))
}

/// Is it source text by the end of its name?
pub fn is_code(path: &str) -> bool {
    table().code.contains(&extension(path))
}

/// Is it something that people read?
pub fn is_document(path: &str) -> bool {
    table().documents.contains(&extension(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_in_the_tree() {
        assert_eq!(join("a/b", "../c.sh").as_deref(), Some("a/c.sh"));
        assert_eq!(join("", "./x").as_deref(), Some("x"));
        for outside in ["../x", "/bin/sh", "~/x", ".", ""] {
            assert_eq!(join("", outside), None, "{outside}");
        }
    }

    #[test]
    fn a_name_tells_a_judge() {
        for path in ["check.sh", "scripts/x", "run_tests.py", "tools/compare", "runTests.js", "ci.sh"] {
            assert!(judges(path), "{path}");
        }
        for path in ["calc.py", "main.js", "account.py", "prog.sh", "index.ts"] {
            assert!(!judges(path), "{path}");
        }
    }
}
