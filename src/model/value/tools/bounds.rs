//! Bounds of what agents hand in, with errors that say what to change.
//!
//! Text of agents is untrusted: every text, list, path and command of a report passes through here.

/// Characters of a text that says nothing else.
pub const MAX_TEXT: usize = 4_000;
/// Characters of notes and findings that later calls are given.
pub const MAX_NOTES: usize = 8_000;
/// Bytes of a proposed document.
pub const MAX_DOCUMENT: usize = 256 * 1024;
/// Items of a list.
pub const MAX_LIST: usize = crate::model::report::MAX_ITEMS;
/// Characters of a name, an id, a path or one argument of a command.
pub const MAX_NAME: usize = 500;

/// A report whose parts can be checked on their own.
pub trait Check {
    fn check(&self) -> Result<(), String>;
}

/// A text that must be there.
pub fn needed(name: &str, text: &str, most: usize) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err(format!("`{name}` is empty: it is needed"));
    }
    bounded(name, text, most)
}

/// A text that may be empty.
pub fn bounded(name: &str, text: &str, most: usize) -> Result<(), String> {
    let chars = text.chars().count();
    if chars > most {
        return Err(format!("`{name}` has {chars} characters, the limit is {most}: shorten it"));
    }
    Ok(())
}

/// A text that may be absent.
pub fn optional(name: &str, text: Option<&String>, most: usize) -> Result<(), String> {
    text.map_or(Ok(()), |text| bounded(name, text, most))
}

pub fn count<T>(name: &str, items: &[T]) -> Result<(), String> {
    if items.len() > MAX_LIST {
        return Err(format!("`{name}` has {} items, the limit is {MAX_LIST}: keep the most important", items.len()));
    }
    Ok(())
}

/// A list of texts, none of them empty.
pub fn texts(name: &str, items: &[String]) -> Result<(), String> {
    each(name, items, MAX_TEXT)
}

/// A list of names, none of them empty.
pub fn names(name: &str, items: &[String]) -> Result<(), String> {
    each(name, items, MAX_NAME)
}

fn each(name: &str, items: &[String], most: usize) -> Result<(), String> {
    count(name, items)?;
    items.iter().enumerate().try_for_each(|(n, item)| needed(&format!("{name}[{n}]"), item, most))
}

/// Paths inside the workspace.
pub fn paths(name: &str, items: &[String]) -> Result<(), String> {
    names(name, items)?;
    match items.iter().find(|path| !is_inside(path)) {
        Some(path) => {
            Err(format!("`{name}` has `{path}`: write paths relative to the workspace, with `/` and without `..`"))
        }
        None => Ok(()),
    }
}

/// Is this a relative path that stays where it is?
pub fn is_inside(path: &str) -> bool {
    !path.is_empty()
        && !path.starts_with(['/', '~', '\\'])
        && !path.contains(char::is_control)
        && !path.split(['/', '\\']).any(|part| part == "..")
}

/// Program and arguments.
pub fn command(name: &str, argv: &[String]) -> Result<(), String> {
    let Some(program) = argv.first() else {
        return Err(format!("`{name}` is empty: give a program and its arguments, or leave it out"));
    };
    needed(&format!("{name}[0]"), program, MAX_NAME)?;
    count(name, argv)?;
    for (n, argument) in argv.iter().enumerate() {
        bounded(&format!("{name}[{n}]"), argument, MAX_TEXT)?;
        if argument.contains('\0') {
            return Err(format!("`{name}[{n}]` has a NUL in it"));
        }
    }
    Ok(())
}

/// One of a set of words.
pub fn one_of(name: &str, word: &str, allowed: &[&str]) -> Result<(), String> {
    if allowed.contains(&word) {
        return Ok(());
    }
    let word: String = word.chars().take(60).collect();
    Err(format!("`{name}` is `{word}`: use {}", allowed.join(", ")))
}
