//! Which paths are the run's to commit and to put back.
//!
//! Role: names of files as git gives them, and the verdict on each. Not its role: finding them.
//! Invariant: what is in doubt is not the run's.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::workspace::tree::{TEMPORARY, name_of};

use super::program::Trouble;

/// A path relative to the workspace, as bytes.
pub(super) type Name = Vec<u8>;

/// A path as people and the journal see it.
pub(super) fn shown(name: &[u8]) -> String {
    name_of(Path::new(OsStr::from_bytes(name)))
}

/// A name as a path from the workspace.
pub(super) fn path(name: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(name))
}

/// A declared path as git would name it.
pub(super) fn plain(path: &str) -> String {
    path.split('/').filter(|part| !part.is_empty() && *part != ".").collect::<Vec<_>>().join("/")
}

/// The pieces of a list whose entries end with a zero byte.
pub(super) fn pieces(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == 0).filter(|piece| !piece.is_empty())
}

/// A list for a command that reads one.
pub(super) fn list<'a>(names: impl IntoIterator<Item = &'a Name>) -> Vec<u8> {
    let mut list = Vec::new();
    for name in names {
        list.extend_from_slice(name);
        list.push(0);
    }
    list
}

/// Whose a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    Run,
    /// It was there, changed or untracked, before the run.
    Foreign,
    /// Its name says that it may hold a secret.
    Sensitive,
    /// The engine writes it.
    Engine,
}

/// What is left alone.
pub(super) struct Bounds {
    foreign: BTreeSet<String>,
    sensitive: GlobSet,
}

impl Bounds {
    pub(super) fn new(foreign: &[String], sensitive: &[String]) -> Result<Self, Trouble> {
        let mut globs = GlobSetBuilder::new();
        for pattern in sensitive {
            let glob = GlobBuilder::new(pattern).case_insensitive(true).build();
            globs.add(glob.map_err(|e| Trouble::refused(format!("value.git.sensitive: {e}")))?);
        }
        let sensitive = globs.build().map_err(|e| Trouble::refused(format!("value.git.sensitive: {e}")))?;
        let foreign = foreign.iter().map(|path| path.trim_end_matches('/').to_owned()).collect();
        Ok(Self { foreign, sensitive })
    }

    pub(super) fn whose(&self, name: &[u8]) -> Whose {
        let path = shown(name);
        if is_engines(&path) {
            Whose::Engine
        } else if self.is_foreign(&path) {
            Whose::Foreign
        } else if self.sensitive.is_match(&path) || path.split('/').any(|part| self.sensitive.is_match(part)) {
            Whose::Sensitive
        } else {
            Whose::Run
        }
    }

    /// The path itself, what lies in it, and what it lies in: a file in place of a folder of somebody's, or a folder
    /// in place of a file, would take theirs away.
    fn is_foreign(&self, path: &str) -> bool {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        if ends.into_iter().any(|end| self.foreign.contains(&path[..end])) {
            return true;
        }
        let folder = format!("{path}/");
        self.foreign.range(folder.clone()..).next().is_some_and(|next| next.starts_with(&folder))
    }
}

/// Does the engine write it?
pub(super) fn is_engines(path: &str) -> bool {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let root = path.split('/').next().unwrap_or_default();
    let git = path.split('/').any(|part| part.eq_ignore_ascii_case(".git"));
    git || matches!(root, "evidence" | "scratch")
        || (folder.is_empty() && file == "AGENTS.md")
        || file == ".loop_state.json"
        || file.starts_with(TEMPORARY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_doubt_is_not_the_runs() {
        let foreign = ["mine.txt", "notes/a.md", "target/"].map(str::to_owned);
        let sensitive = [".env", "*.pem", "*secret*"].map(str::to_owned);
        let bounds = Bounds::new(&foreign, &sensitive).unwrap();
        let cases: &[(&str, Whose)] = &[
            ("src/a.rs", Whose::Run),
            ("mine.txt", Whose::Foreign),
            ("mine.txt.bak", Whose::Run),
            ("mine.txt/now/a/folder", Whose::Foreign),
            ("notes", Whose::Foreign),
            ("notes/b.md", Whose::Run),
            ("target/debug/x", Whose::Foreign),
            ("a/b/.env", Whose::Sensitive),
            ("A.PEM", Whose::Sensitive),
            ("secrets/x.yaml", Whose::Sensitive),
            ("AGENTS.md", Whose::Engine),
            ("sub/AGENTS.md", Whose::Run),
            ("evidence/x", Whose::Engine),
            ("evidence2", Whose::Run),
            ("scratch/STOP", Whose::Engine),
            ("sub/.git/config", Whose::Engine),
            ("sub/.GIT/config", Whose::Engine),
        ];
        for (path, expected) in cases {
            assert_eq!(bounds.whose(path.as_bytes()), *expected, "{path}");
        }
        assert!(Bounds::new(&[], &["a{".to_owned()]).is_err(), "a pattern that cannot be read hides nothing");
    }
}
