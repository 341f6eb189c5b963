//! The names of `assets/guards.yaml`, compiled once.
//!
//! Invariant: the shipped file parses strictly and every pattern in it is valid (a test holds that).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::Deserialize;

const SHIPPED: &str = include_str!("../../../assets/guards.yaml");

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    guards: Vec<String>,
    tests: Vec<String>,
    manifests: Vec<String>,
    locks: Vec<String>,
    tools: Vec<String>,
    caches: Vec<String>,
    bookkeeping: Vec<String>,
    outputs: BTreeSet<String>,
    build_folders: BTreeMap<String, Vec<String>>,
    code: BTreeSet<String>,
    documents: BTreeSet<String>,
    outside: BTreeSet<String>,
    runner_modules: BTreeSet<String>,
    standard_modules: BTreeSet<String>,
}

/// The table, ready to be asked.
#[derive(Debug, Default)]
pub struct Table {
    pub guards: GlobSet,
    pub tests: GlobSet,
    pub manifests: GlobSet,
    pub locks: GlobSet,
    pub tools: GlobSet,
    pub caches: GlobSet,
    pub bookkeeping: GlobSet,
    pub outputs: BTreeSet<String>,
    /// Folder name → files that show, beside it, that it is a cache.
    pub build_folders: BTreeMap<String, Vec<String>>,
    pub code: BTreeSet<String>,
    pub documents: BTreeSet<String>,
    pub outside: BTreeSet<String>,
    pub runner_modules: BTreeSet<String>,
    pub standard_modules: BTreeSet<String>,
}

/// The shipped table.
pub fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    // A test holds that it parses; a table without names would make everything unknown, never accepted as code.
    TABLE.get_or_init(|| parse(SHIPPED).unwrap_or_default())
}

/// Patterns whose `*` stays within a name; what is no pattern is left out by the caller's choice of `strict`.
pub fn globs<'a>(patterns: impl IntoIterator<Item = &'a String>, strict: bool) -> Result<GlobSet, String> {
    let mut builder = GlobSetBuilder::new();
    for pattern in patterns {
        match GlobBuilder::new(pattern).literal_separator(true).build() {
            Ok(glob) => {
                builder.add(glob);
            }
            Err(error) if strict => return Err(format!("{pattern}: {error}")),
            Err(_) => {}
        }
    }
    builder.build().map_err(|error| error.to_string())
}

fn parse(text: &str) -> Result<Table, String> {
    let raw: Raw = serde_yaml::from_str(text).map_err(|error| error.to_string())?;
    Ok(Table {
        guards: globs(&raw.guards, true)?,
        tests: globs(&raw.tests, true)?,
        manifests: globs(&raw.manifests, true)?,
        locks: globs(&raw.locks, true)?,
        tools: globs(&raw.tools, true)?,
        caches: globs(&raw.caches, true)?,
        bookkeeping: globs(&raw.bookkeeping, true)?,
        outputs: raw.outputs,
        build_folders: raw.build_folders,
        code: raw.code,
        documents: raw.documents,
        outside: raw.outside,
        runner_modules: raw.runner_modules,
        standard_modules: raw.standard_modules,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_table_parses() {
        let table = parse(SHIPPED).unwrap();
        for set in [&table.guards, &table.tests, &table.manifests, &table.locks, &table.tools, &table.caches] {
            assert!(!set.is_empty());
        }
        assert!(parse("guards: ['[']").is_err());
    }
}
