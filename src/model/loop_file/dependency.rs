//! `backpressure:`: what the work needs beside us, and how its absence is seen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Seconds between two looks where none are declared.
const DEFAULT_SECONDS: u64 = 30;
const MAX_SECONDS: u64 = 3_600;
const MAX_DEPENDENCIES: usize = 16;

/// Something downstream, such as a database: while its command does not exit 0, the run stops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DependencyDecl {
    pub name: String,
    /// A program and its arguments, run like a check; exit 0 means that it is there.
    pub command: Vec<String>,
    /// Asked before every agent, and this often while one works; 30 where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_seconds: Option<u64>,
}

impl DependencyDecl {
    pub fn every_seconds(&self) -> u64 {
        self.every_seconds.unwrap_or(DEFAULT_SECONDS)
    }

    /// The place, what is wrong, and what to do.
    pub fn check_all(declared: &[Self]) -> Result<(), (String, String, &'static str)> {
        if declared.len() > MAX_DEPENDENCIES {
            let message = format!("{} entries in backpressure: at most {MAX_DEPENDENCIES}", declared.len());
            return Err(("backpressure".to_owned(), message, ""));
        }
        for (index, dependency) in declared.iter().enumerate() {
            let Self { name, command, .. } = dependency;
            let wrong = |message: String, hint| Err((name.clone(), message, hint));
            if !super::is_plain_name(name) {
                return wrong(format!("`{name}` is not a valid name"), "use letters, digits, `-` and `_`, at most 64");
            }
            if declared[..index].iter().any(|earlier| earlier.name == *name) {
                return wrong(format!("backpressure names `{name}` twice"), "give each entry its own name");
            }
            if command.is_empty() {
                return wrong(format!("backpressure `{name}` has an empty command"), "for example [\"pg_isready\"]");
            }
            if !(1..=MAX_SECONDS).contains(&dependency.every_seconds()) {
                return wrong(format!("backpressure `{name}`: every_seconds is 1 to {MAX_SECONDS}"), "");
            }
        }
        Ok(())
    }
}
