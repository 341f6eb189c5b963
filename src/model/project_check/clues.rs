//! What lies in the folder of a project, as far as it says how to check it.

use std::collections::{BTreeMap, BTreeSet};

/// Files whose text says something; the rest are names alone.
pub const KEPT_TEXTS: [&str; 36] = [
    "GNUmakefile",
    "makefile",
    "Makefile",
    "justfile",
    "Justfile",
    ".justfile",
    "Taskfile.yml",
    "Taskfile.yaml",
    "taskfile.yml",
    "taskfile.yaml",
    "Cargo.toml",
    "package.json",
    "deno.json",
    "deno.jsonc",
    "pyproject.toml",
    "pytest.ini",
    "setup.cfg",
    "setup.py",
    "tox.ini",
    "requirements.txt",
    "requirements-dev.txt",
    "dev-requirements.txt",
    "requirements-test.txt",
    "requirements_dev.txt",
    "test-requirements.txt",
    "Pipfile",
    "go.mod",
    "go.work",
    "composer.json",
    "Gemfile",
    "Rakefile",
    "mix.exs",
    "pubspec.yaml",
    "build.zig",
    "pnpm-workspace.yaml",
    "noxfile.py",
];

/// What a folder shares with the one above it.
const SHARED: [&str; 9] = [
    "pnpm-lock.yaml",
    "yarn.lock",
    "bun.lock",
    "bun.lockb",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "uv.lock",
    "poetry.lock",
    "pdm.lock",
];

/// Is it a test whose text says by which runner it is run?
pub fn is_kept_test(path: &str) -> bool {
    is_python_test(path)
}

/// Names of files, relative to the project, and the texts of those that say something.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Clues {
    names: BTreeSet<String>,
    texts: BTreeMap<String, String>,
}

impl Clues {
    pub fn name(&mut self, path: impl Into<String>) {
        self.names.insert(path.into());
    }

    pub fn keep(&mut self, path: &str, text: String) {
        self.names.insert(path.to_owned());
        self.texts.insert(path.to_owned(), text);
    }

    pub fn has(&self, path: &str) -> bool {
        self.names.contains(path)
    }

    /// The text of a file, if it is one whose text is kept.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    /// Does a file or folder bear this name, whatever its extension?
    pub fn holds(&self, name: &str) -> bool {
        let called = |part: &str| part == name || part.rsplit_once('.').is_some_and(|(stem, _)| stem == name);
        self.names.iter().filter(|path| !is_installed(path)).any(|path| path.split('/').any(called))
    }

    pub fn any(&self, fits: impl Fn(&str) -> bool) -> bool {
        self.find(fits).is_some()
    }

    /// The first that fits, by name.
    pub fn find(&self, fits: impl Fn(&str) -> bool) -> Option<&str> {
        self.names.iter().map(String::as_str).find(|path| !is_installed(path) && fits(path))
    }

    /// The texts of what fits.
    pub fn texts(&self, fits: impl Fn(&str) -> bool) -> impl Iterator<Item = &str> {
        self.texts.iter().filter(move |(path, _)| fits(path)).map(|(_, text)| text.as_str())
    }

    /// The first of these that is there.
    pub fn first<'a>(&self, paths: &[&'a str]) -> Option<&'a str> {
        paths.iter().copied().find(|path| self.has(path))
    }

    /// Folders with files in them, by name.
    pub fn folders(&self) -> Vec<&str> {
        let mut folders: Vec<&str> =
            self.names.iter().filter_map(|path| path.split_once('/')).map(|(f, _)| f).collect();
        folders.dedup();
        folders
    }

    /// The same seen from a folder of it.
    pub fn within(&self, folder: &str) -> Self {
        let below = |path: &str| path.strip_prefix(folder)?.strip_prefix('/').map(str::to_owned);
        let shared = SHARED.iter().filter(|name| self.has(name)).map(|name| (*name).to_owned());
        let own: BTreeSet<String> = self.names.iter().filter_map(|path| below(path)).collect();
        let has_own = SHARED.iter().any(|name| own.contains(*name));
        let texts = self.texts.iter().filter_map(|(path, text)| Some((below(path)?, text.clone()))).collect();
        Self { names: shared.filter(|_| !has_own).chain(own.iter().cloned()).collect(), texts }
    }

    /// The program that manages packages of Node here.
    pub fn node_manager(&self) -> &'static str {
        let declared = |name: &str| {
            let text = self.text("package.json").unwrap_or_default();
            text.split_once("\"packageManager\"").is_some_and(|(_, rest)| {
                rest.trim_start().trim_start_matches(':').trim_start().trim_start_matches('"').starts_with(name)
            })
        };
        let by_file = |names: &[&str]| self.first(names).is_some();
        match () {
            () if declared("pnpm@") || by_file(&["pnpm-lock.yaml"]) => "pnpm",
            () if declared("yarn@") || by_file(&["yarn.lock"]) => "yarn",
            () if declared("bun@") || by_file(&["bun.lock", "bun.lockb"]) => "bun",
            () => "npm",
        }
    }

    /// The program that manages packages of Python here, where there is one.
    pub fn python_manager(&self) -> Option<&'static str> {
        [("uv.lock", "uv"), ("poetry.lock", "poetry"), ("pdm.lock", "pdm")]
            .into_iter()
            .find(|(lock, _)| self.has(lock))
            .map(|(_, manager)| manager)
    }
}

/// What was installed is no file of the project.
fn is_installed(path: &str) -> bool {
    ["node_modules/", ".venv/", "venv/", "vendor/bin/"].iter().any(|folder| path.starts_with(folder))
}

pub(super) fn is_python_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".py").is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test"))
}
