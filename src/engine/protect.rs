//! Which files guard a criterion, and which of them differ from how the run found them.
//!
//! An agent must not write its own judge. A check's script and the instruments (residual and metric commands) must
//! stay as they were; the wider guards (tests, CI, declarations) must not change while a criterion turns green.

use std::collections::BTreeMap;

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::machine::event::GuardsTouched;
use crate::model::criterion::{Criterion, Proof};
use crate::model::loop_file::LoopFile;
use crate::tool::tree::{self, TreeSnapshot};

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

/// Programs that run the file they are given.
const INTERPRETERS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "python", "python3", "node", "ruby", "perl", "php"];

/// The guards that changed between two trees, by criterion.
pub fn touched(criteria: &[Criterion], start: &TreeSnapshot, now: &TreeSnapshot) -> BTreeMap<String, GuardsTouched> {
    let changed: Vec<String> = tree::diff(start, now).into_iter().map(|change| change.path).collect();
    let mut touched = BTreeMap::new();
    for criterion in criteria {
        let script = match &criterion.proof {
            Proof::Check { argv, .. } => script_of(argv),
            Proof::Judged => None,
        };
        let globs = globs(criterion);
        let is_script = |path: &&String| script.as_deref() == Some(path.as_str());
        let found = GuardsTouched {
            script: changed.iter().filter(is_script).cloned().collect(),
            others: changed.iter().filter(|path| !is_script(path) && globs.is_match(path)).cloned().collect(),
        };
        if found != GuardsTouched::default() {
            touched.insert(criterion.id.clone(), found);
        }
    }
    touched
}

/// The scripts of the residual and metric commands that changed between two trees.
pub fn instruments_touched(declared: &LoopFile, start: &TreeSnapshot, now: &TreeSnapshot) -> Vec<String> {
    let residual = declared.residual.iter().filter_map(|residual| residual.command.as_deref());
    let metrics = declared.northstar.iter().flat_map(|northstar| northstar.measure.values().map(Vec::as_slice));
    let mut scripts: Vec<String> = residual.chain(metrics).filter_map(script_of).collect();
    scripts.sort();
    scripts.dedup();
    scripts.retain(|path| start.files.get(path) != now.files.get(path));
    scripts
}

/// The file of the workspace that a command runs: the program itself, or what an interpreter is given.
fn script_of(argv: &[String]) -> Option<String> {
    let program = argv.first()?;
    let name = program.rsplit('/').next().unwrap_or(program);
    let file = if INTERPRETERS.contains(&name) {
        argv.iter().skip(1).find(|word| !word.starts_with('-'))?
    } else if program.contains('/') {
        program
    } else {
        return None;
    };
    Some(file.strip_prefix("./").unwrap_or(file).to_owned())
}

fn globs(criterion: &Criterion) -> GlobSet {
    let mut builder = GlobSetBuilder::new();
    let declared = criterion.protects.iter().map(String::as_str);
    let defaults = DEFAULT_GLOBS.iter().copied().filter(|_| criterion.protects.is_empty());
    for glob in declared.chain(defaults).filter_map(|glob| Glob::new(glob).ok()) {
        builder.add(glob);
    }
    builder.build().unwrap_or_else(|_| GlobSet::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::digest::Digest;
    use crate::tool::tree::FileState;

    fn tree(files: &[(&str, &str)]) -> TreeSnapshot {
        let state = |content: &str| FileState {
            sha256: Digest::of(content.as_bytes()),
            size: content.len() as u64,
            executable: false,
        };
        let files = files.iter().map(|(path, content)| ((*path).to_owned(), state(content)));
        TreeSnapshot { files: files.collect(), skipped: Vec::new() }
    }

    fn criterion(argv: &[&str], protects: &[&str]) -> Criterion {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Criterion {
            id: "c".into(),
            text: "t".into(),
            proof: Proof::Check { argv: words(argv), timeout_seconds: 1 },
            protects: words(protects),
        }
    }

    #[test]
    fn the_script_and_the_tests_are_guarded_by_default() {
        let start = tree(&[("src/a.rs", "1"), ("check.sh", "1"), ("tests/a.rs", "1")]);
        let now = tree(&[("src/a.rs", "2"), ("check.sh", "2"), ("tests/a.rs", "2"), ("a_test.go", "new")]);
        let touched = touched(&[criterion(&["sh", "./check.sh"], &[])], &start, &now);
        assert_eq!(touched["c"].script, ["check.sh"]);
        assert_eq!(touched["c"].others, ["a_test.go", "tests/a.rs"]);
    }

    #[test]
    fn declared_guards_replace_the_defaults_but_never_the_script() {
        let start = tree(&[("tests/a.rs", "1"), ("check.sh", "1"), ("golden/x", "1")]);
        let now = tree(&[("tests/a.rs", "2"), ("check.sh", "2"), ("golden/x", "2")]);
        let touched = touched(&[criterion(&["./check.sh"], &["golden/**"])], &start, &now);
        assert_eq!(
            (touched["c"].script.as_slice(), touched["c"].others.as_slice()),
            (["check.sh".to_owned()].as_slice(), ["golden/x".to_owned()].as_slice())
        );
    }

    #[test]
    fn what_a_check_looks_at_is_not_its_script() {
        let (start, now) = (tree(&[]), tree(&[("product", "made")]));
        assert!(touched(&[criterion(&["test", "-f", "product"], &[])], &start, &now).is_empty());
    }

    #[test]
    fn instruments_are_guarded_by_their_scripts() {
        let text = "residual: {command: [sh, count.sh]}\nnorthstar: {measure: {vc-1: [./measure]}}\n";
        let declared = crate::model::loop_file::parse(text, "loop.yaml").unwrap();
        let start = tree(&[("count.sh", "1"), ("measure", "1")]);
        assert!(instruments_touched(&declared, &start, &start).is_empty());
        let now = tree(&[("count.sh", "echo 0")]);
        assert_eq!(instruments_touched(&declared, &start, &now), ["count.sh", "measure"]);
    }
}
