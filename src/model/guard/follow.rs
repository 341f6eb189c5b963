//! Follows what commands name: scripts, recipes, the files those name, and so on.
//!
//! Role: find the files of the tree that decide what a check does. Not its role: names that are guards anywhere.
//! Invariants: code under test is never followed into; depth and number are bounded; each file is found once, with why.

mod make;
mod npm;
pub(super) mod refs;
mod tasks;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use globset::GlobBuilder;

use super::names;
use super::shell;
use super::table::table;

const MAX_DEPTH: u32 = 12;
const MAX_FOUND: usize = 2_000;
const MAX_COMMANDS: usize = 2_000;
/// Settings files that are looked into for what they load.
const MAX_SETTINGS: usize = 300;

/// Programs that run the file they are given.
const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "python", "python3", "python2", "pypy3", "node", "ruby", "perl", "php", "deno",
    "bun", "tsx", "ts-node", "lua", "Rscript", "bats",
];
/// What only passes a command on.
const WRAPPERS: &[&str] = &[
    "env",
    "timeout",
    "nice",
    "exec",
    "time",
    "nohup",
    "sudo",
    "command",
    "xargs",
    "stdbuf",
    "ionice",
    "unbuffer",
    "npx",
    "bunx",
    "pnpx",
    "cross-env",
    "dotenv",
    "if",
    "then",
    "else",
    "elif",
    "while",
    "until",
    "do",
    "!",
    "{",
    "eval",
    "xvfb-run",
    "builtin",
];
/// What runs another command after a word of its own: `poetry run x`.
const RUNNERS: &[&str] =
    &["poetry", "uv", "pipenv", "pdm", "hatch", "rye", "bundle", "pnpm", "yarn", "npm", "mise", "direnv"];
/// Options that name a file that decides.
const FILE_OPTIONS: &[&str] = &[
    "-c",
    "--config",
    "--config-file",
    "--rcfile",
    "--rc-file",
    "-r",
    "--require",
    "--import",
    "--setup-file",
    "--setupFiles",
    "--settings",
    "--preload",
    "-p",
    "--project",
    "--ignore-path",
    "--load",
    "--loader",
    "--experimental-loader",
    "--env-file",
    "--baseline",
    "--expected",
    "--golden",
    "--globalSetup",
    "-f",
    "--file",
];
/// Programs that print what stands in a file.
const PRINTERS: &[&str] =
    &["cat", "head", "tail", "jq", "yq", "awk", "sed", "cut", "tr", "xmllint", "tac", "nl", "paste"];
/// Programs that count in a file.
const COUNTERS: &[&str] = &["wc", "grep", "egrep", "fgrep", "rg", "uniq", "sort", "comm"];

/// Programs whose options name no settings: `test -f x`, `rm -f x`.
const PLAIN: &[&str] = &[
    "test", "[", "[[", "rm", "cp", "mv", "mkdir", "ls", "ln", "touch", "chmod", "grep", "egrep", "fgrep", "rg", "sort",
    "cut", "tar", "find", "echo", "printf", "diff", "cmp", "wc", "head", "tail", "cat",
];

/// What the commands come to.
#[derive(Debug, Clone, Default)]
pub struct Reached {
    /// File → why.
    pub found: BTreeMap<String, String>,
    /// Targets of make that a file of that name would keep from being made.
    pub targets: BTreeSet<String>,
    /// All simple commands on the way.
    pub commands: Vec<Vec<String>>,
    /// Paths that scripts of judges have in quotes: what they look at.
    pub quoted: BTreeSet<String>,
}

/// Where a command stands.
#[derive(Debug, Clone)]
struct At {
    /// The folder it runs in.
    folder: String,
    /// Who names it.
    by: String,
    depth: u32,
    /// It gives a number, so that the files it reads decide.
    measures: bool,
    /// A person declared it, or a recipe that a person's command names: its script judges.
    is_declared: bool,
}

impl At {
    fn by(&self, by: String) -> At {
        At { by, depth: self.depth + 1, ..self.clone() }
    }
}

