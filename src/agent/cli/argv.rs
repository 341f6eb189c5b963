//! A command line that is the operator's first, and completed by us.
//!
//! Role: add what is missing, keep what is there, put the prompt where it belongs.
//! Not its role: which flags a program has; the profiles know that.
//!
//! Invariants: no argument of the operator's is repeated, changed (but for `{prompt}`) or dropped; the
//! prompt is always an argument or input of its own and never a word of a shell command.

use serde_json::{Map, Value, json};

use crate::agent::program::{Offer, Task};
use crate::model::loop_file::PromptBy;

use super::Invocation;

/// Where the prompt goes among the operator's arguments.
const PLACE: &str = "{prompt}";
/// Linux takes 128 KiB in one argument; the rest is left for names and their ends.
const MAX_ARGUMENT: usize = 128 * 1024 - 256;
/// Prompts larger than this are not sent at all.
const MAX_PROMPT: usize = 16 * 1024 * 1024;
/// Session names are short.
const MAX_SESSION: usize = 200;

/// Programs that take a script as the word after `-c`.
const SHELLS: [&str; 12] =
    ["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "busybox", "su", "script", "runuser"];
/// Programs that hand all their words to a shell elsewhere.
const REMOTE_SHELLS: [&str; 3] = ["ssh", "mosh", "eval"];

/// The operator's command line, with what is added to it.
pub(super) struct Line<'a> {
    declared: &'a [String],
    prompt_by: Option<PromptBy>,
    /// The place of the prompt among the declared arguments.
    place: Option<usize>,
    added: Vec<String>,
}

impl<'a> Line<'a> {
    pub fn new(declared: &'a [String], prompt_by: Option<PromptBy>, task: &Task) -> Result<Self, String> {
        if declared.first().is_none_or(|program| program.trim().is_empty()) {
            return Err("the agent's command is empty: name a program, e.g. `command: [\"claude\"]`".into());
        }
        if task.prompt.len() + task.system.len() > MAX_PROMPT {
            return Err(format!("the prompt is larger than {} MiB", MAX_PROMPT >> 20));
        }
        if let Some(session) = &task.session
            && !is_session_name(session)
        {
            return Err(format!("`{}` is not a session name", session.escape_debug()));
        }
        if task.model.as_ref().is_some_and(|model| model.is_empty() || model.starts_with('-')) {
            return Err("the model's name is empty or looks like a flag: check `model:`".into());
        }
        let place = place_of_prompt(declared)?;
        if place.is_some() && prompt_by == Some(PromptBy::Stdin) {
            return Err(format!("`command` has {PLACE}, but `prompt: stdin` was asked for: keep one of the two"));
        }
        Ok(Self { declared, prompt_by, place, added: Vec::new() })
    }

    pub fn program(&self) -> &str {
        self.declared.first().map_or("", |program| base_name(program))
    }

    /// Where the operator put the prompt.
    pub fn place(&self) -> Option<usize> {
        self.place
    }

    /// Where the operator's argument `word` stands.
    pub fn find(&self, words: &[&str]) -> Option<usize> {
        self.declared.iter().skip(1).position(|arg| words.contains(&arg.as_str())).map(|at| at + 1)
    }

    /// Did the operator give one of these flags?
    pub fn gives(&self, names: &[&str]) -> bool {
        self.declared.iter().skip(1).any(|arg| names.iter().any(|name| is_flag(arg, name)))
    }

    /// The value that the operator gave to one of these flags.
    pub fn value_of(&self, names: &[&str]) -> Option<&str> {
        let mut arguments = self.declared.iter().skip(1);
        while let Some(arg) = arguments.next() {
            for name in names {
                if arg == name {
                    return arguments.next().map(String::as_str);
                }
                if let Some(value) = arg.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')) {
                    return Some(value);
                }
            }
        }
        None
    }

    /// Adds words that the program takes as often as they come.
    pub fn add(&mut self, words: &[&str]) {
        self.added.extend(words.iter().map(|word| (*word).to_owned()));
    }

    /// Adds a flag, unless the operator gave it. The first name is the one that is written.
    pub fn flag(&mut self, names: &[&str]) {
        if let Some(name) = names.first()
            && !self.gives(names)
        {
            self.add(&[name]);
        }
    }

    /// Adds a flag and its value, unless the operator gave that flag. Says whether it did.
    pub fn option(&mut self, names: &[&str], value: &str) -> bool {
        match names.first() {
            Some(name) if !self.gives(names) => {
                self.add(&[name, value]);
                true
            }
            _ => false,
        }
    }

    /// Adds an output format that our reader understands; another one is an error.
    pub fn format(&mut self, names: &[&str], value: &str) -> Result<(), String> {
        match self.value_of(names) {
            Some(given) if given != value => Err(format!(
                "`{}` writes {given}, but its output is read as {value}: leave that flag out, or set `profile: plain`",
                self.program()
            )),
            _ => {
                self.option(names, value);
                Ok(())
            }
        }
    }

    /// Puts everything together. The added words go to `at` in the declared ones, `before_prompt` stands
    /// right before the prompt; `by_stdin` and `by_argument` are the words that announce it.
    pub fn build(self, at: usize, prompt: String, ends: Ends<'_>) -> Result<Invocation, String> {
        let by_argument = self.place.is_some() || self.prompt_by.unwrap_or(ends.default) == PromptBy::Argument;
        if by_argument && prompt.len() > MAX_ARGUMENT {
            return Err(format!(
                "the prompt has {} bytes, too many for an argument: set `prompt: stdin`",
                prompt.len()
            ));
        }
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let mut argv = Vec::with_capacity(self.declared.len() + self.added.len() + 4);
        let mut added = Some(self.added);
        for (index, argument) in self.declared.iter().enumerate() {
            if index == at {
                argv.extend(added.take().unwrap_or_default());
            }
            if self.place == Some(index) {
                argv.extend(owned(ends.before_prompt));
                argv.push(argument.replace(PLACE, &prompt));
            } else {
                argv.push(argument.clone());
            }
        }
        argv.extend(added.unwrap_or_default());
        let mut stdin = None;
        if self.place.is_none() {
            argv.extend(owned(ends.before_prompt));
            if by_argument {
                match ends.by_argument {
                    Announce::Words(words) => {
                        argv.extend(owned(words));
                        argv.push(prompt);
                    }
                    Announce::Joined(flag) => argv.push(format!("{flag}={prompt}")),
                }
            } else {
                argv.extend(owned(ends.by_stdin));
                stdin = Some(prompt.into_bytes());
            }
        }
        Ok(Invocation { argv, stdin, env: Vec::new() })
    }
}

