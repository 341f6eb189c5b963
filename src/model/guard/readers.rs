//! Who reads a file: those who judge, or the work that they judge?
//!
//! A helper of tests inside a package of the product and a table that only tests open have names like any other file.
//! What tells them is who refers to them: judges do, and no code does. Not its role: names that say so themselves.
//! Invariants: texts of the start only; number and size of what is read are bounded; what cannot be told is the work.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use super::follow::refs;
use super::names;
use super::set::{Class, GuardSet};
use super::table::table;

/// Texts that are read, how much of each, and of all.
const MAX_TEXTS: usize = 3_000;
const MAX_TEXT: usize = 256 << 10;
const MAX_TEXTS_BYTES: usize = 16 << 20;

/// Modules that only tests import.
const FRAMEWORKS: &[&str] = &[
    "pytest",
    "unittest",
    "hypothesis",
    "nose",
    "nose2",
    "assertpy",
    "hamcrest",
    "chai",
    "expect",
    "vitest",
    "jest",
    "@jest/globals",
    "node:test",
    "mocha",
    "ava",
    "tap",
    "tape",
    "sinon",
    "should",
    "@playwright/test",
    "@testing-library/react",
    "testing",
    "github.com/stretchr/testify/assert",
    "github.com/stretchr/testify/require",
];

/// What the texts of the start refer to. The judges are read at once, the work only where a judge refers to a file.
pub struct Readers<'a> {
    set: &'a GuardSet,
    names: &'a BTreeSet<String>,
    read: &'a dyn Fn(&str) -> Option<String>,
    judges: Vec<Refers>,
    work: OnceCell<Vec<Refers>>,
}

#[derive(Debug, Default)]
struct Refers {
    /// Who it is.
    path: String,
    /// Last names of files, and of modules that are imported, without their ends.
    files: BTreeSet<String>,
    modules: BTreeSet<String>,
    /// Names in quotes or in a path: folders that it may go through.
    folders: BTreeSet<String>,
    /// Does it refer to code? Then data that it reads is what the code is measured with; otherwise the data itself is
    /// what is judged.
    judges_code: bool,
}

impl<'a> Readers<'a> {
    /// `names`: all paths at the start; `read`: the text of one of them.
    pub fn of(set: &'a GuardSet, names: &'a BTreeSet<String>, read: &'a dyn Fn(&str) -> Option<String>) -> Self {
        let mut judges = texts(names, read, |path| matches!(set.class(path), Class::Guard | Class::Test));
        let code: BTreeSet<&str> =
            names.iter().filter(|path| set.class(path) == Class::Code).map(|path| names::base(path)).collect();
        let stems: BTreeSet<&str> = code.iter().map(|base| names::stem(base)).collect();
        for refers in &mut judges {
            refers.judges_code = refers.files.iter().any(|name| code.contains(name.as_str()))
                || refers.modules.iter().any(|name| stems.contains(name.as_str()));
        }
        Self { set, names, read, judges, work: OnceCell::new() }
    }

    /// Is this file, which is neither a test nor a setting by its name, one of the judges?
    pub fn judges(&self, path: &str) -> bool {
        if names::is_code(path) { self.helps_tests(path) } else { self.is_data_of_judges(path) }
    }

    fn work(&self) -> &[Refers] {
        self.work.get_or_init(|| texts(self.names, self.read, |path| self.set.class(path) == Class::Code))
    }

    /// Code that imports what only tests import, or that a judge finds by its folder and that asserts; no work uses it.
    fn helps_tests(&self, path: &str) -> bool {
        let used = |refers: &Refers| refers.path != path && refers.names_module(path);
        let imported = self.judges.iter().any(used);
        let gone_through = !imported && self.judges.iter().any(|refers| refers.goes_through(path));
        let Some(text) = (imported || gone_through).then(|| (self.read)(path)).flatten() else { return false };
        let is_go_product = path.ends_with(".go") && !text.contains("testing.T");
        let helps = if imported { imports_a_framework(&text) } else { refs::asserts_something(&text) };
        helps && !is_go_product && !self.work().iter().any(used)
    }