struct Follow<'a> {
    names: &'a BTreeSet<String>,
    read: &'a dyn Fn(&str) -> Option<String>,
    reached: Reached,
    queue: VecDeque<(String, At)>,
    /// Names of recipes and npm scripts already followed.
    seen: BTreeSet<String>,
    /// What commands write is their own.
    written: BTreeSet<String>,
    /// Data files that measurements read, until it is known what is written.
    data: BTreeMap<String, String>,
}

pub fn follow(
    commands: &[Vec<String>],
    measures: &[Vec<String>],
    names: &BTreeSet<String>,
    read: &dyn Fn(&str) -> Option<String>,
) -> Reached {
    let mut follow = Follow {
        names,
        read,
        reached: Reached::default(),
        queue: VecDeque::new(),
        seen: BTreeSet::new(),
        written: BTreeSet::new(),
        data: BTreeMap::new(),
    };
    // A script that gives a number is followed as one, also where a check runs it, too.
    let declared = measures.iter().map(|argv| (argv, true)).chain(commands.iter().map(|argv| (argv, false)));
    for (argv, measures) in declared {
        let by = format!("`{}`", argv.join(" ").chars().take(80).collect::<String>());
        let at = At { folder: String::new(), by, depth: 0, measures, is_declared: true };
        follow.command(&shell::Command { words: argv.clone(), ..shell::Command::default() }, &at);
        follow.drain();
    }
    follow.settings();
    follow.drain();
    follow.finish()
}

