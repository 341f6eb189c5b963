//! Puts rendered files into the workspace, whole or not at all, and archives what an earlier run left.
//!
//! Mid-run files are renamed into place without fsync: they can be rendered again. Those of a halt are synced.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::machine::document::EVIDENCE_ROOT;
use crate::model::ids::RunId;
use crate::tool::tree::{self, TEMPORARY};

use super::render::{self, Rendered};
use super::value;
use super::within::Within;

/// Where earlier evidence goes.
const ARCHIVE_ROOT: &str = "evidence/archive";

/// How durable a file must be when the call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    Replaceable,
    Synced,
}

/// Writes every file that differs from what is there.
pub fn write(workspace: &Path, files: &[Rendered], durability: Durability) -> io::Result<()> {
    for file in files {
        let path = workspace.join(&file.path);
        let same = fs::metadata(&path).is_ok_and(|meta| meta.len() == file.bytes.len() as u64)
            && fs::read(&path).is_ok_and(|there| there == file.bytes);
        if !same {
            replace(&path, &file.bytes, durability)?;
        }
    }
    Ok(())
}

/// Takes away what an earlier moment of the run rendered and its end does not.
pub fn remove_outdated(workspace: &Path, files: &[Rendered]) -> io::Result<()> {
    let within = Within::open(workspace)?;
    for name in render::PASSING.map(|name| format!("{EVIDENCE_ROOT}/{name}")) {
        if !files.iter().any(|file| file.path == name) {
            within.remove(&name)?;
        }
    }
    Ok(())
}

/// Writes the copies of views that people look for in the workspace itself. A file of somebody else that stands there
/// is moved aside first, never overwritten.
pub fn write_copies(workspace: &Path, files: &[Rendered]) -> io::Result<()> {
    for (name, bytes) in value::copies(files) {
        let path = workspace.join(name);
        match fs::read(&path) {
            // A folder of that name is somebody's; the evidence has the view all the same.
            _ if path.is_dir() => continue,
            Ok(there) if there == bytes => continue,
            Ok(there) if !value::is_ours(&there) => move_aside(&path)?,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        replace(&path, bytes, Durability::Replaceable)?;
    }
    Ok(())
}

/// Gives a file another name beside itself, one that is free.
fn move_aside(path: &Path) -> io::Result<()> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    for number in 1..1_000 {
        let aside = path.with_file_name(format!("{name}.before-nightloop-{number}"));
        match fs::hard_link(path, &aside) {
            Ok(()) => return fs::remove_file(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(format!("{} cannot be moved aside", path.display())))
}

/// Writes everything and flushes it together: the last files of a run are many, small and belong together.
#[cfg(target_os = "linux")]
pub fn write_synced(workspace: &Path, files: &[Rendered]) -> io::Result<()> {
    write(workspace, files, Durability::Replaceable)?;
    rustix::fs::syncfs(File::open(workspace)?).map_err(io::Error::from)
}

/// Without a call that flushes a whole file system, file by file.
#[cfg(not(target_os = "linux"))]
pub fn write_synced(workspace: &Path, files: &[Rendered]) -> io::Result<()> {
    write(workspace, files, Durability::Synced)
}

/// Replaces a file atomically, keeping its permissions where it exists.
pub fn replace(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir)?;
    let mut temporary = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(dir)?;
    temporary.write_all(bytes)?;
    match fs::metadata(path) {
        Ok(meta) => temporary.as_file().set_permissions(meta.permissions())?,
        Err(_) => readable(temporary.as_file())?,
    }
    if durability == Durability::Synced {
        temporary.as_file().sync_all()?;
    }
    temporary.persist(path).map_err(|e| e.error)?;
    if durability == Durability::Synced {
        File::open(dir)?.sync_all()?;
    }
    Ok(())
}

/// Removes what a killed engine left half-written in the workspace, beside a file of its own that may lie
/// elsewhere, and in the evidence, which may be ignored. Only the owner of the workspace may call this.
pub fn remove_leftovers(workspace: &Path, beside: &Path) -> io::Result<()> {
    tree::remove_leftovers(workspace)?;
    if let Some(dir) = beside.parent() {
        remove_temporaries(dir, false)?;
    }
    remove_temporaries(&workspace.join(EVIDENCE_ROOT), true)
}

fn remove_temporaries(dir: &Path, below: bool) -> io::Result<()> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_file() && entry.file_name().to_string_lossy().starts_with(TEMPORARY) {
            fs::remove_file(entry.path())?;
        } else if kind.is_dir() && below {
            remove_temporaries(&entry.path(), true)?;
        }
    }
    Ok(())
}

/// Temporary files are private; evidence is for everyone who may read the workspace.
#[cfg(unix)]
fn readable(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable(_: &File) -> io::Result<()> {
    Ok(())
}

/// Moves the evidence of another run out of the way. Returns where it went.
pub fn archive_foreign(workspace: &Path, run: &RunId) -> io::Result<Option<PathBuf>> {
    let current = workspace.join(EVIDENCE_ROOT);
    if !current.exists() {
        return Ok(None);
    }
    let owner = owner_of(&current);
    if owner.as_deref() == Some(run.as_str()) {
        return Ok(None);
    }
    let archive = workspace.join(ARCHIVE_ROOT);
    fs::create_dir_all(&archive)?;
    let name = owner.unwrap_or_else(|| "unknown".to_owned());
    // Never overwrite: a name that is taken gets a number.
    let free = archive_names(&name)
        .map(|name| workspace.join(name))
        .find(|path| !path.exists())
        .ok_or_else(|| io::Error::other("evidence/archive holds too many copies of one run"))?;
    fs::rename(&current, &free)?;
    Ok(Some(free))
}

/// The places a run's evidence may be archived at, relative to the workspace, in the order they are taken.
pub fn archive_names(name: &str) -> impl Iterator<Item = String> {
    let first = format!("{ARCHIVE_ROOT}/{name}");
    let name = name.to_owned();
    std::iter::once(first).chain((2..10_000).map(move |number| format!("{ARCHIVE_ROOT}/{name}-{number}")))
}

/// The run that wrote the evidence in a directory.
pub fn owner_of(dir: &Path) -> Option<String> {
    owner_in(&fs::read(dir.join("manifest.json")).ok()?)
}

/// The run that a manifest is of.
pub fn owner_in(manifest: &[u8]) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(manifest).ok()?;
    let id = RunId::parse(value.get("loop_id")?.as_str()?)?;
    Some(id.as_str().to_owned())
}

/// Where the evidence of a run lies now: current, or archived.
pub fn find(workspace: &Path, run: &RunId) -> Option<PathBuf> {
    let current = workspace.join(EVIDENCE_ROOT);
    if owner_of(&current).as_deref() == Some(run.as_str()) {
        return Some(current);
    }
    archive_names(run.as_str()).map(|name| workspace.join(name)).take_while(|path| path.is_dir()).last()
}
