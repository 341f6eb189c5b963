//! What changed over the whole night: the iterations' changes put together, by file.
//!
//! Invariant: a file that came and went again did not change; very many changes are counted, not listed.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::machine::event::ChangeKind;
use crate::machine::run::RunState;
use crate::model::guard;

use super::quoted;

/// Files that are listed.
const LISTED: usize = 200;

#[derive(Debug, Clone, Default, Serialize)]
pub struct Changes {
    pub files: Vec<FileChange>,
    /// Files beyond those, and those that the record itself only counts.
    pub more: u64,
    pub added: usize,
    pub modified: usize,
    pub deleted: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileChange {
    pub path: String,
    pub kind: &'static str,
    /// What the file is, by its name: a test or setting that judges, a document, code, or something else.
    pub role: &'static str,
    /// The iterations that changed it.
    pub iterations: Vec<u32>,
}

impl Changes {
    pub fn in_words(&self) -> String {
        let all = self.added + self.modified + self.deleted;
        if all == 0 && self.more == 0 {
            return "No file changed.".to_owned();
        }
        let files = if all == 1 { "file" } else { "files" };
        let more =
            if self.more > 0 { format!(", and {} more that are only counted", self.more) } else { String::new() };
        format!(
            "{all} {files} changed: {} added, {} modified, {} deleted{more}.",
            self.added, self.modified, self.deleted
        )
    }
}

pub(super) fn of(state: &RunState) -> Changes {
    let mut found: BTreeMap<&str, (ChangeKind, ChangeKind, Vec<u32>)> = BTreeMap::new();
    let mut more = 0;
    for iteration in state.iterations().filter(|iteration| !state.git.undone.contains(&iteration.number())) {
        let Some(artifacts) = &iteration.artifacts else { continue };
        more += artifacts.more.as_ref().map_or(0, |more| more.files);
        for change in &artifacts.changes {
            let entry = found.entry(&change.path).or_insert((change.kind, change.kind, Vec::new()));
            entry.1 = change.kind;
            entry.2.push(iteration.number());
        }
    }
    let files = found.into_iter().filter_map(|(path, (first, last, iterations))| {
        let kind = match (first, last) {
            (ChangeKind::Added, ChangeKind::Deleted) => return None,
            (ChangeKind::Added, _) => ChangeKind::Added,
            (_, ChangeKind::Deleted) => ChangeKind::Deleted,
            (ChangeKind::Modified | ChangeKind::Deleted, ChangeKind::Added | ChangeKind::Modified) => {
                ChangeKind::Modified
            }
        };
        Some((kind, FileChange { path: quoted(path), kind: kind.word(), role: role(path), iterations }))
    });
    let mut changes = Changes { more, ..Changes::default() };
    for (kind, file) in files {
        match kind {
            ChangeKind::Added => changes.added += 1,
            ChangeKind::Modified => changes.modified += 1,
            ChangeKind::Deleted => changes.deleted += 1,
        }
        if changes.files.len() < LISTED {
            changes.files.push(file);
        } else {
            changes.more += 1;
        }
    }
    changes
}

fn role(path: &str) -> &'static str {
    if guard::names::judges(path) {
        "judges"
    } else if guard::names::is_document(path) {
        "document"
    } else if guard::names::is_code(path) {
        "code"
    } else {
        "other"
    }
}
