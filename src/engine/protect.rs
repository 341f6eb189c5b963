//! Which files guard a criterion, and which of them differ from how the run found them.
//!
//! An agent must not write its own judge. A check's script and the instruments (residual and metric commands) must
//! stay as they were; the wider guards (tests, CI, declarations) must not change while a criterion turns green.

use std::collections::BTreeMap;

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::machine::event::GuardsTouched;
use crate::model::criterion::{Criterion, Proof};
use crate::model::loop_file::LoopFile;
use crate::workspace::tree::{self, TreeSnapshot};

use super::git::effective;

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
    // A playbook's own way out stands on criteria that have guards of their own.
    for criterion in criteria.iter().filter(|criterion| !criterion.proof.is_the_way_out()) {
        let scripts = match &criterion.proof {
            Proof::Check { argv, .. } => scripts_of(argv),
            Proof::Judged | Proof::ExitGate => Vec::new(),
            // They stand on checks that have guards of their own; an item that brings its tests is as it should be.
            Proof::Items | Proof::Verified => continue,
        };
        let globs = globs(criterion);
        let is_script = |path: &&String| scripts.contains(path);
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

/// The scripts of what measures the run (residual, metrics, security, interface, items, known
/// fixes) that changed between two trees.
/// `items`: the checks of the items, wherever they are named.
pub fn instruments_touched(
    declared: &LoopFile,
    items: &[Vec<String>],
    start: &TreeSnapshot,
    now: &TreeSnapshot,
) -> Vec<String> {
    let residual = declared.residual.iter().filter_map(|residual| residual.command.as_deref());
    let metrics = declared.northstar.iter().flat_map(|northstar| northstar.measure.values().map(Vec::as_slice));
    let security = declared
        .security
        .iter()
        .flat_map(|security| std::iter::once(security.command.as_slice()).chain(security.version_command.as_deref()));
    let surface = declared.api_surface.iter().map(|surface| surface.command.as_slice());
    let items = items.iter().map(Vec::as_slice);
    let detours = declared.detours().iter().filter_map(|detour| detour.command.as_deref());
    let measures = residual.chain(metrics).chain(security).chain(surface);
    let mut scripts: Vec<String> = measures.chain(items).chain(detours).flat_map(scripts_of).collect();
    scripts.sort();
    scripts.dedup();
    scripts.retain(|path| start.files.get(path) != now.files.get(path));
    scripts
}

/// Files that run by themselves and differ from how the run found them: git's hooks and configuration, start-up files.
/// The declaration is one of them: its next run would take its sandbox and its commands from there.
pub fn planted(start: &TreeSnapshot, now: &TreeSnapshot) -> Vec<String> {
    let declaration = "loop.yaml";
    let changed = start.files.get(declaration) != now.files.get(declaration);
    // Runs that began before these were looked at cannot be compared.
    let (Some(start), Some(now)) = (&start.guarded, &now.guarded) else { return Vec::new() };
    let had_repository = start.keys().any(|path| matches!(path.as_str(), ".git" | ".git/config"));
    let differs = |path: &&String| {
        let (before, after) = (start.get(*path), now.get(*path));
        match path.as_str() {
            // A repository that was there must stay one; what it holds changes with honest work.
            name if tree::REPOSITORY.iter().any(|(part, _)| *part == name) => before.is_some() && after.is_none(),
            // Older runs did not ask git what its files come to.
            effective::NAME if before.is_none() && had_repository => false,
            // A new repository may say what every new one says, and nothing else.
            effective::NAME if before.is_none() => after.is_some_and(|after| *after != effective::nothing()),
            ".git/config" if !had_repository => !now.contains_key(effective::NAME),
            _ => before != after,
        }
    };
    let mut paths: Vec<String> = start.keys().chain(now.keys()).filter(differs).cloned().collect();
    paths.extend(changed.then(|| declaration.to_owned()));
    paths.sort();
    paths.dedup();
    paths
}

/// The files of the workspace that decide what a command does.
fn scripts_of(argv: &[String]) -> Vec<String> {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    let mut scripts = Vec::new();
    collect_scripts(&words, 0, &mut scripts);
    scripts
}

/// One simple command. `depth` bounds `sh -c "sh -c …"`.
fn collect_scripts(words: &[&str], depth: u32, scripts: &mut Vec<String>) {
    const MAX_DEPTH: u32 = 4;
    let Some((program, rest)) = words.split_first().filter(|_| depth < MAX_DEPTH) else { return };
    let name = program.rsplit('/').next().unwrap_or(program);
    let plain = |path: &str| path.strip_prefix("./").unwrap_or(path).to_owned();
    match name {
        // What only passes the command on: its own options and settings are skipped.
        "env" | "timeout" | "nice" | "exec" | "time" | "nohup" => {
            let passes = |word: &&&str| {
                word.starts_with('-') || word.contains('=') || word.starts_with(|c: char| c.is_ascii_digit())
            };
            let skip = rest.iter().take_while(passes).count();
            collect_scripts(&rest[skip..], depth + 1, scripts);
        }
        "make" => scripts.extend(["Makefile", "makefile", "GNUmakefile"].map(str::to_owned)),
        "npm" | "pnpm" | "yarn" => scripts.push("package.json".to_owned()),
        "just" => scripts.push("justfile".to_owned()),
        _ if INTERPRETERS.contains(&name) => {
            let mut rest = rest.iter();
            while let Some(word) = rest.next() {
                match *word {
                    "-c" => {
                        let line = rest.next().copied().unwrap_or_default();
                        for command in line.split([';', '&', '|', '\n', '(', ')', '`']) {
                            let words: Vec<&str> = command.split_whitespace().collect();
                            collect_scripts(&words, depth + 1, scripts);
                        }
                        return;
                    }
                    "-o" | "-O" => {
                        rest.next();
                    }
                    flag if flag.starts_with('-') || flag.starts_with('+') => {}
                    script => {
                        scripts.push(plain(script));
                        return;
                    }
                }
            }
        }
        _ if program.contains('/') => scripts.push(plain(program)),
        _ => {}
    }
}

fn globs(criterion: &Criterion) -> GlobSet {
    let mut builder = GlobSetBuilder::new();
    let declared = criterion.protects.iter().map(String::as_str);
    // A judge reads whatever it likes; only a check depends on tests and declarations.
    let by_default = criterion.protects.is_empty() && !criterion.is_judged();
    let defaults = DEFAULT_GLOBS.iter().copied().filter(|_| by_default);
    // What is ignored is not seen: a file must not be hidden while a criterion turns green.
    for glob in declared.chain(defaults).chain(["**/.gitignore"]).filter_map(|glob| Glob::new(glob).ok()) {
        builder.add(glob);
    }
    builder.build().unwrap_or_else(|_| GlobSet::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::digest::Digest;
    use crate::workspace::tree::FileState;

    fn tree(files: &[(&str, &str)]) -> TreeSnapshot {
        let state = |content: &str| FileState {
            sha256: Digest::of(content.as_bytes()),
            size: content.len() as u64,
            executable: false,
        };
        let files = files.iter().map(|(path, content)| ((*path).to_owned(), state(content)));
        TreeSnapshot { files: files.collect(), ..TreeSnapshot::default() }
    }

    fn criterion(argv: &[&str], protects: &[&str]) -> Criterion {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Criterion {
            id: "c".into(),
            text: "t".into(),
            proof: Proof::Check { argv: words(argv), timeout_seconds: 1 },
            protects: words(protects),
            hidden: None,
            writes: Vec::new(),
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

    /// Nearly every item of a PRD asks for tests: bringing them must not keep the run from its end.
    #[test]
    fn items_may_bring_their_tests() {
        let [start, now] = [tree(&[]), tree(&[("tests/a.rs", "new"), (".gitignore", "target")])];
        let check = criterion(&["cargo", "test"], &[]);
        for proof in [Proof::Items, Proof::Verified] {
            let way_out = Criterion { id: "out".into(), proof, ..check.clone() };
            let touched = touched(&[check.clone(), way_out], &start, &now);
            assert_eq!(touched.keys().collect::<Vec<_>>(), [&check.id]);
        }
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
    fn scripts_are_found_behind_wrappers() {
        let of = |argv: &[&str]| scripts_of(&argv.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["env", "A=1", "timeout", "10", "bash", "-o", "pipefail", "check.sh", "x"]), ["check.sh"]);
        assert_eq!(of(&["sh", "-c", "cd x && ./check.sh | sh count.sh"]), ["check.sh", "count.sh"]);
        assert_eq!(of(&["npm", "test"]), ["package.json"]);
        assert_eq!(of(&["sh", "-c", "test -f product"]), Vec::<String>::new());
        assert_eq!(of(&["cargo", "test"]), Vec::<String>::new());
    }

    #[test]
    fn hiding_files_is_seen() {
        let (start, now) = (tree(&[]), tree(&[(".gitignore", "tests/conftest.py")]));
        assert_eq!(touched(&[criterion(&["cargo", "test"], &["golden/**"])], &start, &now)["c"].others, [".gitignore"]);
    }

    #[test]
    fn instruments_are_guarded_by_their_scripts() {
        let text = "residual: {command: [sh, count.sh]}\nnorthstar: {measure: {vc-1: [./measure]}}\n";
        let declared = crate::model::loop_file::parse(text, "loop.yaml").unwrap();
        let start = tree(&[("count.sh", "1"), ("measure", "1")]);
        assert!(instruments_touched(&declared, &[], &start, &start).is_empty());
        let now = tree(&[("count.sh", "echo 0")]);
        assert_eq!(instruments_touched(&declared, &[], &start, &now), ["count.sh", "measure"]);
    }
}
