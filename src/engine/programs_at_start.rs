//! The programs that checks run, as the run found them: folders of installed ones in the workspace, what build tools
//! unpacked in the user's home, and each check's own program wherever it lies.
//!
//! By their times (`workspace::stamps`): they are large, and a change time cannot be set back. Not here: which folders of
//! the workspace those are (`model::guard`). What was changed cannot be put back, so a change is a fact for
//! `machine::guards`, never a layer.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::model::guard;
use crate::workspace::stamps::{self, Differs, Stamps, Which};

/// Where build tools unpack what they run or compile, below the home folder: agents may add to it.
const UNPACKED: [(&str, &str); 4] =
    [(".npm", "_npx"), (".cargo/registry", "src"), (".cargo/git", "checkouts"), ("go/pkg", "mod")];
const INSTALLED: Which<'_> = Which { is_tool: &guard::is_tool_folder, skip: &guard::is_bookkeeping };
/// A check's own programs, by path.
const OWN: &str = "programs.json";

fn file(run_dir: &Path, number: usize) -> PathBuf {
    run_dir.join(format!("programs-{number}.stamps"))
}

/// Folders to look at, the workspace first.
fn places(workspace: &Path) -> Vec<(PathBuf, Option<&'static str>)> {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let unpacked = home.into_iter().flat_map(|home| UNPACKED.map(|(root, name)| (home.join(root), Some(name))));
    std::iter::once((workspace.to_owned(), None)).chain(unpacked).collect()
}

/// Keeps how they are now. `commands`: the simple commands that the checks come to.
pub(super) fn keep(run_dir: &Path, workspace: &Path, commands: &[Vec<String>]) {
    for (number, (root, name)) in places(workspace).into_iter().enumerate() {
        let is_named = |path: &str| Some(path) == name;
        let which = name.map_or(INSTALLED, |_| Which { is_tool: &is_named, ..INSTALLED });
        if let Ok(stamps) = stamps::look(&root, which, &mut |_| ()) {
            let _ = fs::write(file(run_dir, number), stamps.encode());
        }
    }
    let own = serde_json::to_vec(&own(workspace, commands)).unwrap_or_default();
    let _ = fs::write(run_dir.join(OWN), own);
}

/// How they differ from what was kept; at most `most` of them by name.
pub(super) fn differ(run_dir: &Path, workspace: &Path, most: usize) -> Differs {
    let mut all = Differs::default();
    for (number, (root, name)) in places(workspace).into_iter().enumerate() {
        let Some(kept) = fs::read(file(run_dir, number)).ok().and_then(|bytes| Stamps::decode(&bytes)) else {
            continue;
        };
        let is_named = |path: &str| Some(path) == name;
        let which = name.map_or(INSTALLED, |_| Which { is_tool: &is_named, ..INSTALLED });
        let Ok(found) = kept.compare(&root, which, most) else { continue };
        if name.is_none() {
            all = found;
        } else {
            // What was downloaded since is nobody's trick; what changed is.
            all.changed.extend(found.changed.iter().map(|path| root.join(path).to_string_lossy().into_owned()));
            all.changed_in_all += found.changed_in_all;
        }
    }
    let kept = fs::read(run_dir.join(OWN)).ok();
    let kept: BTreeMap<String, String> = kept.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    let changed = kept.iter().filter(|(path, known)| stamp(Path::new(path)).as_ref() != Some(known));
    let changed: Vec<String> = changed.map(|(path, _)| path.clone()).collect();
    all.changed_in_all += changed.len() as u64;
    all.changed.extend(changed);
    all.changed.truncate(most);
    all
}

/// Removes what was kept.
pub(super) fn clear(run_dir: &Path) {
    (0..=UNPACKED.len()).map(|number| file(run_dir, number)).for_each(|path| drop(fs::remove_file(path)));
    let _ = fs::remove_file(run_dir.join(OWN));
}

/// Programs outside of the workspace that commands name, with their times.
fn own(workspace: &Path, commands: &[Vec<String>]) -> BTreeMap<String, String> {
    let programs = commands.iter().filter_map(|words| words.first()).filter_map(|program| resolved(program));
    let outside = programs.filter(|path| !path.starts_with(workspace));
    outside.filter_map(|path| Some((path.to_str()?.to_owned(), stamp(&path)?))).collect()
}

/// The file that a shell would start.
fn resolved(program: &str) -> Option<PathBuf> {
    let places: Vec<PathBuf> = match program.contains('/') {
        true => vec![PathBuf::from(program)],
        false => std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(program)).collect(),
    };
    places.into_iter().filter(|path| path.is_absolute() && path.is_file()).find_map(|path| path.canonicalize().ok())
}

fn stamp(path: &Path) -> Option<String> {
    let meta = fs::metadata(path).ok()?;
    Some(format!("{} {} {} {} {}", meta.ino(), meta.size(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_program_is_told_wherever_it_lies() {
        let dir = tempfile::tempdir().unwrap();
        let [run, workspace, elsewhere] = ["run", "work", "elsewhere"].map(|name| dir.path().join(name));
        for folder in [&run, &workspace.join("node_modules/.bin"), &elsewhere] {
            fs::create_dir_all(folder).unwrap();
        }
        let checker = elsewhere.join("checker");
        fs::write(&checker, "real").unwrap();
        fs::write(workspace.join("node_modules/.bin/jest"), "real").unwrap();
        let commands = [vec![checker.to_str().unwrap().to_owned()], vec!["no-such-program".to_owned()]];
        keep(&run, &workspace, &commands);
        assert_eq!(differ(&run, &workspace, 5).changed_in_all, 0);
        fs::write(workspace.join("node_modules/.package-lock.json"), "{}").unwrap();
        fs::write(workspace.join("node_modules/.bin/new"), "").unwrap();
        let found = differ(&run, &workspace, 5);
        assert_eq!((found.changed_in_all, found.added_in_all), (0, 1), "an installation is no change");
        fs::write(&checker, "fake").unwrap();
        fs::write(workspace.join("node_modules/.bin/jest"), "fake").unwrap();
        let found = differ(&run, &workspace, 5);
        assert_eq!(found.changed_in_all, 2);
        assert!(found.changed[1].ends_with("elsewhere/checker"), "{:?}", found.changed);
        clear(&run);
        assert_eq!(fs::read_dir(&run).unwrap().count(), 0);
    }
}
