//! Where a program is: in PATH, or by its own path. Runs nothing.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// A program in PATH, or by its own path.
pub fn find(name: &str) -> Result<PathBuf, String> {
    let runs = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return if runs(Path::new(name)) { Ok(PathBuf::from(name)) } else { Err("cannot be run".to_owned()) };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join(name)).find(|path| !name.is_empty() && runs(path));
    found.ok_or_else(|| "not found in PATH".to_owned())
}
