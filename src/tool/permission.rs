//! Decides whether a call may run: deny, then ask, then allow; the first hit wins.
//!
//! Rules are strings `tool(pattern)`, `*` for anything, or `tool(=text)` for exactly this text. A shell command is
//! read (`shell`), what it carries is unwrapped (`carrier`), and rules are matched against each command's words joined
//! by single spaces. Pure: the same call and rules give the same answer, so that `verify` can ask again. It reads the
//! *text* of a call, so it stops mistakes and obvious harm, not a determined disguise: it is never the only layer.
//!
//! Invariants:
//! * deny and ask hit if any command does; allow only if every command is allowed;
//! * what cannot be read, and what is critical, is never allowed without a person;
//! * has no access to tool output: nothing a tool prints changes a decision.
//!
//! Known limit: `read(...)` is compared with the path a search starts from, not with each file that the search would
//! open; and a path is compared as text, so a symlink is another path.

use serde_json::Value;

use crate::model::loop_file::{Otherwise, PermissionsDecl};

mod carrier;
mod critical;
mod pattern;
mod shell;

pub use critical::is_critical;

use carrier::{Inside, Step, base_name};
use pattern::{could_match, matches, normal_path};
use shell::{Command, HOLE, Word};

/// What the rules say about a call, and which one said it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    Allowed { rule: String },
    Ask { rule: String },
    Denied { rule: String },
}

/// A rule that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error("rule {0:?} is not of the form tool(pattern); example: bash(git *)")]
    Shape(String),
    #[error(
        "rule {rule:?} names {tool:?}, which is not a tool; use one of: bash, shell, read, write, edit, grep, glob, mcp, *"
    )]
    Tool { rule: String, tool: String },
}

/// The rules of a loop.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    allow: Vec<Rule>,
    ask: Vec<Rule>,
    deny: Vec<Rule>,
    /// Exact calls that the operator allowed for good in this workspace.
    remembered: Vec<Rule>,
    otherwise: Option<Otherwise>,
}

#[derive(Debug, Clone)]
struct Rule {
    text: String,
    subject: Subject,
    pattern: Pattern,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Wild(String),
    Exact(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Any,
    Shell,
    Read,
    Write,
    Edit,
    Grep,
    Glob,
    /// A tool of an MCP server, as `server/tool`.
    Mcp,
}

/// Which list a rule is in: a refusal reaches further than a permission.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Wide,
    Narrow,
}

/// How surely a refusal hits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hit {
    Surely,
    /// It depends on what the shell puts in.
    Perhaps,
}

/// What exactly a call does, for people and for exact rules: the command where there is one, else the whole input.
pub fn exact_text(input: &Value) -> String {
    input.get("command").and_then(Value::as_str).map_or_else(|| input.to_string(), str::to_owned)
}

/// The rule that allows exactly this call; `None` for a tool that rules do not know.
pub fn exact_rule(tool: &str, text: &str) -> Option<String> {
    Subject::parse(tool).filter(|subject| *subject != Subject::Any).map(|_| format!("{tool}(={text})"))
}

impl Rules {
    /// The declared rules and those that the operator had remembered for the workspace.
    pub fn of(declared: &PermissionsDecl, remembered: &[String]) -> Result<Self, RuleError> {
        let all = |rules: &[String]| rules.iter().map(|rule| Rule::parse(rule)).collect::<Result<Vec<_>, _>>();
        let remembered = all(remembered)?;
        if let Some(rule) = remembered.iter().find(|rule| !matches!(rule.pattern, Pattern::Exact(_))) {
            return Err(RuleError::Shape(rule.text.clone()));
        }
        Ok(Self {
            allow: all(&declared.allow)?,
            ask: all(&declared.ask)?,
            deny: all(&declared.deny)?,
            remembered,
            otherwise: declared.otherwise,
        })
    }

    pub fn decide(&self, tool: &str, input: &Value) -> Ruling {
        let call = Call::new(tool, input);
        let hit = |rules: &[Rule], sure: Hit| {
            rules.iter().find(|rule| call.could_be(rule, sure)).map(|rule| rule.text.clone())
        };
        if let Some(rule) = hit(&self.deny, Hit::Surely) {
            return Ruling::Denied { rule };
        }
        let verdict = self.unless_critical(&call, hit);
        match (verdict, call.critical) {
            (Ruling::Denied { rule }, _) => Ruling::Denied { rule },
            (_, Some(why)) => Ruling::Ask { rule: format!("{}{why}", critical::CRITICAL) },
            (verdict, None) => verdict,
        }
    }

