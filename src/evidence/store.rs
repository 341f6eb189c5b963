//! Puts rendered files into the workspace, whole or not at all, and archives what an earlier run left.
//!
//! Mid-run files are renamed into place without fsync: they can be rendered again. Those of a halt are synced.
//!
//! Invariants: every name is opened beneath the workspace and no link is followed (`workspace::plain`); what stands in
//! the place of a folder or file of ours is given another name beside it, never followed, overwritten or lost, and the
//! caller is told.

use std::io;
use std::path::{Path, PathBuf};

use crate::machine::document::EVIDENCE_ROOT;
use crate::model::ids::RunId;
use crate::model::rendered::Rendered;
use crate::playbook::value::views;
use crate::workspace::plain::{self, Bits, Durability, Fault, FileKind};
use crate::workspace::tree::{self, TEMPORARY};

use super::render;

/// Where earlier evidence goes.
const ARCHIVE_ROOT: &str = "evidence/archive";
/// The folders that are ours alone.
const FOLDERS: [&str; 4] = ["evidence", EVIDENCE_ROOT, ARCHIVE_ROOT, "scratch"];
/// The view that says how a run ended.
const DELIVERY: &str = "DELIVERY_REPORT.md";
/// A view in the workspace itself that is larger than this is nobody's view.
const MAX_VIEW: usize = 16 << 20;
/// The manifest grows with the run.
const MAX_MANIFEST: usize = 64 << 20;
/// How deep evidence goes, and how many names a folder of it has.
const MAX_DEPTH: usize = 8;
const MAX_NAMES: usize = 200_000;
/// How often a place is put right before it is given up.
const TRIES: usize = 8;

/// What was put right: which place held what, and where that is now.
pub type Mended = Vec<String>;

/// Writes every file that differs from what is there.
pub fn write(workspace: &Path, files: &[Rendered], durability: Durability) -> io::Result<Mended> {
    let mut mended = Mended::new();
    for file in files {
        put(workspace, &file.path, &file.bytes, durability, &mut mended)?;
    }
    Ok(mended)
}

/// Puts a file of ours in its place, and puts the place right where something else stands there.
fn put(workspace: &Path, path: &str, bytes: &[u8], durability: Durability, mended: &mut Mended) -> io::Result<()> {
    // A file of another size is another file, so nothing larger is ever read.
    let there = plain::read(workspace, path, bytes.len());
    if there.is_ok_and(|there| there.is_some_and(|there| there.bytes == bytes)) {
        return Ok(());
    }
    for _ in 0..TRIES {
        match plain::put(workspace, path, bytes, Bits::Kept, durability) {
            Ok(()) => return Ok(()),
            Err(fault) if fault.is_odd() => mend(workspace, &fault, mended)?,
            Err(fault) => return Err(fault.into_io()),
        }
    }
    Err(io::Error::other(format!("{path}: something else is put in its place again and again")))
}

fn mend(workspace: &Path, fault: &Fault, mended: &mut Mended) -> io::Result<()> {
    let aside = plain::set_aside(workspace, &fault.place).map_err(Fault::into_io)?;
    mended.push(format!("{fault}; it is {aside} now"));
    Ok(())
}

/// Makes sure that the folders which are ours alone are folders, where they are there.
pub fn mend_folders(workspace: &Path) -> io::Result<Mended> {
    let mut mended = Mended::new();
    for folder in FOLDERS {
        match plain::list(workspace, folder, MAX_NAMES) {
            Err(fault) if fault.is_odd() => mend(workspace, &fault, &mut mended)?,
            Ok(_) | Err(_) => {}
        }
    }
    Ok(mended)
}

/// Takes away what an earlier moment of the run rendered and its end does not.
pub fn remove_outdated(workspace: &Path, files: &[Rendered]) -> io::Result<()> {
    for name in render::PASSING.map(|name| format!("{EVIDENCE_ROOT}/{name}")) {
        if !files.iter().any(|file| file.path == name) {
            // What cannot be removed is no file of ours; `verify` names it.
            let _ = plain::remove(workspace, &name);
        }
    }
    // The report of an end that was none, or of another run's, would be believed.
    if views::copies(files).all(|(name, _)| name != DELIVERY)
        && let Ok(Some(there)) = plain::read(workspace, DELIVERY, MAX_VIEW)
        && views::is_ours(&there.bytes)
    {
        let _ = plain::remove(workspace, DELIVERY);
    }
    Ok(())
}

/// Writes the copies of views that people look for in the workspace itself. A file of somebody else that stands there
/// is moved aside first, never overwritten.
pub fn write_copies(workspace: &Path, files: &[Rendered]) -> io::Result<Mended> {
    let mut mended = Mended::new();
    for (name, bytes) in views::copies(files) {
        match plain::read(workspace, name, MAX_VIEW) {
            Ok(Some(there)) if there.bytes == bytes => continue,
            Ok(Some(there)) if views::is_ours(&there.bytes) => {}
            Ok(None) => {}
            Ok(Some(_)) => {
                plain::set_aside(workspace, name).map_err(Fault::into_io)?;
            }
            Err(fault) if matches!(fault.what, plain::What::Failed(_)) => return Err(fault.into_io()),
            Err(fault) => mend(workspace, &fault, &mut mended)?,
        }
        put(workspace, name, bytes, Durability::Replaceable, &mut mended)?;
    }
    Ok(mended)
}

