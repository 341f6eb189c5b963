//! Looks into a folder for what says how its project is checked. The deciding is `model::project_check`.

use std::path::Path;

use crate::model::project_check::Clues;
use crate::workspace::document;

/// A larger Makefile or package.json tells nothing.
const MOST_BYTES: usize = 1 << 20;
/// In the order in which make looks for them.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

pub fn find(folder: &Path) -> Clues {
    let text = |name: &str| text(folder, name);
    let there = |name: &str| text(name).is_some();
    Clues {
        pre_commit: there(".pre-commit-config.yaml"),
        makefile: MAKEFILES.into_iter().find_map(text),
        cargo: there("Cargo.toml"),
        package_json: text("package.json"),
        python: ["pyproject.toml", "pytest.ini", "setup.cfg"].into_iter().any(there),
        go: there("go.mod"),
    }
}

/// The text of a file; nothing where there is none, or none that can be read.
fn text(folder: &Path, name: &str) -> Option<String> {
    let bytes = document::read(folder, name, MOST_BYTES).ok()??;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