    fn unless_critical(&self, call: &Call<'_>, hit: impl Fn(&[Rule], Hit) -> Option<String>) -> Ruling {
        let exactly = |rule: &&Rule| rule.about(call.tool, Reach::Narrow) && rule.is_exactly(&call.exact);
        if let Some(rule) = self.remembered.iter().find(exactly) {
            return Ruling::Allowed { rule: format!("remembered {}", rule.text) };
        }
        if let Some(why) = call.unreadable {
            return Ruling::Ask { rule: format!("cannot be read: {why}") };
        }
        if let Some(rule) = hit(&self.deny, Hit::Perhaps) {
            return Ruling::Ask { rule: format!("could be {rule}") };
        }
        if let Some(rule) = hit(&self.ask, Hit::Surely).or_else(|| hit(&self.ask, Hit::Perhaps)) {
            return Ruling::Ask { rule };
        }
        if let Some(rule) = call.allowed_by(&self.allow) {
            return Ruling::Allowed { rule };
        }
        if call.tool == "bash" && call.steps.is_empty() {
            return Ruling::Allowed { rule: "nothing runs".to_owned() };
        }
        let listed = self.allow.iter().any(|rule| rule.about(call.tool, Reach::Narrow));
        match self.otherwise {
            Some(Otherwise::Allow) => Ruling::Allowed { rule: "otherwise allow".to_owned() },
            Some(Otherwise::Ask) => Ruling::Ask { rule: "otherwise ask".to_owned() },
            Some(Otherwise::Deny) => Ruling::Denied { rule: "otherwise deny".to_owned() },
            None if listed => Ruling::Ask { rule: "no allow rule covers it".to_owned() },
            None => Ruling::Allowed { rule: "default".to_owned() },
        }
    }
}

impl Subject {
    fn parse(tool: &str) -> Option<Self> {
        Some(match tool {
            "*" => Self::Any,
            "bash" | "shell" => Self::Shell,
            "read" | "read_file" => Self::Read,
            "write" | "write_file" => Self::Write,
            "edit" | "edit_file" => Self::Edit,
            "grep" | "grep_search" => Self::Grep,
            "glob" | "glob_search" => Self::Glob,
            "mcp" => Self::Mcp,
            _ => return None,
        })
    }
}

impl Rule {
    fn parse(text: &str) -> Result<Self, RuleError> {
        let shape = || RuleError::Shape(text.to_owned());
        let trimmed = text.trim();
        let (tool, pattern) = match trimmed.split_once('(') {
            None => (trimmed, Pattern::Wild("*".to_owned())),
            Some((tool, rest)) => {
                let inner = rest.strip_suffix(')').ok_or_else(shape)?;
                let pattern = match inner.strip_prefix('=') {
                    Some(exact) => Pattern::Exact(exact.to_owned()),
                    None => Pattern::Wild(one_space(inner)),
                };
                (tool, pattern)
            }
        };
        if tool.is_empty() || matches!(&pattern, Pattern::Wild(text) | Pattern::Exact(text) if text.is_empty()) {
            return Err(shape());
        }
        let subject =
            Subject::parse(tool).ok_or_else(|| RuleError::Tool { rule: text.to_owned(), tool: tool.to_owned() })?;
        Ok(Self { text: trimmed.to_owned(), subject, pattern })
    }

    /// Whether the rule speaks about a tool. Who may not edit a file may not overwrite it
    /// either, and who may not read it may not search it; a permission says only what it says,
    /// save that replacing a whole file includes editing it.
    fn about(&self, tool: &str, reach: Reach) -> bool {
        let wide = reach == Reach::Wide;
        match self.subject {
            Subject::Any => true,
            Subject::Shell => tool == "bash",
            Subject::Write => tool == "write_file" || tool == "edit_file",
            Subject::Edit => tool == "edit_file" || (wide && tool == "write_file"),
            Subject::Read => tool == "read_file" || (wide && (tool == "grep_search" || tool == "glob_search")),
            Subject::Grep => tool == "grep_search",
            Subject::Glob => tool == "glob_search",
            Subject::Mcp => tool == "mcp",
        }
    }

    fn is_exactly(&self, text: &str) -> bool {
        matches!(&self.pattern, Pattern::Exact(exact) if exact == text)
    }