/// Writes everything and flushes it together: the last files of a run are many, small and belong together.
pub fn write_synced(workspace: &Path, files: &[Rendered]) -> io::Result<Mended> {
    let mended = write(workspace, files, Durability::Replaceable)?;
    plain::sync_all(workspace)?;
    Ok(mended)
}

/// Removes what a killed engine left half-written in the workspace, and in the evidence, which may be ignored. Only
/// the owner of the workspace may call this.
pub fn remove_leftovers(workspace: &Path) -> io::Result<()> {
    tree::remove_leftovers(workspace)?;
    remove_temporaries(workspace, EVIDENCE_ROOT, 0);
    Ok(())
}

/// What cannot be listed or removed is somebody else's, and is named where it matters.
fn remove_temporaries(workspace: &Path, folder: &str, depth: usize) {
    for (name, kind) in plain::list(workspace, folder, MAX_NAMES).unwrap_or_default() {
        let path = format!("{folder}/{name}");
        if kind == FileKind::File && name.starts_with(TEMPORARY) {
            let _ = plain::remove(workspace, &path);
        } else if kind == FileKind::Folder && depth < MAX_DEPTH {
            remove_temporaries(workspace, &path, depth + 1);
        }
    }
}

/// Moves the evidence of another run out of the way. Returns where it went.
pub fn archive_foreign(workspace: &Path, run: &RunId) -> io::Result<Option<PathBuf>> {
    mend_folders(workspace)?;
    if plain::kind(workspace, EVIDENCE_ROOT).map_err(Fault::into_io)?.is_none() {
        return Ok(None);
    }
    let owner = owner_of(workspace, EVIDENCE_ROOT);
    if owner.as_deref() == Some(run.as_str()) {
        return Ok(None);
    }
    let name = owner.unwrap_or_else(|| "unknown".to_owned());
    // Never overwrite: a name that is taken gets a number.
    for free in archive_names(&name) {
        if plain::rename(workspace, EVIDENCE_ROOT, &free).map_err(Fault::into_io)? {
            return Ok(Some(workspace.join(free)));
        }
    }
    Err(io::Error::other("evidence/archive holds too many copies of one run"))
}

/// The places a run's evidence may be archived at, from the workspace, in the order they are taken.
pub fn archive_names(name: &str) -> impl Iterator<Item = String> {
    let first = format!("{ARCHIVE_ROOT}/{name}");
    let name = name.to_owned();
    std::iter::once(first).chain((2..10_000).map(move |number| format!("{ARCHIVE_ROOT}/{name}-{number}")))
}

/// The run that wrote the evidence in a folder of the workspace.
fn owner_of(workspace: &Path, folder: &str) -> Option<String> {
    owner_in(&plain::read(workspace, format!("{folder}/manifest.json"), MAX_MANIFEST).ok()??.bytes)
}

/// The run that a manifest is of.
pub fn owner_in(manifest: &[u8]) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(manifest).ok()?;
    let id = RunId::parse(value.get("loop_id")?.as_str()?)?;
    Some(id.as_str().to_owned())
}

/// Where the evidence of a run lies now, from the workspace: current, or archived.
pub fn find(workspace: &Path, run: &RunId) -> Option<String> {
    if owner_of(workspace, EVIDENCE_ROOT).as_deref() == Some(run.as_str()) {
        return Some(EVIDENCE_ROOT.to_owned());
    }
    let is_folder = |path: &String| plain::kind(workspace, path) == Ok(Some(FileKind::Folder));
    archive_names(run.as_str()).take_while(is_folder).last()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::playbook::value::views::MARK;

    fn view(name: &str, text: &str) -> Rendered {
        let path = format!("{EVIDENCE_ROOT}/value/{name}");
        Rendered { path, bytes: text.as_bytes().to_vec(), role: "plan", iteration: None }
    }

    #[test]
    fn a_file_of_somebody_else_is_moved_aside_and_our_own_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("IMPLEMENTATION_PLAN.md");
        fs::write(&path, "my own plan\n").unwrap();
        let first = [view("IMPLEMENTATION_PLAN.md", &format!("{MARK}\none\n"))];
        write_copies(dir.path(), &first).unwrap();
        let second = [view("IMPLEMENTATION_PLAN.md", &format!("{MARK}\ntwo\n")), view("steps.json", "{}")];
        write_copies(dir.path(), &second).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{MARK}\ntwo\n"));
        let kept = dir.path().join("IMPLEMENTATION_PLAN.md.before-nightloop-1");
        assert_eq!(fs::read_to_string(kept).unwrap(), "my own plan\n");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "steps.json has no copy");
    }
}