    fn is_data_of_judges(&self, path: &str) -> bool {
        let with_code = path.split('/').rev().skip(1).any(|part| table().outside.contains(part));
        let by_judges = || self.judges.iter().any(|refers| refers.judges_code && refers.reads(path));
        let by_work = || self.work().iter().any(|refers| refers.reads(path));
        !names::is_document(path) && !with_code && by_judges() && !by_work()
    }
}

/// What those texts refer to that `which` picks, within the bounds.
fn texts(names: &BTreeSet<String>, read: &dyn Fn(&str) -> Option<String>, which: impl Fn(&str) -> bool) -> Vec<Refers> {
    let mut left = MAX_TEXTS_BYTES;
    let picked = names.iter().filter(|path| may_refer(path) && which(path)).take(MAX_TEXTS);
    let read = picked.filter_map(|path| Some((path, read(path).filter(|text| text.len() <= MAX_TEXT)?)));
    let within = read.take_while(|(_, text)| {
        let rest = left.checked_sub(text.len());
        left = rest.unwrap_or(left);
        rest.is_some()
    });
    within.map(|(path, text)| refers(path, &text)).collect()
}

impl Refers {
    fn reads(&self, path: &str) -> bool {
        self.files.contains(names::base(path)) || self.goes_through(path)
    }

    fn goes_through(&self, path: &str) -> bool {
        let folder = names::base(names::folder(path));
        let is_own = names::folder(path) == names::folder(&self.path);
        !folder.is_empty() && !is_own && self.folders.contains(folder)
    }

    fn names_module(&self, path: &str) -> bool {
        let stem = match names::stem(path) {
            // A package is imported by its folder.
            "__init__" | "index" | "mod" => names::base(names::folder(path)),
            stem => stem,
        };
        self.modules.contains(stem) || self.files.contains(names::base(path))
    }
}

/// Does it hold text that can name another file?
fn may_refer(path: &str) -> bool {
    let is_script = names::extension(path).is_empty();
    names::is_code(path) || is_script || names::base(path).to_ascii_lowercase().contains("makefile")
}

fn refers(path: &str, text: &str) -> Refers {
    let mut found = Refers { path: path.to_owned(), ..Refers::default() };
    let is_name = |c: char| c.is_alphanumeric() || "_-.@".contains(c);
    let words = text.split(|c: char| !(is_name(c) || c == '/' || c == '*'));
    for word in words.filter(|word| word.len() < 300) {
        let mut parts = word.split('/').filter(|part| !part.is_empty()).peekable();
        while let Some(part) = parts.next() {
            if part.contains('.') {
                found.files.insert(part.to_owned());
            } else if parts.peek().is_some() {
                found.folders.insert(part.to_owned());
            }
        }
    }
    found.folders.extend(refs::quoted(text).into_iter().filter(|word| word.chars().all(is_name)));
    let imports = match names::extension(path).as_str() {
        "py" => refs::python(text),
        "js" | "mjs" | "cjs" | "jsx" | "ts" | "mts" | "cts" | "tsx" => refs::javascript(text),
        _ => Vec::new(),
    };
    for import in imports {
        let parts = import.split('/').filter(|part| !part.is_empty() && *part != "." && *part != "..");
        found.modules.extend(parts.map(|part| names::stem(part).to_owned()));
    }
    found
}

