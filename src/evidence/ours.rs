//! The names in a workspace that the engine writes itself: they are no work of an agent, and in no tree.

use std::path::{Component, Path};

use crate::machine::run::RunState;
use crate::playbook;
use crate::playbook::passes::{self, PROGRESS};

/// What every playbook leaves out.
const EXCLUDED: &[&str] = &["evidence/", ".git/", "scratch/STOP", "AGENTS.md"];

/// The paths that no snapshot of the workspace holds. Where AGENTS.md is a link, what it leads to is what we write.
pub fn excluded(state: &RunState) -> Vec<String> {
    let declared = state.loop_file();
    let playbook = playbook::of(declared.playbook);
    let since = playbook.items_file(declared).filter(|_| state.began_before_layouts());
    let since: Vec<String> = since.into_iter().flat_map(passes::of_layout).filter(|path| path != PROGRESS).collect();
    let own = playbook.own_files(declared).into_iter().filter(|path| !since.contains(path));
    let linked = state.found.iter().filter_map(|found| within(found.link.as_deref()?));
    EXCLUDED.iter().map(|name| (*name).to_owned()).chain(own).chain(linked).collect()
}

/// Where a link at the top of the workspace leads, if it stays in it by its own words.
fn within(link: &str) -> Option<String> {
    let parts: Option<Vec<&str>> = Path::new(link)
        .components()
        .filter(|part| *part != Component::CurDir)
        .map(|part| if let Component::Normal(name) = part { name.to_str() } else { None })
        .collect();
    parts.filter(|parts| !parts.is_empty()).map(|parts| parts.join("/"))
}
