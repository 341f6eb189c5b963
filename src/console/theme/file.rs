//! A theme file: what it may say, and what is wrong with it, by file and line.
//!
//! Not here: inheritance, reading from disk. Invariant: nothing in a file is silently ignored.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use ratatui::style::Modifier;
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};

use crate::model::diagnose::nearest;
use crate::model::safe::Safe;

use super::Role;
use super::background::Background;
use super::colour::Paint;

/// Something wrong with a theme file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub file: String,
    pub line: Option<usize>,
    /// What is wrong, and what to do about it.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = Safe::line(&self.file);
        let what = Safe::line(&self.what);
        match self.line {
            Some(line) => write!(f, "{file}:{line}: {what}"),
            None => write!(f, "{file}: {what}"),
        }
    }
}

/// A theme as it is written.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThemeFile {
    /// The theme whose roles hold where this one names none.
    pub inherits: Option<String>,
    pub appearance: Option<Background>,
    /// What its colours are meant to stand on.
    pub background: Option<Paint>,
    pub background16: Option<Paint>,
    /// Bring the background along, whatever the terminal has.
    pub paint: Option<bool>,
    #[serde(default)]
    pub roles: Roles,
}

/// How one role looks.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleLook {
    pub fg: Option<Paint>,
    pub bg: Option<Paint>,
    /// Instead of the nearest of sixteen colours.
    pub fg16: Option<Paint>,
    pub bg16: Option<Paint>,
    #[serde(default)]
    pub modifiers: Vec<Weight>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    Bold,
    Dim,
    Italic,
    Underlined,
    Reversed,
    CrossedOut,
}

impl Weight {
    pub const fn modifier(self) -> Modifier {
        match self {
            Self::Bold => Modifier::BOLD,
            Self::Dim => Modifier::DIM,
            Self::Italic => Modifier::ITALIC,
            Self::Underlined => Modifier::UNDERLINED,
            Self::Reversed => Modifier::REVERSED,
            Self::CrossedOut => Modifier::CROSSED_OUT,
        }
    }
}

/// Looks by role, each named once.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Roles(pub BTreeMap<Role, RoleLook>);

impl<'de> Deserialize<'de> for Roles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(RolesVisitor)
    }
}

struct RolesVisitor;

impl<'de> Visitor<'de> for RolesVisitor {
    type Value = Roles;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("roles with their looks")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Roles, A::Error> {
        let mut roles = BTreeMap::new();
        while let Some(RoleName(role)) = map.next_key()? {
            if roles.insert(role, map.next_value()?).is_some() {
                return Err(de::Error::custom(format!("role `{}` appears twice", role.name())));
            }
        }
        Ok(Roles(roles))
    }
}

struct RoleName(Role);

impl<'de> Deserialize<'de> for RoleName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        match names().get(&name) {
            Some(role) => Ok(Self(*role)),
            None => {
                let hint =
                    nearest(&name, names().keys().map(String::as_str)).map(|near| format!("; did you mean `{near}`?"));
                Err(de::Error::custom(format!("unknown role `{name}`{}", hint.unwrap_or_default())))
            }
        }
    }
}

fn names() -> &'static BTreeMap<String, Role> {
    static NAMES: OnceLock<BTreeMap<String, Role>> = OnceLock::new();
    NAMES.get_or_init(|| Role::ALL.iter().map(|role| (role.name(), *role)).collect())
}

/// Reads one file.
pub fn parse(file: &str, text: &str) -> Result<ThemeFile, Problem> {
    serde_yaml::from_str(text).map_err(|error| {
        let what = error.to_string();
        // The place goes in front, where editors look for it.
        let what = what.rsplit_once(" at line ").map_or(what.as_str(), |(what, _)| what).to_owned();
        let line = error.location().map(|at| at.line()).map(|line| misspelt_line(text, &what).unwrap_or(line));
        Problem { file: file.to_owned(), line, what }
    })
}

/// The parser knows only where the block begins that a wrong name stands in.
fn misspelt_line(text: &str, what: &str) -> Option<usize> {
    let wrong = what.split_once('`')?.1.split_once('`')?.0;
    let is_key =
        |line: &str| line.trim_start().strip_prefix(wrong).is_some_and(|rest| rest.trim_start().starts_with(':'));
    let lines: Vec<_> = text.lines().enumerate().filter(|(_, line)| is_key(line)).collect();
    lines.last().map(|(index, _)| index + 1)
}

/// Where a key of the outermost level stands.
pub fn line_of_key(text: &str, key: &str) -> Option<usize> {
    let found = text.lines().position(|line| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(':')));
    found.map(|index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        parse("my.yaml", text).unwrap_err().to_string()
    }

    #[test]
    fn mistakes_are_told_by_line_with_a_way_out() {
        let wrong_role = problem("appearance: dark\nroles:\n  text: {}\n  waring: { fg: red }\n");
        assert_eq!(wrong_role, "my.yaml:4: roles: unknown role `waring`; did you mean `warning`?");
        let wrong_key = problem("roles:\n  text: { fg: red }\n  good:\n    fgg: red\n");
        assert!(wrong_key.starts_with("my.yaml:4: roles.good: unknown field `fgg`, expected one of"), "{wrong_key}");
        let wrong_top = problem("roles: {}\ninherit: dark\n");
        assert!(wrong_top.starts_with("my.yaml:2: unknown field `inherit`"), "{wrong_top}");
        let wrong_colour = problem("roles:\n  text:\n    fg: bleu\n");
        assert!(wrong_colour.starts_with("my.yaml:3: roles.text.fg: invalid value: string \"bleu\""), "{wrong_colour}");
        let wrong_weight = problem("roles:\n  text:\n    modifiers: [blod]\n");
        assert!(
            wrong_weight.starts_with("my.yaml:3: roles.text.modifiers[0]: unknown variant `blod`"),
            "{wrong_weight}"
        );
        let twice = problem("roles:\n  text: {}\n  good: {}\n  text: {}\n");
        assert_eq!(twice, "my.yaml:4: roles: role `text` appears twice");
        assert!(problem("roles: [").starts_with("my.yaml:"));
        assert!(problem("roles:\n  \"te\\e[2Jxt\": {}").chars().all(|c| !c.is_control()));
    }
}
