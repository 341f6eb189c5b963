//! The tests of a Python project: by which runner, and started how.

use super::clues::is_python_test;
use super::{Clues, Inferred};

const REQUIREMENTS: [&str; 6] = [
    "requirements.txt",
    "requirements-dev.txt",
    "dev-requirements.txt",
    "requirements-test.txt",
    "requirements_dev.txt",
    "test-requirements.txt",
];

/// Files that say that a folder is a project.
const MANIFESTS: [&str; 6] = ["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile", "tox.ini"];

pub fn checks(clues: &Clues) -> Vec<Inferred> {
    found(clues).into_iter().collect()
}

fn found(clues: &Clues) -> Option<Inferred> {
    let pytest = says_pytest(clues);
    let test = clues.find(|path| is_test_here(clues, path)).map(str::to_owned);
    if clues.has("manage.py") && pytest.is_none() {
        return Some(started(clues, &["python3", "manage.py", "test"], "manage.py"));
    }
    // A lock says how everybody runs it; the runners of many environments come next.
    if clues.python_manager().is_none() {
        let pyproject = clues.text("pyproject.toml").unwrap_or_default();
        let tox = clues.text("tox.ini").is_some_and(|text| text.contains("[tox]") || text.contains("[testenv"));
        if clues.has("noxfile.py") {
            return Some(Inferred::new("test", &["nox"], "noxfile.py"));
        }
        if tox || pyproject.contains("[tool.tox") {
            return Some(Inferred::new("test", &["tox"], if tox { "tox.ini" } else { "pyproject.toml" }));
        }
        if pyproject.contains("[tool.hatch.envs.hatch-test") {
            return Some(Inferred::new("test", &["hatch", "test"], "pyproject.toml"));
        }
    }
    if let Some(from) = pytest {
        return Some(started(clues, &["python3", "-m", "pytest"], from));
    }
    let test = test?;
    if only_unittest(clues) {
        let in_folder = test.starts_with("tests/");
        let argv: &[&str] = match in_folder {
            true => &["python3", "-m", "unittest", "discover", "-s", "tests", "-t", "."],
            false => &["python3", "-m", "unittest", "discover"],
        };
        // Without a package the tests are found from their own folder.
        let argv = if in_folder && !clues.has("tests/__init__.py") { &argv[..6] } else { argv };
        return Some(started(clues, argv, &test));
    }
    Some(started(clues, &["python3", "-m", "pytest"], &test))
}

/// A test of this project, and not of a part of it. Without a file that says it is one, only tests where they usually lie.
fn is_test_here(clues: &Clues, path: &str) -> bool {
    let is_one = MANIFESTS.iter().any(|name| clues.has(name));
    let near = match path.split_once('/') {
        None => true,
        Some(("tests" | "test", _)) => true,
        Some((folder, _)) => is_one && !MANIFESTS.iter().any(|name| clues.has(&format!("{folder}/{name}"))),
    };
    near && is_python_test(path)
}

/// Which file says that the tests are run by pytest.
fn says_pytest(clues: &Clues) -> Option<&'static str> {
    let holds = |name: &'static str, fits: fn(&str) -> bool| clues.text(name).is_some_and(fits).then_some(name);
    let requires = |text: &str| text.lines().any(|line| line.trim_start().to_lowercase().starts_with("pytest"));
    clues
        .first(&["pytest.ini", ".pytest.ini", "conftest.py", "tests/conftest.py", "test/conftest.py"])
        .or_else(|| holds("pyproject.toml", |text| text.contains("[tool.pytest") || depends_on_pytest(text)))
        .or_else(|| holds("setup.cfg", |text| text.contains("[tool:pytest]") || depends_on_pytest(text)))
        .or_else(|| holds("tox.ini", |text| text.contains("[pytest]")))
        .or_else(|| holds("setup.py", depends_on_pytest))
        .or_else(|| holds("Pipfile", depends_on_pytest))
        .or_else(|| REQUIREMENTS.into_iter().find(|name| holds(name, requires).is_some()))
}

/// `"pytest>=8"`, `pytest = "^8"`, `    pytest`, but neither `pytest-cov` alone nor a word in a comment.
fn depends_on_pytest(text: &str) -> bool {
    text.lines().map(|line| line.split('#').next().unwrap_or_default()).any(|line| {
        let words = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.'));
        words.into_iter().any(|word| word == "pytest")
    })
}

/// Do the tests say that unittest runs them, and nothing that needs pytest?
fn only_unittest(clues: &Clues) -> bool {
    let mut texts = clues.texts(|path| is_test_here(clues, path)).peekable();
    let needs_pytest = |text: &str| {
        text.lines().any(|line| {
            line.starts_with("def test_") || line.starts_with("async def test_") || line.contains("import pytest")
        })
    };
    texts.peek().is_some() && texts.all(|text| text.contains("unittest") && !needs_pytest(text))
}

/// The command through what manages the project's environment.
fn started(clues: &Clues, argv: &[&str], from: &str) -> Inferred {
    let bare = argv.strip_prefix(&["python3", "-m"][..]).filter(|rest| rest.first() == Some(&"pytest"));
    let own = [".venv/bin/python", "venv/bin/python"];
    let whole: Vec<&str> = match (clues.python_manager(), clues.first(&own)) {
        (Some(manager), _) => [manager, "run"]
            .into_iter()
            .chain(bare.unwrap_or(argv).iter().copied().map(|w| if w == "python3" { "python" } else { w }))
            .collect(),
        (None, Some(own)) => std::iter::once(own).chain(argv.iter().skip(1).copied()).collect(),
        // `python` is not everywhere; `python3` is, also in a virtual environment.
        (None, None) => argv.to_vec(),
    };
    Inferred::new("test", &whole, from)
}