impl Follow<'_> {
    fn drain(&mut self) {
        while let Some((path, at)) = self.queue.pop_front() {
            self.file(&path, &at);
        }
    }

    fn finish(mut self) -> Reached {
        for (path, why) in std::mem::take(&mut self.data) {
            if !self.written.contains(&path) {
                self.reached.found.entry(path).or_insert(why);
            }
        }
        self.reached
    }

    /// A file of the tree that decides, and is looked into.
    fn guard(&mut self, path: String, at: &At) {
        let is_known = self.reached.found.contains_key(&path) || self.reached.found.len() >= MAX_FOUND;
        if !is_known && at.depth < MAX_DEPTH {
            self.reached.found.insert(path.clone(), format!("{path}, named by {}", at.by));
            let by = path.clone();
            self.queue.push_back((path, at.by(by)));
        }
    }

    /// The path that a word means from a folder, with the ends that may be left out. What cannot be told (`$…/x`) is
    /// looked for beside who names it, then from the root.
    fn resolve(&self, word: &str, at: &At, ends: &[&str]) -> Option<String> {
        let beside = names::folder(&at.by).to_owned();
        let unknown = word.split_once('/').filter(|(first, _)| first.contains('$'));
        let (word, folders) = match unknown {
            Some((_, rest)) => (rest, vec![beside.as_str(), at.folder.as_str(), ""]),
            None => (word, vec![at.folder.as_str()]),
        };
        let paths = folders.iter().filter_map(|folder| names::join(folder, word));
        let mut with_ends = paths.flat_map(|path| ends.iter().map(move |end| format!("{path}{end}")));
        with_ends.find(|path| self.names.contains(path))
    }

    /// A program or script that a command runs.
    fn script(&mut self, word: &str, at: &At, is_asked: bool) {
        // What a declared command names is its script, there at the start or not.
        let named = self.resolve(word, at, &[""]).or_else(|| {
            let is_plain = at.depth == 0 && !word.contains(['$', '*', '<', '>', ' ']);
            names::join(&at.folder, word).filter(|_| is_plain)
        });
        let Some(path) = named else { return };
        // A program that people wrote, run to see that it runs: it says nothing about another one. One that gives the number
        // is what the run is measured with.
        let says_nothing = |text: String| !refs::asserts(&text);
        let is_program =
            at.depth == 0 && !at.measures && !names::judges(&path) && (self.read)(&path).is_some_and(says_nothing);
        if is_program {
            return;
        }
        let may_judge = at.is_declared && !is_asked && !names::is_outside(&path, self.names);
        // What is asked for an answer is judged, whatever it is called, unless it stands with the judges.
        let by_name = if is_asked { names::stands_with_judges(&path) } else { names::judges(&path) };
        if may_judge || by_name && (at.depth == 0 || !names::is_outside(&path, self.names)) {
            self.guard(path, at);
        }
    }

    /// One simple command.
    fn command(&mut self, command: &shell::Command, at: &At) {
        if at.depth >= MAX_DEPTH || self.reached.commands.len() >= MAX_COMMANDS {
            return;
        }
        for written in &command.writes {
            self.written.extend(self.place(written, at));
        }
        let words = unwrap(&command.words);
        if at.measures {
            self.measured(words, &command.reads, at);
        }
        let Some((program, rest)) = words.split_first() else { return };
        self.reached.commands.push(words.to_vec());
        let name = names::base(program);
        if !PLAIN.contains(&name) {
            self.options(name, rest, at);
        }
        match name {
            "make" | "gmake" => self.make(rest, at),
            "npm" | "pnpm" | "yarn" | "bun" if self.npm(name, rest, at) => {}
            "run-s" | "run-p" | "npm-run-all" | "npm-run-all2" => {
                rest.iter().filter(|word| !word.starts_with('-')).for_each(|script| self.npm_script(script, at));
            }
            "just" | "task" | "go-task" | "tox" | "nox" | "pre-commit" => self.tasks(name, rest, at),
            "." | "source" => rest.first().into_iter().for_each(|word| self.sourced(word, at)),
            "cargo" | "go" => self.workspace_program(rest, at),
            // `for t in cases/*.sh`: what a judge goes through, folder by folder, judges with it.
            "for" => rest.iter().filter(|word| word.contains('/') && word.contains('*')).for_each(|pattern| {
                self.gone_through(pattern, at);
            }),
            _ if INTERPRETERS.contains(&name) || name.starts_with("python3.") => {
                self.interpreter(rest, at, command.is_asked)
            }
            _ if program.contains('/') => self.script(program, at, command.is_asked),
            _ => self.expectations(rest, at),
        }
    }

    /// The commands of a shell text, each in the folder that a `cd` before it leads to.
    fn shell(&mut self, text: &str, at: &At) {
        let mut at = at.clone();
        for command in shell::commands(text) {
            if let [cd, folder, ..] = command.words.as_slice()
                && matches!(cd.as_str(), "cd" | "pushd")
            {
                // `cd "$(dirname "$0")"` stays unknown: the folder of who says it is as good a guess as any.
                at.folder = names::join(&at.folder, folder).filter(|_| !folder.contains('$')).unwrap_or_default();
            }
            self.command(&command, &at);
        }
    }

    fn place(&self, word: &str, at: &At) -> Option<String> {
        names::join(&at.folder, word).filter(|_| !word.contains('$'))
    }

    /// Files that a measurement takes its number from.
    fn measured(&mut self, words: &[String], reads: &[String], at: &At) {
        let name = words.first().map_or("", |word| names::base(word)).to_owned();
        let prints = PRINTERS.contains(&name.as_str());
        // Each of its words is a file.
        let shows = matches!(name.as_str(), "cat" | "tac" | "head" | "tail" | "nl");
        let rest = words.iter().skip(1).filter(|_| prints || COUNTERS.contains(&name.as_str()));
        for word in rest.chain(reads) {
            let Some(path) = self.place(word, at).filter(|path| !names::is_outside(path, self.names)) else { continue };
            let is_plain = !word.starts_with('-') && !word.contains(['(', ' ', '{', '*']);
            let is_to_come =
                is_plain && (prints && word.contains('.') || shows && !word.bytes().all(|b| b.is_ascii_digit()));
            let looks_like_file = self.names.contains(&path) || is_to_come;
            let decides = !names::is_code(&path) && (prints || !names::is_document(&path));
            if looks_like_file && decides {
                self.data.entry(path.clone()).or_insert_with(|| format!("{path}, read by {}", at.by));
            }
        }
    }

    /// Files after options such as `--config`, and outputs after `-o`.
    fn options(&mut self, program: &str, words: &[String], at: &At) {
        for (index, word) in words.iter().enumerate() {
            let (option, value) = match word.split_once('=') {
                Some((option, value)) => (option, value),
                None => (word.as_str(), words.get(index + 1).map_or("", String::as_str)),
            };
            if matches!(
                option,
                "-o" | "--output" | "--out" | "--output-file" | "--outputFile" | "--junitxml" | "--report"
            ) {
                self.written.extend(self.place(value, at));
            } else if option == "-f" && matches!(program, "awk" | "gawk" | "mawk" | "sed") {
                self.script(value, at, true);
            } else if FILE_OPTIONS.contains(&option) {
                let module = value.replace('.', "/");
                let named = self.resolve(value, at, &["", "/tsconfig.json"]);
                let named = named.or_else(|| self.resolve(&module, at, &[".py", "/__init__.py"]));
                let named = named.filter(|path| !names::is_outside(path, self.names) || names::judges(path));
                named.into_iter().for_each(|path| self.guard(path, at));
            }
        }
    }

    /// Files with which something is compared.
    fn expectations(&mut self, words: &[String], at: &At) {
        for word in words.iter().filter(|word| names::is_expectation(word)) {
            if let Some(path) = self.resolve(word, at, &[""]) {
                self.guard(path, at);
            }
        }
    }

    fn sourced(&mut self, word: &str, at: &At) {
        let named = self.resolve(word, at, &[""]).filter(|path| !names::is_outside(path, self.names));
        // A file that is not there yet is sourced once somebody adds it.
        let named = named.or_else(|| self.place(word, at).filter(|path| !names::is_outside(path, self.names)));
        named.into_iter().for_each(|path| self.guard(path, at));
    }

    fn interpreter(&mut self, rest: &[String], at: &At, is_asked: bool) {
        // `bash -n x`, `node --check x`: looked at, never run.
        if rest.iter().take(2).any(|word| matches!(word.as_str(), "-n" | "--check" | "-fsyntax-only")) {
            return;
        }
        let mut words = rest.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "-c" | "-e" | "--eval" => {
                    let text = words.next().cloned().unwrap_or_default();
                    return self.shell(&text, &At { depth: at.depth + 1, ..at.clone() });
                }
                "-m" => {
                    let module = words.next().map(|module| module.replace('.', "/")).unwrap_or_default();
                    let found = self.resolve(&module, at, &[".py", "/__main__.py"]);
                    return found.into_iter().for_each(|path| self.script(&path, at, is_asked));
                }
                "-o" | "-O" | "-W" | "-X" | "-I" if word != "-O" || words.len() > 1 => {
                    if matches!(word.as_str(), "-o" | "-W" | "-X") {
                        words.next();
                    }
                }
                // Their files were looked at with the options.
                "-r" | "--require" | "--import" | "--loader" => {
                    words.next();
                }
                // `node --test`, `deno test`: the rest are tests.
                "--test" | "test" | "run" => {}
                flag if flag.starts_with(['-', '+']) => {}
                pattern if pattern.contains('*') => return self.matching(pattern, at),
                script => return self.script(script, at, is_asked),
            }
        }
    }

    /// `checks/*.sh`
    fn matching(&mut self, pattern: &str, at: &At) {
        let Some(glob) = names::join(&at.folder, pattern)
            .and_then(|pattern| GlobBuilder::new(&pattern).literal_separator(true).build().ok())
        else {
            return;
        };
        let matcher = glob.compile_matcher();
        let found: Vec<String> = self.names.iter().filter(|path| matcher.is_match(path)).take(200).cloned().collect();
        found.iter().for_each(|path| self.script(path, &At { folder: String::new(), ..at.clone() }, false));
    }

    fn gone_through(&mut self, pattern: &str, at: &At) {
        let glob = names::join(&at.folder, pattern);
        let glob = glob.and_then(|pattern| GlobBuilder::new(&pattern).literal_separator(true).build().ok());
        let Some(matcher) = glob.map(|glob| glob.compile_matcher()) else { return };
        let judges = |path: &&String| {
            matcher.is_match(path) && !names::is_outside(path, self.names) && !table().tests.is_match(path)
        };
        let found: Vec<String> = self.names.iter().filter(judges).take(200).cloned().collect();
        found.into_iter().for_each(|path| self.guard(path, at));
    }

    /// `cargo xtask …`, `cargo run -p checker`, `go run ./tools/check`
    fn workspace_program(&mut self, rest: &[String], at: &At) {
        let package = match rest.first().map(String::as_str) {
            Some("xtask") => Some("xtask".to_owned()),
            Some("run" | "r") => {
                let named = rest.iter().position(|word| matches!(word.as_str(), "-p" | "--package" | "--bin"));
                let named =
                    named.and_then(|at| rest.get(at + 1)).or_else(|| rest.get(1).filter(|word| word.starts_with("./")));
                named.and_then(|word| names::join(&at.folder, word))
            }
            Some(_) | None => None,
        };
        let Some(package) = package.filter(|package| package == "xtask" || names::judges(package)) else { return };
        let files: Vec<String> = names::below(self.names, &package).take(200).cloned().collect();
        files.into_iter().for_each(|path| self.guard(path, at));
    }

    /// What a found file names in turn.
    fn file(&mut self, path: &str, at: &At) {
        let Some(text) = (self.read)(path) else { return };
        let first = text.lines().next().unwrap_or_default();
        // A recipe's folder is its Makefile's; a script runs where its caller stands.
        let inner = At { is_declared: false, ..at.clone() };
        match names::extension(path).as_str() {
            "py" => self.python(path, &text, &inner),
            "js" | "mjs" | "cjs" | "ts" | "mts" | "cts" | "jsx" | "tsx" => self.javascript(path, &text, &inner),
            "sh" | "bash" | "zsh" | "bats" => self.shell(&text, &inner),
            "json" | "jsonc" | "json5" | "yml" | "yaml" | "toml" | "ini" | "cfg" | "mk" => {}
            _ if names::base(path).to_ascii_lowercase().contains("makefile") => {}
            _ if first.starts_with("#!") && first.contains("python") => self.python(path, &text, &inner),
            _ if first.starts_with("#!") && first.contains("node") => self.javascript(path, &text, &inner),
            _ if names::is_code(path) => {}
            _ if text.contains('\0') => {}
            _ => self.shell(&text, &inner),
        }
    }

    fn python(&mut self, path: &str, text: &str, at: &At) {
        let beside = At { folder: names::folder(path).to_owned(), ..at.clone() };
        for module in refs::python(text) {
            let ends = [".py", "/__init__.py"];
            let found = self.resolve(&module, &beside, &ends).or_else(|| self.resolve(&module, at, &ends));
            let relative = module.starts_with('.');
            self.helper(found, path, relative, at);
        }
        self.opened(text, at);
    }

    fn javascript(&mut self, path: &str, text: &str, at: &At) {
        let beside = At { folder: names::folder(path).to_owned(), ..at.clone() };
        for word in refs::javascript(text) {
            let found = self.resolve(&word, &beside, npm::ENDS);
            self.helper(found, path, true, at);
        }
        self.opened(text, at);
    }

    /// What a judge imports judges too if it stands with it; at the root and elsewhere it may be what is judged.
    fn helper(&mut self, found: Option<String>, importer: &str, is_relative: bool, at: &At) {
        let Some(path) = found.filter(|path| !names::is_outside(path, self.names)) else { return };
        let folder = names::folder(importer);
        let stands_with = !folder.is_empty() && is_relative && path.starts_with(&format!("{folder}/"));
        if stands_with || names::judges(&path) {
            self.guard(path, at);
        }
    }

    /// Data files that a script opens by name.
    fn opened(&mut self, text: &str, at: &At) {
        for word in refs::quoted(text) {
            let is_path = word.contains(['.', '/']) && !word.contains([' ', '*', '\\']);
            let may_be_work = |path: &String| !names::judges(path) && !names::is_expectation(path);
            let looked_at = names::join(&at.folder, &word).filter(|path| is_path && may_be_work(path));
            self.reached.quoted.extend(looked_at);
            // What a measurement opens decides also if it is not there yet.
            let to_come = || self.place(&word, at).filter(|path| at.measures && is_path && is_named_data(path));
            let named = self.resolve(&word, at, &[""]).or_else(to_come);
            let Some(path) = named.filter(|path| !names::is_outside(path, self.names)) else { continue };
            if names::is_expectation(&path) {
                self.guard(path, at);
            } else if at.measures && !names::is_code(&path) && !names::is_document(&path) {
                self.data.entry(path.clone()).or_insert_with(|| format!("{path}, read by {}", at.by));
            }
        }
    }

    /// What settings of the start load: the settings are guards by name.
    fn settings(&mut self) {
        let ends = ["js", "mjs", "cjs", "ts", "mts", "cts", "json", "yml", "yaml", "py", "ini", "toml", "cfg", ""];
        // Recipes are followed from the commands that name them, target by target.
        let skipped = |path: &str| {
            let base = names::base(path).to_ascii_lowercase();
            let recipes = ["makefile", "justfile", "taskfile"].iter().any(|name| base.contains(name));
            recipes || path.starts_with(".github/") || path.starts_with(".yarn/") || base.starts_with(".git")
        };
        let table = table();
        let is_settings = |path: &&String| {
            (table.guards.is_match(path) || table.manifests.is_match(path))
                && !table.tools.is_match(path)
                && !table.caches.is_match(path)
                && ends.contains(&names::extension(path).as_str())
                && !skipped(path)
        };
        let paths: Vec<String> = self.names.iter().filter(is_settings).take(MAX_SETTINGS).cloned().collect();
        for path in paths {
            let Some(text) = (self.read)(&path) else { continue };
            let folder = names::folder(&path).to_owned();
            let at = At { folder, by: path.clone(), depth: 1, measures: false, is_declared: false };
            self.loads(&path, &text, &at);
        }
    }

    fn loads(&mut self, path: &str, text: &str, at: &At) {
        if names::extension(path) == "py" {
            return self.python(path, text, at);
        }
        let text = match names::base(path) {
            "package.json" => npm::settings(text),
            name if name.starts_with("tsconfig") => npm::extends(text),
            _ => text.to_owned(),
        };
        for word in refs::settings(&text) {
            let found = self.resolve(&word, at, npm::ENDS);
            let found = found.filter(|path| !names::is_outside(path, self.names) || names::judges(path));
            found.into_iter().for_each(|path| self.guard(path, at));
        }
        // `addopts = -p plugin`
        let words: Vec<String> = text.split([' ', '\n', '"', '\'', ',']).map(str::to_owned).take(5_000).collect();
        let plugins = words.windows(2).filter(|pair| pair[0] == "-p").map(|pair| pair[1].replace('.', "/"));
        let found: Vec<String> = plugins.filter_map(|module| self.resolve(&module, at, &[".py"])).collect();
        found.into_iter().for_each(|path| self.guard(path, at));
    }
}

/// Does its name end as names of data files do?
fn is_named_data(path: &str) -> bool {
    let end = names::extension(path);
    !end.is_empty() && end.len() <= 6 && end.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// A command without what only passes it on.
fn unwrap(words: &[String]) -> &[String] {
    let mut words = words;
    let is_setting = |word: &str| {
        word.split_once('=')
            .is_some_and(|(name, _)| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
    };
    while let Some((program, rest)) = words.split_first() {
        let name = names::base(program);
        let passes = |word: &&String| {
            word.starts_with('-') || is_setting(word) || word.starts_with(|c: char| c.is_ascii_digit())
        };
        let runs = rest.first().is_some_and(|word| matches!(word.as_str(), "run" | "exec" | "x" | "dlx"));
        let is_script_runner =
            matches!(name, "pnpm" | "yarn" | "npm") && rest.first().is_some_and(|word| word == "run");
        words = if is_setting(program) {
            rest
        } else if WRAPPERS.contains(&name) {
            &rest[rest.iter().take_while(passes).count()..]
        } else if RUNNERS.contains(&name) && runs && !is_script_runner {
            let rest = &rest[1..];
            &rest[rest.iter().take_while(passes).count()..]
        } else {
            return words;
        };
    }
    words
}
