//! The `prd:` and `micro:` parts of loop.yaml: what an author works on, how often, and which detours are known.
//!
//! All limits are hard: nothing in a run raises them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::detour::{self, DetourDecl};
use crate::model::value::settings::{GitMode, GitSettings, Wrong};

/// Attempts at one item between two words of a person.
pub const LOOPS_PER_ITEM: u32 = 3;
/// The most passes that may be declared for a microloop.
const MAX_LIMIT: u32 = 10;
const MAX_ITEMS: usize = 1_000;
/// A day, in seconds.
const MAX_SECONDS: u64 = 86_400;

/// `prd:` as declared. What is left out has the default that is named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PrdSettings {
    /// The items, relative to the workspace. Default prd.json.
    pub file: String,
    /// Only these items count, by their ids; the others are left alone. Default: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// Go on with other items while one that used up its attempts waits for a person. Default true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub park_and_continue: Option<bool>,
    /// What is known of single items, by their ids.
    pub items: BTreeMap<String, ItemDecl>,
    pub detours: Vec<DetourDecl>,
    /// Commits of what passes, on a branch of the run's own. Default off: nothing is committed.
    pub git: GitSettings,
}

impl Default for PrdSettings {
    fn default() -> Self {
        Self {
            file: "prd.json".to_owned(),
            only: Vec::new(),
            park_and_continue: None,
            items: BTreeMap::new(),
            detours: Vec::new(),
            git: GitSettings { mode: GitMode::Off, ..GitSettings::default() },
        }
    }
}

/// What is known of one item.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ItemDecl {
    /// Program and arguments; exit code 0 is needed for the item to pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// Globs of the files that the item may need; a change elsewhere is flagged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// What kind of work a microloop is about; it decides how many passes are worth it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Flow {
    Signal,
    Build,
    Tests,
    Review,
    #[default]
    Other,
}

impl Flow {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::Build => "build",
            Self::Tests => "tests",
            Self::Review => "review",
            Self::Other => "other",
        }
    }

    pub const fn limit(self) -> u32 {
        match self {
            Self::Build => 5,
            Self::Signal | Self::Tests | Self::Review | Self::Other => 3,
        }
    }
}

/// `micro:` as declared.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MicroSettings {
    /// signal, build, tests, review or other (the default).
    pub flow: Flow,
    /// Passes of the author. Default: 5 for build, 3 otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    pub detours: Vec<DetourDecl>,
}

impl PrdSettings {
    pub fn check(&self) -> Result<(), Wrong> {
        let path = std::path::Path::new(&self.file);
        let plain = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        if self.file.is_empty() || !plain {
            return Err(("prd:", format!("`{}` is not a file in the workspace", self.file), "for example prd.json"));
        }
        if self.items.len() > MAX_ITEMS {
            return Err(("items", format!("{} items: at most {MAX_ITEMS}", self.items.len()), ""));
        }
        for (id, item) in &self.items {
            if item.check.as_ref().is_some_and(Vec::is_empty) {
                return Err(("items", format!("item `{id}` has an empty check"), "e.g. [\"npm\", \"test\"]"));
            }
            if item.timeout_seconds.is_some_and(|seconds| !(1..=MAX_SECONDS).contains(&seconds)) {
                return Err(("items", format!("item `{id}`: give 1 to {MAX_SECONDS} seconds"), ""));
            }
            if let Some(bad) = item.files.iter().find(|glob| globset::Glob::new(glob).is_err()) {
                return Err((
                    "files",
                    format!("item `{id}` names `{bad}`, which is not a valid glob"),
                    "e.g. [\"src/**\"]",
                ));
            }
        }
        self.git.check()?;
        check_detours(&self.detours)
    }

    /// Do the others go on while one item waits for a person?
    pub fn parks(&self) -> bool {
        self.park_and_continue.unwrap_or(true)
    }

    /// Does this item count?
    pub fn counts(&self, item: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|id| id == item)
    }

    /// Does a change of this file lie outside what the item declares? Without a declaration nothing does.
    pub fn is_out_of_scope(&self, item: &str, path: &str) -> bool {
        let Some(declared) = self.items.get(item).filter(|declared| !declared.files.is_empty()) else { return false };
        let fits = |glob: &String| globset::Glob::new(glob).is_ok_and(|glob| glob.compile_matcher().is_match(path));
        !declared.files.iter().any(fits)
    }
}

impl MicroSettings {
    pub fn check(&self) -> Result<(), Wrong> {
        if self.limit.is_some_and(|limit| !(1..=MAX_LIMIT).contains(&limit)) {
            return Err(("limit", format!("`limit` must be 1 to {MAX_LIMIT}"), "each pass is an author and a critic"));
        }
        check_detours(&self.detours)
    }

    pub fn limit(&self) -> u32 {
        self.limit.unwrap_or_else(|| self.flow.limit())
    }
}

fn check_detours(declared: &[DetourDecl]) -> Result<(), Wrong> {
    detour::check(declared).map_err(|(message, hint)| ("detours", message, hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_by_flow_are_those_of_the_table() {
        let limits = [Flow::Signal, Flow::Build, Flow::Tests, Flow::Review, Flow::Other].map(Flow::limit);
        assert_eq!(limits, [3, 5, 3, 3, 3]);
        let settings = MicroSettings { limit: Some(2), ..MicroSettings::default() };
        assert_eq!((settings.limit(), settings.check()), (2, Ok(())));
        assert!(MicroSettings { limit: Some(0), ..MicroSettings::default() }.check().is_err());
    }

    #[test]
    fn a_scope_is_what_was_declared_and_nothing_without_it() {
        let files = vec!["src/**".to_owned()];
        let items = BTreeMap::from([("A".to_owned(), ItemDecl { files, ..ItemDecl::default() })]);
        let settings = PrdSettings { items, ..PrdSettings::default() };
        assert!(!settings.is_out_of_scope("A", "src/a/b.rs"));
        assert!(settings.is_out_of_scope("A", "README.md"));
        assert!(!settings.is_out_of_scope("B", "README.md"));
    }

    #[test]
    fn the_file_lies_in_the_workspace() {
        for bad in ["", "../prd.json", "/tmp/prd.json"] {
            let settings = PrdSettings { file: bad.to_owned(), ..PrdSettings::default() };
            assert!(settings.check().is_err(), "{bad}");
        }
        assert!(PrdSettings { file: "plans/prd.json".to_owned(), ..PrdSettings::default() }.check().is_ok());
    }
}
