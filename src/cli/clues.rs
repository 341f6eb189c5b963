//! Looks into a folder for what says how its project is checked. The deciding is `model::project_check`.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use crate::model::project_check::Clues;

/// More of a Makefile or a package.json is not read.
const MOST_BYTES: u64 = 1 << 20;
/// In the order in which make looks for them.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

pub fn find(folder: &Path) -> Clues {
    let there = |name: &str| folder.join(name).is_file();
    Clues {
        pre_commit: there(".pre-commit-config.yaml"),
        makefile: MAKEFILES.into_iter().find_map(|name| text(&folder.join(name))),
        cargo: there("Cargo.toml"),
        package_json: text(&folder.join("package.json")),
        python: ["pyproject.toml", "pytest.ini", "setup.cfg"].into_iter().any(there),
        go: there("go.mod"),
    }
}

/// The text of a file; nothing where there is none, or none that can be read.
fn text(path: &Path) -> Option<String> {
    // Asked first: opening a pipe would wait for its writer.
    fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
