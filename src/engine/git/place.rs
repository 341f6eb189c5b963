//! Where git keeps the repository of a workspace, and that nothing odd lies there.
//!
//! Role: find the folders that git will write, and refuse before the first command what could lead git elsewhere: links,
//! pipes and shared files in the places that it writes. Not its role: what the repository holds.
//! Invariants: nothing is written and no command is run; a repository outside the workspace is taken only where it names
//! this workspace as one of its work trees, which nobody can arrange from inside the sandbox; all looks are bounded.

use std::path::{Path, PathBuf};

use crate::workspace::plain::{self, FileKind};

use super::program::Trouble;

/// A path in a file of git's.
const MAX_POINTER: usize = 8 * 1024;
/// References and their logs.
const MAX_NAMES: usize = 100_000;
const MAX_DEPTH: usize = 20;
/// Files that git reads or replaces beside the objects.
const FILES: &[&str] = &[
    "HEAD",
    "index",
    "config",
    "config.worktree",
    "packed-refs",
    "ORIG_HEAD",
    "FETCH_HEAD",
    "COMMIT_EDITMSG",
    "shallow",
    "commondir",
    "gitdir",
];
/// Folders that git writes into, and whether all below is looked at.
const FOLDERS: &[(&str, bool)] = &[
    ("refs", true),
    ("logs", true),
    ("objects", false),
    ("objects/info", false),
    ("objects/pack", false),
    ("info", false),
];

/// The folders of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// What belongs to this work tree.
    pub folder: PathBuf,
    /// What all work trees share; the same in most repositories.
    pub common: PathBuf,
}

/// What there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    Place(Place),
    /// No repository begins here.
    Nothing,
    /// One that the engine's git does not work on.
    Elsewhere(String),
}

impl Place {
    /// Folders that git has to write although they lie outside the workspace.
    pub(super) fn outside(&self, workspace: &Path) -> Vec<PathBuf> {
        [&self.folder, &self.common].into_iter().filter(|path| !path.starts_with(workspace)).cloned().collect()
    }

    /// Refuses what could lead git's hand elsewhere.
    pub(super) fn inspect(&self) -> Result<(), Trouble> {
        inspect(&self.folder)?;
        if self.common != self.folder { inspect(&self.common) } else { Ok(()) }
    }
}

/// Looks for the repository that begins at a workspace.
pub(super) fn find(workspace: &Path) -> Result<Found, Trouble> {
    let here = plain::kind(workspace, ".git").map_err(odd)?;
    match here {
        None => Ok(Found::Nothing),
        Some(FileKind::Folder) => {
            if plain::kind(workspace, ".git/commondir").map_err(odd)?.is_some() {
                return Err(Trouble::refused("`.git/commondir` sends git to another repository: take it away"));
            }
            let folder = workspace.join(".git");
            Ok(Found::Place(Place { common: folder.clone(), folder }))
        }
        Some(FileKind::File) => linked(workspace),
        Some(kind @ (FileKind::Link | FileKind::Other)) => {
            Err(Trouble::refused(format!("`.git` is {}: put the repository itself there", kind.name())))
        }
    }
}

/// The repository of a linked work tree: it and the work tree name each other.
fn linked(workspace: &Path) -> Result<Found, Trouble> {
    let elsewhere = |why: &str| Ok(Found::Elsewhere(format!("`.git` is a file, and {why}; the run works without git")));
    let Some(said) = pointer(workspace, ".git")?.and_then(|text| text.strip_prefix("gitdir: ").map(PathBuf::from))
    else {
        return elsewhere("it does not say where the repository is");
    };
    let Ok(folder) = workspace.join(said).canonicalize() else {
        return elsewhere("what it names is not there");
    };
    let back = pointer(&folder, "gitdir")?.and_then(|text| folder.join(text).canonicalize().ok());
    let common = pointer(&folder, "commondir")?.and_then(|text| folder.join(text).canonicalize().ok());
    match (back, common) {
        (Some(back), Some(common))
            if back == workspace.join(".git") && folder.starts_with(common.join("worktrees")) =>
        {
            Ok(Found::Place(Place { folder, common }))
        }
        _ => elsewhere("the repository it names does not know this work tree"),
    }
}

/// The one line of a file that names a path.
fn pointer(folder: &Path, name: &str) -> Result<Option<String>, Trouble> {
    let Some(file) = plain::read(folder, name, MAX_POINTER).map_err(odd)? else { return Ok(None) };
    Ok(String::from_utf8(file.bytes).ok().map(|text| text.trim_end_matches('\n').to_owned()))
}

