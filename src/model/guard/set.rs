//! The guards of a run's commands: the class of a path, and what was found by following the commands.

use std::collections::{BTreeMap, BTreeSet};

use globset::{Glob, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};

use super::follow::{self, Reached};
use super::names;
use super::shell;
use super::table::table;

/// What a path of the workspace is to the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Decides what a check does: scripts, settings, what stands in the way of a runner's module.
    Guard,
    /// A test, or what a test compares with.
    Test,
    /// Merged by key, see [`super::manifest::merge`].
    Manifest,
    /// An installed program.
    Tool,
    /// What a tool keeps to be faster.
    Cache,
    /// A test that was built, in a folder that git ignores: made anew from the work by whoever needs it.
    Output,
    /// Source text.
    Code,
    /// Data, documents, settings of unknown tools.
    Unknown,
}

impl Class {
    /// Does it decide about the checks?
    pub const fn judges(self) -> bool {
        match self {
            Self::Guard | Self::Test | Self::Manifest | Self::Tool | Self::Cache | Self::Output => true,
            Self::Code | Self::Unknown => false,
        }
    }
}

/// What guards the commands of a run, as its workspace was at the start.
#[derive(Debug, Clone)]
pub struct GuardSet {
    declared: GlobSet,
    reached: Reached,
    names: BTreeSet<String>,
    /// Words of the commands as people declared them.
    said: BTreeSet<String>,
}

impl GuardSet {
    /// `commands`: argv of all checks; `measures`: argv of what gives numbers (residual, metrics), whose data files are
    /// guards too; `protects`: declared patterns; `names`: all paths at the start; `read`: the text of one of them, bounded.
    pub fn of(
        commands: &[Vec<String>],
        measures: &[Vec<String>],
        protects: &[String],
        names: &BTreeSet<String>,
        read: &dyn Fn(&str) -> Option<String>,
    ) -> Self {
        let mut declared = GlobSetBuilder::new();
        for glob in protects.iter().filter_map(|pattern| Glob::new(pattern).ok()) {
            declared.add(glob);
        }
        Self {
            declared: declared.build().unwrap_or_else(|_| GlobSet::empty()),
            reached: follow::follow(commands, measures, names, read),
            names: names.clone(),
            said: commands.iter().chain(measures).flatten().flat_map(|word| said(word)).collect(),
        }
    }

    /// What a path is. Of several answers the one that is put back most surely.
    pub fn class(&self, path: &str) -> Class {
        let table = table();
        if self.declared.is_match(path) {
            Class::Guard
        } else if table.caches.is_match(path) || self.is_in_cache(path) {
            Class::Cache
        } else if table.tools.is_match(path) {
            Class::Tool
        } else if table.manifests.is_match(path) {
            self.manifest(path)
        } else if self.reached.found.contains_key(path) || table.guards.is_match(path) || self.shadows(path) {
            Class::Guard
        } else if table.locks.is_match(path) {
            Class::Unknown
        } else if table.tests.is_match(path) {
            Class::Test
        } else if names::is_code(path) {
            Class::Code
        } else if names::stands_with_judges(path) && !names::is_document(path) {
            // A list of cases, a table of limits: data of whoever judges.
            Class::Guard
        } else {
            Class::Unknown
        }
    }

    /// What a path is that git ignores. What is built follows from the work; a built test judges like a test.
    pub fn class_of_ignored(&self, path: &str) -> Class {
        let is_built = path.split('/').rev().skip(1).any(|part| table().outputs.contains(part));
        match self.class(path) {
            class if !is_built || self.reached.found.contains_key(path) || self.declared.is_match(path) => class,
            Class::Test => Class::Output,
            Class::Guard
            | Class::Manifest
            | Class::Tool
            | Class::Cache
            | Class::Output
            | Class::Code
            | Class::Unknown => Class::Code,
        }
    }

    /// Is it among what a person declared to guard a check?
    pub fn is_declared(&self, path: &str) -> bool {
        self.declared.is_match(path)
    }

    /// Scripts and files found by following what the commands name, each with why.
    pub fn found(&self) -> &BTreeMap<String, String> {
        &self.reached.found
    }

