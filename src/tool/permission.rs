//! Decides whether a call may run: deny, then ask, then allow. First form.
//!
//! Rules are strings `tool(pattern)`, `*` for anything. It reads the *text* of a call, so it
//! stops mistakes and obvious harm, not a determined disguise: it is never the only layer.
//!
//! Invariants:
//! * what could be denied is denied: a shell command is cut at every separator, quoted or not,
//!   and deny and ask match if any part does; allow only if every part is allowed;
//! * has no access to tool output: nothing a tool prints changes a decision;
//! * a call that matches nothing is allowed by the rule named `default`.
//!
//! Known limit: `read(...)` is compared with the path a search starts from, not with each file
//! that the search would open; and a path is compared as text, so a symlink is another path.

use serde_json::Value;

mod command;

/// What the rules say about a call, and which one said it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Allowed { rule: String },
    Ask { rule: String },
    Denied { rule: String },
}

/// A rule that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error("rule {0:?} is not of the form tool(pattern); example: bash(git *)")]
    Shape(String),
    #[error("rule {rule:?} names {tool:?}, which is no tool; one of: bash, shell, read, write, edit, grep, glob, *")]
    Tool { rule: String, tool: String },
}

/// The rules of a loop.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    allow: Vec<Rule>,
    ask: Vec<Rule>,
    deny: Vec<Rule>,
}

#[derive(Debug, Clone)]
struct Rule {
    text: String,
    subject: Subject,
    pattern: String,
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
}

/// Which list a rule is in: a refusal reaches further than a permission.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Wide,
    Narrow,
}

impl Rules {
    pub fn parse(allow: &[String], ask: &[String], deny: &[String]) -> Result<Self, RuleError> {
        let all = |rules: &[String]| rules.iter().map(|rule| Rule::parse(rule)).collect::<Result<Vec<_>, _>>();
        Ok(Self { allow: all(allow)?, ask: all(ask)?, deny: all(deny)? })
    }

    pub fn decide(&self, tool: &str, input: &Value) -> Verdict {
        let call = Call::new(tool, input);
        let hit = |rules: &[Rule]| rules.iter().find(|rule| call.could_be(rule)).map(|rule| rule.text.clone());
        if let Some(rule) = hit(&self.deny) {
            return Verdict::Denied { rule };
        }
        if let Some(rule) = hit(&self.ask) {
            return Verdict::Ask { rule };
        }
        let rule = call.allowed_by(&self.allow).unwrap_or_else(|| "default".to_owned());
        Verdict::Allowed { rule }
    }
}

impl Rule {
    fn parse(text: &str) -> Result<Self, RuleError> {
        let trimmed = text.trim();
        let (tool, pattern) = match trimmed.split_once('(') {
            None => (trimmed, "*"),
            Some((tool, rest)) => {
                let pattern = rest.strip_suffix(')').map(str::trim).filter(|pattern| !pattern.is_empty());
                (tool, pattern.ok_or_else(|| RuleError::Shape(text.to_owned()))?)
            }
        };
        let subject = match tool {
            "*" => Subject::Any,
            "bash" | "shell" => Subject::Shell,
            "read" | "read_file" => Subject::Read,
            "write" | "write_file" => Subject::Write,
            "edit" | "edit_file" => Subject::Edit,
            "grep" | "grep_search" => Subject::Grep,
            "glob" | "glob_search" => Subject::Glob,
            "" => return Err(RuleError::Shape(text.to_owned())),
            other => {
                return Err(RuleError::Tool { rule: text.to_owned(), tool: other.to_owned() });
            }
        };
        let pattern = pattern.split_whitespace().collect::<Vec<_>>().join(" ");
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
        }
    }
}

/// A call, taken apart for matching.
struct Call<'a> {
    tool: &'a str,
    /// Every text a refusal is compared with.
    readings: Vec<String>,
    /// What a permission must cover, all of it.
    parts: Vec<String>,
}

impl<'a> Call<'a> {
    fn new(tool: &'a str, input: &Value) -> Self {
        if tool == "bash" {
            let text = input["command"].as_str().unwrap_or_default();
            return Self { tool, readings: command::readings(text), parts: command::parts(text) };
        }
        let path = input["path"].as_str().unwrap_or(".");
        let plain = normal_path(path);
        let mut readings = vec![path.to_owned(), plain.clone()];
        if plain.starts_with('/') {
            // Where the workspace lies is not known here; any tail may be the path in it.
            let tails = plain.match_indices('/').map(|(at, _)| plain[at + 1..].to_owned());
            readings.extend(tails.collect::<Vec<_>>());
        }
        Self { tool, readings, parts: vec![plain] }
    }

    fn could_be(&self, rule: &Rule) -> bool {
        rule.about(self.tool, Reach::Wide) && self.readings.iter().any(|text| matches(&rule.pattern, text))
    }

    /// The rules that together allow every part.
    fn allowed_by(&self, rules: &[Rule]) -> Option<String> {
        let mut used: Vec<&str> = Vec::new();
        for part in &self.parts {
            let rule =
                rules.iter().find(|rule| rule.about(self.tool, Reach::Narrow) && matches(&rule.pattern, part))?;
            if !used.contains(&rule.text.as_str()) {
                used.push(&rule.text);
            }
        }
        (!used.is_empty()).then(|| used.join(", "))
    }
}

/// A path without `.`, `..` and doubled slashes, by its text alone.
fn normal_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if path.starts_with('/') => {}
            other => parts.push(other),
        }
    }
    let lead = if path.starts_with('/') { "/" } else { "" };
    format!("{lead}{}", parts.join("/"))
}

/// `*` stands for any text, slashes and spaces included. `cmd *` also matches `cmd` alone, and
/// `**/` also matches nothing.
fn matches(pattern: &str, text: &str) -> bool {
    wild(pattern.as_bytes(), text.as_bytes())
        || pattern.strip_suffix(" *").is_some_and(|bare| wild(bare.as_bytes(), text.as_bytes()))
        || (pattern.contains("**/") && wild(pattern.replace("**/", "").as_bytes(), text.as_bytes()))
}

/// Linear in practice, at worst pattern times text: goes back only to the last star.
fn wild(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, t));
            p += 1;
        } else if pattern.get(p) == Some(&text[t]) {
            p += 1;
            t += 1;
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            p = at + 1;
            t = from + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests;
