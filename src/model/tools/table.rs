//! The table of `assets/check-tools.yaml`, compiled once.
//!
//! Invariant: the shipped file parses strictly and every pattern in it is valid (a test holds that).

use std::collections::BTreeMap;
use std::sync::OnceLock;

use regex::{Regex, RegexSet, RegexSetBuilder};
use serde::Deserialize;

use crate::model::signature::Class;

const SHIPPED: &str = include_str!("../../../assets/check-tools.yaml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    echoes: Vec<String>,
    classes: Vec<RawClass>,
    commands: BTreeMap<Class, Vec<Vec<String>>>,
    words: BTreeMap<Class, Vec<String>>,
    fixers: Vec<RawFixer>,
    absent: Vec<RawAbsent>,
    not_programs: Vec<String>,
    tools: Vec<Tool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClass {
    class: Class,
    lines: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFixer {
    name: String,
    by: Option<By>,
    #[serde(default)]
    there: Vec<String>,
    #[serde(default)]
    words: Vec<String>,
    #[serde(default)]
    add: Vec<String>,
    #[serde(default)]
    drop: Vec<String>,
    command: Vec<String>,
    lines: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAbsent {
    line: String,
    #[serde(default)]
    surely: bool,
    #[serde(default)]
    known: bool,
}

/// What brings a tool into a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    Node,
    Python,
}

/// Programs that check, and how they come.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    pub names: Vec<String>,
    pub by: Option<By>,
    #[serde(rename = "as")]
    pub package: Option<String>,
    pub install: Option<String>,
}

/// Classes with patterns; the first that fits, in their order.
#[derive(Debug, Default)]
pub struct Ordered {
    patterns: RegexSet,
    classes: Vec<Class>,
}

impl Ordered {
    fn compile(classes: Vec<(Class, Vec<String>)>) -> Result<Self, String> {
        let all: Vec<(Class, String)> =
            classes.into_iter().flat_map(|(class, lines)| lines.into_iter().map(move |line| (class, line))).collect();
        let patterns = set(all.iter().map(|(_, line)| line))?;
        Ok(Self { patterns, classes: all.into_iter().map(|(class, _)| class).collect() })
    }

    pub fn first(&self, text: &str) -> Option<Class> {
        self.patterns.matches(text).iter().next().and_then(|index| self.classes.get(index).copied())
    }
}

/// A tool's own way to mend what it found.
#[derive(Debug)]
pub struct Fixer {
    pub name: String,
    pub by: Option<By>,
    pub there: Vec<String>,
    pub words: Vec<String>,
    pub add: Vec<String>,
    pub drop: Vec<String>,
    pub command: Vec<String>,
    pub lines: RegexSet,
}

/// How it is said that a program is not there.
#[derive(Debug)]
pub struct Absent {
    pub line: Regex,
    pub surely: bool,
    pub known: bool,
}

#[derive(Debug, Default)]
pub struct Table {
    pub echoes: RegexSet,
    pub classes: Ordered,
    pub commands: BTreeMap<Class, Vec<Vec<String>>>,
    pub words: Ordered,
    pub fixers: Vec<Fixer>,
    pub absent: Vec<Absent>,
    pub not_programs: Vec<String>,
    pub tools: Vec<Tool>,
}

impl Table {
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.names.iter().any(|known| known == name))
    }
}

/// The shipped table.
pub fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    // A test holds that it parses; with an empty one every failure is unknown, and nothing is run.
    TABLE.get_or_init(|| parse(SHIPPED).unwrap_or_default())
}

/// The pattern with classes of ASCII alone: what tools say is told apart by nothing else, and it stays small and quick.
fn ascii(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() * 2);
    let (mut within, mut chars) = (false, pattern.chars());
    while let Some(c) = chars.next() {
        match c {
            '[' => within = true,
            ']' => within = false,
            '\\' => {
                match (chars.next(), within) {
                    (Some('w'), true) => out.push_str("0-9A-Za-z_"),
                    (Some('w'), false) => out.push_str("[0-9A-Za-z_]"),
                    (Some('d'), true) => out.push_str("0-9"),
                    (Some('d'), false) => out.push_str("[0-9]"),
                    (Some('s'), true) => out.push_str(r"\t\r\n "),
                    (Some('s'), false) => out.push_str(r"[\t\r\n ]"),
                    (Some('S'), false) => out.push_str(r"[^\t\r\n ]"),
                    (Some('b'), false) => out.push_str(r"(?-u:\b)"),
                    (Some(other), _) => out.extend(['\\', other]),
                    (None, _) => {}
                }
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

/// Each line is looked at by itself.
fn set<'a>(patterns: impl Iterator<Item = &'a String>) -> Result<RegexSet, String> {
    RegexSetBuilder::new(patterns.map(|pattern| ascii(pattern)))
        .multi_line(true)
        .build()
        .map_err(|error| error.to_string())
}

fn parse(text: &str) -> Result<Table, String> {
    let raw: Raw = serde_yaml::from_str(text).map_err(|error| error.to_string())?;
    let fixers = raw.fixers.into_iter().map(|fixer| {
        let lines = set(fixer.lines.iter())?;
        let RawFixer { name, by, there, words, add, drop, command, .. } = fixer;
        Ok(Fixer { name, by, there, words, add, drop, command, lines })
    });
    let absent = raw.absent.into_iter().map(|absent| {
        let line = Regex::new(&ascii(&absent.line)).map_err(|error| error.to_string())?;
        Ok(Absent { line, surely: absent.surely, known: absent.known })
    });
    Ok(Table {
        echoes: set(raw.echoes.iter())?,
        classes: Ordered::compile(raw.classes.into_iter().map(|class| (class.class, class.lines)).collect())?,
        commands: raw.commands,
        words: Ordered::compile(raw.words.into_iter().collect())?,
        fixers: fixers.collect::<Result<_, String>>()?,
        absent: absent.collect::<Result<_, String>>()?,
        not_programs: raw.not_programs,
        tools: raw.tools,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_shipped_table_parses() {
        let table = parse(SHIPPED).unwrap();
        assert!(table.classes.classes.len() > 80 && table.tools.len() > 10 && table.absent.len() > 10);
        assert!(parse("echoes: ['(']").is_err());
    }

    #[test]
    fn its_names_are_unique_and_its_commands_can_be_run() {
        let table = parse(SHIPPED).unwrap();
        let names: BTreeSet<&str> = table.fixers.iter().map(|fixer| fixer.name.as_str()).collect();
        assert_eq!(names.len(), table.fixers.len());
        for fixer in &table.fixers {
            assert!(fixer.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'), "{}", fixer.name);
            assert!(fixer.command.starts_with(&fixer.words) && !fixer.lines.is_empty(), "{}", fixer.name);
        }
        let tools: Vec<&String> = table.tools.iter().flat_map(|tool| &tool.names).collect();
        assert_eq!(tools.iter().collect::<BTreeSet<_>>().len(), tools.len());
        for tool in &table.tools {
            assert!(tool.by.is_some() != tool.install.is_some(), "{:?}", tool.names);
        }
    }
}