fn inspect(folder: &Path) -> Result<(), Trouble> {
    for name in FILES {
        let Some(stat) = plain::stat(folder, name).map_err(odd)? else { continue };
        must_be(Path::new(name), plain::kind(folder, name).map_err(odd)?, &[FileKind::File])?;
        // Some of them are written in place, so another name of the same file would be written, too.
        if stat.st_nlink > 1 {
            return Err(Trouble::refused(format!(".git/{name} has a second name somewhere: copy it over itself")));
        }
    }
    for (name, deep) in FOLDERS {
        must_be(Path::new(name), plain::kind(folder, name).map_err(odd)?, &[FileKind::Folder])?;
        look_into(folder, name, *deep, 0)?;
    }
    Ok(())
}

fn look_into(folder: &Path, name: &str, deep: bool, depth: usize) -> Result<(), Trouble> {
    if depth > MAX_DEPTH {
        return Err(Trouble::refused(format!(".git/{name} is nested too deeply")));
    }
    for (below, kind) in plain::list(folder, name, MAX_NAMES).map_err(odd)? {
        let path = format!("{name}/{below}");
        must_be(Path::new(&path), Some(kind), &[FileKind::File, FileKind::Folder])?;
        if deep && kind == FileKind::Folder {
            look_into(folder, &path, true, depth + 1)?;
        }
    }
    Ok(())
}

fn must_be(name: &Path, kind: Option<FileKind>, allowed: &[FileKind]) -> Result<(), Trouble> {
    match kind {
        Some(kind) if !allowed.contains(&kind) => Err(Trouble::refused(format!(
            ".git/{} is {}, which git could be led astray by: put it right, then resume",
            name.display(),
            kind.name()
        ))),
        Some(_) | None => Ok(()),
    }
}

fn odd(fault: plain::Fault) -> Trouble {
    Trouble::refused(format!("the repository cannot be used: {fault}"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn repository() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("ws");
        for folder in ["refs/heads", "logs", "objects/pack", "info"] {
            fs::create_dir_all(root.join(".git").join(folder)).unwrap();
        }
        for file in ["HEAD", "index", "config", "refs/heads/main", "logs/HEAD"] {
            fs::write(root.join(".git").join(file), "x").unwrap();
        }
        (dir, root)
    }

    fn place(root: &Path) -> Place {
        match find(root).unwrap() {
            Found::Place(place) => place,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn links_pipes_and_second_names_are_refused() {
        let (dir, root) = repository();
        place(&root).inspect().unwrap();
        let outside = dir.path().join("outside");
        fs::write(&outside, "mine").unwrap();
        for name in ["HEAD", "index", "config", "logs/HEAD", "objects/ab", "refs/heads/evil", "packed-refs"] {
            let (at, kept) = (root.join(".git").join(name), dir.path().join("kept"));
            let had = fs::rename(&at, &kept).is_ok();
            symlink(&outside, &at).unwrap();
            let why = place(&root).inspect().unwrap_err();
            assert!(format!("{why:?}").contains(name), "{name}: {why:?}");
            fs::remove_file(&at).unwrap();
            if had {
                fs::rename(&kept, &at).unwrap();
            }
        }
        fs::remove_file(root.join(".git/index")).unwrap();
        fs::hard_link(&outside, root.join(".git/index")).unwrap();
        assert!(place(&root).inspect().is_err());
        fs::remove_file(root.join(".git/index")).unwrap();
        place(&root).inspect().unwrap();
        fs::write(root.join(".git/commondir"), "../../outside").unwrap();
        assert!(find(&root).is_err());
    }

    #[test]
    fn another_repository_is_taken_only_where_it_names_this_work_tree() {
        let (dir, main) = repository();
        let tree = main.parent().unwrap().join("tree");
        let own = main.join(".git/worktrees/tree");
        fs::create_dir_all(&own).unwrap();
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
        fs::write(own.join("commondir"), "../..\n").unwrap();
        assert!(matches!(find(&tree).unwrap(), Found::Elsewhere(_)), "nothing points back");
        fs::write(own.join("gitdir"), format!("{}\n", tree.join(".git").display())).unwrap();
        let found = place(&tree);
        assert_eq!((&found.folder, &found.common), (&own, &main.join(".git")));
        assert_eq!(found.outside(&tree).len(), 2);
        // Another work tree cannot pass for it.
        let thief = dir.path().canonicalize().unwrap().join("thief");
        fs::create_dir(&thief).unwrap();
        fs::copy(tree.join(".git"), thief.join(".git")).unwrap();
        assert!(matches!(find(&thief).unwrap(), Found::Elsewhere(_)));
        fs::write(thief.join(".git"), format!("gitdir: {}\n", main.join(".git").display())).unwrap();
        assert!(matches!(find(&thief).unwrap(), Found::Elsewhere(_)));
    }
}
