//! Which tools a workspace uses: by the files that it holds, at its root or in a folder of it.
//!
//! Names only; nothing is read. Whoever writes such a file opens the registry of its tool, and nothing else: the operator
//! said `registries`.

use std::path::{Path, PathBuf};

use crate::model::hosts::{self, Pattern, Registry};
use crate::workspace::plain::{self, FileKind};

/// Folders that are looked into.
const MAX_FOLDERS: usize = 200;
/// Names at the root.
const MAX_ENTRIES: usize = 5_000;

/// Looks for the tools of one workspace.
#[derive(Debug)]
pub(super) struct Finder(PathBuf);

impl Finder {
    pub(super) fn new(workspace: &Path) -> Self {
        Self(workspace.to_owned())
    }

    /// What to open for a host, if a tool that is used here needs it; and why.
    pub(super) fn find(&self, host: &str) -> Option<(Vec<Pattern>, String)> {
        let meant = |registry: &&Registry| registry.hosts.iter().any(|pattern| pattern.matches(host));
        hosts::registries().iter().filter(meant).find_map(|registry| self.opened(registry))
    }

    /// The lists of all tools that are used here now.
    pub(super) fn all(&self) -> Vec<(Vec<Pattern>, String)> {
        hosts::registries().iter().filter_map(|registry| self.opened(registry)).collect()
    }

    fn opened(&self, registry: &Registry) -> Option<(Vec<Pattern>, String)> {
        let place = self.place_of(registry)?;
        Some((registry.hosts.clone(), format!("{}: {place}", registry.tool)))
    }

    fn place_of(&self, registry: &Registry) -> Option<String> {
        let is_file = |path: &str| matches!(plain::kind(&self.0, path), Ok(Some(FileKind::File)));
        if let Some(file) = registry.files.iter().find(|file| is_file(file)) {
            return Some(file.clone());
        }
        let entries = plain::list(&self.0, "", MAX_ENTRIES).ok()?;
        let folders = entries.into_iter().filter(|(name, kind)| *kind == FileKind::Folder && !name.starts_with('.'));
        folders.take(MAX_FOLDERS).find_map(|(folder, _)| {
            let file = registry.files.iter().find(|file| is_file(&format!("{folder}/{file}")))?;
            Some(format!("{folder}/{file}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_known_by_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let finder = Finder::new(folder.path());
        assert!(finder.all().is_empty() && finder.find("registry.npmjs.org").is_none());
        std::fs::create_dir(folder.path().join("web")).unwrap();
        std::fs::write(folder.path().join("web/package.json"), "{}").unwrap();
        std::fs::write(folder.path().join("go.mod"), "").unwrap();
        let (hosts, why) = finder.find("registry.npmjs.org").unwrap();
        assert!(hosts.iter().any(|host| host.matches("registry.yarnpkg.com")));
        assert_eq!(why, "npm: web/package.json");
        assert!(finder.find("pypi.org").is_none() && finder.find("example.org").is_none());
        let all: Vec<String> = finder.all().into_iter().map(|(_, why)| why).collect();
        assert_eq!(all, ["npm: web/package.json", "go: go.mod"]);
    }
}