    /// Does the pattern fit this text, in which a hole may stand for anything?
    fn fits(&self, text: &str) -> bool {
        matches!(&self.pattern, Pattern::Wild(pattern) if matches(pattern, text))
    }

    fn could_fit(&self, text: &str) -> bool {
        matches!(&self.pattern, Pattern::Wild(pattern) if could_match(pattern, text))
    }
}

/// A call, taken apart for matching.
struct Call<'a> {
    tool: &'a str,
    /// What exact rules are compared with.
    exact: String,
    /// Every text a refusal is compared with, expansions as they are written.
    readings: Vec<String>,
    /// The same with holes, where there are any.
    shapes: Vec<String>,
    /// What a permission must cover, all of it.
    steps: Vec<Step>,
    path: Option<String>,
    /// Files that a command opens by redirection: does it write, and which.
    redirects: Vec<(bool, Word)>,
    unreadable: Option<&'static str>,
    critical: Option<&'static str>,
}

impl<'a> Call<'a> {
    fn new(tool: &'a str, input: &Value) -> Self {
        let mut call = Self {
            tool,
            exact: exact_text(input),
            readings: Vec::new(),
            shapes: Vec::new(),
            steps: Vec::new(),
            path: None,
            redirects: Vec::new(),
            unreadable: None,
            critical: critical::of_file_tool(tool, input),
        };
        if tool == "bash" {
            call.read_command(input["command"].as_str().unwrap_or_default());
        } else {
            call.read_path(input["path"].as_str().unwrap_or("."));
        }
        call
    }

    fn read_path(&mut self, path: &str) {
        let plain = normal_path(path);
        self.readings = path_readings(path);
        self.path = Some(plain);
    }

    fn read_command(&mut self, text: &str) {
        self.readings = vec![text.trim().to_owned(), one_space(text)];
        match carrier::steps(text) {
            Ok(steps) => {
                self.critical = critical::of_steps(&steps);
                self.take_apart(&steps);
                self.steps = steps;
            }
            Err(why) => self.unreadable = Some(why),
        }
    }

    fn take_apart(&mut self, steps: &[Step]) {
        for step in steps {
            for text in texts(&step.command, Word::raw, Folder::Any) {
                self.readings.push(text);
            }
            self.shapes.extend(texts(&step.command, Word::shape, Folder::Any).into_iter().filter(|t| t.contains(HOLE)));
            let redirects = step.command.redirects.iter();
            self.redirects.extend(redirects.map(|redirect| (redirect.writes, redirect.target.clone())));
            match &step.inside {
                Inside::Nothing => {}
                Inside::Instead(inner) | Inside::Also(inner) => self.take_apart(inner),
                Inside::Unknown(why) => self.unreadable = Some(why),
            }
        }
    }

    fn could_be(&self, rule: &Rule, sure: Hit) -> bool {
        if rule.about(self.tool, Reach::Wide) {
            let hits = match sure {
                Hit::Surely => rule.is_exactly(&self.exact) || self.readings.iter().any(|text| rule.fits(text)),
                Hit::Perhaps => self.shapes.iter().any(|text| rule.could_fit(text)),
            };
            if hits {
                return true;
            }
        }
        // A rule about a file holds for a command that opens it by redirection.
        self.redirects.iter().any(|(writes, target)| {
            let about = match rule.subject {
                Subject::Write | Subject::Edit => *writes,
                Subject::Read => !*writes,
                Subject::Any | Subject::Shell | Subject::Grep | Subject::Glob | Subject::Mcp => false,
            };
            about
                && match sure {
                    Hit::Surely => path_readings(target.raw()).iter().any(|text| rule.fits(text)),
                    Hit::Perhaps => rule.could_fit(target.shape()),
                }
        })
    }

