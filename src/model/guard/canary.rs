//! Tests that must fail: a check that does not see one is blind.
//!
//! Role: the text of a file with such a test in it. Not its role: running it. A canary is put where a test stands that
//! the check is known to read; whether it is seen at all is asked of the start, too, so a wrong guess costs nothing.

use std::collections::BTreeSet;

use super::names;
use super::set::{Class, GuardSet};

/// Shows in the output of whoever sees it.
const MARKER: &str = "nightloop-canary";

/// A file with a test, or a mistake, that must be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canary {
    pub path: String,
    pub text: String,
    pub marker: String,
}

/// A canary for a command; `None`: nothing suitable is there. `shown`: what the check printed when it was red.
pub fn canary_for(
    argv: &[String],
    set: &GuardSet,
    names: &BTreeSet<String>,
    read: &dyn Fn(&str) -> Option<String>,
    shown: &str,
) -> Option<Canary> {
    if let Some(linted) = for_linter(argv, set, names) {
        return Some(linted);
    }
    let is_test = |path: &&String| set.class(path) == Class::Test || path.ends_with(".rs");
    let mut candidates: Vec<&String> = names.iter().filter(is_test).filter(|path| kind_of(path).is_some()).collect();
    // A test that the check is known to have read first, then tests by name, then code with tests in it.
    let told = |path: &String| shown.contains(path.as_str()) || shown.contains(names::base(path));
    candidates.sort_by_key(|path| (!told(path), set.class(path) != Class::Test, path.len()));
    candidates.into_iter().take(MAX_READ).find_map(|path| canary_in(path, &read(path)?))
}

/// Files that are read in search of a place.
const MAX_READ: usize = 50;

#[derive(Debug, Clone, Copy)]
enum Kind {
    Python,
    JavaScript,
    Rust,
    Go,
    Shell,
}

fn kind_of(path: &str) -> Option<Kind> {
    match names::extension(path).as_str() {
        "py" if !matches!(names::base(path), "__init__.py" | "conftest.py") => Some(Kind::Python),
        "js" | "mjs" | "cjs" | "jsx" | "ts" | "mts" | "cts" | "tsx" => Some(Kind::JavaScript),
        "rs" => Some(Kind::Rust),
        "go" if path.ends_with("_test.go") => Some(Kind::Go),
        "sh" | "bash" => Some(Kind::Shell),
        _ => None,
    }
}

/// A file of tests with one more, which fails.
pub fn canary_in(path: &str, text: &str) -> Option<Canary> {
    let text = match kind_of(path)? {
        Kind::Python => python(text),
        Kind::JavaScript => javascript(text)?,
        Kind::Rust => rust(path, text)?,
        Kind::Go => format!("{text}\nfunc TestNightloopCanary(t *testing.T) {{\n\tt.Fatal(\"{MARKER}\")\n}}\n"),
        Kind::Shell => shell(text),
    };
    Some(Canary { path: path.to_owned(), text, marker: MARKER.to_owned() })
}

fn python(text: &str) -> String {
    let is_unittest = text.contains("unittest") && text.contains("TestCase");
    let has_tests = is_unittest || text.lines().any(|line| line.trim_start().starts_with("def test"));
    if !has_tests {
        // A plain script: it must not come to its end.
        return format!("raise AssertionError(\"{MARKER}\")\n{text}");
    }
    let test = if is_unittest {
        format!(
            "\n\nimport unittest as _nightloop\n\n\nclass TestNightloopCanary(_nightloop.TestCase):\n    def test_canary(self):\n        \
             self.fail(\"{MARKER}\")\n\n\n"
        )
    } else {
        format!("\n\ndef test_nightloop_canary():\n    assert False, \"{MARKER}\"\n\n\n")
    };
    // Before whatever starts the tests at the end of the file.
    match text.find("\nif __name__") {
        Some(at) => format!("{}{test}{}", &text[..=at], &text[at + 1..]),
        None => format!("{text}{test}"),
    }
}

fn javascript(text: &str) -> Option<String> {
    let calls = |name: &str| {
        text.lines().any(|line| line.trim_start().starts_with(&format!("{name}(")))
            || text.contains(&format!("{name}."))
    };
    let name = ["test", "it"].into_iter().find(|name| calls(name));
    let name = name.or_else(|| text.contains("describe(").then_some("it"))?;
    Some(format!("{text}\n{name}('nightloop canary', () => {{\n  throw new Error('{MARKER}');\n}});\n"))
}

