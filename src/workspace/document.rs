//! Documents of the workspace that a person approves: read and replaced as a whole, never outside of it.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::contain::Root;

/// The text of a document; `None` where there is no such file yet.
pub fn read(workspace: &Path, path: &str, limit: usize) -> Result<Option<Vec<u8>>, String> {
    let root = Root::open(workspace)?;
    let relative = root.relative(path)?;
    if !workspace.join(&relative).exists() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    root.read(&relative)?.take(most).read_to_end(&mut bytes).map_err(|error| format!("{path}: {error}"))?;
    if bytes.len() > limit {
        return Err(format!("{path} has more than {limit} bytes"));
    }
    Ok(Some(bytes))
}

/// Replaces a document at once.
pub fn replace(workspace: &Path, path: &str, content: &[u8], protected: &[PathBuf]) -> Result<(), String> {
    let root = Root::open(workspace)?;
    let relative = root.relative(path)?;
    let target = root.target(&relative, protected)?;
    let failed = |error: std::io::Error| format!("{path} was not written: {error}");
    target.replace(content).map_err(failed)?;
    // The new name is on disk before anyone is told that it is.
    let folder = root.path().join(relative.parent().unwrap_or(Path::new("")));
    std::fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
}

/// May this document be written at all? Changes nothing.
pub fn check(workspace: &Path, path: &str, protected: &[PathBuf]) -> Result<(), String> {
    let root = Root::open(workspace)?;
    let relative = root.relative(path)?;
    if !root.path().join(relative.parent().unwrap_or(Path::new(""))).is_dir() {
        return Err(format!("the folder of {path} does not exist"));
    }
    root.target(&root.relative(path)?, protected).map(|_| ())
}
