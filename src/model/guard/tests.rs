//! Paths of real cheats and of honest work, each with the class it must have.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// A guard set of a small tree: commands, measurements, files.
fn set(commands: &[&[&str]], measures: &[&[&str]], files: &[(&str, &str)]) -> GuardSet {
    let argv = |commands: &[&[&str]]| {
        commands.iter().map(|argv| argv.iter().map(|word| (*word).to_owned()).collect()).collect::<Vec<Vec<String>>>()
    };
    let texts: BTreeMap<&str, &str> = files.iter().copied().collect();
    let names: BTreeSet<String> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
    GuardSet::of(&argv(commands), &argv(measures), &[], &names, &|path| texts.get(path).map(|text| (*text).to_owned()))
}

fn assert_classes(set: &GuardSet, rows: &[(&str, Class)]) {
    for (path, class) in rows {
        assert_eq!(set.class(path), *class, "{path}; found {:?}", set.found());
    }
}

use Class::{Cache, Code, Guard, Manifest, Test, Tool, Unknown};

#[test]
fn pytest() {
    let set = set(
        &[&[".venv/bin/python", "-m", "pytest", "-q"]],
        &[],
        &[
            ("calc/__init__.py", ""),
            ("calc/core.py", "def add(a, b):\n    return a - b\n"),
            ("tests/test_core.py", "from calc.core import add\n"),
            ("pyproject.toml", "[project]\nname = 'calc'\n"),
            ("pytest.ini", "[pytest]\naddopts = -p plug.own\n"),
            ("plug/own.py", ""),
        ],
    );
    assert_classes(
        &set,
        &[
            ("tests/test_core.py", Test),
            ("pyproject.toml", Manifest),
            ("setup.cfg", Manifest),
            (".pytest.ini", Guard),
            ("pytest.ini", Guard),
            ("pytest.toml", Guard),
            ("tox.ini", Guard),
            ("conftest.py", Guard),
            ("tests/conftest.py", Guard),
            ("plug/own.py", Guard),
            (".venv/lib/python3.11/site-packages/zz.pth", Tool),
            (".venv/lib/python3.11/site-packages/pytest/__main__.py", Tool),
            (".venv/lib/python3.11/site-packages/zz-1.0.dist-info/METADATA", Tool),
            (".venv/bin/python", Tool),
            ("pytest/__init__.py", Guard),
            ("pytest/__main__.py", Guard),
            ("unittest.py", Guard),
            ("sitecustomize.py", Guard),
            ("tests/__init__.py", Test),
            ("tests/__pycache__/test_core.cpython-311-pytest-9.pyc", Cache),
            (".pytest_cache/v/cache/lastfailed", Cache),
            // what remains, and honest work
            ("calc/__init__.py", Code),
            ("calc/core.py", Code),
            ("calc/new.py", Code),
            ("requirements.txt", Unknown),
            ("uv.lock", Unknown),
            ("README.md", Unknown),
            ("report.xml", Unknown),
        ],
    );
    assert!(set.shadows("pytest/__main__.py") && set.shadows("json.py") && set.shadows("src/_pytest/x.py"));
    assert!(!set.shadows("calc/json.py") && !set.shadows("plug/own.py") && !set.shadows("json/readme.md"));
}

