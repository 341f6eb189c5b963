//! What is never run without a person's word, whatever the rules allow.
//!
//! Two things make a call critical: it destroys what no history brings back (whole trees, devices, work that is not
//! committed, what is on a server), or it plants something that runs later on its own (start-up files, git hooks,
//! downloads that are run). By the text alone, erring towards asking: a rule that allows is not asked here.

use serde_json::Value;

use crate::model::self_running;

use super::carrier::{Inside, Step, base_name};
use super::pattern::normal_path;
use super::shell::{HOLE, Word};

/// Begins the rule of every critical call. No declared rule can look like this.
pub const CRITICAL: &str = "critical: ";

/// Is this the rule of a critical call? Such a call is asked about every time.
pub fn is_critical(rule: &str) -> bool {
    rule.starts_with(CRITICAL)
}

/// Programs that change no file that they are given.
const READERS: [&str; 35] = [
    "cat",
    "ls",
    "head",
    "tail",
    "less",
    "more",
    "grep",
    "egrep",
    "fgrep",
    "rg",
    "diff",
    "cmp",
    "stat",
    "file",
    "wc",
    "echo",
    "printf",
    "test",
    "[",
    "[[",
    "md5sum",
    "sha1sum",
    "sha256sum",
    "readlink",
    "realpath",
    "basename",
    "dirname",
    "du",
    "git",
    "find",
    "cd",
    "bat",
    "nl",
    "od",
    "hexdump",
];

const DOWNLOADERS: [&str; 5] = ["curl", "wget", "fetch", "aria2c", "http"];
const INTERPRETERS: [&str; 6] = ["python", "python3", "perl", "ruby", "node", "php"];

const TREE: &str = "it removes a tree that is not clearly a part of the workspace";
const DEVICE: &str = "it writes to a device or makes a file system";
const RIGHTS: &str = "it changes the rights of a tree that is not clearly a part of the workspace";
const SERVER: &str = "it overwrites or deletes what is on a server";
const UNCOMMITTED: &str = "it throws away work that is not committed, which nothing brings back";
const GIT_CONFIG: &str = "it changes git's configuration, which can run commands";
const DOWNLOAD: &str = "it runs what it downloads";
const PLANTS: &str =
    "it changes a file that runs by itself later (a git hook, git's configuration, a start-up file, keys)";

/// Does a shell or git run this file by itself, or does it hold keys?
fn plants(path: &str) -> bool {
    let path = normal_path(path);
    self_running::runs_by_itself(&path) || format!("/{path}/").contains("/.ssh/")
}

/// Why a file tool's call is critical.
pub(super) fn of_file_tool(tool: &str, input: &Value) -> Option<&'static str> {
    let writes = matches!(tool, "write_file" | "edit_file");
    let path = input["path"].as_str().filter(|_| writes)?;
    plants(path).then_some(PLANTS)
}

/// Why a command line is critical.
pub(super) fn of_steps(steps: &[Step]) -> Option<&'static str> {
    let mut all = Vec::new();
    collect(steps, &mut all);
    let names = || all.iter().filter_map(|step| name_of(step));
    let downloads = names().any(|name| DOWNLOADERS.contains(&name));
    let wanders = all.iter().any(|step| leaves_the_workspace(step));
    all.iter().find_map(|step| {
        let runs_input = matches!(step.inside, Inside::Unknown(_))
            || (step.command.words.len() < 2 && name_of(step).is_some_and(|name| INTERPRETERS.contains(&name)));
        if downloads && runs_input {
            return Some(DOWNLOAD);
        }
        of_step(step, wanders)
    })
}

fn collect<'s>(steps: &'s [Step], all: &mut Vec<&'s Step>) {
    for step in steps {
        all.push(step);
        if let Inside::Instead(inner) | Inside::Also(inner) = &step.inside {
            collect(inner, all);
        }
    }
}

fn name_of(step: &Step) -> Option<&str> {
    step.command.words.first().and_then(Word::literal).map(base_name)
}

/// `cd` to somewhere else: what is relative then is relative to that.
fn leaves_the_workspace(step: &Step) -> bool {
    matches!(name_of(step), Some("cd" | "pushd")) && step.command.words.get(1).is_none_or(is_outside)
}

fn of_step(step: &Step, wanders: bool) -> Option<&'static str> {
    let command = &step.command;
    let written = command.redirects.iter().filter(|redirect| redirect.writes);
    for target in written.map(|redirect| redirect.target.raw()) {
        if is_device(target) {
            return Some(DEVICE);
        }
        if plants(target) {
            return Some(PLANTS);
        }
    }
    let name = name_of(step)?;
    let words = command.words.get(1..).unwrap_or_default();
    let targets = || words.iter().filter(|word| !is_option(word));
    match name {
        "rm" if flagged(words, "rR", "--r") && (wanders || targets().any(endangers)) => return Some(TREE),
        "rm" | "mv" | "rmdir" if targets().any(|word| normal_path(word.raw()) == ".git") => return Some(TREE),
        "find" if deletes_widely(words) => return Some(TREE),
        "chmod" | "chown" | "chgrp" if flagged(words, "R", "--r") && targets().skip(1).any(endangers) => {
            return Some(RIGHTS);
        }
        "dd" if words.iter().any(|word| word.raw().strip_prefix("of=").is_some_and(is_device)) => return Some(DEVICE),
        "wipefs" | "mkswap" | "fdisk" | "parted" | "blkdiscard" => return Some(DEVICE),
        "tee" | "cp" | "mv" | "install" | "shred" | "truncate" if targets().any(|word| is_device(word.raw())) => {
            return Some(DEVICE);
        }
        name if name.starts_with("mkfs") => return Some(DEVICE),
        "git" => {
            if let Some(why) = of_git(words) {
                return Some(why);
            }
        }
        _ => {}
    }
    let reads = READERS.contains(&name) || (name == "sed" && !flagged(words, "i", "--in-place"));
    let touches = |word: &Word| {
        let value = word.raw().split_once('=').map_or("", |(_, value)| value);
        plants(word.raw()) || plants(value)
    };
    (!reads && words.iter().any(touches)).then_some(PLANTS)
}