    /// The rules that together allow every part.
    fn allowed_by(&self, rules: &[Rule]) -> Option<String> {
        let own: Vec<&Rule> = rules.iter().filter(|rule| rule.about(self.tool, Reach::Narrow)).collect();
        let mut used: Vec<&str> = Vec::new();
        if let Some(rule) = own.iter().find(|rule| rule.is_exactly(&self.exact)) {
            return Some(rule.text.clone());
        }
        if let Some(path) = &self.path {
            let rule = own.iter().find(|rule| rule.fits(path))?;
            return Some(rule.text.clone());
        }
        // A rule that is the whole line, word for word, means the whole line.
        let whole = self.exact.trim();
        let is_whole = |rule: &&&Rule| matches!(&rule.pattern, Pattern::Wild(text) if text == whole);
        if let Some(rule) = own.iter().find(is_whole) {
            return Some(rule.text.clone());
        }
        if self.steps.is_empty() || !self.steps.iter().all(|step| covers(&own, step, &mut used)) {
            return None;
        }
        let writes: Vec<&Rule> = rules.iter().filter(|rule| rule.subject == Subject::Write).collect();
        let may_write = |target: &Word| match target.literal().map(normal_path) {
            Some(path) => path.starts_with("/dev/") || writes.is_empty() || writes.iter().any(|rule| rule.fits(&path)),
            None => false,
        };
        let written = self.redirects.iter().filter(|(writes, _)| *writes);
        written.map(|(_, target)| target).all(may_write).then(|| used.join(", "))
    }
}

/// Do the rules cover this command and all that it runs?
fn covers<'r>(rules: &[&'r Rule], step: &Step, used: &mut Vec<&'r str>) -> bool {
    let command = &step.command;
    let own = |used: &mut Vec<&'r str>| {
        if command.words.is_empty() {
            // Only variables or redirections: nothing runs.
            return command.assignments.iter().all(|(name, _)| is_plain_variable(name));
        }
        let texts = texts(command, Word::shape, Folder::System);
        match rules.iter().find(|rule| texts.iter().any(|text| rule.fits(text))) {
            Some(rule) => {
                if !used.contains(&rule.text.as_str()) {
                    used.push(&rule.text);
                }
                true
            }
            None => false,
        }
    };
    match &step.inside {
        Inside::Nothing => own(used),
        Inside::Instead(inner) => {
            let steered = !command.assignments.iter().all(|(name, _)| is_plain_variable(name));
            (!steered && !inner.is_empty() && inner.iter().all(|step| covers(rules, step, used))) || own(used)
        }
        Inside::Also(inner) => own(used) && inner.iter().all(|step| covers(rules, step, used)),
        Inside::Unknown(_) => false,
    }
}

/// Where a program may lie whose bare name a rule gives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Folder {
    Any,
    /// `/tmp/git` is not the git that a permission means.
    System,
}

/// A command as texts for matching: its words joined by single spaces, also without the program's folder. For a
/// permission, variables that may steer the program are part of the text.
fn texts(command: &Command, view: fn(&Word) -> &str, folder: Folder) -> Vec<String> {
    let Some((program, rest)) = command.words.split_first() else { return Vec::new() };
    let rest: String = rest.iter().map(|word| format!(" {}", view(word))).collect();
    let program = view(program);
    let steering: String = match folder {
        Folder::Any => String::new(),
        Folder::System => {
            let steering = command.assignments.iter().filter(|(name, _)| !is_plain_variable(name));
            steering.map(|(_, word)| format!("{} ", view(word))).collect()
        }
    };
    let mut texts = vec![format!("{steering}{program}{rest}")];
    let name = base_name(program);
    let system = ["/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/"];
    if name != program && (folder == Folder::Any || system.iter().any(|dir| program.strip_prefix(dir) == Some(name))) {
        texts.push(format!("{steering}{name}{rest}"));
    }
    texts
}

/// A variable that steers no program. Names in capitals may: `PATH`, `LD_PRELOAD`, `GIT_SSH_COMMAND` …
fn is_plain_variable(name: &str) -> bool {
    const KNOWN: [&str; 9] =
        ["CI", "NO_COLOR", "FORCE_COLOR", "RUST_LOG", "RUST_BACKTRACE", "CARGO_TERM_COLOR", "TERM", "TZ", "LANG"];
    let lower = name.contains(|c: char| c.is_ascii_lowercase()) && !name.ends_with("_proxy");
    lower || KNOWN.contains(&name) || name.starts_with("LC_")
}

/// Every way in which a rule may name this file.
fn path_readings(path: &str) -> Vec<String> {
    let plain = normal_path(path);
    let mut readings = vec![path.to_owned(), plain.clone()];
    if plain.starts_with('/') {
        // Where the workspace lies is not known here; any tail may be the path in it.
        let tails = plain.match_indices('/').map(|(at, _)| plain[at + 1..].to_owned());
        readings.extend(tails.collect::<Vec<_>>());
    }
    readings
}

fn one_space(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