#[test]
fn jest_vitest_and_mocha() {
    let package = r#"{"scripts": {"test": "sh scripts/test.sh", "pretest": "node tools/pre.js", "dev": "node server.js"},
        "jest": {"setupFiles": ["./setup/env.js"], "moduleNameMapper": {"x": "<rootDir>/mapped.js"}}}"#;
    let set = set(
        &[&["npm", "test"]],
        &[],
        &[
            ("package.json", package),
            ("scripts/test.sh", "set -e\n. \"$(dirname \"$0\")/env.sh\"\nmocha\n"),
            ("scripts/env.sh", "x=1\n"),
            ("tools/pre.js", "require('./deep'); require('../server')"),
            ("tools/deep.js", ""),
            ("server.js", ""),
            ("setup/env.js", ""),
            ("src/calc.js", ""),
            ("node_modules/jest/package.json", "{}"),
        ],
    );
    assert_classes(
        &set,
        &[
            ("package.json", Manifest),
            ("scripts/test.sh", Guard),
            ("scripts/env.sh", Guard),
            ("tools/pre.js", Guard),
            ("tools/deep.js", Guard),
            ("setup/env.js", Guard),
            ("__tests__/calc.test.js", Test),
            ("__tests__/__snapshots__/calc.test.js.snap", Test),
            ("src/calc.test.js", Test),
            ("test/aa.test.js", Test),
            ("jest.config.cjs", Guard),
            ("jest.config.json", Guard),
            ("babel.config.js", Guard),
            ("vitest.config.mjs", Guard),
            ("vite.config.ts", Guard),
            (".mocharc.json", Guard),
            (".mocharc.js", Guard),
            (".npmrc", Guard),
            ("package.yaml", Guard),
            ("src/__mocks__/calc.js", Guard),
            ("node_modules/.bin/jest", Tool),
            ("node_modules/expect/build/index.js", Tool),
            ("node_modules/vitest/vitest.mjs", Tool),
            ("node_modules/.cache/babel/x.json", Cache),
            ("node_modules/.vite/vitest/results.json", Cache),
            ("ok/package.json", Unknown),
            ("ok/a.test.js", Test),
            ("fakejest/package.json", Unknown),
            // what remains, and honest work
            ("server.js", Code),
            ("src/calc.js", Code),
            ("src/new.ts", Code),
            ("package-lock.json", Unknown),
        ],
    );
    assert_eq!(set.found()["scripts/env.sh"], "scripts/env.sh, named by scripts/test.sh");
    assert_eq!(set.found()["package.json"], "package.json, named by `npm test`");
}