fn imports_a_framework(text: &str) -> bool {
    let imports = |line: &str| {
        let line = line.trim();
        let module = line.strip_prefix("import ").or_else(|| line.strip_prefix("from "));
        let module = module.and_then(|rest| rest.split([' ', '.', ',', ';']).next()).unwrap_or_default();
        let quoted = line.split(['\'', '"', '`']).skip(1).step_by(2);
        let loads = line.contains("require") || line.contains("import") || line.contains("from");
        let is_go = line.starts_with('"') && line.ends_with('"');
        FRAMEWORKS.contains(&module) || ((loads || is_go) && quoted.into_iter().any(|word| FRAMEWORKS.contains(&word)))
    };
    text.lines().take(400).any(imports)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn judged(files: &[(&str, &str)], path: &str) -> bool {
        let texts: BTreeMap<&str, &str> = files.iter().copied().collect();
        let names: BTreeSet<String> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
        let read = |path: &str| texts.get(path).map(|text| (*text).to_owned());
        let argv = ["sh", "check.sh"].map(str::to_owned).to_vec();
        let set = GuardSet::of(&[argv], &[], &[], &names, &read);
        Readers::of(&set, &names, &read).judges(path)
    }

    const TEST: (&str, &str) = (
        "tests/test_core.py",
        "from calc.core import add\nfrom calc.proof import same\nRULES = open('rules.json')\nfor s in glob('samples/*.txt'): pass\n",
    );
    const CORE: (&str, &str) = ("calc/core.py", "def add(a, b):\n    assert a\n    return open('limits.json')\n");
    const PROOF: (&str, &str) = ("calc/proof.py", "import pytest\n\ndef same(a, b):\n    assert a == b\n");

    #[test]
    fn what_only_judges_read_is_theirs() {
        let files =
            [TEST, CORE, PROOF, ("rules.json", ""), ("samples/a.txt", ""), ("limits.json", ""), ("notes.txt", "")];
        assert!(judged(&files, "calc/proof.py"));
        assert!(judged(&files, "rules.json"));
        assert!(judged(&files, "samples/a.txt"));
        // Code under test, data of the code, data that nobody reads.
        assert!(!judged(&files, "calc/core.py"));
        assert!(!judged(&files, "limits.json"));
        assert!(!judged(&files, "notes.txt"));
    }

    #[test]
    fn what_the_work_uses_too_is_the_work() {
        let user = ("calc/main.py", "from calc.proof import same\nopen('rules.json')\n");
        let files = [TEST, CORE, PROOF, user, ("rules.json", "")];
        assert!(!judged(&files, "calc/proof.py"));
        assert!(!judged(&files, "rules.json"));
    }

    #[test]
    fn data_that_is_judged_itself_is_the_work() {
        let check = ("check.sh", "python3 -m json.tool rules.json || exit 1\n");
        assert!(!judged(&[check, ("rules.json", "")], "rules.json"));
        let check = ("check.sh", "python3 calc/core.py < rules.json || exit 1\n");
        assert!(judged(&[check, CORE, ("rules.json", "")], "rules.json"));
    }

    #[test]
    fn what_a_judge_goes_through_and_asserts_is_a_judge() {
        let check = ("check.sh", "for p in probes/*.py; do python3 $p || exit 1; done; sh src/prog.sh\n");
        let files =
            [check, ("probes/a.py", "assert 1 + 1 == 2\n"), ("probes/b.py", "print(1)\n"), ("src/prog.sh", "echo 1\n")];
        assert!(!judged(&files, "src/prog.sh"));
        assert!(!judged(&files, "probes/b.py"));
        let check = ("check.sh", "python3 run.py probes\n");
        let run = ("run_checks.py", "import importlib\nfor n in names('probes'):\n    importlib.import_module(n)\n");
        let files = [check, run, ("probes/a.py", "assert 1 + 1 == 2\n"), ("app/main.py", "assert x\n")];
        assert!(!judged(&files, "app/main.py"));
    }

    #[test]
    fn frameworks() {
        for text in [
            "import pytest\n",
            "from unittest.mock import Mock\n",
            "const { expect } = require('chai');\n",
            "import { test } from \"vitest\";\n",
            "import (\n\t\"testing\"\n)\n",
        ] {
            assert!(imports_a_framework(text), "{text}");
        }
        for text in ["import testing_tools\n", "const a = require('./chai');\n", "from calc import pytest_like\n"] {
            assert!(!imports_a_framework(text), "{text}");
        }
    }
}