/// How a program is given its prompt.
pub(super) struct Ends<'a> {
    pub default: PromptBy,
    /// Words that must stand between flags and prompt.
    pub before_prompt: &'a [&'a str],
    pub by_stdin: &'a [&'a str],
    pub by_argument: Announce<'a>,
}

/// How an argument is known to be the prompt.
pub(super) enum Announce<'a> {
    /// These words, then the prompt.
    Words(&'a [&'a str]),
    /// `--flag=prompt`: safe for a prompt that begins with a dash.
    Joined(&'a str),
}

/// The prompt with the role's prompt before it, for programs without a flag for that. A conversation that
/// goes on has heard it.
pub(super) fn with_system(task: &Task, goes_on: bool) -> String {
    if goes_on || task.system.trim().is_empty() {
        task.prompt.clone()
    } else {
        format!("{}\n\n{}", task.system.trim_end(), task.prompt)
    }
}

/// `{"command": …, "args": […], "env": {…}}` as most programs write an MCP server.
pub(super) fn server(offer: &Offer) -> Result<Value, String> {
    let (command, args) = command_of(offer)?;
    Ok(json!({"command": command, "args": args, "env": variables(offer)}))
}

pub(super) fn command_of(offer: &Offer) -> Result<(&String, &[String]), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if offer.name.is_empty() || !offer.name.chars().all(plain) {
        return Err(format!("`{}` cannot be the name of a tool server", offer.name.escape_debug()));
    }
    offer.argv.split_first().ok_or_else(|| "the tool server has no command".into())
}

pub(super) fn variables(offer: &Offer) -> Map<String, Value> {
    offer.env.iter().map(|(name, value)| (name.clone(), Value::String(value.clone()))).collect()
}

/// What a program calls a session is believed when it is a plain word: it comes back as an argument.
pub(super) fn is_session_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    !name.is_empty() && name.len() <= MAX_SESSION && !name.starts_with('-') && name.chars().all(plain)
}

/// What no process can be started with.
pub(super) fn check(invocation: &Invocation) -> Result<(), String> {
    let variables = invocation.env.iter().flat_map(|(name, value)| [name, value]);
    for word in invocation.argv.iter().chain(variables) {
        if word.contains('\0') {
            return Err("an argument holds a NUL character: a prompt with one must go by `prompt: stdin`".into());
        }
        if word.len() > MAX_ARGUMENT {
            return Err(format!("an argument has {} bytes, more than a program can be given", word.len()));
        }
    }
    Ok(())
}

fn place_of_prompt(declared: &[String]) -> Result<Option<usize>, String> {
    let mut places = declared.iter().enumerate().filter(|(_, arg)| arg.contains(PLACE));
    let Some((at, argument)) = places.next() else { return Ok(None) };
    if places.next().is_some() || argument.matches(PLACE).count() > 1 {
        return Err(format!("`command` has {PLACE} more than once: keep one"));
    }
    let whole = argument == PLACE;
    let joined = argument.strip_suffix(PLACE).is_some_and(|rest| rest.starts_with('-') && rest.ends_with('='));
    let names = || declared[..at].iter().map(|word| base_name(word));
    let script = at.checked_sub(1).and_then(|before| declared.get(before)).is_some_and(|before| takes_script(before))
        && names().any(|name| SHELLS.contains(&name));
    if at == 0 || script || names().any(|name| REMOTE_SHELLS.contains(&name)) || !(whole || joined) {
        return Err(format!(
            "{PLACE} must be an argument of its own and no part of a shell command: \
             use `prompt: stdin`, or hand it over as in `[\"sh\", \"-c\", \"agent \\\"$1\\\"\", \"sh\", \"{PLACE}\"]`"
        ));
    }
    Ok(Some(at))
}

/// `-c`, `-lc`, `--command`: the next word is a script.
fn takes_script(flag: &str) -> bool {
    flag == "--command" || (flag.starts_with('-') && !flag.starts_with("--") && flag.ends_with('c'))
}

fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Is `argument` the flag `name`, alone or with its value?
fn is_flag(argument: &str, name: &str) -> bool {
    match argument.strip_prefix(name) {
        Some("") => true,
        Some(rest) => rest.starts_with('=') || (name.len() == 2 && !name.starts_with("--")),
        None => false,
    }
}