fn rust(path: &str, text: &str) -> Option<String> {
    let test = format!("\n#[test]\nfn nightloop_canary() {{\n    panic!(\"{MARKER}\");\n}}\n");
    let is_suite = path.starts_with("tests/") || path.contains("/tests/");
    if is_suite && text.contains("#[test]") {
        return Some(format!("{text}{test}"));
    }
    let module = text.find("#[cfg(test)]")?;
    let open = module + text[module..].find('{')?;
    let head = &text[module..open];
    let is_module = head.contains("mod ") && text[open..].contains("#[test]");
    is_module.then(|| format!("{}{test}{}", &text[..=open], &text[open + 1..]))
}

fn shell(text: &str) -> String {
    let fail = format!("echo {MARKER}; exit 1\n");
    match text.split_once('\n').filter(|(first, _)| first.starts_with("#!")) {
        Some((first, rest)) => format!("{first}\n{fail}{rest}"),
        None => format!("{fail}{text}"),
    }
}

/// A mistake beside a source that a linter reads.
fn for_linter(argv: &[String], set: &GuardSet, names: &BTreeSet<String>) -> Option<Canary> {
    let runs = |tool: &str| {
        let is_tool = |word: &String| names::base(word) == tool;
        argv.iter().any(is_tool) || set.commands().iter().flatten().any(is_tool)
    };
    let is_test_runner = ["jest", "vitest", "mocha", "pytest", "unittest"].into_iter().any(runs);
    if is_test_runner {
        return None;
    }
    let beside = |ends: &[&str]| {
        let source = |path: &&String| set.class(path) == Class::Code && ends.contains(&names::extension(path).as_str());
        let found = names.iter().find(source)?;
        let folder = names::folder(found);
        let name = format!("nightloop_canary.{}", names::extension(found));
        Some(if folder.is_empty() { name } else { format!("{folder}/{name}") })
    };
    let scripts = ["js", "mjs", "cjs", "jsx", "ts", "tsx"];
    let (path, text) = if runs("tsc") {
        (beside(&["ts", "tsx"])?, format!("export const nightloopCanary: number = '{MARKER}';\n"))
    } else if runs("eslint") || runs("biome") || runs("oxlint") {
        (beside(&scripts)?, format!("const nightloopCanary = '{MARKER}' ((;\n"))
    } else if runs("prettier") {
        (beside(&scripts)?, format!("const   nightloopCanary={{a:\"{MARKER}\"  }}\n\n\n"))
    } else if runs("ruff") || runs("flake8") || runs("pylint") || runs("mypy") || runs("black") {
        (beside(&["py"])?, format!("def nightloop_canary(:\n    '{MARKER}'\n"))
    } else {
        return None;
    };
    Some(Canary { path, text, marker: MARKER.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inside(path: &str, text: &str) -> String {
        canary_in(path, text).map(|canary| canary.text).unwrap_or_default()
    }

    #[test]
    fn a_failing_test_stands_where_tests_stand() {
        let python = inside("tests/test_a.py", "def test_a():\n    assert 1\n");
        assert!(
            python.ends_with("def test_nightloop_canary():\n    assert False, \"nightloop-canary\"\n\n\n"),
            "{python}"
        );
        let main = "import unittest\nclass A(unittest.TestCase):\n    pass\n\nif __name__ == '__main__':\n    unittest.main()\n";
        let python = inside("tests/test_a.py", main);
        assert!(python.find("test_canary").unwrap() < python.find("if __name__").unwrap(), "{python}");
        assert!(inside("tests/check.py", "assert f() == 1\n").starts_with("raise AssertionError"));
        assert!(inside("a.test.js", "it('a', () => {});\n").contains("\nit('nightloop canary'"));
        assert!(inside("tests/it.rs", "#[test]\nfn a() {}\n").contains("fn nightloop_canary"));
        let unit = inside("src/a.rs", "fn a() {}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn b() {}\n}\n");
        assert!(unit.contains("mod tests {\n#[test]\nfn nightloop_canary"), "{unit}");
        assert!(inside("tests/t1.sh", "#!/bin/sh\ntrue\n").starts_with("#!/bin/sh\necho nightloop-canary; exit 1\n"));
        assert!(canary_in("src/a.rs", "fn a() {}\n").is_none());
    }
}
