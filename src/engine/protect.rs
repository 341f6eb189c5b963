//! Which files guard a criterion: the agents must not change them in the iteration that turns it green.

use std::collections::BTreeMap;

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::machine::event::Change;
use crate::model::criterion::{Criterion, Proof};

/// Guards of every criterion that does not declare its own.
const DEFAULT_GLOBS: &[&str] = &[
    "loop.yaml",
    "PRD.md",
    "prd.json",
    "**/tests/**",
    "**/test/**",
    "**/*_test.*",
    "**/test_*.*",
    "**/*.test.*",
    "**/*.spec.*",
    ".github/**",
    ".gitlab-ci.yml",
    ".ci/**",
];

/// Changed files by the criterion they guard.
pub fn touched(criteria: &[Criterion], changes: &[Change]) -> BTreeMap<String, Vec<String>> {
    let mut touched = BTreeMap::new();
    for criterion in criteria {
        let guards = guards(criterion);
        let files: Vec<String> =
            changes.iter().filter(|change| guards.is_match(&change.path)).map(|change| change.path.clone()).collect();
        if !files.is_empty() {
            touched.insert(criterion.id.clone(), files);
        }
    }
    touched
}

fn guards(criterion: &Criterion) -> GlobSet {
    let mut builder = GlobSetBuilder::new();
    let declared = criterion.protects.iter().map(String::as_str);
    let defaults = DEFAULT_GLOBS.iter().copied().filter(|_| criterion.protects.is_empty());
    for glob in declared.chain(defaults).filter_map(|glob| Glob::new(glob).ok()) {
        builder.add(glob);
    }
    // The check's own script, whatever else is declared.
    if let Proof::Check { argv, .. } = &criterion.proof {
        for word in argv {
            let path = word.strip_prefix("./").unwrap_or(word);
            if let Ok(glob) = Glob::new(&globset::escape(path)) {
                builder.add(glob);
            }
        }
    }
    builder.build().unwrap_or_else(|_| GlobSet::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::event::ChangeKind;

    fn change(path: &str) -> Change {
        Change { path: path.into(), kind: ChangeKind::Modified, sha256: None }
    }

    fn criterion(protects: &[&str]) -> Criterion {
        Criterion {
            id: "c".into(),
            text: "t".into(),
            proof: Proof::Check { argv: vec!["sh".into(), "./check.sh".into()], timeout_seconds: 1 },
            protects: protects.iter().map(|s| (*s).to_owned()).collect(),
        }
    }

    #[test]
    fn the_check_and_the_tests_are_guarded_by_default() {
        let changes = ["src/a.rs", "check.sh", "tests/a.rs", "a_test.go", "loop.yaml"].map(change);
        let touched = touched(&[criterion(&[])], &changes);
        assert_eq!(touched["c"], ["check.sh", "tests/a.rs", "a_test.go", "loop.yaml"]);
    }

    #[test]
    fn declared_guards_replace_the_defaults_but_never_the_check_itself() {
        let changes = ["tests/a.rs", "check.sh", "golden/x"].map(change);
        assert_eq!(touched(&[criterion(&["golden/**"])], &changes)["c"], ["check.sh", "golden/x"]);
    }
}