    /// Would this path, added, take the place of something that the checks use: a module of Python's own or of a
    /// runner where Python looks first, a file named like a target of make?
    pub fn shadows(&self, path: &str) -> bool {
        if self.names.contains(path) {
            return false;
        }
        let is_target = |target: &String| {
            path.strip_prefix(target.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                && names::below(&self.names, target).next().is_none()
        };
        self.reached.targets.iter().any(is_target) || self.shadows_a_module(path)
    }

    /// The simple commands that the checks come to, as far as they can be told.
    pub fn commands(&self) -> &[Vec<String>] {
        &self.reached.commands
    }

    /// Is this file what a check looks at, as `grep -q done notes` does? What is compared with it may be either side.
    pub fn looks_at(&self, path: &str) -> bool {
        // Data that stands with the judges is theirs, unless a person's own command looks at it.
        let is_handed_over = if names::stands_with_judges(path) {
            self.said.contains(path) && self.hands_over(path)
        } else {
            self.hands_over(path)
        };
        is_handed_over || self.reached.quoted.contains(path)
    }

    /// Is it an argument of a command that looks at it?
    pub fn hands_over(&self, path: &str) -> bool {
        let looks = |words: &&Vec<String>| {
            !matches!(words.first().map(|word| names::base(word)), Some("cmp" | "diff" | "comm"))
        };
        let names = |word: &String| word.strip_prefix("./").unwrap_or(word) == path;
        self.reached.commands.iter().filter(looks).any(|words| words.iter().skip(1).any(names))
    }

    /// Do the checks read text only, without running any test?
    pub fn only_lints(&self) -> bool {
        const LINTERS: [&str; 26] = [
            "prettier",
            "eslint",
            "black",
            "ruff",
            "flake8",
            "isort",
            "rustfmt",
            "gofmt",
            "clang-format",
            "shfmt",
            "shellcheck",
            "yamllint",
            "markdownlint",
            "tsc",
            "mypy",
            "pyright",
            "pylint",
            "biome",
            "oxlint",
            "dprint",
            "taplo",
            "stylelint",
            "djlint",
            "codespell",
            "typos",
            "bandit",
        ];
        let commands = &self.reached.commands;
        let lints = |words: &Vec<String>| {
            let program = words.first().map_or("", |word| names::base(word));
            let module = words.iter().position(|word| word == "-m").and_then(|at| words.get(at + 1));
            let named = |name: &str| LINTERS.contains(&name);
            let by_cargo = program == "cargo" && matches!(words.get(1).map(String::as_str), Some("fmt" | "clippy"));
            let by_npm = matches!(program, "npm" | "pnpm" | "yarn" | "cd" | "set" | "echo");
            named(program) || by_cargo || by_npm || module.is_some_and(|module| named(module))
        };
        let is_npm_alone = commands.iter().all(|words| {
            !lints(words)
                || matches!(words.first().map(String::as_str), Some("npm" | "pnpm" | "yarn" | "cd" | "set" | "echo"))
        });
        !commands.is_empty() && commands.iter().all(lints) && !is_npm_alone
    }

    /// Python looks in the folder it is started in, and in a folder of sources.
    fn shadows_a_module(&self, path: &str) -> bool {
        let (place, rest) = match path.split_once('/') {
            Some((first @ ("src" | "lib"), rest)) => (first, rest),
            Some(_) | None => ("", path),
        };
        let (module, is_file) = match rest.split_once('/') {
            Some((folder, _)) => (folder, false),
            // `json.py`, `json.cpython-311-x86_64-linux-gnu.so`
            None => (rest.split('.').next().unwrap_or(rest), true),
        };
        let is_python = matches!(names::extension(path).as_str(), "py" | "pyi" | "so" | "pyd" | "pyc");
        let folder = names::join(place, module).unwrap_or_default();
        let is_new = is_file || names::below(&self.names, &folder).next().is_none();
        let table = table();
        let is_known = table.runner_modules.contains(module) || table.standard_modules.contains(module);
        is_python && is_new && is_known
    }

    /// A package that stands in a folder of its own cannot change the checks of another one. Go's can: its module
    /// takes a folder out of the one around it.
    fn manifest(&self, path: &str) -> Class {
        let folder = names::folder(path);
        let is_added = !self.names.contains(path);
        let is_in_new_folder = !folder.is_empty() && names::below(&self.names, folder).next().is_none();
        if is_added && names::base(path) == "go.mod" {
            Class::Guard
        } else if is_added && is_in_new_folder {
            Class::Unknown
        } else {
            Class::Manifest
        }
    }

    fn is_in_cache(&self, path: &str) -> bool {
        let ends = path.match_indices('/').map(|(at, _)| &path[..at]);
        ends.into_iter().any(|folder| {
            let beside = names::folder(folder);
            let at = |name: &str| names::join(beside, name).is_some_and(|path| self.names.contains(&path));
            let is_build =
                table().build_folders.get(names::base(folder)).is_some_and(|marks| marks.iter().any(|m| at(m)));
            is_build || self.names.contains(&format!("{folder}/CACHEDIR.TAG"))
        })
    }
}

/// A declared word, or the words of the shell text that it is.
fn said(word: &str) -> Vec<String> {
    let commands = if word.contains(' ') { shell::commands(word) } else { Vec::new() };
    let inner = commands.into_iter().flat_map(|command| command.words).chain([word.to_owned()]);
    inner.map(|word| word.strip_prefix("./").map(str::to_owned).unwrap_or(word)).collect()
}

/// Does a tool keep this file to be faster? Such files outlast a round of checks. Programs do not: what a check wrote
/// there is the work of code under test.
pub fn is_kept_by_tools(path: &str) -> bool {
    let table = table();
    let build = path.split('/').any(|part| table.build_folders.contains_key(part));
    build || table.caches.is_match(path)
}

/// A build folder is a cache only beside what it is built from. `there`: is this a file of the workspace?
pub fn is_cache_here(path: &str, there: &dyn Fn(&str) -> bool) -> bool {
    let table = table();
    let ends = path.match_indices('/').map(|(at, _)| &path[..at]);
    let is_build = |folder: &str| {
        let marks = table.build_folders.get(names::base(folder));
        marks.is_some_and(|marks| {
            marks.iter().any(|mark| names::join(names::folder(folder), mark).is_some_and(|path| there(&path)))
        })
    };
    table.caches.is_match(path) || ends.into_iter().any(is_build)
}

/// Can a file that git ignores decide about a check, here or below? Program folders and caches are looked at otherwise.
pub fn may_decide_unseen(path: &str) -> bool {
    let inside = format!("{path}/x");
    !table().tools.is_match(&inside) && !is_kept_by_tools(&inside) && !is_kept_by_tools(path)
}

/// A name that decides wherever it stands.
pub fn is_named_guard(path: &str) -> bool {
    let table = table();
    table.guards.is_match(path) || table.tests.is_match(path) || table.manifests.is_match(path)
}

/// Does an installer write this down for itself, or a tool to be faster?
pub fn is_bookkeeping(path: &str) -> bool {
    table().bookkeeping.is_match(path) || table().caches.is_match(path)
}

/// Is this folder one of installed programs?
pub fn is_tool_folder(path: &str) -> bool {
    let inside = format!("{path}/x");
    table().tools.is_match(&inside) && !table().caches.is_match(&inside)
}

/// Is a file of no known class what the work is about? Documents, data and what lies with the code are; not what may be
/// settings of an unknown tool: a new file with such a name, or one that says so of itself.
pub fn is_work(path: &str, added: bool) -> bool {
    let base = names::base(path).to_ascii_lowercase();
    let settings = ["ini", "cfg", "conf", "toml", "yml", "yaml", "properties", "xml", "rc"];
    let says_so = base.starts_with('.') || base.contains("config") || names::is_expectation(path);
    let may_be_settings = says_so || (added && settings.contains(&names::extension(path).as_str()));
    let with_code = path.split('/').rev().skip(1).any(|part| table().outside.contains(part));
    names::is_document(path) || with_code || !(may_be_settings || !added && names::judges(path))
}