fn is_option(word: &Word) -> bool {
    word.raw().starts_with('-')
}

/// Is one of the letters among the short options, or does a long one begin so?
fn flagged(words: &[Word], letters: &str, long: &str) -> bool {
    let options = words.iter().map(Word::raw).take_while(|word| *word != "--");
    options.filter(|word| word.starts_with('-')).any(|word| {
        if word.starts_with("--") { word.starts_with(long) } else { word.contains(|c: char| letters.contains(c)) }
    })
}

/// Not known to be in the workspace: absolute, above it, at home, or begun by something the shell puts in.
fn is_outside(word: &Word) -> bool {
    let path = normal_path(word.raw());
    let begins_unknown = word.shape().starts_with(HOLE) && !word.raw().starts_with(['*', '?']);
    let temporary = ["/tmp/", "/var/tmp/"].iter().any(|folder| path.starts_with(folder));
    begins_unknown || (path.starts_with('/') && !temporary) || path == ".." || path.starts_with("../")
}

/// A target whose loss would be the loss of everything.
fn endangers(word: &Word) -> bool {
    let path = normal_path(word.raw());
    let everything = path.is_empty() || path.chars().all(|c| matches!(c, '*' | '?' | '.' | '/'));
    is_outside(word) || everything || path == ".git" || path.starts_with(".git/")
}

/// `find … -delete` where nothing narrows it, or outside of the workspace.
fn deletes_widely(words: &[Word]) -> bool {
    if !words.iter().any(|word| word.raw() == "-delete") {
        return false;
    }
    let places: Vec<&Word> = words.iter().take_while(|word| !word.raw().starts_with(['-', '(', '!'])).collect();
    let narrow = ["-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex"];
    let narrowed = words.windows(2).any(|pair| narrow.contains(&pair[0].raw()) && pair[1].raw() != "*");
    places.iter().any(|word| is_outside(word))
        || (!narrowed && (places.is_empty() || places.into_iter().any(endangers)))
}

fn is_device(path: &str) -> bool {
    let path = normal_path(path);
    let harmless = ["null", "zero", "full", "stdout", "stderr", "stdin", "tty"];
    path.strip_prefix("/dev/").is_some_and(|rest| {
        !harmless.contains(&rest) && !rest.starts_with("fd/") && !rest.starts_with("shm/") && !rest.starts_with("pts/")
    })
}

fn of_git(words: &[Word]) -> Option<&'static str> {
    let mut words = words;
    let valued = ["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"];
    while let Some(option) = words.first().filter(|word| is_option(word)) {
        let skip = if valued.contains(&option.raw()) { 2 } else { 1 };
        words = words.get(skip..).unwrap_or_default();
    }
    let (subcommand, words) = words.split_first()?;
    let has = |options: &[&str]| words.iter().any(|word| options.contains(&word.raw()));
    let plain: Vec<&str> = words.iter().filter(|word| !is_option(word)).map(Word::raw).collect();
    let everything = plain.iter().any(|path| matches!(normal_path(path).as_str(), "" | ":" | "*"));
    match subcommand.raw() {
        "push" => {
            let forced = flagged(words, "fd", "--f") || has(&["--mirror", "--delete", "--prune"]);
            (forced || plain.iter().any(|word| word.starts_with(['+', ':']))).then_some(SERVER)
        }
        "reset" => flagged(words, "", "--h").then_some(UNCOMMITTED),
        "checkout" | "switch" => {
            (flagged(words, "f", "--f") || has(&["--discard-changes"]) || everything).then_some(UNCOMMITTED)
        }
        "restore" => {
            let index_only = flagged(words, "S", "--s") && !flagged(words, "W", "--w");
            (everything && !index_only).then_some(UNCOMMITTED)
        }
        "clean" => {
            let tries = flagged(words, "n", "--d");
            (!tries && flagged(words, "f", "--f") && flagged(words, "dxX", "--\0") && plain.is_empty())
                .then_some(UNCOMMITTED)
        }
        "config" => {
            let reads = has(&["--get", "--get-all", "--get-regexp", "--list", "-l"]);
            let sets = plain.len() > 1 && !matches!(plain.first(), Some(&("get" | "list")));
            let edits = has(&["--unset", "--unset-all", "--edit", "-e", "--rename-section", "--remove-section"]);
            (!reads && (sets || edits)).then_some(GIT_CONFIG)
        }
        _ => None,
    }
}
