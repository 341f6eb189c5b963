//! Whole files that appear at once or not at all, and directories that stay written.
//!
//! Role: temp file, write, fdatasync, rename, fsync of the directory: in this order, in one place.
//! Not its role: the journal segments, which grow in place.
//! Invariant: a file seen under its final name has its full content on disk.

use std::fs::{DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use super::error::{JournalError, at};

/// Temp files carry this prefix, so that one left by a crash is known for what it is.
pub(super) const TEMP_PREFIX: &str = ".tmp-";

/// Puts `bytes` at `dir/name`, replacing what was there.
pub fn write(dir: &Path, name: &str, bytes: &[u8]) -> Result<(), JournalError> {
    let path = dir.join(name);
    let write = || -> io::Result<()> {
        let mut temp = tempfile::Builder::new().prefix(TEMP_PREFIX).tempfile_in(dir)?;
        temp.write_all(bytes)?;
        temp.as_file().sync_data()?;
        temp.persist(&path)?;
        sync_dir(dir)
    };
    write().map_err(at(&path))
}

/// Makes the names in `dir` durable. Without it a new file can vanish in a power cut.
pub(super) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Creates a directory only its owner can enter: prompts and tool output may hold secrets.
pub(super) fn create_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}