#[test]
fn linters_and_compilers() {
    let set = set(
        &[&["npm", "run", "lint"], &["npx", "prettier", "--check", "."], &["npx", "tsc", "--noEmit", "-p", "."]],
        &[],
        &[
            ("package.json", r#"{"scripts": {"lint": "eslint . --config conf/lint.js"}}"#),
            ("conf/lint.js", ""),
            ("tsconfig.json", "{\"extends\": \"./conf/ts.json\", \"files\": [\"./index.ts\"]}"),
            ("conf/ts.json", "{}"),
            ("index.ts", ""),
            ("src/bad.js", ""),
        ],
    );
    assert_classes(
        &set,
        &[
            ("eslint-suppressions.json", Guard),
            ("eslint.config.js", Guard),
            ("conf/lint.js", Guard),
            ("conf/ts.json", Guard),
            ("tsconfig.json", Guard),
            ("tsconfig.base.json", Guard),
            ("src/node_modules/bad/index.js", Tool),
            (".prettierignore", Guard),
            (".prettierrc", Guard),
            (".editorconfig", Guard),
            ("node_modules/typescript/lib/lib.es5.d.ts", Tool),
            // what remains, and honest work
            ("index.ts", Code),
            ("src/bad.js", Code),
            ("src/bad.ts", Code),
            ("src/global.d.ts", Code),
        ],
    );
}

#[test]
fn cargo() {
    let set = set(
        &[&["cargo", "test", "--offline"]],
        &[],
        &[("Cargo.toml", "[package]\nname = 'calc'\n"), ("src/lib.rs", ""), ("tests/it.rs", "")],
    );
    assert_classes(
        &set,
        &[
            ("tests/it.rs", Test),
            ("tests/n.rs", Test),
            ("Cargo.toml", Manifest),
            (".cargo/config", Guard),
            (".cargo/config.toml", Guard),
            ("build.rs", Guard),
            ("rust-toolchain.toml", Guard),
            ("crates/a/build.rs", Guard),
            ("target/debug/deps/it", Cache),
            ("src/target/x.rs", Code),
            ("src/parse/tests.rs", Test),
            // what remains, and honest work
            ("src/lib.rs", Code),
            ("src/ops.rs", Code),
            ("Cargo.lock", Unknown),
        ],
    );
}

const MAKE: &[(&str, &str)] = &[
    (
        "Makefile",
        "include config.mk\ncheck: build\n\t./scripts/check.sh\nbuild:\n\tcc -o prog src/prog.c\nrun:\n\tsh serve.sh\n",
    ),
    ("config.mk", "X = 1\n"),
    (
        "scripts/check.sh",
        "#!/bin/sh\n. ./.env\n. scripts/lib.sh\nfor t in tests/*.sh; do sh $t; done\ntools/compare spec/expected.txt out\n[ \"$(sh prog.sh 2 3)\" = 5 ]\nsh src/prog.sh\n",
    ),
    ("scripts/lib.sh", ""),
    ("tools/compare", "#!/bin/sh\ncmp $1 $2\n"),
    ("spec/expected.txt", "5\n"),
    ("tests/t1.sh", ""),
    ("src/prog.sh", ""),
    ("prog.sh", ""),
    ("serve.sh", ""),
];

#[test]
fn make() {
    let set = set(&[&["make", "check"]], &[], MAKE);
    assert_classes(
        &set,
        &[
            ("Makefile", Guard),
            ("GNUmakefile", Guard),
            ("config.mk", Guard),
            ("scripts/check.sh", Guard),
            ("scripts/lib.sh", Guard),
            (".env", Guard),
            ("tools/compare", Guard),
            ("tests/t1.sh", Test),
            ("tests/t1.disabled", Test),
            ("spec/expected.txt", Test),
            ("check", Guard),
            ("build/x", Guard),
            // honest work, and what remains
            ("src/prog.sh", Code),
            ("prog.sh", Code),
            ("serve.sh", Code),
            ("run", Unknown),
        ],
    );
    assert!(set.shadows("check") && !set.shadows("run"));
    assert_eq!(set.found()["config.mk"], "config.mk, named by Makefile");
    assert_eq!(set.found()["scripts/check.sh"], "scripts/check.sh, named by Makefile (check)");
}

#[test]
fn go_and_pre_commit() {
    let set = set(
        &[&["go", "test", "./..."], &["venv/bin/pre-commit", "run", "--all-files"]],
        &[],
        &[
            ("go.mod", "module ex.com/x\n"),
            ("calc/calc.go", ""),
            ("calc/calc_test.go", ""),
            (
                ".pre-commit-config.yaml",
                "repos:\n- repo: local\n  hooks:\n  - id: a\n    entry: scripts/hook.sh\n    language: script\n",
            ),
            ("scripts/hook.sh", "#!/bin/sh\nsh scripts/scan.sh \"$@\"\n"),
            ("scripts/scan.sh", ""),
            ("src/bad.txt", ""),
        ],
    );
    assert_classes(
        &set,
        &[
            ("calc/calc_test.go", Test),
            ("calc/main_test.go", Test),
            ("calc/go.mod", Guard),
            ("other/go.mod", Guard),
            ("go.mod", Manifest),
            ("go.work", Guard),
            (".pre-commit-config.yaml", Guard),
            ("scripts/hook.sh", Guard),
            ("scripts/scan.sh", Guard),
            ("src/bad.text", Unknown),
            ("calc/calc.go", Code),
            ("_calc/calc.go", Code),
            ("go.sum", Unknown),
        ],
    );
}

/// An agent that writes the number itself must be seen; what a check writes is its own.
#[test]
fn what_a_measurement_reads_is_a_guard() {
    let files = [
        ("failing.txt", "3\n"),
        ("out.log", "x\n"),
        ("notes.md", ""),
        ("count.py", "print(len(open('open.json').read()))\nopen('src/a.json')\n"),
        ("open.json", "[]"),
        ("src/a.json", "[]"),
        ("product.txt", ""),
        ("scripts/gap", "#!/bin/sh\n[ -f score.txt ] && cat score.txt || echo 1\n"),
        ("later.py", "print(open('later.json').read() if os.path.exists('later.json') else 'n/a')\n"),
    ];
    let set = set(
        &[
            &["grep", "-q", "done", "product.txt"],
            &["sh", "-c", "npx jest > out.log"],
            &["sh", "-c", "[ $(./scripts/gap) = 0 ]"],
        ],
        &[
            &["cat", "failing.txt"],
            &["sh", "-c", "wc -l < out.log"],
            &["grep", "-c", "TODO", "notes.md", "src/main.py"],
            &["python3", "count.py"],
            &["jq", ".n", "absent.json"],
            &["sh", "-c", "tail -n 1 score 2>/dev/null || echo 1"],
            &["./scripts/gap"],
            &["python3", "later.py"],
        ],
        &files,
    );
    assert_classes(
        &set,
        &[
            ("failing.txt", Guard),
            ("open.json", Guard),
            ("count.py", Guard),
            ("absent.json", Guard),
            ("score.txt", Guard),
            ("score", Guard),
            ("1", Unknown),
            ("later.py", Guard),
            ("later.json", Guard),
            ("n/a", Unknown),
            ("out.log", Unknown),
            ("notes.md", Unknown),
            ("src/a.json", Unknown),
            ("product.txt", Unknown),
            ("src/main.py", Code),
        ],
    );
}

#[test]
fn commands_are_followed_through_what_passes_them_on() {
    let files = [
        ("check.sh", ""),
        ("ci/all.py", "from . import deep\nimport helper\nimport calc\n"),
        ("ci/deep.py", ""),
        ("ci/helper.py", ""),
        ("calc.py", ""),
        ("sub/Makefile", "test:\n\tsh run.sh\n"),
        ("sub/run.sh", ""),
        ("tox.ini", "[testenv]\ncommands = python ci/all.py\n"),
        ("justfile", "check: lint\n    ./a.sh\nlint:\n    ./b.sh\nother:\n    ./c.sh\n"),
        ("a.sh", ""),
        ("b.sh", ""),
        ("c.sh", ""),
        ("Taskfile.yml", "tasks:\n  check:\n    deps: [x]\n    cmds: [./d.sh]\n  x: ./e.sh\n"),
        ("d.sh", ""),
        ("e.sh", ""),
    ];
    let rows: &[(&[&str], &[&str])] = &[
        (&["env", "A=1", "timeout", "10", "bash", "-o", "pipefail", "check.sh", "x"], &["check.sh"]),
        (&["sh", "-c", "cd sub && sh run.sh"], &["sub/run.sh"]),
        (&["make", "-C", "sub"], &["sub/Makefile", "sub/run.sh"]),
        (&["poetry", "run", "tox", "-e", "py"], &["ci/all.py", "ci/deep.py", "ci/helper.py", "tox.ini"]),
        (&["just", "check"], &["a.sh", "b.sh", "justfile"]),
        (&["task", "check"], &["Taskfile.yml", "d.sh", "e.sh"]),
        (&["sh", "new-check.sh"], &["new-check.sh"]),
        (&["test", "-f", "calc.py"], &[]),
    ];
    for (argv, expected) in rows {
        let set = set(&[argv], &[], &files);
        assert_eq!(set.found().keys().collect::<Vec<_>>(), *expected, "{argv:?}");
    }
}

/// Names that no list knows, found by what the check goes through; programs that are only looked at or run.
#[test]
fn what_a_check_goes_through_judges_and_what_it_only_runs_does_not() {
    let files = [
        ("check.sh", "for t in parts/*.sh; do sh $t || exit 1; done\n"),
        ("parts/add.sh", ""),
        ("main.py", "print(sum([1, 2]))\n"),
        ("deploy.sh", "exit 1\n"),
    ];
    let set = set(&[&["sh", "check.sh"], &["python3", "main.py"], &["bash", "-n", "deploy.sh"]], &[], &files);
    assert_classes(&set, &[("parts/add.sh", Guard), ("check.sh", Guard), ("main.py", Code), ("deploy.sh", Code)]);
}

#[test]
fn formatters_run_no_tests() {
    let lints = |argv: &[&str]| set(&[argv], &[], &[]).only_lints();
    assert!(lints(&["npx", "prettier", "--check", "."]) && lints(&["cargo", "fmt", "--check"]));
    assert!(lints(&["python3", "-m", "black", "--check", "."]));
    assert!(!lints(&["npm", "test"]) && !lints(&["cargo", "test"]) && !lints(&["sh", "check.sh"]));
}

/// What is looked at is the work; what something is compared with may be the judge.
#[test]
fn a_check_looks_at_data() {
    let files = [("check", "#!/bin/sh\ntest $(cat left) = 0\ncmp out answers\n"), ("left", ""), ("answers", "")];
    let set = set(&[&["./check"], &["grep", "-q", "done", "./notes"]], &[], &files);
    assert!(set.looks_at("left") && set.looks_at("notes") && !set.looks_at("answers"), "{:?}", set.commands());
}

#[test]
fn declared_guards_come_first() {
    let names = BTreeSet::from(["golden/x".to_owned()]);
    let set = GuardSet::of(&[], &[], &["src/judge/**".to_owned(), "[".to_owned()], &names, &|_| None);
    assert_eq!(set.class("src/judge/a.rs"), Guard);
    assert_eq!(set.class("src/a.rs"), Code);
}

/// Circles end, and what names itself is found once.
#[test]
fn following_is_bounded() {
    let set = set(
        &[&["npm", "run", "a"], &["make"]],
        &[],
        &[
            ("package.json", r#"{"scripts": {"a": "npm run b", "b": "npm run a && sh check.sh"}}"#),
            ("check.sh", ". ./check.sh\nsh check.sh\nmake\n"),
            ("Makefile", "include Makefile\nA = $(A)$(A)\nall: all\n\tmake all\n\tsh check.sh\n"),
        ],
    );
    assert_eq!(set.found().len(), 3);
}

/// A list of cases beside the script that goes through it; `grep -q done checks/state` by a person is about that file.
#[test]
fn data_that_stands_with_judges_is_theirs() {
    let files = [("checks/run.sh", "for name in $(cat checks/cases.txt); do :; done\n"), ("checks/cases.txt", "a\n")];
    let by_script = set(&[&["sh", "checks/run.sh"]], &[], &files);
    assert_classes(&by_script, &[("checks/cases.txt", Guard)]);
    assert!(!by_script.looks_at("checks/cases.txt"));
    assert!(set(&[&["grep", "-q", "a", "./checks/cases.txt"]], &[], &files).looks_at("checks/cases.txt"));
    assert!(set(&[&["sh", "-c", "grep -q a checks/cases.txt"]], &[], &files).looks_at("checks/cases.txt"));
}

/// A script beside the work: it judges, what it imports from the root is the work.
#[test]
fn what_a_check_imports_from_the_root_is_the_work() {
    let files = [
        ("check.py", "import app\n\nassert app.here()\n"),
        ("app.py", "def here():\n    return os.getcwd()\n"),
        ("loop.yaml", "goal: \"Mend app.py.\"\nagents:\n  a: { command: [\"sh\", \"-c\", \"edit app.py\"] }\n"),
    ];
    let set = set(&[&["/usr/bin/python3", "check.py"]], &[], &files);
    assert_classes(&set, &[("check.py", Guard), ("app.py", Code)]);
    let names: BTreeSet<String> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
    let read = |path: &str| files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned());
    assert!(!Readers::of(&set, &names, &read).judges("app.py"));
}
