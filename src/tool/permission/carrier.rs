//! Commands that run other commands: `sudo rm`, `timeout 5 make`, `sh -c "…"`, `find -exec`.
//!
//! What is inside is read like any command, to a limited depth. Invariant: what is carried is among the steps, or
//! the step says that it cannot be known.

use super::shell::{self, Command, Word};

/// Carriers inside carriers.
const MAX_DEPTH: usize = 8;

/// A command, and what it runs in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    pub command: Command,
    pub inside: Inside,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Inside {
    Nothing,
    /// The command does nothing but run these.
    Instead(Vec<Step>),
    /// It does its own work, with its own rights, and runs these.
    Also(Vec<Step>),
    /// It runs something, and nobody can say what.
    Unknown(&'static str),
}

/// A command that carries another: options with a value, words before the carried command, and whether it gives the
/// command rights of its own.
struct Carrier {
    name: &'static str,
    short: &'static str,
    long: &'static [&'static str],
    positional: usize,
    own: bool,
}

const fn carrier(name: &'static str, short: &'static str, long: &'static [&'static str], positional: usize) -> Carrier {
    Carrier { name, short, long, positional, own: false }
}

const CARRIERS: [Carrier; 17] = [
    Carrier { name: "sudo", short: "ugpCrtTUDRh", long: &["user", "group", "chdir", "host"], positional: 0, own: true },
    Carrier { name: "doas", short: "uC", long: &[], positional: 0, own: true },
    carrier("env", "uC", &["unset", "chdir"], 0),
    carrier("command", "", &[], 0),
    carrier("builtin", "", &[], 0),
    carrier("exec", "a", &[], 0),
    carrier("nohup", "", &[], 0),
    carrier("time", "fo", &["format", "output"], 0),
    carrier("nice", "n", &["adjustment"], 0),
    carrier("ionice", "cnp", &["class", "classdata"], 0),
    carrier("chrt", "TPD", &[], 1),
    carrier("setsid", "", &[], 0),
    carrier("stdbuf", "ioe", &["input", "output", "error"], 0),
    carrier("timeout", "sk", &["signal", "kill-after"], 1),
    carrier("busybox", "", &[], 0),
    carrier("watch", "nq", &["interval"], 0),
    carrier("xargs", "InPLdaEs", &["max-args", "max-procs", "max-lines", "delimiter", "arg-file", "replace"], 0),
];

const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "ash"];

/// The steps of a command line.
pub(super) fn steps(text: &str) -> Result<Vec<Step>, &'static str> {
    read(text, 0)
}

fn read(text: &str, depth: usize) -> Result<Vec<Step>, &'static str> {
    if depth >= MAX_DEPTH {
        return Err("it is nested too deeply");
    }
    Ok(shell::read(text)?.into_iter().map(|command| step(command, depth)).collect())
}

fn step(command: Command, depth: usize) -> Step {
    let inside = inside(&command, depth).unwrap_or_else(Inside::Unknown);
    Step { command, inside }
}

/// The name of a program without its folder.
pub(super) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

fn inside(command: &Command, depth: usize) -> Result<Inside, &'static str> {
    if depth >= MAX_DEPTH {
        return Err("it is nested too deeply");
    }
    let Some(program) = command.words.first() else { return Ok(Inside::Nothing) };
    let name = base_name(program.literal().ok_or("its program is not known before it runs")?);
    if SHELLS.contains(&name) {
        return shell_inside(command, depth);
    }
    match name {
        "eval" => {
            let text = literals(&command.words[1..]).ok_or("what `eval` runs is not known before it runs")?;
            Ok(Inside::Instead(read(&text.join(" "), depth + 1)?))
        }
        "trap" => match command.words.get(1).map(|word| word.literal().ok_or("what `trap` runs is not known")) {
            Some(text) => Ok(Inside::Also(read(text?, depth + 1)?)),
            None => Ok(Inside::Nothing),
        },
        "find" => find_inside(command, depth),
        _ => match CARRIERS.iter().find(|carrier| carrier.name == name) {
            Some(carrier) => carried(carrier, command, depth),
            None => Ok(Inside::Nothing),
        },
    }
}

fn literals(words: &[Word]) -> Option<Vec<&str>> {
    words.iter().map(Word::literal).collect()
}

