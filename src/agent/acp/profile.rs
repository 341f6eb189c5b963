//! What programs that speak ACP need of us: data, in `assets/acp.yaml`.
//!
//! Role: find the row of a program by its file name. Not its role: what is done with it; the engine opens folders and
//! sets variables. Invariant: a program without a row needs nothing.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

static TABLE: LazyLock<BTreeMap<String, Profile>> = LazyLock::new(|| {
    // A test holds that it can be read.
    serde_yaml::from_str(include_str!("../../../assets/acp.yaml")).unwrap_or_default()
});

/// A row of the table.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    /// Folders of its own that it must be able to write, relative to HOME.
    pub folders: Vec<String>,
    /// Files of its own outside of them.
    pub files: Vec<String>,
    /// Variables that are set.
    pub env: BTreeMap<String, String>,
    /// Arguments that are added where our sandbox holds it.
    pub caged: Vec<String>,
}

/// The row of a program, by its file name.
pub fn of(program: &str) -> Option<&'static Profile> {
    TABLE.get(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_can_be_read() {
        let codex = of("codex-acp").unwrap();
        assert!(codex.folders == [".codex"] && codex.caged.len() == 4, "{codex:?}");
        assert_eq!(of("claude-code-acp").unwrap().files, [".claude.json"]);
        assert_eq!(of("no-such-agent"), None);
        let paths = TABLE.values().flat_map(|row| row.folders.iter().chain(&row.files));
        for path in paths {
            assert!(!path.starts_with('/') && !path.contains(".."), "{path}");
        }
    }
}
