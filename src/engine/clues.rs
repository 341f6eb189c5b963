//! Looks into a folder for what says how its project is checked. The deciding is `model::project_check`.
//!
//! Invariant: bounded, and through the one door: agents can put anything there.

use std::path::Path;

use crate::model::project_check::{Clues, KEPT_TEXTS, is_kept_test};
use crate::workspace::document;
use crate::workspace::plain::{self, FileKind};

/// A larger manifest tells nothing.
const MOST_BYTES: usize = 1 << 20;
/// Names in one folder, and in all.
const MOST_IN_A_FOLDER: usize = 2_000;
const MOST_NAMES: usize = 10_000;
/// Folders below the project that are looked into.
const DEEPEST: usize = 3;
/// Tests whose text is read.
const MOST_TESTS: usize = 8;
/// What was installed or built is no part of the project; of the first two the programs are named.
const PROGRAMS: [&str; 3] = ["node_modules/.bin", ".venv/bin", "venv/bin"];
const NOT_ENTERED: [&str; 9] =
    ["node_modules", "venv", "target", "dist", "build", "vendor", "__pycache__", "evidence", "scratch"];

pub fn find(folder: &Path) -> Clues {
    let mut looked = Look { root: folder, clues: Clues::default(), names: 0, tests: 0 };
    looked.enter("", 0);
    for programs in PROGRAMS {
        for (name, _) in plain::list(folder, programs, MOST_IN_A_FOLDER).unwrap_or_default() {
            looked.clues.name(format!("{programs}/{name}"));
        }
    }
    looked.clues
}

struct Look<'a> {
    root: &'a Path,
    clues: Clues,
    names: usize,
    tests: usize,
}

impl Look<'_> {
    fn enter(&mut self, folder: &str, depth: usize) {
        let listed = plain::list(self.root, folder, MOST_IN_A_FOLDER).unwrap_or_default();
        for (name, kind) in listed {
            self.names += 1;
            if self.names > MOST_NAMES {
                return;
            }
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            match kind {
                FileKind::Folder
                    if depth < DEEPEST && !name.starts_with('.') && !NOT_ENTERED.contains(&name.as_str()) =>
                {
                    self.enter(&path, depth + 1);
                }
                FileKind::Folder => {}
                _ => self.see(&path, &name, depth),
            }
        }
    }

    fn see(&mut self, path: &str, name: &str, depth: usize) {
        let is_test = is_kept_test(path) && self.tests < MOST_TESTS;
        self.tests += usize::from(is_test);
        let is_kept = depth < DEEPEST && KEPT_TEXTS.contains(&name);
        if !is_test && !is_kept {
            return self.clues.name(path);
        }
        // People keep such files where they like: a link within the project is followed, like by the tools.
        if let Ok(Some(bytes)) = document::read(self.root, path, MOST_BYTES) {
            self.clues.keep(path, String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}