fn carried(carrier: &Carrier, command: &Command, depth: usize) -> Result<Inside, &'static str> {
    let words = &command.words;
    let mut inner = Command { input: command.input.clone(), ..Command::default() };
    let (mut at, mut positional, mut options) = (1, carrier.positional, true);
    while let Some(word) = words.get(at) {
        let text = word.literal().ok_or("its program is not known before it runs")?;
        if options && text == "--" {
            options = false;
        } else if let Some(long) = text.strip_prefix("--").filter(|_| options) {
            if carrier.name == "env" && long.starts_with("split-string") {
                return Err("`env -S` cannot be read");
            }
            at += usize::from(carrier.long.contains(&long));
        } else if let Some(short) = text.strip_prefix('-').filter(|short| options && !short.is_empty()) {
            match (carrier.name, short) {
                // They only say where a command is.
                ("command", short) if short.contains(['v', 'V']) => return Ok(Inside::Nothing),
                ("env", short) if short.contains('S') => return Err("`env -S` cannot be read"),
                _ => {}
            }
            // A value stands in the same word, unless its letter is the last.
            let takes = short.char_indices().find(|(_, letter)| carrier.short.contains(*letter));
            at += usize::from(takes.is_some_and(|(at, letter)| at + letter.len_utf8() == short.len()));
        } else if let Some((name, _)) = text.split_once('=').filter(|_| matches!(carrier.name, "env" | "sudo" | "doas"))
        {
            inner.assignments.push((name.to_owned(), word.clone()));
        } else if positional > 0 {
            positional -= 1;
        } else {
            break;
        }
        at += 1;
    }
    inner.words = words.get(at..).unwrap_or_default().to_vec();
    if inner.words.is_empty() {
        return Ok(Inside::Nothing);
    }
    if carrier.name == "xargs" {
        inner.words.iter_mut().for_each(fill);
        inner.words.push(Word::unknown("…"));
    }
    if carrier.name == "watch" {
        let text = literals(&inner.words).ok_or("what `watch` runs is not known before it runs")?.join(" ");
        return Ok(Inside::Instead(read(&text, depth + 1)?));
    }
    let inner = vec![step(inner, depth + 1)];
    Ok(if carrier.own { Inside::Also(inner) } else { Inside::Instead(inner) })
}

/// `{}` stands for whatever is found.
fn fill(word: &mut Word) {
    if word.raw().contains("{}") {
        *word = Word::unknown(word.raw());
    }
}

fn find_inside(command: &Command, depth: usize) -> Result<Inside, &'static str> {
    let mut inner = Vec::new();
    let mut words = command.words.iter();
    while let Some(word) = words.next() {
        if !matches!(word.raw(), "-exec" | "-execdir" | "-ok" | "-okdir") {
            continue;
        }
        let mut carried = Command::default();
        for word in words.by_ref() {
            if matches!(word.raw(), ";" | "+") {
                break;
            }
            let mut word = word.clone();
            fill(&mut word);
            carried.words.push(word);
        }
        inner.push(step(carried, depth + 1));
    }
    Ok(if inner.is_empty() { Inside::Nothing } else { Inside::Also(inner) })
}

/// `sh -c text`, or a shell that reads its commands from a here-document. A shell that is given a file runs that
/// file, which is a program like any other.
fn shell_inside(command: &Command, depth: usize) -> Result<Inside, &'static str> {
    let mut words = command.words.iter().skip(1);
    let mut script = false;
    while let Some(word) = words.next() {
        let text = word.literal().ok_or("what the shell runs is not known before it runs")?;
        match text {
            "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file" => {
                words.next();
            }
            "--" | "-" => {}
            "--version" | "--help" => return Ok(Inside::Nothing),
            long if long.starts_with("--") => {}
            short if short.starts_with(['-', '+']) => script |= short.contains('c'),
            text if script => return Ok(Inside::Instead(read(text, depth + 1)?)),
            _ => return Ok(Inside::Nothing),
        }
        // `-s` reads from the input, whatever words follow.
        if text.starts_with('-') && !text.starts_with("--") && text.contains('s') {
            break;
        }
    }
    match command.input.as_ref().map(Word::literal) {
        Some(Some(text)) => Ok(Inside::Instead(read(text, depth + 1)?)),
        _ => Err("a shell runs what it reads, and that is not known before it runs"),
    }
}
