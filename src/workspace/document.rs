//! Documents of the workspace that people name: read and replaced as a whole, never outside of it.
//!
//! A link to another file of the workspace is followed: people keep their documents where they like.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::contain::Root;

/// The text of a document; `None` where there is no such file yet.
pub fn read(workspace: &Path, path: &str, limit: usize) -> Result<Option<Vec<u8>>, String> {
    let root = Root::open(workspace)?;
    let Some(file) = root.read_if_there(&root.relative(path)?)? else { return Ok(None) };
    let failed = |error: std::io::Error| format!("{path}: {error}");
    let most = u64::try_from(limit).unwrap_or(u64::MAX);
    let size = file.metadata().map_err(failed)?.len();
    let too_large = || format!("{path} has {size} bytes, which is more than {limit} bytes");
    if size > most {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > limit { Err(too_large()) } else { Ok(Some(bytes)) }
}

/// Has the document more bytes than this? What cannot be read has none.
pub fn is_larger(workspace: &Path, path: &str, limit: usize) -> bool {
    let file = Root::open(workspace).and_then(|root| root.read_if_there(&root.relative(path)?)).ok().flatten();
    let size = file.and_then(|file| file.metadata().ok()).map_or(0, |metadata| metadata.len());
    size > u64::try_from(limit).unwrap_or(u64::MAX)
}

/// A file that the declaration names: in the workspace, or one of the operator's elsewhere.
pub fn read_declared(workspace: &Path, path: &str, limit: usize) -> Result<Vec<u8>, String> {
    let whole = workspace.join(path);
    let missing = || format!("{path} does not exist");
    if whole.starts_with(workspace) {
        return read(workspace, path, limit)?.ok_or_else(missing);
    }
    let (Some(folder), Some(name)) = (whole.parent(), whole.file_name().and_then(|name| name.to_str())) else {
        return Err(missing());
    };
    read(folder, name, limit)?.ok_or_else(missing)
}

/// Replaces a document at once; makes the folders that it lies in.
pub fn replace(workspace: &Path, path: &str, content: &[u8], protected: &[PathBuf]) -> Result<(), String> {
    let root = Root::open(workspace)?;
    let target = root.target(&root.relative(path)?, protected)?;
    target.replace(content).map_err(|error| format!("{path} was not written: {error}"))
}

/// May this document be written at all? Changes nothing.
pub fn check(workspace: &Path, path: &str, protected: &[PathBuf]) -> Result<(), String> {
    let root = Root::open(workspace)?;
    let relative = root.relative(path)?;
    if !root.is_folder(relative.parent().unwrap_or(Path::new(""))).unwrap_or(false) {
        return Err(format!("the folder of {path} does not exist"));
    }
    root.target(&relative, protected).map(|_| ())
}
